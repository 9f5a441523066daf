"""The engine: an encoder, a regressor and a cost joined into predict-then-learn, a block of rows at a time.

`FollowingEngine` is CS-DPP, whose directions move with the stream; `FixedEngine` serves the learners whose code
stands still (O-BR, O-CS, O-RAND), where nothing unfolds in sequence. Both take validated arrays.
"""

import copy
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from csdpp._kernels.block import (
    ABSENT,
    MASS,
    NONE,
    PBC,
    PBT,
    STEPS,
    Block,
    Recipe,
    end_strip,
    learn_row,
    make_work,
    predict_row,
    run_rows,
    start_strip,
)
from csdpp._kernels.top import top_columns
from csdpp.blas import LARGE, one_blas_thread, solve_lower_inplace
from csdpp.calibration import Calibration
from csdpp.costs import Cost
from csdpp.encoders import CappedMSG, CompressedSensing, StandingEncoder
from csdpp.errors import InvalidInput
from csdpp.interrupts import Interrupts
from csdpp.rates import Schedule, rates_of
from csdpp.regressors import OnlineGradient, Regressor

Array = NDArray[Any]
BASES = {"pbc": PBC, "pbt": PBT, "none": NONE}
#: Numbers in one strip of scores: bounds the memory of `scores` and `predict`, whatever n and K.
_STRIP = 1 << 22
_ALL = np.empty(0, np.bool_)  # all labels of a row are known


class Engine(Protocol):
    """What the estimators ask of an engine. Y is boolean (n, K), dense or CSR."""

    @property
    def K(self) -> int:
        """Labels."""

    @property
    def dtype(self) -> Any:
        """Of the arithmetic."""

    @property
    def regularization(self) -> float:
        """Lambda of the ridge."""

    def learn(
        self, X: Any, Y: Any, record: bool = False, chances: Array | None = None, known: Array | None = None
    ) -> tuple[Array, Array]:
        """Predict and learn row by row: predictions (n, K) made before each row; bound terms (n, 2) or (0, 2).

        ``chances`` (n, K), where given, gets the calibrated chances of each row before it was learned. ``known``
        (n, K), dense, says which labels are told, if not all are; what Y says of the others is False.
        """

    @property
    def adjustable(self) -> dict[str, Any]:
        """The parameters that may change amid a stream, as they are now."""

    def adjust(self, **changed: Any) -> None:
        """Take over such parameters."""

    @property
    def weights(self) -> Array:
        """W of the regressor (d, p), the constant feature last; a copy."""

    def scores(self, X: Any) -> Array:
        """Scores (n, K) by what is known now; nothing is learned."""

    def predict(self, X: Any) -> Array:
        """Boolean predictions (n, K); nothing is learned, and scores are made a strip at a time."""

    def top(self, X: Any, k: int, chances: bool) -> tuple[Array, Array]:
        """Columns of the k best labels of each row (n, k), falling, and their scores or chances; likewise."""

    @property
    def calibration(self) -> Calibration:
        """How scores become chances."""

    def add_labels(self, count: int, M: int | None) -> None:
        """Labels that were not there in any row so far; M of the directions from now on, where there are any."""

    def add_features(self, count: int) -> None:
        """Features that were zero in all rows so far."""

    def drop_labels(self, places: Array, M: int | None) -> None:
        """Forget labels."""

    def drop_features(self, places: Array) -> None:
        """Forget features."""


