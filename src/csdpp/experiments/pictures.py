"""The figures of the paper in its arrangement: running average cost, with standard errors as bars."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from csdpp.experiments.spec import COSTS, SETS, Cell, Experiment
from csdpp.experiments.store import Store
from csdpp.plots import _COLOURS, _DASHES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BARS = 7  # error bars of a line
_INK = "#2b2b2b"  # what the page turns into the colour of its text
_UNSETTLED = 0.08  # share of the rows that does not decide what part of the y-axis is shown


class Picture(NamedTuple):
    """A figure: a name for its file, what stands below it, and the SVG."""

    name: str
    caption: str
    svg: str


class _Panel(NamedTuple):
    """What is drawn in one place: its cells, one a line."""

    title: str
    cost: str
    lines: Sequence[tuple[str, Cell]]


def pictures(chosen: Sequence[Experiment], sets: Sequence[str], repeats: int, seed: int, store: Store) -> list[Picture]:
    """Those for which there are results."""
    drawn = []
    for experiment in chosen:
        if experiment.name in _DRAWN:
            cells = list(experiment.cells([s for s in experiment.sets if s in sets], repeats, seed))
            panels, caption = _DRAWN[experiment.name](cells)
            picture = _draw(experiment.name, panels, caption, store)
            if picture is not None:
                drawn.append(picture)
    return drawn


Arranged = tuple[list[list[_Panel]], str]


def _noise(cells: Sequence[Cell]) -> Arranged:
    rows = []
    for data in _preferred(cells, ("emotions", "enron"), 2):
        for cost in ("hamming", "f1"):
            row = []
            for p in (0.3, 0.5, 0.7):
                here = [c for c in cells if (c.data, c.cost, c.noise) == (data, cost, p)]
                row.append(_Panel(f"{SETS[data]}, p = {p}", cost, [(_sized(c), c) for c in here]))
            rows.append(row)
    return rows, "DPP and O-BR on noisy labels: average cost so far against rows, bars of one standard error."


def _basis(cells: Sequence[Cell]) -> Arranged:
    names = _preferred(cells, ("cal500", "corel5k", "emotions", "enron", "scene", "yeast"), 6)
    wanted = {"None": "None", "PBT, ordered": "PBT", "PBC, ordered": "PBC"}
    panels = []
    for data in names:
        here = [c for c in cells if (c.data, c.cost, c.share) == (data, "hamming", 0.1) and c.line.name in wanted]
        panels.append(_Panel(SETS[data], "hamming", [(wanted[c.line.name], c) for c in here]))
    rows = [panels[i : i + 3] for i in range(0, len(panels), 3)]
    return rows, "PBC, PBT and none, M = 10 % of K: average Hamming loss so far, bars of one standard error."


def _cost(cells: Sequence[Cell]) -> Arranged:
    names = _preferred(cells, ("corel5k", "enron", "yeast"), 3)
    rows = []
    for cost in ("f1", "accuracy", "rank_published"):
        row = []
        for data in names:
            here = [c for c in cells if (c.data, c.cost, c.share) == (data, cost, 0.1) and c.line.reading != "shapley"]
            row.append(_Panel(SETS[data], cost, [(c.line.published or "", c) for c in here]))
        rows.append(row)
    return rows, "CS-DPP and others, M = 10 % of K: average cost so far, bars of one standard error."


def _regret(cells: Sequence[Cell]) -> Arranged:
    rows = []
    for share in (0.1, 0.5):
        here = [(SETS[c.data], c) for c in cells if c.share == share]
        rows.append(_Panel(f"M = {100 * share:g} % of K", "regret", here))
    return [rows], "Average regret against batch PLST, both axes logarithmic: theorem 2 says that it vanishes."


_DRAWN: dict[str, Callable[[Sequence[Cell]], Arranged]] = {
    "noise": _noise,
    "basis": _basis,
    "cost": _cost,
    "regret": _regret,
}


def _preferred(cells: Iterable[Cell], names: Sequence[str], count: int) -> list[str]:
    """The paper's sets where they are at hand, filled up with others."""
    there = list(dict.fromkeys(cell.data for cell in cells))
    return [*(n for n in names if n in there), *(n for n in there if n not in names)][:count]


