"""Any learners on any data, prequentially: what `csdpp run` calls."""

from __future__ import annotations

import csv
import json
import os
from ast import literal_eval
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import csdpp
from csdpp.baselines import OnlineBinaryRelevance, OnlineCompressedSensing, OnlineRandomProjection
from csdpp.costs import Cost, resolve_cost
from csdpp.datasets import Dataset, load
from csdpp.errors import CsdppError, InvalidParameter
from csdpp.estimator import code_size, number, whole
from csdpp.evaluate import PrequentialResult, prequential
from csdpp.experiments.runner import teller
from csdpp.experiments.work import hidden
from csdpp.learner import CSDPP
from csdpp.plots import plot_costs

__all__ = ["LEARNERS", "Entry", "compare", "run"]

_WHO = "run"
_POINTS = 200  # of a curve
_DRAWN = 10  # lines of the picture


class Kind(NamedTuple):
    """How a learner is made from n_components, a cost, a seed and options; what it looks at."""

    make: Callable[..., Any]
    reduces: bool
    told: bool
    about: str


def _published(n_components: Any, cost: Any, seed: int, **options: Any) -> Any:
    return CSDPP.published(n_components, cost=cost, random_state=seed, **options)


#: Learners by the names that `csdpp run` knows.
LEARNERS = {
    "cs-dpp": Kind(
        lambda n_components, cost, seed, **options: CSDPP(n_components, cost=cost, random_state=seed, **options),
        True,
        True,
        "CS-DPP with our defaults",
    ),
    "cs-dpp-published": Kind(_published, True, True, "CS-DPP as published"),
    "dpp": Kind(
        lambda n_components, cost, seed, **options: _published(n_components, "hamming", seed, **options),
        True,
        False,
        "DPP as published: CS-DPP for Hamming loss",
    ),
    "o-br": Kind(
        lambda n_components, cost, seed, **options: OnlineBinaryRelevance(**options), False, False, "binary relevance"
    ),
    "o-rand": Kind(
        lambda n_components, cost, seed, **options: OnlineRandomProjection(n_components, random_state=seed, **options),
        True,
        False,
        "random projection",
    ),
    "o-cs": Kind(
        lambda n_components, cost, seed, **options: OnlineCompressedSensing(n_components, random_state=seed, **options),
        True,
        False,
        "compressed sensing",
    ),
}


class Entry(NamedTuple):
    """A learner with a code size, measured: for each cost one result a repetition, of the run that was told it."""

    name: str
    M: int | None
    results: dict[str, list[PrequentialResult]]

    def average(self, cost: str) -> tuple[float, float]:
        """The mean cost over all repetitions, and its standard error (NaN for one)."""
        values = np.array([result.averages[cost] for result in self.results[cost]])
        error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan
        return float(values.mean()), float(error)

    @property
    def rows_per_second(self) -> float:
        """The mean over all runs."""
        return float(np.mean([result.rows_per_second for group in self.results.values() for result in group]))

    def curves(self) -> PrequentialResult:
        """One result with the mean curves, for a picture."""
        first = next(iter(self.results.values()))[0]
        curves = {cost: np.mean([r.curves[cost] for r in group], axis=0) for cost, group in self.results.items()}
        return replace(first, curves=curves)


def run(
    source: Any,
    learners: Sequence[str] = ("cs-dpp", "dpp", "o-br"),
    output: str | os.PathLike[str] = "run-output",
    *,
    costs: Sequence[str] = ("hamming", "f1", "accuracy", "rank"),
    components: Sequence[float | int] = (0.25,),
    repeats: int = 1,
    noise: float = 0.0,
    rows: int | None = None,
    seed: int = 0,
    scale: bool = True,
    permute: bool = True,
    spread: Any = None,
    progress: bool = True,
    **reading: Any,
) -> list[Entry]:
    """Compare learners on a data set, print a table, write it with a picture and all figures into a folder.

    Parameters
    ----------
    source : str, path or several paths
        What `csdpp.datasets.load` takes.
    learners : sequence of str
        Names of `LEARNERS`, with options after a colon, "cs-dpp:rate=2,weighting=ordered", or "module:attribute" for
        a learner of one's own with ``predict`` and ``partial_fit``.
    output : path
        Folder for costs.png, costs.csv and results.json.
    costs, components, repeats, noise, rows, seed, scale, permute, spread
        As in `compare`.
    progress : bool
        Say on stderr what is running.
    **reading
        Options of `csdpp.datasets.load`.
    """
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidParameter(
            f"{_WHO}: output must be a folder to write into, got {folder} ({error.strerror}); choose another"
        ) from None
    tell = teller(progress)
    tell(f"reading {source}")
    try:
        data = load(source, **reading)
    except TypeError as error:  # an option that the reader of this format does not have
        raise InvalidParameter(f"{_WHO}: options must be those of the format, got {error}; leave it out") from None
    entries = compare(
        data,
        learners,
        costs=costs,
        components=components,
        repeats=repeats,
        noise=noise,
        rows=rows,
        seed=seed,
        scale=scale,
        permute=permute,
        spread=spread,
        tell=tell,
    )
    tell("")
    names = [resolve_cost(cost).name for cost in costs]
    drawn = {_titled(entry): entry.curves() for entry in entries[:_DRAWN]}
    plot_costs(drawn, names, folder / "costs.png")
    _write(entries, names, data, folder, {"repeats": repeats, "noise": noise, "rows": rows, "seed": seed})
    size = f"{min(rows or len(data.Y), data.Y.shape[0]):,} rows" if rows else f"{data.Y.shape[0]:,} rows"
    print(f"{data.name}: {size}, {data.X.shape[1]:,} features, {data.Y.shape[1]:,} labels\n")
    print(table(entries, names))
    print(
        f"\nMean cost of a row, predicted before it is learned: lower is better, * best.\nWritten into {folder}/: ",
        end="",
    )
    print("costs.png, costs.csv, results.json")
    return entries


