"""Labels that are not known, on real sets: what they cost, against taking them for absent and against dropping rows.

    python benchmarks/missing.py --record

hides 30, 50 and 70 % of the labels of each set in CSDPP_DATA by chance and measures the F1 loss of every row, predicted
before it is learned, against all of its labels. Features scaled to [0, 1], mean of two random orders of the rows. With
--record the figures go into benchmarks/results/missing.json and the table into docs/streams.md, set by set;
those of other sets stay.

* all known: nothing is hidden
* not known: hidden labels are NaN
* as absent: hidden labels are 0
* rows dropped: rows with a hidden label are predicted and not learned
* rows hidden: as many labels are known, but all of some rows and none of the others, which are not learned
"""

import argparse
import json
import os
import platform
from pathlib import Path

import numpy as np

from csdpp import CSDPP, OnlineBinaryRelevance, __version__
from csdpp.costs import F1
from csdpp.datasets import load_named

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "missing.json", ROOT / "docs" / "streams.md"
BEGIN, END = "<!-- table: python benchmarks/missing.py --record -->", "<!-- end of missing -->"
SETS = {"emotions": 0.5, "scene": 0.5, "yeast": 0.5, "enron": 0.1, "cal500": 0.1, "corel5k": 0.1}
SHARES = (0.3, 0.5, 0.7)
SEEDS = (0, 1)
LEARNERS = {"CS-DPP": lambda share: CSDPP(share), "O-BR": lambda share: OnlineBinaryRelevance()}
WAYS = ("not known", "as absent", "rows dropped", "rows hidden")


def learned_rows(model, X, Y, learn):
    """Predictions of all rows, of which only those that ``learn`` (n,) are learned."""
    Y_hat = np.empty(Y.shape, bool)
    model.partial_fit(X[:0], Y[:0])
    start = 0
    for stop in [*(np.flatnonzero(learn) + 1), len(X)]:
        if stop > start:
            Y_hat[start:stop] = model.predict(X[start:stop])
        if stop <= len(X) and stop > start and learn[stop - 1]:
            model.partial_fit(X[stop - 1 : stop], Y[stop - 1 : stop])
        start = stop
    return Y_hat


def answers(make, X, Y, mask, way, hidden_rows):
    """Predictions made in one of the ways."""
    if way == "not known":
        return make().prequential(X, Y, mask=mask)
    if way == "as absent":
        return make().prequential(X, np.where(mask, Y, 0))
    return learned_rows(make(), X, Y, mask.all(axis=1) if way == "rows dropped" else ~hidden_rows)


def measure(folder: Path, sets) -> list[dict]:
    """One row a set, learner and share."""
    rows = []
    for name in sets:
        data = load_named(name, folder).scaled()
        for learner, make in LEARNERS.items():
            losses: dict = {}
            for seed in SEEDS:
                run = data.permuted(seed)
                X, Y = (a.toarray() if hasattr(a, "toarray") else np.asarray(a) for a in (run.X, run.Y))
                Y = Y.astype(int)

                def loss(Y_hat, Y=Y):
                    return float(F1()(Y, np.asarray(Y_hat).astype(bool)).mean())

                def fresh(make=make, name=name):
                    return make(SETS[name])

                losses.setdefault("all known", []).append(loss(fresh().prequential(X, Y)))
                rng = np.random.default_rng([seed, 5])
                chance, row_chance = rng.random(Y.shape), rng.random(len(Y))
                for share in SHARES:
                    for way in WAYS:
                        Y_hat = answers(fresh, X, Y, chance >= share, way, row_chance < share)
                        losses.setdefault(f"{share:g} {way}", []).append(loss(Y_hat))
            rows.append({"set": name, "learner": learner, "losses": {k: float(np.mean(v)) for k, v in losses.items()}})
            print(rows[-1], flush=True)
    return rows


def markdown(rows: list[dict]) -> str:
    """One line a set, learner and share of hidden labels."""
    lines = [
        "| set | learner | hidden | all known | not known | as absent | rows dropped | rows hidden |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        for share in SHARES:
            cells = [row["losses"]["all known"], *(row["losses"][f"{share:g} {way}"] for way in WAYS)]
            figures = " | ".join(f"{value:.3f}" for value in cells)
            lines.append(f"| {row['set']} | {row['learner']} | {share:.0%} | {figures} |")
    return "\n".join(lines)


def record(rows: list[dict]) -> None:
    """Put rows in the place of those recorded of the same sets."""
    kept = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    known = {row["set"] for row in rows}
    rows = sorted([*(row for row in kept if row["set"] not in known), *rows], key=lambda row: [*SETS].index(row["set"]))
    about = {"csdpp": __version__, "python": platform.python_version(), "machine": platform.machine()}
    RESULTS.write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{markdown(rows)}\n{END}{rest.split(END)[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    folder = (ROOT / os.environ.get("CSDPP_DATA", "../shared/data")).resolve()
    rows: list[dict] = []
    for name in arguments.sets:
        rows += measure(folder, [name])
        if arguments.record:
            record(rows)
    print(markdown(rows))


if __name__ == "__main__":
    main()