def _sized(cell: Cell) -> str:
    return cell.line.name if cell.share is None else f"{cell.line.name}, M = {100 * cell.share:g} % of K"


def _draw(name: str, rows: list[list[_Panel]], caption: str, store: Store) -> Picture | None:
    import matplotlib
    from matplotlib.figure import Figure

    colours: dict[Any, Any] = {
        "text.color": _INK,
        "axes.edgecolor": _INK,
        "axes.labelcolor": _INK,
        "axes.titlecolor": _INK,
    }
    colours |= {"xtick.color": _INK, "ytick.color": _INK}
    settings: dict[Any, Any] = {**colours, "svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif"}
    with matplotlib.rc_context(settings):
        columns = max(map(len, rows), default=0)
        if not columns:
            return None
        figure = Figure(figsize=(3.1 * columns, 2.15 * len(rows) + 0.5), layout="constrained")
        axes = figure.subplots(len(rows), columns, squeeze=False)
        known: dict[str, Any] = {}
        for row, places in zip(rows, axes, strict=True):
            for place in places[len(row) :]:
                place.remove()
            for panel, place in zip(row, places, strict=False):
                known |= _draw_panel(place, panel, list(known), store)
        if not known:
            return None
        labels = list(known)
        figure.legend(
            [known[label] for label in labels],
            labels,
            loc="outside upper left",
            ncols=min(len(labels), 4 if columns > 2 else 3),
            frameon=False,
            fontsize=9,
        )
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return Picture(name, caption, _for_page(text.getvalue(), name))


def _draw_panel(axes: Axes, panel: _Panel, names: list[str], store: Store) -> dict[str, Any]:
    lines, settled, last = {}, [], 1.0
    for name, cell in panel.lines:
        curves = store.curves([run.key for run in cell.runs], panel.cost)
        if not curves:
            continue
        names = names if name in names else [*names, name]
        i = names.index(name)
        t, values = np.array(curves[0][0]), np.array([curve for _, curve in curves])
        mean = values.mean(axis=0)
        error = values.std(axis=0, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.zeros(len(mean))
        style: dict[str, Any] = {"color": _COLOURS[i % 4], "linestyle": _DASHES[i % 4], "linewidth": 1.3}
        if panel.cost == "regret":
            style = {"color": _COLOURS[i % 4], "linestyle": _DASHES[i % 4 - i // 4], "marker": ".", "linewidth": 1.1}
        every = slice(len(t) // _BARS, None, max(1, len(t) // _BARS))
        axes.errorbar(t[every], mean[every], error[every], fmt="none", ecolor=style["color"], capsize=2, linewidth=0.9)
        (lines[name],) = axes.plot(t, mean, **style)
        settled += mean[t >= _UNSETTLED * t[-1]].tolist()
        last = max(last, float(t[-1]))
    if settled and panel.cost != "regret":
        low, high = min(settled), max(settled)
        axes.set_ylim(low - 0.08 * (high - low) - 1e-4, high + 0.12 * (high - low) + 1e-4)
        axes.set_xlim(0, last)
        axes.locator_params(axis="x", nbins=4, integer=True)
        axes.locator_params(axis="y", nbins=5)
    elif settled:
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_title(f"{panel.title}: {COSTS.get(panel.cost, panel.cost)}", fontsize=9, loc="left")
    axes.tick_params(labelsize=8)
    axes.grid(axis="y", color="#8884", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    return lines


def _for_page(svg: str, name: str) -> str:
    """Without the XML head, its ids its own on the page, in the colour of the page's text, as wide as there is room."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = svg.replace(_INK, "currentColor").replace("#000000", "currentColor")
    return re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", svg, count=1, flags=re.DOTALL)
