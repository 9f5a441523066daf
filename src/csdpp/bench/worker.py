"""A cell of the benchmark in a process of its own: one learner on one stream, its settings one after the other.

    python -P worker.py SPEC.json

SPEC has `module` (a file, or a name to import) with `LEARNERS`, `learner` (a name in it), `data` (.npz), `M` (or
null), `seconds` (CPU, of each setting), `output` (a folder) and, if only the first settings are to run, their number
`first`. A line of JSON goes to stdout for the learner, and one for each run; predictions go into the folder. The
interpreter may be one without csdpp: only NumPy and SciPy are needed.

A learner is a class. Its constructor takes (X, Y, M) and converts the data, untimed; `settings` is a list of dicts;
`run(setting, seconds)` makes a fresh learner and gives its predictions for the first rows, as many as the time
allows, each made before its row (or its batch of rows) is learned, and the CPU seconds that this took; `made_with()`
names its package and version; `batch` is the number of rows that are predicted together.
"""

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

_SHORT = 0.3  # a run of fewer seconds is repeated, and the fastest counts
_TIMES = 3


def main(path: str) -> None:
    """Run a SPEC."""
    spec = json.loads(Path(path).read_text(encoding="utf-8"))
    kind = load_module(spec["module"]).LEARNERS[spec["learner"]]
    say({"made_with": kind.made_with()})  # fails where the package is not installed, before any work
    X, Y = load_data(spec["data"])
    learner = kind(X, Y, spec["M"])
    say({"batch": learner.batch})
    learner.run(learner.settings[0], 0.0)  # compiles, allocates, warms up
    for i, setting in enumerate(learner.settings[: spec.get("first")]):
        reset_peak()
        before = memory("VmRSS")
        answers, seconds = learner.run(setting, spec["seconds"])
        peak = memory("VmHWM")
        for _ in range(_TIMES - 1):
            if seconds < _SHORT:
                seconds = min(seconds, learner.run(setting, spec["seconds"])[1])
        np.save(Path(spec["output"]) / f"{i}.npy", np.packbits(answers, axis=1))
        say({"setting": setting, "rows": len(answers), "seconds": seconds, "before": before, "peak": peak})


def say(line: dict[str, Any]) -> None:
    """A line of JSON on stdout, at once: what a crash leaves is still a result."""
    print(json.dumps(line), flush=True)


def load_module(name: str) -> Any:
    """A module by its file or its name."""
    if not name.endswith(".py"):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(Path(name).stem, name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def save_data(path: Path, X: Any, Y: Any) -> None:
    """Write what `load_data` reads: X (n, d) dense or CSR, Y (n, K) of 0 and 1."""
    Y = Y.toarray() if sparse.issparse(Y) else np.asarray(Y)
    labels: dict[str, Any] = {"Y": np.packbits(Y.astype(np.bool_), axis=1), "K": np.array(Y.shape[1])}
    features: dict[str, Any] = {"X": X}
    if sparse.issparse(X):
        features = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": np.array(X.shape)}
    np.savez(path, **(features | labels))


def load_data(path: str) -> tuple[Any, Any]:
    """(X, Y) with Y boolean and dense."""
    with np.load(path) as file:
        Y = np.unpackbits(file["Y"], axis=1, count=int(file["K"])).astype(np.bool_)
        if "X" in file:
            return file["X"], Y
        parts = (file["data"], file["indices"], file["indptr"])
        return sparse.csr_array(parts, shape=tuple(file["shape"])), Y


def memory(field: str) -> int | None:
    """A size of this process in bytes as Linux knows it: VmRSS now, VmHWM the most since `reset_peak`."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


def reset_peak() -> None:
    """Count the most memory anew. (`ru_maxrss` cannot forget, and begins with what the parent had.)"""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


if __name__ == "__main__":
    main(sys.argv[1])
