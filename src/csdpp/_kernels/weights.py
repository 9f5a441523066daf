"""The label weights delta^(k) of a cost on counts, compiled.

Notation of this file. Of the K labels of a row, P are relevant and N are not. All costs here see a
prediction only through its i misses and j false alarms, so c(i, j) stands for the cost at tp = P - i, fp =
j, fn = i, tn = N - j. The weight of label k is the price of getting it wrong while the *other* labels hold
i misses and j false alarms:

    D(i, j) = |c(i + 1, j) - c(i, j)|  if k is relevant (hit, miss)
              |c(i, j + 1) - c(i, j)|  if it is not (false alarm, correct rejection)

The weightings differ in the (i, j) at which they ask: "ordered", the paper's, at the mistakes that come
after k; "marginal" at all mistakes but k's own; "shapley" at those that come after k in a random order of
the labels, on average over all orders; "mean" is the average of the last two. These three give all labels
of one kind the same weight, four values a row.
"""

import numpy as np
from numba import njit

from csdpp._kernels.vectors import INNER, KERNEL

HAMMING, F1, ACCURACY, RANK, RANK_PUBLISHED, WITH_MEMORY = range(6)  # the last: see `csdpp._kernels.memory`
ORDERED, SHAPLEY, MARGINAL, MEAN = range(4)

# What became of a user's cost, in the first entry of the report of `count_weights`.
FINE, RISES, NOT_ZERO, NOT_FINITE = range(4)
ROUNDING = 1e-9  # a violation smaller than this is taken for rounding in the user's formula

_CHUNK = 4096  # terms of a Shapley sum that are held at a time


@njit(**KERNEL)
def row_counts(y, y_hat):
    """(tp, fp, fn, tn) of one row of booleans."""
    tp, P, predicted = np.int64(0), np.int64(0), np.int64(0)
    for k in range(y.shape[0]):
        tp += y[k] & y_hat[k]
        P += y[k]
        predicted += y_hat[k]
    return tp, predicted - tp, P - tp, y.shape[0] - P - predicted + tp


@njit(**KERNEL)
def builtin_cost(kind, tp, fp, fn, tn):
    """The built-in cost ``kind`` at these counts; 0/0 is a loss of 0."""
    if kind == HAMMING:
        return (fp + fn) / (tp + fp + fn + tn)
    if kind == F1:
        # 1 - 2 tp / (2 tp + fp + fn), as one quotient: no cancellation where the loss is small
        return (fp + fn) / (2 * tp + fp + fn) if tp + fp + fn > 0 else 0.0
    if kind == ACCURACY:
        return (fp + fn) / (tp + fp + fn) if tp + fp + fn > 0 else 0.0
    P, N = float(tp + fn), float(fp + tn)  # as floats: products of counts may pass 2^63
    if kind == RANK:
        # (fn fp + (tp fp + fn tn) / 2) / (P N) of the P N pairs (relevant, irrelevant); no pair, no loss
        return (fn / P + fp / N) / 2 if P > 0 and N > 0 else 0.0
    # RANK_PUBLISHED, of the paper's tables: (fn fp + fn tn / 2) / (P N), a tie of two predicted labels is
    # free
    if P == 0:
        return 1.0
    return fn * (N + fp) / (2 * P * N) if N > 0 else 0.0


@njit(**INNER)
def _builtin_step(kind, relevant, i, j, P, N):
    """D(i, j) of a built-in cost."""
    di, dj = (1, 0) if relevant else (0, 1)
    right = builtin_cost(kind, P - i, j, i, N - j)
    return abs(builtin_cost(kind, P - i - di, j + dj, i + di, N - j - dj) - right)


# Shapley weights in closed form. Let f misses and g false alarms be among the other labels. A random order
# puts label k at a place p, uniform on (0, 1), and each other label before it with probability p. Given p,
# the mistakes that are left, i ~ Bin(f, 1 - p) and j ~ Bin(g, 1 - p), are independent; I = f - i misses are
# put right already.


