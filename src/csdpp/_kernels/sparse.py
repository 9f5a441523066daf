"""Sparse rows against a dense matrix, without a dense temporary as long as the features."""

from numba import njit


@njit(cache=True, nogil=True)
def subtract_outer_inplace(W, data, indices, indptr, E):
    """W -= X' E for X (n, d) in CSR form and E (n, p): O(nnz p)."""
    for i in range(E.shape[0]):
        for place in range(indptr[i], indptr[i + 1]):
            row, x = indices[place], data[place]
            for k in range(E.shape[1]):
                W[row, k] -= x * E[i, k]
