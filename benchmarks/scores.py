"""What scores, decisions and tuning are worth on real data: the tables of docs/scores.md and docs/tuning.md.

    python benchmarks/scores.py [PART ...] [--record]

runs the parts (all of them by default) over the data sets in CSDPP_DATA, features scaled to [0, 1], rows in random
order, prints their tables, and with --record writes them into the pages and their numbers into
benchmarks/results/scores.json.
"""

import argparse
import json
import os
import platform
from functools import cache
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from csdpp import CSDPP, OnlineBinaryRelevance, __version__
from csdpp.calibration import reliability
from csdpp.costs import resolve_cost
from csdpp.datasets import load_named
from csdpp.decisions import OnlineThresholds
from csdpp.evaluate import prequential
from csdpp.plots import plot_reliability
from csdpp.tuning import OnlineTuner

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / os.environ.get("CSDPP_DATA", "../shared/data")
RESULTS = ROOT / "benchmarks" / "results" / "scores.json"
#: Data sets and code sizes M; the last M of a set is the one that counts when sets are counted.
SETS = {
    "emotions": (1, 2, 3),
    "scene": (2, 6, 3),
    "yeast": (2, 4, 7),
    "enron": (6,),
    "cal500": (18,),
    "corel5k": (38,),
}
SEEDS = range(5)
#: What "auto" is measured against.
LAMBDAS = (0.1, 1.0, 10.0, 30.0, 100.0)
STREAM_COSTS = ("micro_f1", "macro_f1")


@cache
def stream(name, seed):
    """Features and labels, dense."""
    data = load_named(name, DATA).scaled().permuted(seed)
    return tuple(A.toarray() if sparse.issparse(A) else A for A in (data.X, data.Y))


def cases():
    """The streams that the tables run over, with their M."""
    return [(name, M) for name, sizes in SETS.items() for M in sizes]


# ------------------------------------------------------------------------------------------- parts of docs/scores.md


def measures():
    """Micro-F1 and macro-F1 in percent, higher is better, of learners that were told different costs."""
    costs = {
        "micro-F1": ("micro_f1", ("hamming", "f1", "micro_f1")),
        "macro-F1": ("macro_f1", ("hamming", "f1", "macro_f1")),
    }
    rows = []
    for name, M in cases():
        row = {"stream, M": f"{name}, {M}"}
        results = {
            cost: [prequential(CSDPP(M, cost=cost), *stream(name, s), STREAM_COSTS, progress=False) for s in SEEDS]
            for cost in ("hamming", "f1", "micro_f1", "macro_f1")
        }
        for measure, (key, told) in costs.items():
            for cost in told:
                row[f"{measure}, told {cost}"] = [100 * (1 - r.averages[key]) for r in results[cost]]
        rows.append(row)
    return rows


def chances():
    """Expected calibration error and Brier score of all labels, after the first tenth of the rows; lower is better."""
    rows = []
    for name, sizes in SETS.items():
        row = {"stream": name}
        found = {told: [calibrated(name, sizes[-1], told, s) for s in SEEDS] for told in ("hamming", "f1")}
        plain = {key: [errors[key] for errors in found["hamming"]] for key in found["hamming"][0]}
        row["ECE, frequency so far"] = [100 * e.error for e in plain["frequency"]]
        row["ECE, tanh of the score"] = [100 * e.error for e in plain["tanh"]]
        row["ECE, told hamming"] = [100 * e.error for e in plain["chances"]]
        row["ECE, told f1"] = [100 * errors["chances"].error for errors in found["f1"]]
        row["Brier, frequency so far"] = [100 * e.brier for e in plain["frequency"]]
        row["Brier, tanh of the score"] = [100 * e.brier for e in plain["tanh"]]
        row["Brier, told hamming"] = [100 * e.brier for e in plain["chances"]]
        row["Brier, told f1"] = [100 * errors["chances"].brier for errors in found["f1"]]
        rows.append(row)
    return rows