@njit(**INNER)
def _f1_mean(f, g, c):
    """E[h(X)] with h(x) = 1 / ((c + x) (c + x + 1)), X = I + j: misses put right plus false alarms left.

    The generating function of X is W_{f,g}(s) = int_0^1 u^f w^g dp with u = 1 - p + p s, w = p + (1 - p) s,
    u + w = 1 + s. It is symmetric in f and g, so let f >= g. Integrating by parts again and again gives

        W_{f,g}(s) = sum_{k=0..g} beta_k (s^(g-k) + ... + s^(f+k)),
        beta_0 = 1 / (f + 1),  beta_k = beta_{k-1} (g - k + 1) / (f + k + 1):

    X is uniform on one of g + 1 nested intervals. On an interval the sum of h telescopes: with r(x) = 1 /
    (c + x), sum_{x=a..b} h(x) = r(a) - r(b + 1). beta falls like exp(-k^2/f), so O(sqrt(f)) terms matter;
    no scratch.
    """
    if f < g:
        f, g = g, f
    beta = 1.0 / (f + 1)
    total = 0.0
    for k in range(g + 1):
        total += beta * (f - g + 2 * k + 1) / ((c + g - k) * (c + f + k + 1))
        beta *= (g - k) / (f + k + 2)
        if beta * (f + 1) < 1e-20:  # the rest of the mass is below 1e-19
            break
    return total


@njit(**INNER)
def _f1_mean_p(f, g, c):
    """E[p h(X)], h and X as in `_f1_mean`.

    p = (1 - u) / (1 - s) gives int p u^f w^g dp = (W_{f,g} - W_{f+1,g}) / (1 - s), a difference of
    distribution functions; summed by parts against h it is E[r(X_{f,g})] - E[r(X_{f+1,g})]. For f >= g the
    two have the same intervals but for one point, and beta_k(f + 1, g) = beta_k (f + 1) / (f + k + 2). With
    S_k = sum_{x=g-k..f+k} r(x),

        E[p h(X)] = sum_k beta_k ((k + 1) S_k - (f + 1) r(f + k + 1)) / (f + k + 2).

    For f < g exchange p and 1 - p: E[p h] = E[h] - E[(1 - p) h]. h falls and a small 1 - p means a small X,
    so E[(1 - p) h] is the smaller part and nothing cancels. O(|f - g| + sqrt(f + g)).
    """
    if f < g:
        return _f1_mean(g, f, c) - _f1_mean_p(g, f, c)
    S = 0.0
    for x in range(g, f + 1):
        S += 1.0 / (c + x)
    beta = 1.0 / (f + 1)
    total = 0.0
    for k in range(g + 1):
        total += beta * ((k + 1) * S - (f + 1) / (c + f + k + 1)) / (f + k + 2)
        beta *= (g - k) / (f + k + 2)
        if beta * (f + 1) < 1e-20 or k == g:
            break
        S += 1.0 / (c + g - k - 1) + 1.0 / (c + f + k + 1)
    return total


@njit(**INNER)
def _shapley_f1(relevant, f, g, P):
    """F1: c = 1 - 2 (P - i) / (P + b), b = P - i + j labels predicted; P > 0.

    With c + X = P + b for the prediction with fewer labels, D(i, j) = 2 (P + j) h(X) for a relevant label
    and 2 (P - i) h(X) for another, P - i = P - f + I. Taking one of the f misses (g false alarms) out of X,

        E[I h_c(X_{f,g})] = f E[p h_{c+1}(X_{f-1,g})],  E[j h_c(X_{f,g})] = g E[p h_{c+1}(X_{g-1,f})]

    (the second with p for 1 - p). All terms are positive, so small weights too are right to the last digits.
    """
    if relevant:
        c = 2 * P - f - 1
        value = P * _f1_mean(f, g, c)
        if g > 0:
            value += g * _f1_mean_p(g - 1, f, c + 1)
    else:
        c = 2 * P - f
        value = (P - f) * _f1_mean(f, g, c)
        if f > 0:
            value += f * _f1_mean_p(f - 1, g, c + 1)
    return 2 * value


