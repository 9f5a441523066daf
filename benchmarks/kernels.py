"""Why the kernels are as they are: each choice against what it replaced, side by side in one run, on one thread.

    python benchmarks/kernels.py --record

prints tables of CPU time per row or call, and with --record writes them into docs/speed.md and
benchmarks/results/kernels.json.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numba
import numpy as np
import scipy
from threadpoolctl import threadpool_limits

import csdpp
from csdpp import CSDPP, OnlineBinaryRelevance
from csdpp._kernels import msg
from csdpp._kernels.eigen import rank_one_eigen
from csdpp.regressors import OnlineRidge

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "speed.md"
RESULTS = ROOT / "benchmarks" / "results" / "kernels.json"


def best(call, repeats=5, times=1):
    """The least CPU time of a call, in microseconds; the first call may have to compile and does not count."""
    call()
    least = np.inf
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(times):
            call()
        least = min(least, (time.process_time() - start) / times)
    return least * 1e6


def stream(n, d, K, seed=0):
    """Correlated labels, a tenth of them positive."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    scores = X @ rng.standard_normal((d, 6)) @ rng.standard_normal((6, K)) + 3.0 * rng.standard_normal((n, K))
    return X, scores > np.quantile(scores, 0.9, axis=0)


def _by_lapack(d, z):
    return np.linalg.eigh(np.diag(d) + 0.1 * np.outer(z, z))


