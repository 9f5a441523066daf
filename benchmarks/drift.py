"""Drift: how long learners take to recover when everything changes at once. The tables of docs/drift.md.

    python benchmarks/drift.py [--record]

Two streams of `csdpp.datasets.make_stream`, drawn apart, one after the other: in the middle the frequencies of the
labels, their correlations and the map from features to labels all change. The loss is the F1 loss over the last
200 rows. A learner has recovered when that comes within 0.03 of its own loss at the end of the second stream
alone, the stationary setting.
"""

import argparse
import json
import platform
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from river import drift, linear_model, multioutput, optim, preprocessing, tree
from threadpoolctl import threadpool_limits

from csdpp import CSDPP, OnlineBinaryRelevance, __version__
from csdpp.costs import F1
from csdpp.datasets import make_stream
from csdpp.rates import Constant

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "drift.json", ROOT / "docs" / "drift.md"
PICTURE = ROOT / "docs" / "drift.png"
N, D, K, RANK, WINDOW, MARGIN, SEEDS = 3000, 20, 12, 4, 200, 0.03, (0, 1, 2)


class River:
    """A river classifier for each label, or one of many outputs, behind arrays."""

    def __init__(self, make, each=True):
        self.make, self.each = make, each

    def prequential(self, X, Y):
        models = [self.make() for _ in range(K)] if self.each else self.make()
        out = np.zeros(Y.shape, bool)
        for i, (x, y) in enumerate(zip(X.tolist(), Y.tolist(), strict=True)):
            row = dict(enumerate(x))
            if self.each:
                for k, model in enumerate(models):
                    out[i, k] = bool(model.predict_one(row))
                    model.learn_one(row, bool(y[k]))
            else:
                answer = models.predict_one(row) or {}
                out[i] = [bool(answer.get(k, False)) for k in range(K)]
                models.learn_one(row, {k: bool(v) for k, v in enumerate(y)})
        return out


class Watched:
    """A learner that ADWIN watches: where its F1 loss rises, it begins anew, or forgets fast for a while."""

    def __init__(self, model, reset):
        self.model, self.reset = model, reset

    def prequential(self, X, Y):
        model, watch, out, until = self.model, drift.ADWIN(), np.zeros(Y.shape, bool), 0
        usual = model.forgetting
        model.partial_fit(X[:0], Y[:0])
        for i in range(len(X)):
            out[i] = model.prequential(X[i : i + 1], Y[i : i + 1])[0]
            before = watch.estimation
            watch.update(F1().loss(Y[i], out[i]))
            if watch.drift_detected and watch.estimation > before:
                if self.reset:
                    model.fit(X[i : i + 1], Y[i : i + 1])
                else:
                    model.set_params(forgetting=0.98)
                    until = i + 100
            elif i == until and not self.reset:
                model.set_params(forgetting=usual)
        return out


def logistic():
    return preprocessing.StandardScaler() | linear_model.LogisticRegression(optim.SGD(0.1))


LEARNERS = {
    "CS-DPP, defaults": lambda: CSDPP(4),
    "CS-DPP, forgetting 0.999": lambda: CSDPP(4, forgetting=0.999),
    "CS-DPP, forgetting 0.99": lambda: CSDPP(4, forgetting=0.99),
    "CS-DPP, forgetting 0.99, constant rate": lambda: CSDPP(4, forgetting=0.99, rate=Constant(0.3)),
    "CS-DPP, ADWIN resets": lambda: Watched(CSDPP(4), reset=True),
    "CS-DPP, ADWIN makes it forget": lambda: Watched(CSDPP(4, forgetting=0.999), reset=False),
    "O-BR, defaults": lambda: OnlineBinaryRelevance(),
    "O-BR, forgetting 0.99": lambda: OnlineBinaryRelevance(forgetting=0.99),
    "river: logistic regression a label": lambda: River(logistic),
    "river: chain of logistic regressions": lambda: River(
        lambda: (
            preprocessing.StandardScaler()
            | multioutput.ClassifierChain(linear_model.LogisticRegression(optim.SGD(0.1)), order=list(range(K)))
        ),
        each=False,
    ),
    "river: Hoeffding adaptive tree a label": lambda: River(lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=0)),
}


def windowed(losses):
    """The mean over the last rows, WINDOW of them once there are so many."""
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    t = np.arange(1, len(losses) + 1)
    first = np.maximum(t - WINDOW, 0)
    return (sums[t] - sums[first]) / (t - first)