@njit(**INNER)
def _shapley_accuracy(relevant, f, g, P):
    """Accuracy: c = 1 - (P - i) / (P + j); P > 0.

    D = 1 / (P + j) for a relevant label, (P - f + I) / ((P + j) (P + j + 1)) for another: linear in I, so a
    sum over j is left, with Pr(j) = 1 / (g + 1) and E[p; j] = (g - j + 1) / ((g + 1) (g + 2)). O(g).
    """
    total = 0.0
    if relevant:
        for j in range(g + 1):
            total += 1.0 / (P + j)
    else:
        put_right = f / (g + 2.0)
        for j in range(g + 1):
            total += (P - f + put_right * (g - j + 1)) / ((P + j) * (P + j + 1))
    return total / (g + 1)


@njit(**INNER)
def _builtin_shapley(kind, relevant, f, g, P, N):
    """E[D(i, j)] over all label orders, f misses and g false alarms among the other labels."""
    if kind == HAMMING:
        return 1.0 / (P + N)
    if kind in (RANK, RANK_PUBLISHED):
        if P == 0 or N == 0:
            return 0.0
        if kind == RANK:  # linear
            return 0.5 / (P if relevant else N)
        # c = i (N + j) / (2 P N), with E[i] = f/2 and E[j] = g/2
        return (N + g / 2) / (2.0 * P * N) if relevant else f / (4.0 * P * N)
    if P == 0:  # F1 and accuracy are 1 with any false alarm: the last one to be put right pays
        return 1.0 / (g + 1)
    if kind == F1:
        return _shapley_f1(relevant, f, g, P)
    return _shapley_accuracy(relevant, f, g, P)


@njit(**INNER)
def _builtin_value(kind, weighting, relevant, f, g, P, N):
    """The weight of one kind of label under an order-free weighting."""
    if weighting == MARGINAL:
        return _builtin_step(kind, relevant, f, g, P, N)
    value = _builtin_shapley(kind, relevant, f, g, P, N)
    if weighting == MEAN:
        value = (value + _builtin_step(kind, relevant, f, g, P, N)) / 2
    return value


@njit(**KERNEL)
def fill_four(y, y_hat, hit, miss, false_alarm, rejection, out):
    """Give each label the value of its kind."""
    for k in range(y.shape[0]):
        if y[k]:
            out[k] = hit if y_hat[k] else miss
        else:
            out[k] = false_alarm if y_hat[k] else rejection


@njit(**KERNEL)
def builtin_weights(kind, weighting, y, y_hat, out):
    """Write the K weights of one row (not square-rooted) into ``out``.

    ``y``, ``y_hat``: bool (K,), C-contiguous; ``out``: float (K,). O(K + mistakes), no scratch.
    """
    tp, fp, fn, tn = row_counts(y, y_hat)
    P, N = tp + fn, fp + tn
    if weighting != ORDERED:
        hit = _builtin_value(kind, weighting, True, fn, fp, P, N) if tp > 0 else 0.0
        miss = _builtin_value(kind, weighting, True, fn - 1, fp, P, N) if fn > 0 else 0.0
        alarm = _builtin_value(kind, weighting, False, fn, fp - 1, P, N) if fp > 0 else 0.0
        reject = _builtin_value(kind, weighting, False, fn, fp, P, N) if tn > 0 else 0.0
        fill_four(y, y_hat, hit, miss, alarm, reject, out)
        return
    # delta^(k) = D(mistakes after k): it stands still from one mistake to the next
    i, j = fn, fp
    relevant = _builtin_step(kind, True, i, j, P, N) if i < P else 0.0
    other = _builtin_step(kind, False, i, j, P, N) if j < N else 0.0
    for k in range(y.shape[0]):
        if y[k] != y_hat[k]:
            if y[k]:
                i -= 1
            else:
                j -= 1
            relevant = _builtin_step(kind, True, i, j, P, N) if i < P else 0.0
            other = _builtin_step(kind, False, i, j, P, N) if j < N else 0.0
        out[k] = relevant if y[k] else other


