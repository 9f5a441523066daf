"""Long streams and every numerical defect ever found, so that none comes back."""

import resource
import sys

import numpy as np
import pytest

from csdpp import CSDPP, OnlineBinaryRelevance


def long_stream(n, d=6, K=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (X @ rng.standard_normal((d, 3)) @ rng.standard_normal((3, K)) + rng.standard_normal((n, K)) > 0.8)


def resident():
    """Peak resident memory in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * (1024 if sys.platform == "darwin" else 1))


def assert_healthy(model, tolerance):
    """Q orthonormal, sigma in the capped simplex, everything finite."""
    Q, sigma = model.directions_, model.spectrum_
    assert np.abs(Q @ Q.T - np.eye(len(Q))).max() < tolerance
    assert sigma.min() >= 0
    assert sigma.max() <= 1
    assert sigma.sum() == pytest.approx(model.n_components_, abs=1e-12)
    assert np.isfinite(model._engine.regressor.W).all()


@pytest.mark.parametrize("recipe", [{}, {"basis": "pbt", "encoder": "label", "decode": "sample", "random_state": 0}])
def test_a_million_rows(recipe):
    """No drift of the state: A^-1 is the inverse of A, symmetric and positive; memory flat."""
    X, Y = long_stream(100_000)
    model = CSDPP(3, **recipe)
    model.partial_fit(X, Y)
    after_first = resident()
    for _ in range(9):
        model.partial_fit(X, Y)
    assert resident() - after_first < 20
    assert model.n_seen_ == 1_000_000
    assert_healthy(model, 1e-10)
    one = np.hstack([X, np.ones((len(X), 1))])
    A = np.eye(7) + 10 * one.T @ one
    S = model._engine.regressor.precision()
    np.testing.assert_array_equal(S, S.T)
    assert np.linalg.eigvalsh(S).min() > 0
    np.testing.assert_allclose(S @ A, np.eye(7), atol=1e-9)


def test_a_million_rows_of_binary_relevance_are_the_closed_form():
    X, Y = long_stream(100_000)
    model = OnlineBinaryRelevance()
    for _ in range(10):
        model.partial_fit(X, Y)
    one = np.hstack([X, np.ones((len(X), 1))])
    V = np.where(Y, 1.0, -1.0) / np.sqrt(8)
    H = np.linalg.solve(np.eye(7) + 10 * one.T @ one, 10 * one.T @ V)
    np.testing.assert_allclose(np.vstack([model.coef_.T, model.intercept_]), H, atol=1e-10)


def test_a_million_rows_in_float32():
    """What float32 costs: state to some 1e-3 of float64, predictions apart in a few rows of a thousand."""
    X, Y = long_stream(100_000)
    single, double = CSDPP(3, dtype="float32"), CSDPP(3)
    differ = []
    for _ in range(10):
        differ.append((single.prequential(X, Y) != double.prequential(X, Y)).mean())
    assert_healthy(single, 1e-5)
    assert max(differ) < 0.005
    assert differ[-1] < 0.002
    np.testing.assert_allclose(single.coef_, double.coef_, atol=2e-3 * np.abs(double.coef_).max())


def test_a_fit_that_equals_the_mean_is_no_direction():
    """Found: the first row of gradient descent is fitted exactly, what is left to encode is rounding, and was made
    a direction of full length."""
    X, Y = long_stream(1)
    model = CSDPP(2, regressor="gradient", cost="hamming").fit(X, Y)
    assert len(model.directions_) == 0
    assert (model.predict(X) == Y).all()


def test_repeated_rows_hold_one_direction():
    """Rounding in the residual of a label vector that is known already must not become a direction."""
    X = np.tile([[1.0, 0.5]], (200, 1))
    Y = np.tile([[1, 0, 1, 0, 0]], (200, 1))
    model = CSDPP(3, cost="hamming", encoder="label", reference="zero").fit(X, Y)
    assert model.directions_.shape == (1, 5)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("forgetting", [0.99, 0.8])
def test_forgetting_over_long_streams_with_a_silent_feature(forgetting, dtype):
    """Found: overflow, and a state that is not finite, once a feature had been zero for long."""
    X, Y = long_stream(12_000)
    X[2000:, 1] = 0.0
    with_it = CSDPP(3, cost="hamming", forgetting=forgetting, dtype=dtype)
    without = CSDPP(3, cost="hamming", forgetting=forgetting, dtype=dtype)
    wrong = (with_it.prequential(X, Y) != Y)[2000:].mean()
    assert wrong < (without.prequential(np.delete(X, 1, axis=1), Y) != Y)[2000:].mean() + 0.01
    assert np.isfinite(with_it.decision_function(X)).all()
    X[:3] = 0.99 * with_it._engine._limit  # as large as is let in: no overflow on the way, now or later
    with_it.partial_fit(X[:500], Y[:500])
    assert np.isfinite(with_it.decision_function(X[3:])).all()


@pytest.mark.parametrize("regressor", ["ridge", "gradient"])
def test_rows_of_no_weight_bring_no_direction(regressor):
    """Found: the rank cost gives a row without labels no weight, so v = o = 0, and with nothing to compare with
    the rounding of its fit became directions, not even orthogonal ones."""
    X, Y = long_stream(60)
    Y[1:] = False
    Y[0, 1:4] = True
    model = CSDPP(3, cost="rank", reference="zero", regressor=regressor).fit(X, Y)
    assert model.directions_.shape == (1, 8)
    assert np.abs(model.directions_ @ model.directions_.T - 1.0).max() < 1e-14


def test_eigenvalues_that_nearly_agree():
    """Found: a rotation that almost swaps two entries must swap their eigenvalues as well."""
    from csdpp._kernels.eigen import rank_one_eigen

    d = np.array([0.31881003, 0.31678529, 0.13663251])
    z = np.array([1.66093374e00, -1.62105770e-13, -1.16394723e-12])
    lam, V = np.empty(3), np.empty((3, 3))
    rank_one_eigen(d, z, 0.01, lam, V)
    np.testing.assert_allclose(lam, np.linalg.eigvalsh(np.diag(d) + 0.01 * np.outer(z, z))[::-1], atol=1e-15)


def test_large_features_do_not_depend_on_the_block_size():
    """Found: a block whose first rows are huge in one direction loses the digits of all others (a time stamp)."""
    X, Y = long_stream(500)
    X[:, 2] = 1.7e9 + np.arange(500)
    labels = [CSDPP(3, block_size=size).prequential(X, Y) for size in (1, 64)]
    np.testing.assert_array_equal(labels[0], labels[1])
    plain = CSDPP(3).prequential(np.delete(X, 2, axis=1), Y)
    assert (labels[0][250:] != Y[250:]).mean() < (plain[250:] != Y[250:]).mean() + 0.02