def compare(
    data: Dataset,
    learners: Sequence[str],
    *,
    costs: Sequence[Any] = ("hamming", "f1", "accuracy", "rank"),
    components: Sequence[float | int] = (0.25,),
    repeats: int = 1,
    noise: float = 0.0,
    rows: int | None = None,
    seed: int = 0,
    scale: bool = True,
    permute: bool = True,
    spread: Any = None,
    tell: Callable[[str], object] = lambda line: None,
) -> list[Entry]:
    """Every learner, code size and cost, measured prequentially.

    Parameters
    ----------
    data : Dataset
    learners : as in `run`
    costs : names or `csdpp.costs.Cost`
        Learners that take a cost run once for each.
    components : ints or shares in (0, 1]
        Code sizes; learners without one run once.
    repeats : int
        Each with another order of the rows; the r-th has the seed ``seed + r``.
    noise : float in [0, 1)
        Chance that a relevant label is hidden.
    rows : int, optional
        How many of the (permuted) rows.
    scale : bool
        Features scaled to [0, 1] over the whole set.
    permute : bool
        False keeps the order of the file.
    spread : callable, optional
        Another way to map a function over runs than one after the other, such as `csdpp.distributed.spread`.

    Examples
    --------
    >>> from csdpp.datasets import make_stream
    >>> data = make_stream(200, 5, 8, cardinality=2, random_state=0)
    >>> entries = compare(data, ["cs-dpp", "o-br"], costs=["f1"], components=[0.5])
    >>> [(entry.name, entry.M) for entry in entries]
    [('cs-dpp', 4), ('o-br', None)]
    """
    whole(_WHO, "repeats", repeats, "at least 1", lambda v: v >= 1)
    whole(_WHO, "seed", seed, "at least 0", lambda v: v >= 0)
    number(_WHO, "noise", noise, "from 0 to less than 1", lambda v: 0 <= v < 1)
    if rows is not None:
        whole(_WHO, "rows", rows, "at least 1", lambda v: v >= 1)
    measured = [resolve_cost(cost) for cost in costs]
    kinds = [_parsed(name) for name in learners]
    K = data.Y.shape[1]
    sizes = {size: code_size(_WHO, size, K) for size in components}
    places = [(name, kind, size) for name, kind in kinds for size in (sizes if kind.reduces else [None])]
    data = data.scaled() if scale else data
    entries = [
        Entry(name, sizes.get(size) if size else None, {c.name: [] for c in measured}) for name, _, size in places
    ]
    jobs = [(repeat, place) for repeat in range(repeats) for place in range(len(places))]
    measure = _Measure(data, places, measured, seed, noise, rows, permute)
    found = {}
    tell(f"0 of {len(jobs)} runs")
    for job, results in map(measure, jobs) if spread is None else spread(measure, jobs):
        found[job] = results
        tell(f"{len(found)} of {len(jobs)} runs, the last: {places[job[1]][0]}")
    for job in jobs:
        for cost, result in found[job]:
            entries[job[1]].results[cost].append(result)
    return entries


@dataclass
class _Measure:
    """A job, (repetition, place among the learners), to itself and its results: what may be done anywhere."""

    data: Dataset
    places: list[tuple[str, Kind, Any]]
    costs: list[Cost]
    seed: int
    noise: float
    rows: int | None
    permute: bool
    kept: tuple[int, Dataset] | None = None  # the rows of the last repetition

    def __call__(self, job: tuple[int, int]) -> tuple[tuple[int, int], list[tuple[str, PrequentialResult]]]:
        repeat, place = job
        kept = self.kept
        if kept is None or kept[0] != repeat:
            kept = repeat, _stream(self.data, self.seed + repeat, self.noise, self.rows, self.permute)
            self.kept = kept
        name, kind, size = self.places[place]
        return job, _results(kind, size, self.costs, kept[1], self.seed + repeat, name)


