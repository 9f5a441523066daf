"""What the package is asked to reach, and what it reaches: each floor beside its yardstick, on one thread.

    python benchmarks/targets.py [CASE ...] [--record] [--peers PYTHON]

A case runs ours and its yardstick in turn, a second or so of CPU time each, several rounds over; both have seen the
start of the stream by then and go on learning it. The figure is the median over the rounds of the ratio of their
speeds, with the least and the greatest beside it. Prints a table; --record writes benchmarks/results/targets.json,
which benchmarks/page.py turns into docs/benchmarks.md. With --peers also the peers that learn row by row, each in a
process of its own, a round of ours before and after each. About six minutes.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.linalg import blas
from threadpoolctl import threadpool_limits

from csdpp import CSDPP, OnlineBinaryRelevance
from csdpp.bench import learners, machine, naive, runner, streams, worker
from csdpp.datasets import make_stream

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "targets.json"
PEERS = ROOT / "benchmarks" / "peers" / "peers.py"
ROUNDS, SECONDS = 5, 0.5
ROW_BY_ROW = (
    "Vowpal Wabbit multilabel_oaa",
    "Vowpal Wabbit plt",
    "PyTorch linear, SGD",
    "PyTorch linear, Adam",
    "PyTorch low-rank, Adam",
    "river PerOutputClassifier",
    "river ClassifierChain",
)
PBC, PBT = {}, {"basis": "pbt", "encoder": "label"}


# ------------------------------------------------------------------------- contestants: a call gives rows and seconds


class Ours:
    """A learner of the package, that predicts and learns the stream over and over, many rows a call."""

    def __init__(self, model, X, Y):
        self.model, self.X, self.Y, self.at = model, X, Y, 0
        self.rows = max(64, min(2048, learners._CELLS // max(Y.shape[1], X.shape[1]) // 64 * 64))

    def run(self, seconds):
        """Rows per CPU second."""
        done, start = 0, time.process_time()
        while (spent := time.process_time() - start) < seconds or not done:
            rows = slice(self.at, min(self.at + self.rows, len(self.Y)))
            self.model.prequential(self.X[rows], self.Y[rows])
            done += rows.stop - rows.start
            self.at = rows.stop % len(self.Y)
        return done / spent


class Naive:
    """The same in plain NumPy, a row at a time; the constant feature is put on beforehand, untimed."""

    def __init__(self, model, X, Y):
        self.step, self.Y, self.at = model.step, Y, 0
        self.rows = list(naive.rows(X))

    def run(self, seconds):
        """Rows per CPU second."""
        done, start = 0, time.process_time()
        while (spent := time.process_time() - start) < seconds or not done:
            self.step(self.rows[self.at], self.Y[self.at])
            done += 1
            self.at = (self.at + 1) % len(self.Y)
        return done / spent


class Calls:
    """Something else than learning: ``call`` stands for ``rows`` rows."""

    def __init__(self, call, rows=1.0):
        self.call, self.rows = call, rows

    def run(self, seconds):
        """Rows per CPU second."""
        done, start = 0, time.process_time()
        while (spent := time.process_time() - start) < seconds or not done:
            self.call()
            done += 1
        return done * self.rows / spent


def duel(ours, other, rounds=ROUNDS, seconds=SECONDS):
    """Ours and the other in turn: medians of both speeds, and of their ratio with its range."""
    ours.run(seconds / 4), other.run(seconds / 4)
    pairs = [(ours.run(seconds), other.run(seconds)) for _ in range(rounds)]
    ratios = [a / b for a, b in pairs]
    return {
        "measured": statistics.median(ratios),
        "least": min(ratios),
        "greatest": max(ratios),
        "ours": statistics.median(a for a, _ in pairs),
        "other": statistics.median(b for _, b in pairs),
    }


# --------------------------------------------------------------------------------------------------------- the cases


def both(stream, M, options, weighting="mean", gradient=False):
    """Ours and naive on a stream with the same settings, past its first rows: all directions are held."""
    basis, kind = options.get("basis", "pbc"), "gradient" if gradient else "ridge"
    ours = Ours(CSDPP(M, weighting=weighting, regressor=kind, **options), stream.X, stream.Y)
    yard = learners.NaiveGradient if gradient else learners.Naive
    prepared = yard(stream.X, stream.Y, M)  # adds the constant feature
    regressor = naive.Gradient() if gradient else naive.Ridge(prepared.d)
    theirs = Naive(naive.CSDPP(prepared.d, prepared.K, M, "f1", basis, regressor, weighting), [], stream.Y)
    theirs.rows = prepared.rows
    start = 2 * M + 20
    ours.model.prequential(stream.X[:start], stream.Y[:start])
    for i in range(start):
        theirs.step(theirs.rows[i], theirs.Y[i])
    return ours, theirs


def small():
    """CSDPP ridge, d=104, K=14, M=2"""
    yield from _two_bases("S1", 25)


def middle():
    """CSDPP ridge, d=121, K=101, M=11"""
    yield from _two_bases("S2", 15)


def large():
    """CSDPP ridge, d=501, K=983, M=10"""
    yield from _two_bases("S3", 12)


def _two_bases(name, asked):
    stream = dense(name)
    M = streams.code_size(name)
    for title, options in (("PBC", PBC), ("PBT", PBT)):
        yield from _by_weighting(title, asked, stream, M, options)


def _by_weighting(title, asked, stream, M, options, gradient=False):
    """With the default weights; and with the paper's, which are one line of NumPy: beside, nothing is asked of them."""
    for weighting, floor in (("mean", asked), ("ordered", None)):
        found = duel(*both(stream, M, options, weighting, gradient))
        yield {"what": f"{title}, {weighting} weights", "unit": "× naive", "asked": floor} | found


