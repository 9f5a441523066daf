"""Rows against a vector: the two loops that most of the time per row goes into.

Sums may be taken in another order, so that they use vector registers; NaN and infinity mean what they mean.
Four rows at a time, because then the vector is read (or written) a quarter as often.
"""

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
