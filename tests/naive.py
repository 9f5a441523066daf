"""Every algorithm of the package as slowly and plainly as the paper states it, one row at a time.

Imports nothing from the package. Letters are the paper's; y is a 0/1 sequence, inside {-1, +1}. What the paper
leaves open follows docs/maths.md: the start, the rule for `keep`, whose signs the directions have.
"""

from functools import cache
from math import sqrt

import numpy as np

import naive_costs

# ---------------------------------------------------------------------------------------------- weights


@cache
def shapley_of_counts(cost, counts):
    return naive_costs.shapley_four(lambda *c: naive_costs.of_counts(cost, *c), *counts)


def label_weights(cost, weighting, y, y_hat):
    """delta (K,); Shapley weights by the double sum over counts, which test_weights.py holds to all orders."""
    c = naive_costs.COSTS[cost]
    if weighting == "ordered":
        return np.array(naive_costs.ordered(c, y, y_hat))
    if weighting == "marginal":
        return np.array(naive_costs.marginal(c, y, y_hat))
    hit, miss, alarm, rejection = shapley_of_counts(cost, naive_costs.counts(y, y_hat))
    four = {(1, 1): hit, (1, 0): miss, (0, 1): alarm, (0, 0): rejection}
    shapley = np.array([four[int(a), int(b)] for a, b in zip(y, y_hat, strict=True)])
    if weighting == "shapley":
        return shapley
    return (shapley + np.array(naive_costs.marginal(c, y, y_hat))) / 2


# ------------------------------------------------------------------------------------------- directions


def project_capped(sigma, M, full):
    """The nearest point of {0 <= s <= 1, sum(s) = M} (before `full`: sum(s) <= M), and whether the sum is M now.

    Tries every way in which some entries can be one, some zero and the rest shifted, and takes the nearest.
    """
    capped = np.minimum(sigma, 1.0)
    if not full and capped.sum() < M:
        return capped, False
    n = len(sigma)
    if n <= M:
        return np.ones(n), True
    candidates = []
    for ones in range(n + 1):
        for zeros in range(n + 1 - ones):
            middle = sigma[ones : n - zeros]
            if len(middle) == 0:
                if ones != M:
                    continue
                point = np.concatenate([np.ones(ones), np.zeros(zeros)])
            else:
                shifted = middle - (middle.sum() - (M - ones)) / len(middle)
                point = np.concatenate([np.ones(ones), shifted, np.zeros(zeros)])
            if point.min() >= -1e-15 and point.max() <= 1 + 1e-15:
                candidates.append((np.sum((point - sigma) ** 2), tuple(point)))
    return np.array(min(candidates)[1]), True


def eigen_of_update(sigma, r, eta):
    """Eigenpairs of diag(sigma) + eta r r', falling; sigmas that are equal up to rounding keep their order.

    Within equal sigmas only the direction along r moves, which an eigen-solver would not promise: of two, the one
    with the larger part of r takes in the other's. It matters to the learner that does not follow the basis, and
    to no other.
    """
    n = len(sigma)
    sigma, r = sigma.copy(), r.copy()
    rounding = 8 * np.finfo(float).eps * max(sigma.max(), eta * (r @ r))
    length = np.linalg.norm(r)
    G = np.eye(n)
    free = []
    for i in range(n):
        if eta * length * abs(r[i]) <= rounding:
            continue  # this direction stays as it is
        if free:
            p = free[-1]
            large, small = (i, p) if abs(r[i]) >= abs(r[p]) else (p, i)
            both = np.hypot(r[p], r[i])
            c, s = abs(r[large]) / both, np.sign(r[large]) * r[small] / both
            if abs((sigma[p] - sigma[i]) * c * s) <= rounding:
                turn = np.array([[c, s], [-s, c]])  # of (large, small)
                G[:, [large, small]] = G[:, [large, small]] @ turn.T
                sigma[[large, small]] = np.diag(turn @ np.diag(sigma[[large, small]]) @ turn.T)
                r[large], r[small] = np.sign(r[large]) * both, 0.0
                free.pop()
                free.append(large)
                continue
        free.append(i)
    values, vectors = sigma.copy(), G.copy()
    w, V = np.linalg.eigh(np.diag(sigma[free]) + eta * np.outer(r[free], r[free]))
    values[free] = w[::-1]
    vectors[:, free] = G[:, free] @ V[:, ::-1]
    order = []
    for i in range(n):
        place = i
        while place > 0 and values[order[place - 1]] < values[i] - 10 * rounding:
            place -= 1
        order.insert(place, i)
    return np.maximum.accumulate(values[order][::-1])[::-1], vectors[:, order]


