"""A block of rows, learned as if one at a time: the sequential part of the engine (docs/maths.md, section 6).

What touches the d features is done by matrix products before and after (`csdpp.regressors`). Here the rows
unfold one by one on the numbers that they leave: with W_0 the regressor at the start of the block, row i is
predicted before it is learned as

    z_i = (x_i W_0) T - sum_{j < i} L_ij e_j,

T the product of the basis changes so far and e_j the errors of the earlier rows, carried along with the basis.
The rows go in strips: what earlier strips contribute is one matrix product at the start of a strip.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from csdpp._kernels.memory import memory_weights, remember_inplace
from csdpp._kernels.msg import (
    HELD,
    WIDTH,
    Basis,
    Turn,
    choose_keep_inplace,
    close_strip,
    make_turn,
    msg_step_inplace,
    noise_level,
    open_strip,
)
from csdpp._kernels.vectors import INNER, KERNEL, add_rows, clear, copy, corner, dots, identity, put_product
from csdpp._kernels.weights import WITH_MEMORY, builtin_weights, known_weights

#: What a user's cost calls row by row and `run_rows` takes in as it stands: compiled once, not twice. That and fewer
#: ways in from Python make the first use a sixth shorter.
ROW = KERNEL | {"inline": "always"}
PBC, PBT, NONE = range(3)
STEPS, MASS, ABSENT, PARTIAL = range(4)


class Recipe(NamedTuple):
    """What stays the same from row to row."""

    M: int
    cost: int  # id of a built-in cost
    weighting: int
    basis: int  # PBC, PBT or NONE
    feature: bool  # encode the fitted values instead of the labels
    mean: bool  # the reference moves with the mean
    sampled: bool  # decode with a sampled P instead of its expectation
    rate: float  # eta_t = rate / sqrt(rows remembered) * M / K, unless rates are given row by row
    forgetting: float


class Block(NamedTuple):
    """What the regressor lays out for n rows; p = K for PBC, else the rows of Q."""

    Z: NDArray[Any]  # (n, p), x_i W_0, less what earlier strips contribute once its strip is open
    L: NDArray[Any]  # (n, n), how much of the error of row j < i the prediction of row i inherits
    gain: NDArray[Any]  # (n,), the share of its own error that a row loses by being learned
    E: NDArray[Any]  # (n, p), errors, filled row by row
    T: NDArray[np.float64]  # (m, m), product of the basis changes
    absent: NDArray[np.float64]  # (n,), filled: what a label that nobody knows yet would have had for v


class Work(NamedTuple):
    """Scratch of one row, and what it leaves for the caller."""

    z: NDArray[Any]  # (p,), the regressor's answer
    code: NDArray[np.float64]  # (m,), the code that was decoded
    s: NDArray[Any]  # (K,), scores, then v
    c: NDArray[Any]  # (K,), what the encoder takes in
    delta: NDArray[np.float64]  # (K,), label weights
    on_frame: NDArray[Any]  # (m + strip,), coordinates on the frame
    turned: NDArray[np.float64]  # (m, m), product of the basis changes of this strip
    turn: Turn


def make_work(basis: Basis, p: int) -> Work:
    """Scratch for codes of ``p`` numbers."""
    m, (rows, K), dtype = len(basis.sigma), basis.frame.shape, basis.frame.dtype
    z, s, c, on_frame = (np.zeros(size, dtype) for size in (p, K, K, rows))
    return Work(z, np.zeros(m), s, c, np.zeros(K), on_frame, np.zeros((m, m)), make_turn(basis))


@njit(**ROW)
def start_strip(first, last, recipe, basis, block, work):
    """Rows ``first`` to ``last``: Z <- Z T - L E, as far as the rows before them go."""
    open_strip(basis, work.turn)
    Z, L, E = block.Z, block.L, block.E
    if recipe.basis == PBT:
        m = work.turned.shape[0]
        put_product(Z[first:last], corner(block.T, m, m, Z), 0.0, 1.0, Z[first:last])
        identity(work.turned, m)
    if first > 0:
        put_product(corner(L[first:last], last - first, first, Z), E[:first], 1.0, -1.0, Z[first:last])


@njit(**ROW)
def end_strip(first, recipe, basis, block, work):
    """Multiply the basis out, and carry to it the errors before the strip and T."""
    close_strip(basis, work.turn)
    if recipe.basis == PBT:
        m = work.turned.shape[0]
        if first > 0:
            put_product(block.E[:first], corner(work.turned, m, m, block.E), 0.0, 1.0, block.E[:first])
        put_product(block.T, work.turned, 0.0, 1.0, block.T)


@njit(**ROW)
def predict_row(i, first, recipe, basis, block, o, work, y_hat):
    """Scores of row i and its labels: s = o + Q' (keep * code), positive where s >= 0 (sign(0) = +1)."""
    held, width = basis.counts[HELD], basis.counts[WIDTH]
    z, code, s, on_frame, F = work.z, work.code, work.s, work.on_frame, work.turn.F
    copy(block.Z[i], z)
    add_rows(block.E[first:i], block.L[i, first:], -1.0, z)
    clear(code)
    if recipe.basis == PBC:
        for k in range(s.shape[0]):
            s[k] = z[k] - o[k]
        dots(basis.frame[:width], s, on_frame)
        for a in range(held):
            for b in range(width):
                code[a] += F[a, b] * on_frame[b]
    else:
        for a in range(held):
            code[a] = z[a]
    clear(on_frame)
    for a in range(held):
        weight = basis.keep[a] * code[a]
        for b in range(width):
            on_frame[b] += weight * F[a, b]
    copy(o, s)
    add_rows(basis.frame[:width], on_frame, 1.0, s)
    for k in range(s.shape[0]):
        y_hat[k] = s[k] >= 0.0


