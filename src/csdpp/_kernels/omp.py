"""Orthogonal matching pursuit: the sparse decoder of compressed sensing."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def pursue_rows(A, Z, sizes, out):
    """Write into ``out`` (n, K) coefficients w with A w close to each row of Z (n, M), at most ``sizes[i]`` not zero.

    A (M, K) has columns of unit length. Each round takes the column that fits the rest best and fits all taken
    ones anew, by Gram-Schmidt on them: O(size M K) a row.
    """
    M, K = A.shape
    for i in range(Z.shape[0]):
        size = min(sizes[i], M, K)
        taken = np.empty(size, np.int64)
        B = np.zeros((size, M))  # orthonormal basis of the taken columns
        R = np.zeros((size, size))  # taken columns = B' R
        along = np.zeros(size)  # coordinates of the row on B
        out[i, :] = 0.0
        rest = Z[i].astype(np.float64)
        count = 0
        while count < size:
            best, gain = -1, 0.0
            for k in range(K):
                fit = 0.0
                for a in range(M):
                    fit += A[a, k] * rest[a]
                if abs(fit) > gain and out[i, k] == 0.0:
                    best, gain = k, abs(fit)
            if best < 0 or gain <= 1e-12:
                break
            for a in range(M):
                B[count, a] = A[a, best]
            for _ in range(2):
                for b in range(count):
                    part = 0.0
                    for a in range(M):
                        part += B[b, a] * B[count, a]
                    R[b, count] += part
                    for a in range(M):
                        B[count, a] -= part * B[b, a]
            norm = 0.0
            for a in range(M):
                norm += B[count, a] ** 2
            norm = np.sqrt(norm)
            out[i, best] = 1.0  # taken, whatever its coefficient will be
            if norm <= 1e-10:
                break
            R[count, count] = norm
            for a in range(M):
                B[count, a] /= norm
                along[count] += B[count, a] * rest[a]
            for a in range(M):
                rest[a] -= along[count] * B[count, a]
            taken[count] = best
            count += 1
        out[i, :] = 0.0
        for b in range(count - 1, -1, -1):
            value = along[b]
            for later in range(b + 1, count):
                value -= R[b, later] * out[i, taken[later]]
            out[i, taken[b]] = value / R[b, b]
