"""Prequential evaluation: every row is predicted first and learned afterwards (section 5 of the paper).

`prequential` runs a learner over a stream and gives a `PrequentialResult`: running average costs, scikit-learn's
figures, and the two terms of the paper's bound. `scorer` makes a cost a scikit-learn scorer.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer

from csdpp.baselines import OnlineBinaryRelevance
from csdpp.costs import Cost, StreamCost, resolve_cost
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.estimator import OnlineClassifier, whole
from csdpp.learner import CSDPP
from csdpp.progress import ProgressBar
from csdpp.results import PrequentialResult
from csdpp.targets import Targets, as_matrix, indicators, is_matrix

__all__ = ["PrequentialResult", "prequential", "scorer", "choose_checkpoints", "BOUND_TERMS"]

Array = NDArray[Any]
#: Curves that `prequential` adds with ``bound=True``. The cost of a row is at most their sum where Lemma 2 holds.
BOUND_TERMS = ("prediction_error", "reconstruction_error")

_WHO = "prequential"
_PATIENCE = 0.1  # seconds that a step of single rows may take
_CURVE = 1000  # checkpoints, unless asked for
_CELLS, _ROWS = 2**20, 2**12  # in one call of a learner: bounds memory, and the wait for the bar to move


def prequential(
    model: Any,
    X: Any,
    Y: Any,
    costs: Any = ("hamming", "f1", "accuracy", "rank"),
    *,
    checkpoints: Any = None,
    batch_size: int = 1,
    delay: Any = 0,
    classes: Any = None,
    bound: bool = False,
    keep_losses: bool = False,
    progress: bool | None = None,
    label_names: Any = None,
    mask: Any = None,
) -> PrequentialResult:
    """Predict, then learn, row by row over a stream; what was predicted is measured against what came.

    Parameters
    ----------
    model : learner
        One of this package: fresh or with a past, and afterwards it has learned the stream. Or any object with
        ``predict`` and ``partial_fit`` on 0/1 indicators.
    X : array-like, CSR or frame of shape (n, d)
    Y : 0/1 indicators of shape (n, K): array-like, sparse or a frame
    costs : names or `csdpp.costs.Cost`, one or several
    checkpoints : int or array of t, optional
        Where the curves are recorded: so many evenly spaced, or after these numbers of rows. By default
        everywhere in up to 1000 rows, else at 1000 places.
    batch_size : int, default 1
        Rows that are predicted before the first of them is learned.
    delay : int or array of n, default 0
        The labels of row t are learned once row t + delay has been predicted; with an array each row has a delay of
        its own, so that answers come in any order. Infinity: never. After the last row, what is still to come (but
        not never) is learned in its order. Needs ``batch_size=1``.
    classes : optional
        For the first ``partial_fit`` of a model from elsewhere, such as ``[[0, 1]] * K`` for scikit-learn's
        ``MultiOutputClassifier``.
    bound : bool
        Also record the two terms that bound the cost, as the curves "prediction_error" and
        "reconstruction_error". See the notes.
    keep_losses : bool
        Keep the losses of every row.
    progress : bool, optional
        A progress bar on stderr; by default if that is a terminal.
    label_names : sequence of K, optional
        Defaults to the columns of a frame, else to what the model calls the labels.
    mask : dense array (n, K), optional
        True where a label of Y is known, as in ``partial_fit``; NaN in Y is not known either. Every figure is of what
        is known, and rows of which nothing is count for none. Models from elsewhere are given Y as it is.

    Returns
    -------
    PrequentialResult

    Examples
    --------
    >>> import numpy as np
    >>> from csdpp import OnlineBinaryRelevance
    >>> X = np.eye(4).repeat(50, axis=0)
    >>> Y = (X[:, :3] > 0).astype(int)
    >>> result = prequential(OnlineBinaryRelevance(), X, Y, "hamming", checkpoints=[100, 200])
    >>> result.curves["hamming"]
    array([0.013, 0.01 ])

    Notes
    -----
    Our learners run through their own ``prequential``, in pieces that bound the memory and change no bit of the
    result. They predict every label before anything is learned. A model from elsewhere is given slices of X
    and Y as they are; if its first ``predict`` raises scikit-learn's ``NotFittedError``, its first batch counts
    as predicted without any label.

    The bound (theorems 1 and 3). With y' = C y - o, C = diag(sqrt(delta)), the scores are s = o + P' z, and

        c(y, y_hat) = sum_k delta_k [y_k != y_hat_k]            (Lemma 2)
                   <= |C y - s|^2 = |y' - P' z|^2               (a wrong sign is at least sqrt(delta_k) off)
                    = |z - P y'|^2 + |(I - P'P) y'|^2           (rows of P orthonormal).

    ``decode="expected"`` has s = o + Q' S z, S = diag(keep) with 0 <= keep <= 1. Then |y' - Q' S z|^2
    <= |S^(1/2) (z - Q y')|^2 + y'(I - Q' S Q) y', as the difference is z'(S - S^2) z >= 0: for S = diag(sigma)
    that is Jensen's inequality, the right side being the expectation over Lemma 1's P. So the bound holds row
    by row for Hamming under any weighting, and for another cost that ``model`` has itself, with
    ``weighting="ordered"`` or "shapley", to which Lemma 2 applies.

    A cost of the whole stream, "micro_f1" or "macro_f1", is measured over the first t rows; what is kept as the loss
    of row t is t times that less (t - 1) times the one before, whose mean it is again.

    If the learner fails amid the stream, it has learned the rows before.

    Measuring takes O(K) a row for each cost.
    """
    named = _named_costs(costs)
    _check_call(model, Y, batch_size, bound)
    X, Y = _sliceable(X), _sliceable(Y)
    ours = isinstance(model, OnlineClassifier)
    known = ours and model.__sklearn_is_fitted__()
    if known and X.shape[:1] == Y.shape[:1]:
        model.prequential(_cut(X, slice(0, 0)), _cut(Y, slice(0, 0)))  # which grows by the columns that are new
    targets = model._targets if known else Targets.learn(_WHO, Y)
    truth, known = targets.read(Y, mask)
    given = truth if known is None else np.where(known, _dense(truth), np.nan)
    n, K = truth.shape
    if X.shape[:1] != (n,):
        raise InvalidInput(f"{_WHO}: X and Y must have as many rows, got shapes {X.shape} and {truth.shape}")
    names = np.asarray(targets.classes if label_names is None else label_names)
    if names.shape != (K,):
        raise InvalidInput(f"{_WHO}: label_names must name the {K} columns of Y, got shape {names.shape}")
    delays = _delays(delay, batch_size, bound, n)
    tally = _Tally(named, choose_checkpoints(_WHO, checkpoints, n, _CURVE), n, K, bound, keep_losses)

    with ProgressBar(n, progress) as bar:
        if ours:  # no rows yet: a fresh model takes note of features and labels, their names and types
            model.prequential(_cut(X, slice(0, 0)), _cut(Y, slice(0, 0)))
        if delays is not None:
            steps = _late_steps(model, X, given if ours else Y, truth.shape, delays, classes)
        elif ours and batch_size == 1:
            steps = _own_steps(model, X, given, bound)
        else:
            steps = _other_steps(model, X, given if ours else Y, truth.shape, batch_size, classes)
        for part, Y_hat, terms, seconds in steps:
            tally.add(part, _dense(truth[part]), None if known is None else known[part], Y_hat, terms, seconds)
            bar.update(part.stop, *tally.running())
    return tally.result(" ".join(repr(model).split()), names)


def scorer(cost: Any) -> Any:
    """Minus the mean cost, as a scikit-learn scorer: greater is better.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from csdpp import OnlineBinaryRelevance
    >>> X = np.random.default_rng(0).standard_normal((200, 4))
    >>> Y = (X[:, :3] > 0).astype(int)
    >>> scores = cross_val_score(OnlineBinaryRelevance(), X, Y, scoring=scorer("hamming"), cv=4)
    >>> scores.shape, bool((scores > -0.2).all())
    ((4,), True)
    """
    return make_scorer(_mean_cost, greater_is_better=False, cost=resolve_cost(cost))


def choose_checkpoints(who: str, checkpoints: Any, n: int, default: int) -> NDArray[np.int64]:
    """Numbers of rows in 1..n, rising: evenly spaced if a number of them is given, else as they are.

    >>> choose_checkpoints("example", 4, 10, 1000)
    array([ 2,  5,  7, 10])
    """
    if checkpoints is None or isinstance(checkpoints, int | np.integer):
        count = default if checkpoints is None else checkpoints
        whole(who, "checkpoints", count, "at least 1, or rows", lambda v: v >= 1)
        count = min(int(count), n)
        return np.arange(1, count + 1, dtype=np.int64) * n // max(count, 1)
    places = np.asarray(checkpoints)
    fine = places.ndim == 1 and (places.size == 0 or places.dtype.kind in "iu")
    if not fine or (np.diff(places, prepend=0) < 1).any() or (places > n).any():
        raise InvalidParameter(
            f"{who}: checkpoints must be a number of them, or whole numbers of rows rising within 1..{n}, "
            f"got {checkpoints!r}"
        )
    return places.astype(np.int64)


# ---- running the learner: each step gives the rows it took, predictions, bound terms and seconds

Step = tuple[slice, Array, Array | None, float]


def _own_steps(model: Any, X: Any, truth: Any, bound: bool) -> Iterator[Step]:
    """Our learners, cut at ends of their own blocks, so that the cuts change no bit; one block to begin with."""
    n, K = truth.shape
    block = model._engine.regressor.rows_per_block(int(model.block_size))
    rows = max(1, min(_ROWS, _CELLS // max(K, X.shape[1])) // block) * block
    for part in _parts(n, rows, first=block):
        start = time.perf_counter()
        out = model.prequential(_cut(X, part), truth[part], return_bound=bound)
        seconds = time.perf_counter() - start
        labels, terms = out if bound else (out, None)
        yield part, _dense(labels).astype(np.bool_), terms, seconds


def _other_steps(model: Any, X: Any, Y: Any, shape: tuple[int, int], size: int, classes: Any) -> Iterator[Step]:
    """Any learner, a batch at a time; many short batches make one step."""
    first = {} if classes is None else {"classes": classes}
    begin, seconds, answers = 0, 0.0, []
    for part in _parts(shape[0], size, first=size):
        start = time.perf_counter()
        x = _cut(X, part)
        try:
            labels = model.predict(x)
        except NotFittedError:
            if part.start:
                raise
            labels = np.zeros((part.stop, shape[1]))
        model.partial_fit(x, _cut(Y, part), **first)
        seconds += time.perf_counter() - start
        first = {}
        answers.append(_predicted(labels, (part.stop - part.start, shape[1])))
        if begin == 0 or seconds > _PATIENCE or part.stop - begin >= _ROWS or part.stop == shape[0]:
            yield slice(begin, part.stop), np.vstack(answers), None, seconds
            begin, seconds, answers = part.stop, 0.0, []


def _late_steps(model: Any, X: Any, Y: Any, shape: tuple[int, int], delays: Array, classes: Any) -> Iterator[Step]:
    """Any learner, a row at a time; after each prediction those rows are learned whose answers are there."""
    n, more = shape[0], {} if classes is None else {"classes": classes}
    arrival = np.arange(n) + delays
    order = np.argsort(arrival, kind="stable")
    order, begin, come = order[np.isfinite(arrival[order])], 0, 0
    seconds, answers = 0.0, []
    for t in range(n):
        start = time.perf_counter()
        try:
            labels = model.predict(_cut(X, slice(t, t + 1)))
        except NotFittedError:
            if come:
                raise
            labels = np.zeros((1, shape[1]))
        while come < len(order) and (arrival[order[come]] <= t or t == n - 1):
            row = slice(int(order[come]), int(order[come]) + 1)
            model.partial_fit(_cut(X, row), _cut(Y, row), **({} if come else more))
            come += 1
        seconds += time.perf_counter() - start
        answers.append(_predicted(labels, (1, shape[1])))
        if begin == 0 or seconds > _PATIENCE or t + 1 - begin >= _ROWS or t + 1 == n:
            yield slice(begin, t + 1), np.vstack(answers), None, seconds
            begin, seconds, answers = t + 1, 0.0, []


def _predicted(labels: Any, shape: tuple[int, int]) -> Array:
    matrix = as_matrix(labels)
    if matrix.shape != shape:
        raise InvalidInput(
            f"{_WHO}: predict must return 0/1 indicators of shape {shape}, got shape {matrix.shape}; "
            "wrap the model so that it does"
        )
    return _dense(indicators(f"{_WHO}: predict", matrix)).astype(np.bool_)


# ---- measuring


class _Tally:
    """All that is counted. Sums go from row to row in one order: how the rows come in pieces changes no bit."""

    def __init__(
        self, costs: dict[str, Cost], checkpoints: NDArray[np.int64], n: int, K: int, bound: bool, keep: bool
    ) -> None:
        self.costs, self.checkpoints, self.n = costs, checkpoints, n
        self.averaged = [*costs, *(BOUND_TERMS if bound else ())]
        samples = ["precision_samples", "recall_samples", "f1_samples", "subset_accuracy"]
        self.columns = [*self.averaged, *samples]
        self.sums = np.zeros(len(self.columns))
        self.curves = np.empty((len(checkpoints), len(self.averaged)))
        self.rows = np.empty((n if keep else 0, len(self.averaged)))
        self.counts = np.zeros((4, K), np.int64)  # tp, predicted, relevant, known
        self.counted = 0  # rows of which anything is known
        self.done, self.seconds, self.first = 0, 0.0, (0, 0.0)

    def add(
        self, part: slice, Y: Array, known: Array | None, Y_hat: Array, terms: Array | None, seconds: float
    ) -> None:
        """Take in the rows of ``part``."""
        losses = [self._losses(cost, Y, Y_hat, known) for cost in self.costs.values()]
        if known is None:
            known = np.ones(Y.shape, np.bool_)
        else:
            Y, Y_hat = Y & known, Y_hat & known
        told: Any = known.any(axis=1)
        both = Y & Y_hat
        samples = _precision_recall_f1(*(np.count_nonzero(a, axis=1) for a in (both, Y_hat, Y)))
        exact = (Y_hat == Y).all(axis=1)
        bound = () if terms is None else terms.T
        values = np.column_stack([*losses, *bound, *samples.values(), exact]) * told[:, None]
        counted = self.counted + np.concatenate(([0], np.cumsum(told)))
        running = np.cumsum(np.vstack([self.sums, values]), axis=0)
        inside = (self.checkpoints > part.start) & (self.checkpoints <= part.stop)
        t = self.checkpoints[inside]
        kept = len(self.averaged)
        self.curves[inside] = running[t - part.start, :kept] / np.maximum(counted[t - part.start], 1)[:, None]
        if len(self.rows):
            self.rows[part] = np.where(told[:, None], values[:, :kept], np.nan)
        self.counts += [np.count_nonzero(a, axis=0) for a in (both, Y_hat, Y, known)]
        self.counted = int(counted[-1])
        if part.start == 0:
            self.first = part.stop, seconds
        self.sums, self.done, self.seconds = running[-1], part.stop, self.seconds + seconds

    def _losses(self, cost: Cost, Y: Array, Y_hat: Array, known: Array | None) -> Array:
        if isinstance(cost, StreamCost):
            return cost._shares(self.counts[:3], self.counted, Y, Y_hat, known)
        losses: Array = cost.loss(Y, Y_hat, known)
        return losses

    def running(self) -> tuple[str, float]:
        """The name of the first cost and its average so far."""
        return (self.averaged[0], float(self.sums[0] / max(self.counted, 1))) if self.averaged else ("", 0.0)

    def result(self, model: str, names: Array) -> PrequentialResult:
        """All that was counted, as figures."""
        tp, predicted, relevant, told = self.counts
        label_figures = _precision_recall_f1(tp, predicted, relevant)
        pooled_figures = _precision_recall_f1(*self.counts[:3].sum(axis=1, keepdims=True))
        means = (self.sums / self.counted if self.counted else np.full(len(self.sums), np.nan)).tolist()
        # The first step may have had to compile: it counts for the speed only if there is no other.
        rows, seconds = self.first if self.first[0] < self.n else (0, 0.0)
        speed = (self.n - rows) / (self.seconds - seconds) if self.n else 0.0
        over_rows = dict(zip(self.columns, means, strict=True))
        scores = {}
        for name in label_figures:
            scores[f"{name}_samples"] = over_rows[f"{name}_samples"]
            scores[f"{name}_micro"] = float(pooled_figures[name][0])
            scores[f"{name}_macro"] = float(label_figures[name].mean())
        scores["subset_accuracy"] = over_rows["subset_accuracy"]
        counts = {"tp": tp, "fp": predicted - tp, "fn": relevant - tp, "tn": told - predicted - relevant + tp}
        return PrequentialResult(
            model=model,
            n_rows=self.n,
            seconds=self.seconds,
            rows_per_second=speed,
            averages={name: over_rows[name] for name in self.averaged},
            checkpoints=self.checkpoints,
            curves=dict(zip(self.averaged, self.curves.T.copy(), strict=True)),
            scores=scores,
            per_label={"label": names, "support": relevant, **counts, **label_figures},
            losses=dict(zip(self.averaged, self.rows.T.copy(), strict=True)) if len(self.rows) else {},
        )


def _precision_recall_f1(tp: Array, predicted: Array, relevant: Array) -> dict[str, Array]:
    return {
        "precision": _ratio(tp, predicted),
        "recall": _ratio(tp, relevant),
        "f1": _ratio(2 * tp, predicted + relevant),
    }


def _ratio(above: Array, below: Array) -> Array:
    """Quotients, 0/0 being 0."""
    out = np.zeros(np.shape(above))
    return np.divide(above, below, out=out, where=below > 0)


def _mean_cost(y_true: Any, y_pred: Any, cost: Cost) -> float:
    if not is_matrix(y_true):
        raise InvalidInput(
            f"scorer: Y must be 0/1 indicators of shape (n, K), got shape {np.shape(y_true)}; "
            "for 1-D classes use scikit-learn's own scorers"
        )
    return float(np.mean(cost.loss(y_true, y_pred)))


# ---- small things


def _named_costs(costs: Any) -> dict[str, Cost]:
    several = isinstance(costs, Iterable) and not isinstance(costs, str)
    found = [resolve_cost(cost) for cost in (costs if several else [costs])]
    named = {cost.name: cost for cost in found}
    clash = {name for name in named if name in BOUND_TERMS}
    if len(named) < len(found) or clash:
        raise InvalidParameter(
            f"{_WHO}: costs must have names of their own, got {[cost.name for cost in found]}; give yours another name"
        )
    return named


def _check_call(model: Any, Y: Any, batch_size: Any, bound: bool) -> None:
    if not (hasattr(model, "predict") and hasattr(model, "partial_fit")):
        raise InvalidParameter(
            f"{_WHO}: model must have predict and partial_fit, got {type(model).__name__}; use an online learner"
        )
    whole(_WHO, "batch_size", batch_size, "at least 1", lambda v: v >= 1)
    if bound and not (isinstance(model, CSDPP | OnlineBinaryRelevance) and batch_size == 1):
        raise InvalidParameter(
            f"{_WHO}: bound=True must go with CSDPP or OnlineBinaryRelevance and batch_size=1, "
            f"got {type(model).__name__} and batch_size={batch_size}; leave it out"
        )
    if not is_matrix(Y):
        raise InvalidInput(
            f"{_WHO}: Y must be 0/1 indicators of shape (n, K), got shape {np.shape(Y)}; "
            "turn classes into indicators with sklearn.preprocessing.label_binarize"
        )


def _delays(delay: Any, batch_size: int, bound: bool, n: int) -> Array | None:
    """Of each row (n,), or None where no answer is late."""
    try:
        given = np.asarray(delay, np.float64)
        good = given.shape in ((), (n,)) and bool((given >= 0).all() and (given[np.isfinite(given)] % 1 == 0).all())
    except (TypeError, ValueError):
        good = False
    if not good:
        raise InvalidParameter(
            f"{_WHO}: delay must be a whole number of rows, not negative, or one for each of the {n} rows (infinity: "
            f"never), got {delay!r:.80}"
        )
    if not given.any():
        return None
    if batch_size != 1 or bound:
        raise InvalidParameter(f"{_WHO}: delay must go with batch_size=1 and without the bound; leave one of them out")
    return np.broadcast_to(given, n)


def _parts(n: int, size: int, first: int) -> Iterator[slice]:
    if n:
        yield slice(0, min(first, n))
    for start in range(first, n, size):
        yield slice(start, min(start + size, n))


def _sliceable(A: Any) -> Any:
    """A frame as it is, CSR for sparse matrices, else an array."""
    if hasattr(A, "columns"):
        return A
    return A.tocsr() if sparse.issparse(A) else np.asarray(A)


def _cut(A: Any, part: slice) -> Any:
    return A.iloc[part] if hasattr(A, "iloc") else A[part]


def _dense(A: Any) -> Any:
    return A.toarray() if sparse.issparse(A) else A
