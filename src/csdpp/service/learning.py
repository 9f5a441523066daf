"""The learner of a service and how well it does: a fold over the batches of the log, and snapshots of it.

What it is depends on the batches and on nothing else, so that live learning, replay and a snapshot with replay give
the same bits.
"""

import copy
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from csdpp import CSDPP, persist
from csdpp.choice import ChoosingEngine
from csdpp.costs import resolve_cost
from csdpp.errors import CsdppError
from csdpp.service.rows import Batch, Names, dense_rows, label_rows

Array = NDArray[Any]
log = logging.getLogger("csdpp.service")
COSTS = ("hamming", "f1", "accuracy", "rank")
#: Points of the curve of the running costs: at twice as many, every second is dropped.
_CURVE = 256
#: Share of features that are not 0 below which gradient descent takes sparse rows.
_SPARSE = 0.1
_RECENT = 0.995
#: Snapshots that are kept.
KEPT = 3


class Tally:
    """Running costs of the predictions made right before each row was learned, and counts per label.

    Where an answer leaves labels open, its costs are those of the labels that it tells.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.every = 1  # rows between two points of the curve
        self.sums = np.zeros(len(COSTS))
        self.recent = np.zeros(len(COSTS))  # running mean that forgets
        self.weight = 0.0
        self.counts = np.zeros((4, 0), np.int64)  # of each label: tp, fp, fn, tn
        self.curve: list[list[float]] = []  # rows, then means of the costs so far, then recent ones
        self._costs = [resolve_cost(name) for name in COSTS]

    def add(self, Y: Array, Y_hat: Array) -> None:
        """Take in rows (n, K): Y bool, or float with NaN; Y_hat bool."""
        K = Y.shape[1]
        if self.counts.shape[1] < K:
            new = np.zeros((4, K), np.int64)
            new[3] = self.rows  # a label that had not come was absent, and not predicted
            new[:, : self.counts.shape[1]] = self.counts
            self.counts = new
        told = None if Y.dtype == np.bool_ else ~np.isnan(Y)
        truth = Y if told is None else Y == 1.0
        losses = np.empty((len(Y), len(COSTS)))
        if told is None:
            for cost, column in zip(self._costs, losses.T, strict=True):
                out = np.empty(len(Y))
                cost._loss_rows(truth, Y_hat, out)
                column[:] = out
        else:
            for i, known in enumerate(told):
                y, y_hat = truth[i : i + 1, known], Y_hat[i : i + 1, known]
                losses[i] = [cost.loss(y, y_hat)[0] if known.any() else 0.0 for cost in self._costs]
        known = True if told is None else told
        wrong = truth != Y_hat
        cells = (truth & Y_hat, wrong & Y_hat & known, wrong & truth & known, ~truth & ~Y_hat & known)
        for row, cell in zip(self.counts, cells, strict=True):
            row += np.count_nonzero(cell, axis=0)
        for loss in losses:
            self._add_row(loss)

    def _add_row(self, loss: Array) -> None:
        self.rows += 1
        self.sums += loss
        self.recent = _RECENT * self.recent + loss
        self.weight = _RECENT * self.weight + 1.0
        if self.rows % self.every == 0:
            self.curve.append([self.rows, *(self.sums / self.rows).tolist(), *(self.recent / self.weight).tolist()])
            if len(self.curve) >= 2 * _CURVE:
                self.curve = self.curve[1::2]
                self.every *= 2

    def state(self) -> dict[str, Any]:
        """What a snapshot keeps."""
        kept = {k: v for k, v in vars(self).items() if not k.startswith("_")}
        return kept | {"curve": np.array(self.curve).reshape(-1, 1 + 2 * len(COSTS))}

    @classmethod
    def of(cls, state: dict[str, Any]) -> "Tally":
        """The inverse of `state`."""
        tally = cls()
        vars(tally).update(state)
        tally.curve = state["curve"].tolist()
        return tally

    def facts(self) -> dict[str, Any]:
        """Means of the costs, of all rows and of recent ones."""
        rows, weight = max(1, self.rows), max(1e-300, self.weight)
        return {
            "rows": self.rows,
            "costs": dict(zip(COSTS, (self.sums / rows).tolist(), strict=True)),
            "recent": dict(zip(COSTS, (self.recent / weight).tolist(), strict=True)),
        }

    def labels(self, names: list[str]) -> list[dict[str, Any]]:
        """Of each label its counts, precision and recall (None where they have no meaning)."""
        out = []
        for name, (tp, fp, fn, tn) in zip(names, self.counts.T.tolist(), strict=False):
            facts = {"label": name, "tp": tp, "fp": fp, "fn": fn, "tn": tn}
            facts["precision"] = tp / (tp + fp) if tp + fp else None
            facts["recall"] = tp / (tp + fn) if tp + fn else None
            facts["f1"] = 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None
            out.append(facts)
        return out


class Published:
    """A copy of what predicting needs, which nobody changes."""

    def __init__(self, version: int, model: CSDPP | None) -> None:
        self.version = version
        self.engine = None if model is None else _frozen(model._engine)
        self.d = 0 if model is None else model.n_features_in_
        self.K = 0 if model is None else len(model.classes_)

    def scores(self, X: Array) -> Array:
        """Scores (n, K) of features (n, d); a label is predicted from 0 on. Before anything is learned: (n, 0)."""
        return np.empty((len(X), 0)) if self.engine is None else self.engine.scores(X)


def _frozen(engine: Any) -> Any:
    """A copy that answers as the engine does now; what only learning needs is shared or left out."""
    if isinstance(engine, ChoosingEngine):
        new = copy.copy(engine)
        new.live, new.leading = engine.live.copy(), engine.leading
        new.engines = [_frozen(part) if part is engine.leader else part for part in engine.engines]
        return new
    new = copy.copy(engine)
    new.regressor = copy.copy(engine.regressor)
    new.regressor.W = engine.regressor.W.copy()
    if hasattr(engine, "o"):
        new.o = engine.o.copy()
        new.encoder = copy.copy(engine.encoder)
        basis = engine.encoder.basis
        new.encoder.basis = basis._replace(frame=basis.Q.copy(), keep=basis.keep.copy())
    return new


def _fresh(parameters: dict[str, Any]) -> CSDPP:
    """A learner that has learned nothing; what it draws, it draws alike in every replay."""
    draws = parameters.get("decode") == "sample" or parameters.get("basis") == "none"
    return CSDPP(**({"random_state": 0} if draws else {}) | parameters)


class Learning:
    """The model, the tally and the place in the log that both have come to."""

    def __init__(self, parameters: dict[str, Any], names: Names) -> None:
        self.parameters, self.names = parameters, names
        self.model: CSDPP | None = None
        self.tally = Tally()
        self.seq = 0
        self.failed = 0  # rows that the model refused

    def learn(self, batch: Batch) -> None:
        """Learn a batch. Rows that the model refuses are passed over, in a replay as well."""
        self._grow(batch.d, batch.K)
        X: Any = dense_rows(batch.x, batch.d)
        Y = label_rows(batch.y, batch.K)
        if self.parameters.get("regressor") == "gradient" and np.count_nonzero(X) < _SPARSE * X.size:
            X = sparse.csr_array(X)
        try:
            self._learn(X, Y)
        except CsdppError:
            for i in range(len(Y)):
                try:
                    self._learn(X[i : i + 1], Y[i : i + 1])
                except CsdppError as error:
                    self.failed += 1
                    log.warning("answer %d was not learned: %s", batch.first + i, error)
        self.seq = batch.last

    def _learn(self, X: Any, Y: Array) -> None:
        assert self.model is not None
        Y_hat = self.model.prequential(X, Y)
        self.tally.add(Y, Y_hat.astype(np.bool_))

    def _grow(self, d: int, K: int) -> None:
        """The model has as many features and labels as were known when the batch came."""
        names = self.names
        if self.model is None:
            model = _fresh(self.parameters)
            classes = np.array(names.label_list[:K])
            self.model = model.partial_fit(np.empty((0, d)), np.empty((0, K), np.bool_), classes)
            return
        if d > self.model.n_features_in_:
            self.model.add_features(d - self.model.n_features_in_)
        if len(self.model.classes_) < K:
            self.model.add_labels(names.label_list[len(self.model.classes_) : K])

    def replay(self, batches: Iterable[Batch]) -> int:
        """Learn what the log holds; returns how many rows."""
        before = self.seq
        for batch in batches:
            self.learn(batch)
        return self.seq - before

    # ---- snapshots

    def dumps(self) -> bytes:
        """All of it as the bytes of a file."""
        model = _fresh(self.parameters) if self.model is None else self.model
        extra = {"seq": self.seq, "failed": self.failed, "tally": self.tally.state()}
        return persist.dumps(model, extra=extra)

    @classmethod
    def read(cls, path: Path, parameters: dict[str, Any], names: Names) -> "Learning":
        """What `dumps` gave, from a file; `csdpp.errors.DataFormatError` where it is not."""
        new = cls(parameters, names)
        model = persist.load(path, of=CSDPP)
        extra = persist.inspect(path)["extra"]
        new.model = model if model.__sklearn_is_fitted__() else None
        new.seq, new.failed, new.tally = extra["seq"], extra["failed"], Tally.of(extra["tally"])
        return new


def snapshots(folder: Path) -> list[Path]:
    """The files in the folder, the newest first."""
    return sorted(folder.glob("snapshot-*.csdpp"), reverse=True)


def snapshot_path(folder: Path, seq: int) -> Path:
    """Of a snapshot that holds the log up to ``seq``."""
    return folder / f"snapshot-{seq:015d}.csdpp"


def snapshot_seq(path: Path) -> int:
    """What `snapshot_path` was given."""
    return int(path.stem.rpartition("-")[2])


def restore(folder: Path, parameters: dict[str, Any], names: Names) -> Learning:
    """The newest snapshot that can be read, or a fresh start; a damaged one is put aside."""
    for path in snapshots(folder):
        try:
            new = Learning.read(path, parameters, names)
            if new.seq != snapshot_seq(path):
                raise ValueError(f"holds the log up to {new.seq}")
            return new
        except (CsdppError, OSError, LookupError, TypeError, ValueError) as error:
            log.error("snapshot %s cannot be used: %s; going back to the one before", path.name, error)
            path.rename(path.with_suffix(".damaged"))
    return Learning(parameters, names)
