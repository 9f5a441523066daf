"""Generated multi-label streams whose rank, number of labels, noise and drift are known.

Symbols: x a row of d features with mean 0 and variance 1, u its place in the stream from 0 (first row) to 1
(last), r the rank.

    z = P(u) x                              r hidden factors; P has orthonormal rows
    s = √(1 − noise) C(u) z + √noise ε      K scores of variance 1; rows of C have length 1, ε standard normal
    y_k = 1 where s_k ≥ θ_k(u)              label k has the chance p_k(u), and Σ_k p_k(u) = cardinality

What drifts goes along an arc φ = drift · u · π/2 from a first model to a second one that has nothing in
common with it, such that all of the above holds at each moment:

    P(u) = cos φ P₀ + sin φ P₁, all rows of P₀ and P₁ orthogonal      the map from x to y
    C(u) = cos φ C₀ + sin φ C₁, each row of C₀ orthogonal to C₁'s     the correlations of labels
    p(u) = cos² φ p₀ + sin² φ p₁, p₁ a permutation of p₀              how frequent labels are
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse, special

from csdpp.datasets._types import Dataset, stack_emptying
from csdpp.errors import InvalidParameter

Floats = NDArray[np.float64]

BLOCK = 1 << 21  # entries of X or Y generated at a time: the bound on memory beyond the result
PILOT, PILOT_LABELS = 1 << 14, 50  # rows and labels of the pilot sample


def make_stream(
    n: int = 1000,
    d: int = 50,
    K: int = 20,
    *,
    rank: int = 5,
    cardinality: float = 3.0,
    noise: float = 0.1,
    drift: float = 0.0,
    density: float = 1.0,
    constant_feature: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> Dataset:
    """A stream with correlated labels, made from a low-rank linear model.

    A label is relevant where its score passes a threshold; the K scores depend on the features through `rank`
    hidden factors only, plus noise. The odds of the j-th most frequent label are 1/j of the first's.

    Parameters
    ----------
    n, d, K : int
        Rows, features, labels.
    rank : int, at most d and K
        Number of hidden factors: the rank of the map from features to scores. At most d/2 where there is
        drift, as the second map must be orthogonal to the first.
    cardinality : float in (0, K)
        Expected number of labels of a row, at every moment of the stream.
    noise : float in [0, 1]
        Share of the variance of each score that the features do not explain. At 0 each label is a half-space
        of the features; at 1 labels depend neither on the features nor on each other.
    drift : float in [0, 1]
        How far the stream moves from a first model to a second, unrelated one: frequencies of labels, their
        correlations (not for rank 1) and the map from features to labels, all continuously. At 1 the last row
        is of the second model.
    density : float in (0, 1]
        Expected share of features that are not 0. Below 1, X and Y are CSR, and the non-zeros of X uniform on
        (0, 1]; at 1 they are arrays, and the features standard normal.
    constant_feature : bool
        Whether the last of the d features is 1 in every row, and so says nothing.
    random_state : int, Generator or None
        The same seed gives the same stream.

    Notes
    -----
    O(dr + rK) per row. Where rows have only one or two non-zeros, the cardinality may be off by a tenth or two.
    Not promised: the same stream for the same seed in another version of NumPy or csdpp, nor the same first rows
    when n changes.

    Examples
    --------
    >>> ds = make_stream(500, 30, 12, rank=3, cardinality=2.5, random_state=0)
    >>> ds
    Dataset('stream', N=500, d=30, K=12, cardinality=...)
    >>> bool(0.09 < make_stream(500, 30, 12, density=0.1, random_state=0).X.nnz / (500 * 30) < 0.11)
    True
    """
    varying = d - 1 if constant_feature else d
    _check(n, varying, K, rank, cardinality, noise, drift, density)
    rng = np.random.default_rng(random_state)
    features = _Features(varying, density)
    model = _Model.random(rng, features, K, rank, cardinality, noise, drift)
    Xs: list[Any] = []
    Ys: list[Any] = []
    step = max(1, BLOCK // max(d, K))
    for start in range(0, n, step):
        u = np.arange(start, min(start + step, n)) / max(n - 1, 1)
        X = features.draw(rng, len(u))
        Y = model.labels(rng, X, u)
        if constant_feature:
            ones = np.ones((len(u), 1))
            X = np.hstack((X, ones)) if density == 1 else sparse.hstack((X, ones), format="csr")
        Xs.append(X)
        Ys.append(Y if density == 1 else sparse.csr_array(Y))
    names = [tuple(f"{letter}{i}" for i in range(size)) for letter, size in (("x", d), ("y", K))]
    return Dataset(stack_emptying(Xs), stack_emptying(Ys), names[0], names[1], "stream")


def _check(n: int, d: int, K: int, rank: int, cardinality: float, noise: float, drift: float, density: float) -> None:
    """Refuse parameters for which there is no such stream; d counts the features that vary."""

    def require(name: str, value: Any, kind: type, fits: Callable[[Any], bool], wanted: str) -> None:
        if isinstance(value, bool) or not isinstance(value, kind) or not fits(value):
            raise InvalidParameter(f"make_stream: {name} must be {wanted}, got {value!r}; change it")

    require("n", n, Integral, lambda n: n >= 1, "a whole number from 1")
    require("d", d, Integral, lambda d: d >= 1, "a whole number from 1, not counting a constant feature")
    require("K", K, Integral, lambda K: K >= 1, "a whole number from 1")
    require("cardinality", cardinality, Real, lambda c: 0 < c < K, f"above 0 and below the {K} labels")
    require("noise", noise, Real, lambda share: 0 <= share <= 1, "from 0 to 1")
    require("drift", drift, Real, lambda share: 0 <= share <= 1, "from 0 to 1")
    require("density", density, Real, lambda share: 0 < share <= 1, "above 0 and at most 1")
    most, of = min(d // 2 if drift else d, K), "half the features" if drift else "the features"
    wanted = f"a whole number from 1 to {most} (at most {of}, at most the labels)"
    require("rank", rank, Integral, lambda r: 1 <= r <= most, wanted)


@dataclass(frozen=True)
class _Features:
    """The law of a row: d independent features, standard normal or mostly 0."""

    d: int
    density: float

    def draw(self, rng: np.random.Generator, n: int) -> Any:
        """Draw n rows, as an array or as CSR."""
        if self.density == 1:
            return rng.standard_normal((n, self.d))
        # The gaps between the non-zeros of the n·d entries are geometric: O(non-zeros), not O(nd).
        total, places = n * self.d, np.array([-1])
        while places[-1] < total:
            gaps = rng.geometric(self.density, int(1.1 * total * self.density) + 16)
            places = np.concatenate((places, places[-1] + np.cumsum(gaps)))
        places = places[1 : np.searchsorted(places, total)]
        indptr = np.searchsorted(places, np.arange(n + 1) * self.d)
        values = 1.0 - rng.random(len(places))  # in (0, 1]: never a stored 0
        return sparse.csr_array((values, places % self.d, indptr), (n, self.d))

    def project(self, X: Any, P: Floats) -> Floats:
        """P x for each row, each feature of x taken at mean 0 and variance 1 without losing sparsity."""
        q = self.density
        mean, std = (0.0, 1.0) if q == 1 else (q / 2, np.sqrt(q / 3 - q**2 / 4))
        projected: Floats = (X @ P.T - mean * P.sum(axis=1)) / std
        return projected


@dataclass(frozen=True)
class _Model:
    """P, C and p of the opening comment: the first alone, or first and second where there is drift."""

    features: _Features
    P: list[Floats]  # each (r, d)
    C: list[Floats]  # each (K, r); one only for r = 1, where no second one is orthogonal to the first
    p: list[Floats]  # each (K,)
    noise: float
    drift: float
    threshold: Callable[[Floats], Floats]  # the θ that a score reaches with a given chance

    @classmethod
    def random(
        cls,
        rng: np.random.Generator,
        features: _Features,
        K: int,
        rank: int,
        cardinality: float,
        noise: float,
        drift: float,
    ) -> _Model:
        """A model drawn at random, its thresholds calibrated."""
        models = 2 if drift else 1
        frame = np.linalg.qr(rng.standard_normal((features.d, models * rank)))[0].T
        C = [_unit_rows(rng.standard_normal((K, rank)))]
        if drift and rank > 1:
            other = rng.standard_normal((K, rank))
            C.append(_unit_rows(other - (other * C[0]).sum(axis=1, keepdims=True) * C[0]))
        p = [rng.permutation(_chances(K, cardinality)) for _ in range(models)]
        model = cls(features, np.split(frame, models), C, p, noise, drift, lambda chance: -special.ndtri(chance))
        if features.density == 1:
            return model  # scores are exactly standard normal
        # With few non-zeros in a row they are not: take their quantiles from a pilot sample instead.
        pilot = replace(model, C=[part[:PILOT_LABELS] for part in C])
        sample = np.sort(pilot.scores(rng, features.draw(rng, PILOT), rng.random(PILOT)), axis=None)
        ranks = np.linspace(0, 1, sample.size)
        return replace(model, threshold=lambda chance: np.interp(1 - chance, ranks, sample))

    def scores(self, rng: np.random.Generator, X: Any, u: Floats) -> Floats:
        """Scores s of rows at the places u, shape (n, K)."""
        z = self._arc(u, [self.features.project(X, P) for P in self.P])
        s = self._arc(u, [z @ C.T for C in self.C])
        if self.noise:
            s *= np.sqrt(1 - self.noise)
            s += np.sqrt(self.noise) * rng.standard_normal(s.shape)
        return s

    def labels(self, rng: np.random.Generator, X: Any, u: Floats) -> NDArray[np.uint8]:
        """Labels y of rows at the places u, shape (n, K)."""
        p = self.p[0]
        if self.drift:
            share = np.sin(self.drift * np.pi / 2 * u)[:, None] ** 2
            p = (1 - share) * p + share * self.p[1]
        return (self.scores(rng, X, u) >= self.threshold(p)).astype(np.uint8)

    def _arc(self, u: Floats, ends: list[Floats]) -> Floats:
        """First · cos φ + second · sin φ, row by row; the first where there is no second."""
        if len(ends) == 1:
            return ends[0]
        phi = (self.drift * np.pi / 2 * u)[:, None]
        return np.cos(phi) * ends[0] + np.sin(phi) * ends[1]


def _unit_rows(A: Floats) -> Floats:
    unit: Floats = A / np.linalg.norm(A, axis=1, keepdims=True)
    return unit


def _chances(K: int, cardinality: float) -> Floats:
    """K chances whose odds fall as 1/j and whose sum is the cardinality."""
    log_j = np.log(np.arange(1.0, K + 1))
    log_odds = optimize.brentq(lambda b: special.expit(b - log_j).sum() - cardinality, -1000, 100)
    chances: Floats = special.expit(log_odds - log_j)
    return chances
