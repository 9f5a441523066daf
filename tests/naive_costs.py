"""The costs and their label weights as slowly and plainly as the paper states them (sections 2, 4 and 5.1).

Imports nothing from the package. A cost is a function c(y, y_hat) of two sequences of 0/1. Labels are
written with 0/1 in place of the paper's -1/+1.
"""

from fractions import Fraction
from itertools import permutations
from math import comb


def hamming(y, y_hat):
    return sum(a != b for a, b in zip(y, y_hat, strict=True)) / len(y)


def f1(y, y_hat):
    both = sum(a and b for a, b in zip(y, y_hat, strict=True))
    either = sum(y) + sum(y_hat)
    return 1 - 2 * both / either if either else 0.0


def accuracy(y, y_hat):
    both = sum(a and b for a, b in zip(y, y_hat, strict=True))
    either = sum(a or b for a, b in zip(y, y_hat, strict=True))
    return 1 - both / either if either else 0.0


def _average_over_pairs(y, y_hat, price):
    """Average of price(y_hat[i], y_hat[j]) over the pairs with y[i] > y[j]; None without such a pair."""
    prices = [price(y_hat[i], y_hat[j]) for i in range(len(y)) for j in range(len(y)) if y[i] > y[j]]
    return sum(prices) / len(prices) if prices else None


def rank(y, y_hat):
    return _average_over_pairs(y, y_hat, lambda a, b: (a < b) + 0.5 * (a == b)) or 0.0


def rank_published(y, y_hat):
    """The cost of the paper's tables: a tie of two predicted labels is free, no relevant label costs 1."""
    if not any(y):
        return 1.0
    return _average_over_pairs(y, y_hat, lambda a, b: (a < b) + 0.5 * (a == b == 0)) or 0.0


COSTS = {"hamming": hamming, "f1": f1, "accuracy": accuracy, "rank": rank, "rank_published": rank_published}


def counts(y, y_hat):
    """(tp, fp, fn, tn)."""
    pairs = [(int(a), int(b)) for a, b in zip(y, y_hat, strict=True)]
    return pairs.count((1, 1)), pairs.count((0, 1)), pairs.count((1, 0)), pairs.count((0, 0))


def of_counts(name, tp, fp, fn, tn):
    """The cost ``name`` of any row with these counts."""
    return COSTS[name]([1] * tp + [0] * fp + [1] * fn + [0] * tn, [1] * tp + [1] * fp + [0] * fn + [0] * tn)


def ordered(c, y, y_hat, order=None):
    """delta^(k) = |c(y, y_pred^(k)) - c(y, y_real^(k))|, from the 2K candidates; labels in this order."""
    delta = [0.0] * len(y)
    before = []
    for k in order if order is not None else range(len(y)):
        real = list(y_hat)
        for i in before:
            real[i] = y[i]
        pred = list(real)
        real[k] = y[k]
        pred[k] = 1 - y[k]
        delta[k] = abs(c(y, pred) - c(y, real))
        before.append(k)
    return delta


def shapley_all_orders(c, y, y_hat):
    """The ordered weights, averaged over all K! orders of the labels."""
    sums = [0.0] * len(y)
    known = {}

    def remembered(y, candidate):
        key = tuple(candidate)
        if key not in known:
            known[key] = c(y, candidate)
        return known[key]

    orders = list(permutations(range(len(y))))
    for order in orders:
        sums = [s + d for s, d in zip(sums, ordered(remembered, y, y_hat, order), strict=True)]
    return [s / len(orders) for s in sums]


