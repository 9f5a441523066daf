"""Speed against loss: each learner a point, each stream a panel. Needs matplotlib."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from csdpp.bench import streams
from csdpp.bench.report import best, speed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Cell = dict[str, Any]

#: Colour and marker of each family; within a family the markers differ.
_FAMILIES = {
    "CS-DPP": ("#c03020", "*oDP"),
    "O-BR": ("#c03020", "s"),
    "naive": ("0.2", "+x"),
    "NumPy": ("0.2", "s"),
    "Vowpal Wabbit": ("#1f77b4", "^v"),
    "PyTorch": ("#e08a1e", "^vsD"),
    "river": ("#2a9d5c", "^v"),
    "scikit-learn": ("#8a5fbf", "o"),
    "napkinXC": ("#8c6d4f", "o"),
}
_TITLES = {"f1": "F1 loss", "accuracy": "Accuracy loss"}


def plot(cells: list[Cell], cost: str, path: Path) -> None:
    """Write a picture with a panel for each stream of the cells."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(cell["stream"] for cell in cells if cell["runs"]))
    columns = min(len(names), 3 if len(names) != 4 else 2)
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(3.6 * columns + 0.4, 2.9 * rows + 1.3))
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    learners = list(dict.fromkeys(cell["learner"] for cell in cells if cell["runs"]))
    looks = dict(zip(learners, map(_look, learners, _places(learners)), strict=True))
    handles: dict[str, Any] = {}
    for panel, name in zip(panels, names, strict=False):
        _draw(panel, [cell for cell in cells if cell["stream"] == name], cost, looks, handles)
    for panel in panels[len(names) :]:
        panel.set_visible(False)
    below = figure.legend(
        [handles[name] for name in learners if name in handles],
        [name for name in learners if name in handles],
        loc="lower center",
        ncols=3,
        fontsize=8,
        frameon=False,
    )
    height = below.get_window_extent(figure.canvas.get_renderer()).height / figure.bbox.height  # type: ignore[attr-defined]
    figure.supxlabel("rows per CPU second, one thread", fontsize=9, y=height + 0.01)
    figure.supylabel(f"{_TITLES[cost]}: lower is better, right is faster", fontsize=9)
    figure.tight_layout(rect=(0.01, height + 0.03, 1, 1))
    figure.savefig(path, dpi=130)


def _draw(panel: "Axes", cells: list[Cell], cost: str, looks: dict[str, dict[str, Any]], handles: Any) -> None:
    for cell in cells:
        run = best(cell, cost)
        if run is None:
            continue
        look = dict(looks[cell["learner"]])
        if run["rows"] < cell["n"] and look["marker"] not in "+x":
            look["facecolors"], look["edgecolors"] = "none", look.pop("color")
        point = panel.scatter([speed(run)], [run["losses"][cost]], **look)
        handles.setdefault(cell["learner"], point)
    first = cells[0]
    sizes = f"{first['n']:,} × {first['d']:,}, {first['K']:,} labels"
    panel.set_title(f"{first['stream']}  ({sizes})", fontsize=9, loc="left")
    panel.set_xscale("log")
    panel.grid(color="0.92", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.tick_params(labelsize=8)
    panel.spines[["top", "right"]].set_visible(False)


def _family(learner: str) -> str:
    return next((family for family in _FAMILIES if learner.startswith(family)), "naive")


def _places(learners: list[str]) -> list[int]:
    """The place of each learner within its family."""
    families = [_family(learner) for learner in learners]
    return [families[:i].count(family) for i, family in enumerate(families)]


def _look(learner: str, place: int) -> dict[str, Any]:
    colour, markers = _FAMILIES[_family(learner)]
    marker = markers[place % len(markers)]
    return {"color": colour, "marker": marker, "s": 130 if marker == "*" else 34, "linewidths": 1.1, "zorder": 3}


def plot_all(cells: list[Cell], folder: Path) -> list[str]:
    """The pictures of a run, real and generated streams apart; their file names."""
    written = []
    for kind, chosen in (("real", streams.REAL), ("generated", tuple(streams.SIZES))):
        those = [cell for cell in cells if cell["stream"] in chosen]
        if any(cell["runs"] for cell in those):
            plot(those, "f1", folder / f"speed-loss-{kind}.png")
            written.append(f"speed-loss-{kind}.png")
    return written
