"""Encoders: from K labels to a few codes and back (sections 3.1 and 3.3 of the paper).

`CappedMSG` learns its directions from the stream; `RandomProjection` and `Identity` stand still.
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from csdpp._kernels.msg import (
    FULL,
    HELD,
    choose_keep_inplace,
    close_strip,
    make_basis,
    make_turn,
    msg_step_inplace,
    noise_level,
    open_strip,
)
from csdpp._kernels.omp import pursue_rows

Array = NDArray[Any]


class Encoder(Protocol):
    """What every encoder answers."""

    def encode(self, V: Array) -> Array:
        """Codes (n, m) of label vectors V (n, K)."""

    def decode(self, Z: Array) -> Array:
        """Label vectors (n, K) of codes Z (n, m)."""


class CappedMSG:
    """The principal directions of a stream of label vectors, by capped MSG.

    Parameters
    ----------
    M : int
        Dimension of the code, at most K. One direction more is held.
    K : int
        Number of labels.
    decode_with : {"expected", "sample"}
        Decode with U = E[P'P], or with a P drawn by Lemma 1 after each update.
    dtype : dtype
        Of the directions; the spectrum is always float64.

    Attributes
    ----------
    basis : Basis
        The state: Q, sigma, keep and counters.

    Examples
    --------
    >>> import numpy as np
    >>> encoder = CappedMSG(1, 3)
    >>> for v in np.tile([[1.0, 1.0, 0.0], [0.0, 0.0, 0.1]], (50, 1)):
    ...     encoder.update(v, eta=0.5)
    >>> np.abs(encoder.directions[0]).round(2)
    array([0.71, 0.71, 0.  ])

    Notes
    -----
    O(M^2 K) an update, O(MK) memory. The start is U = 0: see `csdpp._kernels.capped`.
    """

    def __init__(self, M: int, K: int, *, decode_with: str = "expected", dtype: Any = np.float64) -> None:
        m = min(M + 1, K)
        self.M = M
        self.sampled = decode_with == "sample"
        self.basis = make_basis(m, K, dtype)
        self._turn = make_turn(self.basis)

    @property
    def directions(self) -> Array:
        """The held rows of Q (held, K), in falling order of the spectrum."""
        return self.basis.Q[: self.basis.counts[HELD]]

    @property
    def spectrum(self) -> Array:
        """Sigma (held,), falling, within the capped simplex."""
        return self.basis.sigma[: self.basis.counts[HELD]]

    @property
    def full(self) -> bool:
        """Whether the trace of U has reached M."""
        return bool(self.basis.counts[FULL])

    def update(self, v: Array, eta: float, u: float = 0.0) -> None:
        """Take in one label vector (K,) with step ``eta``; ``u`` in [0, 1) picks the row to drop."""
        v = np.ascontiguousarray(v, self.basis.frame.dtype)
        open_strip(self.basis, self._turn)
        msg_step_inplace(self.basis, self._turn, self.M, v, eta, noise_level(v, v), np.empty(0))
        close_strip(self.basis, self._turn)
        choose_keep_inplace(self.basis, self.M, self.sampled, u)

    def encode(self, V: Array) -> Array:
        """V Q' (n, m)."""
        return V @ self.basis.Q.T

    def decode(self, Z: Array) -> Array:
        """(keep * Z) Q (n, K)."""
        return (Z * self.basis.keep.astype(Z.dtype)) @ self.basis.Q


class RandomProjection:
    """A fixed Gaussian projection P (M, K), decoded with its pseudo-inverse."""

    def __init__(self, M: int, K: int, rng: np.random.RandomState, dtype: Any = np.float64) -> None:
        P = rng.standard_normal((M, K)) / np.sqrt(M)
        self.P: Array = P.astype(dtype)
        self.inverse: Array = np.linalg.pinv(P).astype(dtype)

    def encode(self, V: Array) -> Array:
        """V P' (n, M)."""
        return V @ self.P.T

    def decode(self, Z: Array) -> Array:
        """Z (P+)' (n, K)."""
        return Z @ self.inverse.T


class Identity:
    """No reduction: the code is the label vector."""

    def encode(self, V: Array) -> Array:
        """V itself."""
        return V

    def decode(self, Z: Array) -> Array:
        """Z itself."""
        return Z


class CompressedSensing:
    """Random measurements of 0/1 label vectors, decoded with orthogonal matching pursuit."""

    def __init__(self, M: int, K: int, rng: np.random.RandomState, dtype: Any = np.float64) -> None:
        A = rng.standard_normal((M, K))
        A /= np.linalg.norm(A, axis=0)
        self.A: Array = np.ascontiguousarray(A, dtype)

    def encode(self, V: Array) -> Array:
        """Measurements (n, M) of the positive labels of V (n, K)."""
        return (V > 0.0).astype(self.A.dtype) @ self.A.T

    def pursue(self, Z: Array, sizes: NDArray[np.int64]) -> Array:
        """Coefficients less 1/2 (n, K), at most ``sizes`` (n,) labels taken in: positive means predicted."""
        out = np.empty((len(Z), self.A.shape[1]), self.A.dtype)
        pursue_rows(self.A, np.ascontiguousarray(Z), sizes, out)
        return out - self.A.dtype.type(0.5)

    def decode(self, Z: Array) -> Array:
        """As many labels as there are measurements."""
        return self.pursue(Z, np.full(len(Z), len(self.A), np.int64))
