"""From sums to learners: what one machine would solve with all rows at hand, solved once with their sums.

With A = lambda I + sum x x', s = sum x, B = sum x v', o = sum v / n (or 0) and B_o = B - s o' = sum x (v - o)':

    O-BR       W = A^-1 B                                   the same for any fixed linear code of v
    PLST       P: top eigenvectors of sum v v' - n o o'     W = A^-1 B_o P'
    CPLST      P: top eigenvectors of B_o' A^-1 B_o         W = A^-1 B_o P'

CS-DPP takes its directions from the label vectors (encoder="label": PLST) or from what the features explain of them
("feature": CPLST), and its regressor is the ridge of v (PBC) or of P (v - o) (PBT, none).
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from csdpp._kernels.capped import project_capped_inplace
from csdpp.distributed._sketch import FrequentDirections
from csdpp.distributed._sums import Sums
from csdpp.merge import cholesky, explained

Array = NDArray[Any]
#: How much of the weakest direction's share is given: 0 is the projection on M directions, 1 all M + 1 alike.
SOFTNESS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Vectors:
    """Sums of label vectors v, of their codes, or of both; p of them."""

    n: int
    A: Array  # (d, d), the regularisation with it
    s: Array  # (d,), sum x
    B: Array | None  # (d, p), sum x v'
    t: Array  # (p,), sum v
    absent: Array  # (d,), sum x v for the v of a label that never came
    level: float  # the mean of that v
    C: Array | None = None  # (p, p), sum v v'
    sketch: FrequentDirections | None = None  # of sum r r' with v = scale (r - shift)
    signed: bool = False  # whether the sketch is of 0/1 labels

    @property
    def o(self) -> Array:
        """The mean of v."""
        return self.t / max(self.n, 1)


def moments(sums: Sums, regularization: float, intercept: bool) -> tuple[Array, Array]:
    """A with the regularisation, and s = sum x, without the constant feature where there is no intercept."""
    assert sums.moments is not None
    A = sums.moments.copy() if intercept else sums.moments[:-1, :-1].copy()
    A.ravel()[:: len(A) + 1] += regularization
    return A, sums.moments[: len(A), -1].copy()


def vectors(sums: Sums, A: Array, s: Array, *, K: int, weighted: bool, code: Array | None = None) -> Vectors:
    """Sums of label vectors: those of 0/1 labels b become those of v = (2 b - 1) / sqrt(K)."""
    B = None if sums.products is None else sums.products[: len(A)]
    assert sums.vectors is not None
    t, C, n = sums.vectors, sums.covariance, sums.rows
    if weighted:
        assert sums.absent is not None
        return Vectors(n, A, s, B, t, sums.absent[: len(A)], float(sums.absent[-1] / max(n, 1)), C, sums.sketch)
    one = np.ones(K) if code is None else code @ np.ones(K)  # the code of a label vector of ones
    if C is not None:
        C = (4.0 * C - 2.0 * (np.outer(t, one) + np.outer(one, t)) + n * np.outer(one, one)) / K
    B = None if B is None else (2.0 * B - np.outer(s, one)) / np.sqrt(K)
    level = -1.0 / np.sqrt(K)
    return Vectors(n, A, s, B, (2.0 * t - n * one) / np.sqrt(K), level * s, level, C, sums.sketch, signed=True)


def mean_of(old: Vectors, new: Vectors, share: float) -> Vectors:
    """Sums that go a share of the way from the old ones to the new; a sketch cannot."""
    if old.sketch is not None:
        return new
    parts: dict[str, Any] = {}
    for name in ("B", "t", "C", "absent", "level"):
        a, b = getattr(old, name), getattr(new, name)
        parts[name] = None if b is None else a + share * (b - a)
    return replace(new, **parts)


# ----------------------------------------------------------------------------------------------- directions


class Found(NamedTuple):
    """Directions (m, K), largest eigenvalue first, and of a sketch how far they may be from the best."""

    P: Array
    values: Array  # (m,)
    error: float = 0.0  # no eigenvalue is larger by more
    shortfall: float = 0.0  # of the sum of the first M eigenvalues, at most, as a share of the sum of all


def label_directions(sums: Vectors, o: Array, m: int, M: int) -> Found:
    """The top m eigenvectors of sum (v - o)(v - o)', by its sums or by a sketch of them."""
    if sums.sketch is None:
        assert sums.C is not None
        centred = sums.C - sums.n * (np.outer(o, sums.o) + np.outer(sums.o, o) - np.outer(o, o))
        K = len(o)
        values, P = linalg.eigh(centred, subset_by_index=(K - m, K - 1))
        return Found(np.ascontiguousarray(P.T[::-1]), values[::-1])
    return _sketched_directions(sums, o, m, M)


