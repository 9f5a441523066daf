"""Micro- and macro-F1 as costs: measures of a whole stream, against the naive statement and scikit-learn."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.model_selection import cross_val_score

import naive_costs as naive
from csdpp import CSDPP
from csdpp._kernels import memory as kernels
from csdpp.costs import F1, Hamming, MacroF1, MicroF1, resolve_cost
from csdpp.datasets import make_stream
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.evaluate import prequential, scorer
from learners import assert_same_state, data

every_measure = pytest.mark.parametrize("cost", [MicroF1(), MacroF1()], ids=lambda cost: cost.name)
WEIGHTINGS = ("ordered", "shapley", "marginal", "mean")


def labels(n=30, K=5, seed=0):
    """Truth and predictions with every corner: rows without labels, a label that never comes, one that always does."""
    rng = np.random.default_rng(seed)
    Y, Y_hat = rng.random((2, n, K)) < [[[0.4]], [[0.5]]]
    Y[:3], Y_hat[1:5] = False, False
    Y[:, 0], Y[:, 1], Y_hat[:, 0] = False, True, False
    return Y, Y_hat


# ------------------------------------------------------------------------------------------------- values


@every_measure
@pytest.mark.parametrize("n", [1, 2, 30])
def test_loss_is_scikit_learns(cost, n):
    Y, Y_hat = labels(n)
    expected = 1 - f1_score(Y, Y_hat, average=cost.name[:5], zero_division=0)
    assert cost.loss(Y, Y_hat) == pytest.approx(expected, abs=1e-15)
    assert naive.stream_loss(cost.name, Y, Y_hat) == pytest.approx(expected, abs=1e-15)
    assert cost(Y, Y_hat) == cost.loss(Y, Y_hat)
    for other in (sparse.csr_array, pd.DataFrame, lambda A: A.astype(float).tolist()):
        assert cost.loss(other(Y), other(Y_hat)) == cost.loss(Y, Y_hat)


@every_measure
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_weights_of_a_stream_are_the_naive_ones(cost, weighting):
    Y, Y_hat = labels()
    expected = [
        naive.stream_weights(cost.name, list(zip(Y[:t], Y_hat[:t], strict=True)), Y[t], Y_hat[t]) for t in range(len(Y))
    ]
    np.testing.assert_allclose(cost.weights(Y, Y_hat, weighting), expected, rtol=1e-12)
    np.testing.assert_array_equal(cost.weights(Y[0], Y_hat[0]), cost.weights(Y, Y_hat)[0])


def test_weights_approach_those_of_the_best_threshold():
    """F1 is highest where labels are predicted from probability F1 / 2 on: weights as (2 - F1) to F1."""
    rng = np.random.default_rng(1)
    Y = rng.random((20_000, 1)) < 0.3
    Y_hat = np.where(rng.random(Y.shape) < 0.8, Y, ~Y)
    for cost in (MicroF1(), MacroF1()):
        f1 = 1 - cost.loss(Y, Y_hat)
        last = cost.weights(Y, Y_hat)[-100:]
        ratio = last[Y[-100:]].mean() / last[~Y[-100:]].mean()
        assert ratio == pytest.approx((2 - f1) / f1, rel=1e-3)


@every_measure
def test_weights_do_not_fade(cost):
    Y, Y_hat = labels(2000)
    totals = cost.weights(Y, Y_hat)[:, 1:].sum(axis=1)
    assert totals[1500:].mean() == pytest.approx(totals[200:500].mean(), rel=0.1)


def test_a_rare_label_weighs_more_in_macro_f1():
    Y = np.zeros((100, 2), bool)
    Y[:50, 0], Y[::10, 1] = True, True
    last = MacroF1().weights(Y, Y)[90]
    assert last[1] > 3 * last[0]
    assert np.ptp(MicroF1().weights(Y, np.zeros_like(Y))[91]) == 0  # pooled: labels that are alike weigh alike


@pytest.mark.parametrize("forgetting", [1.0, 0.9])
@pytest.mark.parametrize("J", [1, 5])
def test_memory_counts_and_fades(forgetting, J):
    Y, Y_hat = labels()
    memory = np.zeros((4, J))
    for y, y_hat in zip(Y, Y_hat, strict=True):
        kernels.remember_inplace(memory, y, y_hat, np.empty(0, bool), forgetting)
    shares = forgetting ** np.arange(len(Y))[::-1]
    kinds = np.stack([Y & Y_hat, ~Y & Y_hat, Y & ~Y_hat, ~Y & ~Y_hat])
    counts = np.einsum("cnk,n->ck", kinds, shares)
    np.testing.assert_allclose(memory, counts if J > 1 else counts.sum(axis=1, keepdims=True), rtol=1e-12)


# ------------------------------------------------------------------------------------------ as a parameter


def test_names():
    assert resolve_cost("micro_f1") == resolve_cost(MicroF1) == MicroF1() != MacroF1()
    assert repr(MacroF1()) == "MacroF1()"
    assert pickle.loads(pickle.dumps(MicroF1())) == copy.deepcopy(MicroF1()) == MicroF1()


@every_measure
def test_the_users_cost_is_not_touched(cost):
    X, Y = data()
    model = CSDPP(2, cost=cost)
    before = dict(vars(cost))
    model.partial_fit(X, Y)
    assert vars(cost) == before
    assert model._engine.memory.sum() == Y.size
    twin = clone(model).partial_fit(X[:10], Y[:10])
    assert twin._engine.memory.sum() == 10 * Y.shape[1]
    assert model._engine.memory.sum() == Y.size
    with_name = CSDPP(2, cost=cost.name).partial_fit(X, Y)
    assert_same_state(model, with_name)


@every_measure
def test_weighting_makes_no_difference(cost):
    X, Y = data()
    models = [CSDPP(2, cost=cost, weighting=weighting).fit(X, Y) for weighting in WEIGHTINGS]
    for model in models[1:]:
        assert_same_state(models[0], model)


@every_measure
def test_a_learner_weighs_by_its_own_predictions(cost):
    """One label, one direction: what the ridge has seen is v, and v is the square root of the weights."""
    X, Y = data(40)
    Y = Y[:, :1]
    model = CSDPP(1, cost=cost, fit_intercept=False)
    Y_hat = model.prequential(X, Y)
    V = np.sqrt(cost.weights(Y, Y_hat)) * np.where(Y == 1, 1.0, -1.0)
    np.testing.assert_allclose(model.coef_.T, np.linalg.solve(np.eye(7) + X.T @ X, X.T @ V), atol=1e-10)


# ---------------------------------------------------------------------------------------------- evaluation


@every_measure
def test_prequential_measures_the_stream_so_far(cost):
    X, Y = data(120)
    result = prequential(CSDPP(2), X, Y, [cost, "f1"], keep_losses=True, progress=False)
    Y_hat = CSDPP(2).prequential(X, Y)
    expected = [cost.loss(Y[:t], Y_hat[:t]) for t in range(1, len(Y) + 1)]
    np.testing.assert_allclose(result.curves[cost.name], expected, rtol=0, atol=1e-13)
    assert result.averages[cost.name] == pytest.approx(1 - result.scores[f"f1_{cost.name[:5]}"], abs=1e-13)
    assert result.losses[cost.name].mean() == pytest.approx(result.averages[cost.name], abs=1e-13)
    assert result.averages["f1"] == pytest.approx(F1().loss(Y, Y_hat).mean(), abs=1e-13)


@every_measure
def test_scorer(cost):
    X, Y = data()
    scores = cross_val_score(CSDPP(2), X, Y, cv=3, scoring=scorer(cost.name))
    assert (scores < 0).all()
    model = CSDPP(2).fit(X, Y)
    assert scorer(cost)(model, X, Y) == -cost.loss(Y, model.predict(X))


@pytest.mark.parametrize("seed", range(3))
def test_each_cost_serves_the_measure_it_names(seed):
    stream = make_stream(n=1500, d=20, K=12, rank=4, random_state=seed)
    losses = {
        name: prequential(CSDPP(4, cost=name), stream.X, stream.Y, ["micro_f1", "macro_f1"], progress=False).averages
        for name in ("hamming", "f1", "micro_f1", "macro_f1")
    }
    for name in ("micro_f1", "macro_f1"):
        assert losses[name][name] < losses["hamming"][name]
        assert losses[name][name] < losses["f1"][name]


# -------------------------------------------------------------------------------------------------- errors


@every_measure
def test_refusals(cost):
    with pytest.raises(InvalidInput, match=f"{cost.name}: Y and Y_hat must have one shape"):
        cost.loss([[1, 0]], [[1, 0, 0]])
    with pytest.raises(InvalidInput, match="must hold 0/1 or boolean indicators"):
        cost.weights([[1, 2]], [[1, 0]])
    with pytest.raises(InvalidParameter, match="weighting must be one of"):
        cost.weights([[1, 0]], [[1, 0]], "unknown")
    assert Hamming() != cost
