"""A block of rows, learned as if one at a time: the sequential part of the engine (docs/maths.md, section 6).

What touches the d features is done by matrix products before and after (`csdpp.regressors`). Here the rows
unfold one by one on the numbers that they leave: with W_0 the regressor at the start of the block, row i is
predicted before it is learned as

    z_i = (x_i W_0) T - sum_{j < i} L_ij e_j,

T the product of the basis changes so far and e_j the errors of the earlier rows, carried along with the basis.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from csdpp._kernels.msg import HELD, choose_keep_inplace, msg_step_inplace, noise_level
from csdpp._kernels.weights import builtin_weights

PBC, PBT, NONE = range(3)
STEPS, MASS = 0, 1


class Recipe(NamedTuple):
    """What stays the same from row to row."""

    M: int
    cost: int  # id of a built-in cost
    weighting: int
    basis: int  # PBC, PBT or NONE
    feature: bool  # encode the fitted values instead of the labels
    mean: bool  # the reference moves with the mean
    sampled: bool  # decode with a sampled P instead of its expectation
    rate: float
    forgetting: float


class Block(NamedTuple):
    """What the regressor lays out for n rows; p = K for PBC, else the rows of Q."""

    Z: NDArray[Any]  # (n, p), x_i W_0
    L: NDArray[Any]  # (n, n), how much of the error of row j < i the prediction of row i inherits
    gain: NDArray[Any]  # (n,), the share of its own error that a row loses by being learned
    E: NDArray[Any]  # (n, p), errors, filled row by row
    T: NDArray[np.float64]  # (m, m), product of the basis changes


class Work(NamedTuple):
    """Scratch of one row, and what it leaves for the caller."""

    z: NDArray[Any]  # (p,), the regressor's answer
    code: NDArray[Any]  # (m,), the code that was decoded
    s: NDArray[Any]  # (K,), scores, then v
    c: NDArray[Any]  # (K,), what the encoder takes in
    delta: NDArray[np.float64]  # (K,), label weights
    R: NDArray[np.float64]  # (m, m), the last change of basis


def make_work(m: int, K: int, p: int, dtype: Any) -> Work:
    """Scratch for codes of ``p`` numbers, ``m`` held directions and ``K`` labels."""
    z, code, s, c = (np.zeros(size, dtype) for size in (p, m, K, K))
    return Work(z, code, s, c, np.zeros(K), np.zeros((m, m)))


@njit(cache=True, nogil=True)
def predict_row(i, recipe, basis, block, o, work, y_hat):
    """Scores of row i and its labels: s = o + Q' (keep * code), positive where s >= 0 (sign(0) = +1)."""
    Q, held = basis.Q, basis.counts[HELD]
    z, code, s = work.z, work.code, work.s
    p = z.shape[0]
    if recipe.basis == PBC:
        for k in range(p):
            z[k] = block.Z[i, k]
    else:
        for b in range(p):
            z[b] = 0.0
        for a in range(p):
            for b in range(p):
                z[b] += block.Z[i, a] * block.T[a, b]
    for j in range(i):
        weight = block.L[i, j]
        for k in range(p):
            z[k] -= weight * block.E[j, k]
    if recipe.basis == PBC:
        for k in range(p):
            s[k] = z[k] - o[k]
        code[:held] = Q[:held] @ s
    else:
        code[:held] = z[:held]
    s[:] = o
    for a in range(held):
        weight = basis.keep[a] * code[a]
        for k in range(s.shape[0]):
            s[k] += weight * Q[a, k]
    for k in range(s.shape[0]):
        y_hat[k] = s[k] >= 0.0


@njit(cache=True, nogil=True)
def learn_row(i, recipe, basis, block, o, clock, work, y, uniforms, bound):
    """Learn row i, predicted just before, with the label weights in ``work.delta``."""
    K = o.shape[0]
    z, v, c = work.z, work.s, work.c
    for k in range(K):
        root = np.sqrt(work.delta[k])
        v[k] = root if y[k] else -root
    if bound.shape[0] > 0:
        _bound_terms(basis, work, v, o, bound[i])
    clock[STEPS] += 1.0
    clock[MASS] = recipe.forgetting * clock[MASS] + 1.0
    if recipe.mean:
        for k in range(K):
            o[k] += (v[k] - o[k]) / clock[MASS]
    for k in range(K):
        c[k] = v[k] - o[k]
    if recipe.basis == PBC:
        # H learns before the basis moves: the fit of this row is then z - gain (z - v).
        for k in range(K):
            e = z[k] - v[k]
            block.E[i, k] = e
            if recipe.feature:
                c[k] = z[k] - block.gain[i] * e - o[k]
    eta = recipe.rate / np.sqrt(clock[MASS]) * recipe.M / K
    msg_step_inplace(basis, recipe.M, c, eta, noise_level(v, o), uniforms[1:], work.R)
    if recipe.basis != PBC:
        _code_error(i, recipe, basis, block, work)
    choose_keep_inplace(basis, recipe.M, recipe.sampled, uniforms[0])


@njit(cache=True, nogil=True)
def _code_error(i, recipe, basis, block, work):
    """e_i = R' z_i - Q c, after T <- T R and E <- E R where the learner follows the basis (PBT)."""
    held = basis.counts[HELD]
    z = work.z
    if recipe.basis == PBT:
        block.T[:, :] = block.T @ work.R
        block.E[:i] = block.E[:i] @ work.R.astype(block.E.dtype)
    target = basis.Q[:held] @ work.c
    for b in range(held):
        e = -target[b]
        if recipe.basis == PBT:
            for a in range(z.shape[0]):
                e += z[a] * work.R[a, b]
        else:
            e += z[b]
        block.E[i, b] = e


@njit(cache=True, nogil=True)
def _bound_terms(basis, work, v, o, out):
    """Theorems 1 and 3: prediction error |keep^(1/2) (code - Q y')|^2, reconstruction error of y' = v - o."""
    c = (v - o).astype(v.dtype)
    held = basis.counts[HELD]
    projected = basis.Q[:held] @ c
    out[0], out[1] = 0.0, 0.0
    for k in range(c.shape[0]):
        out[1] += c[k] * c[k]
    for a in range(held):
        out[0] += basis.keep[a] * (work.code[a] - projected[a]) ** 2
        out[1] -= basis.keep[a] * projected[a] ** 2


@njit(cache=True, nogil=True)
def run_rows(recipe, basis, block, o, clock, work, Y, uniforms, Y_hat, bound):
    """Predict, weigh and learn the rows of a block one after the other (built-in costs)."""
    for i in range(Y.shape[0]):
        predict_row(i, recipe, basis, block, o, work, Y_hat[i])
        builtin_weights(recipe.cost, recipe.weighting, Y[i], Y_hat[i], work.delta)
        learn_row(i, recipe, basis, block, o, clock, work, Y[i], uniforms[i], bound)
