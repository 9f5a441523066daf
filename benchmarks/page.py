"""docs/benchmarks.md from what was recorded, so that no figure of it is written by hand.

    python benchmarks/page.py [--record]

reads bench.json (`csdpp bench`), targets.json and growth.json in benchmarks/results, prints the parts of the page,
and with --record puts them between their marks and draws benchmarks/results/growth.png.
"""

import argparse
import json
from pathlib import Path

import growth
import targets

from csdpp.bench import report

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "benchmarks" / "results"
COLOURS = {"PBC": "#c03020", "PBT": "#1f77b4"}


def read(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


# ------------------------------------------------------------------------------------------------ the parts of the page


def floors(results):
    """Each floor: what was asked, what was measured."""
    cases = results["targets"]["cases"]
    rows = []
    for case in cases:
        title = f"{case['title']}: {case['what']}" if case["case"] != "peers" else case["what"]
        if "error" in case:
            rows.append((title, "", f"not measured: {case['error']}", "", ""))
            continue
        asked = f"{'≤' if case.get('at_most') else '≥'} {case['asked']}" if case["asked"] else "–"
        text = f"{case['measured']:.3g} {case['unit']}"
        span = f"{case['least']:.3g} – {case['greatest']:.3g}"
        speeds = f"{report.number(case['ours'])}, {report.number(case['other'])}"
        rows.append((title, asked, text if targets.reached(case) is not False else f"{text}, **missed**", span, speeds))
    lines = report.table(("", "asked", "measured", "of the rounds", "rows a second: ours, theirs"), rows)
    asked = [targets.reached(case) for case in cases if targets.reached(case) is not None]
    return [*lines, f"{sum(asked)} of {len(asked)} floors are reached.", "", *made_with(results["targets"])]


def curves(results):
    """The growth curves as tables."""
    found = results["growth"]
    lines = ["", "![Growth](../benchmarks/results/growth.png)", ""]
    for basis in growth.BASES:
        points = _of(found["labels"], basis)
        rows = [(f"{p['K']:,}", f"{p['us']:,.3g}", f"{1e3 * p['us'] / p['K']:.3g}", *_memory(p)) for p in points]
        lines += [
            f"{basis}, d = {growth.D}, M = {growth.M}; time a row grows like K^{growth.exponent(points, 'K'):.2f}:"
        ]
        lines += report.table(("K", "us a row", "ns a row and label", "kept, MB", "peak, MB", "K × K, MB"), rows)
    for basis in growth.BASES:
        points = _of(found["sizes"], basis)
        rows = [(str(p["M"]), f"{p['us']:,.3g}", f"{1e3 * p['us'] / p['K'] / p['M']:.3g}", *_memory(p)) for p in points]
        power = growth.exponent(points, "M")
        lines += [f"{basis}, d = {growth.D}, K = {growth.SIZED:,}; time a row grows like M^{power:.2f}:"]
        lines += report.table(("M", "us a row", "ns a row, label and M", "kept, MB", "peak, MB", "K × K, MB"), rows)
    rows = []
    for curve in found["rows"]:
        us, resident = curve["us"], [size / 2**20 for size in curve["resident"]]
        first, last = min(us[: len(us) // 2]), min(us[len(us) // 2 :])
        rows.append((curve["basis"], f"{first:.3g}", f"{last:.3g}", f"{resident[0]:,.0f}", f"{resident[-1]:,.0f}"))
    total = growth.ROWS * growth.PIECES
    lines += [f"Over {total:,} rows of one stream (d = {growth.D}, K = 20, M = 4):"]
    head = ("", "us a row, first half", "second half", f"resident MB after {growth.ROWS:,} rows", f"after {total:,}")
    return [*lines, *report.table(head, rows), *made_with(found)]


def pictures(results):
    """Speed against loss, of the kinds of streams that were run."""
    found = [kind for kind in ("real", "generated") if (RESULTS / f"speed-loss-{kind}.png").exists()]
    return [line for kind in found for line in (f"![{kind}](../benchmarks/results/speed-loss-{kind}.png)", "")]


def bench(results):
    """All tables of `csdpp bench`."""
    return report.as_markdown(results["bench"]).splitlines()


PARTS = {"floors": floors, "pictures": pictures, "curves": curves, "bench": bench}


def made_with(found):
    """Machine, versions, and what else ran: on a busy machine caches are shared, which costs the faster one more."""
    versions = ", ".join(f"{key} {value}" for key, value in found["made_with"].items())
    load = f"{found['load']:.1f}" if "load" in found else "not recorded; the machine was busy with other work"
    return [f"Made with {versions}. Load of the machine in the quarter of an hour before the end: {load}.", ""]


def _of(points, basis):
    return [point for point in points if point["basis"] == basis]


def _memory(p):
    return (f"{p['state'] / 2**20:,.1f}", f"{p['peak'] / 2**20:,.1f}", f"{8 * p['K'] ** 2 / 2**20:,.0f}")


def into_page(text, results):
    """The page with each part between its marks."""
    for name, part in PARTS.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, rest = text.split(begin)
        body = "\n".join(part(results)).strip("\n")
        text = f"{before}{begin}\n\n{body}\n\n{end}{rest.split(end)[1]}"
    return text


# --------------------------------------------------------------------------------------------------------- the picture


def draw(found, path):
    """Time against K, against M K, against the rows learned; memory against K."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    figure = Figure(figsize=(9.5, 7))
    FigureCanvasAgg(figure)
    (labels, sizes), (rows, memory) = figure.subplots(2, 2)
    for basis, colour in COLOURS.items():
        look = {"color": colour, "marker": "o", "markersize": 4, "label": basis}
        points = _of(found["labels"], basis)
        labels.loglog([p["K"] for p in points], [p["us"] for p in points], **look)
        memory.loglog([p["K"] for p in points], [p["peak"] / 2**20 for p in points], **look)
        points = _of(found["sizes"], basis)
        sizes.loglog([p["M"] * p["K"] for p in points], [p["us"] for p in points], **look)
        curve = next(curve for curve in found["rows"] if curve["basis"] == basis)
        learned = [growth.ROWS * (i + 1) / 1000 for i in range(len(curve["us"]))]
        rows.plot(learned, curve["us"], **look)
    for panel, points, by in ((labels, found["labels"], "K"), (sizes, found["sizes"], "MK")):
        x = sorted({p["K"] * (p["M"] if by == "MK" else 1) for p in points})
        low = min(p["us"] for p in points)
        panel.loglog(x, [low * a / x[0] for a in x], color="0.6", linestyle=":", label="linear")
    K = sorted({p["K"] for p in found["labels"]})
    memory.loglog(K, [8 * k * k / 2**20 for k in K], color="0.6", linestyle=":", label="K × K")
    rows.set_ylim(0, 1.3 * max(max(curve["us"]) for curve in found["rows"]))
    titles = {
        labels: ("K labels", "us a row", f"d = {growth.D}, M = {growth.M}"),
        sizes: ("M × K", "us a row", f"d = {growth.D}, K = {growth.SIZED:,}, M = 5 … 80"),
        rows: ("thousand rows learned", "us a row", f"d = {growth.D}, K = 20, M = 4"),
        memory: ("K labels", "MB at most, beyond the data", f"d = {growth.D}, M = {growth.M}"),
    }
    for panel, (x, y, title) in titles.items():
        panel.set_xlabel(x, fontsize=9)
        panel.set_ylabel(y, fontsize=9)
        panel.set_title(title, fontsize=9, loc="left")
        panel.grid(color="0.92", linewidth=0.6)
        panel.tick_params(labelsize=8)
        if panel is not rows:
            panel.xaxis.set_minor_formatter(NullFormatter())
            panel.yaxis.set_minor_formatter(NullFormatter())
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="write docs/benchmarks.md and the picture of growth")
    options = parser.parse_args()
    results = {name: read(name) for name in ("bench", "targets", "growth")}
    for part in PARTS.values():
        print("\n".join(part(results)))
    if options.record:
        draw(results["growth"], RESULTS / "growth.png")
        PAGE.write_text(into_page(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")


if __name__ == "__main__":
    main()
