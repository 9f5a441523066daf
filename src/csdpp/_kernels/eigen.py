"""Eigenpairs of a diagonal matrix plus a matrix of rank one, by the secular equation.

    D + rho z z' = V diag(lam) V',   0 = f(lam) = 1 + rho sum_i z_i^2 / (d_i - lam)

O(n^2), where LAPACK's solvers take O(n^3). The eigenvectors come from the vector z-hat for which the computed
eigenvalues are exact (Gu and Eisenstat, 1994), so they are orthonormal to rounding however close two
eigenvalues are. Entries of D that coincide (many directions of a basis have sigma = 1) are deflated first:
a plane rotation moves the whole of z into one of them and leaves the others untouched.
"""

import numpy as np
from numba import njit

from csdpp._kernels.vectors import INNER, KERNEL, REORDER, clear

_EPS = float(np.finfo(np.float64).eps)
_MAX_ITERATIONS = 80


@njit(**KERNEL)
def rank_one_eigen(sigma, z, rho, lam, V):
    """Write the eigenvalues (falling) into ``lam`` and the eigenvectors (columns) into ``V``.

    D = diag(``sigma``) (n,), falling and non-negative; rho > 0. Signs are as they come.
    """
    n = sigma.shape[0]
    d, y = sigma.copy(), z.copy()
    norm2 = 0.0
    for i in range(n):
        norm2 += y[i] * y[i]
    tol = 8.0 * _EPS * max(d[0], rho * norm2)
    active = np.empty(n, np.int64)
    turns = np.empty((n, 4))  # rotations: place p, place i, cosine, sine
    k, turned = _deflate_inplace(d, y, rho * np.sqrt(norm2), tol, turns, active)
    poles, weights = np.empty(k), np.empty(k)
    for j in range(k):
        poles[j] = d[active[j]]
        weights[j] = rho * y[active[j]] ** 2
    delta = np.empty((k, k))  # delta[j, i] = d_i - lam_j over the active entries
    slot = d.copy()  # eigenvalue in each place; a deflated place keeps its d
    for j in range(k):
        slot[active[j]] = _secular_root(poles, weights, j, delta[j])
    S = np.empty((k, k))
    _secular_vectors(poles, delta, S)
    for i in range(k):
        if y[active[i]] < 0.0:
            for j in range(k):
                S[j, i] = -S[j, i]
    # Falling order. Insertion sort: the places are almost in order, and ties keep theirs. So do values that differ
    # by rounding (those of many directions are one): else basis="none" would depend on the last digit of anything.
    order = np.arange(n)
    tie = 10.0 * tol
    for i in range(1, n):
        j = i
        while j > 0 and slot[order[j - 1]] < slot[order[j]] - tie:
            order[j - 1], order[j] = order[j], order[j - 1]
            j -= 1
    column = np.empty(n, np.int64)
    for i in range(n):
        clear(V[i])
    for j in range(n):
        column[order[j]] = j
        lam[j] = slot[order[j]]
        V[order[j], j] = 1.0
    for j in range(n - 2, -1, -1):
        lam[j] = max(lam[j], lam[j + 1])
    for j in range(k):
        to = column[active[j]]
        for i in range(k):
            V[active[i], to] = S[j, i]
    for turn in range(turned - 1, -1, -1):  # back from the deflated places to the given ones
        p, i = int(turns[turn, 0]), int(turns[turn, 1])
        c, s = turns[turn, 2], turns[turn, 3]
        for j in range(n):
            vp, vi = V[p, j], V[i, j]
            V[p, j] = c * vp + s * vi
            V[i, j] = c * vi - s * vp


@njit(**INNER)
def _deflate_inplace(d, y, weight, tol, turns, active):
    """Rotate coinciding entries, drop those without weight; return how many stay ``active``, and the rotations."""
    n = d.shape[0]
    k, turned = 0, 0
    for i in range(n):
        if weight * abs(y[i]) <= tol:
            y[i] = 0.0
            continue
        if k > 0:
            p = active[k - 1]
            # The larger entry takes the smaller one in, with its sign: an entry that is rounding turns next to nothing.
            r = np.hypot(y[p], y[i])
            if abs(y[i]) >= abs(y[p]):
                c, s = abs(y[i]) / r, np.copysign(1.0, y[i]) * y[p] / r
            else:
                c, s = abs(y[p]) / r, -np.copysign(1.0, y[p]) * y[i] / r
            if abs((d[p] - d[i]) * c * s) <= tol:
                dp, di = d[p], d[i]
                d[p], d[i] = c * c * dp + s * s * di, s * s * dp + c * c * di
                turns[turned, 0], turns[turned, 1], turns[turned, 2], turns[turned, 3] = p, i, c, s
                turned += 1
                if abs(y[i]) >= abs(y[p]):
                    y[i], y[p] = np.copysign(r, y[i]), 0.0
                    active[k - 1] = i  # place p is done, place i carries on
                else:
                    y[p], y[i] = np.copysign(r, y[p]), 0.0
                continue
        active[k] = i
        k += 1
    return k, turned


