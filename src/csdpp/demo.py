"""The demonstration: learners side by side on the yeast stream that river's wheel carries (`csdpp demo`).

Needs the packages of ``pip install 'csdpp[demo]'``; downloads nothing.
"""

import csv
import itertools
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from csdpp import CSDPP, OnlineBinaryRelevance, OnlineRandomProjection, __version__
from csdpp.datasets import Dataset, load_river_yeast
from csdpp.errors import InvalidParameter
from csdpp.estimator import code_size, whole
from csdpp.evaluate import PrequentialResult, prequential
from csdpp.plots import plot_costs

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["COSTS", "LEARNERS", "LINES", "Entry", "compare", "run"]

_WHO = "demo"
_POINTS = 200  # of a curve

#: The columns of the table: costs, and what to call them.
COSTS = {"hamming": "Hamming", "f1": "F1", "accuracy": "Accuracy", "rank": "Rank"}
#: How each learner is made, from n_components, a cost and a seed.
LEARNERS: dict[str, Callable[[float, str, int], Any]] = {
    "O-BR": lambda share, cost, seed: OnlineBinaryRelevance(),
    "O-RAND": lambda share, cost, seed: OnlineRandomProjection(share, random_state=seed),
    "DPP": lambda share, cost, seed: CSDPP.published(share, cost="hamming", random_state=seed),
    "CS-DPP, as published": lambda share, cost, seed: CSDPP.published(share, cost=cost, random_state=seed),
    "CS-DPP, our defaults": lambda share, cost, seed: CSDPP(share, cost=cost, random_state=seed),
}
#: These do not look at the cost, and run once; the others run for each cost.
_INDIFFERENT = ("O-BR", "O-RAND", "DPP")
#: The lines of the table: learner and n_components. O-BR keeps all labels.
LINES = [("O-BR", 1.0), *((name, share) for share in (0.5, 0.25) for name in LEARNERS if name != "O-BR")]
_N_RUNS = sum(1 if name in _INDIFFERENT else len(COSTS) for name, _ in LINES)


class Entry(NamedTuple):
    """A line of the table, measured; ``results`` has for each cost the run of the learner that was told this cost."""

    name: str
    M: int
    results: dict[str, PrequentialResult]

    def average(self, cost: str) -> float:
        """The average of a cost over all rows."""
        return self.results[cost].averages[cost]

    def curves(self) -> PrequentialResult:
        """One result with the curves of all costs, for a picture."""
        curves = {cost: result.curves[cost] for cost, result in self.results.items()}
        return replace(self.results["hamming"], curves=curves)


def run(
    rows: int | None = None,
    output: str | os.PathLike[str] = "demo-output",
    *,
    seed: int = 0,
    progress: bool = True,
) -> list[Entry]:
    """Compare the learners, print a table, and write it into a folder with a picture of the running costs.

    Parameters
    ----------
    rows : int, optional
        How many rows of the stream; all 2,417 by default.
    output : path
        The folder, made if absent, for ``costs.png``, ``costs.csv`` (the table) and ``results.json`` (the table,
        the curves, and what was run).
    seed : int
        Of the order of the rows, and of the learners that draw.
    progress : bool
        Show a progress bar on stderr, if that is a terminal.

    Returns
    -------
    list of Entry
        The lines of the table.

    Notes
    -----
    A few seconds; after an install some ten more, in which numba compiles.
    """
    _require_extra()
    from rich.console import Console

    whole(_WHO, "seed", seed, f"from 0 to {2**32 - 1}", lambda v: 0 <= v < 2**32)
    stream = load_river_yeast()
    N = len(stream.X)
    if rows is not None:
        whole(_WHO, "rows", rows, f"from 1 to {N}", lambda v: 1 <= v <= N)
    folder = _make_folder(output)
    stream = stream.scaled().permuted(seed)
    stream = replace(stream, X=stream.X[:rows], Y=stream.Y[:rows])

    start = time.perf_counter()
    entries = _compare_with_bar(stream, seed, progress)
    seconds = time.perf_counter() - start
    _write_files(entries, stream, seed, folder)
    console = Console(highlight=False)
    console.print(_table(entries, stream, seed))
    console.print(_LEGEND)
    written = _WRITTEN.format(n_runs=_N_RUNS, seconds=seconds, folder=folder, M=entries[1].M)
    console.print(written, markup=False, soft_wrap=True)
    return entries


def compare(stream: Dataset, seed: int = 0, tick: Callable[[str], object] = lambda name: None) -> list[Entry]:
    """Every line of the table, measured prequentially on the rows of a stream in their order.

    Parameters
    ----------
    stream : Dataset
    seed : int
        Of the learners that draw.
    tick : callable
        Called with the name of the learner before each run.

    Examples
    --------
    >>> from csdpp.datasets import make_stream
    >>> entries = compare(make_stream(200, 5, 8, cardinality=2, random_state=0))
    >>> [(entry.name, entry.M) for entry in entries[:4]]
    [('O-BR', 8), ('O-RAND', 4), ('DPP', 4), ('CS-DPP, as published', 4)]
    >>> entries[0].average("hamming") < 0.5
    True
    """
    entries = []
    for name, share in LINES:
        results: dict[str, PrequentialResult] = {}
        for cost in COSTS:
            if results and name in _INDIFFERENT:
                results[cost] = results["hamming"]
                continue
            tick(name)
            model = LEARNERS[name](share, cost, seed)
            results[cost] = _measure(model, stream)
        entries.append(Entry(name, code_size(_WHO, share, stream.Y.shape[1]), results))
    return entries


