"""The learners over Dask: data larger than one machine, by sums over shards (docs/distributed.md).

What a ridge needs of the rows is a sum, A = sum x x' and B = sum x v', and so is what the directions need of the
labels. `fit` makes these sums for each shard where it lies, adds them up in a tree and solves once; where a cost
weighs labels by what is predicted, it does so in a few rounds. `predict` answers for Dask collections, lazily.
`merge` joins learners that learned apart. Dask moves the data, and makes again what a lost worker took along.
"""

import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from csdpp.batch import PLST
from csdpp.distributed import _learn, _shards
from csdpp.distributed._predict import decision_function, predict
from csdpp.distributed._sketch import FrequentDirections
from csdpp.distributed._spread import spread
from csdpp.distributed._sums import Pass, Sums
from csdpp.engine import FollowingEngine
from csdpp.errors import CsdppError, InvalidInput, InvalidParameter
from csdpp.estimator import OnlineClassifier, code_size, number, one_of, validated, whole
from csdpp.merge import merge
from csdpp.targets import Targets

__all__ = ["fit", "predict", "decision_function", "merge", "spread", "FrequentDirections"]

_WHO = "distributed.fit"
#: Of the variance of label vectors; above it `fit` warns that the sketch is too small.
_SHORTFALL = 0.05


def fit(
    model: Any,
    X: Any,
    Y: Any = None,
    *,
    client: Any = None,
    rounds: int = 4,
    tol: float = 1e-3,
    sketch: int | str | None = "auto",
    **options: Any,
) -> Any:
    """Forget everything and learn all rows of many shards.

    Parameters
    ----------
    model : CSDPP, OnlineBinaryRelevance, OnlineRandomProjection, OnlineCompressedSensing, PLST or CPLST
        With the ridge, a number as ``regularization`` and no forgetting: shards have no order.
    X, Y : Dask arrays or DataFrames, cut into the same blocks of rows; or paths
        Blocks may be arrays, frames or SciPy's sparse matrices; Y holds 0/1 indicators (n, K). Paths are a folder, a
        pattern, or a list of them: a shard a file, of any format that `csdpp.datasets.stream` reads, labels included
        (``Y`` only for XMC's second file). Every worker must see the paths.
    client : distributed.Client, optional
        Default: Dask's current one, or its scheduler for this machine.
    rounds : int
        For a cost that weighs labels by what is predicted: at most so many times.
    tol : float
        Rounds end where the loss changes by less.
    sketch : int, "auto" or None
        Rows of the sketch that stands for the K x K covariance of labels (PLST and ``encoder="label"``). "auto": where
        K is above 5,792, with 2 M + 32 rows; None: never.
    **options
        Of `csdpp.datasets.stream`: ``format``, ``n_features``, ``n_labels``, ``labels``, ...

    Returns
    -------
    The model, fitted. Online learners go on with `partial_fit`; their chances (`predict_proba`) are calibrated by the
    last shard. ``model.fit_report_`` is a dict:

    * "rows", "shards", "passes" over the data, "seconds";
    * "losses", of each round, the first with the weights of Hamming; the model is that of the lowest;
    * "shard_bytes", the sums of a shard; "moved_bytes", all sums and models sent around, at most;
    * "peak_memory", worker -> most bytes its process has held;
    * "sketch", where there is one: its "rows", the "error" of an eigenvalue at most, and the "shortfall": by how much
      of the variance the directions may miss the best ones, at most.

    Raises
    ------
    InvalidInput
        One sentence that names the shard which cannot be used. The model is then as it was.

    Notes
    -----
    Exact for O-BR, O-RAND, O-CS, PLST, CPLST and CS-DPP with the Hamming cost: the solution of one machine with all
    rows, to rounding, whatever the shards. CS-DPP's by default is the ridge of O-BR with the directions of CPLST, whose
    own scores differ by o / n (with ``reference="zero"`` by nothing). The same shards give the same bits, with however
    many workers and losses of workers: sums are added in a fixed tree. A shard costs O(d^2 + dK) memory beyond its
    rows, and O(K^2), or O(K) times the rows of the sketch, for the directions of labels. A dK matrix is not needed for
    PLST and ``basis="pbt"`` with a sketch: O(d^2 + dM) then, in two passes.

    Examples
    --------
    >>> import dask.array
    >>> from csdpp import CPLST
    >>> from csdpp.datasets import make_stream
    >>> stream = make_stream(1000, 20, 10, rank=3, random_state=0)
    >>> X, Y = (dask.array.from_array(part, chunks=(250, -1)) for part in (stream.X, stream.Y))
    >>> model = fit(CPLST(3), X, Y)
    >>> whole = CPLST(3).fit(stream.X, stream.Y)
    >>> bool(np.abs(model.decision_function(stream.X) - whole.decision_function(stream.X)).max() < 1e-8)
    True
    """
    start = time.perf_counter()
    _import_dask()
    _check(model, client, rounds, tol, sketch)
    shards, columns = _shards.find_shards(_WHO, X, Y, options)
    fresh = clone(model)
    targets, d, engine = _prepare(fresh, columns)
    reader = _shards.Reader(_WHO, d, targets, columns.names)
    passes = _Passes(reader, shards, client)
    if isinstance(fresh, PLST):
        M = code_size(type(fresh).__name__, fresh.n_components, targets.K)
        about = _learn.learn_batch(fresh, targets.K, M, passes.run, _learn.sketch_rows(sketch, M, targets.K))
    elif isinstance(engine, FollowingEngine):
        size = _learn.sketch_rows(sketch, engine.encoder.M, engine.K)
        about = _learn.learn_following(fresh, engine, passes.run, size, int(rounds), float(tol))
    else:
        about = _learn.learn_fixed(fresh, engine, passes.run)
    if about.get("sketch", {}).get("shortfall", 0.0) > _SHORTFALL:
        warnings.warn(
            f"{_WHO}: the directions may miss {about['sketch']['shortfall']:.0%} of the variance of labels more than "
            f"the best would, with a sketch of {about['sketch']['rows']} rows; raise sketch=",
            stacklevel=2,
        )
    if engine is not None:
        engine.calibration = _shards.compute(_shards.tally(engine, reader, shards), client)
        fresh._engine, fresh.n_seen_ = engine, passes.rows
    fresh._targets, fresh.classes_ = targets, targets.classes
    fresh.fit_report_ = {**passes.report(), **about, "seconds": time.perf_counter() - start}
    parameters = model.get_params(deep=False)
    state = {name: value for name, value in vars(fresh).items() if name not in parameters}
    for name in [name for name in vars(model) if name not in parameters]:
        delattr(model, name)
    vars(model).update(state)
    return model


