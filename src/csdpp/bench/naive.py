"""The yardstick of speed: the learners one row at a time in plain NumPy, as somebody would write them who knows it.

Vectorised over labels, features and directions, in place where it can be; Sherman and Morrison with an outer
product; LAPACK for the small eigenproblem. What is predicted is what the package predicts, row by row
(tests/test_bench.py), so that a ratio of speeds compares like with like. Imports nothing of the package. To make
no product with a large matrix twice, prediction and learning in one function, was tried: 15 % faster with PBC at
d = 501, K = 983, no difference elsewhere.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def run(step: Callable[[Any, Flags], Flags], X: Any, Y: Flags) -> Flags:
    """What ``step`` predicts for each row before it learns it; X (n, d) as `rows` takes it, Y (n, K)."""
    predictions = np.empty(Y.shape, np.bool_)
    for i, (x, y) in enumerate(zip(rows(X), Y, strict=True)):
        predictions[i] = step(x, y)
    return predictions


def rows(X: Any) -> Any:
    """The rows of X: vectors, or of CSR the pairs (places, values) of what is not 0."""
    if not sparse.issparse(X):
        return X
    cuts = zip(X.indptr[:-1], X.indptr[1:], strict=True)
    return ((X.indices[a:b], X.data[a:b]) for a, b in cuts)


# ---- weights of a cost on counts: the paper's, in the order of the labels


def hamming_weights(y: Flags, y_hat: Flags) -> Floats:
    """1 / K."""
    return np.full(len(y), 1.0 / len(y))


def f1_weights(y: Flags, y_hat: Flags) -> Floats:
    """|c(k wrong) - c(k right)| with the labels before k right and those after k as predicted.

    c = (i + j) / (2 P - i + j) with i misses and j false alarms after k, of P relevant labels.
    """
    P = np.count_nonzero(y)
    missed, alarmed = y > y_hat, y < y_hat
    i = missed[::-1].cumsum()[::-1] - missed
    j = alarmed[::-1].cumsum()[::-1] - alarmed
    wrong_i, wrong_j = i + y, j + ~y
    right = (i + j) / np.maximum(2 * P - i + j, 1)
    wrong = (wrong_i + wrong_j) / np.maximum(2 * P - wrong_i + wrong_j, 1)
    return np.abs(wrong - right)


WEIGHTS = {"hamming": hamming_weights, "f1": f1_weights}

# ---- the default weights: the mean of Shapley's and the marginal ones, a value for each of four kinds of label


def f1_loss(i: Any, j: Any, P: int) -> Any:
    """C of i misses and j false alarms, of P relevant labels; 0/0 is 0."""
    return (i + j) / np.maximum(2 * P - i + j, 1)


def mean_f1_weight(relevant: bool, f: int, g: int, P: int) -> float:
    """The weight of a label while the others hold f misses and g false alarms, over all orders of them."""
    i, j = np.arange(f + 1)[:, None], np.arange(g + 1)
    price = np.abs(f1_loss(i + relevant, j + (not relevant), P) - f1_loss(i, j, P))
    log_chance = _LOG_FACTORIAL[f] - _LOG_FACTORIAL[i] - _LOG_FACTORIAL[f - i]
    log_chance = log_chance + (_LOG_FACTORIAL[g] - _LOG_FACTORIAL[j] - _LOG_FACTORIAL[g - j])
    log_chance -= _LOG_FACTORIAL[f + g] - _LOG_FACTORIAL[i + j] - _LOG_FACTORIAL[f + g - i - j]
    shapley = (np.exp(log_chance) * price).sum() / (f + g + 1)
    return float(shapley + price[f, g]) / 2


_LOG_FACTORIAL = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, 20_001)))))


def mean_f1_weights(y: Flags, y_hat: Flags) -> Floats:
    """Weights (K,) from the counts of a row."""
    P, misses, alarms = (int(np.count_nonzero(flags)) for flags in (y, y > y_hat, y < y_hat))
    hit = mean_f1_weight(True, misses, alarms, P) if misses < P else 0.0
    miss = mean_f1_weight(True, misses - 1, alarms, P) if misses else 0.0
    alarm = mean_f1_weight(False, misses, alarms - 1, P) if alarms else 0.0
    rejection = mean_f1_weight(False, misses, alarms, P)
    return np.where(y, np.where(y_hat, hit, miss), np.where(y_hat, alarm, rejection))


#: By weighting and cost. All Hamming weights are 1 / K.
WEIGHTINGS = {"ordered": WEIGHTS, "mean": {"hamming": hamming_weights, "f1": mean_f1_weights}}

# ---- regressors: W (d, p), and the gain by which a row's error is subtracted


class Ridge:
    """Sherman and Morrison on A^-1 = S."""

    def __init__(self, d: int, regularization: float = 1.0) -> None:
        self.S = np.eye(d) / regularization

    def answer(self, x: Floats, W: Floats) -> Floats:
        """W' x."""
        product: Floats = x @ W
        return product

    def gain(self, x: Floats) -> Floats:
        """A^-1 x, after A has learned x."""
        Sx = self.S @ x
        g: Floats = Sx / (1.0 + x @ Sx)
        self.S -= np.outer(g, Sx)
        return g

    def subtract(self, W: Floats, x: Floats, g: Floats, e: Floats) -> None:
        """W <- W - g e'."""
        W -= np.outer(g, e)


