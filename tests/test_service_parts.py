"""The parts of the service by themselves: features as bytes, answers, the tally against its plain statement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi")
from csdpp.costs import resolve_cost
from csdpp.service.learning import COSTS, Tally
from csdpp.service.rows import Answer, Names, dense_rows, label_rows, pack_features, unpack_features
from csdpp.service.telemetry import EDGES, Latency

places = st.lists(st.integers(0, 40), unique=True, max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(places.flatmap(lambda at: st.tuples(st.just(at), st.lists(numbers, min_size=len(at), max_size=len(at)))))
def test_features_are_kept_in_one_way_and_to_the_bit(pair):
    at, values = pair
    data = pack_features(at, values)
    kept = {place: value for place, value in zip(at, values, strict=True) if value != 0.0}
    got_at, got = unpack_features(data)
    assert dict(zip(got_at.tolist(), got.tolist(), strict=True)) == kept
    assert got_at.tolist() == sorted(kept)
    assert pack_features([99, *at[::-1]], [0.0, *values[::-1]]) == data
    assert np.array_equal(dense_rows([data], 41)[0], [kept.get(place, 0.0) for place in range(41)])


labels = st.sets(st.integers(0, 5)).flatmap(
    lambda yes: st.tuples(st.just(yes), st.none() | st.sets(st.integers(0, 5)).map(lambda no: no - yes))
)


@given(labels, labels)
def test_answers_include_what_they_say(first, second):
    one, two = (Answer(sorted(yes), None if no is None else sorted(no)) for yes, no in (first, second))
    assert Answer.parse(one.text()) == one
    assert one.includes(one)

    def says(pair):  # of a seventh label, which no answer names, a complete one says that it does not hold
        yes, no = pair
        return {k: k in yes for k in range(7) if no is None or k in yes or k in no}

    assert one.includes(two) == (says(second).items() <= says(first).items())


def test_labels_left_open_are_nan():
    assert label_rows([Answer([1], None)], 3).dtype == np.bool_
    Y = label_rows([Answer([1], None), Answer([0], [2]), Answer([], [])], 3)
    assert np.array_equal(Y, [[0, 1, 0], [1, np.nan, 0], [np.nan] * 3], equal_nan=True)


def test_names_that_were_added_in_vain_are_forgotten():
    names = Names(grow=True, max_features=3, max_labels=3, max_value=1.0)
    names.add("feature", "a")
    names.answer(["x", "y"])
    names.encode({"b": 1.0})
    names.forget(1, 1)
    assert (names.features, names.labels, names.feature_list, names.label_list) == ({"a": 0}, {"x": 0}, ["a"], ["x"])


@pytest.mark.parametrize("partial", [False, True])
def test_tally_is_the_mean_of_the_costs(partial):
    rng = np.random.default_rng(0)
    Y, Y_hat = rng.random((700, 5)) < 0.4, rng.random((700, 5)) < 0.4
    told = rng.random((700, 5)) < 0.7 if partial else np.ones((700, 5), bool)
    tally = Tally()
    for start in range(0, 700, 70):  # the last label is not known before row 210
        rows, K = slice(start, start + 70), 5 if start >= 210 else 4
        truth = np.where(told[rows], Y[rows], np.nan) if partial else Y[rows]
        tally.add(truth[:, :K], Y_hat[rows, :K])
    Y[:210, 4] = Y_hat[:210, 4] = False
    for place, name in enumerate(COSTS):
        losses = []
        for i in range(700):
            known = told[i] & (np.arange(5) < (5 if i >= 210 else 4))
            losses.append(resolve_cost(name).loss(Y[i, known], Y_hat[i, known]) if known.any() else 0.0)
        assert tally.facts()["costs"][name] == pytest.approx(np.mean(losses), rel=1e-12)
        assert tally.curve[-1][1 + place] == pytest.approx(np.mean(losses[: int(tally.curve[-1][0])]), rel=1e-12)
    for k, facts in enumerate(tally.labels([f"l{k}" for k in range(5)])):
        known = told[:, k] | ((np.arange(700) < 210) & (k == 4))
        counts = [
            np.sum(known & (Y[:, k] == y) & (Y_hat[:, k] == said)) for y, said in ((1, 1), (0, 1), (1, 0), (0, 0))
        ]
        assert [facts[name] for name in ("tp", "fp", "fn", "tn")] == counts
        assert facts["precision"] == counts[0] / (counts[0] + counts[1])
    again = Tally.of(tally.state())
    again.add(Y[:1], Y_hat[:1])
    tally.add(Y[:1], Y_hat[:1])
    assert again.facts() == tally.facts()
    assert again.curve == tally.curve


def test_curve_stays_short_and_even():
    tally = Tally()
    row = np.zeros((5000, 1), bool)
    tally.add(row, row)
    rows = [point[0] for point in tally.curve]
    assert 200 < len(rows) < 520
    assert set(np.diff(rows)) == {tally.every}


def test_percentiles_are_upper_ends_of_buckets():
    latency = Latency()
    for milliseconds in range(1, 101):
        latency.add(1e-3 * milliseconds)
    facts = latency.facts()
    for name, true in (("p50_ms", 50), ("p90_ms", 90), ("p99_ms", 99)):
        assert true <= facts[name] <= true * 1.25
    latency.add(1e9)
    assert sum(latency.total) == 101
    assert len(latency.total) == len(EDGES) + 1
