"""Learning a stream block by block, with checkpoints."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from csdpp import persist
from csdpp.datasets import Block, stream
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.estimator import OnlineClassifier, whole
from csdpp.progress import ProgressBar
from csdpp.streaming._signals import Signals, Stopped
from csdpp.streaming._state import Place, State, known_names, restore, running_cost, source_name

FilePath = str | os.PathLike[str]
BLOCK_ROWS = 1000
CHECKPOINT_ROWS = 100_000
DENSE = 0.1  # share of entries from which on rows of a sparse block are learned as dense ones


class Report(NamedTuple):
    """What came of a run: rows of the stream so far, those learned now, the running cost, the signal that ended it."""

    path: Path
    rows: int
    learned: int
    cost: str
    average: float
    signal: int | None


@dataclass
class _Run:
    """How a stream is read and when the model is written."""

    who: str
    source: Any
    path: Path
    options: Mapping[str, Any]
    checkpoint_rows: int
    live: bool
    fill: float | None
    new_names: str
    progress: bool | None


def train(
    source: Any,
    path: FilePath,
    *,
    learner: str = "CSDPP",
    parameters: Mapping[str, Any] | None = None,
    restart: bool = False,
    block_rows: int | None = None,
    checkpoint_rows: int = CHECKPOINT_ROWS,
    feature_names: Sequence[str] = (),
    label_names: Sequence[str] = (),
    live: bool = False,
    fill: float | None = None,
    new_names: str = "grow",
    progress: bool | None = None,
    given: Mapping[str, Any] | None = None,
    **options: Any,
) -> Report:
    """Make a learner, have it learn a stream, and keep it in a file; go on where an earlier run was stopped.

    Parameters
    ----------
    source : as in `csdpp.datasets.stream`: files, "-" for standard input, the name of a set
    path : path
        The model's file. One that an interrupted run left there is gone on with: rows that it has learned are read and
        passed over. One of a finished run is refused.
    learner : {"CSDPP", "OnlineBinaryRelevance", "OnlineCompressedSensing", "OnlineRandomProjection"}
    parameters : mapping, optional
        Of the learner.
    restart : bool
        Begin anew, whatever is at `path`.
    block_rows : int, default 1000
        Rows that are read and learned at a time: what is held in memory. With 1, each row is learned when it comes.
    checkpoint_rows : int
        Rows after which the file is written. It is also written at the end, upon SIGTERM and upon Ctrl-C.
    feature_names, label_names : sequence of str
        Names that are known beforehand; more may come in the first block, and, if the learner can grow, later.
    live : bool
        The source is not repeated from its start but goes on where it was left: nothing is passed over.
    fill : float, optional
        What stands for missing features; without it they are refused.
    new_names : {"grow", "ignore", "refuse"}
        What to do with features and labels that come for the first time after the first block.
    progress : bool, optional
        A line on stderr; by default if that is a terminal.
    given : mapping, optional
        Parameters that no file can hold, such as a cost of one's own, to go on with a file.
    **options
        Of `csdpp.datasets.stream`: `format=`, and those of the reader.

    Notes
    -----
    Memory: the learner, and the text and arrays of one block.
    """
    path = Path(path)
    run = _Run("train", source, path, options, _positive(checkpoint_rows), live, fill, _kind(new_names), progress)
    fresh = _make(learner, parameters or {})
    if restart or not path.exists():
        state = State(fresh, tuple(feature_names), _begun(source, block_rows, fresh))
        return _learn(run, state, tuple(label_names))
    state = restore(path, dict(given or {}))
    if state.place.done:
        raise InvalidInput(
            f"train: {path} must not be there yet, or be of an interrupted run, got a finished model; go on learning "
            "with update, or begin anew with restart (--restart)"
        )
    _same(fresh, state.model, path)
    _continued(state, source, path, "restart (--restart)")
    return _learn(run, _with_block_rows(state, block_rows), tuple(label_names))


def update(
    path: FilePath,
    source: Any,
    *,
    abandon: bool = False,
    block_rows: int | None = None,
    checkpoint_rows: int = CHECKPOINT_ROWS,
    label_names: Sequence[str] = (),
    live: bool = False,
    fill: float | None = None,
    new_names: str = "grow",
    progress: bool | None = None,
    given: Mapping[str, Any] | None = None,
    **options: Any,
) -> Report:
    """Have the learner in a file learn another stream; go on where an earlier run was stopped.

    Parameters
    ----------
    path : path
        The model's file, which is written anew.
    source : as in `train`
        Where the file was left amid a stream, that stream.
    abandon : bool
        Leave that stream where it is and begin this one.
    live : bool
        The source goes on where the last one was left, finished or not: nothing is passed over.
    others : as in `train`
    """
    path = Path(path)
    run = _Run("update", source, path, options, _positive(checkpoint_rows), live, fill, _kind(new_names), progress)
    state = restore(path, dict(given or {}))
    if state.place.done or abandon:
        state = replace(state, place=_begun(source, block_rows, state.model))
    else:
        _continued(state, source, path, "abandon (--abandon)")
    return _learn(run, _with_block_rows(state, block_rows), tuple(label_names))


# ---- before


def _make(learner: str, parameters: Mapping[str, Any]) -> OnlineClassifier:
    if learner not in persist.LEARNERS:
        raise InvalidParameter(
            f"train: learner must be one of {', '.join(persist.LEARNERS)}, got {learner!r}; choose one"
        )
    cls = persist.LEARNERS[learner]
    known = cls().get_params(deep=False)
    if odd := [name for name in parameters if name not in known]:
        raise InvalidParameter(f"train: {learner} has the parameters {', '.join(known)}, got {odd[0]!r}; choose one")
    seed = {"random_state": 0} if "random_state" in known else {}  # so that a run can be repeated
    return cls(**(seed | dict(parameters)))


def _begun(source: Any, block_rows: int | None, model: OnlineClassifier) -> Place:
    return Place(source_name(source), 0, False, _positive(block_rows or BLOCK_ROWS), running_cost(model).name)


def _with_block_rows(state: State, block_rows: int | None) -> State:
    """The rows of a block as asked for, else as they were."""
    rows = _positive(block_rows or state.place.block_rows)
    return replace(state, place=replace(state.place, block_rows=rows))


def _positive(rows: int) -> int:
    whole("train", "rows of a block or checkpoint", rows, "at least 1", lambda v: v >= 1)
    return int(rows)


def _kind(new_names: str) -> str:
    if new_names not in ("grow", "ignore", "refuse"):
        raise InvalidParameter(f"train: new_names must be grow, ignore or refuse, got {new_names!r}; choose one")
    return new_names


def _same(fresh: OnlineClassifier, held: OnlineClassifier, path: Path) -> None:
    """Refuse to go on with another learner than the one that was begun."""
    if type(fresh) is not type(held):
        raise InvalidParameter(
            f"train: {path} was begun as {type(held).__name__}, got {type(fresh).__name__}; go on with that, or begin "
            "anew with restart (--restart)"
        )
    wanted, before = fresh.get_params(deep=False), held.get_params(deep=False)
    for name, value in wanted.items():
        if repr(value) != repr(before[name]) and name != "random_state":
            raise InvalidParameter(
                f"train: {path} was begun with {name}={before[name]!r}, got {value!r}; go on with that, or begin anew "
                "with restart (--restart)"
            )


def _continued(state: State, source: Any, path: Path, way_out: str) -> None:
    """Refuse another source than the one that was left amid."""
    if source_name(source) != state.place.source:
        raise InvalidInput(
            f"{path} was left amid {state.place.source!r} after {state.place.rows} rows, got "
            f"{source_name(source)!r}; give that source again, or use {way_out}"
        )


# ---- learning


def _learn(run: _Run, state: State, label_names: tuple[str, ...]) -> Report:
    """Learn to the end or to a signal; the file is written on the way and at last."""
    began = saved = state.place.rows
    skipped = 0 if run.live else began
    known = known_names(state, run.source, run.options)
    known["label_names"] = tuple(dict.fromkeys((*known["label_names"], *label_names)))
    options = {**known, **run.options}
    blocks = stream(run.source, block_rows=state.place.block_rows, skip_rows=skipped, **options)
    with Signals() as signals, ProgressBar(None, run.progress) as bar:
        for block in _until_signal(signals, blocks):
            cost = _learn_block(run, state, block)
            rows = state.place.rows + len(block)
            state.place = replace(state.place, rows=rows, total=state.place.total + cost)
            bar.update(rows, state.place.cost, state.place.total / rows)
            if rows - saved >= run.checkpoint_rows:
                state.save(run.path)
                saved = rows
        place = state.place
        if not place.rows and signals.got is None:
            raise InvalidInput(f"{run.who}: {place.source!r} must have rows to learn from, got none; check the source")
        if place.rows:
            state.place = replace(place, done=signals.got is None)
            state.save(run.path)
    average = place.total / place.rows if place.rows else float("nan")
    return Report(run.path, place.rows, place.rows - began, place.cost, average, signals.got)


def _until_signal(signals: Signals, blocks: Iterator[Block]) -> Iterator[Block]:
    while True:
        try:
            block = signals.wait(lambda: next(blocks, None))
        except Stopped:
            return
        if block is None:
            return
        yield block


def _learn_block(run: _Run, state: State, block: Block) -> float:
    """Predict and learn the rows of a block; the sum of their costs."""
    first = not state.model.__sklearn_is_fitted__()
    X, Y = (block.X, block.Y) if first else _known(run, state, block)
    if first:
        state.features = block.feature_names
        if not block.label_names:
            raise InvalidInput(
                f"{run.who}: the first {len(block)} rows must bring a label, got none; name labels beforehand "
                "(--labels), or use larger blocks (--block-rows)"
            )
    X = as_features(X, run.fill)
    named: dict[str, Any] = {"classes": np.array(block.label_names, str)} if first else {}
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
            Y_hat = state.model.prequential(X, Y, **named)
    except ValueError as error:
        last = block.first_row + len(block) - 1
        place = f"{run.who}: rows {block.first_row} to {last} of {state.place.source!r} (from 0)"
        raise InvalidInput(f"{place} cannot be learned: {error}") from None
    return float(np.sum(running_cost(state.model).loss(*_comparable(Y, Y_hat))))


def _known(run: _Run, state: State, block: Block) -> tuple[Any, Any]:
    """The columns of a block as the learner has them; new ones are learned, passed over or refused."""
    d, K = int(state.model.n_features_in_), len(state.labels)
    if len(block.feature_names) < d or len(block.label_names) < K:
        raise InvalidInput(
            f"{run.who}: {state.place.source!r} must have the {d} features and {K} labels of the learner, got "
            f"{len(block.feature_names)} and {len(block.label_names)}; give rows of the same columns"
        )
    new = {"features": block.feature_names[d:], "labels": block.label_names[K:]}
    for what, names in new.items():
        if not names or run.new_names == "ignore":
            continue
        add = getattr(state.model, f"add_{what}", None)
        if add is None or run.new_names == "refuse":
            raise InvalidInput(
                f"{run.who}: rows from {block.first_row} of {state.place.source!r} bring {what} that the learner does "
                f"not know ({', '.join(names[:5])}); name all of them beforehand, or pass them over with "
                "new_names='ignore' (--new-names ignore)"
            )
        add(list(names))
        if what == "features":
            state.features = block.feature_names
    Y: Any = block.Y
    return block.X[:, : int(state.model.n_features_in_)], Y[:, : len(state.labels)]


def as_features(X: Any, fill: float | None) -> Any:
    """Missing values filled where that is asked for; rows that are hardly sparse as dense ones."""
    if sparse.issparse(X) and X.nnz >= DENSE * X.shape[0] * X.shape[1]:
        X = X.toarray()
    if fill is not None:
        values = X.data if sparse.issparse(X) else X
        values[np.isnan(values)] = fill
    return X


def _comparable(Y: Any, Y_hat: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Truth and prediction as dense 0/1; what is unknown counts as predicted right."""
    Y, Y_hat = (A.toarray() if sparse.issparse(A) else np.asarray(A) for A in (Y, Y_hat))
    return (np.where(np.isnan(Y), Y_hat, Y) if Y.dtype.kind == "f" else Y), Y_hat
