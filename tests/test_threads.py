"""BLAS threads are limited where they hurt, and given back."""

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from csdpp import CSDPP, OnlineBinaryRelevance, engine, threads
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
    with threadpool_limits(1, user_api="blas"), threads.one_blas_thread() as _:
        assert numbers() == {1}