def turn_signs(V, uniform):
    """Each column's largest entry (the first of several alike) positive, then negative where uniform < 1/2."""
    V = V.copy()
    for j in range(V.shape[1]):
        size = np.abs(V[:, j])
        largest = 0
        for i in range(len(size)):
            if size[i] > (1 + 1e-6) * size[largest]:
                largest = i
        if V[largest, j] < 0:
            V[:, j] = -V[:, j]
        if uniform[j] < 0.5:
            V[:, j] = -V[:, j]
    return V


class CappedMSG:
    """Arora et al.'s capped MSG on (Q, sigma)."""

    def __init__(self, M, K):
        self.M, self.K = M, K
        self.Q, self.sigma, self.full = np.zeros((0, K)), np.zeros(0), False
        self.keep = np.zeros(0)
        self.closest = 1.0  # two eigenvalues of an update: their vectors are exact to eps / closest

    def update(self, c, eta, size=None, flips=()):
        """``size``: how large the numbers are whose difference c is; far below it there is rounding only."""
        Q, sigma = self.Q, self.sigma
        noise = np.finfo(float).eps ** (2 / 3) * (np.linalg.norm(c) if size is None else size)
        if np.linalg.norm(c) <= noise or eta == 0:
            return
        r = Q @ c
        rest = c - Q.T @ r
        rest = rest - Q.T @ (Q @ rest)
        if len(Q) < self.K and np.linalg.norm(rest) > noise:
            Q = np.vstack([Q, rest / np.linalg.norm(rest)])
            r = np.append(r, np.linalg.norm(rest))
            sigma = np.append(sigma, 0.0)
        lam, V = eigen_of_update(sigma, r, eta)
        gaps = -np.diff(lam)
        self.closest = min(self.closest, *gaps[gaps > 1e-14 * lam[0]], 1.0)
        lam, V = lam[: self.M + 1], V[:, : self.M + 1]
        if len(flips):
            V = turn_signs(V, flips)
        self.Q = V.T @ Q
        self.sigma, self.full = project_capped(lam, self.M, self.full)

    def choose_keep(self, sampled, u=0.0):
        held = len(self.Q)
        self.keep = np.ones(held)
        if held <= self.M:
            return
        if not self.full:
            self.keep[-1] = 0.0
        elif not sampled:
            self.keep = self.sigma.copy()
        else:
            chances = np.cumsum(1.0 - self.sigma)
            self.keep[np.searchsorted(chances, u * chances[-1], side="right")] = 0.0

    @property
    def U(self):
        return self.Q.T @ np.diag(self.sigma) @ self.Q


class FullMSG:
    """Plain MSG: the whole K x K matrix U, no limit on its rank."""

    def __init__(self, M, K):
        self.M, self.U, self.full = M, np.zeros((K, K)), False

    def update(self, c, eta):
        w, V = np.linalg.eigh(self.U + eta * np.outer(c, c))
        w, V = np.maximum(w[::-1], 0.0), V[:, ::-1]
        w, self.full = project_capped(w, self.M, self.full)
        self.U = V @ np.diag(w) @ V.T


# ------------------------------------------------------------------------------------------- regressors


