"""One step of capped MSG (Arora, Cotter and Srebro, 2013; section 3.3 of the paper) in factored form.

    U <- projection of (U + eta c c') onto {0 <= U <= I, trace(U) = M, rank(U) <= M + 1},   U = Q' diag(sigma) Q

The step needs the eigenpairs of diag(sigma) + eta r r' only, where r holds the coordinates of c on the held
directions and on the part of c that they miss.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from csdpp._kernels.capped import project_capped_inplace
from csdpp._kernels.eigen import rank_one_eigen

HELD, FULL, UPDATES = 0, 1, 2
#: Updates between two re-orthogonalisations. Rounding adds about 1e-16 an update; the repair squares the defect.
REPAIR_EVERY = 128
_CHUNK = 512


class Basis(NamedTuple):
    """The held directions; plain arrays, so that compiled code and Python share them."""

    Q: NDArray[Any]  # (m, K), rows orthonormal, falling sigma; m = min(M + 1, K), rows past `held` are zero
    sigma: NDArray[np.float64]  # (m,), the spectrum of U
    keep: NDArray[np.float64]  # (m,), how much of each code the decoder takes
    counts: NDArray[np.int64]  # held directions, whether the trace has reached M, updates so far


@njit(cache=True, nogil=True)
def msg_step_inplace(basis, M, c, eta, noise, flips, R):
    """Take the example ``c`` (K,) in with step ``eta`` and write Q_old Q_new' into ``R`` (m, m). O(M^2 K).

    A length of at most ``noise`` counts as zero: c is a difference, and where its parts are equal what is left is
    rounding, which must not become a direction (`noise_level`).

    ``flips`` (m,), if not empty, holds uniform numbers that turn the signs of the new directions: an eigenvector
    has no sign of its own, and a learner that does not follow the basis (``none``) must not profit from ours.
    """
    Q, held = basis.Q, basis.counts[HELD]
    m, K = Q.shape
    R[:, :] = 0.0
    for i in range(held):
        R[i, i] = 1.0
    norm = 0.0
    for k in range(K):
        norm += c[k] * c[k]
    norm = np.sqrt(norm)
    if norm <= noise or eta == 0.0:
        return
    r = np.zeros(held + 1)
    rest = c.copy()
    for _ in range(2):  # twice is enough: the second pass removes what rounding left of the first
        part = Q[:held] @ rest
        for i in range(held):
            r[i] += part[i]
            for k in range(K):
                rest[k] -= part[i] * Q[i, k]
    missed = 0.0
    for k in range(K):
        missed += rest[k] * rest[k]
    missed = np.sqrt(missed)
    size = held
    if held < K and missed > noise:
        r[held] = missed
        rest /= missed
        size = held + 1
    spectrum = np.zeros(size)
    spectrum[:held] = basis.sigma[:held]
    lam = np.empty(size)
    V = np.empty((size, size))
    rank_one_eigen(spectrum, r[:size], eta, lam, V)
    kept = min(size, m)
    if flips.shape[0] > 0:
        _sign_inplace(V, kept, flips)
    _rotate_inplace(Q, held, V, kept, rest)
    basis.sigma[:kept] = lam[:kept]
    full = project_capped_inplace(basis.sigma, kept, M, basis.counts[FULL] == 1)
    R[:held, :] = 0.0
    R[:held, :kept] = V[:held, :kept]
    basis.counts[HELD] = kept
    basis.counts[FULL] = 1 if full else 0
    basis.counts[UPDATES] += 1
    if basis.counts[UPDATES] % REPAIR_EVERY == 0:
        orthonormalise_inplace(Q, kept)


@njit(cache=True, nogil=True)
def _sign_inplace(V, kept, flips):
    """Turn each column so that its largest entry is positive, then negative where its uniform number says so."""
    for j in range(kept):
        largest = 0
        for i in range(V.shape[0]):
            if abs(V[i, j]) > (1.0 + 1e-6) * abs(V[largest, j]):
                largest = i
        if (V[largest, j] < 0.0) != (flips[j] < 0.5):
            V[:, j] = -V[:, j]


@njit(cache=True, nogil=True)
def noise_level(v, o):
    """Below this length v - o is taken for rounding: eps^(2/3) sqrt(|v|^2 + |o|^2), 4e-11 of it in float64."""
    lengths = 0.0
    for k in range(v.shape[0]):
        lengths += v[k] * v[k] + o[k] * o[k]
    return np.finfo(v.dtype).eps ** (2.0 / 3.0) * np.sqrt(lengths)


@njit(cache=True, nogil=True)
def _rotate_inplace(Q, held, V, kept, extra):
    """Q[:kept] <- V' [Q[:held]; extra], a strip of columns at a time so that it stays in cache."""
    size, K = V.shape[0], Q.shape[1]
    strip = np.empty((size, min(K, _CHUNK)), Q.dtype)
    for start in range(0, K, _CHUNK):
        width = min(_CHUNK, K - start)
        for i in range(held):
            for k in range(width):
                strip[i, k] = Q[i, start + k]
        if size > held:
            for k in range(width):
                strip[held, k] = extra[start + k]
        for j in range(kept):
            for k in range(width):
                Q[j, start + k] = 0.0
            for i in range(size):
                v = V[i, j]
                for k in range(width):
                    Q[j, start + k] += v * strip[i, k]


@njit(cache=True, nogil=True)
def orthonormalise_inplace(Q, held):
    """One Newton-Schulz step toward the nearest orthonormal rows: Q <- Q + (I - Q Q') Q / 2.

    Unlike Gram-Schmidt it favours no row, and the codes learned on Q stay valid to the size of the defect.
    """
    P = Q[:held]
    defect = P @ P.T
    for i in range(held):
        for j in range(held):
            defect[i, j] = (0.5 if i == j else 0.0) - 0.5 * defect[i, j]
    P += defect @ P


@njit(cache=True, nogil=True)
def choose_keep_inplace(basis, M, sampled, u):
    """Which codes the next prediction decodes with (sections 2 and 2.1 of docs/maths.md).

    Once the trace is M: all of sigma (the expectation of P'P), or, ``sampled``, all rows but row i with
    probability 1 - sigma_i (Lemma 1; ``u`` is uniform). Before: every held direction but the weakest of M + 1.
    """
    held = basis.counts[HELD]
    keep = basis.keep
    keep[:] = 0.0
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
