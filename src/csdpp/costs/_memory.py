"""Micro- and macro-F1: costs of a whole stream, which need a memory of the rows before (the paper's future work)."""

from typing import Any

import numpy as np

from csdpp._kernels import memory as kernels
from csdpp._kernels.weights import WITH_MEMORY
from csdpp.costs._base import ALL, Bools, Cost, Floats, _check_labels, _dense_blocks, check_mask, resolve_weighting


class StreamCost(Cost):
    """A cost of many rows together. It holds no rows itself: the memory belongs to who learns or measures.

    The weight of a label is what the measure over all rows so far would lose if this label came out wrong, times
    the number of rows; the other labels of the row are as predicted. All weightings are this one: they differ in
    the other mistakes of the same row, which weigh little against all rows before (and nothing in macro-F1).
    Lemma 2 says nothing about such a cost.

    In a learner the memory fades by its ``forgetting``.
    """

    _kind = WITH_MEMORY
    _pooled: bool

    def loss(self, Y: Any, Y_hat: Any, mask: Any = None) -> Any:
        """The cost of all rows together, a float, for two indicator matrices (n, K) or rows (K,).

        0/1 or bool; dense, CSR or a data frame. ``mask`` says which labels of Y are known: the others do not count.
        O(nK).
        """
        Y, Y_hat, _ = _check_labels(self.name, Y, Y_hat)
        known = check_mask(self.name, mask, Y.shape)
        counts = np.zeros((3, Y.shape[1]), np.int64)
        for rows, y, y_hat in _dense_blocks(self.name, Y, Y_hat):
            counts += self._counts(y, y_hat, None if known is None else known[rows]).sum(axis=1)
        return float(self._of_counts(counts))

    __call__ = loss

    def weights(self, Y: Any, Y_hat: Any, weighting: str = "ordered", mask: Any = None) -> Floats:
        """The label weights of the rows of a stream, not square-rooted: (n, K), or (K,) for its first row.

        The memory is empty before the first row, and each row is remembered for the next. O(nK).
        """
        resolve_weighting(weighting)
        Y, Y_hat, single = _check_labels(self.name, Y, Y_hat)
        known = check_mask(self.name, mask, Y.shape)
        out, memory = np.empty(Y.shape), self._start(Y.shape[1])
        for rows, y, y_hat in _dense_blocks(self.name, Y, Y_hat):
            for t, row in enumerate(out[rows]):
                told = ALL if known is None else known[rows.start + t]
                kernels.memory_weights(memory, y[t], y_hat[t], told, row)
                kernels.remember_inplace(memory, y[t], y_hat[t], told, 1.0)
        return out[0] if single else out

    def _start(self, K: int) -> Floats:
        return np.zeros((4, 1 if self._pooled else K))

    def _more_labels(self, memory: Floats, count: int, rows: float) -> Floats:
        silent = np.zeros((4, count))
        silent[kernels.TN] = rows
        return memory + silent.sum(axis=1, keepdims=True) if self._pooled else np.hstack([memory, silent])

    def _fewer_labels(self, memory: Floats, places: Any, K: int) -> Floats:
        """Pooled counts cannot be told apart: they are made fewer, and stand to each other as before."""
        return memory * (1.0 - len(places) / K) if self._pooled else np.delete(memory, places, axis=1)

    def _shares(self, before: Any, done: int, Y: Bools, Y_hat: Bools, known: Bools | None = None) -> Floats:
        """What each of n rows adds to t times the loss of t rows, so that their mean is the loss: (n,).

        ``before`` (3, K) counts hits, predicted and relevant labels of the ``done`` rows before. A row of which
        nothing is ``known`` is no row.
        """
        counts = self._counts(Y, Y_hat, known).cumsum(axis=1)
        counts += before[:, None]
        told = np.ones(len(Y), np.int64) if known is None else known.any(axis=1).astype(np.int64)
        t = done + np.concatenate(([0], np.cumsum(told)))
        first = self._of_counts(before) if done else 0.0
        return np.diff(t * np.concatenate(([first], self._of_counts(counts))))

    @staticmethod
    def _counts(Y: Bools, Y_hat: Bools, known: Bools | None) -> Any:
        """Hits, predicted and relevant labels of each row (3, n, K), of what is known."""
        if known is not None:
            Y, Y_hat = Y & known, Y_hat & known
        return np.stack([Y & Y_hat, Y_hat, Y]).astype(np.int64)

    def _of_counts(self, counts: Any) -> Any:
        """One minus F1 for hits, predicted and relevant labels (3, ..., K)."""
        if self._pooled:
            counts = counts.sum(axis=-1, keepdims=True)
        hits, predicted, relevant = counts
        mentioned = predicted + relevant
        f1 = np.divide(2 * hits, mentioned, out=np.zeros(hits.shape), where=mentioned > 0)
        return 1.0 - f1.mean(axis=-1)


class MicroF1(StreamCost):
    """One minus the F1 of all labels of all rows pooled: scikit-learn's ``average="micro"``.

    >>> MicroF1().loss([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 1]])
    0.333
    >>> MicroF1().weights([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 1]])
    array([[0.46, 0.28, 0.1 ],
           [0.14, 0.19, 0.46]])
    """

    name = "micro_f1"
    _pooled = True


class MacroF1(StreamCost):
    """One minus the mean of the labels' F1: scikit-learn's ``average="macro"``, with ``zero_division=0``.

    A label that is rare weighs as much as one that is frequent, so each of its rows weighs more.

    >>> MacroF1().loss([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 1, 1]])
    0.333
    """

    name = "macro_f1"
    _pooled = False
    _shared = True
