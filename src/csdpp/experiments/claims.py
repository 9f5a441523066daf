"""What the paper says in words, tested on our figures: each claim true or false, with the counts behind it.

A claim about many cells is called true where it holds in at least nine of ten of them ("in general", "on all"), and
each says what counts as a case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from csdpp.experiments.spec import COSTS, SETS
from csdpp.experiments.tables import Figure

_NEARLY_ALL = 0.9
_GUIDED = ("f1", "accuracy", "rank_published")  # costs other than Hamming


class Claim(NamedTuple):
    """A sentence of the paper, what was counted, and what came of it."""

    sentence: str
    counted: str
    holds: int
    cases: int
    needed: float = _NEARLY_ALL
    exceptions: tuple[str, ...] = ()

    @property
    def verdict(self) -> bool | None:
        """Whether it is true here; None if nothing was measured."""
        return self.holds >= self.needed * self.cases if self.cases else None


class _Found:
    """Figures by experiment, line, set, share, noise and cost."""

    def __init__(self, found: Iterable[Figure], reading: str) -> None:
        self.by_place: dict[tuple[object, ...], Figure] = {}
        for f in found:
            if f.cell.line.reading in (None, reading):
                name = f.cell.line.published or f.cell.line.name
                place = (f.cell.experiment, name, f.cell.data, f.cell.share, f.cell.noise, f.cell.cost)
                self.by_place[place] = f

    def pairs(
        self, experiment: str, ours: str, other: str, costs: Sequence[str] = tuple(COSTS)
    ) -> Iterator[tuple[Figure, Figure]]:
        """Two lines of a table, where both are there; a line without a code size goes with every size."""
        for (where, name, data, share, noise, cost), figure in self.by_place.items():
            if (where, name) == (experiment, ours) and cost in costs:
                for size in (share, None):
                    match = self.by_place.get((where, other, data, size, noise, cost))
                    if match is not None:
                        yield figure, match
                        break


def claims(found: Sequence[Figure], reading: str) -> list[Claim]:
    """All claims, in the order of the paper."""
    table = _Found(found, reading)
    return [
        *_noise(table),
        *_drift(table),
        *_costs(table),
        *_orders(found),
        *_speed(found),
    ]


def _tally(
    sentence: str,
    counted: str,
    pairs: Iterable[tuple[Figure, Figure]],
    holds: Callable[[Figure, Figure], bool],
    needed: float = _NEARLY_ALL,
) -> Claim:
    cases, exceptions = 0, []
    for ours, other in pairs:
        cases += 1
        if not holds(ours, other):
            exceptions.append(f"{_place(ours)} ({ours.mean:.3f} against {other.mean:.3f})")
    return Claim(sentence, counted, cases - len(exceptions), cases, needed, tuple(exceptions))


def _place(figure: Figure) -> str:
    cell = figure.cell
    share = f" {100 * cell.share:g} %" if isinstance(cell.share, float) else ""
    noise = f" p = {cell.noise:g}" if cell.noise else ""
    return f"{SETS.get(cell.data, cell.data)}{share}{noise} {COSTS.get(cell.cost, cell.cost)}"


def _slack(a: Figure, b: Figure) -> float:
    """Three standard errors of a difference: what chance may do."""
    return 3.0 * float(np.hypot(a.error, b.error))


def _noise(table: _Found) -> Iterator[Claim]:
    pairs = list(table.pairs("noise", "DPP", "O-BR", ("hamming", "f1", "accuracy")))
    small = [pair for pair in pairs if pair[0].cell.share == 0.1]
    gains = {}
    for p in (0.3, 0.5, 0.7):
        mine = [(other.mean - ours.mean) / other.mean for ours, other in small if ours.cell.noise == p]
        gains[p] = float(np.mean(mine)) if mine else np.nan
    rises = int(gains[0.3] <= gains[0.5]) + int(gains[0.5] <= gains[0.7])
    spelled = ", ".join(f"{gain:+.1%} at p = {p}" for p, gain in gains.items())
    yield Claim(
        "DPP resists noise better than O-BR as p grows.",
        f"DPP with M = 10 % of K: mean saving over O-BR in Hamming, F1 and accuracy loss ({spelled}) rises from each p "
        "to the next.",
        rises,
        2 if small else 0,
        1.0,
    )
    last = [pair for pair in pairs if pair[0].cell.noise == 0.7]
    yield _tally(
        "At p = 0.7 DPP is at least as good as O-BR.",
        "Each set, M and cost but rank: not above O-BR by more than three standard errors and 2 % of it.",
        last,
        lambda ours, other: ours.mean <= other.mean * 1.02 + _slack(ours, other),
    )
    smaller = list(_sizes(table, 0.1, 0.5))
    yield _tally(
        "DPP with smaller M tends to be better as p grows.",
        "p = 0.7, Hamming, F1 and accuracy loss: M = 10 % not above M = 50 % by more than three standard errors.",
        smaller,
        lambda ours, other: ours.mean <= other.mean + _slack(ours, other),
    )


def _sizes(table: _Found, small: float, large: float) -> Iterator[tuple[Figure, Figure]]:
    for (where, name, data, share, noise, cost), figure in table.by_place.items():
        if (where, name, share, noise) == ("noise", "DPP", small, 0.7) and cost != "rank_published":
            other = table.by_place.get((where, name, data, large, noise, cost))
            if other is not None:
                yield figure, other


def _drift(table: _Found) -> Iterator[Claim]:
    for name in ("PBC", "PBT"):
        yield _tally(
            f"{name} improves significantly on a regressor that neglects the drift.",
            "Each set, M and cost: lower than None by more than three standard errors.",
            table.pairs("basis", f"CS-DPP-{name}", "CS-DPP-None"),
            lambda ours, other: ours.mean < other.mean - _slack(ours, other),
        )
    yield _tally(
        "PBT is close to the exact PBC.",
        "Each set, M and cost: within 0.02 or three standard errors.",
        table.pairs("basis", "CS-DPP-PBT", "CS-DPP-PBC"),
        lambda ours, other: abs(ours.mean - other.mean) <= max(0.02, _slack(ours, other)),
    )


def _costs(table: _Found) -> Iterator[Claim]:
    for other in ("DPP", "O-CS", "O-RAND"):
        yield _tally(
            f"CS-DPP is better than {other} on the cost that it is told.",
            "Each set, M and cost but Hamming: lower.",
            table.pairs("cost", "CS-DPP", other, _GUIDED),
            lambda ours, other: ours.mean < other.mean,
        )
    yield _tally(
        "With Hamming loss CS-DPP is DPP.",
        "Each set and M: equal within three standard errors.",
        table.pairs("cost", "CS-DPP", "DPP", ("hamming",)),
        lambda ours, other: abs(ours.mean - other.mean) <= _slack(ours, other) + 1e-12,
    )


def _orders(found: Sequence[Figure]) -> Iterator[Claim]:
    mine = [f for f in found if f.cell.experiment == "orders" and f.size > 1]
    for words, chosen in (
        ("The order of the labels matters little", mine),
        ("... and for M of at least 25 % of K", [f for f in mine if f.cell.share != 0.1]),
    ):
        wide = [f for f in chosen if f.deviation >= 0.01]
        theirs = [f.published.printed < 0.01 for f in chosen if f.published is not None]
        yield Claim(
            f"{words}: deviations are of the order of 0.001.",
            "Each set, M and cost: standard deviation over label orders below 0.01 "
            f"(in the paper's own table {sum(theirs)} of {len(theirs)}).",
            len(chosen) - len(wide),
            len(chosen),
            _NEARLY_ALL,
            tuple(f"{_place(f)} ({f.deviation:.3f})" for f in wide),
        )


#: Seconds of the paper's table 4.
_SECONDS = {
    "delicious-like": {"DPP-PBT": 21.49, "DPP-PBC": 140.77, "O-BR": 105.18},
    "eurlex-like": {"DPP-PBT": 60.81, "DPP-PBC": 10522.25, "O-BR": 4841.35},
}


def _speed(found: Sequence[Figure]) -> Iterator[Claim]:
    times = {
        (f.cell.data, f.cell.line.name): f.mean
        for f in found
        if f.cell.experiment == "large" and f.cell.cost == "ms_per_row"
    }
    yield from _ratios(times)
    for other in ("DPP-PBC", "O-BR"):
        cases = [(data, name) for data, name in times if name.startswith(other)]
        slower = [
            f"{data}{name.removeprefix(other)}"
            for data, name in cases
            if times.get((data, name.replace(other, "DPP-PBT")), np.inf) >= times[data, name]
        ]
        yield Claim(
            f"With many labels PBT is faster than {other}.",
            "Each stream and way of running: fewer CPU milliseconds a row.",
            len(cases) - len(slower),
            len(cases),
            1.0,
            tuple(slower),
        )


def _ratios(times: dict[tuple[str, str], float]) -> Iterator[Claim]:
    """How many times faster PBT is, against the paper's seconds."""
    for data, seconds in _SECONDS.items():
        for other in ("O-BR", "DPP-PBC"):
            wanted = seconds[other] / seconds["DPP-PBT"]
            ratios = {}
            for way in ("", ", one row at a time", ", one row at a time, dense", ", plain NumPy, dense"):
                ours, theirs = times.get((data, f"DPP-PBT{way}")), times.get((data, f"{other}{way}"))
                if ours and theirs:
                    ratios[way.removeprefix(", ") or "in blocks"] = theirs / ours
            single = [ratio for way, ratio in ratios.items() if way != "in blocks"]
            spelled = ", ".join(f"{ratio:.1f} ({way})" for way, ratio in ratios.items())
            yield Claim(
                f"{data.removesuffix('-like')}: PBT is {wanted:.1f} times as fast as {other}.",
                f"On the stand-in {spelled} times; counted: one row at a time.",
                sum(ratio >= wanted for ratio in single),
                len(single),
                1.0,
            )
