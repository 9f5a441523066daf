"""Parameters chosen on the stream: against candidates run alone, halving, files, growth, contract."""

import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from csdpp import CSDPP, OnlineBinaryRelevance, OnlineCompressedSensing, OnlineRandomProjection, container, persist
from csdpp.costs import AnyCost, resolve_cost
from csdpp.errors import DataFormatError, InvalidInput, InvalidParameter
from csdpp.evaluate import prequential
from csdpp.tuning import OnlineTuner, grid, usual_candidates
from learners import data

CANDIDATES = [
    CSDPP(2, regularization=10.0),
    CSDPP(3, weighting="marginal", forgetting=0.99),
    CSDPP.published(2, random_state=0),
    OnlineBinaryRelevance(),
    OnlineBinaryRelevance(regressor="gradient"),
    CSDPP(2, rate=0.1, block_size=16),
]


def tuner(**options):
    return OnlineTuner([clone(c) for c in CANDIDATES], patience=options.pop("patience", 40), **options)


@pytest.mark.parametrize("cost", ["f1", "hamming", "macro_f1"])
@pytest.mark.parametrize("patience", [40, None])
def test_the_best_so_far_answers_and_the_worse_half_goes(cost, patience):
    X, Y = data()
    labels = [clone(c).prequential(X, Y) for c in CANDIDATES]
    losses = []
    for answers in labels:
        if cost == "macro_f1":
            sums = [t * resolve_cost(cost).loss(Y[:t], answers[:t]) for t in range(1, 151)]
        else:
            sums = np.cumsum(resolve_cost(cost).loss(Y, answers))
        # Shares of a measure of the stream add up to it only up to rounding.
        losses.append(np.concatenate([[0.0], np.round(sums, 9) if cost == "macro_f1" else sums]))
    racing, expected = list(range(6)), []
    for t in range(150):
        if patience and t in (40, 80):
            for _ in range(len(racing) // 2):
                racing.remove(max(racing, key=lambda c: (losses[c][t], c)))
        expected.append(labels[min(racing, key=lambda c: (losses[c][t], c))][t])
    model = tuner(cost=cost, patience=patience)
    np.testing.assert_array_equal(model.prequential(X, Y), expected)
    assert model.live_.tolist() == racing
    assert len(racing) == (6 if patience is None else 2)
    best = min(racing, key=lambda c: (losses[c][150], c))
    assert model.best_params_ == CANDIDATES[best].get_params()
    np.testing.assert_array_equal(model.predict(X), clone(CANDIDATES[best]).fit(X, Y).predict(X))


def test_files_copies_and_cuts():
    X, Y = data()
    whole = tuner()
    expected, got, model = whole.prequential(X, Y), [], tuner()
    for rows in np.split(np.arange(150), [1, 30, 64, 100]):
        got.append(model.prequential(X[rows], Y[rows]))
        twin = persist.loads(persist.dumps(model))
        assert persist.dumps(twin) == persist.dumps(model)
        assert repr(twin.get_params()) == repr(model.get_params())
        other = copy.deepcopy(model)
        model = twin
        np.testing.assert_array_equal(other.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(np.vstack(got), expected)
    np.testing.assert_array_equal(model.live_, whole.live_)
    np.testing.assert_array_equal(model.predict_proba(X).shape, Y.shape)
    fresh = persist.loads(persist.dumps(OnlineTuner(cost="hamming")))
    assert (fresh.candidates, fresh.cost, fresh.patience) == (None, "hamming", 512)


def test_no_candidate_that_was_dropped_is_made_again(monkeypatch):
    X, Y = data()
    content = persist.dumps(tuner().fit(X, Y))
    made = []
    start = OnlineBinaryRelevance._start
    monkeypatch.setattr(OnlineBinaryRelevance, "_start", lambda self, *a: made.append(1) or start(self, *a))
    live = persist.loads(content).live_.tolist()
    assert len(made) == sum(isinstance(CANDIDATES[c], OnlineBinaryRelevance) for c in live)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda h: h["parameters"]["candidates"]["$list"][0].update({"$learner": ["OnlineTuner", {}]}),
            "cannot be read",
        ),
        (
            lambda h: h["parameters"]["candidates"]["$list"][0].update({"$learner": ["CSDPP", {"x": 1}]}),
            "cannot be read",
        ),
        (lambda h: h["parameters"]["candidates"]["$list"].pop(), "must be some of those of the parameters"),
        (lambda h: h["parameters"].update(candidates=3), "do not fit together"),
        (lambda h: h["state"].update(leading=77), "the leader one of them"),
        (lambda h: h["fitted"].update(n_features_in_=10**9), "features and labels must be counted|regressor must be"),
    ],
)
def test_hostile_files(change, message):
    X, Y = data()
    header, arrays = container.unpack(persist.dumps(tuner(patience=None).fit(X, Y)), "good")
    del header["arrays"]
    change(header)
    with pytest.raises(DataFormatError, match=message):
        persist.loads(b"".join(container.pack(header, arrays)))


