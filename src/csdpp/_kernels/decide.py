"""Thresholds on chances, one a label, from what each label would have gained if it had been predicted.

A label's gain on a row is c(without it) - c(with it), all other labels as predicted: its marginal weight, with the sign
of the truth. Gains are summed in bins of equal width in the log odds; the best
threshold so far is the bin from which on the gains add up to most.
"""

import numpy as np
from numba import njit

from csdpp._kernels.memory import memory_weights, remember_inplace
from csdpp._kernels.vectors import INNER, KERNEL
from csdpp._kernels.weights import MARGINAL, WITH_MEMORY, builtin_weights, known_weights

#: Bins, and how many of them a unit of log odds has: +-8 in quarters.
BINS, WIDTH = 65, 4.0
#: Chance 1/2, where a threshold begins.
MIDDLE = BINS // 2
#: Thresholds are chosen anew after each of so many rows, and later every so many.
OFTEN, SELDOM = 64, 16


@njit(**INNER)
def _bin(chance):
    chance = min(max(chance, 1e-12), 1.0 - 1e-12)
    place = np.floor((np.log(chance / (1.0 - chance))) * WIDTH) + MIDDLE
    return np.int64(min(max(place, 0.0), BINS - 1.0))


@njit(**KERNEL)
def decide_rows(places, P, Y_hat):
    """Labels of chances P (n, K) into Y_hat: those from their threshold on."""
    for i in range(P.shape[0]):
        for k in range(P.shape[1]):
            Y_hat[i, k] = _bin(P[i, k]) >= places[k]


@njit(**KERNEL)
def gain_row(gains, places, rows, p, y, delta, fade):
    """Add the gains of one row, whose weights are delta (K,), and choose thresholds if it is time. O(K) on average."""
    K = p.shape[0]
    for k in range(K):
        gains[k, _bin(p[k])] += delta[k] if y[k] else -delta[k]
    if fade < 1.0:
        gains *= fade
    if rows >= OFTEN and rows % SELDOM != 0:
        return
    for k in range(K):
        # From the top; of equal sums the higher threshold, so that nothing is predicted for nothing.
        total, best, place = 0.0, 0.0, BINS
        seen = False
        for b in range(BINS - 1, -1, -1):
            seen = seen or gains[k, b] != 0.0
            total += gains[k, b]
            if total > best:
                best, place = total, b
        if seen:
            places[k] = place


@njit(**KERNEL)
def run_decisions(gains, places, memory, done, kind, P, Y, known, fade, delta, Y_hat):
    """Decide and learn rows one after the other, for a built-in cost; ``known`` (n, K), or (0, K) where all is."""
    partial = known.shape[0] > 0
    told = np.empty(0, np.bool_)
    for i in range(P.shape[0]):
        decide_rows(places, P[i : i + 1], Y_hat[i : i + 1])
        if partial:
            told = known[i]
        if kind == WITH_MEMORY:
            memory_weights(memory, Y[i], Y_hat[i], told, delta)
            remember_inplace(memory, Y[i], Y_hat[i], told, fade)
        elif partial:
            known_weights(kind, MARGINAL, Y[i], Y_hat[i], told, delta)
        else:
            builtin_weights(kind, MARGINAL, Y[i], Y_hat[i], delta)
        gain_row(gains, places, done + i + 1, P[i], Y[i], delta, fade)