def _results(
    kind: Kind, size: Any, costs: Sequence[Cost], stream: Dataset, seed: int, name: str
) -> list[tuple[str, PrequentialResult]]:
    found: list[tuple[str, PrequentialResult]] = []
    for cost in costs:
        if found and not kind.told:
            found.append((cost.name, found[0][1]))
            continue
        try:
            model = kind.make(n_components=size, cost=cost, seed=seed)
        except TypeError as error:
            raise InvalidParameter(f"{_WHO}: options of {name} must be its parameters, got {error}; see help") from None
        measured = costs if not kind.told else [cost]
        result = prequential(model, stream.X, stream.Y, measured, checkpoints=_POINTS, progress=False)
        found.append((cost.name, result))
    return found


def _stream(data: Dataset, seed: int, noise: float, rows: int | None, permute: bool) -> Dataset:
    rng = np.random.default_rng(seed)
    n = data.X.shape[0]
    places = (rng.permutation(n) if permute else np.arange(n))[:rows]
    return replace(data, X=data.X[places], Y=hidden(data.Y[places], noise, rng))


def _parsed(text: str) -> tuple[str, Kind]:
    """A learner and its options: name, name:key=value,... or module:attribute."""
    name, _, rest = text.partition(":")
    if name.lower() not in LEARNERS:
        return text, _own(name, rest)
    kind, options = LEARNERS[name.lower()], _options(text, rest)

    def make(n_components: Any, cost: Any, seed: int) -> Any:
        return kind.make(n_components, cost, seed, **options)

    return text, kind._replace(make=make)


def _options(text: str, rest: str) -> dict[str, Any]:
    options = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidParameter(f"{_WHO}: options must be key=value, got {part!r} in {text!r}; write them so")
        try:
            options[key.strip()] = literal_eval(value)
        except (ValueError, SyntaxError):
            options[key.strip()] = value
    return options


def _own(module: str, rest: str) -> Kind:
    """A learner of the user's: a class or function without arguments that must be given."""
    attribute, _, options = rest.partition(":")
    try:
        made = getattr(import_module(module), attribute) if attribute else None
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidParameter(
            f"{_WHO}: learners must be {', '.join(LEARNERS)} or module:attribute, got {module}:{attribute} ({error}); "
            "choose one"
        ) from None
    if made is None:
        raise InvalidParameter(
            f"{_WHO}: learners must be {', '.join(LEARNERS)} or module:attribute, got {module!r}; choose one"
        )
    chosen = _options(rest, options)
    takes = signature(made).parameters

    def make(n_components: Any, cost: Any, seed: int) -> Any:
        return made(**({"random_state": seed} if "random_state" in takes else {}), **chosen)

    return Kind(make, False, False, "your own")


# ---- what is shown and written


def _titled(entry: Entry) -> str:
    return entry.name if entry.M is None else f"{entry.name}, M = {entry.M}"


def table(entries: Sequence[Entry], costs: Sequence[str]) -> str:
    """A table in plain text."""
    best = {cost: min(f"{entry.average(cost)[0]:.4f}" for entry in entries) for cost in costs}
    lines = [["", "M", *(cost.replace("_", " ") for cost in costs), "rows/s"]]
    for entry in entries:
        cells = []
        for cost in costs:
            mean, error = entry.average(cost)
            mark = "*" if f"{mean:.4f}" == best[cost] else " "
            cells.append(f"{mean:.4f}" + ("" if np.isnan(error) else f" ±{error:.4f}") + mark)
        lines.append([entry.name, str(entry.M or "-"), *cells, f"{entry.rows_per_second:,.0f}"])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = []
    for line in lines:
        first, *others = line
        shifted = [f"{text} " if line is lines[0] and 1 <= i <= len(costs) else text for i, text in enumerate(others)]
        padded = [text.rjust(width + 1) for text, width in zip(shifted, widths[1:], strict=True)]
        texts.append("  ".join([first.ljust(widths[0]), *padded]).rstrip())
    return "\n".join(texts)


def _write(entries: Sequence[Entry], costs: Sequence[str], data: Dataset, folder: Path, facts: dict[str, Any]) -> None:
    with (folder / "costs.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["learner", "M", "cost", "repeat", "loss", "rows_per_second"])
        for entry in entries:
            for cost in costs:
                for i, result in enumerate(entry.results[cost]):
                    row = [entry.name, entry.M, cost, i, result.averages[cost], round(result.rows_per_second, 1)]
                    writer.writerow(row)
    N, d, K, *_ = data.statistics()
    everything = {
        "csdpp": csdpp.__version__,
        "data": {"name": data.name, "rows": N, "features": d, "labels": K},
        **facts,
        "learners": [
            {
                "name": entry.name,
                "M": entry.M,
                "results": {cost: [result.to_dict() for result in group] for cost, group in entry.results.items()},
            }
            for entry in entries
        ],
    }
    try:
        (folder / "results.json").write_text(json.dumps(everything) + "\n", encoding="utf-8")
    except OSError as error:
        raise CsdppError(f"{_WHO}: results.json could not be written ({error.strerror}); make room") from None
