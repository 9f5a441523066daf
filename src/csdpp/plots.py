"""Pictures of prequential results; needs matplotlib (``pip install csdpp[plots]``)."""

import os
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from csdpp.calibration import Reliability
from csdpp.errors import InvalidParameter
from csdpp.evaluate import BOUND_TERMS, PrequentialResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_costs", "plot_reliability"]

# Colours that stay apart for the colour-blind (Okabe and Ito), darkest first; dashes keep them apart in grey.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.5, 1)), (0, (6, 1.5, 1.5, 1.5)))
_TITLES = {
    "hamming": "Hamming loss",
    "f1": "F1 loss",
    "accuracy": "accuracy loss",
    "rank": "rank loss",
    "rank_published": "rank loss (published)",
}
# Shares of the rows, at the start: not drawn, and not deciding what part of the y-axis is shown.
_UNDRAWN, _UNSETTLED = 0.01, 0.05


def plot_costs(
    results: Mapping[str, PrequentialResult], costs: Any = None, path: str | os.PathLike[str] | None = None
) -> "Figure":
    """Average cost so far against the number of rows, a panel for each cost and a line for each result.

    Parameters
    ----------
    results : dict of name -> PrequentialResult
        Names go into the legend, in this order.
    costs : names of curves, one or several, optional
        By default the costs that all results have; "prediction_error" and "reconstruction_error" if asked for.
    path : path that ends in .png, .svg or .pdf, optional
        Where to save the picture.

    Returns
    -------
    matplotlib.figure.Figure
        6 x 4 inches, larger with more panels than four; no window and no global state of matplotlib.

    Notes
    -----
    Averages over few rows say little and would take all the room: lines begin after the first hundredth of the
    rows, and the y-axis shows where they are after the first twentieth. No row is left out of an average.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("csdpp.plots: plot_costs needs matplotlib; pip install 'csdpp[plots]'") from None
    names = _curves(results, costs)
    if path is not None and Path(path).suffix not in {".png", ".svg", ".pdf"}:
        raise InvalidParameter(f"plot_costs: path must end in .png, .svg or .pdf, got {Path(path).name!r}")

    columns = 1 if len(names) == 1 else 2
    rows = ceil(len(names) / columns)
    figure = Figure(figsize=(6.0, 4.0 if rows <= 2 else 1.8 * rows + 0.4), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True).ravel()
    for panel, cost in zip(panels, names, strict=False):
        _draw(panel, results, cost)
    for panel in panels[len(names) :]:
        panel.remove()
    for panel in panels[max(0, len(names) - columns) : len(names)]:
        panel.tick_params(labelbottom=True)
    figure.supxlabel("rows", fontsize=9)
    figure.supylabel("average cost so far", fontsize=9)
    lines = panels[0].get_lines()
    figure.legend(
        lines,
        [_literal(name) for name in results],
        loc="outside upper center",
        ncols=_legend_columns(list(results)),
        fontsize=9,
        frameon=False,
        handlelength=2.6,
    )
    if path is not None:
        figure.savefig(path, dpi=200)
    return figure


def plot_reliability(results: Mapping[str, Reliability], path: str | os.PathLike[str] | None = None) -> "Figure":
    """How often labels came, against the chances that they were given: on the diagonal, chances can be trusted.

    Parameters
    ----------
    results : dict of name -> `csdpp.calibration.Reliability`
        A panel each, in this order; the area of a point is the share of the entries in its bin.
    path : path that ends in .png, .svg or .pdf, optional
        Where to save the picture.

    Returns
    -------
    matplotlib.figure.Figure
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("csdpp.plots: plot_reliability needs matplotlib; pip install 'csdpp[plots]'") from None
    if not results:
        raise InvalidParameter("plot_reliability: results must hold at least one result, got none")
    if path is not None and Path(path).suffix not in {".png", ".svg", ".pdf"}:
        raise InvalidParameter(f"plot_reliability: path must end in .png, .svg or .pdf, got {Path(path).name!r}")
    columns = min(len(results), 3)
    rows = ceil(len(results) / columns)
    figure = Figure(figsize=(2.2 * columns + 0.4, 2.2 * rows + 0.4), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for panel, (name, result) in zip(panels, results.items(), strict=False):
        panel.plot([0, 1], [0, 1], color="0.8", linewidth=1.0, zorder=0)
        shares = result.count / max(result.count.sum(), 1)
        panel.plot(result.chance, result.frequency, color=_COLOURS[0], linewidth=1.0)
        panel.scatter(result.chance, result.frequency, s=6 + 150 * shares, color=_COLOURS[0], alpha=0.6, linewidths=0)
        panel.set_title(f"{_literal(name)}, ECE {result.error:.3f}", fontsize=9, loc="left")
        panel.set_xlim(-0.02, 1.02)
        panel.set_ylim(-0.02, 1.02)
        panel.set_aspect("equal")
        panel.tick_params(labelsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels[len(results) :]:
        panel.remove()
    figure.supxlabel("chance", fontsize=9)
    figure.supylabel("share that came", fontsize=9)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _curves(results: Mapping[str, PrequentialResult], costs: Any) -> list[str]:
    if not results:
        raise InvalidParameter("plot_costs: results must hold at least one result, got none")
    shared = set.intersection(*(set(result.curves) for result in results.values()))
    if costs is None:
        first = next(iter(results.values()))
        names = [name for name in first.curves if name in shared and name not in BOUND_TERMS]
    else:
        names = [costs] if isinstance(costs, str) else list(costs)
    if not names or not shared.issuperset(names):
        raise InvalidParameter(
            f"plot_costs: costs must be curves that all results have ({', '.join(sorted(shared)) or 'none'}), "
            f"got {costs!r}; evaluate all with the same costs"
        )
    return names


def _draw(panel: "Axes", results: Mapping[str, PrequentialResult], cost: str) -> None:
    """One panel: lines, and the stretch of the y-axis where they have settled."""
    last = max(int(result.checkpoints.max(initial=0)) for result in results.values())
    settled: list[float] = []
    for i, result in enumerate(results.values()):
        t, curve = result.checkpoints, result.curves[cost]
        dashes, drawn = _DASHES[i % len(_DASHES)], t >= _UNDRAWN * last
        panel.plot(t[drawn], curve[drawn], color=_COLOURS[i % len(_COLOURS)], linestyle=dashes, linewidth=1.4)
        late = curve[t >= _UNSETTLED * last]
        settled += (late if late.size else curve[-1:]).tolist()
    if settled:
        low, high = min(settled), max(settled)
        margin = 0.06 * (high - low) or 0.05 * max(abs(high), 0.1)
        panel.set_ylim(low - margin, high + margin)
    panel.set_xlim(0, max(last, 1))
    panel.set_title(_TITLES.get(cost, _literal(cost.replace("_", " "))), fontsize=10, loc="left")
    panel.locator_params(axis="x", nbins=4, steps=[1, 2, 5, 10], integer=True)
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    panel.tick_params(labelsize=8)
    panel.grid(axis="y", color="0.9", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)


def _legend_columns(names: list[str]) -> int:
    """As many as fit side by side in 6 inches: about 84 characters, 8 of them for a line and the gaps."""
    for columns in range(min(len(names), 4), 1, -1):
        widths = [max(map(len, part)) + 8 for part in np.array_split(np.array(names, object), columns)]
        if sum(widths) <= 84:
            return columns
    return 1


def _literal(name: str) -> str:
    """A name in which matplotlib sees no formula."""
    return str(name).replace("$", r"\$")