class _BlockEngine:
    """Cuts rows into blocks, adds the constant feature, checks magnitudes; the two engines share it."""

    K: int
    regressor: Regressor
    block_size: int
    intercept: bool
    dtype: Any
    regularization: float
    calibration: Calibration

    def _answer(self, features: Any) -> Array:
        raise NotImplementedError

    def _decide(self, scores: Array) -> Array:
        """The labels of scores: sign(0) = +1."""
        positive: Array = scores >= 0.0
        return positive

    @property
    def _large(self) -> bool:
        """Whether the products with d-sized matrices are worth several BLAS threads."""
        return self.regressor.size >= LARGE

    @property
    def weights(self) -> Array:
        """See `Engine`."""
        return self.regressor.W.copy()

    def add_features(self, count: int) -> None:
        """See `Engine`. The constant feature stays last."""
        self.regressor.add_features(count, len(self.regressor.W) - self.intercept)
        vars(self).pop("_limit", None)

    def drop_features(self, places: Array) -> None:
        """See `Engine`."""
        self.regressor.drop_features(places)
        vars(self).pop("_limit", None)

    @property
    def adjustable(self) -> dict[str, Any]:
        """See `Engine`."""
        current = {"block_size": self.block_size, "forgetting": self.regressor.forgetting}
        if isinstance(self.regressor, OnlineGradient):
            current["step"] = self.regressor.step
        return current

    def adjust(self, **changed: Any) -> None:
        """See `Engine`."""
        self.block_size, self.regressor.forgetting = int(changed["block_size"]), float(changed["forgetting"])
        if isinstance(self.regressor, OnlineGradient):
            self.regressor.step = float(changed["step"])
        vars(self).pop("_limit", None)  # forgetting decides how large features may be

    def scores(self, X: Any) -> Array:
        """See `Engine`."""
        out = np.empty((X.shape[0], self.K), self.dtype)
        with one_blas_thread(self._large):
            for rows, features in self._strips(X):
                out[rows] = self._answer(features)
        return out

    def predict(self, X: Any) -> Array:
        """See `Engine`."""
        out = np.empty((X.shape[0], self.K), np.bool_)
        with one_blas_thread(self._large):
            for rows, features in self._strips(X):
                out[rows] = self._decide(self._answer(features))
        return out

    def top(self, X: Any, k: int, chances: bool) -> tuple[Array, Array]:
        """See `Engine`."""
        columns = np.empty((X.shape[0], k), np.int64)
        values = np.empty((X.shape[0], k), np.float64 if chances else self.dtype)
        with one_blas_thread(self._large):
            for rows, features in self._strips(X):
                scores = self._answer(features)
                scores = self.calibration.chances(scores) if chances else scores
                columns[rows] = top_columns(scores, k)
                values[rows] = np.take_along_axis(scores, columns[rows], axis=1)
        return columns, values

    def _blocks(self, X: Any, m: int) -> Iterator[tuple[slice, Block, Any]]:
        """Lay out block after block; each must be closed before the next is asked for."""
        size = self.regressor.rows_per_block(self.block_size)
        start = 0
        while start < X.shape[0]:
            block, plan = self.regressor.open(self._features(X[start : start + size]), m)
            rows = slice(start, start + len(block.Z))
            yield rows, block, plan
            start = rows.stop

    def _calibrate(self, S: Array, Y: Array, rows: slice, chances: Array | None, known: Array | None) -> None:
        """Take in the scores of rows, as they were before these were learned."""
        P, told = (None if array is None else array[rows] for array in (chances, known))
        self.calibration.add(S, Y, self.regressor.forgetting, P, told)

    def _strips(self, X: Any) -> Iterator[tuple[slice, Any]]:
        size = max(1, _STRIP // max(self.K, X.shape[1]))
        for start in range(0, X.shape[0], size):
            rows = slice(start, min(start + size, X.shape[0]))
            yield rows, self._features(X[rows])

    def _features(self, X: Any) -> Any:
        """Rows with the constant feature last, in C order."""
        if sparse.issparse(X):
            one = sparse.csr_array(np.ones((X.shape[0], 1), self.dtype))
            return sparse.csr_array(sparse.hstack([X, one], format="csr")) if self.intercept else sparse.csr_array(X)
        if not self.intercept:
            return np.ascontiguousarray(X, self.dtype)
        full = np.ones((X.shape[0], X.shape[1] + 1), self.dtype)
        full[:, :-1] = X
        return full

    @cached_property
    def _limit(self) -> float:
        """The largest feature whose square stays finite on its way through A^-1, which forgetting lets grow."""
        d, kind, mu = self.regressor.W.shape[0], np.finfo(self.dtype), self.regressor.forgetting
        room = 1.0 if mu == 1.0 else min(1e-4, mu) * np.sqrt(kind.eps)
        return float(np.sqrt(kind.max * room * min(1.0, self.regularization) / (10.0 * d)))

    def check_magnitude(self, X: Any) -> None:
        """Before anything is learned."""
        if not sparse.issparse(X) and np.vdot(X, X) <= self._limit**2:
            return
        largest = max(float(X.max()), -float(X.min())) if X.shape[0] else 0.0
        if largest > self._limit:
            raise InvalidInput(
                f"csdpp: features must be at most {self._limit:.1e} in size for dtype {np.dtype(self.dtype).name}, "
                f"got {largest:.3g}; scale the features"
            )


class FollowingEngine(_BlockEngine):
    """CS-DPP: the directions follow the stream (algorithm 1 of the paper, made exact in docs/maths.md).

    Time per row O(d^2 + dK) with PBC and O(d^2 + dM) with PBT or none, plus O(M^2 K) for the directions;
    memory O(d^2 + dK + MK) and O(d^2 + dM + MK).
    """

    def __init__(
        self,
        *,
        cost: Cost,
        encoder: CappedMSG,
        regressor: Regressor,
        recipe: Recipe,
        rng: np.random.RandomState,
        block_size: int,
        intercept: bool,
        regularization: float,
        schedule: Schedule | None = None,
    ) -> None:
        self.schedule = schedule  # rates row by row, in place of the recipe's
        self.cost, self.encoder, self.regressor, self.recipe, self.rng = cost, encoder, regressor, recipe, rng
        self.block_size, self.intercept, self.regularization = block_size, intercept, regularization
        self.m, self.K = encoder.basis.Q.shape
        self.dtype = encoder.basis.Q.dtype
        self.o = np.zeros(self.K)  # the reference; float64 always: a running mean must not stall
        # Rows learned, the same with forgetting, the mean of v of a label that never came, whether labels were missing.
        self.clock = np.zeros(4)
        self.known = np.zeros(self.K)  # rows, with forgetting, in which each label was known; in use once one was not
        self.memory = cost._start(self.K)  # of a cost of the whole stream: counts of the rows so far
        self.calibration = Calibration(self.K)
        p = regressor.W.shape[1]
        self.work = make_work(encoder.basis, p)

    def learn(
        self, X: Any, Y: Any, record: bool = False, chances: Array | None = None, known: Array | None = None
    ) -> tuple[Array, Array]:
        """See `Engine`. A user's cost that fails leaves the engine as it was before the call."""
        self.check_magnitude(X)
        before = self._snapshot(X.shape[0]) if self.cost._kind < 0 else None
        rates = self._rates(X.shape[0])
        told = np.empty((0, self.K), np.bool_) if known is None else known
        Y_hat = np.empty(Y.shape, np.bool_)
        bound = np.empty((len(Y_hat) if record else 0, 2))
        try:
            with one_blas_thread(self._large), Interrupts(wait=before is None) as interrupts:
                for rows, block, plan in self._blocks(X, self.m):
                    truth, S = _dense(Y[rows]), np.empty((len(block.Z), self.K), self.dtype)
                    with one_blas_thread() if self._large else nullcontext():
                        self._run(block, truth, told[rows], Y_hat[rows], S, bound[rows], rates[rows])
                    self._calibrate(S, truth, rows, chances, known)
                    self.regressor.close(block, plan, carried=self.recipe.basis == PBT)
                    interrupts.check(rows.stop)
        except BaseException:
            if before is not None:
                vars(self).update(before)
            raise
        return Y_hat, bound

    def _snapshot(self, n: int) -> dict[str, Any]:
        """Copies of what learning n rows may have changed when a user's cost fails.

        The regressor, which is large, learns a block after its last call of the cost: it is copied only if there
        may be several blocks.
        """
        small = {name: vars(self)[name] for name in ("encoder", "o", "clock", "known", "rng", "calibration")}
        if n > 1:
            small["regressor"] = self.regressor
        return copy.deepcopy(small)

    @property
    def adjustable(self) -> dict[str, Any]:
        """See `Engine`."""
        rate = self.recipe.rate if self.schedule is None else self.schedule
        return {**super().adjustable, "rate": rate}

    def adjust(self, **changed: Any) -> None:
        """See `Engine`."""
        super().adjust(**changed)
        rate, forgetting = changed["rate"], float(changed["forgetting"])
        self.schedule = rate if callable(rate) else None
        number = 0.0 if callable(rate) else float(rate)
        self.recipe = self.recipe._replace(rate=number, forgetting=forgetting)

    def _rates(self, n: int) -> Array:
        """Of the next n rows, (n,); none where the recipe says it all."""
        if self.schedule is None:
            return np.empty(0)
        return rates_of("csdpp", self.schedule, int(self.clock[STEPS]), n)

    def _run(self, block: Block, Y: Array, known: Array, Y_hat: Array, S: Array, bound: Array, rates: Array) -> None:
        """The sequential part: compiled as a whole for built-in costs, row by row for a user's."""
        recipe, basis = self.recipe, self.encoder.basis
        width = 1 + (self.m if recipe.basis == NONE else 0)
        draws = recipe.sampled or recipe.basis == NONE
        uniforms = self.rng.random_sample((len(Y), width)) if draws else np.zeros((len(Y), 1))
        if self.cost._kind >= 0:
            past = self.o, self.clock, self.known, self.memory
            run_rows(recipe, basis, block, *past, self.work, Y, known, rates, uniforms, Y_hat, S, bound)
            return
        strip = len(basis.frame) - self.m
        for first in range(0, len(Y), strip):
            last = min(first + strip, len(Y))
            start_strip(first, last, recipe, basis, block, self.work)
            for i in range(first, last):
                predict_row(i, first, recipe, basis, block, self.o, self.work, Y_hat[i])
                S[i] = self.work.s
                row = known[i] if len(known) else _ALL
                self.cost._known_weights_row(Y[i], Y_hat[i], row, recipe.weighting, self.work.delta)
                state = self.o, self.clock, self.known, self.work
                learn_row(i, first, last, recipe, basis, block, *state, Y[i], row, rates, uniforms[i], bound)
            end_strip(first, recipe, basis, block, self.work)

    def _answer(self, features: Any) -> Array:
        """Scores s = o + Q' (keep * z) of rows with their constant feature."""
        o = self.o.astype(self.dtype)
        Z = features @ self.regressor.W
        if self.recipe.basis == PBC:
            Z = self.encoder.encode(Z - o)
        return self.encoder.decode(Z) + o

    # ---- labels that come and go

    def add_labels(self, count: int, M: int | None) -> None:
        """See `Engine`. Exact for H and o where weights are fixed; see docs/streams.md for the rest.

        The reference of a new label is the mean that it would have had, also where the reference is zero: with a
        zero column in Q it would be predicted everywhere otherwise.
        """
        M = self.recipe.M if M is None else max(M, self.recipe.M)
        step = self._rescaled(self.K + count, M)
        if self.recipe.basis == PBC:
            column = self.regressor.of_the_absent().astype(self.dtype)
            self.regressor.W = np.hstack([self.regressor.W, np.repeat(column[:, None], count, axis=1)])
        self.encoder.add_labels(count, M, step)
        self.o = np.concatenate([self.o, np.full(count, self.clock[ABSENT])])
        self.known = np.concatenate([self.known, np.full(count, self.clock[MASS])])
        self.memory = self.cost._more_labels(self.memory, count, self.clock[MASS])
        self.calibration.add_labels(count)
        self._resize(M)

    def drop_labels(self, places: Array, M: int | None) -> None:
        """See `Engine`."""
        M = self.recipe.M if M is None else M
        held, step = len(self.encoder.directions), self._rescaled(self.K - len(places), M)
        turn = self.encoder.drop_labels(places, M, step)
        W = self.regressor.W
        self.regressor.W = np.delete(W, places, axis=1) if self.recipe.basis == PBC else W[:, :held] @ turn
        self.o, self.known = np.delete(self.o, places), np.delete(self.known, places)
        self.memory = self.cost._fewer_labels(self.memory, places, self.K)
        self.calibration.drop_labels(places)
        self._resize(M)

    def _rescaled(self, K: int, M: int) -> float:
        """As if there had always been K labels where a cost shares its weight among them; the factor of eta c c'."""
        shares = self.K / K
        if self.cost._shared:
            factor = float(np.sqrt(shares))
            self.regressor.scale(factor)
            self.o = self.o * factor
            self.clock[ABSENT] *= factor
            self.calibration.rescale(factor)
        return (shares**2 if self.cost._shared else shares) * M / self.recipe.M

    def _resize(self, M: int) -> None:
        """Sizes that follow from those of the basis."""
        self.m, self.K = self.encoder.basis.Q.shape
        self.recipe = self.recipe._replace(M=M)
        W = self.regressor.W
        if self.recipe.basis != PBC:
            W = np.pad(W[:, : self.m], ((0, 0), (0, max(0, self.m - W.shape[1]))))
        self.regressor.W = np.ascontiguousarray(W)
        self.work = make_work(self.encoder.basis, W.shape[1])

    @property
    def mass(self) -> float:
        """Rows remembered: all rows learned, or fewer under forgetting."""
        return float(self.clock[MASS])


class FixedEngine(_BlockEngine):
    """A code that stands still: all targets of a block are known beforehand, one triangular solve does it.

    O(d^2 + d p) a row for codes of p numbers.
    """

    def __init__(
        self,
        *,
        K: int,
        encoder: StandingEncoder,
        regressor: Regressor,
        block_size: int,
        intercept: bool,
        regularization: float,
        dtype: Any,
        exclusive: bool = False,
    ) -> None:
        self.exclusive = exclusive  # one label a row: the one with the largest score
        self.K, self.encoder, self.regressor, self.dtype = K, encoder, regressor, dtype
        self.block_size, self.intercept, self.regularization = block_size, intercept, regularization
        self.calibration = Calibration(K)

    def learn(
        self, X: Any, Y: Any, record: bool = False, chances: Array | None = None, known: Array | None = None
    ) -> tuple[Array, Array]:
        """See `Engine`. (I + L) E = Z - targets; the codes predicted were E + targets."""
        self.check_magnitude(X)
        Y_hat = np.empty(Y.shape, np.bool_)
        bound = np.zeros((len(Y_hat) if record else 0, 2))
        with one_blas_thread(self._large), Interrupts() as interrupts:
            for rows, block, plan in self._blocks(X, 0):
                truth = _dense(Y[rows])
                block.absent[:] = -1.0 / np.sqrt(self.K)
                if known is None:
                    targets = self.encoder.encode(self._vectors(truth))
                    block.E[:] = solve_lower_inplace(block.L, block.Z - targets, unit=True)
                    codes = block.E + targets
                else:
                    codes = self._run_partial(block, self._vectors(truth), known[rows])
                S = np.ascontiguousarray(self._decode_rows(codes, truth, None if known is None else known[rows]))
                Y_hat[rows] = self._decide(S)
                self._calibrate(S, truth, rows, chances, known)
                if record:
                    bound[rows, 0] = np.square(block.E).sum(axis=1)
                self.regressor.close(block, plan, carried=False)
                interrupts.check(rows.stop)
        return Y_hat, bound

    def _run_partial(self, block: Block, V: Array, known: Array) -> Array:
        """Fill the errors of rows some of whose labels are not known, one by one, and return the codes predicted.

        The target of an unknown label is what the predicted code says of it.
        """
        codes = np.empty_like(block.Z)
        for i, (v, told) in enumerate(zip(V, known, strict=True)):
            codes[i] = block.Z[i] - block.L[i, :i] @ block.E[:i]
            block.E[i] = codes[i] - self.encoder.complete(codes[i], v, told) if told.any() else 0.0
        return codes

    def _decode_rows(self, codes: Array, truth: Array, known: Array | None) -> Array:
        """Scores of a block whose ``truth`` becomes known row by row."""
        return self.encoder.decode(codes)

    def _vectors(self, Y: Array) -> Array:
        """Label vectors y / sqrt(K), y in {-1, +1}: the Hamming weights."""
        root = self.dtype.type(1.0 / np.sqrt(self.K))
        return np.where(Y, root, -root)

    def add_labels(self, count: int, M: int | None) -> None:
        """See `Engine`. Exact for O-BR; O-CS and O-RAND get random columns that follow from those they have."""
        self._rescale(self.K + count)
        column = self.regressor.of_the_absent().astype(self.dtype)
        self.regressor.W = self.encoder.add_labels(self.regressor.W, column, count)
        self.calibration.add_labels(count)
        self.K += count

    def drop_labels(self, places: Array, M: int | None) -> None:
        """See `Engine`."""
        self._rescale(self.K - len(places))
        self.regressor.W = np.ascontiguousarray(self.encoder.drop_labels(self.regressor.W, places))
        self.calibration.drop_labels(places)
        self.K -= len(places)

    def _rescale(self, K: int) -> None:
        """What becomes of 1 / sqrt(K)."""
        factor = float(np.sqrt(self.K / K))
        self.regressor.scale(factor)
        self.calibration.rescale(factor)

    def _answer(self, features: Any) -> Array:
        return self.encoder.decode(features @ self.regressor.W)

    def _decide(self, scores: Array) -> Array:
        if not self.exclusive:
            return super()._decide(scores)
        positive: Array = scores.argmax(axis=1)[:, None] == np.arange(self.K)
        return positive


class SensingEngine(FixedEngine):
    """Compressed sensing: the decoder takes in as many labels as rows have had on average so far."""

    encoder: CompressedSensing

    def __init__(self, sparsity: int | None, **parts: Any) -> None:
        super().__init__(**parts)
        self.sparsity = sparsity
        self.seen = np.zeros(2)  # rows, and labels on them

    def _decode_rows(self, codes: Array, truth: Array, known: Array | None) -> Array:
        counts, ones = truth.sum(axis=1, dtype=np.float64), np.ones(len(codes))
        if known is not None:  # as many on the labels that are not known; a row of which none is does not count
            told = known.sum(axis=1)
            counts, ones = counts * self.K / np.maximum(told, 1), np.minimum(told, 1).astype(np.float64)
        labels = self.seen[1] + np.concatenate(([0.0], np.cumsum(counts)))
        rows = self.seen[0] + np.concatenate(([0.0], np.cumsum(ones)))
        scores = self.encoder.pursue(codes, self._sizes(rows[:-1], labels[:-1]))
        self.seen = np.array([rows[-1], labels[-1]])
        return scores

    def _rescale(self, K: int) -> None:
        """Measurements are of 0 and 1, whatever K."""

    def _sizes(self, rows: Array, labels: Array) -> Array:
        if self.sparsity is not None:
            return np.full(len(rows), self.sparsity, np.int64)
        return np.ceil(labels / np.maximum(rows, 1.0)).astype(np.int64)

    def _answer(self, features: Any) -> Array:
        codes = features @ self.regressor.W
        sizes = self._sizes(self.seen[:1], self.seen[1:])
        return self.encoder.pursue(codes, np.repeat(sizes, len(codes)))


def _dense(Y: Any) -> Array:
    dense: Array = Y.toarray() if sparse.issparse(Y) else np.ascontiguousarray(Y)
    return dense
