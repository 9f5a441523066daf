"""What a shard adds: sums over its rows, made a strip of rows at a time, that add up across shards.

Features x are followed by a constant 1 in every sum, so that A holds the number of rows and sum x too. The vectors r
of labels are 0/1 labels b in the passes whose weights are fixed (so they may stay sparse; v = (2 b - 1) / sqrt(K) is
put in at the end), and label vectors v = sqrt(delta) y where a cost weighs the labels by what a model predicts.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from csdpp._kernels import memory as kernels
from csdpp.costs import Cost, StreamCost
from csdpp.costs._base import ALL
from csdpp.distributed._sketch import FrequentDirections

Array = NDArray[Any]
#: Numbers in one strip of rows (of 64 rows at least): bounds the memory of a task beyond its shard and its sums.
STRIP = 1 << 21


@dataclass
class Sums:
    """Sums over rows; what a pass does not ask for is None. They add up with `total`."""

    rows: int
    moments: Array | None = None  # (d + 1, d + 1), sum x x'
    products: Array | None = None  # (d + 1, p), sum x r'
    vectors: Array | None = None  # (p,), sum r
    covariance: Array | None = None  # (p, p), sum r r'
    sketch: FrequentDirections | None = None  # of sum r r'
    absent: Array | None = None  # (d + 1,), sum x v for the v of a label that never came
    losses: Array | None = None  # (candidates,), of the model's predictions
    counts: Array | None = None  # (candidates, 4, J), of a cost of the whole stream
    peaks: dict[str, int] = field(default_factory=dict)  # worker -> most bytes that its process has held

    @property
    def nbytes(self) -> int:
        """What is moved where these sums are."""
        return sum(int(value.nbytes) for value in vars(self).values() if hasattr(value, "nbytes"))


def total(parts: list[Sums]) -> Sums:
    """The sum of all, added in this order."""
    first, *rest = parts
    out = Sums(first.rows, peaks=dict(first.peaks))
    for name in ("moments", "products", "vectors", "covariance", "absent", "losses", "counts"):
        value = getattr(first, name)
        if value is not None:
            value = value.copy()
            for part in rest:
                value += getattr(part, name)
            setattr(out, name, value)
    if first.sketch is not None:
        out.sketch = FrequentDirections(first.sketch.size, first.sketch.S.shape[1])
        for part in parts:
            out.sketch.join(part.sketch)  # type: ignore[arg-type]
    for part in rest:
        out.rows += part.rows
        for worker, peak in part.peaks.items():
            out.peaks[worker] = max(peak, out.peaks.get(worker, 0))
    return out


@dataclass(frozen=True)
class Rule:
    """A model as far as predicting goes: s = o + Q'(keep * z) with z = Wx, or Q (Wx - o) where W is of labels."""

    W: Array  # (d + 1, K), or (d + 1, m) of codes
    Q: Array  # (m, K)
    o: Array  # (K,)
    keeps: Array  # (candidates, m): ways of decoding, whose losses are compared
    current: int  # the one that the weights are made with
    of_labels: bool
    cost: Cost
    weighting: int
    memory: Array  # (4, J)

    def codes(self, X: Any) -> Array:
        """Z (n, m)."""
        Z: Array = X @ self.W
        return (Z - self.o) @ self.Q.T if self.of_labels else Z

    def predict(self, Z: Array, candidate: int) -> Array:
        """Boolean rows (n, K)."""
        positive: Array = (Z * self.keeps[candidate]) @ self.Q + self.o >= 0.0
        return positive


@dataclass(frozen=True)
class Pass:
    """What is summed in one pass over all shards."""

    moments: bool  # sum x x'
    products: bool  # sum x r'
    covariance: bool  # sum r r'
    sketch: int = 0  # rows of a sketch of it, instead
    code: Array | None = None  # (p, K): r becomes code @ r, before the products and the covariance
    rule: Rule | None = None  # weigh labels by what it predicts; without, r are the 0/1 labels


