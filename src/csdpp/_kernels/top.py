"""The k largest scores of each row, in falling order, without sorting all K of them."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from csdpp._kernels.vectors import KERNEL


@njit(**KERNEL)
def top_rows(S, places):
    """Write the columns of the k largest entries of each row of S (n, K) into ``places`` (n, k) of int64.

    Of equal entries the one with the smaller column comes first. O(K) a row where the order of the labels says
    nothing (a score rarely enters the heap), O(K log k) at worst.
    """
    n, K = S.shape
    k = places.shape[1]
    for i in range(n):
        s, heap = S[i], places[i]
        # A heap of the k best so far, the worst of them on top: a loses to b if it is less, or equal and later.
        for a in range(k):
            heap[a] = a
        for root in range(k // 2 - 1, -1, -1):
            _sift(s, heap, root, k)
        for a in range(k, K):
            if s[a] > s[heap[0]]:  # an equal one that comes later loses
                heap[0] = a
                _sift(s, heap, 0, k)
        for end in range(k - 1, 0, -1):  # the worst goes to the end
            heap[0], heap[end] = heap[end], heap[0]
            _sift(s, heap, 0, end)


@njit(**KERNEL)
def _sift(s, heap, root, size):
    """Let the entry at ``root`` sink to its place among the first ``size``."""
    moving = heap[root]
    while True:
        child = 2 * root + 1
        if child >= size:
            break
        if child + 1 < size and _loses(s, heap[child + 1], heap[child]):
            child += 1
        if not _loses(s, heap[child], moving):
            break
        heap[root] = heap[child]
        root = child
    heap[root] = moving


@njit(**KERNEL)
def _loses(s, a, b):
    return s[a] < s[b] or (s[a] == s[b] and a > b)


def top_columns(S: NDArray[Any], k: int) -> NDArray[np.int64]:
    """Columns of the k largest entries of each row, falling; of equal ones the smaller column first."""
    places = np.empty((len(S), k), np.int64)
    top_rows(S, places)
    return places
