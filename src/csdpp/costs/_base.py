"""What every cost answers, and the labels that it is asked about."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from csdpp._kernels import weights as kernels
from csdpp.errors import InvalidInput, InvalidParameter

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WEIGHTINGS = {
    "ordered": kernels.ORDERED,
    "shapley": kernels.SHAPLEY,
    "marginal": kernels.MARGINAL,
    "mean": kernels.MEAN,
}

ALL = np.empty(0, np.bool_)  # all labels of a row are known
CELLS = 2**20  # label entries that are held at a time: CSR rows made dense, candidate predictions


class Cost:
    """A cost c(y, ŷ) on rows of K labels. Costs that are the same function compare equal."""

    name: str
    _kind = -1  # which of the compiled costs; -1: a user's, to be asked through _weights_row
    _shared = False  # whether a label's weight is a share of 1 / K

    def loss(self, Y: Any, Y_hat: Any, mask: Any = None) -> Any:
        """The cost of each row: (n,) for two (n, K) indicator matrices, a float for two rows (K,).

        0/1 or bool; dense, CSR or a data frame. ``mask``, a dense array of their shape, says which labels of Y are
        known: the cost is that of the row without the others, and 0 where none is. O(nK).
        """
        Y, Y_hat, single = _check_labels(self.name, Y, Y_hat)
        known = check_mask(self.name, mask, Y.shape)
        out = np.empty(Y.shape[0])
        for rows, y, y_hat in _dense_blocks(self.name, Y, Y_hat):
            if known is None:
                self._loss_rows(y, y_hat, out[rows])
            else:
                self._known_loss_rows(y, y_hat, known[rows], out[rows])
        return float(out[0]) if single else out

    __call__ = loss

    def weights(self, Y: Any, Y_hat: Any, weighting: str = "ordered", mask: Any = None) -> Floats:
        """The label weights δ⁽ᵏ⁾, not square-rooted: dense (n, K), or (K,) for two rows; inputs as in `loss`.

        A label that is not known weighs nothing, and the others what they weigh in the row without it.

        O(nK) for the built-in costs: 0.1 ms a row for K = 10⁵ with thousands of mistakes, whatever the
        weighting.
        """
        weighting_id = resolve_weighting(weighting)
        Y, Y_hat, single = _check_labels(self.name, Y, Y_hat)
        known = check_mask(self.name, mask, Y.shape)
        out = np.empty(Y.shape)
        for rows, y, y_hat in _dense_blocks(self.name, Y, Y_hat):
            for t, row in enumerate(out[rows]):
                told = ALL if known is None else known[rows.start + t]
                self._known_weights_row(y[t], y_hat[t], told, weighting_id, row)
        return out[0] if single else out

    def _loss_rows(self, Y: Bools, Y_hat: Bools, out: Floats) -> None:
        """Write the costs of n rows into ``out`` (n,)."""
        kernels.builtin_loss(self._kind, Y, Y_hat, out)

    def _known_loss_rows(self, Y: Bools, Y_hat: Bools, known: Bools, out: Floats) -> None:
        """The same of what is ``known`` (n, K); 0 where nothing is."""
        if self._kind >= 0:
            kernels.known_loss(self._kind, Y, Y_hat, known, out)
            return
        out[:] = 0.0
        for t in np.flatnonzero(known.any(axis=1)):
            self._loss_rows(Y[t : t + 1, known[t]], Y_hat[t : t + 1, known[t]], out[t : t + 1])

    def _known_weights_row(self, y: Bools, y_hat: Bools, known: Bools, weighting_id: int, out: NDArray[Any]) -> None:
        """`_weights_row` of what is ``known`` (K,), or of all for (0,); the others weigh nothing."""
        if not len(known):
            self._weights_row(y, y_hat, weighting_id, out)
            return
        weights = np.zeros(int(np.count_nonzero(known)))
        if len(weights):
            self._weights_row(y[known], y_hat[known], weighting_id, weights)
        out[:] = 0.0
        out[known] = weights

    def _weights_row(self, y: Bools, y_hat: Bools, weighting_id: int, out: NDArray[Any]) -> None:
        """Write the weights of one row into ``out`` (K,); validates nothing."""
        kernels.builtin_weights(self._kind, weighting_id, y, y_hat, out)

    def _start(self, K: int) -> Floats:
        """The memory that a cost of the whole stream begins with (4, J); J = 0: each row is a cost by itself."""
        return np.zeros((4, 0))

    def _more_labels(self, memory: Floats, count: int, rows: float) -> Floats:
        """The memory with labels that in the ``rows`` so far were neither there nor predicted."""
        return memory

    def _fewer_labels(self, memory: Floats, places: NDArray[Any], K: int) -> Floats:
        """The memory without some of the K labels."""
        return memory

    def _identity(self) -> tuple[Any, ...]:
        return (self.name,)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((type(self), self.name))  # a user's function need not be hashable

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def check_mask(who: str, mask: Any, shape: tuple[int, ...]) -> Bools | None:
    """Which labels are known, as booleans of ``shape``; None if all are.

    >>> check_mask("example", [[1, 1]], (1, 2)) is None, check_mask("example", [1, 0], (1, 2))
    (True, array([[ True, False]]))
    """
    if mask is None:
        return None
    known = _as_bool(who, "mask", mask)
    if known.shape not in (shape, shape[1:]) or (known.ndim == 1 and shape[0] != 1):
        raise InvalidInput(f"{who}: mask must have the shape of Y, {shape}, got {known.shape}; True means known")
    return None if known.all() else np.ascontiguousarray(known.reshape(shape))


def resolve_weighting(weighting: Any) -> int:
    """The number by which the kernels know a weighting.

    >>> resolve_weighting("ordered")
    0
    """
    if isinstance(weighting, str) and weighting in WEIGHTINGS:
        return WEIGHTINGS[weighting]
    raise InvalidParameter(
        f"weighting must be one of {', '.join(map(repr, WEIGHTINGS))}, got {weighting!r}; choose one of them"
    )


def _check_labels(who: str, Y: Any, Y_hat: Any) -> tuple[Any, Any, bool]:
    """Both as (n, K), dense bool or CSR, and whether a single row was meant."""
    Y, Y_hat = _as_rows(who, "Y", Y), _as_rows(who, "Y_hat", Y_hat)
    if Y.shape != Y_hat.shape or Y.ndim not in (1, 2) or Y.shape[-1] == 0:
        raise InvalidInput(
            f"{who}: Y and Y_hat must have one shape, (n, K) or (K,) with at least one label, got {Y.shape} "
            f"and {Y_hat.shape}; pass a row of 0/1 indicators for each example in both"
        )
    return (Y[None], Y_hat[None], True) if Y.ndim == 1 else (Y, Y_hat, False)


def _as_rows(who: str, what: str, Y: Any) -> Any:
    return Y.tocsr() if sparse.issparse(Y) else _as_bool(who, what, Y)


def _as_bool(who: str, what: str, Y: Any) -> Bools:
    """C-contiguous booleans of Y's shape, or an error that shows the first entry that is no 0/1."""
    try:
        values = np.asarray(Y)
        values = values.astype(np.float64) if values.dtype == object else values  # data frames of bool or of None
        strange = [] if values.dtype == bool else values[(values != 0) & (values != 1)]
        got = str(strange[0]) if len(strange) else None
    except (TypeError, ValueError):  # rows of different length, strings, None
        got = reprlib.repr(Y)
    if got is not None:
        raise InvalidInput(
            f"{who}: {what} must hold 0/1 or boolean indicators in rows of one length, got {got}; encode the "
            "labels as indicators first"
        )
    return values.astype(np.bool_, order="C", copy=False)


def _dense_blocks(who: str, Y: Any, Y_hat: Any) -> Iterator[tuple[slice, Bools, Bools]]:
    """The rows in dense blocks: all at once if they are dense, else a bounded number at a time."""
    n, K = Y.shape
    step = max(1, CELLS // K) if sparse.issparse(Y) or sparse.issparse(Y_hat) else max(1, n)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        y, y_hat = (
            _as_bool(who, what, matrix[rows].toarray()) if sparse.issparse(matrix) else matrix[rows]
            for what, matrix in (("Y", Y), ("Y_hat", Y_hat))
        )
        yield rows, y, y_hat