@njit(**KERNEL)
def builtin_loss(kind, Y, Y_hat, out):
    """Write the cost of each row of ``Y_hat`` (n, K) against ``Y`` into ``out`` (n,); both bool. O(nK)."""
    for t in range(Y.shape[0]):
        tp, fp, fn, tn = row_counts(Y[t], Y_hat[t])
        out[t] = builtin_cost(kind, tp, fp, fn, tn)


@njit(**KERNEL)
def known_weights(kind, weighting, y, y_hat, known, out):
    """`builtin_weights` of the row without the labels that are not ``known`` (K,); those weigh nothing."""
    count = 0
    for k in range(known.shape[0]):
        out[k] = 0.0
        count += known[k]
    if count == 0:
        return
    truth, answer, weights = np.empty(count, np.bool_), np.empty(count, np.bool_), np.empty(count)
    place = 0
    for k in range(y.shape[0]):
        if known[k]:
            truth[place], answer[place] = y[k], y_hat[k]
            place += 1
    builtin_weights(kind, weighting, truth, answer, weights)
    place = 0
    for k in range(y.shape[0]):
        if known[k]:
            out[k] = weights[place]
            place += 1


@njit(**KERNEL)
def known_loss(kind, Y, Y_hat, known, out):
    """`builtin_loss` of what is ``known`` (n, K); 0 where nothing is."""
    for t in range(Y.shape[0]):
        tp, P, predicted, count = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
        for k in range(Y.shape[1]):
            if known[t, k]:
                tp += Y[t, k] & Y_hat[t, k]
                P += Y[t, k]
                predicted += Y_hat[t, k]
                count += 1
        out[t] = builtin_cost(kind, tp, predicted - tp, P - tp, count - P - predicted + tp) if count > 0 else 0.0


# Any cost on counts. m = i + j of the other mistakes come after k, m uniform on 0..f+g, and given m the
# misses among them are hypergeometric: sum_{i, j} C(f, i) C(g, j) / (C(f + g, i + j) (f + g + 1)) D(i, j).


@njit(cache=True, nogil=True)
def shapley_terms(f, g, m, i_out, j_out, weight_out):
    """Write terms (i, j, weight) of the Shapley sum, from m = i + j on, and return (how many, the next m).

    Whole values of m only, as many as fit; the buffers must hold min(f, g) + 1 terms. For each m every
    probability follows from its neighbour, outwards from the mode and down to 1e-18 of it: O(sqrt(f + g))
    terms.
    """
    n = np.int64(0)
    while m <= f + g and n + min(f, g) + 1 <= i_out.shape[0]:
        start, total = n, 0.0
        mode = (m + 1) * (f + 1) // (f + g + 2)
        weight, i = 1.0, mode
        while weight > 1e-18:  # ends at the latest where i or j leaves its range: a factor is zero there
            i_out[n], j_out[n], weight_out[n] = i, m - i, weight
            n, total = n + 1, total + weight
            weight *= (f - i) * (m - i) / ((i + 1) * (g - m + i + 1))
            i += 1
        weight, i = mode * (g - m + mode) / ((f - mode + 1) * (m - mode + 1)), mode - 1
        while weight > 1e-18:
            i_out[n], j_out[n], weight_out[n] = i, m - i, weight
            n, total = n + 1, total + weight
            weight *= i * (g - m + i) / ((f - i + 1) * (m - i + 1))
            i -= 1
        for t in range(start, n):
            weight_out[t] /= total * (f + g + 1)
        m += 1
    return n, m


