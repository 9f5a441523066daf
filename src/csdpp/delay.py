"""Answers that come late: what was predicted waits in a bounded buffer for its labels, paired by id.

`csdpp.evaluate.prequential` measures what the delay costs (``delay=``).
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.estimator import number, whole

__all__ = ["DelayBuffer", "Pending"]


@dataclass(frozen=True)
class Pending:
    """A row that waits for its labels: its id, what is kept of it, what was predicted, and when."""

    key: Hashable
    x: Any
    prediction: Any
    at: float


class DelayBuffer:
    """Rows that were predicted and wait for their labels, which come in any order, or never.

    Parameters
    ----------
    capacity : int, default 10000
        At most so many rows wait; when one more comes, the oldest is given up.
    max_age : float, optional
        Rows older than this are given up. Age is measured in the ``at`` of `put`: by default the number of rows
        put so far, else what you pass (seconds, say), which may not fall.

    Attributes
    ----------
    n_expired : int, rows given up
    n_unknown : int, answers to ids that were not waiting: given up, answered before, or never seen

    Examples
    --------
    >>> from csdpp import CSDPP
    >>> from csdpp.datasets import make_stream
    >>> stream = make_stream(100, 10, 6, rank=2, random_state=0)
    >>> model = CSDPP(2).partial_fit(stream.X[:50], stream.Y[:50])
    >>> waiting = DelayBuffer(capacity=20)
    >>> for i in (50, 51, 52):
    ...     gone = waiting.put(f"mail {i}", stream.X[i : i + 1], model.predict(stream.X[i : i + 1]))
    >>> for i in (52, 50, 7):  # the answers, as they come
    ...     pending = waiting.pop(f"mail {i}")
    ...     if pending is not None:
    ...         _ = model.partial_fit(pending.x, stream.Y[i : i + 1])
    >>> model.n_seen_, len(waiting), waiting.n_unknown
    (52, 1, 1)

    Notes
    -----
    O(1) a row, amortised. Memory: ``capacity`` rows, as you pass them. Not thread-safe.
    """

    def __init__(self, capacity: int = 10_000, max_age: float | None = None) -> None:
        whole("DelayBuffer", "capacity", capacity, "at least 1", lambda v: v >= 1)
        if max_age is not None:
            number("DelayBuffer", "max_age", max_age, "not negative", lambda v: v >= 0)
        self.capacity, self.max_age = int(capacity), max_age
        self.n_expired = self.n_unknown = 0
        self._waiting: dict[Hashable, Pending] = {}  # in the order in which they came
        self._put, self._now = 0, -np.inf

    def put(self, key: Hashable, x: Any, prediction: Any = None, *, at: float | None = None) -> list[Pending]:
        """Let a row wait for its labels; return those that are given up for it, the oldest first.

        An id that waits already is an error: a row would be lost in silence.
        """
        now = float(self._put) if at is None else float(at)
        if not now >= self._now:
            raise InvalidInput(f"DelayBuffer: at must not fall, got {at} after {self._now}; pass rows in order of time")
        if key in self._waiting:
            raise InvalidInput(f"DelayBuffer: ids must be their own, got {key!r:.80} twice; pop it before")
        expired = self.expire(now)
        if len(self._waiting) >= self.capacity:
            expired.append(self._waiting.pop(next(iter(self._waiting))))
            self.n_expired += 1
        self._waiting[key] = Pending(key, x, prediction, now)
        self._put, self._now = self._put + 1, now
        return expired

    def pop(self, key: Hashable) -> Pending | None:
        """The row whose answer came, which waits no longer; None, and counted, if there is no such row."""
        pending = self._waiting.pop(key, None)
        self.n_unknown += pending is None
        return pending

    def expire(self, now: float) -> list[Pending]:
        """Give up the rows that are too old at time ``now``; return them, the oldest first."""
        gone: list[Pending] = []
        if self.max_age is not None:
            for pending in self._waiting.values():
                if now - pending.at <= self.max_age:
                    break
                gone.append(pending)
            for pending in gone:
                del self._waiting[pending.key]
            self.n_expired += len(gone)
        return gone

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._waiting

    def __iter__(self) -> Iterator[Pending]:
        """Rows that wait, the oldest first."""
        return iter(self._waiting.values())

    # ---- files

    def state(self) -> dict[str, Any]:
        """All of it as plain values, fit for ``csdpp.persist.save(model, path, extra=...)``.

        >>> buffer = DelayBuffer(3)
        >>> _ = buffer.put("a", [1.0, 2.0])
        >>> DelayBuffer.from_state(buffer.state()).pop("a").x
        [1.0, 2.0]
        """
        waiting = [[p.key, p.x, p.prediction, p.at] for p in self]
        return {"capacity": self.capacity, "max_age": self.max_age, "waiting": waiting, **self._counts()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The buffer that `state` describes."""
        try:
            buffer = cls(state["capacity"], state["max_age"])
            for name in buffer._counts():
                setattr(buffer, name, type(getattr(buffer, name))(state[name]))
            buffer._waiting = {key: Pending(key, x, prediction, at) for key, x, prediction, at in state["waiting"]}
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidParameter(
                f"DelayBuffer: state must be what `state` gave, and is not ({error!r:.80})"
            ) from None
        return buffer

    def _counts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("n_expired", "n_unknown", "_put", "_now")}
