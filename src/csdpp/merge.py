"""Learners joined: what several have learned apart, as one learner that goes on online (docs/distributed.md).

The ridge part is a sum, so it is exact. With A_i = lambda I + sum x x' and B_i = A_i W_i of each learner,

    A = sum A_i - (number - 1) lambda I,   B = sum B_i,   W = A^-1 B

is the learner that has seen all rows, each with the label vector v that it was learned with. `put_ridge` and
`put_basis`, which bring such sums back into a learner, also serve `csdpp.distributed`.
"""

import copy
import zlib
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from csdpp._kernels.block import ABSENT, PARTIAL, PBC
from csdpp._kernels.capped import project_capped_inplace
from csdpp._kernels.msg import FULL, HELD, REPAIRED, UPDATES, WIDTH, choose_keep_inplace
from csdpp.engine import FollowingEngine, SensingEngine
from csdpp.errors import InvalidInput
from csdpp.estimator import OnlineClassifier
from csdpp.regressors import OnlineRidge, Regressor

Array = NDArray[Any]
#: Parameters in which learners that are joined may differ.
_FREE = {"random_state", "block_size"}


class Held(NamedTuple):
    """Directions of several learners, one below the other, and what the regressors know of their codes."""

    Q: Array  # (r, K)
    weights: Array  # (r,), sigma times the rows remembered
    sums: Array  # (d, r), A_i W_i; empty (d, 0) with PBC, where the regressor knows the labels


def merge(model: Any, *others: Any) -> Any:
    """One learner out of several that have learned different rows; they stay as they are.

    Parameters
    ----------
    model, *others : fitted online learners of one class
        With the same parameters (but for ``random_state`` and ``block_size``), features and labels.

    Returns
    -------
    A learner of the same class, which goes on with `partial_fit`.

    Notes
    -----
    *Regressor.* Ridge: exact, see above, to the rounding of sums (A is formed, whose condition number is the square
    of its root's). With ``forgetting`` < 1 what is left of each lambda adds up. Gradient descent: the mean of W,
    each weighted by the rows remembered.

    *Reference, counts of rows and labels.* Exact. Chances (`predict_proba`) go on from the scores that all have seen.

    *Directions.* With ``encoder="feature"``, a ridge and an intercept: those of CPLST over all rows, which is what the
    online encoder goes towards, from the joint A and B; the spectrum is the mean of the spectra. Otherwise the top
    M + 1 of the mean of U = Q' diag(sigma) Q, weighted by the rows remembered; codes are carried to them by
    W = A^-1 sum A_i W_i Q_i Q'. The learner keeps the directions that it was joined from (`joined_`, r (d + K)
    numbers for r directions), which stand for it until it learns a row more: in whatever order learners are joined,
    the result is the same up to rounding.

    O(d^3 + d^2 K) a learner, and O(r^2 K) for the directions.

    Examples
    --------
    >>> from csdpp import CSDPP
    >>> from csdpp.datasets import make_stream
    >>> stream = make_stream(600, 10, 8, rank=2, random_state=0)
    >>> sites = [CSDPP(2).fit(stream.X[rows], stream.Y[rows]) for rows in (slice(0, 200), slice(200, 600))]
    >>> joined = merge(*sites)
    >>> joined.n_seen_, joined.partial_fit(stream.X[:10], stream.Y[:10]).n_seen_
    (600, 610)
    """
    models = [model, *others]
    for other in models:
        _check_alike(model, other)
    models = [one for one in models if one.n_seen_ > 0] or models[:1]
    if len(models) == 1:
        return copy.deepcopy(models[0])
    engines = [one._engine for one in models]
    out = copy.deepcopy(models[0])
    out.__dict__.pop("joined_", None)
    out.n_seen_ = sum(one.n_seen_ for one in models)
    engine = out._engine
    A, B = _sum_regressors(engine.regressor, [one.regressor for one in engines])
    if isinstance(engine, FollowingEngine):
        engine.rng = check_random_state(out.random_state)
        held = _join_held([_held(one) for one in models])
        _join_following(engine, engines, A, B, held)
        if not _from_ridge(engine):
            out.joined_ = {"state": _state(engine), **held._asdict()}
    else:
        put_ridge(engine.regressor, A, B)
    engine.calibration.sums = reduce(add, (one.calibration.sums for one in engines))
    if isinstance(engine, SensingEngine):
        engine.seen = reduce(add, (one.seen for one in engines))
    return out


