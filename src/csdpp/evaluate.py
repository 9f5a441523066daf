"""Prequential evaluation: every row is predicted first and learned afterwards (section 5 of the paper).

`prequential` runs a learner over a stream and gives a `PrequentialResult`: running average costs, scikit-learn's
figures, and the two terms of the paper's bound. `scorer` makes a cost a scikit-learn scorer.
"""

import csv
import io
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer

from csdpp.baselines import OnlineBinaryRelevance
from csdpp.costs import Cost, resolve_cost
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.estimator import OnlineClassifier, whole
from csdpp.learner import CSDPP
from csdpp.targets import Targets, as_matrix, indicators, is_matrix

__all__ = ["PrequentialResult", "prequential", "scorer", "choose_checkpoints", "BOUND_TERMS"]

Array = NDArray[Any]
#: Curves that `prequential` adds with ``bound=True``. The cost of a row is at most their sum where Lemma 2 holds.
BOUND_TERMS = ("prediction_error", "reconstruction_error")

_WHO = "prequential"
_KIND = "csdpp.PrequentialResult"
_CURVE = 1000  # checkpoints, unless asked for
_CELLS, _ROWS = 2**20, 2**12  # in one call of a learner: bounds memory, and the wait for the bar to move
_PAUSE = 0.1  # seconds between two pictures of the bar


