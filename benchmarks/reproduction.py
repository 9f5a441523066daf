"""The record of a full run of `csdpp reproduce`, and docs/reproduction.md from it.

    csdpp reproduce --repeats 3 --output DIR
    python benchmarks/reproduction.py --record DIR

copies DIR/summary.json into benchmarks/results/reproduction.json, rounded, and writes the tables of the page between
its marks. Without --record it writes the page anew from the recorded numbers.
"""

import argparse
import json
from pathlib import Path

from csdpp.experiments.spec import COSTS, SETS, experiments
from csdpp.experiments.tables import TOLERANCE

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "reproduction.json"
PAGE = ROOT / "docs" / "reproduction.md"
BEGIN, END = "<!-- results: python benchmarks/reproduction.py -->", "<!-- end of results -->"
KEPT = ("experiment", "line", "set", "share", "noise", "cost", "mean", "error", "count", "published", "verdict")
MARKS = {"agree": "✓", "better": "▼", "worse": "▲", "": ""}


def recorded(summary: dict) -> dict:
    """What is kept of a summary: all but what the page does not show."""
    kept = dict(summary)
    kept["figures"] = [
        [round(f[name], 4) if name in ("mean", "error") else f[name] for name in KEPT] for f in summary["figures"]
    ]
    return kept


def page(kept: dict) -> str:
    """The part of docs/reproduction.md between the marks."""
    facts, count = kept["facts"], kept["counts"]
    pairs = [sum(pair[i] for pair in kept["orderings"].values()) for i in (0, 1)]
    sizes = sorted({f[8] for f in kept["figures"] if f[0] != "orders"})
    lines = [
        f"Recorded with csdpp {facts['csdpp']}, Python {facts['python']}, NumPy {facts['numpy']}: "
        f"{facts['runs']:,} runs, {facts['time']} of CPU time, {facts['repeats']} repetitions"
        + (f" (Corel5k and the large streams: {sizes[0]} to {sizes[-1]})" if sizes[0] < facts["repeats"] else "")
        + f", seed {facts['seed']}; sets: {', '.join(facts['sets'])}.",
        "",
        f"* **{count['agree']} of {count['all']} published figures agree** ({count['agree'] / count['all']:.1%}) "
        f"within max({TOLERANCE}, 3 standard errors); {count['better']} are lower with us, {count['worse']} higher: "
        f"**{(count['agree'] + count['better']) / count['all']:.1%} agree or are better**.",
        f"* {pairs[0]} of {pairs[1]} orderings of two published figures hold ({pairs[0] / pairs[1]:.1%}).",
        *weights(kept),
        *(
            f"* {v['line']}: lower than the published CS-DPP, the better of its PBT and PBC, in {v['better']} of "
            f"{v['cases']} cells of Hamming, F1 and accuracy loss; at worst {v['worst']:+.4f}."
            for v in kept["defaults"]
        ),
        "",
        "### What the paper says in words",
        "",
        "| claim | | counted |",
        "|---|---|---|",
        *(
            f"| {c['sentence']} | {verdict(c['verdict'])} | {c['counted']} {c['holds']} of {c['cases']} |"
            for c in kept["claims"]
        ),
        "",
        "### How many agree",
        "",
        "| | agree | lower | higher | all |",
        "|---|---:|---:|---:|---:|",
    ]
    groups = [(SETS[name], n) for name, n in kept["by_set"].items()]
    groups += [(COSTS[name], n) for name, n in kept["by_cost"].items()]
    lines += [f"| {name} | {n['agree']} | {n['better']} | {n['worse']} | {n['all']} |" for name, n in groups]
    lines += ["", "### What deviates, and why", ""]
    lines += [f"* {n} figure{'s' if n != 1 else ''}: {text}" for text, n in kept["deviations"]]
    for experiment in experiments():
        lines += table(experiment, [f for f in kept["figures"] if f[0] == experiment.name])
    return "\n".join(lines)


def weights(kept: dict) -> list[str]:
    """Which reading of the label weights the published figures fit."""
    a, b = kept["by_reading"]["ordered"], kept["by_reading"]["shapley"]
    return [
        f"* Where the label weights matter, {a['agree']} of {a['all']} figures agree with the paper's ordered weights "
        f"and {b['agree']} of {b['all']} with Shapley's. The counts here are those of the {kept['reading']} weights."
    ]


def verdict(true: bool | None) -> str:
    """In words."""
    return "not run" if true is None else "true" if true else "**false**"


def table(experiment, figures: list) -> list[str]:
    """One table of all its sizes and sets: ours, and in brackets the published figure with its mark."""
    if not figures:
        return []
    rows: dict = {}
    for _, line, data, share, noise, cost, mean, error, _, published, mark in figures:
        digits = 4 if cost == "hamming" else 3
        text = f"{mean:.{digits}f} ± {error:.{digits}f}"
        if published is not None:
            text += f" ({published:.{digits}f} {MARKS[mark]})"
        size = "" if share is None else f"{100 * share:g} %" if isinstance(share, float) else f"{share}"
        rows.setdefault((SETS.get(data, data), line, size, f"{noise:g}" if noise else ""), {})[cost] = text
    costs = list(dict.fromkeys(f[5] for f in figures))
    noisy = any(key[3] for key in rows)
    head = ["set", "learner", "M", *(["p"] if noisy else []), *(COSTS.get(c, c.replace("_", " ")) for c in costs)]
    lines = ["", f"## {experiment.title}", "", f"`csdpp reproduce --only {experiment.name}`", "", experiment.about, ""]
    lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for (data, line, size, noise), cells in rows.items():
        first = [data, line, size, *([noise] if noisy else [])]
        lines.append(f"| {' | '.join([*first, *(cells.get(cost, '') for cost in costs)])} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", metavar="DIR", type=Path, help="the output of csdpp reproduce")
    options = parser.parse_args()
    if options.record:
        kept = recorded(json.loads((options.record / "summary.json").read_text(encoding="utf-8")))
        RESULTS.write_text(json.dumps(kept, ensure_ascii=False) + "\n", encoding="utf-8")
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{page(kept)}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
