"""What the machine can do on one thread, and what it is: every speed stands beside these.

python -m csdpp.bench.machine     prints the limits as JSON
"""

import json
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.linalg import blas

#: One thread, whatever the linear algebra underneath.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OPENBLAS", "OMP", "MKL", "NUMBA", "VECLIB_MAXIMUM")}
PACKAGES = ("csdpp", "numpy", "scipy", "numba", "scikit-learn")
_SIZE = 5000  # of the symmetric matrix whose updates bound what Sherman and Morrison can do


def fastest(call: Callable[[], object], times: int = 5) -> float:
    """The least CPU seconds of a call; the first one does not count."""
    call()
    least = np.inf
    for _ in range(times):
        start = time.process_time()
        call()
        least = min(least, time.process_time() - start)
    return float(least)


def limits() -> dict[str, float]:
    """Measured limits. Run with the environment of `ONE_THREAD`. About two seconds."""
    rng = np.random.default_rng(0)
    A, B = rng.random((1500, 1500)), rng.random((1500, 1500))
    x = rng.random(1 << 25)
    y = np.empty_like(x)
    S = np.zeros((_SIZE, _SIZE), order="F")
    v = rng.random(_SIZE)

    def update() -> None:
        assert np.shares_memory(blas.dsyr(1e-9, v, a=S, overwrite_a=1), S)  # in place, or it would not be a limit

    return {
        "dgemm_gflops": 2.0 * 1500**3 / fastest(lambda: A @ B) / 1e9,
        "copy_gb_per_second": 2.0 * x.nbytes / fastest(lambda: np.copyto(y, x)) / 1e9,
        "read_gb_per_second": 2.0 * x.nbytes / fastest(lambda: x @ y) / 1e9,
        f"dsyr_{_SIZE}_per_second": 1.0 / fastest(update),
        f"dsymv_{_SIZE}_per_second": 1.0 / fastest(lambda: blas.dsymv(1.0, S, v)),
    }


def circumstances() -> dict[str, str]:
    """What a speed depends on."""
    return {
        "machine": f"{platform.system()} {platform.machine()}, {processor()}, {os.cpu_count()} cores, one thread used",
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def processor() -> str:
    """Its name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown processor"


if __name__ == "__main__":
    print(json.dumps(limits()))
