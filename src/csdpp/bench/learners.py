"""What is measured in this package's own interpreter: its learners, the naive ones, and NumPy binary relevance.

Each is a class as `csdpp.bench.worker` wants it. Where M is None (the real sets), the grid of settings is over
shares of the labels, regularisation and weighting; where it is a number (the generated streams), over
regularisation or step.
"""

import time
from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import csdpp
from csdpp import CSDPP, OnlineBinaryRelevance
from csdpp.bench import naive

Array = NDArray[Any]

COSTS = ("f1", "accuracy", "hamming", "rank")
#: Shares of the labels, regularisation, weighting; the first two of the first point are what naive does too.
GRID = ((0.5, 1.0, "marginal"), (0.5, 10.0, "marginal"), (0.5, 100.0, "marginal"), (1.0, 10.0, "mean"))
LARGEST = 60  # code size: beyond, a share of hundreds of labels takes much time and changes little
STRENGTHS = (1.0, 0.1, 10.0, 100.0)
STEPS = (1.0, 0.3, 3.0, 10.0)
_CELLS = 1 << 22  # numbers in the rows that go to a learner in one call


def code_size(share: float, K: int) -> int:
    """M of a share of the labels."""
    return min(ceil(share * K), LARGEST)


def in_steps(step: Callable[[int, int], Array], n: int, batch: int, seconds: float) -> tuple[Array, float]:
    """Predictions of step(i, j) for rows i to j and the CPU seconds, until the rows or the seconds are spent."""
    answers, done = [], 0
    start = time.process_time()
    while True:
        last = min(done + batch, n)
        answers.append(step(done, last))
        done = last
        spent = time.process_time() - start
        if done == n or spent >= seconds:
            return np.vstack(answers), spent


class Ours:
    """A learner of this package: rows in large pieces, predicted and learned one by one by its `prequential`."""

    batch = 1

    @classmethod
    def made_with(cls) -> str:
        """The package and its version."""
        return f"csdpp {csdpp.__version__}"

    def __init__(self, X: Any, Y: Array, M: int | None) -> None:
        self.X, self.Y, self.M = X, Y, M
        self.n, self.K = Y.shape
        self.rows = max(1, _CELLS // max(self.K, X.shape[1]) // 64) * 64  # whole blocks: the cuts change nothing

    def make(self, **options: Any) -> Any:
        """A fresh learner."""
        return CSDPP(**options)

    @property
    def settings(self) -> list[dict[str, Any]]:
        """A grid for each cost: CS-DPP is told which one counts."""
        return [{"cost": cost, **point} for cost in COSTS for point in self.grid()]

    def grid(self) -> list[dict[str, Any]]:
        """Four settings."""
        if self.M is None:
            return [
                {"n_components": code_size(share, self.K), "regularization": strength, "weighting": weighting}
                for share, strength, weighting in GRID
            ]
        return [{"n_components": self.M, "regularization": strength} for strength in STRENGTHS]

    def run(self, setting: dict[str, Any], seconds: float) -> tuple[Array, float]:
        """See `csdpp.bench.worker`."""
        model = self.make(**setting)
        return in_steps(lambda i, j: model.prequential(self.X[i:j], self.Y[i:j]), self.n, self.rows, seconds)


class OursPBT(Ours):
    """CS-DPP with principal basis transform."""

    def make(self, **options: Any) -> Any:
        """A fresh learner."""
        return CSDPP(basis="pbt", encoder="label", **options)


class OursGradient(Ours):
    """The same with gradient descent."""

    def grid(self) -> list[dict[str, Any]]:
        """Four settings."""
        M = code_size(GRID[0][0], self.K) if self.M is None else self.M
        return [{"n_components": M, "step": step} for step in STEPS]

    def make(self, **options: Any) -> Any:
        """A fresh learner."""
        return CSDPP(basis="pbt", encoder="label", regressor="gradient", **options)


class OursRelevance(Ours):
    """O-BR."""

    @property
    def settings(self) -> list[dict[str, Any]]:
        """One grid: it knows no cost."""
        return [{"regularization": strength} for strength in STRENGTHS]

    def make(self, **options: Any) -> Any:
        """A fresh learner."""
        return OnlineBinaryRelevance(**options)


class Naive:
    """Row by row in plain NumPy."""

    batch = 1
    basis, gradient = "pbc", False

    @classmethod
    def made_with(cls) -> str:
        """The package and its version."""
        return f"numpy {np.__version__}"

    def __init__(self, X: Any, Y: Array, M: int | None) -> None:
        self.Y, self.M = Y, M
        self.n, self.K = Y.shape
        one = np.ones((self.n, 1))
        if sparse.issparse(X) and self.gradient:
            X = sparse.csr_array(sparse.hstack([X, one], format="csr"))
        else:
            X = np.hstack([X.toarray() if sparse.issparse(X) else X, one])
        self.d, self.rows = X.shape[1], list(naive.rows(X))

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Two costs; their ordered weights are one line each in NumPy."""
        return [{"cost": cost} for cost in ("f1", "hamming")]

    def make(self, setting: dict[str, Any]) -> naive.Learner:
        """A fresh learner."""
        regressor = naive.Gradient() if self.gradient else naive.Ridge(self.d)
        M = code_size(GRID[0][0], self.K) if self.M is None else self.M
        return naive.CSDPP(self.d, self.K, M, setting["cost"], self.basis, regressor)

    def run(self, setting: dict[str, Any], seconds: float) -> tuple[Array, float]:
        """See `csdpp.bench.worker`."""
        step = self.make(setting).step
        return in_steps(lambda i, j: step(self.rows[i], self.Y[i])[None], self.n, 1, seconds)


class NaiveGradient(Naive):
    """Naive CS-DPP with principal basis transform and gradient descent."""

    basis, gradient = "pbt", True


class NaiveRelevance(Naive):
    """Ridge binary relevance by Sherman and Morrison, as many have in a notebook."""

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Four regularisations."""
        return [{"regularization": strength} for strength in STRENGTHS]

    def make(self, setting: dict[str, Any]) -> naive.Learner:
        """A fresh learner."""
        return naive.BinaryRelevance(self.d, self.K, naive.Ridge(self.d, setting["regularization"]))


#: Names as tables show them.
LEARNERS = {
    "CS-DPP": Ours,
    "CS-DPP, PBT": OursPBT,
    "CS-DPP, PBT, gradient": OursGradient,
    "O-BR": OursRelevance,
    "naive CS-DPP": Naive,
    "naive CS-DPP, PBT, gradient": NaiveGradient,
    "NumPy ridge binary relevance": NaiveRelevance,
}