def _sketched_directions(sums: Vectors, o: Array, m: int, M: int) -> Found:
    """The same where S'S stands for sum r r': eigenvectors of a sum of few rows, within the span of S, t and 1.

    0 <= sum r r' - S'S <= shed I moves no eigenvalue by more than shed (Weyl), and the sum of the first M by no more
    than M shed or all that S lost; times 4/K where r are the 0/1 labels.
    """
    sketch = sums.sketch
    assert sketch is not None
    n, K, mean = sums.n, len(o), sums.o
    scale = 4.0 / K if sums.signed else 1.0
    if sums.signed:  # sum v v' = (4 sum b b' - 2 (t 1' + 1 t') + n 1 1') / K, t = (sqrt(K) sum v + n) / 2
        t, one = (np.sqrt(K) * sums.t + n) / 2.0, np.ones(K)
    else:
        t, one = np.zeros(K), np.zeros(K)
    rows = np.vstack([sketch.S, t, one, o, mean])
    core = np.zeros((len(rows), len(rows)))
    k = len(sketch.S)
    core[:k, :k] = scale * np.eye(k)
    if sums.signed:
        core[k, k + 1] = core[k + 1, k] = -2.0 / K
        core[k + 1, k + 1] = n / K
    core[k + 2, k + 3] = core[k + 3, k + 2] = -float(n)
    core[k + 2, k + 2] = float(n)
    frame, coordinates = linalg.qr(rows.T, mode="economic")
    small = coordinates @ core @ coordinates.T
    values, inner = linalg.eigh(small)
    values, P = values[::-1], np.ascontiguousarray((frame @ inner[:, ::-1]).T)
    error = scale * sketch.shed
    whole = max(values.sum() + scale * sketch.lost, np.finfo(np.float64).tiny)
    return Found(P[:m], values[:m], error, float(min(M * error, scale * sketch.lost) / whole))


def explained_directions(sums: Vectors, o: Array, m: int) -> Found:
    """The top m (fewer, if the features explain fewer) eigenvectors of B_o' A^-1 B_o: what CPLST takes."""
    return Found(*explained(sums.A, centred_products(sums, o), m))


def centred_products(sums: Vectors, o: Array) -> Array:
    """B_o = sum x (v - o)'."""
    assert sums.B is not None
    products: Array = sums.B - np.outer(sums.s, o)
    return products


def solve(A: Array, B: Array) -> Array:
    """A^-1 B."""
    W: Array = linalg.cho_solve((cholesky(A), True), B)
    return W


def spectra(values: Array, M: int, soft: bool) -> Array:
    """Ways of decoding (c, m): spectra in the capped simplex, from the projection on M directions to all alike.

    Of the weakest of M + 1 directions a share is taken in, the others giving way by size: the projection of
    tau times the eigenvalues onto {0 <= sigma <= 1, sum sigma = M}, tau such that the weakest has its share.
    """
    m = len(values)
    if m <= M or not soft:
        return (np.arange(m) < M).astype(np.float64)[None]
    return np.stack([_spectrum(values / values[0], M, share * M / m) for share in SOFTNESS])


def _spectrum(values: Array, M: int, weakest: float) -> Array:
    low, high = -12.0, 12.0
    for _ in range(60):
        middle = (low + high) / 2.0
        if _projected(values * 10.0**middle, M)[-1] > weakest:
            low = middle
        else:
            high = middle
    return _projected(values * 10.0**high, M)


def _projected(values: Array, M: int) -> Array:
    sigma = np.maximum(values, 0.0)
    project_capped_inplace(sigma, len(sigma), M, True)
    return sigma