def picture():
    """Reliability of one order of each set, told F1."""
    found = {}
    for name, sizes in SETS.items():
        X, Y = stream(name, 0)
        _, P = CSDPP(sizes[-1], cost="f1").prequential(X, Y, return_proba=True)
        late = slice(len(X) // 10, None)
        found[name] = reliability(Y[late], P[late])
    plot_reliability(found, ROOT / "docs" / "reliability.png")


def calibrated(name, M, told, seed):
    """Reliability of the chances, of an uncalibrated squashing of the scores, and of the labels' frequencies so far."""
    X, Y = stream(name, seed)
    late, model = slice(len(X) // 10, None), CSDPP(M, cost=told)
    _, P = model.prequential(X, Y, return_proba=True)
    before = np.cumsum(Y, axis=0) - Y
    frequency = (before + 0.5) / (np.arange(len(Y))[:, None] + 1.0)
    scores, other = np.empty(Y.shape), CSDPP(M, cost=told).partial_fit(X[:0], Y[:0])
    for start in range(0, len(X), 16):
        part = slice(start, start + 16)
        scores[part] = other.decision_function(X[part])
        other.partial_fit(X[part], Y[part])
    tanh = 0.5 + 0.5 * np.tanh(np.sqrt(Y.shape[1]) * scores)
    given = {"chances": P, "frequency": frequency, "tanh": tanh}
    return {key: reliability(Y[late], chances[late]) for key, chances in given.items()}


def thresholds():
    """What thresholds tuned online gain: losses in percent, lower is better."""
    rows = []
    for name, sizes in SETS.items():
        for cost in ("f1", "accuracy", "micro_f1", "macro_f1"):
            row = {"stream": name, "loss": cost}
            learners = {"O-BR": OnlineBinaryRelevance(), "CS-DPP told it": CSDPP(sizes[-1], cost=cost)}
            for learner, made in learners.items():
                losses = [tuned(made, cost, *stream(name, s)) for s in SEEDS]
                row[learner] = [100 * own for own, _ in losses]
                row[f"{learner}, with thresholds"] = [100 * better for _, better in losses]
            rows.append(row)
    return rows


def tuned(learner, cost, X, Y):
    """The losses of the learner's own decisions and of those with thresholds, each with what was predicted."""
    model = OnlineThresholds(clone(learner), cost)
    labels = model.prequential(X, Y)
    return float(model.averages_[1]), float(np.mean(resolve_cost(cost).loss(Y, labels)))


def top():
    """Precision in percent of the k labels that stand first, ranked by score and by chance; higher is better."""
    rows = []
    for name, sizes in SETS.items():
        row = {"stream": name}
        for told in ("hamming", "f1"):
            found = [precision(name, sizes[-1], told, s) for s in SEEDS]
            for key in found[0]:
                row[f"{key}, told {told}"] = [100 * each[key] for each in found]
        rows.append(row)
    return rows


def precision(name, M, told, seed):
    X, Y = stream(name, seed)
    model, hits = CSDPP(M, cost=told), {}
    first = len(X) // 10
    model.partial_fit(X[:first], Y[:first])
    for start in range(first, len(X), 16):
        part = slice(start, start + 16)
        for by, word in (("score", "score"), ("proba", "chance")):
            best = model.predict_top(X[part], 5, by=by)
            for k in (1, 3, 5):
                hits.setdefault(f"P@{k} by {word}", []).append(np.take_along_axis(Y[part], best[:, :k], 1).mean(axis=1))
        model.partial_fit(X[part], Y[part])
    return {key: float(np.concatenate(parts).mean()) for key, parts in hits.items()}


# ----------------------------------------------------------------------------------------------- docs/tuning.md


def regularization():
    """F1 loss in percent for each lambda and for "auto"; lower is better."""
    rows = []
    for name, sizes in SETS.items():
        row, losses = {"stream, M": f"{name}, {sizes[-1]}"}, {}
        for value in (*LAMBDAS, "auto"):
            learner = CSDPP(sizes[-1], regularization=value)
            losses[value] = [
                100 * prequential(clone(learner), *stream(name, s), "f1", progress=False).averages["f1"] for s in SEEDS
            ]
            row[f"lambda {value}" if value != "auto" else "auto"] = losses[value]
        best = min(np.mean(losses[value]) for value in LAMBDAS)
        row["auto less the best"] = float(round(np.mean(losses["auto"]) - best, 3))
        rows.append(row)
    return rows


def tuner():
    """F1 loss in percent of the tuner, of its first candidate alone and of its best in hindsight; two orders."""
    rows = []
    for name in SETS:
        if name == "corel5k":
            continue  # with half of its 374 labels as directions, an hour
        row, found = (
            {"stream": name},
            {"first alone": [], "tuner": [], "best in hindsight": [], "worst in hindsight": []},
        )
        for seed in (0, 1):
            X, Y = stream(name, seed)
            found["tuner"].append(prequential(OnlineTuner(), X, Y, "f1", progress=False).averages["f1"])
            alone = OnlineTuner(patience=None).partial_fit(X, Y).averages_
            found["first alone"].append(float(alone[0]))
            found["best in hindsight"].append(float(alone.min()))
            found["worst in hindsight"].append(float(alone.max()))
        row |= {key: [100 * loss for loss in losses] for key, losses in found.items()}
        rows.append(row)
    return rows


PARTS = {
    measures: "docs/scores.md",
    chances: "docs/scores.md",
    thresholds: "docs/scores.md",
    top: "docs/scores.md",
    regularization: "docs/tuning.md",
    tuner: "docs/tuning.md",
}


# ------------------------------------------------------------------------------------------------ writing


def cell(value):
    """A list is one figure over the seeds: mean and standard deviation."""
    if isinstance(value, list):
        return f"{np.mean(value):.1f} ± {np.std(value, ddof=1):.1f}"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def markdown(rows):
    """A table of one part."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    lines += ["| " + " | ".join(map(cell, row.values())) + " |" for row in rows]
    return "\n".join(lines)


def into_page(text, name, rows):
    """The page with a table between its marks."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{markdown(rows)}\n\n{end}{rest.split(end)[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = {part.__name__: part for part in PARTS}
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(names)}; default: all")
    parser.add_argument("--record", action="store_true", help="write the pages and benchmarks/results/scores.json")
    options = parser.parse_args()
    for name in options.parts or names:
        part = names[name]
        with threadpool_limits(1, user_api="blas"):
            rows = part()
        print(f"\n{part.__doc__}\n\n{markdown(rows)}", flush=True)
        if options.record:
            record(part, rows)


def record(part, rows):
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    facts = {"csdpp": __version__, "python": platform.python_version(), "numpy": np.__version__}
    results[part.__name__] = {**facts, "seeds": len(SEEDS), "rows": rows}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    if part is chances:
        picture()
    page = ROOT / PARTS[part]
    page.write_text(into_page(page.read_text(), part.__name__, rows))


if __name__ == "__main__":
    main()