def _measure(model: Any, stream: Dataset) -> PrequentialResult:
    return prequential(
        model,
        stream.X,
        stream.Y,
        tuple(COSTS),
        checkpoints=_POINTS,
        progress=False,
        label_names=stream.label_names,
    )


# ---- on the terminal

_LEGEND = (
    "Average cost of a row, predicted before it is learned: lower is better, * best.\n\n"
    "[bold]O-BR[/] predicts each label by itself. The others predict M numbers from which the labels are decoded: "
    "random ones ([bold]O-RAND[/]), or principal directions that follow the stream ([bold]DPP[/]). "
    "[bold]CS-DPP[/] is told which cost counts."
)
_WRITTEN = """
{n_runs} runs in {seconds:.1f} s, written into {folder}:
  costs.png      the averages as they ran, for M = {M}, without O-RAND
  costs.csv      the table
  results.json   the table, the curves, and what was run

Next:
  csdpp demo --seed 1     another order of the rows: do the differences stay?
  csdpp demo --rows 300   who learns fast?
  python                  >>> from csdpp import CSDPP; help(CSDPP)"""


def _compare_with_bar(stream: Dataset, seed: int, progress: bool) -> list[Entry]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    disable = not (progress and console.is_terminal)
    with Progress(*columns, console=console, transient=True, disable=disable) as bar:
        task = bar.add_task("getting ready (numba compiles the first time)", total=_N_RUNS)
        # Two rows call every kernel: nothing after them waits for the compiler.
        _measure(CSDPP(0.5), replace(stream, X=stream.X[:2], Y=stream.Y[:2]))
        runs = itertools.count()
        return compare(stream, seed, lambda name: bar.update(task, completed=next(runs), description=name))


def _table(entries: list[Entry], stream: Dataset, seed: int) -> "Table":
    from rich import box
    from rich.table import Table

    N, d, K, _, _ = stream.statistics()
    title = f"{stream.name}: {N:,} rows, {d} features, {K} labels, order of seed {seed}"
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("M", justify="right")
    for name in COSTS.values():
        table.add_column(f"{name} ", justify="right")
    best = {cost: min(f"{entry.average(cost):.3f}" for entry in entries) for cost in COSTS}
    last = entries[0].M
    for entry in entries:
        if last != entry.M:
            table.add_section()
        last = entry.M
        figures = {cost: f"{entry.average(cost):.3f}" for cost in COSTS}
        cells = (f"[bold green]{f}*[/]" if f == best[cost] else f"{f} " for cost, f in figures.items())
        table.add_row(entry.name, str(entry.M), *cells)
    return table


# ---- into files


def _make_folder(output: str | os.PathLike[str]) -> Path:
    """The folder, before the work and not after it: who has no right to write there should not wait."""
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        reason = None if os.access(folder, os.W_OK) else "no permission"
    except OSError as error:
        reason = error.strerror
    if reason is not None:
        raise InvalidParameter(
            f"{_WHO}: output must be a folder to write into, got {folder} ({reason}); choose another with --output"
        )
    return folder


def _write_files(entries: list[Entry], stream: Dataset, seed: int, folder: Path) -> None:
    # Nine lines would be too many; and O-RAND is so far above the others that these would lie on each other.
    drawn = {entry.name: entry.curves() for entry in entries if entry.M >= entries[1].M and entry.name != "O-RAND"}
    plot_costs(drawn, tuple(COSTS), folder / "costs.png")
    with (folder / "costs.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["learner", "M", *COSTS])
        writer.writerows([entry.name, entry.M, *map(entry.average, COSTS)] for entry in entries)
    N, d, K, _, _ = stream.statistics()
    everything = {
        "csdpp": __version__,
        "data": {"name": stream.name, "rows": N, "features": d, "labels": K},
        "seed": seed,
        "learners": [_plain(entry) for entry in entries],
    }
    (folder / "results.json").write_text(json.dumps(everything) + "\n", encoding="utf-8")


def _plain(entry: Entry) -> dict[str, Any]:
    """An entry as JSON has it."""
    return {
        "name": entry.name,
        "M": entry.M,
        "models": {cost: result.model for cost, result in entry.results.items()},
        "averages": {cost: entry.average(cost) for cost in COSTS},
        "rows": entry.curves().checkpoints.tolist(),
        "curves": {cost: curve.tolist() for cost, curve in entry.curves().curves.items()},
    }


def _require_extra() -> None:
    missing = [name for name in ("matplotlib", "rich", "river") if find_spec(name) is None]
    if missing:
        raise ImportError(f"{_WHO}: needs {' and '.join(missing)}, not installed here; pip install 'csdpp[demo]'")