class _Passes:
    """Runs passes over the shards and notes what they took."""

    def __init__(self, reader: _shards.Reader, shards: list[_shards.Shard], client: Any) -> None:
        self.reader, self.shards, self.client = reader, shards, client
        self.rows = self.number = self.shard_bytes = self.moved = 0
        self.peaks: dict[str, int] = {}

    def run(self, job: Pass) -> Sums:
        def compute(shards: list[_shards.Shard]) -> Sums:
            sums: Sums = _shards.compute(_shards.sum_shards(job, self.reader, shards), self.client)
            return sums

        try:
            sums = compute(self.shards)
        except CsdppError:
            raise
        except Exception as error:  # of making a block or of a lost worker: none of our tasks has seen it
            found = _shards.blame(_WHO, self.shards, lambda shard: compute([shard]), self.client, error)
            if found is error:
                raise
            raise found from error
        if not sums.rows:
            raise InvalidInput(f"{_WHO}: X must have rows, got none in {len(self.shards)} shards")
        self.rows, self.number = sums.rows, self.number + 1
        self.shard_bytes = max(self.shard_bytes, sums.nbytes)
        nodes = _shards.nodes_of_tree(len(self.shards))
        self.moved += nodes * sums.nbytes + _job_bytes(job) * max(1, len(sums.peaks))
        for worker, peak in sums.peaks.items():
            self.peaks[worker] = max(peak, self.peaks.get(worker, 0))
        return sums

    def report(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "shards": len(self.shards),
            "passes": self.number,
            "shard_bytes": self.shard_bytes,
            "moved_bytes": self.moved,
            "peak_memory": dict(self.peaks),
        }


def _job_bytes(job: Pass) -> int:
    parts = [job.code] + ([] if job.rule is None else [job.rule.W, job.rule.Q, job.rule.o])
    return sum(part.nbytes for part in parts if part is not None)


def _prepare(fresh: Any, columns: _shards.Columns) -> tuple[Targets, int, Any]:
    """Learn the columns as a first call would; the engine of an online learner, nothing learned."""
    who = type(fresh).__name__
    X = validated(fresh, columns.X, dtype=np.float64, reset=True, ensure_min_samples=0)
    labels = columns.names and np.asarray(columns.names["label_names"])
    targets = Targets.learn(who, columns.Y, labels)
    if targets.kind != "multilabel":
        raise InvalidInput(f"{_WHO}: Y must be 0/1 indicators of shape (n, K), got one column of classes")
    engine = None if isinstance(fresh, PLST) else fresh._start(X.shape[1], targets)
    return targets, X.shape[1], engine


def _check(model: Any, client: Any, rounds: Any, tol: Any, sketch: Any) -> None:
    who = type(model).__name__
    if client is not None and not hasattr(client, "scheduler_info"):
        raise InvalidParameter(
            f"{_WHO}: client must be a distributed.Client, got {client!r}; Client(address) makes one"
        )
    if not isinstance(model, PLST | OnlineClassifier):
        raise InvalidParameter(f"{_WHO}: model must be a learner of csdpp, got {who}")
    whole(_WHO, "rounds", rounds, "at least 1", lambda v: v >= 1)
    number(_WHO, "tol", tol, "not negative", lambda v: v >= 0)
    if sketch is not None and sketch != "auto":
        whole(_WHO, "sketch", sketch, 'at least 2, "auto" or None', lambda v: v >= 2)
    if isinstance(model, PLST):
        number(who, "regularization", model.regularization, "positive", lambda v: v > 0)
        one_of(who, "reference", model.reference, ("mean", "zero"))
        return
    for name, required, hint in (
        ("regressor", "ridge", "gradient descent learns rows in their order; learn shards apart and merge them"),
        ("forgetting", 1.0, "shards have no order"),
    ):
        if getattr(model, name) != required:
            raise InvalidParameter(f"{_WHO}: {name} must be {required!r}, got {getattr(model, name)!r}; {hint}")
    if model.regularization == "auto":
        raise InvalidParameter(
            f'{_WHO}: regularization must be a number, got "auto"; fit a sample of the rows, and take regularization_'
        )
    number(_WHO, "regularization", model.regularization, "positive", lambda v: v > 0)


def _import_dask() -> None:
    try:
        import dask.array  # noqa: F401
        import distributed  # noqa: F401
    except ImportError:
        raise ImportError("csdpp.distributed needs Dask; install it with: pip install csdpp[dask]") from None
