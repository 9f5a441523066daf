"""Frequent directions (Ghashami, Liberty, Phillips and Woodruff, 2016): a sum of r r' in l rows, with a bound."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[Any]


class FrequentDirections:
    """S (at most l, K) with  0 <= sum r r' - S'S <= shed I,  whatever rows came, in whatever order and shards.

    Rows are stacked under S; where there are more than l directions, the squared length of the (l + 1)-th is taken
    off all of them and noted in ``shed``. Each time the trace falls by at least l + 1 times that, so

        shed <= (sum |r|^2 - |S|^2) / (l + 1) <= (what the best k directions miss of sum |r|^2) / (l + 1 - k).

    Two sketches become one by stacking, and their ``shed`` add up.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((500, 30)) * 0.8 ** np.arange(30)
    >>> sketch = FrequentDirections(10, 30)
    >>> sketch.add(rows[:300])
    >>> error = np.linalg.eigvalsh(rows[:300].T @ rows[:300] - sketch.S.T @ sketch.S)
    >>> bool(-1e-9 < error[0] and error[-1] < sketch.shed + 1e-9 and sketch.shed < sketch.lost / 11)
    True

    Notes
    -----
    O(l K) memory; O((l + t) l K) for t rows at once, of CSR rows O(l^2 K + l nnz).
    """

    def __init__(self, size: int, K: int) -> None:
        self.size, self.labels = size, K
        self.S: Array = np.zeros((0, K))
        self.shed = 0.0
        self.lost = 0.0  # sum |r|^2 - |S|^2

    @property
    def nbytes(self) -> int:
        """Of S."""
        return self.S.nbytes

    @property
    def rows_at_once(self) -> int:
        """Rows that are best added together: few calls cost 2 l^2 K flops each, many rows some 10 t^3."""
        return int(min(2048, max(256, self.size, (self.size**2 * self.labels / 5.0) ** (1.0 / 3.0))))

    def add(self, R: Any) -> None:
        """Take in the rows of R (t, K), dense or CSR."""
        n, k = R.shape[0], len(self.S)
        if not n:
            return
        G = np.empty((k + n, k + n))
        cross = R @ self.S.T
        G[:k, :k], G[k:, :k], G[:k, k:] = self.S @ self.S.T, cross, cross.T
        G[k:, k:] = (R @ R.T).toarray() if sparse.issparse(R) else R @ R.T
        squares, vectors = np.linalg.eigh(G)
        squares, vectors = np.maximum(squares[::-1], 0.0), vectors[:, ::-1]
        kept = int(np.count_nonzero(squares[: self.size] > squares[0] * len(G) * np.finfo(np.float64).eps))
        off = squares[self.size] if len(squares) > self.size else 0.0
        left = np.maximum(squares[:kept] - off, 0.0)
        turn = (vectors[:, :kept] * np.sqrt(left / squares[:kept])).T
        self.S = turn[:, :k] @ self.S + (R.T @ turn[:, k:].T).T
        self.shed += float(off)
        self.lost += float(squares.sum() - left.sum())

    def join(self, other: "FrequentDirections") -> None:
        """Take in another sketch."""
        self.add(other.S)
        self.shed += other.shed
        self.lost += other.lost
