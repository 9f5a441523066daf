"""Runs in parallel, kept as they come, with the time that is left.

`mapped` is the only place that knows how runs are spread; whoever has another way (a cluster) passes it as ``spread``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from csdpp.datasets import REGISTRY, STAND_INS
from csdpp.experiments.spec import Run
from csdpp.experiments.store import Store
from csdpp.experiments.work import Outcome, execute

#: From a function and its arguments to its results, in any order.
Spread = Callable[[Callable[[Run], Outcome], Sequence[Run]], Iterable[Outcome]]


def mapped(jobs: int) -> Spread:
    """So many processes of one BLAS thread each; none of their own for one job."""

    def spread(function: Callable[[Run], Outcome], runs: Sequence[Run]) -> Iterable[Outcome]:
        if jobs == 1 or len(runs) < 2:
            return map(function, runs)
        from joblib import Parallel, delayed, parallel_config

        with parallel_config(backend="loky", n_jobs=jobs, inner_max_num_threads=1):
            outcomes: Iterable[Outcome] = Parallel(return_as="generator_unordered", pre_dispatch=2 * jobs)(
                delayed(function)(run) for run in runs
            )
        return outcomes

    return spread


def run_all(
    runs: Sequence[Run],
    store: Store,
    *,
    spread: Spread,
    tell: Callable[[str], object] = lambda line: None,
    function: Callable[[Run], Outcome] = execute,
) -> list[Outcome]:
    """Compute the runs that the store has not, and keep each as it comes; returns those that failed.

    What is timed comes last and one after another, so that nothing runs beside it.
    """
    known = store.keys()
    todo = [run for run in runs if run.key not in known]
    by_key = {run.key: run for run in todo}
    beside = sorted((run for run in todo if run.measure != "timed"), key=_place)
    alone = sorted((run for run in todo if run.measure == "timed"), key=_place)
    clock = Clock({run.key: work_of(run) for run in todo}, len(runs) - len(todo))
    failed = []
    tell(clock.line())
    for outcome in _chained(spread(function, beside), map(function, alone)):
        if outcome.error is None:
            store.add(by_key[outcome.key], outcome)
        else:
            failed.append(outcome)
        clock.done(outcome.key)
        tell(clock.line())
    tell("")
    return failed


def _chained(first: Iterable[Outcome], second: Iterable[Outcome]) -> Iterator[Outcome]:
    yield from first
    yield from second


def _place(run: Run) -> tuple[Any, ...]:
    """Heavy sets first; runs that share a prepared set follow each other."""
    entry = STAND_INS[run.data].model if run.data in STAND_INS else REGISTRY[run.data]
    size = float(entry.N) * entry.d * entry.K
    return (-size, run.data, run.repeat, run.order or 0, run.noise, -work_of(run), run.key)


def work_of(run: Run) -> float:
    """Nominal operations of a run, for the time left: the ridge, and the directions where they move."""
    entry = STAND_INS[run.data].model if run.data in STAND_INS else REGISTRY[run.data]
    n = float(run.rows or entry.N)
    M = 0.0 if run.share is None else run.share * entry.K if isinstance(run.share, float) else float(run.share)
    per_row = 4e3 + 50.0 * entry.K + 2.0 * entry.d * (entry.K if M == 0 else M)
    if '"gradient"' not in run.options:
        per_row += 2.0 * entry.d**2
    if run.learner in ("published", "defaults", "literal"):
        per_row += 2.0 * M**2 * entry.K + 10.0 * M * entry.K
    return n * per_row * (100.0 if run.learner == "chain" else 1.0)


class Clock:
    """How much is done, and how long the rest will take at the speed so far."""

    def __init__(self, work: dict[str, float], known: int) -> None:
        self.work, self.known, self.count = dict(work), known, len(work)
        self.total = self.left = sum(work.values())
        self.start = time.monotonic()

    def done(self, key: str) -> None:
        """A run is over."""
        self.left = max(0.0, self.left - self.work.pop(key, 0.0))

    def line(self) -> str:
        """One line of it."""
        finished, spent = self.count - len(self.work), time.monotonic() - self.start
        text = f"{finished + self.known:,} of {self.count + self.known:,} runs"
        if finished and self.left < self.total:
            rest = spent * self.left / (self.total - self.left)
            text += f", {minutes(spent)} spent, about {minutes(rest)} left"
        return text


def minutes(seconds: float) -> str:
    """As 3:05 or 1:02:03.

    Examples
    --------
    >>> minutes(185), minutes(3723)
    ('3:05', '1:02:03')
    """
    whole, rest = divmod(round(seconds), 60)
    hours, whole = divmod(whole, 60)
    return f"{hours}:{whole:02}:{rest:02}" if hours else f"{whole}:{rest:02}"


def teller(shown: bool) -> Callable[[str], object]:
    """Says lines on stderr: over each other on a terminal, where "" wipes the last; else one every ten seconds."""
    terminal = sys.stderr.isatty()
    last = [float("-inf")]

    def tell(line: str) -> None:
        now = time.monotonic()
        if not shown or (line and now - last[0] < (0.1 if terminal else 10.0)) or not (line or terminal):
            return
        last[0] = now
        print(f"\r{line:<78}\r" if terminal else line, end="" if terminal else "\n", file=sys.stderr, flush=True)

    return tell


def usable_cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
