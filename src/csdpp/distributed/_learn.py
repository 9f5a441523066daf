"""Which passes a learner needs, and how their sums become its state."""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from csdpp._kernels.block import ABSENT, MASS, PBC, STEPS
from csdpp.baselines import OnlineCompressedSensing, OnlineRandomProjection
from csdpp.batch import CPLST, PLST
from csdpp.costs import Hamming, StreamCost
from csdpp.distributed import _solve
from csdpp.distributed._solve import Found, Vectors
from csdpp.distributed._sums import Pass, Rule, Sums
from csdpp.engine import FollowingEngine
from csdpp.learner import CSDPP
from csdpp.merge import put_basis, put_ridge

Array = NDArray[Any]
Run = Callable[[Pass], Sums]
#: The largest label covariance that is summed exactly, in numbers: 256 MB.
LARGEST_COVARIANCE = 1 << 25
_log = logging.getLogger("csdpp.distributed")


class Solution(NamedTuple):
    """A model as sums know it."""

    sums: Vectors
    o: Array
    found: Found
    W: Array  # (d, K) with PBC and CPLST, else (d, m)


def sketch_rows(sketch: Any, M: int, K: int) -> int:
    """Rows of the sketch of the label covariance; 0 where it is summed exactly."""
    if sketch is None or (sketch == "auto" and K * K <= LARGEST_COVARIANCE):
        return 0
    return min(K, 2 * M + 32 if sketch == "auto" else int(sketch))


# ------------------------------------------------------------------------------------- fixed label vectors


def learn_fixed(model: Any, engine: Any, run: Run) -> dict[str, Any]:
    """O-BR, O-RAND and O-CS: W = A^-1 B with a code that stands still. One pass, exact."""
    encoder, K, code = engine.encoder, engine.K, None
    if isinstance(model, OnlineRandomProjection):
        code = encoder.P.astype(np.float64)
    elif isinstance(model, OnlineCompressedSensing):  # measures 0/1 labels; a row more counts them
        code = np.vstack([encoder.A, np.ones(K)]).astype(np.float64)
    sums = run(Pass(moments=True, products=True, covariance=False, code=code))
    A, s = _solve.moments(sums, engine.regularization, engine.intercept)
    if isinstance(model, OnlineCompressedSensing):
        B = sums.products[: len(A), :-1]  # type: ignore[index]
        engine.seen = np.array([float(sums.rows), sums.vectors[-1]])  # type: ignore[index]
    else:
        B = _solve.vectors(sums, A, s, K=K, weighted=False, code=code).B
    put_ridge(engine.regressor, A, B)
    engine.regressor.absent = -s / np.sqrt(K)
    return {}


def learn_batch(model: PLST, K: int, M: int, run: Run, sketch: int) -> dict[str, Any]:
    """PLST and CPLST. One pass, exact; PLST by a sketch: two, exact for the directions found."""
    recipe = _Recipe(
        K=K,
        M=M,
        m=M,
        of_labels=False,
        feature=isinstance(model, CPLST),
        mean=model.reference == "mean",
        regularization=float(model.regularization),
        intercept=bool(model.fit_intercept),
        sketch=0 if isinstance(model, CPLST) else sketch,
    )
    solution = _solution(recipe, run, None, _sums(recipe, run, None, None)[0])
    P, W = solution.found.P, solution.W
    if len(P) < M:  # CPLST of fewer directions than asked for: the rest, along which nothing is predicted
        rest = np.linalg.svd(P, full_matrices=True)[2][len(P) : M]
        P, W = np.vstack([P, rest]), np.hstack([W, np.zeros((len(W), len(rest)))])
    model.directions_, model.reference_, model._W = P, solution.o, W
    return _about(solution.found, recipe)


# --------------------------------------------------------------------------------------------------- CS-DPP


class _Recipe(NamedTuple):
    K: int
    M: int
    m: int  # directions wanted
    of_labels: bool  # PBC: the regressor predicts label vectors, not codes
    feature: bool
    mean: bool
    regularization: float
    intercept: bool
    sketch: int


def learn_following(
    model: CSDPP, engine: FollowingEngine, run: Run, sketch: int, rounds: int, tol: float
) -> dict[str, Any]:
    """CS-DPP. Hamming: one pass, exact. Other costs: rounds of predicting, weighing and summing."""
    setup = engine.recipe
    recipe = _Recipe(
        K=engine.K,
        M=setup.M,
        m=engine.m,
        of_labels=setup.basis == PBC,
        feature=setup.feature,
        mean=setup.mean,
        regularization=engine.regularization,
        intercept=engine.intercept,
        sketch=0 if setup.feature else sketch,
    )
    solution = _solution(recipe, run, None, _sums(recipe, run, None, None)[0])
    about: dict[str, Any] = {"losses": []}
    sigma, memory = _candidates(recipe, engine, solution)[0], engine.memory
    if not isinstance(engine.cost, Hamming):
        solution, sigma, memory, about["losses"] = _rounds(recipe, engine, run, solution, rounds, tol)
    n = solution.sums.n
    engine.clock[[STEPS, MASS, ABSENT]] = n, n, solution.sums.level
    engine.regressor.absent = solution.sums.absent.copy()  # type: ignore[attr-defined]
    engine.o = solution.o.copy()
    engine.memory = memory
    held = max(1, int(np.count_nonzero(sigma > 0.0))) if len(sigma) else 0
    put_basis(engine, solution.found.P[:held], sigma[:held], full=bool(sigma.sum() > recipe.M - 1e-9))
    if recipe.of_labels:
        put_ridge(engine.regressor, solution.sums.A, solution.sums.B)  # type: ignore[arg-type]
    else:
        B = np.zeros((len(solution.W), recipe.m))
        B[:, :held] = (solution.sums.A @ solution.W)[:, :held]
        put_ridge(engine.regressor, solution.sums.A, B)
    return about | _about(solution.found, recipe)


