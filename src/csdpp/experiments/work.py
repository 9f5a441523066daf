"""What one run computes: data as the paper prepares it, a learner, its losses. `execute` is all a worker needs.

Features are scaled to [0, 1] over the whole set; rows are put in a random order, of which the first so many are taken
where the paper sub-samples; with noise, each relevant label is then hidden with that probability.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import csdpp
from csdpp.baselines import OnlineBinaryRelevance, OnlineCompressedSensing, OnlineRandomProjection
from csdpp.batch import CPLST, PLST
from csdpp.bench import naive
from csdpp.costs import resolve_cost
from csdpp.datasets import Dataset, load
from csdpp.estimator import code_size
from csdpp.evaluate import prequential
from csdpp.experiments.literal import predict_literally
from csdpp.experiments.spec import COSTS, Run
from csdpp.learner import CSDPP
from csdpp.regret import average_regret

Array = NDArray[Any]

#: What every run measures: the costs of the tables, and the rank loss as the paper prints it.
MEASURED = (*COSTS, "rank")
POINTS = 60  # of a curve
_CELLS = 60_000_000  # numbers up to which sparse features are made dense: faster, same results


class Outcome(NamedTuple):
    """What came of a run; plain numbers and strings."""

    key: str
    losses: dict[str, float]
    curves: dict[str, list[float]]  # "t" and one list a cost, or none
    facts: dict[str, Any]  # N, d, K, M, rows, and what the measure adds
    seconds: float  # CPU, in the learner and its evaluation
    made: dict[str, str]  # version, host facts, time
    error: str | None = None


def execute(run: Run) -> Outcome:
    """Compute a run. What goes wrong in it is part of the outcome, so that the other runs go on."""
    made = {"version": csdpp.__version__, "python": platform.python_version(), "numpy": np.__version__}
    made["at"] = datetime.now(UTC).isoformat(timespec="seconds")
    start = time.process_time()
    try:
        data = prepared(run.data, run.stream_seed, run.noise, run.rows, run.order)
        N, d, K, cardinality, _ = data.statistics()
        facts: dict[str, Any] = {"N": N, "d": d, "K": K, "cardinality": cardinality}
        if run.share is not None:
            facts["M"] = code_size("reproduce", run.share, K)
        losses, curves, more = _MEASURES[run.measure](run, data)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        return Outcome(run.key, {}, {}, {}, time.process_time() - start, made, message)
    return Outcome(run.key, losses, curves, facts | more, time.process_time() - start, made)


# ---- data


@lru_cache(maxsize=2)
def _scaled(name: str) -> Dataset:
    data = load(name).scaled()
    parts: dict[str, Any] = {"X": data.X, "Y": data.Y}
    small: dict[str, Any] = {name: _dense(part) for name, part in parts.items() if np.prod(part.shape) < _CELLS}
    return replace(data, **small)


def _dense(A: Any) -> Array:
    dense: Array = A.toarray() if sparse.issparse(A) else A
    return dense


@lru_cache(maxsize=3)
def prepared(name: str, seed: int, noise: float = 0.0, rows: int | None = None, order: int | None = None) -> Dataset:
    """A set as a run sees it.

    Examples
    --------
    >>> hidden = prepared("mediamill-like", seed=0, noise=0.5, rows=1000)
    >>> hidden
    Dataset('mediamill-like', N=1000, d=120, K=101, cardinality=2...)
    """
    rng = np.random.default_rng(seed)
    whole = _scaled(name)
    places = rng.permutation(whole.X.shape[0])[:rows]
    X, Y = whole.X[places], hidden(whole.Y[places], noise, rng)
    names = whole.label_names
    if order is not None:
        columns = np.random.default_rng(order).permutation(Y.shape[1])
        Y, names = Y[:, columns], tuple(names[i] for i in columns)
    return Dataset(X, Y, whole.feature_names, names, whole.name)


def hidden(Y: Any, noise: float, rng: np.random.Generator) -> Any:
    """Y without each of its positives with probability ``noise``; Y itself without noise."""
    if not noise:
        return Y
    left = _dense(Y).copy()
    relevant = left == 1
    left[relevant] = rng.random(np.count_nonzero(relevant)) >= noise
    return left


# ---- learners


def make(run: Run) -> Any:
    """The learner of a run."""
    options = json.loads(run.options)
    if run.learner == "obr":
        return OnlineBinaryRelevance(**options)
    assert run.share is not None
    if run.learner in ("plst", "cplst"):
        return (PLST if run.learner == "plst" else CPLST)(run.share, **options)
    if run.learner == "ocs":
        return OnlineCompressedSensing(run.share, random_state=run.stream_seed, **options)
    if run.learner == "orand":
        return OnlineRandomProjection(run.share, random_state=run.stream_seed, **options)
    if run.learner == "published":
        return CSDPP.published(run.share, cost=run.cost, random_state=run.stream_seed + (run.order or 0), **options)
    return CSDPP(run.share, cost=run.cost, random_state=run.stream_seed, **options)


def _losses(Y: Array, Y_hat: Array) -> dict[str, float]:
    return {name: float(np.mean(resolve_cost(name).loss(_dense(Y), Y_hat))) for name in MEASURED}


Measured = tuple[dict[str, float], dict[str, list[float]], dict[str, Any]]


def _prequential(run: Run, data: Dataset) -> Measured:
    """Every row predicted, then learned."""
    if run.learner == "literal":
        assert run.share is not None
        M = code_size("reproduce", run.share, data.Y.shape[1])
        Y_hat = predict_literally(data.X, data.Y, M, str(run.cost), run.stream_seed, **json.loads(run.options))
        return _losses(data.Y, Y_hat), {}, {}
    result = prequential(make(run), data.X, data.Y, MEASURED, checkpoints=POINTS, progress=False)
    curves = {"t": [float(t) for t in result.checkpoints]}
    curves |= {name: [round(value, 6) for value in curve.tolist()] for name, curve in result.curves.items()}
    return dict(result.averages), curves, {"learner_seconds": result.seconds}


def _timed(run: Run, data: Dataset) -> Measured:
    """CPU seconds a row, all rows of the run; the first two rows are not counted, in which numba may compile."""
    options = json.loads(run.options)
    dense = options.pop("dense", False)
    X, Y = (_dense(data.X) if dense else data.X), data.Y
    run = replace(run, options=json.dumps(options))
    predict = _naively(run, X, Y) if run.learner == "naive" else lambda X, Y: make(run).prequential(X, Y)
    predict(X[:2], Y[:2])
    start = time.process_time()
    Y_hat = predict(X, Y)
    seconds = time.process_time() - start
    return _losses(Y, _dense(Y_hat)) | {"seconds": seconds, "ms_per_row": 1e3 * seconds / Y.shape[0]}, {}, {}


def _naively(run: Run, X: Any, Y: Any) -> Callable[[Any, Any], Array]:
    """The same in plain NumPy, one row at a time (`csdpp.bench.naive`)."""
    basis, d, K = json.loads(run.options)["basis"], X.shape[1] + 1, Y.shape[1]

    def predict(X: Any, Y: Any) -> Array:
        X = np.hstack([_dense(X), np.ones((X.shape[0], 1))])
        Y = _dense(Y).astype(bool)
        regressor = naive.Gradient()
        if basis == "binary relevance":
            return naive.run(naive.BinaryRelevance(d, K, regressor).step, X, Y)
        M = code_size("reproduce", run.share, K) if run.share is not None else K
        return naive.run(naive.CSDPP(d, K, M, "hamming", basis, regressor).step, X, Y)

    return predict


def _split(run: Run, data: Dataset) -> Measured:
    """Two thirds of the rows to learn from, once; losses on the others. CPU seconds of learning and predicting."""
    n = 2 * data.X.shape[0] // 3
    model = make(run) if run.learner not in _BATCH else _BATCH[run.learner](data)
    start = time.process_time()
    model.fit(data.X[:n], data.Y[:n])
    fitted = time.process_time()
    Y_hat = model.predict(data.X[n:])
    done = time.process_time()
    Y_hat = _dense(Y_hat) > 0
    return _losses(data.Y[n:], Y_hat) | {"seconds": fitted - start}, {}, {"predict_seconds": done - fitted}


def _hindsight(run: Run, data: Dataset) -> Measured:
    """The batch method fitted on all rows, its losses on these same rows."""
    learner = PLST(1.0, reference="zero") if run.learner == "br" else make(run)
    Y_hat = learner.fit(data.X, data.Y).predict(data.X)
    return _losses(data.Y, np.asarray(Y_hat) > 0), {}, {}


def _regret(run: Run, data: Dataset) -> Measured:
    """Average regret against batch PLST at ten places."""
    assert run.share is not None
    options = json.loads(run.options)
    model = CSDPP.published(run.share, cost="hamming", basis="pbc", random_state=run.stream_seed, **options)
    found = average_regret(data.X, data.Y, run.share, checkpoints=10, model=model)
    curves = {"t": [float(t) for t in found.T]}
    curves |= {name: getattr(found, name).tolist() for name in ("regret", "online", "offline")}
    return {"regret": float(found.regret[-1])}, curves, {}


def _one_vs_rest(data: Dataset) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier

    return _Seen(OneVsRestClassifier(LogisticRegression(max_iter=200)))


def _chain(data: Dataset) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.multioutput import ClassifierChain

    return _Seen(ClassifierChain(LogisticRegression(max_iter=200), random_state=0))


class _Seen:
    """A batch learner over the labels that both occur and fail to in its rows; the others keep their only value."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, Y: Array) -> _Seen:
        """Learn."""
        self.both = (Y.any(axis=0)) & (~Y.astype(bool)).any(axis=0)
        self.only = Y[0].astype(bool)
        self.model.fit(X, Y[:, self.both])
        return self

    def predict(self, X: Any) -> Array:
        """0/1 indicators."""
        out = np.repeat(self.only[None], X.shape[0], axis=0)
        out[:, self.both] = self.model.predict(X) > 0
        return out


_BATCH: dict[str, Callable[[Dataset], Any]] = {"one-vs-rest": _one_vs_rest, "chain": _chain}
_MEASURES: dict[str, Callable[[Run, Dataset], Measured]] = {
    "prequential": _prequential,
    "timed": _timed,
    "split": _split,
    "hindsight": _hindsight,
    "regret": _regret,
}
