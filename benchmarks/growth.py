"""How time and memory grow: with the labels K, with the code size M, and with the rows learned, on one thread.

    python benchmarks/growth.py [--record]

Each point is a process of its own that predicts and learns rows for a second of CPU time, several times over; the
fastest counts. Memory is what the process held at most while it learned, less what it held before, with the data.
Prints tables; --record writes benchmarks/results/growth.json, which benchmarks/page.py turns into a picture and
tables of docs/benchmarks.md. About three minutes.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "growth.json"
BASES = {"PBC": {}, "PBT": {"basis": "pbt", "encoder": "label"}}
D, M = 100, 10  # features with the constant one, code size
LABELS = (1_000, 3_000, 10_000, 30_000, 100_000)
SIZES, SIZED = (5, 10, 20, 40, 80), 10_000  # code sizes, and the labels they are of
ROWS, PIECES = 25_000, 16  # of the long stream: rows of a piece, pieces
SECONDS, TIMES = 0.7, 5


# ------------------------------------------------------------------------------------- one point, in its own process


def point(basis, K, size):
    """Time a row and memory of one learner on K labels."""
    from csdpp import CSDPP
    from csdpp.bench import worker
    from csdpp.datasets import make_stream

    stream = make_stream(256, D - 1, K, rank=min(size, D - 1), cardinality=5.0, random_state=0)
    X, Y = stream.X, np.asarray(stream.Y).astype(bool)
    model = CSDPP(size, **BASES[basis])
    CSDPP(2, **BASES[basis]).prequential(X[:3], Y[:3, :4])  # compiled by now
    worker.reset_peak()
    before = worker.memory("VmRSS")
    model.prequential(X[:128], Y[:128])
    least = np.inf
    for _ in range(TIMES):
        rows, start = 0, time.process_time()
        while (spent := time.process_time() - start) < SECONDS / TIMES or not rows:
            model.prequential(X[128:], Y[128:])
            rows += 128
        least = min(least, spent / rows)
    return {"us": least * 1e6, "peak": (worker.memory("VmHWM") or 0) - (before or 0), "state": state(model._engine)}


def state(engine):
    """Bytes of what is kept from row to row: regressor, directions, reference."""
    regressor, basis = engine.regressor, engine.encoder.basis
    return int(sum(A.nbytes for A in (regressor.W, regressor.F, *basis, engine.o)))


def long_stream(basis):
    """Time a row and resident memory after piece upon piece of a stream that does not end."""
    from csdpp import CSDPP
    from csdpp.bench import worker
    from csdpp.datasets import make_stream

    stream = make_stream(ROWS, D - 1, 20, rank=5, cardinality=3.0, random_state=0)
    X, Y = stream.X, np.asarray(stream.Y).astype(bool)
    model = CSDPP(4, **BASES[basis]).fit(X[:512], Y[:512])
    found = {"us": [], "resident": []}
    for _ in range(PIECES):
        start = time.process_time()
        model.prequential(X, Y)
        found["us"].append((time.process_time() - start) / ROWS * 1e6)
        found["resident"].append(worker.memory("VmRSS") or 0)
    return found


# ----------------------------------------------------------------------------------------------------------- all of it


def measure():
    """All curves."""
    labels = [{"basis": basis, "K": K, "M": M} | _apart("point", basis, K, M) for basis in BASES for K in LABELS]
    sizes = [{"basis": basis, "K": SIZED, "M": m} | _apart("point", basis, SIZED, m) for basis in BASES for m in SIZES]
    rows = [{"basis": basis} | _apart("long_stream", basis) for basis in BASES]
    return {"labels": labels, "sizes": sizes, "rows": rows}


def _apart(*call):
    from csdpp.bench import machine

    environment = os.environ | machine.ONE_THREAD
    command = [sys.executable, __file__, "--one", json.dumps(call)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    print(*call, done.stdout.strip()[:100], flush=True)
    return json.loads(done.stdout)


def exponent(points, by, what="us"):
    """Of the power law that fits best: by how much the logarithm of ``what`` rises with that of ``by``."""
    x, y = (np.log([point[key] for point in points]) for key in (by, what))
    return float(np.polyfit(x, y, 1)[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="write benchmarks/results/growth.json")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        name, *arguments = json.loads(options.one)
        print(json.dumps({"point": point, "long_stream": long_stream}[name](*arguments)))
        return
    found = measure()
    for basis in BASES:
        for part, by in (("labels", "K"), ("sizes", "M")):
            points = [point for point in found[part] if point["basis"] == basis]
            print(f"{basis}: time a row grows like {by}^{exponent(points, by):.2f}")
    if options.record:
        from csdpp.bench import machine

        content = {"made_with": machine.circumstances(), "load": os.getloadavg()[2], **found}
        RESULTS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
