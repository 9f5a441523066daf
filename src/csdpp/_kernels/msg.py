"""Capped MSG (Arora, Cotter and Srebro, 2013; section 3.3 of the paper) in factored form.

    U <- projection of (U + eta c c') onto {0 <= U <= I, trace(U) = M, rank(U) <= M + 1},   U = Q' diag(sigma) Q

A step needs the eigenpairs of diag(sigma) + eta r r' only, where r holds the coordinates of c on the held
directions and on the part of c that they miss. Turning the rows of Q by them costs O(M^2 K), so over a strip of
rows Q is not turned at all: it is F times a frame, the rows that Q had at the start and the c that came since.
A step turns F, O(M^2 (M + strip)), and Q is multiplied out once, at the end of the strip.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from csdpp._kernels.capped import project_capped_inplace
from csdpp._kernels.eigen import rank_one_eigen
from csdpp._kernels.vectors import INNER, KERNEL, add_rows, clear, copy, corner, dot, dots, identity, put_product

HELD, FULL, UPDATES, REPAIRED, WIDTH = range(5)
#: Updates between two re-orthogonalisations. Rounding adds about 1e-15 an update; the repair squares the defect.
REPAIR_EVERY = 128
#: Below this share of |c|^2 what Q misses of c is computed, not told from |c|^2 - |r|^2.
_SHARE_OF_LENGTH = 0.01
_CHUNK = 512


class Basis(NamedTuple):
    """The held directions; plain arrays, so that compiled code and Python share them."""

    frame: NDArray[Any]  # (m + strip, K): Q (m, K), orthonormal rows, then room for the strip; m = min(M + 1, K)
    sigma: NDArray[np.float64]  # (m,), the spectrum of U, falling
    keep: NDArray[np.float64]  # (m,), how much of each code the decoder takes
    counts: NDArray[np.int64]  # held directions, whether the trace is M, updates, updates at the last repair, width

    @property
    def Q(self) -> NDArray[Any]:
        """The directions between two strips (m, K); rows past those held are zero."""
        return self.frame[: len(self.sigma)]


class Turn(NamedTuple):
    """How the basis stands in its frame, and what the last step did."""

    F: NDArray[np.float64]  # (m, m + strip), Q = F frame
    R: NDArray[np.float64]  # (m, m), Q_old Q_new' of the last step
    target: NDArray[np.float64]  # (m,), Q_new c of the last step


def strip_length(m: int) -> int:
    """Rows after which Q is multiplied out; flat around its optimum (benchmarks/kernels.py)."""
    return max(8, min(24, m))


def make_basis(m: int, K: int, dtype: Any) -> Basis:
    """No direction held yet."""
    return Basis(np.zeros((m + strip_length(m), K), dtype), np.zeros(m), np.zeros(m), np.zeros(5, np.int64))


def make_turn(basis: Basis) -> Turn:
    """Scratch for ``basis``."""
    m = len(basis.sigma)
    return Turn(np.zeros((m, len(basis.frame))), np.zeros((m, m)), np.zeros(m))


@njit(**KERNEL)
def open_strip(basis, turn):
    """F = I: the frame is Q."""
    held = basis.counts[HELD]
    identity(turn.F, held)
    basis.counts[WIDTH] = held


@njit(**KERNEL)
def close_strip(basis, turn):
    """Q <- F frame, a chunk of columns at a time so that it stays in cache; repaired now and then."""
    frame, held, width = basis.frame, basis.counts[HELD], basis.counts[WIDTH]
    K = frame.shape[1]
    F = corner(turn.F, held, width, frame)
    old = np.empty((width, min(K, _CHUNK)), frame.dtype)
    for start in range(0, K, _CHUNK):
        columns = min(_CHUNK, K - start)
        for b in range(width):
            for k in range(columns):
                old[b, k] = frame[b, start + k]
        new = F @ old
        for a in range(held):
            for k in range(columns):
                frame[a, start + k] = new[a, k]
    if basis.counts[UPDATES] - basis.counts[REPAIRED] >= REPAIR_EVERY:
        orthonormalise_inplace(frame, held)
        basis.counts[REPAIRED] = basis.counts[UPDATES]
    open_strip(basis, turn)


@njit(**KERNEL)
def msg_step_inplace(basis, turn, M, c, eta, noise, flips):
    """Take the example ``c`` (K,) in with step ``eta``; at most as many steps as the frame has room for.

    A length of at most ``noise`` counts as zero: c is a difference, and where its parts are equal what is left is
    rounding, which must not become a direction (`noise_level`).

    ``flips`` (m,), if not empty, holds uniform numbers that turn the signs of the new directions: an eigenvector
    has no sign of its own, and a learner that does not follow the basis (``none``) must not profit from ours.

    O((M + strip) K) and O(M^2 (M + strip)).
    """
    frame, F, R = basis.frame, turn.F, turn.R
    held, width = basis.counts[HELD], basis.counts[WIDTH]
    m, K = basis.sigma.shape[0], frame.shape[1]
    identity(R, held)
    clear(turn.target)
    length2 = dot(c, c)
    if np.sqrt(length2) <= noise or eta == 0.0:
        return
    r = np.zeros(held + 1)
    missing = np.zeros(width + 1)  # the missed part, of length one, in terms of the frame
    missed = _split(frame, F, held, width, c, length2, noise, r, missing)
    size = held + 1 if held < K and missed > 0.0 else held
    spectrum = np.zeros(size)
    for i in range(held):
        spectrum[i] = basis.sigma[i]
    lam = np.empty(size)
    V = np.empty((size, size))
    rank_one_eigen(spectrum, r, eta, lam, V)
    kept = min(size, m)
    if flips.shape[0] > 0:
        _sign_inplace(V, kept, flips)
    if size > held:
        width += 1
    _turn_inplace(F, V, held, kept, width, missing)
    for j in range(kept):
        basis.sigma[j] = lam[j]
    full = project_capped_inplace(basis.sigma, kept, M, basis.counts[FULL] == 1)
    for i in range(held):
        R[i, i] = 0.0
        for j in range(kept):
            R[i, j] = V[i, j]
    for i in range(size):
        for j in range(kept):
            turn.target[j] += V[i, j] * r[i]
    basis.counts[HELD], basis.counts[WIDTH] = kept, width
    basis.counts[FULL] = 1 if full else 0
    basis.counts[UPDATES] += 1


@njit(**INNER)
def _split(frame, F, held, width, c, length2, noise, r, missing):
    """Coordinates r of c on Q, the length of what Q misses, and its direction in terms of the frame.

    The frame gets one row more, at ``width``: c itself, from which Q r is still to be taken away, where that
    loses no more than a digit; else the missed part, computed and orthogonalised twice.
    """
    on_frame = np.empty(width, frame.dtype)
    along = np.zeros(width)  # F' r
    missed2 = length2
    dots(frame[:width], c, on_frame)
    for i in range(held):
        for b in range(width):
            r[i] += F[i, b] * on_frame[b]
        missed2 -= r[i] * r[i]
    row = frame[width]
    copy(c, row)
    if missed2 >= _SHARE_OF_LENGTH * length2:
        missed = np.sqrt(missed2)
        for i in range(held):
            for b in range(width):
                along[b] += r[i] * F[i, b]
        for b in range(width):
            missing[b] = -along[b] / missed
        missing[width] = 1.0 / missed
        r[held] = missed
        return missed
    for turn in range(2):  # twice is enough: the second pass removes what rounding left of the first
        if turn > 0:
            dots(frame[:width], row, on_frame)
        clear(along)
        for i in range(held):
            rest = 0.0
            for b in range(width):
                rest += F[i, b] * on_frame[b]
            if turn > 0:
                r[i] += rest
            for b in range(width):
                along[b] += rest * F[i, b]
        add_rows(frame[:width], along, -1.0, row)
    missed = np.sqrt(dot(row, row))
    if missed <= noise:
        return 0.0
    for k in range(row.shape[0]):
        row[k] /= missed
    missing[width] = 1.0
    r[held] = missed
    return missed


@njit(**INNER)
def _turn_inplace(F, V, held, kept, width, missing):
    """F[:kept] <- V' [F[:held]; missing]."""
    size = V.shape[0]
    new = np.zeros((kept, width))
    for i in range(size):
        for j in range(kept):
            v = V[i, j]
            if i < held:
                for b in range(width):
                    new[j, b] += v * F[i, b]
            else:
                for b in range(width):
                    new[j, b] += v * missing[b]
    for j in range(kept):
        copy(new[j], F[j])


