"""BLAS threads are limited where they hurt, and given back; in-place calls do what they say."""

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from csdpp import CSDPP, OnlineBinaryRelevance, blas, engine
from csdpp.costs import AnyCost
from learners import data

BLAS = ThreadpoolController().select(user_api="blas")


def numbers():
    return {library.num_threads for library in BLAS.lib_controllers}


@pytest.fixture
def _two_threads():
    with threadpool_limits(2, user_api="blas"):
        if numbers() != {2}:
            pytest.skip("this BLAS knows one thread only")
        yield


def seen_by_the_cost(model, X, Y):
    """How many threads BLAS has while the rows of a block unfold."""
    seen = set()

    def cost(y, y_hat):
        seen.update(numbers())
        return float(np.mean(y != y_hat))

    model.set_params(cost=AnyCost(cost, vectorized=False)).fit(X, Y)
    return seen


@pytest.mark.usefixtures("_two_threads")
def test_one_thread_on_small_matrices(monkeypatch):
    X, Y = data(20)
    assert seen_by_the_cost(CSDPP(2), X, Y) == {1}
    assert numbers() == {2}
    monkeypatch.setattr(engine, "LARGE", 1)  # now everything counts as large, but for the rows of a block
    assert seen_by_the_cost(CSDPP(2), X, Y) == {1}
    assert numbers() == {2}


@pytest.mark.usefixtures("_two_threads")
def test_threads_are_given_back_after_an_error():
    X, Y = data(20)

    def cost(y, y_hat):
        raise RuntimeError

    with pytest.raises(RuntimeError):
        CSDPP(2, cost=AnyCost(cost)).fit(X, Y)
    assert numbers() == {2}


@pytest.mark.usefixtures("_two_threads")
def test_all_threads_on_large_matrices(monkeypatch):
    X, Y = data(20)
    model = OnlineBinaryRelevance().fit(X, Y)
    seen = []
    monkeypatch.setattr(model._engine, "_decide", lambda scores: seen.append(numbers()) or scores >= 0)
    model.predict(X)
    monkeypatch.setattr(engine, "LARGE", 1)
    model.predict(X)
    model.partial_fit(X, Y)
    assert seen == [{1}, {2}, {2}]


def test_nothing_to_do_where_there_is_one_thread():
    with threadpool_limits(1, user_api="blas"), blas.one_blas_thread() as _:
        assert numbers() == {1}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_calls_in_place(dtype):
    rng = np.random.default_rng(0)
    L = np.tril(rng.standard_normal((5, 5)) + 4 * np.eye(5)).astype(dtype)
    B = rng.standard_normal((5, 3)).astype(dtype)
    close = {"rtol": 1e-4 if dtype == np.float32 else 1e-12}
    np.testing.assert_allclose(blas.solve_lower_inplace(L, B.copy()), np.linalg.solve(L, B), **close)
    np.testing.assert_allclose(blas.solve_lower_inplace(L, B.copy(), transposed=True), np.linalg.solve(L.T, B), **close)
    unit = np.tril(L, -1) + np.eye(5, dtype=dtype)
    np.testing.assert_allclose(blas.solve_lower_inplace(L, B.copy(), unit=True), np.linalg.solve(unit, B), **close)
    C = L @ L.T
    root, good = blas.cholesky_inplace(C.copy())
    assert good == 5
    np.testing.assert_allclose(root, np.linalg.cholesky(C), **close)
    C[3, 3] = -1.0
    assert blas.cholesky_inplace(C.copy())[1] == 3
    target = rng.standard_normal((5, 3)).astype(dtype)
    expected = target - L @ B
    blas.subtract_product_inplace(target, L, B)
    np.testing.assert_allclose(target, expected, **close)
    with pytest.raises(AssertionError):
        blas.subtract_product_inplace(np.asfortranarray(target), L, B)