class Ridge:
    """A^-1 by Sherman and Morrison; the gain of x after A has learned it."""

    def __init__(self, d, regularization, forgetting=1.0):
        self.S = np.eye(d) / regularization
        self.forgetting = forgetting

    def gain(self, x):
        Sx = self.S @ x
        g = Sx / (self.forgetting + x @ Sx)
        self.S = (self.S - np.outer(g, Sx)) / self.forgetting
        return g


class Gradient:
    """Step min(1, step / sqrt(t)) / max(|x|^2, mean |x|^2), t and mean under forgetting."""

    def __init__(self, step, forgetting=1.0):
        self.step, self.forgetting, self.t, self.power = step, forgetting, 0.0, 0.0

    def gain(self, x):
        self.t = self.forgetting * self.t + 1
        self.power = self.forgetting * self.power + x @ x
        if x @ x == 0:
            return np.zeros(len(x))
        return x * min(1.0, self.step / sqrt(self.t)) / max(x @ x, self.power / self.t)


# --------------------------------------------------------------------------------------------- learners


class CSDPP:
    """Algorithm 1 with every choice of the package; DESIGN by docs/maths.md."""

    def __init__(
        self,
        d,
        K,
        M,
        cost,
        basis="pbc",
        encoder="feature",
        reference="mean",
        decode="expected",
        weighting="mean",
        regressor="ridge",
        regularization=1.0,
        rate=10.0,
        step=1.0,
        forgetting=1.0,
        seed=0,
    ):
        self.M, self.K, self.cost, self.basis, self.encoder = M, K, cost, basis, encoder
        self.reference, self.decode, self.weighting = reference, decode, weighting
        self.rate, self.forgetting = rate, forgetting
        self.msg = CappedMSG(M, K)
        self.regressor = Ridge(d, regularization, forgetting) if regressor == "ridge" else Gradient(step, forgetting)
        self.H = np.zeros((d, K))
        self.W = np.zeros((d, 0))
        self.o = np.zeros(K)
        self.t = 0.0
        self.rows = 0
        self.rng = np.random.RandomState(seed)
        self.past = []  # of a cost with a memory
        self.told = np.zeros(K)  # rows that told of each label

    def label_weights(self, y, y_hat, known):
        if self.cost not in ("micro_f1", "macro_f1"):
            delta = np.zeros(self.K)
            if known.any():
                told = y[known].astype(int), y_hat[known]
                delta[known] = label_weights(self.cost, self.weighting, *told)
            return delta
        delta = naive_costs.stream_weights(self.cost, self.past, y, y_hat, self.forgetting)
        self.past.append((y, y_hat))
        return np.array(delta)

    def scores(self, x):
        Q = self.msg.Q
        z = Q @ (self.H.T @ x - self.o) if self.basis == "pbc" else self.W.T @ x
        return self.o + Q.T @ (self.msg.keep * z)

    def step(self, x, y):
        """Predict y_hat for x, then learn (x, y); where y is NaN nobody knows."""
        s = self.scores(x)
        y_hat = (s >= 0).astype(int)
        y = np.asarray(y, float)
        known = ~np.isnan(y)
        v = np.sqrt(self.label_weights(y, y_hat, known)) * np.where(y == 1, 1.0, -1.0)
        v[~known] = self.o[~known]
        self.t = self.forgetting * self.t + 1
        self.told = self.forgetting * self.told + known
        if self.reference == "mean":
            self.o = self.o + np.where(known, (v - self.o) / np.maximum(self.told, 1e-300), 0.0)
        u, flips = 0.0, ()
        if self.decode == "sample" or self.basis == "none":
            draws = self.rng.random_sample(1 + (min(self.M + 1, self.K) if self.basis == "none" else 0))
            u, flips = draws[0], draws[1:]
        self.rows += 1
        rate = self.rate(self.rows) if callable(self.rate) else self.rate / sqrt(self.t)
        eta = rate * self.M / self.K
        size = sqrt(v @ v + self.o @ self.o)
        g = self.regressor.gain(x)
        if self.basis == "pbc":
            z = self.H.T @ x
            self.H = self.H - np.outer(g, np.where(known, z - v, 0.0))
            if self.encoder == "feature":
                self.msg.update(
                    np.where(known, self.H.T @ x - self.o, 0.0), eta, max(size, sqrt(z @ z + self.o @ self.o))
                )
            else:
                self.msg.update(v - self.o, eta, size)
        else:
            Q = self.msg.Q
            self.msg.update(v - self.o, eta, size, flips)
            if self.basis == "pbt":
                W = self.W @ Q @ self.msg.Q.T
            else:
                W = np.hstack([self.W, np.zeros((len(x), len(self.msg.Q) - len(Q)))])
            z = W.T @ x
            target = np.where(known, v - self.o, self.msg.Q.T @ z)
            self.W = W - np.outer(g, z - self.msg.Q @ target)
        self.msg.choose_keep(self.decode == "sample", u)
        return y_hat