def _check_alike(model: Any, other: Any) -> None:
    if not isinstance(other, OnlineClassifier):
        raise InvalidInput(f"merge: learners must be online learners of csdpp, got {type(other).__name__}")
    check_is_fitted(other)
    who = type(model).__name__
    if type(other) is not type(model):
        raise InvalidInput(f"merge: learners must be of one class, got {who} and {type(other).__name__}")
    if isinstance(other.regularization, str):
        raise InvalidInput('merge: regularization must be a number, got "auto"; take the one in regularization_')
    ours, theirs = model.get_params(deep=False), other.get_params(deep=False)
    for name in ours.keys() - _FREE:
        if ours[name] != theirs[name]:
            raise InvalidInput(f"merge: learners must agree in {name}, got {ours[name]!r} and {theirs[name]!r}")
    for name in ("classes_", "feature_names_in_"):
        if not np.array_equal(getattr(model, name, ()), getattr(other, name, ())):
            what = "labels" if name == "classes_" else "features"
            raise InvalidInput(f"merge: learners must have the same {what} in the same order; bring them in line first")
    if model.n_features_in_ != other.n_features_in_:
        got = f"{model.n_features_in_} and {other.n_features_in_}"
        raise InvalidInput(f"merge: learners must have as many features, got {got}")
    sizes = [getattr(one._leader, "m", 0) for one in (model, other)]
    if sizes[0] != sizes[1]:
        raise InvalidInput(f"merge: learners must hold as many directions, got {sizes[0]} and {sizes[1]}")
    for name in ("P", "A"):  # a random code must be the same one
        code = getattr(model._leader.encoder, name, 0)
        if not np.array_equal(code, getattr(other._leader.encoder, name, 0)):
            raise InvalidInput(f"merge: {who}s must share their random code; give both the same random_state")


# ------------------------------------------------------------------------------------------------ the ridge


def known(regressor: Any) -> Array:
    """A (d, d), the regularisation with it; for gradient descent rows I, so that W is averaged by rows."""
    if not isinstance(regressor, OnlineRidge):
        return np.eye(len(regressor.W)) * max(regressor.mass, np.finfo(np.float64).tiny)
    root = linalg.inv(regressor.F.astype(np.float64))
    A: Array = root.T @ root
    return A


def _sum_regressors(out: Any, regressors: list[Any]) -> tuple[Array, Array]:
    """A and B = sum A_i W_i of them all; the counts of gradient descent go into ``out``."""
    As = [known(one) for one in regressors]
    A = reduce(add, As)
    B = reduce(add, (a @ one.W.astype(np.float64) for a, one in zip(As, regressors, strict=True)))
    if not isinstance(out, OnlineRidge):
        out.mass, out.power = sum(one.mass for one in regressors), sum(one.power for one in regressors)
        out.absent = reduce(add, (one.absent * one.mass for one in regressors)) / max(out.mass, 1.0)
        return A, B
    out.absent = reduce(add, (one.absent for one in regressors))
    if out.forgetting == 1.0:
        A.ravel()[:: len(A) + 1] -= (len(regressors) - 1) * out.regularization
    return A, B


def put_ridge(regressor: Regressor, A: Array, B: Array) -> None:
    """W = A^-1 B (d, p), and the root of A^-1 where the regressor keeps one."""
    dtype = regressor.W.dtype
    if not isinstance(regressor, OnlineRidge):
        regressor.W = np.ascontiguousarray(B / A[0, 0], dtype)
        return
    L = cholesky(A)
    regressor.W = np.ascontiguousarray(linalg.cho_solve((L, True), B), dtype)
    root = linalg.solve_triangular(L, np.eye(len(L)), lower=True)
    regressor.F = np.ascontiguousarray(root.T, dtype)


def cholesky(A: Array) -> Array:
    """The lower factor of A (d, d)."""
    try:
        L: Array = linalg.cholesky(A, lower=True)
    except linalg.LinAlgError:
        size = float(np.sqrt(A.diagonal().max()))
        raise InvalidInput(
            f"csdpp: the sum of squares of features must be positive definite, and rounding has made it singular "
            f"(largest root {size:.1e}); scale the features to like size, or raise regularization"
        ) from None
    return L


# ----------------------------------------------------------------------------------------------- the basis


def explained(A: Array, B: Array, M: int) -> tuple[Array, Array]:
    """The top eigenvectors (at most M, K) of B'A^-1 B and their eigenvalues, largest first.

    With A and B = sum x (v - o)' of all rows these are the directions of CPLST: V'HV = B'A^-1 B for the hat matrix H
    of the ridge. Never forms K x K. O(d^2 K).
    """
    S = linalg.solve_triangular(cholesky(A), B, lower=True)
    _, sizes, Q = linalg.svd(S, full_matrices=False)
    good = int(np.count_nonzero(sizes > sizes[0] * max(S.shape) * np.finfo(np.float64).eps)) if len(sizes) else 0
    return Q[: min(M, good)], sizes[: min(M, good)] ** 2