def test_what_cannot_be_saved_is_said():
    with pytest.raises(InvalidInput, match="candidates must have no functions to be saved, got one as rate"):
        persist.dumps(OnlineTuner([CSDPP(2, rate=lambda t: 1.0 / t)]))


def test_labels_and_features_come_and_go():
    X, Y = data()
    model = tuner(patience=None).fit(X[:, :5], Y[:, :4])
    model.add_labels(2).add_features(2).partial_fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert model.drop_labels([0]).predict_proba(X).shape == (150, 5)


def test_codes_grow_with_the_labels_where_they_are_shares_of_them_and_files_know():
    """Those of the baselines keep their length."""
    X, Y = data()
    candidates = [CSDPP(0.5), CSDPP.published(0.5, random_state=0), CSDPP(1), OnlineRandomProjection(0.5)]
    model = OnlineTuner([*candidates, OnlineBinaryRelevance()], patience=None).fit(X[:60], Y[:60, :2])

    def sizes():
        return [engine.regressor.W.shape[1] for engine in model._engine.engines[3:]], [
            engine.recipe.M for engine in model._engine.engines[:3]
        ]

    assert sizes() == ([1, 2], [1, 1, 1])
    for change, K in [(lambda m: m.add_labels(4), 6), (lambda m: m.drop_labels([0, 2, 4]), 3)]:
        change(model)
        again = persist.loads(persist.dumps(model))
        assert sizes() == ([1, K], [K // 2 + K % 2, K // 2 + K % 2, 1])
        for part in (slice(60, 100), slice(100, 150)):
            got, expected = (m.prequential(X[part], Y[part, :K]) for m in (again, model))
            np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(again.averages_, model.averages_)
    stuck = OnlineTuner([CSDPP(0.5), CSDPP(3)], patience=None).fit(X, Y)
    with pytest.raises(InvalidParameter, match="n_components must be at most the 2 labels, got 3"):
        stuck.drop_labels([0, 1, 2, 3])
    assert len(stuck.classes_) == 6
    np.testing.assert_array_equal(persist.loads(persist.dumps(stuck)).predict(X), stuck.predict(X))


def test_through_prequential_evaluation():
    X, Y = data()
    result = prequential(tuner(), X, Y, "f1", progress=False)
    assert result.averages["f1"] == pytest.approx(resolve_cost("f1").loss(Y, tuner().prequential(X, Y)).mean())


@pytest.mark.parametrize(
    "learner", [OnlineTuner(), OnlineTuner([CSDPP(2), OnlineCompressedSensing(0.6)], patience=None)]
)
def test_scikit_learn_checks(learner):
    check_estimator(learner, on_skip=None, on_fail="raise")


def test_usual_candidates_are_different():
    found = [repr(one.get_params()) for one in usual_candidates("f1")]
    assert len(set(found)) == len(found)
    assert grid(CSDPP(3))[0].get_params() == CSDPP(3).get_params()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": []}, "candidates must be a list of learners, got"),
        ({"candidates": [3]}, "candidates must be online learners of this package, got 3"),
        ({"candidates": [OnlineTuner()]}, "candidates must be online learners of this package, got OnlineTuner"),
        ({"candidates": [CSDPP(regularization="auto")]}, "candidates must have numbers as regularization"),
        ({"candidates": [CSDPP(), CSDPP(dtype="float32")]}, "candidates must be of one dtype"),
        ({"candidates": [CSDPP(rate=-1)]}, "rate must be a positive number"),
        ({"patience": 0}, "patience must be a whole number at least 1, or None, got 0"),
        ({"forgetting": 0.0}, r"forgetting must be a number in \(0, 1\], got 0"),
        ({"cost": "best"}, "cost must be one of"),
    ],
)
def test_what_cannot_be_is_said(options, message):
    X, Y = data()
    with pytest.raises(InvalidParameter, match=message):
        OnlineTuner(**options).fit(X, Y)


def test_nothing_is_there_before_fitting():
    for name in ("best_params_", "live_", "averages_"):
        with pytest.raises(AttributeError, match=f"not fitted yet: it has no {name}"):
            getattr(OnlineTuner(), name)


def test_a_cost_of_ones_own():
    X, Y = data(60)
    cost = AnyCost(lambda y, y_hat: float((y != y_hat).any()), name="exact")
    model = OnlineTuner([CSDPP(2), CSDPP(3)], cost=cost, patience=20).fit(X, Y)
    again = persist.loads(persist.dumps(model), cost=cost)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