def shapley_four(c, tp, fp, fn, tn):
    """The double sum of the Shapley weight for a cost c(tp, fp, fn, tn), with exact binomials.

    Returns the weight of a hit, a miss, a false alarm and a correct rejection; None where there is no such
    label.
    """

    def average(f, g, wrong, right):
        # i misses and j false alarms of the other labels are put right before label k
        total = Fraction(0)
        for i in range(f + 1):
            for j in range(g + 1):
                weight = Fraction(comb(f, i) * comb(g, j), comb(f + g, i + j) * (f + g + 1))
                move = (i, -j, -i, j)
                worse = c(*(a + b for a, b in zip(wrong, move, strict=True)))
                better = c(*(a + b for a, b in zip(right, move, strict=True)))
                total += weight * Fraction(abs(worse - better))
        return float(total)

    now = (tp, fp, fn, tn)
    return (
        average(fn, fp, (tp - 1, fp, fn + 1, tn), now) if tp else None,
        average(fn - 1, fp, now, (tp + 1, fp, fn - 1, tn)) if fn else None,
        average(fn, fp - 1, now, (tp, fp - 1, fn, tn + 1)) if fp else None,
        average(fn, fp, (tp, fp + 1, fn, tn - 1), now) if tn else None,
    )


def marginal(c, y, y_hat):
    """All other labels as predicted."""
    delta = []
    for k in range(len(y)):
        right, wrong = list(y_hat), list(y_hat)
        right[k], wrong[k] = y[k], 1 - y[k]
        delta.append(abs(c(y, wrong) - c(y, right)))
    return delta


def mean(c, y, y_hat):
    """The average of the marginal and the Shapley weights."""
    return [(a + b) / 2 for a, b in zip(marginal(c, y, y_hat), shapley_all_orders(c, y, y_hat), strict=True)]


WEIGHTINGS = {"ordered": ordered, "shapley": shapley_all_orders, "marginal": marginal, "mean": mean}


# ------------------------------------------------------------------- measures of a stream: costs with a memory


def stream_f1(tp, fp, fn):
    """F1 on top of the prior: a tenth of a hit, half a miss and half a false alarm."""
    return 2 * (tp + 0.1) / (2 * (tp + 0.1) + (fp + 0.5) + (fn + 0.5))


def stream_counts(rows, pool):
    """(tp, fp, fn, rows) over the labels of ``pool``; rows are (y, y_hat, how much of it is remembered)."""
    tp = fp = fn = total = 0.0
    for y, y_hat, share in rows:
        for k in pool:
            if y[k] not in (0, 1):
                continue  # nobody told
            tp += share * (y[k] and y_hat[k])
            fp += share * (y_hat[k] and not y[k])
            fn += share * (y[k] and not y_hat[k])
            total += share
    return tp, fp, fn, total / len(pool)


def stream_weights(measure, past, y, y_hat, forgetting=1.0):
    """Rows so far times what the measure over all rows loses if label k of this one comes out wrong.

    ``past`` holds the pairs (y, y_hat) of the rows before; the last one counts whole, the one before it
    ``forgetting``, and so on.
    """
    K = len(y)
    before = [(*pair, forgetting**age) for age, pair in enumerate(reversed(past))]
    delta = []
    for k in range(K):
        if y[k] not in (0, 1):
            delta.append(0.0)
            continue
        pool = range(K) if measure == "micro_f1" else [k]
        f1 = {}
        for outcome in ("right", "wrong"):
            now = list(y_hat)
            now[k] = y[k] if outcome == "right" else 1 - y[k]
            tp, fp, fn, rows = stream_counts([*before, (y, now, 1.0)], pool)
            f1[outcome] = stream_f1(tp, fp, fn)
        delta.append(rows * (f1["right"] - f1["wrong"]) / (1 if measure == "micro_f1" else K))
    return delta


def stream_loss(measure, Y, Y_hat):
    """1 - F1 of all rows together, without a prior; a label that neither comes nor is predicted has F1 = 0."""
    K = len(Y[0])
    pools = [range(K)] if measure == "micro_f1" else [[k] for k in range(K)]
    values = []
    for pool in pools:
        tp, fp, fn, _ = stream_counts([(y, y_hat, 1) for y, y_hat in zip(Y, Y_hat, strict=True)], pool)
        values.append(2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0.0)
    return 1 - sum(values) / len(values)