@njit(**ROW)
def learn_row(i, first, last, recipe, basis, block, o, clock, told, work, y, known, rates, uniforms, bound):
    """Learn row i, predicted just before, with the label weights in ``work.delta``; ``rates`` (n,) or (0,).

    ``known`` (K,) says which labels are told; (0,): all of them. One that is not has weight 0 and moves nothing: its
    target is its own fit (or, of a code, what this row's code says of it) and its part of c is 0; o stays.
    """
    K = o.shape[0]
    z, v, c = work.z, work.s, work.c
    partial = known.shape[0] > 0
    block.absent[i] = -_root_of_absent(v, y, known, work.delta, -clock[ABSENT])
    for k in range(K):
        root = np.sqrt(work.delta[k])
        v[k] = root if y[k] else -root
    if partial:
        _put_where_unknown(known, o, v)
    if bound.shape[0] > 0:
        _bound_terms(basis, work, v, o, bound[i])
    if partial and clock[PARTIAL] == 0.0:
        clock[PARTIAL] = 1.0
        for k in range(K):
            told[k] = clock[MASS]
    clock[STEPS] += 1.0
    clock[MASS] = recipe.forgetting * clock[MASS] + 1.0
    clock[ABSENT] += (block.absent[i] - clock[ABSENT]) / clock[MASS]
    if clock[PARTIAL] > 0.0:
        _move_reference(recipe, known, v, told, o)
    elif recipe.mean:
        share = 1.0 / clock[MASS]
        for k in range(K):
            o[k] += (v[k] - o[k]) * share
    for k in range(K):
        c[k] = v[k] - o[k]
    noise = noise_level(v, o)
    if recipe.basis == PBC:
        # H learns before the basis moves: the fit of this row is then z - gain (z - v).
        gain = block.gain[i]
        if recipe.feature:  # z too is among the numbers whose difference c is; v and o may both be zero
            noise = max(noise, noise_level(z, o))
        for k in range(K):
            e = z[k] - v[k]
            block.E[i, k] = e
            if recipe.feature:
                c[k] = z[k] - gain * e - o[k]
        if partial:
            _clear_where_unknown(known, block.E[i], c)
    rate = rates[i] if rates.shape[0] > 0 else recipe.rate / np.sqrt(clock[MASS])
    eta = rate * recipe.M / K
    msg_step_inplace(basis, work.turn, recipe.M, c, eta, noise, uniforms[1:])
    if recipe.basis == PBT:
        _carry(i, first, last, block, work)
    if recipe.basis != PBC:
        for a in range(basis.counts[HELD]):
            block.E[i, a] = z[a] - work.turn.target[a]
        if partial:
            _leave_unknown(i, known, basis, block, work)
    choose_keep_inplace(basis, recipe.M, recipe.sampled, uniforms[0])


@njit(**INNER)
def _root_of_absent(s, y, known, delta, before):
    """Root of the weight of a label that is neither there nor predicted: the last such, else the least of all.

    ``before`` where nothing is known.
    """
    partial, least, found = known.shape[0] > 0, 0.0, False
    for k in range(s.shape[0] - 1, -1, -1):
        if partial and not known[k]:
            continue
        if not y[k] and s[k] < 0.0:
            return np.sqrt(delta[k])
        least = delta[k] if not found else min(least, delta[k])
        found = True
    return np.sqrt(least) if found else before


@njit(**INNER)
def _put_where_unknown(known, values, out):
    for k in range(known.shape[0]):
        if not known[k]:
            out[k] = values[k]