def eigen():
    """The secular equation against LAPACK's solver on the eigenproblem of one update."""
    rng = np.random.default_rng(0)
    rows = []
    for n in (4, 13, 27, 102):
        d = np.sort(rng.random(n))[::-1].copy()
        d[: n // 2] = 1.0
        z = rng.standard_normal(n)
        lam, V = np.empty(n), np.empty((n, n))
        ours = best(partial(rank_one_eigen, d, z, 0.1, lam, V), times=200)
        lapack = best(partial(_by_lapack, d, z), times=200)
        rows.append({"size": n, "secular, us": ours, "eigh, us": lapack, "ratio": lapack / ours})
    return rows


def strips():
    """Rows between two multiplications of Q (1: Q is turned at every row, as printed): CPU time per row."""
    chosen, rows = msg.strip_length, []
    try:
        for K, M, n in ((14, 2, 3000), (101, 11, 2000), (983, 10, 1000), (4000, 25, 500), (4000, 100, 200)):
            X, Y = stream(n, 20, K)
            row = {"K": K, "M": M}
            for length in (1, 4, 8, 16, 24, 32, 64):
                msg.strip_length = lambda m, length=length: length
                model = CSDPP(M, basis="pbt", encoder="label", regressor="gradient").fit(X[:100], Y[:100])
                row[f"{length}, us"] = best(lambda m=model, X=X, Y=Y: m.partial_fit(X, Y), repeats=3) / n
            rows.append(row | {"chosen": chosen(M + 1)})
    finally:
        msg.strip_length = chosen
    return rows


def blocks():
    """`block_size`: CPU time per row of the defaults."""
    rows = []
    for d, K, M, n in ((103, 14, 2, 4000), (120, 101, 11, 3000), (500, 983, 10, 1000)):
        X, Y = stream(n, d, K)
        row = {"d": d, "K": K, "M": M}
        for size in (1, 4, 16, 32, 64, 128, 256):
            model = CSDPP(M, block_size=size).fit(X[:300], Y[:300])
            row[f"{size}, us"] = best(lambda m=model, X=X, Y=Y: m.partial_fit(X, Y), repeats=3) / n
        rows.append(row)
    return rows


class _Subtracted:
    """A^-1 itself, by blocks, as DESIGN-style updates would have it: S <- S - U C^-1 U'."""

    def __init__(self, d):
        self.S = np.eye(d)

    def learn(self, X):
        U = self.S @ X.T
        C = np.eye(len(X)) + X @ U
        V = scipy.linalg.solve_triangular(np.linalg.cholesky(C), U.T, lower=True, check_finite=False)
        self.S -= V.T @ V


def square_root():
    """What the square root of A^-1 costs against A^-1 itself: CPU time per row of the d-sized part, 64 a block."""
    rows = []
    for d in (104, 501, 1001, 2001):
        X = np.random.default_rng(0).random((64, d))
        ours, theirs = OnlineRidge(d, 1, regularization=1.0, forgetting=1.0, dtype=np.float64), _Subtracted(d)

        def learn(ours=ours, X=X):
            block, plan = ours.open(X, 1)
            ours.close(block, plan, carried=False)

        root, plain = best(learn, times=3) / 64, best(lambda t=theirs, X=X: t.learn(X), times=3) / 64
        rows.append({"d": d, "square root, us": root, "A^-1, us": plain, "ratio": root / plain})
    return rows


def single_rows():
    """One row a call at d = 100, K = 14, against the same rows in one call."""
    X, Y = stream(2000, 100, 14)
    rows = []
    for name, model in (
        ("PBC", CSDPP(2)),
        ("PBT", CSDPP(2, basis="pbt", encoder="label")),
        ("O-BR", OnlineBinaryRelevance()),
    ):
        model.fit(X, Y)

        def one_by_one(model=model):
            for i in range(len(X)):
                model.partial_fit(X[i : i + 1], Y[i : i + 1])

        def predictions(model=model):
            for i in range(len(X)):
                model.predict(X[i : i + 1])

        together = best(lambda m=model: m.partial_fit(X, Y), repeats=3) / len(X)
        alone = best(one_by_one, repeats=3) / len(X)
        rows.append(
            {
                "learner": name,
                "partial_fit of one row, us": alone,
                "of a row among many, us": together,
                "overhead, us": alone - together,
                "predict of one row, us": best(predictions, repeats=3) / len(X),
            }
        )
    return rows


def precision():
    """float32 against float64: CPU time per row."""
    rows = []
    for d, K, M, n in ((103, 14, 2, 4000), (500, 983, 10, 1000)):
        X, Y = stream(n, d, K)
        row = {"d": d, "K": K, "M": M}
        for dtype in ("float64", "float32"):
            model = CSDPP(M, dtype=dtype).fit(X[:300], Y[:300])
            row[f"{dtype}, us"] = best(lambda m=model, X=X, Y=Y: m.partial_fit(X, Y), repeats=3) / n
        rows.append(row | {"ratio": row["float64, us"] / row["float32, us"]})
    return rows


_FIRST = """
import time, numpy as np
start = time.process_time()
import csdpp
imported = time.process_time() - start
rng = np.random.default_rng(0)
X, Y = rng.random((80, 9)), rng.random((80, 5)) > 0.5
start = time.process_time()
for model in (csdpp.CSDPP(2), csdpp.CSDPP(2, basis="pbt", encoder="label"), csdpp.OnlineBinaryRelevance(),
              csdpp.OnlineCompressedSensing(2), csdpp.OnlineRandomProjection(2)):
    model.prequential(X, Y)
print(imported, time.process_time() - start)
"""


def first_use():
    """A new process: import, then every learner once, with an empty cache of compiled kernels and with a full one."""
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for state in ("empty", "full"):
            environment = os.environ | {"NUMBA_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}
            out = subprocess.run(
                [sys.executable, "-c", _FIRST], env=environment, capture_output=True, text=True, check=True
            )
            imported, ran = map(float, out.stdout.split())
            rows.append({"cache": state, "import, s": imported, "every learner once, s": ran})
    return rows


PARTS = (eigen, strips, blocks, square_root, single_rows, precision, first_use)


def markdown(rows):
    """A table of one part."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    for row in rows:
        cells = (
            f"{value:.3g}"
            if isinstance(value, float) and value < 100
            else f"{value:.0f}"
            if isinstance(value, float)
            else str(value)
            for value in row.values()
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def into_page(text, results):
    """The page with each table between its marks."""
    for name, rows in results.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        text = f"{before}{begin}\n\n{markdown(rows)}\n\n{end}{rest.split(end)[1]}"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="write docs/speed.md and benchmarks/results/kernels.json")
    options = parser.parse_args()
    results = {}
    for part in PARTS:
        with threadpool_limits(1, user_api="blas"):
            results[part.__name__] = part()
        print(f"\n{part.__doc__}\n\n{markdown(results[part.__name__])}", flush=True)
    if options.record:
        facts = {
            "csdpp": csdpp.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "numba": numba.__version__,
            "processor": platform.processor() or platform.machine(),
            "threads": 1,
        }
        RESULTS.write_text(json.dumps(facts | {"parts": results}, indent=1) + "\n")
        PAGE.write_text(into_page(PAGE.read_text(), results))


if __name__ == "__main__":
    main()
