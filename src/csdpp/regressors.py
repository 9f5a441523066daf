"""Online linear regressors: ridge and gradient descent, a block of rows at a time (section 3.4 of the paper).

Both keep W (d, p) and answer `open` (lay out a block: nothing changes yet) and `close` (learn it). The same
regressor serves PBC (p = K, W is the paper's H), PBT (p = rows of Q) and the baselines.

    row by row        z_i = W' x_i,   e_i = z_i - target_i,   W <- W - g_i e_i'

is, over a block, Z = X W_0 and z_i = Z_i - sum_{j<i} L_ij e_j, and at its end W = W_0 - sum_i g_i e_i'.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from csdpp._kernels.block import Block
from csdpp._kernels.sparse import subtract_outer_inplace
from csdpp.blas import cholesky_inplace, solve_lower_inplace, subtract_product_inplace
from csdpp.errors import InvalidInput

Array = NDArray[Any]
#: Rows scaled up by forgetting within one block stay below this factor.
_LARGEST_SCALE = 1e2
#: A block ends where the pivots of C = I + G G' differ by more than this factor, which is lost in digits.
_LARGEST_SPREAD = 1e4


class Regressor(Protocol):
    """What the engine asks of a regressor."""

    W: Array
    forgetting: float

    @property
    def size(self) -> int:
        """Numbers in the largest matrix that a block is multiplied with."""

    def rows_per_block(self, wanted: int) -> int:
        """How many of the ``wanted`` rows may go into one block."""

    def open(self, X: Any, m: int) -> tuple[Block, Any]:
        """Lay out rows of X for codes on ``m`` directions, and a plan for `close`; nothing is learned yet.

        The block holds the first of the rows, as many as are good together; at least one.
        """

    def close(self, block: Block, plan: Any, *, carried: bool) -> None:
        """Learn the errors in ``block``; ``carried`` says that W follows the basis (W <- W T)."""

    def of_the_absent(self) -> Array:
        """The column of W (d,) of a label whose targets were ``block.absent`` in all rows so far; float64."""

    def scale(self, factor: float) -> None:
        """As if all targets so far had been ``factor`` times as large."""

    def add_features(self, count: int, at: int) -> None:
        """So many features that were zero in all rows so far, before feature ``at``."""

    def drop_features(self, places: Array) -> None:
        """Forget features, as if they had never been there."""


class OnlineRidge:
    """Ridge regression by recursive least squares: W = A^-1 B with A = lambda I + sum_i x_i x_i'.

    The square root F of A^-1 = F F' is kept rather than A^-1: the update of a block of n rows,

        G = X F,  C = I + G G' = L L',  F <- F - (F G') (L')^-1 (L + I)^-1 G,

    leaves F F' symmetric and positive by construction, whatever the scale of the features, and works on the
    square root of the condition number. A^-1 itself, updated by subtraction (Sherman and Morrison, as in the
    paper), loses its positivity once a feature is some 1e8 times larger than sqrt(lambda)
    (tests/test_precision.py). It costs 6 d^2 flops a row instead of 4 d^2. O(d^2 + d p) a row.

    With ``forgetting`` mu < 1 the past fades before each row: A <- mu A + x x', the regularisation with it; where
    no row brings anything new for very long, the regularisation is given back (`_restore`).
    """

    def __init__(self, d: int, p: int, *, regularization: float, forgetting: float, dtype: Any) -> None:
        self.W: Array = np.zeros((d, p), dtype)
        self.F: Array = np.eye(d, dtype=dtype) / np.sqrt(np.asarray(regularization, dtype))
        self.regularization = regularization
        self.forgetting = forgetting
        self.absent = np.zeros(d)  # sum of x times the target of a label that never came: its column is A^-1 of this

    @property
    def size(self) -> int:
        """The larger of F and W."""
        return max(self.F.size, self.W.size)

    def rows_per_block(self, wanted: int) -> int:
        """As many rows as asked for, unless forgetting would scale the last of them beyond reason."""
        if self.forgetting == 1.0:
            return wanted
        return max(1, min(wanted, int(2.0 * np.log(_LARGEST_SCALE) / -np.log(self.forgetting))))

    def open(self, X: Any, m: int) -> tuple[Block, Any]:
        """Lay out the rows of X (n, d). Forgetting is scaling: A_i / mu^i = A_0 + sum_j x_j x_j' / mu^j."""
        X = X.toarray() if sparse.issparse(X) else X
        scale = None if self.forgetting == 1.0 else self._scale(len(X))
        with np.errstate(over="ignore", invalid="ignore"):
            G = (X if scale is None else X * scale[:, None]) @ self.F
            C = G @ G.T
        if not np.isfinite(C.diagonal()).all():
            raise InvalidInput(_too_large(X))
        C.ravel()[:: len(C) + 1] += 1.0
        root = _well_conditioned(*cholesky_inplace(C))
        n = len(root)
        diagonal = root.diagonal().copy()
        L = root / diagonal
        if scale is not None:
            scale = scale[:n]
            L *= scale / scale[:, None]  # x_i / s_i inherits (s_j e_j): errors stay unscaled in E
        return _layout(X[:n] @ self.W, L, 1.0 - 1.0 / diagonal**2, m), (X[:n], G[:n], root, diagonal, scale)

    def close(self, block: Block, plan: Any, *, carried: bool) -> None:
        """W <- W_0 T - V D^-1 E with V L' = U = F G', and F as above."""
        X, G, root, diagonal, scale = plan
        self._count_absent(X, block.absent, scale)
        U = self.F @ G.T
        if carried:
            self.W = self.W @ block.T.astype(self.W.dtype)
        shares = 1.0 / diagonal if scale is None else scale / diagonal
        errors = block.E * shares[:, None]
        subtract_product_inplace(self.W, U, solve_lower_inplace(root, errors, transposed=True))
        more = root.copy()
        more.ravel()[:: len(root) + 1] += 1.0
        solve_lower_inplace(root, solve_lower_inplace(more, G), transposed=True)
        subtract_product_inplace(self.F, U, G)
        if scale is not None:
            self.F *= scale[-1]
            self._restore()

    def _restore(self) -> None:
        """A <- A + lambda I once A^-1 is beyond 1 / (sqrt(eps) lambda) somewhere; W stays.

        In a direction that no row touches, forgetting wears A away and A^-1 grows without limit: it would first cost
        the digits of the other directions and overflow in the end. O(d^2) a block, O(d^3) when it happens: not
        before some 18 / (1 - mu) rows, 8 / (1 - mu) in float32.
        """
        largest = np.einsum("ij,ij->i", self.F, self.F).max()
        if largest * self.regularization <= np.finfo(self.F.dtype).eps ** -0.5:
            return
        self.absent += self.regularization * self.of_the_absent()
        C = self.regularization * (self.F.T @ self.F)  # (A + lambda I)^-1 = F (I + lambda F'F)^-1 F'
        C.ravel()[:: len(C) + 1] += 1.0
        root, _ = cholesky_inplace(C)
        self.F = solve_lower_inplace(root, np.ascontiguousarray(self.F.T)).T.copy()

    def _scale(self, n: int) -> Array:
        return (self.forgetting ** (-0.5 * np.arange(1, n + 1))).astype(self.F.dtype)

    def precision(self) -> Array:
        """A^-1 = F F' (d, d)."""
        product: Array = self.F @ self.F.T
        return product

    # ---- features and labels that come and go

    def _count_absent(self, X: Array, targets: Array, scale: Array | None) -> None:
        """B <- mu^n B + sum_i mu^(n - i) x_i target_i."""
        if scale is not None:
            self.absent *= self.forgetting ** len(X)
            targets = targets * (scale / scale[-1]) ** 2
        self.absent += targets @ X

    def of_the_absent(self) -> Array:
        """See `Regressor`. A^-1 B. O(d^2)."""
        column: Array = self.F @ (self.F.T @ self.absent)
        return column

    def scale(self, factor: float) -> None:
        """See `Regressor`. A holds features only."""
        self.W, self.absent = self.W * self.W.dtype.type(factor), self.absent * factor

    def add_features(self, count: int, at: int) -> None:
        """See `Regressor`. A gets rows and columns of lambda I: F those of its inverse square root."""
        self.W, self.absent = _with_rows(self.W, count, at), _with_rows(self.absent, count, at)
        F = np.zeros((len(self.W), len(self.W)), self.F.dtype)
        old = np.delete(np.arange(len(F)), np.arange(at, at + count))
        F[np.ix_(old, old)] = self.F
        F[np.arange(at, at + count), np.arange(at, at + count)] = 1.0 / np.sqrt(self.F.dtype.type(self.regularization))
        self.F = F

    def drop_features(self, places: Array) -> None:
        """See `Regressor`. With S = A^-1, j the dropped and r the rest:

            W_r <- W_r - S_rj S_jj^-1 W_j,   S_rr <- S_rr - S_rj S_jj^-1 S_jr.

        An orthogonal turn of the columns of F, F F' as before, that leaves F_j = [C 0] makes it F_r = [D E]:
        S_rj S_jj^-1 = D C^-1, and E is the square root wanted. O(d^2 j + d^3).
        """
        turn, _ = np.linalg.qr(self.F[places].T, mode="complete")
        F, j = self.F @ turn, len(places)
        C, rest = F[places, :j], np.delete(F, places, axis=0)
        shares = np.linalg.solve(C.T, rest[:, :j].T).T
        self.W = np.delete(self.W, places, axis=0) - shares @ self.W[places]
        self.F, self.absent = np.ascontiguousarray(rest[:, j:]), np.delete(self.absent, places)