@njit(**INNER)
def _clear_where_unknown(known, errors, c):
    for k in range(known.shape[0]):
        if not known[k]:
            errors[k] = 0.0
            c[k] = 0.0


@njit(**INNER)
def _move_reference(recipe, known, v, told, o):
    """The mean of each label over the rows ``told`` of it, which fade as all rows do."""
    partial = known.shape[0] > 0
    for k in range(o.shape[0]):
        told[k] *= recipe.forgetting
        if not partial or known[k]:
            told[k] += 1.0
            if recipe.mean:
                o[k] += (v[k] - o[k]) / told[k]


@njit(**INNER)
def _leave_unknown(i, known, basis, block, work):
    """The error z - Q t with t = c where known and Q'z where not: e -= Q (Q'z where not known)."""
    held, width = basis.counts[HELD], basis.counts[WIDTH]
    on_frame, fit, F = work.on_frame, work.c, work.turn.F
    told = 0
    for k in range(known.shape[0]):
        told += known[k]
    if told == 0:
        clear(block.E[i])
        return
    clear(on_frame)
    for a in range(held):
        for b in range(width):
            on_frame[b] += work.z[a] * F[a, b]
    clear(fit)
    add_rows(basis.frame[:width], on_frame, 1.0, fit)
    for k in range(known.shape[0]):
        if known[k]:
            fit[k] = 0.0
    dots(basis.frame[:width], fit, on_frame)
    for a in range(held):
        for b in range(width):
            block.E[i, a] -= F[a, b] * on_frame[b]


@njit(**INNER)
def _carry(i, first, last, block, work):
    """What is written in the old basis, of this strip, into the new one: X <- X R."""
    R = work.turn.R
    m = R.shape[0]
    old = np.empty(m)
    for row in range(first, i):
        _turn_row(block.E[row], R, old)
    _turn_row(work.z, R, old)
    for row in range(i + 1, last):
        _turn_row(block.Z[row], R, old)
    if m < 32:
        for a in range(m):
            _turn_row(work.turned[a], R, old)
    else:
        put_product(work.turned, R, 0.0, 1.0, work.turned)


@njit(**INNER)
def _turn_row(x, R, old):
    copy(x, old)
    clear(x)
    for a in range(x.shape[0]):
        for b in range(x.shape[0]):
            x[b] += old[a] * R[a, b]


@njit(**INNER)
def _bound_terms(basis, work, v, o, out):
    """Theorems 1 and 3: prediction error |keep^(1/2) (code - Q y')|^2, reconstruction error of y' = v - o."""
    held, width = basis.counts[HELD], basis.counts[WIDTH]
    c = np.empty_like(v)
    for k in range(c.shape[0]):
        c[k] = v[k] - o[k]
    on_frame = np.empty(width, v.dtype)
    dots(basis.frame[:width], c, on_frame)
    out[0], out[1] = 0.0, 0.0
    for k in range(c.shape[0]):
        out[1] += c[k] * c[k]
    for a in range(held):
        projected = 0.0
        for b in range(width):
            projected += work.turn.F[a, b] * on_frame[b]
        out[0] += basis.keep[a] * (work.code[a] - projected) ** 2
        out[1] -= basis.keep[a] * projected**2


@njit(**KERNEL)
def run_rows(recipe, basis, block, o, clock, told, memory, work, Y, known, rates, uniforms, Y_hat, S, bound):
    """Predict, weigh and learn the rows of a block one after the other (built-in costs); S (n, K) gets the scores.

    ``known`` (n, K), or (0, K) where all labels are.
    """
    n = Y.shape[0]
    strip = basis.frame.shape[0] - basis.sigma.shape[0]
    partial = known.shape[0] > 0
    told_row = np.empty(0, np.bool_)
    for first in range(0, n, strip):
        last = min(first + strip, n)
        start_strip(first, last, recipe, basis, block, work)
        for i in range(first, last):
            predict_row(i, first, recipe, basis, block, o, work, Y_hat[i])
            copy(work.s, S[i])
            if partial:
                told_row = known[i]
            if recipe.cost == WITH_MEMORY:
                memory_weights(memory, Y[i], Y_hat[i], told_row, work.delta)
                remember_inplace(memory, Y[i], Y_hat[i], told_row, recipe.forgetting)
            elif partial:
                known_weights(recipe.cost, recipe.weighting, Y[i], Y_hat[i], told_row, work.delta)
            else:
                builtin_weights(recipe.cost, recipe.weighting, Y[i], Y_hat[i], work.delta)
            row = uniforms[i]
            learn_row(i, first, last, recipe, basis, block, o, clock, told, work, Y[i], told_row, rates, row, bound)
        end_strip(first, recipe, basis, block, work)
