"""Rows against a vector: the loops that most of the time per row goes into, and small things around them.

Sums may be taken in another order, so that they use vector registers; NaN and infinity mean what they mean.
Four rows at a time, because then the vector is read (or written) a quarter as often.
"""

import numpy as np
from numba import njit

REORDER = {"reassoc", "contract", "nsz"}


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REORDER)
def dots(A, first, last, x, out):
    """out[i - first] = A[i] . x for ``first <= i < last``."""
    size = x.shape[0]
    i = first
    while i + 4 <= last:
        a0, a1, a2, a3 = A[i], A[i + 1], A[i + 2], A[i + 3]
        t0 = t1 = t2 = t3 = x[0] * 0
        for k in range(size):
            t0 += a0[k] * x[k]
            t1 += a1[k] * x[k]
            t2 += a2[k] * x[k]
            t3 += a3[k] * x[k]
        out[i - first], out[i - first + 1], out[i - first + 2], out[i - first + 3] = t0, t1, t2, t3
        i += 4
    while i < last:
        a0 = A[i]
        t0 = x[0] * 0
        for k in range(size):
            t0 += a0[k] * x[k]
        out[i - first] = t0
        i += 1


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REORDER)
def add_rows(A, first, last, w, sign, x):
    """Add sign * w[i - first] A[i] over ``first <= i < last`` to x."""
    size = x.shape[0]
    i = first
    while i + 4 <= last:
        a0, a1, a2, a3 = A[i], A[i + 1], A[i + 2], A[i + 3]
        w0, w1, w2, w3 = sign * w[i - first], sign * w[i - first + 1], sign * w[i - first + 2], sign * w[i - first + 3]
        for k in range(size):
            x[k] += w0 * a0[k] + w1 * a1[k] + w2 * a2[k] + w3 * a3[k]
        i += 4
    while i < last:
        a0 = A[i]
        w0 = sign * w[i - first]
        for k in range(size):
            x[k] += w0 * a0[k]
        i += 1


@njit(cache=True, nogil=True, error_model="numpy", fastmath=REORDER)
def dot(x, y):
    """The product x . y in the precision of x."""
    total = x[0] * 0
    for k in range(x.shape[0]):
        total += x[k] * y[k]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def copy(x, out):
    """Write x into ``out``. A loop, here and below: a slice that is assigned to costs numba a second to compile."""
    for k in range(x.shape[0]):
        out[k] = x[k]


@njit(cache=True, nogil=True, error_model="numpy")
def clear(x):
    """Write zeros into a vector."""
    for k in range(x.shape[0]):
        x[k] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def identity(A, n):
    """Write the first ``n`` ones of an identity into A, and zeros."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = 1.0 if i == j and i < n else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def part(A, first, last, start, stop, like):
    """A[first:last, start:stop] in C order and the type of ``like``."""
    out = np.empty((last - first, stop - start), like.dtype)
    for i in range(first, last):
        for j in range(start, stop):
            out[i - first, j - start] = A[i, j]
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def put_product(A, B, keep, sign, out, first, start):
    """Write keep * out + sign * A B into ``out`` from row ``first`` and column ``start`` on; A may be of it."""
    P = A @ B
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            out[first + i, start + j] = keep * out[first + i, start + j] + sign * P[i, j]