class OnlineGradient:
    """Least squares by gradient descent with a normalised step: W <- W - eta_t x_t e_t',

        eta_t = min(1, step / sqrt(t)) / max(|x_t|^2, mean of |x|^2 so far).

    The published step is step / sqrt(t) alone. It diverges as soon as eta |x|^2 > 2, which is why the paper had
    to take 0.001 on one of its sets; ours has eta |x|^2 <= 1 always, equals the published one on rows of length
    one, and does not depend on the scale of the features. Under ``forgetting`` mu < 1 the count t is the number
    of rows remembered, at most 1 / (1 - mu), so that the step does not die. O(nnz(x) p) a row, and O(d m^2) a
    block to follow the basis (PBT).
    """

    def __init__(self, d: int, p: int, *, step: float, forgetting: float, dtype: Any) -> None:
        self.W: Array = np.zeros((d, p), dtype)
        self.step = step
        self.forgetting = forgetting
        self.mass = 0.0  # rows remembered
        self.power = 0.0  # sum of their squared lengths
        self.absent = np.zeros(d)  # the column of a label that never came

    @property
    def size(self) -> int:
        """That of W."""
        return self.W.size

    def rows_per_block(self, wanted: int) -> int:
        """Any number."""
        return wanted

    def open(self, X: Any, m: int) -> tuple[Block, Any]:
        """Lay out the rows of X (n, d), dense or CSR."""
        with np.errstate(over="ignore", invalid="ignore"):
            gram = (X @ X.T).toarray() if sparse.issparse(X) else X @ X.T
        if not np.isfinite(gram).all():
            raise InvalidInput(_too_large(X))
        squares = gram.diagonal().astype(np.float64)
        eta = np.zeros(len(squares), gram.dtype)
        mass, power = self.mass, self.power
        for i, square in enumerate(squares):
            mass = self.forgetting * mass + 1.0
            power = self.forgetting * power + square
            if square > 0.0:
                eta[i] = min(1.0, self.step / np.sqrt(mass)) / max(square, power / mass)
        L = gram * eta
        return _layout(X @ self.W, L, eta * gram.diagonal(), m), (X, eta, mass, power)

    def close(self, block: Block, plan: Any, *, carried: bool) -> None:
        """W <- W_0 T - sum_i eta_i x_i e_i'."""
        X, eta, self.mass, self.power = plan
        self._learn_absent(X, eta, block)
        if carried:
            self.W = self.W @ block.T.astype(self.W.dtype)
        errors = block.E * eta[:, None]
        if sparse.issparse(X):
            subtract_outer_inplace(self.W, X.data, X.indices, X.indptr, errors)
        else:
            subtract_product_inplace(self.W, X.T, errors)

    def _learn_absent(self, X: Any, eta: Array, block: Block) -> None:
        errors = (X @ self.absent - block.absent)[:, None]
        if len(errors) > 1:
            solve_lower_inplace(block.L.astype(np.float64, copy=False), errors, unit=True)
        self.absent -= X.T @ (errors[:, 0] * eta)

    def of_the_absent(self) -> Array:
        """See `Regressor`. Learned like any other column."""
        return self.absent

    def scale(self, factor: float) -> None:
        """See `Regressor`."""
        self.W, self.absent = self.W * self.W.dtype.type(factor), self.absent * factor

    def add_features(self, count: int, at: int) -> None:
        """See `Regressor`."""
        self.W, self.absent = _with_rows(self.W, count, at), _with_rows(self.absent, count, at)

    def drop_features(self, places: Array) -> None:
        """See `Regressor`. Not as if they had never been there: what the others learned beside them stays."""
        self.W, self.absent = np.delete(self.W, places, axis=0), np.delete(self.absent, places)


