"""The report of a reproduction: all that is said about the figures, and its pages in HTML and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from importlib.resources import files
from itertools import groupby
from typing import Any, NamedTuple

from csdpp.experiments.claims import Claim, claims
from csdpp.experiments.pictures import Picture
from csdpp.experiments.spec import COSTS, SETS, Cell, Experiment
from csdpp.experiments.tables import (
    READINGS,
    Figure,
    Orderings,
    counts,
    matching_reading,
    of_reading,
    orderings,
)

_OTHER = {"regret": "regret / T", "seconds": "seconds", "ms_per_row": "ms a row"}
_MARKS = {"agree": "✓", "better": "▼", "worse": "▲", "": ""}
_GUIDED = ("hamming", "f1", "accuracy")


class Row(NamedTuple):
    """A line of a table on a set; a figure or None for each cost."""

    data: str
    label: str
    figures: list[Figure | None]


class Table(NamedTuple):
    """One table of an experiment: its own noise or code size, all its sets."""

    caption: str
    costs: list[str]
    rows: list[Row]

    @property
    def groups(self) -> list[tuple[str, list[Row]]]:
        """Rows set by set."""
        return [(data, list(rows)) for data, rows in groupby(self.rows, key=lambda row: row.data)]


class Section(NamedTuple):
    """An experiment with its tables and picture."""

    experiment: Experiment
    tables: list[Table]
    picture: Picture | None
    counts: dict[str, int]


class Versus(NamedTuple):
    """Our defaults against the published CS-DPP, the lower of its PBT and PBC figures."""

    line: str
    better: int
    cases: int
    worst: float
    others: list[str]  # where they are not better, and by how much


@dataclass(frozen=True)
class Report:
    """All that is said."""

    sections: list[Section]
    reading: str
    counts: dict[str, int]
    by_reading: dict[str, dict[str, int]]
    by_cost: dict[str, dict[str, int]]
    by_set: dict[str, dict[str, int]]
    orderings: dict[str, Orderings]
    claims: list[Claim]
    versus: list[Versus]
    deviations: list[tuple[str, list[Figure]]]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def pairs(self) -> Orderings:
        """All orderings."""
        return Orderings(sum(o.hold for o in self.orderings.values()), sum(o.all for o in self.orderings.values()))


def make_report(
    chosen: Sequence[Experiment],
    found: Mapping[str, list[Figure]],
    drawn: Sequence[Picture],
    facts: dict[str, Any],
) -> Report:
    """From the figures by experiment."""
    all_figures = [figure for group in found.values() for figure in group]
    reading = matching_reading(all_figures)
    mine = of_reading(all_figures, reading)
    sections = []
    for experiment in chosen:
        group = found[experiment.name]
        picture = next((p for p in drawn if p.name == experiment.name), None)
        chosen_counts = counts(of_reading(group, reading))
        sections.append(Section(experiment, tables_of(experiment, group), picture, chosen_counts))
    return Report(
        sections=sections,
        reading=reading,
        counts=counts(mine),
        by_reading={r: counts(f for f in of_reading(all_figures, r) if f.cell.line.reading) for r in READINGS},
        by_cost={cost: counts(f for f in mine if f.cell.cost == cost) for cost in COSTS},
        by_set={data: counts(f for f in mine if f.cell.data == data) for data in dict.fromkeys(_sets_of(mine))},
        orderings=orderings(mine),
        claims=claims(all_figures, reading),
        versus=_versus(all_figures),
        deviations=_explained([f for f in mine if f.verdict != "agree"]),
        facts=facts,
    )


def _sets_of(found: Sequence[Figure]) -> list[str]:
    return [figure.cell.data for figure in found]


# ---- tables


def tables_of(experiment: Experiment, found: Sequence[Figure]) -> list[Table]:
    """In the paper's arrangement: a table for each noise, else for each code size; label orders in one."""
    by_noise = len(experiment.noises) > 1
    whole = experiment.orders or bool(experiment.sizes)

    def table_of(figure: Figure) -> Any:
        return figure.cell.noise if by_noise else None if whole else figure.cell.share

    keys = [None] if whole else list(experiment.noises) if by_noise else list(experiment.shares)
    tables = []
    for key in keys:
        here = [f for f in found if table_of(f) == key or (f.cell.share is None and not by_noise)]
        if not here:
            continue
        rows: dict[tuple[str, str], dict[str, Figure]] = {}
        for figure in sorted(here, key=lambda f: _place(experiment, f.cell)):
            label = _label(figure.cell, sized=by_noise or whole)
            rows.setdefault((figure.cell.data, label), {})[figure.cell.cost] = figure
        caption = "" if key is None else f"p = {key:g}" if by_noise else f"M = {100 * key:g} % of K"
        costs = list(experiment.costs)
        tables.append(Table(caption, costs, [Row(d, n, [r.get(c) for c in costs]) for (d, n), r in rows.items()]))
    return tables


