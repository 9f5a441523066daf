"""Late answers: the buffer that pairs them, and evaluation with delay."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from sklearn.multioutput import MultiOutputClassifier

from csdpp import CSDPP, OnlineBinaryRelevance, persist
from csdpp.delay import DelayBuffer
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.evaluate import prequential
from learners import data


def test_answers_in_any_order_find_their_rows():
    rng = np.random.default_rng(0)
    buffer = DelayBuffer(capacity=100)
    for key in range(100):
        assert buffer.put(key, f"row {key}", key % 2) == []
    for key in rng.permutation(100).tolist():
        pending = buffer.pop(key)
        assert (pending.key, pending.x, pending.prediction, pending.at) == (key, f"row {key}", key % 2, float(key))
    assert len(buffer) == buffer.n_expired == buffer.n_unknown == 0
    assert buffer.pop(5) is None
    assert buffer.n_unknown == 1


def test_a_full_buffer_gives_up_the_oldest():
    buffer = DelayBuffer(capacity=2)
    assert [p.key for key in "abcd" for p in buffer.put(key, None)] == ["a", "b"]
    assert ("a" in buffer, "c" in buffer, len(buffer), buffer.n_expired) == (False, True, 2, 2)
    assert [p.key for p in buffer] == ["c", "d"]


def test_old_rows_are_given_up():
    buffer = DelayBuffer(max_age=10.0)
    buffer.put("a", 1, at=0.0)
    buffer.put("b", 2, at=8.0)
    assert buffer.put("c", 3, at=10.0) == []
    assert [p.key for p in buffer.expire(18.5)] == ["a", "b"]
    assert (len(buffer), buffer.n_expired) == (1, 2)
    rows = DelayBuffer(max_age=1)
    assert [p.key for key in "abc" for p in rows.put(key, None)] == ["a"]


@given(st.lists(st.tuples(st.sampled_from("pg"), st.integers(0, 8))), st.integers(1, 4), st.integers(0, 5) | st.none())
def test_against_a_plain_list(events, capacity, max_age):
    buffer, waiting, clock = DelayBuffer(capacity, max_age), [], 0
    for what, key in events:
        if what == "g":
            pending = buffer.pop(key)
            assert (pending is not None) == (key in [k for k, _ in waiting])
            waiting = [(k, at) for k, at in waiting if k != key]
        elif key in [k for k, _ in waiting]:
            with pytest.raises(InvalidInput, match="ids must be their own"):
                buffer.put(key, None)
        else:
            buffer.put(key, None)
            waiting = [(k, at) for k, at in waiting if max_age is None or clock - at <= max_age]
            waiting = [*waiting[-capacity + 1 :], (key, clock)] if capacity > 1 else [(key, clock)]
            clock += 1
        assert [(p.key, p.at) for p in buffer] == waiting


def test_a_buffer_is_saved_beside_its_learner(tmp_path):
    X, Y = data()
    model, buffer = CSDPP(2).fit(X[:50], Y[:50]), DelayBuffer(30, max_age=25.0)
    for i in range(50, 90):
        buffer.put(f"row {i}", X[i], model.predict(X[i : i + 1]))
    persist.save(model, tmp_path / "m", extra={"waiting": buffer.state()})
    again = DelayBuffer.from_state(persist.inspect(tmp_path / "m")["extra"]["waiting"])
    assert [p.key for p in again] == [p.key for p in buffer]
    assert (again.n_expired, again.capacity, again.max_age) == (14, 30, 25.0)
    np.testing.assert_array_equal(again.pop("row 70").x, X[70])
    assert [p.key for p in again.put("new", 0)] == [p.key for p in buffer.put("new", 0)]
    with pytest.raises(InvalidParameter, match="state must be what `state` gave"):
        DelayBuffer.from_state({"capacity": 3})


def test_what_cannot_be_is_said():
    with pytest.raises(InvalidParameter, match="capacity must be a whole number at least 1, got 0"):
        DelayBuffer(0)
    with pytest.raises(InvalidParameter, match="max_age must be a number not negative, got -1"):
        DelayBuffer(max_age=-1)
    buffer = DelayBuffer()
    buffer.put("a", 0, at=3.0)
    with pytest.raises(InvalidInput, match=r"at must not fall, got 2\.0 after 3\.0"):
        buffer.put("b", 0, at=2.0)


# ------------------------------------------------------------------------------------------- evaluation with delay


def by_hand(model, X, Y, delays):
    """With the buffer: predict, wait, learn what has come."""
    buffer, out = DelayBuffer(len(X)), []
    model.partial_fit(X[:0], Y[:0])
    for t in range(len(X)):
        out.append(model.predict(X[t : t + 1])[0])
        buffer.put(t, X[t : t + 1])
        for row in [p.key for p in buffer if p.key + delays[p.key] <= t]:
            pending = buffer.pop(row)
            model.partial_fit(pending.x, Y[row : row + 1])
    return np.array(out)


@pytest.mark.parametrize("delays", [np.full(150, 3.0), None], ids=["constant", "any order"])
def test_delayed_evaluation_is_the_handwritten_loop(delays):
    X, Y = data()
    if delays is None:
        delays = np.random.default_rng(0).integers(0, 30, 150).astype(float)
        delays[::10] = np.inf
    expected = by_hand(CSDPP(2), X, Y, delays)
    model = CSDPP(2)
    given_delay = 3 if (delays == 3).all() else delays
    result = prequential(model, sparse.csr_array(X), Y, "f1", delay=given_delay, keep_losses=True, progress=False)
    np.testing.assert_allclose(result.losses["f1"], CSDPP(2).fit(X, Y)._engine.cost.loss(Y, expected))
    assert model.n_seen_ == np.isfinite(delays).sum()


def test_no_delay_is_no_delay():
    X, Y = data()
    plain = prequential(CSDPP(2), X, Y, "f1", progress=False)
    assert prequential(CSDPP(2), X, Y, "f1", delay=np.zeros(150), progress=False).averages == plain.averages
    never = prequential(OnlineBinaryRelevance(), X, Y, "hamming", delay=np.inf, progress=False)
    assert never.averages["hamming"] == pytest.approx((Y == 0).mean())  # all labels are predicted


def test_models_from_elsewhere_and_frames():
    X, Y = data()
    model = MultiOutputClassifier(SGDClassifier(random_state=0))
    frame = pd.DataFrame(X)
    result = prequential(model, frame, Y, "f1", delay=5, classes=[[0, 1]] * 6, progress=False)
    assert 0.0 < result.averages["f1"] < 0.7


@pytest.mark.parametrize("delay", [-1, 1.5, [1, 2], "late", np.nan])
def test_bad_delays_are_refused(delay):
    X, Y = data()
    with pytest.raises(InvalidParameter, match="delay must be a whole number of rows"):
        prequential(CSDPP(2), X, Y, "f1", delay=delay, progress=False)


def test_delay_goes_alone():
    X, Y = data()
    with pytest.raises(InvalidParameter, match="delay must go with batch_size=1"):
        prequential(CSDPP(2), X, Y, "f1", delay=1, batch_size=2, progress=False)