def recovery(curve, level):
    """Rows until the window is full and near the level; NaN if never."""
    near = np.flatnonzero(curve[WINDOW - 1 :] <= level + MARGIN)
    return float(near[0] + WINDOW) if len(near) else float("nan")


def measure(make, seed):
    """Losses before, after and at the end; recovery; and the same of the second stream alone."""
    first, second = (make_stream(N, D, K, rank=RANK, random_state=10 * seed + part) for part in (1, 2))
    X, Y = np.vstack([first.X, second.X]), np.vstack([first.Y, second.Y])
    losses = F1().loss(Y, make().prequential(X, Y))
    alone = windowed(F1().loss(second.Y, make().prequential(second.X, second.Y)))
    level = float(alone[-1000:].mean())
    after = windowed(losses[N:])
    return {
        "before": float(losses[N - 1000 : N].mean()),
        "500 rows after": float(losses[N : N + 500].mean()),
        "at the end": float(losses[-1000:].mean()),
        "stationary": level,
        "recovery": recovery(after, level),
        "recovery of a fresh one": recovery(alone, level),
    }, windowed(losses)


def run():
    rows, curves = [], {}
    for name, make in LEARNERS.items():
        found = [measure(make, seed) for seed in SEEDS]
        curves[name] = np.mean([curve for _, curve in found], axis=0)
        rows.append({"learner": name, **{key: [one[key] for one, _ in found] for key in found[0][0]}})
        print(cells(rows[-1]), flush=True)
    return rows, curves


def cells(row):
    out = []
    for key, value in row.items():
        if key == "learner":
            out.append(value)
        elif key.startswith("recovery"):
            missing = int(np.isnan(value).sum())
            reached = f"{np.nanmean(value):.0f}" if missing < len(value) else ""
            out.append(f"{reached} (not in {N}: {missing} of {len(value)})".strip() if missing else reached)
        else:
            out.append(f"{np.mean(value):.3f}")
    return "| " + " | ".join(out) + " |"


def markdown(rows):
    names = [
        "learner",
        "F1 loss before",
        "500 rows after",
        "at the end",
        "stationary",
        "rows to recover",
        "a fresh one's",
    ]
    return "\n".join(["| " + " | ".join(names) + " |", "|" + "---|" * len(names), *map(cells, rows)])


def draw(curves):
    figure = Figure(figsize=(8.0, 4.2), layout="constrained")
    panel = figure.subplots()
    shown = {
        "CS-DPP, defaults": ("#0072B2", "-"),
        "CS-DPP, forgetting 0.99": ("#D55E00", "-"),
        "CS-DPP, ADWIN resets": ("#009E73", "-"),
        "O-BR, forgetting 0.99": ("#CC79A7", "--"),
        "river: logistic regression a label": ("#000000", ":"),
        "river: Hoeffding adaptive tree a label": ("#E69F00", ":"),
    }
    for name, (colour, dashes) in shown.items():
        t = np.arange(1, 2 * N + 1)[WINDOW // 2 :: 10]
        panel.plot(t, curves[name][WINDOW // 2 :: 10], color=colour, linestyle=dashes, linewidth=1.4, label=name)
    panel.axvline(N, color="0.7", linewidth=0.8)
    panel.set_xlabel("rows; everything changes at the line")
    panel.set_ylabel(f"F1 loss of the last {WINDOW} rows")
    panel.set_xlim(0, 2 * N)
    panel.set_ylim(0.1, None)
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color="0.9", linewidth=0.6)
    figure.legend(loc="outside upper center", ncols=3, fontsize=8, frameon=False)
    figure.savefig(PICTURE, dpi=150)


def into_page(text, rows):
    begin, end = "<!-- drift -->", "<!-- end of drift -->"
    before, rest = text.split(begin)
    return f"{before}{begin}\n\n{markdown(rows)}\n\n{end}{rest.split(end)[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="write docs/drift.md, its picture and results/drift.json")
    options = parser.parse_args()
    with threadpool_limits(1, user_api="blas"):
        rows, curves = run()
    if options.record:
        facts = {
            "csdpp": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "seeds": len(SEEDS),
        }
        RESULTS.write_text(json.dumps(facts | {"rows": rows}, indent=1) + "\n")
        PAGE.write_text(into_page(PAGE.read_text(), rows))
        draw(curves)


if __name__ == "__main__":
    main()
