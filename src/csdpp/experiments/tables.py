"""Our figures beside the published ones: means, errors, verdicts, orderings.

published.csv has the figures of the paper's tables. Its errors are standard errors, but standard deviations of 50
label orders in "cost_order_full".
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import NamedTuple

import numpy as np

from csdpp.experiments.spec import COSTS, ORDERS, SETS, Cell, Experiment
from csdpp.experiments.store import Result

#: Figures agree within this or three standard errors of their difference, whichever is more.
TOLERANCE = 0.02
#: Readings of the paper's label weights that are tried side by side.
READINGS = ("ordered", "shapley")
_ORDER_TABLE = "cost_order_full"


class Published(NamedTuple):
    """A figure of the paper: a mean, and its error as printed."""

    table: str
    mean: float
    printed: float

    @property
    def error(self) -> float:
        """The standard error."""
        return self.printed / ORDERS**0.5 if self.table == _ORDER_TABLE else self.printed


class Figure(NamedTuple):
    """A cell, measured."""

    cell: Cell
    mean: float
    deviation: float  # over the runs
    error: float  # of the mean
    size: int  # runs
    published: Published | None

    @property
    def difference(self) -> float | None:
        """Ours less the published."""
        return None if self.published is None else self.mean - self.published.mean

    @property
    def tolerance(self) -> float:
        """What a difference may be for the two to agree."""
        theirs = 0.0 if self.published is None else self.published.error
        return max(TOLERANCE, 3.0 * float(np.hypot(self.error, theirs)))

    @property
    def verdict(self) -> str:
        """Whether we "agree", are "better" (lower) or "worse"; "" where nothing is published."""
        if self.difference is None:
            return ""
        if abs(self.difference) <= self.tolerance:
            return "agree"
        return "better" if self.difference < 0 else "worse"


@cache
def published() -> Mapping[tuple[str, str, str, float | None, float, str], Published]:
    """All figures, by table, set, algorithm, share, noise and cost.

    Examples
    --------
    >>> published()["cs_comp_m10", "yeast", "CS-DPP", 0.1, 0.0, "f1"]
    Published(table='cs_comp_m10', mean=0.433, printed=0.003)
    >>> len(published())
    1038
    """
    found = {}
    text = files("csdpp.experiments").joinpath("published.csv").read_text("utf-8")
    for row in csv.DictReader(text.splitlines()):
        size = row["share_of_K_percent"]
        share = None if not size else float(size[2:]) if size.startswith("M=") else float(size) / 100.0
        cost = "rank_published" if row["cost"] == "rank" else row["cost"]
        key = (row["table"], row["dataset"].lower(), row["algorithm"], share, float(row["noise"]), cost)
        found[key] = Published(row["table"], float(row["mean"]), float(row["error"] or 0.0))
    return found


def look_up(experiment: Experiment, cell: Cell) -> Published | None:
    """The published figure of a cell, or None."""
    if cell.line.published is None or cell.cost not in COSTS or cell.data not in SETS:
        return None
    share = None if cell.share is None else float(cell.share)
    for table in experiment.published:
        key = (table, SETS[cell.data].lower(), cell.line.published, share, cell.noise, cell.cost)
        if key in published():
            return published()[key]
    return None


def figures(experiment: Experiment, cells: Iterable[Cell], results: Mapping[str, Result]) -> list[Figure]:
    """Of the cells of which at least one run is there."""
    found = []
    for cell in cells:
        losses = [results[run.key].losses.get(cell.cost) for run in cell.runs if run.key in results]
        values = np.array([loss for loss in losses if loss is not None])
        if not len(values):
            continue
        deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        error = deviation / len(values) ** 0.5
        there = look_up(experiment, cell)
        found.append(Figure(cell, float(values.mean()), deviation, error, len(values), there))
    return found


def of_reading(found: Iterable[Figure], reading: str) -> list[Figure]:
    """Those that have a published figure, where two readings differ by the one of them."""
    return [f for f in found if f.published is not None and f.cell.line.reading in (None, reading)]


def counts(found: Iterable[Figure]) -> dict[str, int]:
    """How many agree, are better, are worse, and all."""
    verdicts = [figure.verdict for figure in found]
    return {name: verdicts.count(name) for name in ("agree", "better", "worse")} | {"all": len(verdicts)}


def matching_reading(found: Sequence[Figure]) -> str:
    """The weighting under which more figures agree; of equals, the one that is closer."""

    def merit(reading: str) -> tuple[int, float]:
        mine = [f for f in of_reading(found, reading) if f.cell.line.reading is not None]
        return counts(mine)["agree"], -sum(abs(f.difference or 0.0) for f in mine)

    return max(READINGS, key=merit)


class Orderings(NamedTuple):
    """Pairs in one column of a published table that differ by more than chance, and how many differ so with us."""

    hold: int
    all: int


def orderings(found: Iterable[Figure]) -> dict[str, Orderings]:
    """By published table. A pair counts if it differs by more than three standard errors and the rounding."""
    columns = defaultdict(list)
    for figure in found:
        if figure.published is not None:
            columns[figure.published.table, figure.cell.data, figure.cell.cost].append(figure)
    tally: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for (table, _, _), column in columns.items():
        for a, b in combinations(column, 2):
            assert a.published is not None
            assert b.published is not None
            theirs = a.published.mean - b.published.mean
            if abs(theirs) > 3.0 * np.hypot(a.published.error, b.published.error) + 0.001:
                tally[table][0] += int(theirs * (a.mean - b.mean) > 0)
                tally[table][1] += 1
    return {table: Orderings(hold, every) for table, (hold, every) in tally.items()}