@dataclass(frozen=True, eq=False, repr=False)
class PrequentialResult:
    """What `prequential` measured. ``print(result)`` shows the figures as a table.

    Attributes
    ----------
    model : str
        The learner, as it prints itself.
    n_rows : int
        Rows predicted and learned.
    seconds : float
        Spent in the learner, predicting and learning.
    rows_per_second : float
        Without the first few rows, which may have had to wait for the compiler.
    averages : dict of name -> float
        The average of each cost over all rows, and of the terms of the bound; NaN if there was no row.
    checkpoints : array (c,)
        Numbers of rows t, rising.
    curves : dict of name -> array (c,)
        The averages over the first t rows.
    scores : dict of name -> float
        "precision", "recall" and "f1", each with "_samples", "_micro" and "_macro", and "subset_accuracy", in
        scikit-learn's sense with ``zero_division=0``. (The paper's micro- and macro-F1 are the reverse.)
    per_label : dict of name -> array (K,)
        "label", "support", "tp", "fp", "fn", "tn", "precision", "recall", "f1".
    losses : dict of name -> array (n_rows,)
        What `averages` averages, if it was asked for; else empty.
    """

    model: str
    n_rows: int
    seconds: float
    rows_per_second: float
    averages: dict[str, float]
    checkpoints: NDArray[np.int64]
    curves: dict[str, Array]
    scores: dict[str, float]
    per_label: dict[str, Array]
    losses: dict[str, Array] = field(default_factory=dict)

    def table(self) -> str:
        """Averages and scores in a few lines of text."""
        K = len(self.per_label["label"])
        width = max(len(name) for name in [*self.averages, "subset accuracy"])
        kinds = ("samples", "micro", "macro")
        lines = [
            f"{self.n_rows:,} rows, {K:,} labels, {self.seconds:.2f} s ({self.rows_per_second:,.0f} rows/s)",
            "",
            "average over rows",
            *(f"{name.replace('_', ' '):<{width}}  {value:7.4f}" for name, value in self.averages.items()),
            "",
            f"{'':<{width}}" + "".join(f"  {kind:>7}" for kind in kinds),
        ]
        for name in ("precision", "recall", "f1"):
            values = (self.scores[f"{name}_{kind}"] for kind in kinds)
            lines.append(f"{name:<{width}}" + "".join(f"  {value:7.4f}" for value in values))
        lines.append(f"{'subset accuracy':<{width}}  {self.scores['subset_accuracy']:7.4f}")
        return "\n".join(lines)

    __str__ = table

    def __repr__(self) -> str:
        figures = "".join(f", {name}={value:.4f}" for name, value in self.averages.items())
        return f"PrequentialResult({self.n_rows} rows{figures})"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts, fit for JSON; NaN becomes None."""
        return {"kind": _KIND} | {name: _plain(value) for name, value in vars(self).items()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything as ``.json``, or the curves as ``.csv``; the file appears whole or not at all."""
        path = Path(path)
        if path.suffix == ".json":
            _write_atomically(path, json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False) + "\n")
        elif path.suffix == ".csv":
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(["t", *self.curves])
            columns = [self.checkpoints, *self.curves.values()]
            writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
            _write_atomically(path, text.getvalue())
        else:
            raise InvalidParameter(
                f"PrequentialResult: path must end in .json (everything) or .csv (the curves), got {path.name!r}"
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote as ``.json``."""
        try:
            state = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError:
            state = None
        if not isinstance(state, dict) or state.pop("kind", None) != _KIND:
            raise InvalidInput(f"PrequentialResult: {path} must be a .json file written by save, and is not")
        for name in ("averages", "scores"):
            state[name] = {k: np.nan if value is None else value for k, value in state[name].items()}
        for name in ("curves", "losses"):
            state[name] = {k: np.array(values, np.float64) for k, values in state[name].items()}
        state["per_label"] = {k: np.array(values) for k, values in state["per_label"].items()}
        state["checkpoints"] = np.array(state["checkpoints"], np.int64)
        return cls(**state)


def prequential(
    model: Any,
    X: Any,
    Y: Any,
    costs: Any = ("hamming", "f1", "accuracy", "rank"),
    *,
    checkpoints: Any = None,
    batch_size: int = 1,
    classes: Any = None,
    bound: bool = False,
    keep_losses: bool = False,
    progress: bool | None = None,
    label_names: Any = None,
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

    If the learner fails amid the stream, it has learned the rows before.

    Measuring takes O(K) a row for each cost.
    """
    named = _named_costs(costs)
    _check_call(model, Y, batch_size, bound)
    X, Y = _sliceable(X), _sliceable(Y)
    ours = isinstance(model, OnlineClassifier)
    targets = model._targets if ours and model.__sklearn_is_fitted__() else Targets.learn(_WHO, Y)
    truth = targets.rows(Y)
    n, K = truth.shape
    if X.shape[:1] != (n,):
        raise InvalidInput(f"{_WHO}: X and Y must have as many rows, got shapes {X.shape} and {truth.shape}")
    names = np.asarray(targets.classes if label_names is None else label_names)
    if names.shape != (K,):
        raise InvalidInput(f"{_WHO}: label_names must name the {K} columns of Y, got shape {names.shape}")
    tally = _Tally(named, choose_checkpoints(_WHO, checkpoints, n, _CURVE), n, K, bound, keep_losses)

    with _Bar(n, progress) as bar:
        if ours:  # no rows yet: a fresh model takes note of features and labels, their names and types
            model.prequential(_cut(X, slice(0, 0)), _cut(Y, slice(0, 0)))
        if ours and batch_size == 1:
            steps = _own_steps(model, X, truth, bound)
        else:
            steps = _other_steps(model, X, truth if ours else Y, truth.shape, batch_size, classes)
        for part, Y_hat, terms, seconds in steps:
            tally.add(part, _dense(truth[part]), Y_hat, terms, seconds)
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
        if begin == 0 or seconds > _PAUSE or part.stop - begin >= _ROWS or part.stop == shape[0]:
            yield slice(begin, part.stop), np.vstack(answers), None, seconds
            begin, seconds, answers = part.stop, 0.0, []


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
        self.counts = np.zeros((3, K), np.int64)  # tp, predicted, relevant
        self.done, self.seconds, self.first = 0, 0.0, (0, 0.0)

    def add(self, part: slice, Y: Array, Y_hat: Array, terms: Array | None, seconds: float) -> None:
        """Take in the rows of ``part``."""
        both = Y & Y_hat
        losses = [cost.loss(Y, Y_hat) for cost in self.costs.values()]
        samples = _precision_recall_f1(*(np.count_nonzero(a, axis=1) for a in (both, Y_hat, Y)))
        exact = (Y_hat == Y).all(axis=1)
        bound = () if terms is None else terms.T
        values = np.column_stack([*losses, *bound, *samples.values(), exact])
        running = np.cumsum(np.vstack([self.sums, values]), axis=0)
        inside = (self.checkpoints > part.start) & (self.checkpoints <= part.stop)
        t = self.checkpoints[inside]
        kept = len(self.averaged)
        self.curves[inside] = running[t - part.start, :kept] / t[:, None]
        if len(self.rows):
            self.rows[part] = values[:, :kept]
        self.counts += [np.count_nonzero(a, axis=0) for a in (both, Y_hat, Y)]
        if part.start == 0:
            self.first = part.stop, seconds
        self.sums, self.done, self.seconds = running[-1], part.stop, self.seconds + seconds

    def running(self) -> tuple[str, float]:
        """The name of the first cost and its average so far."""
        return (self.averaged[0], float(self.sums[0] / self.done)) if self.averaged else ("", 0.0)

    def result(self, model: str, names: Array) -> PrequentialResult:
        """All that was counted, as figures."""
        tp, predicted, relevant = self.counts
        label_figures = _precision_recall_f1(tp, predicted, relevant)
        pooled_figures = _precision_recall_f1(*self.counts.sum(axis=1, keepdims=True))
        means = (self.sums / self.n if self.n else np.full(len(self.sums), np.nan)).tolist()
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
        counts = {"tp": tp, "fp": predicted - tp, "fn": relevant - tp, "tn": self.n - predicted - relevant + tp}
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


# ---- the bar


class _Bar:
    """One line on a terminal, gone when the run is over or an exception flies."""

    def __init__(self, n: int, shown: bool | None) -> None:
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self.shown = n > 0 and sys.stderr is not None and (terminal if shown is None else bool(shown))
        self.n, self.written = n, 0
        self.since: tuple[float, int] | None = None  # the end of the first step, which may have had to compile
        self.drawn = -np.inf

    def __enter__(self) -> Self:
        if self.shown:
            self._write(_line(self.n, 0, "", 0.0, None, _columns()))
        return self

    def update(self, done: int, name: str, average: float) -> None:
        """Draw anew if the last picture is old enough."""
        now = time.monotonic()
        if self.shown and now - self.drawn >= _PAUSE:
            self.drawn = now
            rate = (done - self.since[1]) / (now - self.since[0]) if self.since else None
            self._write(_line(self.n, done, name, average, rate, _columns()))
        if self.since is None:
            self.since = (now, done)

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _write(self, line: str) -> None:
        # Blanks wipe what the last line had more; a terminal made narrower since must not wrap them.
        sys.stderr.write("\r" + line.ljust(min(self.written, _columns())))
        sys.stderr.flush()
        self.written = len(line)


def _line(n: int, done: int, name: str, average: float, rate: float | None, width: int) -> str:
    """The bar in at most ``width`` characters; what matters least goes first. Plain ASCII but for the name."""
    pieces = [f"{done / n:4.0%}", f"{name} {average:.4f}" if done and name else ""]
    if rate:
        minutes, seconds = divmod(round((n - done) / rate), 60)
        hours, minutes = divmod(minutes, 60)
        left = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
        pieces += [f"{left} left", f"{rate:,.0f} rows/s"]
    pieces = [piece for piece in [*pieces, f"{done:,}/{n:,} rows"] if piece]
    while len(pieces) > 1 and len("  ".join(pieces)) > width:
        pieces.pop()
    room = min(42, width - len("  ".join(pieces)) - 2)
    if room >= 8:
        filled = (room - 2) * done // n
        pieces.insert(1, "[" + "#" * filled + "." * (room - 2 - filled) + "]")
    return "  ".join(pieces)[:width] if width > 4 else pieces[0].strip()[:width]


def _columns() -> int:
    """What fits on a line of the terminal behind stderr; the last column makes some of them wrap."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):  # no terminal, or no file at all
        columns = shutil.get_terminal_size().columns
    return max(1, (columns or 80) - 1)


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


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray):
        return [_plain(entry) for entry in value.tolist()]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, int | float) else str(value)


def _write_atomically(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        draft.write_text(text, encoding="utf-8", newline="")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