class Gradient:
    """A step of min(1, step / sqrt(t)) / max(|x|^2, mean of |x|^2 so far); vectors, or pairs (places, values)."""

    def __init__(self, step: float = 1.0) -> None:
        self.step, self.t, self.power = step, 0, 0.0

    def answer(self, x: Any, W: Floats) -> Floats:
        """W' x."""
        product: Floats = x[1] @ W[x[0]] if isinstance(x, tuple) else x @ W
        return product

    def gain(self, x: Any) -> Floats:
        """The step times x."""
        values: Floats = x[1] if isinstance(x, tuple) else x
        square = float(values @ values)
        self.t += 1
        self.power += square
        return values * (min(1.0, self.step / np.sqrt(self.t)) / max(square, self.power / self.t, 1e-300))

    def subtract(self, W: Floats, x: Any, g: Floats, e: Floats) -> None:
        """W <- W - g e'."""
        if isinstance(x, tuple):
            W[x[0]] -= np.outer(g, e)
        else:
            W -= np.outer(g, e)


# ---- learners: `predict` a row's labels (K,), and `learn` them


class Learner:
    """What `run` needs."""

    def predict(self, x: Any) -> Flags:
        """Labels of a row."""
        raise NotImplementedError

    def learn(self, x: Any, y: Flags, y_hat: Flags) -> None:
        """Learn a row that was predicted just before."""
        raise NotImplementedError

    def step(self, x: Any, y: Flags) -> Flags:
        """Predict, then learn."""
        y_hat = self.predict(x)
        self.learn(x, y, y_hat)
        return y_hat


class BinaryRelevance(Learner):
    """O-BR. O(d^2 + dK) a row with `Ridge`."""

    def __init__(self, d: int, K: int, regressor: Ridge | Gradient) -> None:
        self.H, self.regressor, self.root = np.zeros((d, K)), regressor, 1.0 / np.sqrt(K)

    def predict(self, x: Any) -> Flags:
        """Positive where H' x >= 0."""
        y_hat: Flags = self.regressor.answer(x, self.H) >= 0.0
        return y_hat

    def learn(self, x: Any, y: Flags, y_hat: Flags) -> None:
        """H <- H - g (H' x - v)'."""
        v = np.where(y, self.root, -self.root)
        self.regressor.subtract(self.H, x, self.regressor.gain(x), self.regressor.answer(x, self.H) - v)