@njit(cache=True, nogil=True)
def shapley_scratch(f, g):
    """How long the buffers of `shapley_terms` had best be."""
    return min((f + 1) * (g + 1), max(min(f, g) + 1, _CHUNK))


# What takes a user's function is compiled anew for each one: a cache on disk would never be hit again and
# grow with every run, so there is none.


@njit(nogil=True)
def _count_step(cost, relevant, i, j, P, N, report):
    """D(i, j) of a user's cost; the first violation of the condition of Lemma 2 goes into ``report``."""
    di, dj = (1, 0) if relevant else (0, 1)
    right = float(cost(P - i, j, i, N - j))
    wrong = float(cost(P - i - di, j + dj, i + di, N - j - dj))
    status = FINE
    if not (np.isfinite(right) and np.isfinite(wrong)):
        status = NOT_FINITE
    elif i == 0 and j == 0 and abs(right) > ROUNDING:
        status = NOT_ZERO
    elif wrong < right - ROUNDING:
        status = RISES
    if status == NOT_FINITE != report[0] or (status != FINE and report[0] == FINE):
        report[0], report[1], report[2] = status, right, wrong
    return abs(wrong - right)


@njit(nogil=True)
def _count_value(cost, weighting, relevant, f, g, P, N, report):
    """The weight of one kind of label under an order-free weighting."""
    marginal = _count_step(cost, relevant, f, g, P, N, report)
    if weighting == MARGINAL:
        return marginal
    size = shapley_scratch(f, g)
    i, j, weight = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    shapley, m = 0.0, np.int64(0)
    while m <= f + g:
        n, m = shapley_terms(f, g, m, i, j, weight)
        for t in range(n):
            shapley += weight[t] * _count_step(cost, relevant, i[t], j[t], P, N, report)
    return (shapley + marginal) / 2 if weighting == MEAN else shapley


@njit(nogil=True)
def count_weights(cost, weighting, y, y_hat, out):
    """`builtin_weights` for a compiled function ``cost(tp, fp, fn, tn)``.

    Returns the report (status, c right, c wrong) on the first violation of c(y, y) = 0 or of the
    monotonicity that was met, FINE if none, or on a value that is not finite. "ordered" and "marginal" take
    O(K + mistakes), "shapley" and "mean" O(K + mistakes^1.5); scratch O(mistakes).
    """
    report = np.zeros(3)
    tp, fp, fn, tn = row_counts(y, y_hat)
    P, N = tp + fn, fp + tn
    if weighting != ORDERED:
        _count_step(cost, P > 0, 0, 0, P, N, report)  # for the report: "marginal" would not look at c(y, y)
        hit = _count_value(cost, weighting, True, fn, fp, P, N, report) if tp > 0 else 0.0
        miss = _count_value(cost, weighting, True, fn - 1, fp, P, N, report) if fn > 0 else 0.0
        alarm = _count_value(cost, weighting, False, fn, fp - 1, P, N, report) if fp > 0 else 0.0
        reject = _count_value(cost, weighting, False, fn, fp, P, N, report) if tn > 0 else 0.0
        fill_four(y, y_hat, hit, miss, alarm, reject, out)
        return report
    i, j = fn, fp
    relevant = _count_step(cost, True, i, j, P, N, report) if i < P else 0.0
    other = _count_step(cost, False, i, j, P, N, report) if j < N else 0.0
    for k in range(y.shape[0]):
        if y[k] != y_hat[k]:
            if y[k]:
                i -= 1
            else:
                j -= 1
            relevant = _count_step(cost, True, i, j, P, N, report) if i < P else 0.0
            other = _count_step(cost, False, i, j, P, N, report) if j < N else 0.0
        out[k] = relevant if y[k] else other
    return report


@njit(nogil=True)
def count_losses(cost, tp, fp, fn, tn, out):
    """Write ``cost`` at each of the n counts into ``out`` (n,)."""
    for t in range(tp.shape[0]):
        out[t] = cost(tp[t], fp[t], fn[t], tn[t])
