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
from threadpoolctl import threadpool_limits

from csdpp import CSDPP, __version__
from csdpp.datasets import load_named
from csdpp.evaluate import prequential

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


PARTS = {measures: "docs/scores.md"}


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
    page = ROOT / PARTS[part]
    page.write_text(into_page(page.read_text(), part.__name__, rows))


if __name__ == "__main__":
    main()