class CSDPP(Learner):
    """CS-DPP with the mean as reference and the expected decoder; PBC with the feature encoder, PBT with labels."""

    def __init__(
        self, d: int, K: int, M: int, cost: str, basis: str, regressor: Ridge | Gradient, weighting: str = "ordered"
    ) -> None:
        self.M, self.K, self.rate, self.regressor = M, K, 10.0, regressor
        self.weights, self.pbc = WEIGHTINGS[weighting][cost], basis == "pbc"
        self.W = np.zeros((d, K if self.pbc else 0))  # the paper's H with PBC
        self.o, self.t = np.zeros(K), 0
        self.Q, self.sigma, self.keep, self.full = np.zeros((0, K)), np.zeros(0), np.zeros(0), False

    def predict(self, x: Any) -> Flags:
        """Positive where o + Q' (keep * z) >= 0."""
        z = self.regressor.answer(x, self.W)
        return self.decode(self.Q @ (z - self.o) if self.pbc else z)

    def learn(self, x: Any, y: Flags, y_hat: Flags) -> None:
        """One step of section 2 of the design: v, o, the directions, the regressor."""
        v = self.target(y, y_hat)
        g = self.regressor.gain(x)
        if self.pbc:
            self.regressor.subtract(self.W, x, g, self.regressor.answer(x, self.W) - v)
            self.follow(self.regressor.answer(x, self.W) - self.o)
        else:
            self.W = self.W @ self.follow(v - self.o)
            self.regressor.subtract(self.W, x, g, self.regressor.answer(x, self.W) - self.Q @ (v - self.o))

    def decode(self, code: Floats) -> Flags:
        """The labels of a code."""
        y_hat: Flags = self.o + (self.keep * code) @ self.Q >= 0.0
        return y_hat

    def target(self, y: Flags, y_hat: Flags) -> Floats:
        """The weighted label vector v, which also moves o."""
        root = np.sqrt(self.weights(y, y_hat))
        v = np.where(y, root, -root)
        self.t += 1
        self.o += (v - self.o) / self.t
        return v

    def follow(self, c: Floats) -> Floats:
        """Capped MSG on (Q, sigma); returns what turns codes on the old Q into codes on the new one."""
        r = self.Q @ c
        rest = c - r @ self.Q
        rest -= (self.Q @ rest) @ self.Q
        Q, sigma, held = self.Q, self.sigma, len(self.Q)
        length = np.linalg.norm(rest)
        if length > 1e-10 * np.linalg.norm(c) and held < self.K:
            Q, sigma, r = np.vstack([Q, rest / length]), np.append(sigma, 0.0), np.append(r, length)
        if not len(Q):
            return np.zeros((0, 0))
        eta = self.rate / np.sqrt(self.t) * self.M / self.K
        lam, V = np.linalg.eigh(np.diag(sigma) + eta * np.outer(r, r))
        V = V[:, : -self.M - 2 : -1]
        self.Q = V.T @ Q
        self.project(np.maximum(lam[: -self.M - 2 : -1], 0.0))
        return V[:held]

    def project(self, sigma: Floats) -> None:
        """Capped at 1; once the trace would pass M it stays M: all but the largest shifted down. Then `keep`."""
        M, held = self.M, len(sigma)
        capped = np.minimum(sigma, 1.0)
        self.full = self.full or capped.sum() >= M
        if not self.full:
            self.sigma, self.keep = capped, (np.arange(held) < M).astype(np.float64)
            return
        if held <= M:
            self.sigma = np.ones(held)
        else:
            self.sigma = (np.arange(held) < M).astype(np.float64)  # unless a smaller shift keeps the weakest
            for ones in range(held):
                shifted = sigma[ones:] - (sigma[ones:].sum() - (M - ones)) / (held - ones)
                if shifted[0] <= 1.0:
                    if shifted[-1] >= 0.0:
                        self.sigma[:ones], self.sigma[ones:] = 1.0, shifted
                    break
        self.keep = self.sigma