def flops():
    """CSDPP ridge, d=501, K=983, M=10: time against its flops at the speed of dgemm"""
    stream, d, K, M = dense("S3"), 501, 983, 10
    A = np.random.default_rng(0).random((1000, 1000))
    for title, options, p in (("PBC", PBC, K), ("PBT", PBT, M + 1)):
        row = 4.0 * d * d + 4.0 * d * p + 6.0 * (M + 1) * K
        found = duel(both(stream, M, options)[0], Calls(lambda: A @ A, rows=2.0 * 1000**3 / row))
        low, high = 1 / found.pop("greatest"), 1 / found.pop("least")
        found |= {"measured": 1 / found["measured"], "least": low, "greatest": high}
        yield {"what": title, "unit": "× the time of the flops", "asked": 4, "at_most": True} | found


def sparse_gradient():
    """CSDPP gradient, PBT, sparse x (5 %), d=5001, K=3993, M=25"""
    stream = dense("S4")
    yield from _by_weighting("PBT", 10, stream, 25, PBT, gradient=True)


def wide():
    """CSDPP ridge, PBT, dense, d=5000, K=1000, M=25, against dsyr + dsymv alone"""
    d = 5000
    stream = make_stream(1024, d - 1, 1000, rank=25, cardinality=10.0, random_state=0)
    ours = Ours(CSDPP(25, **PBT), stream.X, stream.Y)
    ours.model.prequential(stream.X[:128], stream.Y[:128])
    S, v = np.zeros((d, d), order="F"), np.random.default_rng(0).random(d)

    def row():
        blas.dsyr(1e-9, v, a=S, overwrite_a=1)
        blas.dsymv(1.0, S, v)

    yield {"what": "PBT", "unit": "× dsyr + dsymv", "asked": 3} | duel(ours, Calls(row), seconds=2 * SECONDS)


def relevance():
    """O-BR against Sherman and Morrison in NumPy"""
    for name in ("S1", "S2", "S3"):
        stream = dense(name)
        prepared = learners.NaiveRelevance(stream.X, stream.Y, None)
        theirs = Naive(naive.BinaryRelevance(prepared.d, prepared.K, naive.Ridge(prepared.d)), [], stream.Y)
        theirs.rows = prepared.rows
        found = duel(Ours(OnlineBinaryRelevance(), stream.X, stream.Y), theirs)
        yield {"what": f"d={prepared.d}, K={prepared.K}", "unit": "× naive", "asked": 5} | found


