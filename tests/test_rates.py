"""Rate schedules against the naive statement, and parameters that change amid a stream."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import naive
from csdpp import CSDPP
from csdpp.errors import InvalidParameter
from csdpp.rates import Constant
from learners import LEARNERS, assert_same_state, data
from streams import STREAMS
from test_learner import assert_equal_state, assert_same


def slowing(t):
    return 8.0 / (t + 3.0)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("recipe", [{}, {"basis": "pbt", "encoder": "label", "decode": "sample"}])
@pytest.mark.parametrize("forgetting", [1.0, 0.95])
def test_schedules_equal_naive(name, recipe, forgetting):
    X, Y = STREAMS[name]()
    M = min(2, Y.shape[1])
    assert_same(X, Y, M, cost="f1", rate=slowing, forgetting=forgetting, **recipe)
    fast = CSDPP(M, rate=Constant(0.4), **recipe, random_state=3).fit(X, Y)
    again = CSDPP(M, rate=lambda t: 0.4, **recipe, random_state=3).fit(X, Y)
    assert_same_state(fast, again)


def test_a_number_is_its_schedule():
    X, Y = data()
    assert_same_state(CSDPP(2, rate=3.0).fit(X, Y), CSDPP(2, rate=lambda t: 3.0 / np.sqrt(t)).fit(X, Y), atol=1e-12)


def test_a_schedule_asks_for_each_row_once_however_rows_come():
    X, Y = data()
    asked = []

    def rate(t):
        asked.extend(t)
        return slowing(t)

    whole = CSDPP(2, rate=slowing).fit(X, Y)
    parts = CSDPP(2, rate=slowing, block_size=5)
    parts.set_params(rate=rate)
    for part in np.array_split(np.arange(len(X)), 7):
        parts.partial_fit(X[part], Y[part])
    assert_same_state(whole, parts, atol=1e-10)
    assert [t for t in asked if t > 1] == list(range(2, len(X) + 1))  # once more for row 1, by the checks


def test_schedules_are_cloned_and_pickled():
    X, Y = data()
    model = CSDPP(2, rate=Constant(0.2)).fit(X[:50], Y[:50])
    assert clone(model).rate == Constant(0.2)
    back = pickle.loads(pickle.dumps(model))
    assert_same_state(model.partial_fit(X[50:], Y[50:]), back.partial_fit(X[50:], Y[50:]))


@pytest.mark.parametrize(
    "rate", [0.0, -1.0, np.inf, True, "fast", None, lambda t: -t, lambda t: [1.0, 2.0], lambda t: None, Constant("x")]
)
def test_bad_rates_are_refused(rate):
    X, Y = data()
    with pytest.raises((InvalidParameter, ValueError), match=r"rate must|could not convert"):
        CSDPP(2, rate=rate).fit(X, Y)


def test_a_schedule_that_turns_bad_changes_nothing():
    X, Y = data()
    model = CSDPP(2, rate=lambda t: np.where(t < 100, 1.0, np.nan)).fit(X[:90], Y[:90])
    before = copy.deepcopy(model)
    with pytest.raises(InvalidParameter, match="for each of the 60 rows after row 90"):
        model.partial_fit(X[90:], Y[90:])
    assert_same_state(model, before)
    assert model.n_seen_ == 90


# ------------------------------------------------------------------------------- changed amid a stream


@pytest.mark.parametrize("basis", ["pbc", "pbt"])
@pytest.mark.parametrize("regressor", ["ridge", "gradient"])
def test_changes_amid_a_stream_equal_naive(basis, regressor):
    X, Y = data()
    options = {"basis": basis, "encoder": "label", "regressor": regressor}
    fast = CSDPP(2, **options, block_size=7).fit(X[:70], Y[:70])
    fast.set_params(forgetting=0.9, rate=5.0, step=0.5, block_size=16)
    labels = fast.prequential(X[70:], Y[70:])
    one = np.hstack([X, np.ones((len(X), 1))])
    slow = naive.CSDPP(8, 6, 2, "f1", **options)
    expected = [slow.step(x, y) for x, y in zip(one[:70], Y[:70], strict=True)]
    slow.forgetting = slow.regressor.forgetting = 0.9
    slow.rate = 5.0
    if regressor == "gradient":
        slow.regressor.step = 0.5
    expected = [slow.step(x, y) for x, y in zip(one[70:], Y[70:], strict=True)]
    np.testing.assert_array_equal(labels, expected)
    assert_equal_state(fast, slow)
    assert fast._engine.block_size == 16


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())
def test_every_learner_can_change_its_forgetting(learner):
    X, Y = data()
    model = clone(learner).set_params(forgetting=1.0).fit(X, Y)
    kept = copy.deepcopy(model).partial_fit(X, Y)
    model.set_params(forgetting=0.9).partial_fit(X, Y)
    assert np.abs(model._engine.regressor.W - kept._engine.regressor.W).max() > 1e-6


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())
def test_a_change_before_the_first_row_is_a_parameter(learner):
    X, Y = data()
    late = clone(learner).partial_fit(X[:0], Y[:0]).set_params(forgetting=0.93, step=0.4).partial_fit(X, Y)
    assert_same_state(late, clone(learner).set_params(forgetting=0.93, step=0.4).fit(X, Y))


def test_one_column_of_classes_can_change_too():
    X, Y = data()
    model = CSDPP(2).partial_fit(X, Y[:, 0], classes=[0, 1]).set_params(forgetting=0.9).partial_fit(X, Y[:, 0])
    assert model._engine.regressor.forgetting == 0.9


def test_a_bad_change_is_refused_and_changes_nothing():
    X, Y = data()
    model = CSDPP(2).fit(X, Y)
    before = copy.deepcopy(model)
    model.set_params(forgetting=1.5)
    with pytest.raises(InvalidParameter, match=r"forgetting must be a number in \(0, 1\], got 1.5"):
        model.partial_fit(X, Y)
    assert_same_state(model, before)
    assert_same_state(model.set_params(forgetting=1.0).partial_fit(X, Y), before.partial_fit(X, Y))
