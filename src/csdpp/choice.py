"""Several engines side by side, each learning every row; the one with the lowest running cost answers.

This is what ``regularization="auto"`` and `csdpp.tuning.OnlineTuner` run on. The choice for a row is made from the
costs of the rows before it, so it depends on nothing but their order; what was predicted is what a user of the
leader of that moment would have seen.
"""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from csdpp.costs import Cost, StreamCost
from csdpp.interrupts import Interrupts

Array = NDArray[Any]
#: Rows that the engines learn in turn.
_ROWS = 1024
#: Size of the numbers that needs no scaling, within a factor of 8 ** 0.5: as in [0, 1], or of variance 1.
_USUAL = 0.5
#: Of the factor 8 by which features are scaled.
_LARGEST_POWER = 20


class ChoosingEngine:
    """An engine made of candidates (docs/tuning.md).

    Parameters
    ----------
    engines : list of Engine, the preferred first: it leads until another is better
    cost : Cost
        By which they are compared; rows of which no label is known cost nothing.
    patience : int or None
        After so many rows the worst candidate is dropped, after twice as many the next, and so on until one is
        left. None: nobody is dropped.
    halving : bool
        Drop not one but half of them each time.
    forgetting : float
        In (0, 1]: the running costs fade by this factor a row.
    scaled : bool
        Multiply the features by the power of 8 that brings the median size of the numbers in the first row that
        has any near 0.5. No digit is lost.

    Attributes
    ----------
    live : list of int, the candidates still learning, by their place in ``engines`` as given
    sums : array (C,), running costs; of the dropped, as they were when they were dropped
    rows : array (C,), rows that the sums are of, fading alike

    Notes
    -----
    Time and memory: the sum over the candidates that are left; O(K) a row and candidate for the comparison.
    """

    def __init__(
        self,
        engines: list[Any],
        cost: Cost,
        *,
        patience: int | None,
        forgetting: float = 1.0,
        scaled: bool = False,
        halving: bool = False,
    ) -> None:
        self.halving = halving
        self.engines, self.cost, self.forgetting, self.scaled = engines, cost, forgetting, scaled
        self.live = np.arange(len(engines))
        self.leading = 0
        self.sums, self.rows = np.zeros(len(engines)), np.zeros(len(engines))
        self.done = 0
        self.next_drop = 0 if patience is None else patience
        self.scale = 0.0  # of the features; 0: not known yet
        self.counts = np.zeros((len(engines), 3, engines[0].K), np.int64)  # for a cost of the whole stream

    # ---- the one that answers

    @property
    def leader(self) -> Any:
        """The engine with the lowest running cost."""
        return self.engines[int(np.flatnonzero(self.live == self.leading)[0])]

    @property
    def K(self) -> int:
        """Labels."""
        return int(self.leader.K)

    @property
    def dtype(self) -> Any:
        """Of the arithmetic."""
        return self.leader.dtype

    @property
    def regressor(self) -> Any:
        """That of the leader; it knows scaled features."""
        return self.leader.regressor

    @property
    def calibration(self) -> Any:
        """That of the leader."""
        return self.leader.calibration

    @property
    def weights(self) -> Array:
        """W of the leader (d, p), for features as they come; a copy."""
        W: Array = self.leader.weights
        W[: len(W) - self.leader.intercept] *= self._factor
        return W

    @property
    def regularization(self) -> float:
        """Lambda of the leader, for features as they come."""
        return float(self.leader.regularization / self._factor**2)

    @property
    def averages(self) -> Array:
        """Mean running cost of each candidate (C,); of the dropped, when they were dropped; 0 before the first row."""
        return self.sums / np.maximum(self.rows, 1.0)

    @property
    def adjustable(self) -> dict[str, Any]:
        """See `Engine`."""
        current: dict[str, Any] = self.leader.adjustable
        return current

    def adjust(self, **changed: Any) -> None:
        """See `Engine`."""
        for engine in self.engines:
            engine.adjust(**changed)

    def scores(self, X: Any) -> Array:
        """See `Engine`."""
        out: Array = self.leader.scores(self._scaled(X))
        return out

    def predict(self, X: Any) -> Array:
        """See `Engine`."""
        out: Array = self.leader.predict(self._scaled(X))
        return out

    def top(self, X: Any, k: int, chances: bool) -> tuple[Array, Array]:
        """See `Engine`."""
        out: tuple[Array, Array] = self.leader.top(self._scaled(X), k, chances)
        return out

    # ---- labels and features that come and go

    def add_labels(self, count: int, M: Any) -> None:
        """See `Engine`. M: of all, or a list of what each has."""
        for engine, size in self._sized(M):
            engine.add_labels(count, size)
        self.counts = np.pad(self.counts, ((0, 0), (0, 0), (0, count)))

    def add_features(self, count: int) -> None:
        """See `Engine`."""
        for engine in self.engines:
            engine.add_features(count)

    def drop_labels(self, places: Array, M: Any) -> None:
        """See `Engine`. M: of all, or a list of what each has."""
        for engine, size in self._sized(M):
            engine.drop_labels(places, size)
        self.counts = np.delete(self.counts, places, axis=2)

    def _sized(self, M: Any) -> Any:
        return zip(self.engines, M if isinstance(M, list) else [M] * len(self.engines), strict=True)

    def drop_features(self, places: Array) -> None:
        """See `Engine`."""
        for engine in self.engines:
            engine.drop_features(places)

    # ---- learning

    def learn(
        self, X: Any, Y: Any, record: bool = False, chances: Array | None = None, known: Array | None = None
    ) -> tuple[Array, Array]:
        """See `Engine`. Where a candidate fails, none has learned."""
        self._find_scale(X)
        X = self._scaled(X)
        for engine in self.engines:
            engine.check_magnitude(X)
        before = self._copy_of_all() if self._may_fail else None
        step = self._step()
        parts = [slice(start, min(start + step, X.shape[0])) for start in range(0, X.shape[0], step)]
        Y_hat = np.empty(Y.shape, np.bool_)
        bound = np.empty((len(Y_hat) if record else 0, 2))
        try:
            with Interrupts(wait=before is None) as interrupts:
                for part in parts:
                    some, told = (None if array is None else array[part] for array in (chances, known))
                    self._learn_part(X[part], Y[part], told, Y_hat[part], bound[part], some)
                    interrupts.check(part.stop)
        except BaseException:
            if before is not None:
                vars(self).update(before)
            raise
        return Y_hat, bound

    @property
    def _may_fail(self) -> bool:
        """Whether functions of the user's are called on the way."""
        costs = [self.cost, *(engine.cost for engine in self.engines if hasattr(engine, "cost"))]
        return any(cost._kind < 0 for cost in costs) or any(vars(e).get("schedule") for e in self.engines)

    def _copy_of_all(self) -> dict[str, Any]:
        """Without the user's functions: they stay who they are."""
        theirs = [self.cost, *(vars(e).get(name) for e in self.engines for name in ("cost", "schedule"))]
        return copy.deepcopy(vars(self), {id(part): part for part in theirs})

    def _step(self) -> int:
        """Whole blocks, so that cutting changes no bit."""
        block = self.regressor.rows_per_block(self.leader.block_size)
        return max(1, _ROWS // block) * block

    def _learn_part(
        self, X: Any, Y: Any, known: Array | None, Y_hat: Array, bound: Array, chances: Array | None
    ) -> None:
        record = len(bound) > 0
        P: list[Any] = [None if chances is None else np.empty_like(chances) for _ in self.engines]
        answers = [engine.learn(X, Y, record, p, known) for engine, p in zip(self.engines, P, strict=True)]
        truth = Y.toarray() if sparse.issparse(Y) else Y
        given = zip(self.live.tolist(), answers, strict=True)
        losses = np.column_stack([self._losses(place, truth, labels, known) for place, (labels, _) in given])
        leaders, left = self._follow(losses)
        for place in np.unique(leaders):
            rows = leaders == place
            Y_hat[rows] = answers[place][0][rows]
            if record:
                bound[rows] = answers[place][1][rows]
            if chances is not None:
                chances[rows] = P[place][rows]
        self.keep(left)

    def stand_in(self, places: Array, count: int) -> None:
        """Be what is left of ``count`` candidates: the engines are those of the candidates ``places``, which rise."""
        self.live, self.leading = places, int(places[0])
        self.sums, self.rows = np.zeros(count), np.zeros(count)
        self.counts = np.zeros((count, *self.counts.shape[1:]), np.int64)

    def keep(self, places: Array) -> None:
        """Drop all engines but those of the candidates ``places``, which rise."""
        self.engines = [engine for engine, place in zip(self.engines, self.live, strict=True) if place in places]
        self.live = places

    def _losses(self, candidate: int, Y: Array, Y_hat: Array, known: Array | None) -> Array:
        """What each row adds to the running cost of a candidate."""
        if not isinstance(self.cost, StreamCost):
            losses: Array = self.cost.loss(Y, Y_hat, known)
            return losses
        counts = self.counts[candidate]
        shares = self.cost._shares(counts, self.done, Y, Y_hat, known)
        if known is not None:
            Y, Y_hat = Y & known, Y_hat & known
        counts += [np.count_nonzero(a, axis=0) for a in (Y & Y_hat, Y_hat, Y)]
        return shares

    def _follow(self, losses: Array) -> tuple[Array, Array]:
        """The leader at each row, as a place among the engines, and the candidates that stay in the race."""
        racing = np.ones(len(self.live), bool)
        sums, rows = self.sums[self.live], self.rows[self.live]
        leaders = np.empty(len(losses), np.int64)
        for i, loss in enumerate(losses):
            if self.done == self.next_drop > 0 and racing.sum() > 1:
                for _ in range(racing.sum() // 2 if self.halving else 1):
                    means = np.where(racing, sums, -np.inf)
                    racing[len(means) - 1 - means[::-1].argmax()] = False  # the last of the worst
                self.next_drop *= 2
            leaders[i] = np.where(racing, sums, np.inf).argmin()
            sums[racing] = self.forgetting * sums[racing] + loss[racing]
            rows[racing] = self.forgetting * rows[racing] + 1.0
            self.done += 1
        self.sums[self.live], self.rows[self.live] = sums, rows
        self.leading = int(self.live[np.where(racing, sums, np.inf).argmin()])
        return leaders, self.live[racing]

    # ---- the scale of the features

    def _find_scale(self, X: Any) -> None:
        if not self.scaled or self.scale:
            return
        for i in range(X.shape[0]):
            row = X[[i]].data if sparse.issparse(X) else X[i]
            sizes = np.abs(row[row != 0].astype(np.float64))
            if len(sizes):
                power = np.round(-np.log2(np.median(sizes) / _USUAL) / 3)
                self.scale = float(8.0 ** np.clip(power, -_LARGEST_POWER, _LARGEST_POWER))
                return

    @property
    def _factor(self) -> float:
        return self.scale or 1.0

    def _scaled(self, X: Any) -> Any:
        return X if self._factor == 1.0 else X * self.dtype.type(self._factor)
