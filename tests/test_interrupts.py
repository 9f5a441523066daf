"""Ctrl-C while a learner learns: it takes effect between blocks, and nothing is lost or torn."""

import os
import signal
import threading

import numpy as np
import pytest
from sklearn.base import clone

from csdpp import CSDPP, OnlineBinaryRelevance, OnlineCompressedSensing
from csdpp.costs import AnyCost
from csdpp.interrupts import Interrupted, Interrupts
from csdpp.regressors import OnlineRidge
from learners import assert_same_state, data

LEARNERS = {
    "pbc": CSDPP(2),
    "pbt": CSDPP.published(2, cost="f1", random_state=0),
    "micro-f1": CSDPP(2, cost="micro_f1"),
    "o-br": OnlineBinaryRelevance(),
    "o-cs": OnlineCompressedSensing(0.6, random_state=0),
}


def interrupt_at(regressor, call, step):
    """Ctrl-C just before call number ``call`` of one of its two steps."""
    inner, calls = getattr(regressor, step), []

    def interrupted(*arguments, **options):
        calls.append(step)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGINT)
        return inner(*arguments, **options)

    setattr(regressor, step, interrupted)


@pytest.mark.parametrize("step", ["open", "close"])
@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())
def test_rows_of_whole_blocks_are_learned_and_counted(learner, step):
    X, Y = data()
    model, twin = (clone(learner).set_params(block_size=16).fit(X[:50], Y[:50]) for _ in range(2))
    interrupt_at(model._engine.regressor, 3, step)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.partial_fit(X, Y)
    assert caught.value.rows == 48  # three blocks
    assert model.n_seen_ == 98
    twin.partial_fit(X[:48], Y[:48])
    assert_same_state(model, twin)
    model.partial_fit(X[48:], Y[48:])
    twin.partial_fit(X[48:], Y[48:])
    assert_same_state(model, twin)
    assert model.n_seen_ == twin.n_seen_ == 200


def test_candidates_side_by_side_stay_side_by_side():
    X, Y = data(3000)
    model, twin = (CSDPP(2, regularization="auto").fit(X[:50], Y[:50]) for _ in range(2))
    interrupt_at(model._engine.engines[1].regressor, 3, "close")
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, Y)
    assert model.n_seen_ == 50 + 1024
    twin.partial_fit(X[:1024], Y[:1024])
    for a, b in zip(model._engine.engines, twin._engine.engines, strict=True):
        np.testing.assert_array_equal(a.regressor.W, b.regressor.W)


def test_a_first_call_leaves_nothing_behind(monkeypatch):
    X, Y = data()
    close = OnlineRidge.close

    def interrupted(*arguments, **options):
        os.kill(os.getpid(), signal.SIGINT)
        close(*arguments, **options)

    monkeypatch.setattr(OnlineRidge, "close", interrupted)
    model = CSDPP(2, block_size=16)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "n_seen_")


def test_a_function_of_the_user_can_be_interrupted_at_any_time():
    X, Y = data()
    left = [10**9]

    def endless(y, y_hat):
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGINT)
        return float((y != y_hat).mean())

    model, twin = (CSDPP(2, cost=AnyCost(endless), block_size=16).fit(X[:20], Y[:20]) for _ in range(2))
    left[0] = 500
    with pytest.raises(KeyboardInterrupt) as caught:
        model.partial_fit(X, Y)
    assert not isinstance(caught.value, Interrupted)
    assert model.n_seen_ == 20
    assert_same_state(model, twin)


def test_the_handler_of_the_program_is_asked_and_given_back():
    asked = []
    before = signal.signal(signal.SIGINT, lambda number, frame: asked.append(number))
    mine = signal.getsignal(signal.SIGINT)
    try:
        X, Y = data()
        model = CSDPP(2, block_size=16).fit(X, Y)
        interrupt_at(model._engine.regressor, 2, "close")
        model.partial_fit(X, Y)  # it does not raise, so neither do we
        assert asked == [signal.SIGINT]
        assert model.n_seen_ == 300
        assert signal.getsignal(signal.SIGINT) is mine
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        model.partial_fit(X, Y)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_error_is_not_replaced_by_ctrl_c():
    def fail():
        with Interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        fail()


def test_other_threads_learn_as_ever():
    X, Y = data()
    model, twin = CSDPP(2), CSDPP(2).fit(X, Y)
    thread = threading.Thread(target=model.fit, args=(X, Y))
    thread.start()
    thread.join()
    assert_same_state(model, twin)
