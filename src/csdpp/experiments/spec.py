"""Experiments as data: what a TOML file below specs/ says, and the runs that follow from it.

A file names lines (a learner and its options), data sets, code sizes, costs and label noise. From these come cells,
the figures of a table, and runs, which are what is computed: a run of a learner that does not look at the cost
serves a cell of every cost, and the same run may serve several experiments.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.resources import files
from itertools import product
from typing import Any

from csdpp.errors import InvalidParameter

#: Costs of the tables, in the paper's order, and what to call them.
COSTS = {"hamming": "Hamming loss", "f1": "F1 loss", "accuracy": "Accuracy loss", "rank_published": "Norm. rank loss"}
#: Sets of the tables in the paper's order, by the names of the registry, and how the paper writes them.
SETS = {
    "cal500": "CAL500",
    "corel5k": "Corel5k",
    "emotions": "emotions",
    "enron": "enron",
    "mediamill": "mediamill",
    "medical": "medical",
    "nuswide": "nuswide",
    "scene": "scene",
    "yeast": "yeast",
}
#: As many repetitions as the paper made, and as many label orders.
REPEATS, ORDERS = 15, 50

_MEASURES = ("prequential", "timed", "split", "hindsight", "regret")
_FIELDS = {"title", "section", "about", "sets", "shares", "sizes", "noises", "costs", "measure", "orders", "lines"}
_FIELDS |= {"published"}


@dataclass(frozen=True)
class Run:
    """All that decides what is computed. `key` is the hash of it."""

    measure: str  # one of _MEASURES
    data: str
    learner: str
    options: str = "{}"  # JSON, keys sorted
    share: float | int | None = None  # n_components
    cost: str | None = None  # that the learner is told
    noise: float = 0.0  # with which positives are hidden
    rows: int | None = None  # drawn from the permuted set
    order: int | None = None  # seed of the order of the labels; the rows then keep one order
    repeat: int = 0
    seed: int = 0

    @cached_property
    def key(self) -> str:
        """The spec hash: 16 hexadecimal digits."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def stream_seed(self) -> int:
        """Of the permutation, the noise and all draws of the learner."""
        return 1000 * self.seed + self.repeat


@dataclass(frozen=True)
class Line:
    """A line of a table: a learner with options, what it is told of the cost, and its name in the published table."""

    name: str
    learner: str
    options: Mapping[str, Any] = field(default_factory=dict)
    cost: str = "each"  # "each": the cost that is measured; "none"; or a fixed one
    reduced: bool = True  # whether there is a code size
    published: str | None = None
    reading: str | None = None  # "ordered" or "shapley", where only one of them is the paper's
    rows: int | None = None
    costs: tuple[str, ...] | None = None  # where not all of the experiment
    shares: tuple[float, ...] | None = None
    sets: tuple[str, ...] | None = None
    measure: str | None = None


@dataclass(frozen=True)
class Cell:
    """A figure of a table: the loss in ``cost`` averaged over ``runs``."""

    experiment: str
    line: Line
    data: str
    share: float | int | None
    noise: float
    cost: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Experiment:
    """One TOML file."""

    name: str
    title: str
    about: str
    lines: tuple[Line, ...]
    sets: tuple[str, ...]
    section: str = ""
    shares: tuple[float | int, ...] = (0.1, 0.25, 0.5)
    noises: tuple[float, ...] = (0.0,)
    costs: tuple[str, ...] = tuple(COSTS)
    measure: str = "prequential"
    orders: bool = False
    published: tuple[str, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)  # M by set, where it is no share

    def cells(self, sets: Sequence[str], repeats: int, seed: int) -> Iterator[Cell]:
        """All cells on the sets at hand, in the order of the tables."""
        count = max(2, -(-ORDERS * repeats // REPEATS)) if self.orders else repeats
        for name, noise in product(sets, self.noises):
            for share, line in product(self._sizes(name), self.lines):
                if not self._applies(line, name, share):
                    continue
                size = share if line.reduced else None
                for cost in line.costs or self.costs:
                    runs = tuple(self._run(line, name, size, noise, cost, i, seed) for i in range(count))
                    yield Cell(self.name, line, name, size, noise, cost, runs)

    def _sizes(self, name: str) -> tuple[float | int, ...]:
        return (self.sizes[name],) if name in self.sizes else self.shares

    def _applies(self, line: Line, name: str, share: float | int) -> bool:
        if line.sets is not None and name not in line.sets:
            return False
        if not line.reduced:
            return share == self._sizes(name)[0]
        return line.shares is None or share in line.shares

    def _run(self, line: Line, name: str, share: Any, noise: float, cost: str, i: int, seed: int) -> Run:
        each = cost if cost in COSTS else "f1"  # seconds, say, are no cost to be told
        told = {"each": each, "none": None}.get(line.cost, line.cost)
        return Run(
            measure=line.measure or self.measure,
            data=name,
            learner=line.learner,
            options=json.dumps(dict(line.options), sort_keys=True),
            share=share,
            cost=told,
            noise=noise,
            rows=line.rows,
            order=i if self.orders else None,
            repeat=0 if self.orders else i,
            seed=seed,
        )


def experiments(names: Sequence[str] | None = None) -> list[Experiment]:
    """Those of these names, or all, in the order of the report.

    Examples
    --------
    >>> [experiment.name for experiment in experiments(["noise", "orders"])]
    ['noise', 'orders']
    """
    known = _read()
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise InvalidParameter(
            f"reproduce: experiments must be some of {', '.join(known)}, got {', '.join(unknown)}; choose from these"
        )
    return [known[name] for name in known if names is None or name in names]


def _read() -> dict[str, Experiment]:
    folder = files("csdpp.experiments").joinpath("specs")
    texts = {path.name[:-5]: path.read_text("utf-8") for path in folder.iterdir() if path.name.endswith(".toml")}
    parsed = [parse(name[3:], text) for name, text in sorted(texts.items())]  # 01-noise.toml: the report's order
    return {experiment.name: experiment for experiment in parsed}


def parse(name: str, text: str) -> Experiment:
    """An experiment from its TOML; unknown words are refused.

    Examples
    --------
    >>> lines = ['title = "T"', 'about = "A"', 'sets = ["yeast"]']
    >>> lines += ["[[lines]]", 'name = "L"', 'learner = "obr"', "reduced = false"]
    >>> experiment = parse("toy", chr(10).join(lines))
    >>> sum(1 for cell in experiment.cells(["yeast"], repeats=2, seed=0))
    4
    """
    facts = tomllib.loads(text)
    if stray := set(facts) - _FIELDS:
        raise InvalidParameter(f"experiment {name}: expected {', '.join(sorted(_FIELDS))}, got {', '.join(stray)}")
    lines = []
    for entry in facts.pop("lines"):
        if stray := set(entry) - set(Line.__dataclass_fields__):
            raise InvalidParameter(
                f"experiment {name}, line {entry.get('name')}: unknown {', '.join(stray)}; remove it"
            )
        lines.append(Line(**_tuples(entry)))
    lists = _tuples(facts)
    if lists["sets"] == "published":
        lists["sets"] = tuple(SETS)
    experiment = Experiment(name=name, lines=tuple(lines), **lists)
    measures = {experiment.measure, *(line.measure for line in lines if line.measure)}
    if not measures <= set(_MEASURES):
        raise InvalidParameter(f"experiment {name}: measure must be one of {', '.join(_MEASURES)}, got {measures}")
    return experiment


def _tuples(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items()}


def unique_runs(cells: Sequence[Cell]) -> list[Run]:
    """Each run once."""
    return list({run.key: run for cell in cells for run in cell.runs}.values())
