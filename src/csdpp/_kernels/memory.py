"""The label weights of micro- and macro-F1, which are measures of a whole stream: costs with a memory.

The memory (4, J) holds counts of the rows so far: one column for all labels together (micro), one for each label
(macro), none for a cost without a memory. Under forgetting they fade, so they are floats.
"""

from numba import njit

from csdpp._kernels.vectors import INNER, KERNEL

TP, FP, FN, TN = range(4)

# What stands in for the rows that have not been: without it, the first rows would decide alone, and a label that
# never came would have no F1. One mistake, one tenth of a hit: an F1 of 1/6. Little depends on it where labels are
# frequent; with more hits, labels that hardly ever come are thought better of than they deserve and draw weight.
HIT, MISTAKE = 0.1, 0.5


@njit(**INNER)
def _f1(tp, fp, fn):
    return 2.0 * tp / (2.0 * tp + fp + fn)


@njit(**KERNEL)
def memory_weights(memory, y, y_hat, known, out):
    """Write the weights (K,) of a row: what the measure loses if the label comes out wrong, times the rows so far.

    ``known`` (K,) says which labels are told, and the others weigh nothing; (0,): all of them.

    delta = t (F1 with the label right - F1 with it wrong) [/ K for macro], t and F1 with this row in, all other
    labels as predicted. Without t the weights would fade as the memory grows. O(K).
    """
    K, pooled, partial = y.shape[0], memory.shape[1] == 1, known.shape[0] > 0
    tp, fp, fn = HIT, MISTAKE, MISTAKE
    rows = 1.0
    if pooled:
        tp, fp, fn = tp + memory[TP, 0], fp + memory[FP, 0], fn + memory[FN, 0]
        told = K
        for k in range(K):
            if partial and not known[k]:
                told -= 1
                continue
            if y[k] and y_hat[k]:
                tp += 1.0
            elif y[k]:
                fn += 1.0
            elif y_hat[k]:
                fp += 1.0
        rows = told / K + (memory[TP, 0] + memory[FP, 0] + memory[FN, 0] + memory[TN, 0]) / K
    for k in range(K):
        if partial and not known[k]:
            out[k] = 0.0
            continue
        if not pooled:
            tp, fp, fn = HIT + memory[TP, k], MISTAKE + memory[FP, k], MISTAKE + memory[FN, k]
            rows = 1.0 + memory[TP, k] + memory[FP, k] + memory[FN, k] + memory[TN, k]
        in_counts = 1.0 if pooled else 0.0  # whether this label, as predicted, is among the counts
        if y[k]:
            hits = tp - in_counts if y_hat[k] else tp
            misses = fn if y_hat[k] else fn - in_counts
            loss = _f1(hits + 1.0, fp, misses) - _f1(hits, fp, misses + 1.0)
        else:
            alarms = fp - in_counts if y_hat[k] else fp
            loss = _f1(tp, alarms, fn) - _f1(tp, alarms + 1.0, fn)
        out[k] = rows * loss if pooled else rows * loss / K


@njit(**KERNEL)
def remember_inplace(memory, y, y_hat, known, forgetting):
    """Fade ``memory`` by ``forgetting`` and count in what is known of a row. O(K)."""
    partial, J = known.shape[0] > 0, memory.shape[1]
    if forgetting != 1.0:
        for j in range(J):
            for kind in range(4):
                memory[kind, j] *= forgetting
    for k in range(y.shape[0]):
        if partial and not known[k]:
            continue
        j = k if J > 1 else 0
        if y[k]:
            memory[TP if y_hat[k] else FN, j] += 1.0
        else:
            memory[FP if y_hat[k] else TN, j] += 1.0
