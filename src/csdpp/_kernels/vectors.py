"""Rows against a vector: the loops that most of the time per row goes into, and small things around them.

Sums may be taken in another order, so that they use vector registers; NaN and infinity mean what they mean.
Four rows at a time, because then the vector is read (or written) a quarter as often.
"""

import numpy as np
from numba import njit

REORDER = {"reassoc", "contract", "nsz"}
#: How kernels are compiled. Division is NumPy's: a test for zero at each one would keep loops out of the vector
#: registers. INNER ones are called by other kernels only, and spare the compiler the way in from Python.
KERNEL = {"cache": True, "nogil": True, "error_model": "numpy"}
INNER = KERNEL | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@njit(**INNER, fastmath=REORDER)
def dots(A, x, out):
    """out[i] = A[i] . x for all rows of A."""
    rows, size = A.shape
    i = 0
    while i + 4 <= rows:
        a0, a1, a2, a3 = A[i], A[i + 1], A[i + 2], A[i + 3]
        t0 = t1 = t2 = t3 = x[0] * 0
        for k in range(size):
            t0 += a0[k] * x[k]
            t1 += a1[k] * x[k]
            t2 += a2[k] * x[k]
            t3 += a3[k] * x[k]
        out[i], out[i + 1], out[i + 2], out[i + 3] = t0, t1, t2, t3
        i += 4
    while i < rows:
        a0 = A[i]
        t0 = x[0] * 0
        for k in range(size):
            t0 += a0[k] * x[k]
        out[i] = t0
        i += 1


@njit(**INNER, fastmath=REORDER)
def add_rows(A, w, sign, x):
    """Add sign * w[i] A[i] for all rows of A to x."""
    rows, size = A.shape
    i = 0
    while i + 4 <= rows:
        a0, a1, a2, a3 = A[i], A[i + 1], A[i + 2], A[i + 3]
        w0, w1, w2, w3 = sign * w[i], sign * w[i + 1], sign * w[i + 2], sign * w[i + 3]
        for k in range(size):
            x[k] += w0 * a0[k] + w1 * a1[k] + w2 * a2[k] + w3 * a3[k]
        i += 4
    while i < rows:
        a0 = A[i]
        w0 = sign * w[i]
        for k in range(size):
            x[k] += w0 * a0[k]
        i += 1


@njit(**INNER, fastmath=REORDER)
def dot(x, y):
    """The product x . y in the precision of x."""
    total = x[0] * 0
    for k in range(x.shape[0]):
        total += x[k] * y[k]
    return total


@njit(**INNER)
def copy(x, out):
    """Write x into ``out``. A loop, here and below: numba takes a second to compile a slice that is assigned to."""
    for k in range(x.shape[0]):
        out[k] = x[k]


@njit(**INNER)
def clear(x):
    """Write zeros into a vector."""
    for k in range(x.shape[0]):
        x[k] = 0.0


@njit(**INNER)
def identity(A, n):
    """Write the first ``n`` ones of an identity into A, and zeros."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = 1.0 if i == j and i < n else 0.0


@njit(**INNER)
def corner(A, rows, columns, like):
    """The upper left corner of A, in C order and the type of ``like``."""
    out = np.empty((rows, columns), like.dtype)
    for i in range(rows):
        for j in range(columns):
            out[i, j] = A[i, j]
    return out


@njit(**INNER)
def put_product(A, B, keep, sign, out):
    """Write keep * out + sign * A B into ``out``, which A or B may share."""
    P = A @ B
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            out[i, j] = keep * out[i, j] + sign * P[i, j]