def _place(experiment: Experiment, cell: Cell) -> tuple[int, int, float]:
    """By set, then as the lines stand in the TOML; several sizes of a line from the largest, as in the paper."""
    size = float(cell.share or 0.0)
    return experiment.sets.index(cell.data), experiment.lines.index(cell.line), size if experiment.orders else -size


def _label(cell: Cell, sized: bool) -> str:
    if not sized or cell.share is None:
        return cell.line.name
    size = f"{100 * cell.share:g} %" if isinstance(cell.share, float) else f"M = {cell.share}"
    return f"{cell.line.name}, {size}"


def title_of(cost: str) -> str:
    """What a column is called."""
    return COSTS.get(cost) or _OTHER.get(cost, cost)


def digits(value: float, cost: str) -> str:
    """As many digits as the paper gives: four for Hamming, three for the others."""
    return f"{value:.{4 if cost in ('hamming', 'regret') else 3}f}"


# ---- our defaults against the published figures


def _versus(found: Sequence[Figure]) -> list[Versus]:
    theirs: dict[tuple[Any, ...], float] = {}
    for f in found:
        if f.published is not None and f.cell.line.published in ("CS-DPP-PBT", "CS-DPP-PBC"):
            place = (f.cell.data, f.cell.share, f.cell.cost)
            theirs[place] = min(theirs.get(place, 1.0), f.published.mean)
    lines: dict[str, list[tuple[float, str]]] = {}
    for f in found:
        place = (f.cell.data, f.cell.share, f.cell.cost)
        if f.cell.experiment == "defaults" and f.cell.cost in _GUIDED and place in theirs:
            size = f"M = {100 * (f.cell.share or 0):g} %"
            name = f"{SETS[f.cell.data]}, {size}, {title_of(f.cell.cost)}: {digits(f.mean, f.cell.cost)}"
            lines.setdefault(f.cell.line.name, []).append((f.mean - theirs[place], name))
    return [
        Versus(
            line,
            sum(gap < 0 for gap, _ in gaps),
            len(gaps),
            max(gap for gap, _ in gaps),
            [f"{name} ({gap:+.4f})" for gap, name in sorted(gaps, reverse=True) if gap >= 0],
        )
        for line, gaps in lines.items()
    ]


# ---- why


def _explained(strays: Sequence[Figure]) -> list[tuple[str, list[Figure]]]:
    """Figures that do not agree under the first reason of why.toml that fits them, in the order of that file."""
    import tomllib

    text = files("csdpp.experiments").joinpath("why.toml").read_text("utf-8")
    reasons = tomllib.loads(text)["reasons"]
    groups: dict[str, list[Figure]] = {reason["text"]: [] for reason in reasons}
    for figure in strays:
        reason = next(r for r in reasons if _fits(r, figure))
        groups[reason["text"]].append(figure)
    return [(reason, group) for reason, group in groups.items() if group]


def _fits(reason: Mapping[str, str], figure: Figure) -> bool:
    cell = figure.cell
    facts = {"experiment": cell.experiment, "set": cell.data, "line": cell.line.name, "cost": cell.cost}
    facts |= {"share": str(cell.share), "verdict": figure.verdict, "noise": str(cell.noise)}
    return all(
        any(fnmatch(facts[key], one) for one in pattern.split("|")) for key, pattern in reason.items() if key != "text"
    )


# ---- pages


def as_html(report: Report) -> str:
    """One page that needs nothing else."""
    try:
        import jinja2
    except ImportError:
        raise ImportError("reproduce: the report needs jinja2; pip install 'csdpp[experiments]'") from None
    loader = jinja2.PackageLoader("csdpp.experiments", "templates")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.get_template("report.html.j2").render(**_words(report))


def as_markdown(report: Report) -> str:
    """The same without the pictures."""
    import jinja2

    loader = jinja2.PackageLoader("csdpp.experiments", "templates")
    environment = jinja2.Environment(loader=loader, trim_blocks=True, lstrip_blocks=True)
    text = environment.get_template("report.md.j2").render(**_words(report))
    return text.rstrip() + "\n"


def _words(report: Report) -> dict[str, Any]:
    """What the templates speak of."""
    return {
        "report": report,
        "facts": report.facts,
        "SETS": SETS,
        "title_of": title_of,
        "digits": digits,
        "mark": _MARKS.__getitem__,
        "share": lambda part, whole: f"{100 * part / whole:.0f} %" if whole else "none",
        "cell_name": lambda f: (
            f"{SETS.get(f.cell.data, f.cell.data)}, {_label(f.cell, sized=True)}"
            + (f", p = {f.cell.noise:g}" if f.cell.noise else "")
        ),
    }