def many_directions():
    """CSDPP gradient, PBT, K=4000, M=100"""
    stream = make_stream(1500, 200, 4000, rank=100, cardinality=20.0, random_state=0)
    yield from _by_weighting("d=201", 8, stream, 100, PBT, gradient=True)


CASES = (small, middle, large, flops, sparse_gradient, wide, relevance, many_directions)


@cache
def dense(name):
    """A generated stream with dense labels."""
    stream = streams.load(name, None, 0)
    Y = stream.Y.toarray() if sparse.issparse(stream.Y) else np.asarray(stream.Y)
    return replace(stream, Y=Y.astype(bool))


# --------------------------------------------------------------------------------------------------------- the peers


def against_peers(python, seconds=1.0):
    """Every peer that learns row by row, on the four sizes, by the speed of its first setting."""
    for name in streams.SIZES:
        stream = streams.load(name, None, 0)
        ours = "CS-DPP" if stream.X.shape[1] < runner._RIDGE_D else "CS-DPP, PBT, gradient"
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder) / "data.npz"
            worker.save_data(data, stream.X, stream.Y)
            before = cell(sys.executable, learners.__name__, ours, name, data, seconds)
            for peer in ROW_BY_ROW:
                case = {"case": "peers", "what": f"{name}: {peer}", "unit": "× the peer", "asked": 1}
                theirs = cell(python, str(PEERS), peer, name, data, seconds)
                after = cell(sys.executable, learners.__name__, ours, name, data, seconds)
                if isinstance(theirs, str):
                    yield case | {"error": theirs}
                else:
                    pair = sorted((before / theirs, after / theirs))
                    case |= {"measured": sum(pair) / 2, "least": pair[0], "greatest": pair[1]}
                    yield case | {"ours": (before + after) / 2, "other": theirs}
                before = after


def cell(python, module, learner, name, data, seconds):
    """Rows per CPU second of one learner in a process of its own, or what went wrong."""
    spec = {"module": module, "learner": learner, "data": str(data), "M": streams.code_size(name)}
    spec |= {"seconds": seconds, "output": str(data.parent), "first": 1}
    path = data.parent / "spec.json"
    path.write_text(json.dumps(spec), encoding="utf-8")
    lines, error = runner.run_worker(python, path, timeout=300.0)
    runs = [line for line in lines if "rows" in line]
    return runs[0]["rows"] / runs[0]["seconds"] if runs else error or "no answer"


# ---------------------------------------------------------------------------------------------------------- the table


def reached(case):
    """Whether a case is where it should be; None where it could not be measured, or nothing is asked."""
    if "error" in case or case["asked"] is None:
        return None
    return case["measured"] <= case["asked"] if case.get("at_most") else case["measured"] >= case["asked"]


def show(case):
    """A line of the table on the screen."""
    if "error" in case:
        return f"{case['what']:45} not measured: {case['error']}"
    text = f"{case['what']:45} asked {case['asked'] or '-':>3}, measured {case['measured']:8.2f} {case['unit']}"
    text += (
        f"  ({case['least']:.3g} to {case['greatest']:.3g}; {case['ours']:,.0f} against {case['other']:,.1f} a second)"
    )
    return text + ("   NOT REACHED" if reached(case) is False else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", choices=[*(case.__name__ for case in CASES), []], help="by default all")
    parser.add_argument("--record", action="store_true", help="write benchmarks/results/targets.json")
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter that has the peers")
    options = parser.parse_args()
    if options.record and options.cases:
        parser.error("what is recorded is all cases: leave the names out")
    found = []

    def take(cases, title):
        print(f"\n{title}", flush=True)
        for case in cases:
            found.append({"title": title} | case)
            print(f"  {show(case)}", flush=True)

    for case in CASES:
        if not options.cases or case.__name__ in options.cases:
            with threadpool_limits(1, user_api="blas"):
                take(({"case": case.__name__} | row for row in case()), case.__doc__)
    if options.peers:
        take(against_peers(os.path.abspath(options.peers)), "Peers that learn row by row")
    if options.record:
        content = {"made_with": machine.circumstances(), "load": os.getloadavg()[2], "cases": found}
        RESULTS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0 if all(reached(case) is not False for case in found) else 1


if __name__ == "__main__":
    sys.exit(main())
