"""Decisions tuned on the stream: which chance is high enough for which label, for a cost.

`OnlineThresholds` stands between a learner and its user. What it costs and gains is measured in docs/scores.md.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from csdpp import persist
from csdpp._kernels import decide as kernels
from csdpp._kernels.weights import MARGINAL
from csdpp.costs import StreamCost, resolve_cost
from csdpp.costs._base import ALL
from csdpp.errors import DataFormatError, InvalidInput, InvalidParameter
from csdpp.estimator import OnlineClassifier, number

__all__ = ["OnlineThresholds"]

Array = NDArray[Any]
_KIND = "csdpp.decisions.OnlineThresholds"
_STATE = ("gains_", "places_", "memory_", "sums_", "counts_")


class OnlineThresholds:
    """A threshold for each label on the calibrated chances of a learner, tuned online for a cost.

    Beside every row that the learner learns, each label's gain is noted: what the row would have cost more, or less,
    without the label. The threshold of a label is where its gains so far add up to most. The learner's own decisions
    are kept in view: the one of the two with the lower running cost decides.

    Parameters
    ----------
    model : an online learner of this package, for (n, K) indicators
        Fresh or with a past; it is learned along.
    cost : str or Cost, optional
        Any cost of `csdpp.costs`; by default the learner's, or Hamming where it has none.
    forgetting : float, default 1.0
        In (0, 1]: gains and running costs fade by this factor a row.

    Attributes
    ----------
    thresholds_ : array (K,), chances from which on a label is predicted; above 1 - 1e-3 a label never is
    own_ : bool, whether the learner's own decisions are the better ones so far
    averages_ : array (2,), running costs with thresholds, and of the learner's own decisions

    Examples
    --------
    >>> from csdpp import OnlineBinaryRelevance
    >>> from csdpp.datasets import make_stream
    >>> stream = make_stream(2000, 20, 12, rank=4, random_state=0)
    >>> model = OnlineThresholds(OnlineBinaryRelevance(), "macro_f1")
    >>> Y_hat = model.prequential(stream.X, stream.Y)
    >>> tuned, own = 1 - model.averages_
    >>> bool(tuned > own + 0.1)
    True

    Notes
    -----
    O(K) a row beyond the learner, and 65 numbers a label. How rows are cut into calls changes nothing.
    """

    gains_: Array
    places_: Array
    memory_: Array
    sums_: Array
    counts_: Array
    n_seen_: int
    n_told_: int
    _names: Array

    def __init__(self, model: OnlineClassifier, cost: Any = None, *, forgetting: float = 1.0) -> None:
        if not isinstance(model, OnlineClassifier):
            raise InvalidParameter(
                f"OnlineThresholds: model must be an online learner of this package, got {type(model).__name__}"
            )
        number("OnlineThresholds", "forgetting", forgetting, "in (0, 1]", lambda v: 0 < v <= 1)
        self.model, self.forgetting = model, float(forgetting)
        self.cost = resolve_cost(getattr(model, "cost", "hamming") if cost is None else cost)

    # ---- learning

    def partial_fit(self, X: Any, Y: Any, *, mask: Any = None) -> Self:
        """Learn the rows of (X, Y) in order: the learner, and the thresholds beside it.

        Labels may be unknown (NaN, ``mask``), and come and go, as in the learner: what is not known gains nothing.
        """
        self.prequential(X, Y, mask=mask)
        return self

    def prequential(self, X: Any, Y: Any, *, mask: Any = None) -> Any:
        """Predict, then learn, row by row; return what was predicted for each row before it was learned."""
        own, P = self.model.prequential(X, Y, mask=mask, return_proba=True)
        truth, known = self.model._targets.read(Y, mask)
        truth, own = np.ascontiguousarray(_dense(truth)), _dense(own).astype(np.bool_)
        self._align()
        tuned = np.empty(truth.shape, np.bool_)
        self._run(P, truth, known, tuned)
        leads = self._follow(truth, known, tuned, own)
        return self.model._targets.format(np.where(leads[:, None], own, tuned))

    def _align(self) -> None:
        """Begin, or follow the labels that came and went in the learner."""
        names = self.model.classes_
        if not hasattr(self, "gains_"):
            self._start(len(names))
        elif not np.array_equal(self._names, names):
            self._follow_labels(names)
        self._names = names

    def _follow_labels(self, names: Array) -> None:
        """Those that stay are in their old order, and new ones come last."""
        # A label that went and came back is a new one: it stands behind labels that it stood before.
        K = len(self._names)
        place = {name: k for k, name in enumerate(self._names.tolist())}
        stay: list[int] = []
        for name in names.tolist():
            k = place.get(name, -1)
            if k < (stay[-1] + 1 if stay else 0):
                break
            stay.append(k)
        gone = np.setdiff1d(np.arange(K), stay)
        count = len(names) - (K - len(gone))
        self.gains_ = np.pad(np.delete(self.gains_, gone, axis=0), ((0, count), (0, 0)))
        places = np.delete(self.places_, gone)
        self.places_ = np.concatenate([places, np.full(count, kernels.MIDDLE)])
        self.counts_ = np.pad(np.delete(self.counts_, gone, axis=2), ((0, 0), (0, 0), (0, count)))
        memory = self.cost._fewer_labels(self.memory_, gone, K) if len(gone) else self.memory_
        self.memory_ = self.cost._more_labels(memory, count, self.sums_[1, 0]) if count else memory

    def _start(self, K: int) -> None:
        self.gains_ = np.zeros((K, kernels.BINS))
        self.places_ = np.full(K, kernels.MIDDLE)
        self.memory_ = self.cost._start(K)
        self.sums_ = np.zeros((2, 2))  # running costs and rows, faded, of the thresholds and of the learner
        self.counts_ = np.zeros((2, 3, K), np.int64)  # the same two, for a cost of the whole stream
        self.n_seen_ = self.n_told_ = 0  # rows, and rows of which anything was known

    def _run(self, P: Array, Y: Array, known: Array | None, Y_hat: Array) -> None:
        """Decide and learn; a user's cost is asked row by row."""
        delta = np.empty(Y.shape[1])
        known = np.empty((0, Y.shape[1]), np.bool_) if known is None else known
        if self.cost._kind >= 0:
            state = self.gains_, self.places_, self.memory_, self.n_seen_
            kernels.run_decisions(*state, self.cost._kind, P, Y, known, self.forgetting, delta, Y_hat)
            return
        for i in range(len(P)):
            kernels.decide_rows(self.places_, P[i : i + 1], Y_hat[i : i + 1])
            self.cost._known_weights_row(Y[i], Y_hat[i], known[i] if len(known) else ALL, MARGINAL, delta)
            done = self.n_seen_ + i + 1
            kernels.gain_row(self.gains_, self.places_, done, P[i], Y[i], delta, self.forgetting)

    def _follow(self, Y: Array, known: Array | None, tuned: Array, own: Array) -> Array:
        """Whether the learner's own decision counts, for each row by the rows before it."""
        losses = np.column_stack([self._losses(i, Y, Y_hat, known) for i, Y_hat in enumerate((tuned, own))])
        leads = np.empty(len(Y), np.bool_)
        told: Any = np.ones(len(Y), np.bool_) if known is None else known.any(axis=1)
        for i, loss in enumerate(losses):
            leads[i] = self.own_
            if told[i]:
                self.sums_[0] = self.forgetting * self.sums_[0] + loss
                self.sums_[1] = self.forgetting * self.sums_[1] + 1.0
        self.n_seen_ += len(Y)
        self.n_told_ += int(told.sum())
        return leads

    def _losses(self, place: int, Y: Array, Y_hat: Array, known: Array | None) -> Array:
        if not isinstance(self.cost, StreamCost):
            losses: Array = self.cost.loss(Y, Y_hat, known)
            return losses
        shares = self.cost._shares(self.counts_[place], self.n_told_, Y, Y_hat, known)
        if known is not None:
            Y, Y_hat = Y & known, Y_hat & known
        self.counts_[place] += [np.count_nonzero(a, axis=0) for a in (Y & Y_hat, Y_hat, Y)]
        return shares

    # ---- predicting

    def predict(self, X: Any) -> Any:
        """Labels in the format that Y had; nothing is learned."""
        if not hasattr(self, "gains_") or self.own_:
            return self.model.predict(X)
        self._align()
        P = self.model.predict_proba(X)
        Y_hat = np.empty(P.shape, np.bool_)
        kernels.decide_rows(self.places_, P, Y_hat)
        return self.model._targets.format(Y_hat)

    def predict_proba(self, X: Any) -> Array:
        """The learner's chances (n, K)."""
        return self.model.predict_proba(X)

    @property
    def own_(self) -> bool:
        """Whether the learner's own decisions are the better ones so far."""
        return bool(self.sums_[0, 1] <= self.sums_[0, 0])

    @property
    def averages_(self) -> Array:
        """Running costs (2,): with thresholds, and of the learner's own decisions."""
        averages: Array = self.sums_[0] / np.maximum(self.sums_[1], 1.0)
        return averages

    @property
    def thresholds_(self) -> Array:
        """Chances (K,) from which on a label is predicted."""
        odds = (self.places_ - kernels.MIDDLE) / kernels.WIDTH
        thresholds: Array = np.where(self.places_ == 0, 0.0, 1.0 / (1.0 + np.exp(-odds)))
        return thresholds

    # ---- files

    def save(self, path: Any) -> None:
        """Write learner and thresholds into one file (`csdpp.persist.save`), which is also one of the learner alone."""
        state: dict[str, Any] = {}
        if hasattr(self, "gains_"):
            self._align()
            state = {name: getattr(self, name) for name in _STATE}
        about = {"kind": _KIND, "cost": self.cost.name, "forgetting": self.forgetting}
        persist.save(
            self.model,
            path,
            extra=about | {"rows": getattr(self, "n_seen_", 0), "told": getattr(self, "n_told_", 0), "state": state},
        )

    @classmethod
    def load(cls, path: Any, *, cost: Any = None, **given: Any) -> Self:
        """What `save` wrote; it goes on to the bit. ``cost`` and ``given`` are functions that no file can hold."""
        extra = persist.inspect(path)["extra"]
        if not isinstance(extra, dict) or extra.get("kind") != _KIND:
            raise DataFormatError(
                f"{path}: must be written by OnlineThresholds.save, and is not; use csdpp.persist.load"
            )
        loaded = cls(persist.load(path, **given), extra.get("cost") if cost is None else cost)
        if loaded.cost.name != extra.get("cost"):
            raise InvalidParameter(
                f"{path}: cost must be the one called {extra.get('cost')!r:.80}, got {loaded.cost!r}"
            )
        number(f"{path}", "forgetting", extra.get("forgetting"), "in (0, 1]", lambda v: 0 < v <= 1)
        loaded.forgetting = extra["forgetting"]
        if extra.get("state"):
            loaded._restore(str(path), extra["state"], extra.get("rows"), extra.get("told"))
        return loaded

    def _restore(self, path: str, state: Any, rows: Any, told: Any) -> None:
        """Arrays of a file, where they are what `_start` would make."""
        self._align()
        for name in _STATE:
            fresh, saved = getattr(self, name), state.get(name) if isinstance(state, dict) else None
            if not isinstance(saved, np.ndarray) or (saved.shape, saved.dtype) != (fresh.shape, fresh.dtype):
                raise DataFormatError(
                    f"{path}: the thresholds do not fit the model; the file was not written by `save`"
                )
            setattr(self, name, saved)
        if type(rows) is not int or type(told) is not int or not 0 <= told <= rows:
            raise DataFormatError(f"{path}: rows must be counted, got {rows!r:.80} and {told!r:.80}")
        self.n_seen_, self.n_told_ = rows, told


def _dense(Y: Any) -> Any:
    if hasattr(Y, "toarray"):
        return Y.toarray()
    array = np.asarray(Y)
    if array.ndim != 2:
        raise InvalidInput(f"OnlineThresholds: Y must be (n, K) indicators, got shape {array.shape}")
    return array