class BinaryRelevance:
    """O-BR."""

    def __init__(self, d, K, regressor):
        self.H, self.regressor = np.zeros((d, K)), regressor

    def step(self, x, y):
        s = self.H.T @ x
        v = np.where(np.asarray(y) == 1, 1.0, -1.0) / sqrt(len(y))
        v = np.where(np.isnan(y), s, v)
        self.H = self.H - np.outer(self.regressor.gain(x), s - v)
        return (s >= 0).astype(int)


class RandomProjection:
    """O-RAND with a given P (M, K)."""

    def __init__(self, d, P, regressor):
        self.P, self.W, self.regressor = P, np.zeros((d, len(P))), regressor

    def step(self, x, y):
        z = self.W.T @ x
        v = np.where(np.asarray(y) == 1, 1.0, -1.0) / sqrt(len(y))
        v = np.where(np.isnan(y), np.linalg.pinv(self.P) @ z, v)
        self.W = self.W - np.outer(self.regressor.gain(x), z - self.P @ v)
        return (np.linalg.pinv(self.P) @ z >= 0).astype(int)


class CompressedSensing:
    """O-CS with given measurements A (M, K), unit columns, and orthogonal matching pursuit."""

    def __init__(self, d, A, regressor, sparsity=None):
        self.A, self.W, self.regressor, self.sparsity = A, np.zeros((d, len(A))), regressor, sparsity
        self.rows = self.labels = 0

    def pursue(self, z, size):
        taken, rest = [], z
        coefficients = np.zeros(0)
        for _ in range(min(size, *self.A.shape)):
            fit = np.abs(self.A.T @ rest)
            fit[taken] = -1.0
            if fit.max() <= 1e-12:
                break
            taken.append(int(fit.argmax()))
            coefficients = np.linalg.lstsq(self.A[:, taken], z, rcond=None)[0]
            rest = z - self.A[:, taken] @ coefficients
        w = np.zeros(self.A.shape[1])
        w[taken] = coefficients
        return w

    def step(self, x, y):
        z = self.W.T @ x
        size = self.sparsity if self.sparsity else int(np.ceil(self.labels / max(self.rows, 1)))
        y_hat = (self.pursue(z, size) >= 0.5).astype(int)
        known = ~np.isnan(y)
        target = np.where(known, y, np.linalg.pinv(self.A) @ z)
        self.W = self.W - np.outer(self.regressor.gain(x), z - self.A @ target)
        if known.any():
            self.rows, self.labels = self.rows + 1, self.labels + np.sum(y[known]) * len(y) / known.sum()
        return y_hat


def ridge(X, V, regularization):
    """(lambda I + X'X)^-1 X'V."""
    return np.linalg.solve(regularization * np.eye(X.shape[1]) + X.T @ X, X.T @ V)