def collect(job: Pass, blocks: Iterable[tuple[Any, Any]], d: int, K: int) -> Sums:
    """Sums over blocks (X, Y) of rows: X (n, d) dense or CSR, Y boolean (n, K) dense or CSR.

    O(n (d^2 + dK)) dense; the part of the labels costs d for each 1 of them where they are sparse and not weighted.
    """
    p = K if job.code is None else len(job.code)
    out = Sums(0, vectors=np.zeros(p))
    if job.moments:
        out.moments = np.zeros((d + 1, d + 1))
    if job.products:
        out.products = np.zeros((d + 1, p))
    if job.covariance:
        out.covariance = np.zeros((p, p))
    if job.sketch:
        out.sketch = FrequentDirections(job.sketch, K)
    if job.rule is not None:
        out.absent = np.zeros(d + 1)
        out.losses = np.zeros(len(job.rule.keeps))
        out.counts = np.zeros((len(job.rule.keeps), *job.rule.memory.shape))
    for X, Y in blocks:
        width = (0 if sparse.issparse(X) else d) + (0 if sparse.issparse(Y) and job.rule is None else K)
        size = max(64, STRIP // max(width, 64))
        for start in range(0, X.shape[0], size):
            _add_strip(out, job, _with_one(X[start : start + size]), Y[start : start + size])
    out.peaks = {_place(): peak_memory()}
    return out


def _add_strip(out: Sums, job: Pass, X: Any, Y: Any) -> None:
    out.rows += X.shape[0]
    if out.moments is not None:
        out.moments += _dense(X.T @ X)
    R = Y.astype(np.float64) if job.rule is None else _weighted(out, job.rule, X, Y)
    if out.sketch is not None:
        step = out.sketch.rows_at_once
        for start in range(0, R.shape[0], step):
            out.sketch.add(R[start : start + step])
    if job.code is not None:
        R = R @ job.code.T
    out.vectors += np.asarray(R.sum(axis=0)).ravel()
    if out.products is not None:
        out.products += _dense((R.T @ X).T if sparse.issparse(R) else X.T @ R)
    if out.covariance is not None:
        out.covariance += _dense(R.T @ R)


def _weighted(out: Sums, rule: Rule, X: Any, Y: Any) -> Array:
    """V = sqrt(delta) y of the rows; notes what the predictions cost."""
    truth = Y.toarray() if sparse.issparse(Y) else np.ascontiguousarray(Y)
    Z = rule.codes(X)
    delta = np.empty(truth.shape)
    for candidate in range(len(rule.keeps)):
        Y_hat = rule.predict(Z, candidate)
        if isinstance(rule.cost, StreamCost):
            for y, y_hat in zip(truth, Y_hat, strict=True):
                kernels.remember_inplace(out.counts[candidate], y, y_hat, ALL, 1.0)  # type: ignore[index]
        else:
            out.losses[candidate] += rule.cost.loss(truth, Y_hat).sum()  # type: ignore[index]
        if candidate == rule.current:
            _weigh(rule, truth, Y_hat, delta)
            out.absent -= X.T @ np.sqrt(_of_absent(truth, Y_hat, delta))
    return np.where(truth, 1.0, -1.0) * np.sqrt(delta)


def _weigh(rule: Rule, Y: Array, Y_hat: Array, delta: Array) -> None:
    """Label weights (n, K). A cost of the whole stream weighs all rows by the memory of the pass before."""
    for t in range(len(Y)):
        if isinstance(rule.cost, StreamCost):
            kernels.memory_weights(rule.memory, Y[t], Y_hat[t], ALL, delta[t])
        else:
            rule.cost._weights_row(Y[t], Y_hat[t], rule.weighting, delta[t])


def _of_absent(Y: Array, Y_hat: Array, delta: Array) -> Array:
    """Weights (n,) of a label that is neither there nor predicted: the last such, else the least of all."""
    silent = (~Y & ~Y_hat)[:, ::-1]
    last = Y.shape[1] - 1 - silent.argmax(axis=1)
    weights: Array = np.where(silent.any(axis=1), delta[np.arange(len(Y)), last], delta.min(axis=1))
    return weights


def _with_one(X: Any) -> Any:
    """Features with the constant one, float64."""
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([X, np.ones((X.shape[0], 1))], format="csr"))
    full = np.ones((X.shape[0], X.shape[1] + 1))
    full[:, :-1] = X
    return full


def _dense(matrix: Any) -> Array:
    dense: Array = matrix.toarray() if sparse.issparse(matrix) else matrix
    return dense


def peak_memory() -> int:
    """Most bytes that this process has held so far; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)


def _place() -> str:
    """The worker's address, or where there is none, this process."""
    from distributed import get_worker

    try:
        return str(get_worker().address)
    except ValueError:
        return "this process"