def _rounds(
    recipe: _Recipe, engine: FollowingEngine, run: Run, solution: Solution, rounds: int, tol: float
) -> tuple[Solution, Array, Array, list[float]]:
    """The model with the lowest loss of all rounds, its spectrum and memory, and the losses of the rounds.

    Each pass tells the loss of the model before it, for each candidate spectrum, and weighs the labels by what that
    model predicts. Sums of rounds are averaged: weights that follow the last prediction alone may go to and fro.
    """
    best, mean, current = (solution, np.zeros(0), engine.memory), None, 0
    losses: list[float] = []
    for number in range(rounds + 1):
        keeps = _candidates(recipe, engine, solution)
        rule = _rule(recipe, engine, solution, keeps, min(current, len(keeps) - 1))
        last = number == rounds
        if last:
            measured = run(Pass(moments=False, products=False, covariance=False, rule=rule))
        else:
            new, measured = _sums(recipe, run, rule, solution.sums)
        values = _losses(engine, measured)
        current = int(values.argmin())
        if not losses or values[current] < min(losses):
            memory = engine.memory if measured.counts is None else measured.counts[current]
            best = solution, keeps[current], memory
        losses.append(float(values[current]))
        _log.info("round %d: loss %.4f", number, losses[-1])
        if last or (number and abs(losses[-1] - losses[-2]) < tol):
            break
        mean = new if mean is None else _solve.mean_of(mean, new, 1.0 / (number + 1))
        engine.memory = engine.memory if measured.counts is None else measured.counts[current]
        solution = _solution(recipe, run, rule, mean)
    return *best, losses


def _sums(recipe: _Recipe, run: Run, rule: Rule | None, known: Vectors | None) -> tuple[Vectors, Sums]:
    """Sums of label vectors, weighted by a rule or fixed; the moments of the features are summed only once."""
    sums = run(
        Pass(
            moments=known is None,
            products=recipe.of_labels or not recipe.sketch,
            covariance=not recipe.feature and not recipe.sketch,
            sketch=recipe.sketch,
            rule=rule,
        )
    )
    if known is None:
        A, s = _solve.moments(sums, recipe.regularization, recipe.intercept)
    else:
        A, s = known.A, known.s
    return _solve.vectors(sums, A, s, K=recipe.K, weighted=rule is not None), sums


def _solution(recipe: _Recipe, run: Run, rule: Rule | None, sums: Vectors) -> Solution:
    """Directions and W by sums; where B would be d x K and only codes are wanted, another pass sums theirs."""
    o = sums.o if recipe.mean else np.zeros(recipe.K)
    if recipe.feature:
        found = _solve.explained_directions(sums, o, recipe.m)
    else:
        found = _solve.label_directions(sums, o, recipe.m, recipe.M)
    if recipe.of_labels:
        return Solution(sums, o, found, _solve.solve(sums.A, sums.B))  # type: ignore[arg-type]
    if sums.B is not None:
        return Solution(sums, o, found, _solve.solve(sums.A, _solve.centred_products(sums, o) @ found.P.T))
    code = found.P
    raw = run(Pass(moments=False, products=True, covariance=False, code=code, rule=rule))
    coded = _solve.vectors(raw, sums.A, sums.s, K=recipe.K, weighted=rule is not None, code=code)
    return Solution(sums, o, found, _solve.solve(sums.A, coded.B - np.outer(sums.s, code @ o)))


def _candidates(recipe: _Recipe, engine: FollowingEngine, solution: Solution) -> Array:
    """Spectra that may decode. Hamming and a sampled decoder: the projection on M directions."""
    soft = not isinstance(engine.cost, Hamming) and not engine.recipe.sampled
    return _solve.spectra(solution.found.values, recipe.M, soft)


def _rule(recipe: _Recipe, engine: FollowingEngine, solution: Solution, keeps: Array, current: int) -> Rule:
    W = solution.W
    if not recipe.intercept:  # shards always carry the constant feature
        W = np.vstack([W, np.zeros((1, W.shape[1]))])
    return Rule(
        W=W,
        Q=solution.found.P,
        o=solution.o,
        keeps=keeps,
        current=current,
        of_labels=recipe.of_labels,
        cost=engine.cost,
        weighting=engine.recipe.weighting,
        memory=engine.memory,
    )


def _losses(engine: FollowingEngine, sums: Sums) -> Array:
    """Mean loss of each candidate."""
    if isinstance(engine.cost, StreamCost):
        counts: Any = sums.counts
        return np.array([engine.cost._of_counts(np.stack([tp, tp + fp, tp + fn])) for tp, fp, fn, _ in counts])
    losses: Any = sums.losses
    return np.asarray(losses / max(sums.rows, 1))


def _about(found: Found, recipe: _Recipe) -> dict[str, Any]:
    """What a sketch promises."""
    if not recipe.sketch:
        return {}
    return {"sketch": {"rows": recipe.sketch, "error": found.error, "shortfall": found.shortfall}}
