"""Encoders: from K labels to a few codes and back (sections 3.1 and 3.3 of the paper).

`CappedMSG` learns its directions from the stream; `RandomProjection` and `Identity` stand still.
"""

import zlib
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from csdpp._kernels.capped import project_capped_inplace
from csdpp._kernels.msg import (
    FULL,
    HELD,
    WIDTH,
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


class StandingEncoder(Encoder, Protocol):
    """One that stands still, but for labels that come and go."""

    def complete(self, z: Array, v: Array, known: Array) -> Array:
        """The code (p,) of a label vector v (K,) whose entries that are not ``known`` are what z (p,) says of them."""

    def add_labels(self, W: Array, column: Array, count: int) -> Array:
        """Take in labels whose targets alone would have led to ``column`` (d,) each; W with them."""

    def drop_labels(self, W: Array, places: Array) -> Array:
        """Forget labels; W without them."""


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

    # ---- labels that come and go

    def add_labels(self, count: int, M: int, scale: float) -> None:
        """Labels that were at their reference in all rows so far, and a code of ``M`` (not smaller) from now on.

        ``scale``: how eta c c' would have been smaller or larger. Until the trace is full, what is not at its cap
        follows it.
        """
        Q, sigma = np.pad(self.directions, ((0, 0), (0, count))), self.spectrum.copy()
        full = self.full and M == self.M
        if not self.full:
            sigma = np.where(sigma < 1.0, np.minimum(sigma * scale, 1.0), 1.0)
        self._replace(Q, sigma, M, full, None if M > self.M else self.basis.keep)

    def drop_labels(self, places: Array, M: int, scale: float) -> Array:
        """Forget labels, and hold ``M``: the directions of U without their rows and columns.

        U = B'B with B = diag(sigma)^1/2 Q, and of what is left of B the singular vectors are the new directions.
        Returns the turn (held, held') from codes on the old directions to codes on the new ones.
        """
        Q, sigma = np.delete(self.directions, places, axis=1), self.spectrum.copy()
        if not self.full:
            sigma = np.where(sigma < 1.0, np.minimum(sigma * scale, 1.0), 1.0)
        if M == self.M and not self.directions[:, places].any():
            self._replace(Q, sigma, M, self.full, self.basis.keep)
            return np.eye(len(Q), dtype=Q.dtype)
        _, roots, rows = np.linalg.svd(np.sqrt(sigma)[:, None] * Q, full_matrices=False)
        kept = min(int((roots > np.sqrt(np.finfo(Q.dtype).eps)).sum()), M + 1)
        new, spectrum = rows[:kept].astype(Q.dtype), np.minimum(roots[:kept].astype(np.float64) ** 2, 1.0)
        full = bool(project_capped_inplace(spectrum, kept, M, self.full and spectrum.sum() >= M))
        self._replace(new, spectrum, M, full, None)
        return Q @ new.T

    def _replace(self, Q: Array, sigma: Array, M: int, full: bool, keep: Array | None) -> None:
        """A basis of other sizes with these directions; ``keep`` None: chosen anew."""
        held, K = Q.shape
        basis = make_basis(min(M + 1, K), K, Q.dtype)
        basis.frame[:held], basis.sigma[:held] = Q, sigma
        basis.counts[:] = self.basis.counts
        basis.counts[[HELD, FULL, WIDTH]] = held, full, held
        self.M, self.basis, self._turn = M, basis, make_turn(basis)
        if keep is None:
            choose_keep_inplace(basis, M, self.sampled, 0.5)
        else:
            basis.keep[: len(keep)] = keep

    def encode(self, V: Array) -> Array:
        """V Q' (n, m)."""
        return V @ self.basis.Q.T

    def decode(self, Z: Array) -> Array:
        """(keep * Z) Q (n, K)."""
        return (Z * self.basis.keep.astype(Z.dtype)) @ self.basis.Q


def _more_columns(P: Array, count: int) -> Array:
    """Gaussian columns that follow from P: after a restart they are the same."""
    rng = np.random.RandomState(zlib.crc32(np.ascontiguousarray(P).tobytes()))
    return rng.standard_normal((len(P), count))


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

    def complete(self, z: Array, v: Array, known: Array) -> Array:
        """P v with what is not known from P+ z."""
        code: Array = self.P @ np.where(known, v, self.inverse @ z)
        return code

    def add_labels(self, W: Array, column: Array, count: int) -> Array:
        """W for ``count`` labels more, whose targets alone would have led to ``column`` (d,) each."""
        new = (_more_columns(self.P, count) / np.sqrt(len(self.P))).astype(self.P.dtype)
        self._replace(np.hstack([self.P, new]))
        return W + np.outer(column, new.sum(axis=1))

    def drop_labels(self, W: Array, places: Array) -> Array:
        """W without these labels, as far as their part in it can be told: what it decodes to."""
        W = W - W @ self.inverse[places].T @ self.P[:, places].T
        self._replace(np.delete(self.P, places, axis=1))
        return W

    def _replace(self, P: Array) -> None:
        self.P = np.ascontiguousarray(P)
        self.inverse = np.linalg.pinv(P.astype(np.float64)).astype(P.dtype)


class Identity:
    """No reduction: the code is the label vector."""

    def encode(self, V: Array) -> Array:
        """V itself."""
        return V

    def decode(self, Z: Array) -> Array:
        """Z itself."""
        return Z

    def complete(self, z: Array, v: Array, known: Array) -> Array:
        """V, or z."""
        return np.where(known, v, z)

    def add_labels(self, W: Array, column: Array, count: int) -> Array:
        """W (d, K) and ``count`` times ``column`` (d,)."""
        return np.hstack([W, np.repeat(column[:, None], count, axis=1)])

    def drop_labels(self, W: Array, places: Array) -> Array:
        """W without the columns of these labels."""
        return np.delete(W, places, axis=1)


class CompressedSensing:
    """Random measurements of 0/1 label vectors, decoded with orthogonal matching pursuit."""

    def __init__(self, M: int, K: int, rng: np.random.RandomState, dtype: Any = np.float64) -> None:
        A = rng.standard_normal((M, K))
        A /= np.linalg.norm(A, axis=0)
        self.A: Array = np.ascontiguousarray(A, dtype)

    def encode(self, V: Array) -> Array:
        """Measurements (n, M) of the positive labels of V (n, K)."""
        return (V > 0.0).astype(self.A.dtype) @ self.A.T

    def complete(self, z: Array, v: Array, known: Array) -> Array:
        """A y with what is not known from A+ z: a pursuit does not give z back where all of it is right."""
        answer, *_ = np.linalg.lstsq(self.A, z, rcond=None)
        code: Array = self.A @ np.where(known, v > 0.0, answer).astype(self.A.dtype)
        return code

    def pursue(self, Z: Array, sizes: NDArray[np.int64]) -> Array:
        """Coefficients less 1/2 (n, K), at most ``sizes`` (n,) labels taken in: positive means predicted."""
        out = np.empty((len(Z), self.A.shape[1]), self.A.dtype)
        pursue_rows(self.A, np.ascontiguousarray(Z), sizes, out)
        return out - self.A.dtype.type(0.5)

    def decode(self, Z: Array) -> Array:
        """As many labels as there are measurements."""
        return self.pursue(Z, np.full(len(Z), len(self.A), np.int64))

    def add_labels(self, W: Array, column: Array, count: int) -> Array:
        """W as it is: a label that is not there adds nothing to the measurements."""
        new = _more_columns(self.A, count)
        new /= np.linalg.norm(new, axis=0)
        self.A = np.ascontiguousarray(np.hstack([self.A, new]), self.A.dtype)
        return W

    def drop_labels(self, W: Array, places: Array) -> Array:
        """W without these labels, as far as their part in it can be told: by the pseudo-inverse."""
        inverse = np.linalg.pinv(self.A.astype(np.float64)).astype(self.A.dtype)
        W = W - W @ inverse[places].T @ self.A[:, places].T
        self.A = np.ascontiguousarray(np.delete(self.A, places, axis=1))
        return W