def put_basis(engine: FollowingEngine, Q: Array, sigma: Array, *, full: bool) -> None:
    """Directions (held, K) and their spectrum, falling; which of them the next prediction decodes with."""
    basis, held = engine.encoder.basis, len(Q)
    basis.frame[:], basis.sigma[:], basis.counts[:] = 0.0, 0.0, 0
    basis.frame[:held], basis.sigma[:held] = Q, sigma
    basis.counts[HELD] = basis.counts[WIDTH] = held
    basis.counts[FULL] = full
    basis.counts[UPDATES] = basis.counts[REPAIRED] = int(engine.clock[0])
    u = float(engine.rng.random_sample()) if engine.recipe.sampled else 0.0
    choose_keep_inplace(basis, engine.encoder.M, engine.recipe.sampled, u)


def _from_ridge(engine: FollowingEngine) -> bool:
    """Whether the directions follow from the sums of the ridge."""
    ridge = isinstance(engine.regressor, OnlineRidge)
    return ridge and engine.recipe.feature and (engine.intercept or not engine.recipe.mean)


def _held(model: Any) -> Held:
    """What a learner knows of directions; of one that was just joined, those it was joined from."""
    engine, joined = model._engine, vars(model).get("joined_")
    if joined is not None and joined["state"] == _state(engine):
        return Held(joined["Q"], joined["weights"], joined["sums"])
    if not isinstance(engine, FollowingEngine):
        return Held(np.zeros((0, engine.K)), np.zeros(0), np.zeros((len(engine.regressor.W), 0)))
    held = engine.encoder.basis.counts[HELD]
    sums = np.zeros((len(engine.regressor.W), 0))
    if engine.recipe.basis != PBC:
        sums = known(engine.regressor) @ engine.regressor.W[:, :held].astype(np.float64)
    return Held(engine.encoder.directions.astype(np.float64), engine.encoder.spectrum * engine.mass, sums)


def _state(engine: Any) -> int:
    """A checksum that tells whether the learner has changed since."""
    return zlib.crc32(engine.regressor.W.tobytes())


def _join_held(parts: list[Held]) -> Held:
    return Held(
        np.vstack([part.Q for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.hstack([part.sums for part in parts]),
    )


def _join_following(engine: FollowingEngine, engines: list[Any], A: Array, B: Array, held: Held) -> None:
    masses = np.array([one.mass for one in engines])
    clocks = np.array([one.clock for one in engines])
    engine.clock = clocks.sum(axis=0)
    engine.clock[ABSENT] = masses @ clocks[:, ABSENT] / masses.sum()
    engine.clock[PARTIAL] = clocks[:, PARTIAL].max()
    engine.memory = reduce(add, (one.memory for one in engines))
    if engine.clock[PARTIAL]:  # a label's mean is over the rows that told it
        told = np.array([one.known if one.clock[PARTIAL] else np.full(one.K, one.mass) for one in engines])
        engine.known = told.sum(axis=0)
    else:
        told = np.repeat(masses[:, None], engine.K, axis=1)
    means = np.array([one.o for one in engines])
    engine.o = (told * means).sum(axis=0) / np.maximum(told.sum(axis=0), np.finfo(np.float64).tiny)
    full = any(bool(one.encoder.basis.counts[FULL]) for one in engines)
    m, M = engine.m, engine.encoder.M
    if _from_ridge(engine):
        constant = A[:, -1].copy()  # sum of x, whose last entry is the constant feature
        if engine.intercept and engine.regressor.forgetting == 1.0:
            constant[-1] -= engine.regularization
        Q, _ = explained(A, B - np.outer(constant, engine.o) if engine.recipe.mean else B, m)
        spectra = np.stack([one.encoder.basis.sigma for one in engines])
        sigma = (masses @ spectra / masses.sum())[: len(Q)]
    else:
        Q, sigma = _mean_of_projectors(held, masses.sum(), m)
    sigma = np.ascontiguousarray(sigma)
    full = project_capped_inplace(sigma, len(Q), M, full) if len(Q) else False
    put_basis(engine, Q, sigma, full=bool(full))
    if engine.recipe.basis != PBC:
        B = np.zeros((len(A), m))
        B[:, : len(Q)] = held.sums @ (held.Q @ Q.T)
    put_ridge(engine.regressor, A, B)


def _mean_of_projectors(held: Held, mass: float, m: int) -> tuple[Array, Array]:
    """The top m eigenpairs of sum of weights q q' / mass."""
    _, sizes, Q = linalg.svd(np.sqrt(held.weights / mass)[:, None] * held.Q, full_matrices=False)
    sigma = np.minimum(sizes**2, 1.0)
    kept = min(m, int(np.count_nonzero(sizes > 1e-12 * sizes.max(initial=0.0))))
    return Q[:kept], sigma[:kept]