def _with_rows(array: Array, count: int, at: int) -> Array:
    """With ``count`` rows of zeros before row ``at``."""
    return np.insert(array, [at] * count, 0.0, axis=0)


def _well_conditioned(root: Array, n: int) -> Array:
    """The Cholesky factor of the leading rows of C, at most ``n``, whose pivots are of like size.

    The first rows of a stream with large features cannot share a block: C is then huge in one direction, and
    its unit part is lost in rounding. Once such a row is learned, its direction is small for the next block.
    """
    if len(root) == 1:
        return root
    pivots = root.diagonal()[:n] ** 2
    if n == len(root) and pivots.max() <= _LARGEST_SPREAD * pivots.min():
        return root
    spread = np.maximum.accumulate(pivots) / np.minimum.accumulate(pivots)
    n = max(1, int(np.searchsorted(spread, _LARGEST_SPREAD, side="right")))
    return np.ascontiguousarray(root[:n, :n])


def _layout(Z: Array, L: Array, gain: Array, m: int) -> Block:
    """Of L only what lies below the diagonal is read."""
    Z, L = np.ascontiguousarray(Z), np.ascontiguousarray(L)
    return Block(Z, L, gain, np.zeros(Z.shape, Z.dtype), np.eye(m), np.zeros(len(Z)))


def _too_large(X: Any) -> str:
    largest = abs(X).max()
    return f"features must have finite squares, got values up to {largest:.3g}; scale the features"
