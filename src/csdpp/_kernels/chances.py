"""Chances of labels from scores: per label a line a s + b under a sigmoid, from six running sums.

With scores of each class normal around means m_1 and m_0 with one variance v,

    log P(y = 1 | s) / P(y = 0 | s) = a s + b,   a = (m_1 - m_0) / v,
    b = log P(y = 1) / P(y = 0) - a (m_1 + m_0) / 2,

which is linear discriminant analysis of one feature. It needs sums only: they fade, they add up, no row is kept, and
the order of rows within the memory does not matter. Fitting a and b by online logistic regression (a Newton step
a row) is no better on any of the six sets of docs/scores.md and takes an exponential for each label of each row.
"""

import numpy as np
from numba import njit

from csdpp._kernels.vectors import INNER, KERNEL

#: Rows of the sums (6, K): rows, rows with the label, their scores, all scores, squares of all scores, all of them
#: fading; and rows without fading.
ROWS, HITS, HIT_SCORES, SCORES, SQUARES, SEEN = range(6)
#: A slope counts in full once there are many more rows than this with the label, and without.
DOUBT = 2.0
#: So many rows are needed for a chance that contradicts the decision; before them b = 0 and a > 0.
ENOUGH = 50.0


@njit(**INNER)
def _line(n, n1, s1, s, ss):
    """Slope a >= 0 and offset b of one label."""
    n0 = n - n1
    chance = (n1 + 0.5) / (n + 1.0)
    b = np.log(chance / (1.0 - chance))
    if n1 <= 0.0 or n0 <= 0.0:
        return 0.0, b
    m1, m0, m = s1 / n1, (s - s1) / n0, s / n
    total = ss - n * m * m
    within = max(total - n1 * (m1 - m) ** 2 - n0 * (m0 - m) ** 2, 0.0)
    v = (within + total / n) / (n + 1.0)  # one more row, as far off as rows are: nothing is ever separated for sure
    if not (m1 > m0 and v > 0.0):
        return 0.0, b
    a = (m1 - m0) / v * (n1 / (n1 + DOUBT)) * (n0 / (n0 + DOUBT))
    return a, b - a * (m1 + m0) / 2.0


@njit(**INNER)
def _chance(a, b, s):
    return 1.0 / (1.0 + np.exp(-(a * s + b)))


@njit(**KERNEL)
def put_lines(sums, a, b):
    """Write slope and offset of each label (K,), (K,)."""
    for k in range(sums.shape[1]):
        a[k], b[k] = _line(sums[ROWS, k], sums[HITS, k], sums[HIT_SCORES, k], sums[SCORES, k], sums[SQUARES, k])
        if sums[SEEN, k] < ENOUGH:
            a[k], b[k] = a[k] if a[k] > 0.0 else 1.0, 0.0


@njit(**INNER)
def _tally(sums, s, y, known, fade):
    """Take in the scores and the truth of one row, as far as it is ``known`` (K,); (0,): all of it."""
    partial = known.shape[0] > 0
    rows, hits, hit_scores, scores, squares, seen = sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]
    for k in range(s.shape[0]):
        if partial and not known[k]:
            continue
        x = np.float64(s[k])
        hit = 1.0 if y[k] else 0.0
        rows[k] = fade * rows[k] + 1.0
        hits[k] = fade * hits[k] + hit
        hit_scores[k] = fade * hit_scores[k] + hit * x
        scores[k] = fade * scores[k] + x
        squares[k] = fade * squares[k] + x * x
        seen[k] += 1.0


@njit(**KERNEL)
def put_chances(sums, S, P):
    """Write into P (n, K) the chances of scores S (n, K). O(K) a row, with an exponential."""
    a, b = np.empty(S.shape[1]), np.empty(S.shape[1])
    put_lines(sums, a, b)
    for i in range(S.shape[0]):
        for k in range(S.shape[1]):
            P[i, k] = _chance(a[k], b[k], S[i, k])


@njit(**KERNEL)
def tally_rows(sums, S, Y, known, fade):
    """Take in rows of scores S (n, K) and truth Y (n, K), as far as ``known`` (n, K); (0, 0): all. O(K) a row."""
    told = np.empty(0, np.bool_)
    for i in range(S.shape[0]):
        if known.shape[0] > 0:
            told = known[i]
        _tally(sums, S[i], Y[i], told, fade)


@njit(**KERNEL)
def tally_rows_with_chances(sums, S, Y, known, fade, P):
    """The same, and write into P (n, K) the chances of each row by the rows before it."""
    a, b = np.empty(S.shape[1]), np.empty(S.shape[1])
    told = np.empty(0, np.bool_)
    for i in range(S.shape[0]):
        put_lines(sums, a, b)
        for k in range(S.shape[1]):
            P[i, k] = _chance(a[k], b[k], S[i, k])
        if known.shape[0] > 0:
            told = known[i]
        _tally(sums, S[i], Y[i], told, fade)