@njit(**INNER)
def _sign_inplace(V, kept, flips):
    """Turn each column so that its largest entry is positive, then negative where its uniform number says so."""
    for j in range(kept):
        largest = 0
        for i in range(V.shape[0]):
            if abs(V[i, j]) > (1.0 + 1e-6) * abs(V[largest, j]):
                largest = i
        if (V[largest, j] < 0.0) != (flips[j] < 0.5):
            for i in range(V.shape[0]):
                V[i, j] = -V[i, j]


@njit(**KERNEL)
def noise_level(v, o):
    """Below this length v - o is taken for rounding: eps^(2/3) sqrt(|v|^2 + |o|^2), 4e-11 of it in float64.

    Of v as many entries count as o has.
    """
    lengths = 0.0
    for k in range(o.shape[0]):
        lengths += v[k] * v[k] + o[k] * o[k]
    return np.finfo(v.dtype).eps ** (2.0 / 3.0) * np.sqrt(lengths)


@njit(**KERNEL)
def orthonormalise_inplace(Q, held):
    """One Newton-Schulz step toward the nearest orthonormal rows: Q <- Q + (I - Q Q') Q / 2.

    Unlike Gram-Schmidt it favours no row, and the codes learned on Q stay valid to the size of the defect.
    """
    P = Q[:held]
    defect = np.zeros((held, held), Q.dtype)
    for i in range(held):
        dots(P, P[i], defect[i])
        for j in range(held):
            defect[i, j] = (0.5 if i == j else 0.0) - 0.5 * defect[i, j]
    put_product(defect, P, 1.0, 1.0, P)


@njit(**KERNEL)
def choose_keep_inplace(basis, M, sampled, u):
    """Which codes the next prediction decodes with (sections 2 and 2.1 of docs/maths.md).

    Once the trace is M: all of sigma (the expectation of P'P), or, ``sampled``, all rows but row i with
    probability 1 - sigma_i (Lemma 1; ``u`` is uniform). Before: every held direction but the weakest of M + 1.
    """
    held = basis.counts[HELD]
    keep = basis.keep
    clear(keep)
    for i in range(held):
        keep[i] = 1.0
    if held <= M:
        return
    if basis.counts[FULL] == 0:
        keep[held - 1] = 0.0
    elif not sampled:
        for i in range(held):
            keep[i] = basis.sigma[i]
    else:
        total = 0.0
        for i in range(held):
            total += 1.0 - basis.sigma[i]
        u *= total  # one, up to rounding
        dropped = held - 1
        for i in range(held):
            u -= 1.0 - basis.sigma[i]
            if u < 0.0:
                dropped = i
                break
        keep[dropped] = 0.0
