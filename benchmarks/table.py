"""The table of the README: prequential losses on real data, everything at its defaults.

    python benchmarks/table.py --record

runs O-BR, DPP, CS-DPP as published and CS-DPP with our defaults over the data sets in CSDPP_DATA (features scaled to
[0, 1], mean of three random orders of the rows), prints the table, and with --record writes it into README.md and its
numbers into benchmarks/results/table.json.
"""

import argparse
import json
import os
import platform
from pathlib import Path

import numpy as np

from csdpp import CSDPP, OnlineBinaryRelevance, __version__
from csdpp.datasets import load_named
from csdpp.evaluate import prequential

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "table.json"
BEGIN, END = "<!-- table: python benchmarks/table.py --record -->", "<!-- end of table -->"

SETS = {"emotions": 0.5, "scene": 0.5, "yeast": 0.5, "enron": 0.1, "cal500": 0.1, "corel5k": 0.1}
LEARNERS = {
    "O-BR": lambda share, cost, seed: OnlineBinaryRelevance(),
    "DPP": lambda share, cost, seed: CSDPP.published(share, cost="hamming", random_state=seed),
    "CS-DPP as published": lambda share, cost, seed: CSDPP.published(share, cost=cost, random_state=seed),
    "CS-DPP, our defaults": lambda share, cost, seed: CSDPP(share, cost=cost, random_state=seed),
}
COSTS = ("f1", "accuracy")
SEEDS = (0, 1, 2)


def measure(folder: Path) -> list[dict]:
    """One row a data set: sizes, and for each learner and cost the mean loss and its standard deviation."""
    rows = []
    for name, share in SETS.items():
        data = load_named(name, folder).scaled()
        N, d, K, *_ = data.statistics()
        row = {"set": name, "N": N, "d": d, "K": K, "M": int(np.ceil(share * K)), "losses": {}}
        for learner, make in LEARNERS.items():
            for cost in COSTS:
                losses = [run(make(share, cost, seed), data.permuted(seed), cost) for seed in SEEDS]
                row["losses"].setdefault(learner, {})[cost] = [float(np.mean(losses)), float(np.std(losses, ddof=1))]
        rows.append(row)
        print(f"{name}: done")
    return rows


def run(model, data, cost: str) -> float:
    return prequential(model, data.X, data.Y, cost, progress=False).averages[cost]


def markdown(rows: list[dict]) -> str:
    """F1 loss and accuracy loss; the lowest F1 loss of a row bold."""
    lines = [
        "| stream | rows, features, labels | M | " + " | ".join(LEARNERS) + " |",
        "|---|---|---|" + "---|" * len(LEARNERS),
    ]
    for row in rows:
        best = min(losses["f1"][0] for losses in row["losses"].values())
        cells = []
        for losses in row["losses"].values():
            f1, accuracy = losses["f1"][0], losses["accuracy"][0]
            cells.append(f"{'**' if f1 == best else ''}{f1:.3f}{'**' if f1 == best else ''} ({accuracy:.3f})")
        sizes = f"{row['N']:,}, {row['d']:,}, {row['K']}"
        lines.append(f"| {row['set']} | {sizes} | {row['M']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def into_readme(text: str, table: str) -> str:
    """The README with the table between its marks."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="write README.md and benchmarks/results/table.json")
    options = parser.parse_args()
    rows = measure(Path(os.environ.get("CSDPP_DATA", ROOT / "../shared/data")))
    print(markdown(rows))
    if options.record:
        facts = {"version": __version__, "python": platform.python_version(), "numpy": np.__version__, "seeds": SEEDS}
        RESULTS.write_text(json.dumps(facts | {"rows": rows}, indent=1) + "\n")
        readme = ROOT / "README.md"
        readme.write_text(into_readme(readme.read_text(), markdown(rows)))


if __name__ == "__main__":
    main()