@njit(**INNER, fastmath=REORDER)
def _secular_sums(gaps, weights, tau, first, last):
    """Sums of w_i / (gap_i - tau) and of their slopes, over ``first <= i < last``."""
    total, slope = 0.0, 0.0
    for i in range(first, last):
        inverse = 1.0 / (gaps[i] - tau)
        term = weights[i] * inverse
        total += term
        slope += term * inverse
    return total, slope


@njit(**INNER)
def _secular_root(poles, weights, j, delta):
    """The j-th largest root, as an offset from the nearer pole; fills ``delta`` with d_i - lam_j.

    Between two poles f grows from -inf to +inf. Each step replaces the terms below and above by one pole each,
    equal in value and slope (Bunch, Nielsen and Sorensen, 1978), and solves the quadratic; a bracket guards it.
    """
    k = poles.shape[0]
    base = poles[j]
    gaps = delta  # the poles as seen from the base: written out, so that no reordering can undo the difference
    for i in range(k):
        gaps[i] = poles[i] - base
    if j == 0:
        reach = 0.0
        for i in range(k):
            reach += weights[i]
        lo, hi = 0.0, reach * (1.0 + 4.0 * _EPS)
        tau = min(hi, weights[0] * (1.0 + 1e-7))
    else:
        gap = gaps[j - 1]
        low, _ = _secular_sums(gaps, weights, 0.5 * gap, j, k)
        high, _ = _secular_sums(gaps, weights, 0.5 * gap, 0, j)
        if 1.0 + low + high < 0.0:  # the root lies beyond the middle, nearer to the pole above
            base = poles[j - 1]
            for i in range(k):
                gaps[i] = poles[i] - base
            lo, hi = -0.5 * gap, 0.0
        else:
            lo, hi = 0.0, 0.5 * gap
        tau = 0.5 * (lo + hi)
    for _ in range(_MAX_ITERATIONS):
        psi, dpsi = _secular_sums(gaps, weights, tau, j, k)  # negative
        phi, dphi = _secular_sums(gaps, weights, tau, 0, j)  # positive
        f = 1.0 + psi + phi
        if abs(f) <= _EPS * (1.0 - psi + phi):
            break
        if f < 0.0:
            lo = tau
        else:
            hi = tau
        below = gaps[j] - tau
        if j == 0:
            c = f - below * dpsi
            step = below + dpsi * below * below / c if c > 0.0 else 0.0
        else:
            above = gaps[j - 1] - tau
            c = f - below * dpsi - above * dphi
            half = (below + above) * f - below * above * (dpsi + dphi)
            b = below * above * f
            root = np.sqrt(max(0.0, half * half - 4.0 * b * c))
            if half <= 0.0:
                step = (half - root) / (2.0 * c) if c != 0.0 else 0.0
            else:
                step = 2.0 * b / (half + root)
        new = tau + step
        if not (lo < new < hi) or step == 0.0:
            new = 0.5 * (lo + hi)
        if new in (tau, lo, hi):
            break
        tau = new
    for i in range(k):
        delta[i] = gaps[i] - tau
    return base + tau


@njit(**INNER)
def _secular_vectors(poles, delta, S):
    """Row j of S is |z-hat_i| / (lam_j - d_i), normalised, with

    z-hat_i^2 = prod_j (lam_j - d_i) / prod_{j != i} (d_j - d_i)   (times 1 / rho, which normalising removes).
    """
    k = poles.shape[0]
    square = np.empty(k)
    for i in range(k):
        square[i] = -delta[i, i]
    for j in range(k):
        for i in range(k):
            if i != j:
                square[i] *= delta[j, i] / (poles[i] - poles[j])
    for i in range(k):
        square[i] = np.sqrt(abs(square[i]))
    for j in range(k):
        norm = 0.0
        for i in range(k):
            S[j, i] = -square[i] / delta[j, i]
            norm += S[j, i] * S[j, i]
        norm = 1.0 / np.sqrt(norm)
        for i in range(k):
            S[j, i] *= norm
