"""Eigenpairs of a diagonal matrix plus a matrix of rank one, by the secular equation.

    D + rho z z' = V diag(lam) V',   0 = f(lam) = 1 + rho sum_i z_i^2 / (d_i - lam)

O(n^2), where LAPACK's solvers take O(n^3). The eigenvectors come from the vector z-hat for which the computed
eigenvalues are exact (Gu and Eisenstat, 1994), so they are orthonormal to rounding however close two
eigenvalues are. Entries of D that coincide (many directions of a basis have sigma = 1) are deflated first:
a plane rotation moves the whole of z into one of them and leaves the others untouched.
"""

import numpy as np
from numba import njit

_MAX_ITERATIONS = 80


@njit(cache=True, nogil=True)
def rank_one_eigen(sigma, z, rho, lam, V):
    """Write the eigenvalues (falling) into ``lam`` and the eigenvectors (columns) into ``V``.

    D = diag(``sigma``) (n,), falling and non-negative; rho > 0. Signs are as they come.
    """
    n = sigma.shape[0]
    d = sigma.astype(np.float64)  # in full precision throughout: O(n^2), and the basis inherits it
    y = z.astype(np.float64)
    norm2 = 0.0
    for i in range(n):
        norm2 += y[i] * y[i]
    tol = 8.0 * np.finfo(np.float64).eps * max(d[0], rho * norm2)
    G = np.zeros((n, n))  # columns: the deflated basis in terms of the given one
    for i in range(n):
        G[i, i] = 1.0
    active = np.empty(n, np.int64)
    k = _deflate_inplace(d, y, rho * np.sqrt(norm2), tol, G, active)
    delta = np.empty((k, k))  # delta[i, j] = d_i - lam_j over the active entries
    slot = d.copy()  # eigenvalue in each place; a deflated place keeps its d
    for j in range(k):
        slot[active[j]] = _secular_root(d, y, rho, active, k, j, delta)
    S = np.empty((k, k))
    _secular_vectors(d, y, rho, active, k, delta, S)
    # Falling order. Insertion sort: the places are almost in order, and ties must keep theirs.
    order = np.arange(n)
    for i in range(1, n):
        j = i
        while j > 0 and slot[order[j - 1]] < slot[order[j]]:
            order[j - 1], order[j] = order[j], order[j - 1]
            j -= 1
    place = np.full(n, -1)
    for j in range(k):
        place[active[j]] = j
    for column in range(n):
        source = order[column]
        lam[column] = slot[source]
        j = place[source]
        if j < 0:
            for i in range(n):
                V[i, column] = G[i, source]
        else:
            for i in range(n):
                total = 0.0
                for a in range(k):
                    total += G[i, active[a]] * S[a, j]
                V[i, column] = total


@njit(cache=True, nogil=True)
def _deflate_inplace(d, y, weight, tol, G, active):
    """Rotate coinciding entries, drop those without weight; return how many stay ``active``."""
    n = d.shape[0]
    k = 0
    for i in range(n):
        if weight * abs(y[i]) <= tol:
            y[i] = 0.0
            continue
        if k > 0:
            p = active[k - 1]
            r = np.hypot(y[p], y[i])
            c, s = y[i] / r, y[p] / r
            if abs((d[p] - d[i]) * c * s) <= tol:
                # z_p -> 0, z_i -> r: place p is done, place i carries on
                y[i], y[p] = r, 0.0
                dp, di = d[p], d[i]
                d[p], d[i] = c * c * dp + s * s * di, s * s * dp + c * c * di
                for row in range(n):
                    gp, gi = G[row, p], G[row, i]
                    G[row, p] = c * gp - s * gi
                    G[row, i] = s * gp + c * gi
                active[k - 1] = i
                continue
        active[k] = i
        k += 1
    return k


@njit(cache=True, nogil=True)
def _secular_root(d, y, rho, active, k, j, delta):
    """The j-th largest root, as an offset from the nearer pole; fills column j of ``delta``.

    Between two poles f grows from -inf to +inf. Each step replaces the terms below and above by one pole each,
    equal in value and slope (Bunch, Nielsen, Sorensen, 1978), and solves the quadratic; a bracket guards it.
    """
    low = d[active[j]]
    norm2 = 0.0
    for a in range(k):
        norm2 += y[active[a]] ** 2
    gap = d[active[j - 1]] - low if j > 0 else rho * norm2
    origin = j
    lo, hi = 0.0, gap
    if j > 0:
        # Take the pole that is nearer: the sign of f in the middle tells.
        f = 1.0
        for a in range(k):
            f += rho * y[active[a]] ** 2 / ((d[active[a]] - low) - 0.5 * gap)
        if f < 0.0:
            origin = j - 1
            lo, hi = -0.5 * gap, 0.0
        else:
            hi = 0.5 * gap
    base = d[active[origin]]
    tau = 0.5 * (lo + hi) if j > 0 else min(hi, rho * y[active[0]] ** 2 * 1.0000001)
    if j == 0:
        hi = hi * (1.0 + 4.0 * np.finfo(np.float64).eps)
    for _ in range(_MAX_ITERATIONS):
        psi, dpsi, phi, dphi, size = 0.0, 0.0, 0.0, 0.0, 1.0
        for a in range(k):
            gap_a = (d[active[a]] - base) - tau
            q = y[active[a]] / gap_a
            term = rho * y[active[a]] * q
            slope = rho * q * q
            size += abs(term)
            if a >= j:
                psi += term
                dpsi += slope
            else:
                phi += term
                dphi += slope
        f = 1.0 + psi + phi
        if abs(f) <= np.finfo(np.float64).eps * size:
            break
        if f < 0.0:
            lo = tau
        else:
            hi = tau
        below = (d[active[j]] - base) - tau
        if j == 0:
            c = f - below * dpsi
            step = below + dpsi * below * below / c if c > 0.0 else 0.0
        else:
            above = (d[active[j - 1]] - base) - tau
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
    for a in range(k):
        delta[a, j] = (d[active[a]] - base) - tau
    return base + tau


@njit(cache=True, nogil=True)
def _secular_vectors(d, y, rho, active, k, delta, S):
    """Column j of S is z-hat_i / (lam_j - d_i), normalised, with

    z-hat_i^2 = prod_j (lam_j - d_i) / prod_{j != i} (d_j - d_i) / rho.
    """
    for i in range(k):
        square = -delta[i, i] / rho
        for j in range(k):
            if j != i:
                square *= delta[i, j] / (d[active[i]] - d[active[j]])
        root = np.sqrt(abs(square))
        root = root if y[active[i]] >= 0.0 else -root
        for j in range(k):
            S[i, j] = -root / delta[i, j]
    for j in range(k):
        norm = 0.0
        for i in range(k):
            norm += S[i, j] * S[i, j]
        norm = np.sqrt(norm)
        for i in range(k):
            S[i, j] /= norm
