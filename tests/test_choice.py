"""Candidates side by side, and regularization="auto"."""

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from csdpp import CSDPP, OnlineBinaryRelevance, OnlineCompressedSensing, OnlineRandomProjection, persist
from csdpp.choice import ChoosingEngine
from csdpp.costs import AnyCost, resolve_cost
from csdpp.errors import DataFormatError, InvalidInput, InvalidParameter
from csdpp.estimator import CANDIDATES
from csdpp.evaluate import prequential
from learners import data, state

AUTO = {
    "csdpp": CSDPP(2, regularization="auto"),
    "csdpp-pbt": CSDPP.published(2, regularization="auto", random_state=0),
    "csdpp-none": CSDPP.published(2, basis="none", regularization="auto", random_state=0),
    "csdpp-macro-f1": CSDPP(2, cost="macro_f1", regularization="auto", forgetting=0.98),
    "o-br": OnlineBinaryRelevance(regularization="auto"),
    "o-rand": OnlineRandomProjection(2, regularization="auto", random_state=0),
    "o-cs": OnlineCompressedSensing(0.6, regularization="auto", random_state=0),
}
every = pytest.mark.parametrize("learner", AUTO.values(), ids=AUTO.keys())


@pytest.fixture
def impatient(monkeypatch):
    """Candidates are dropped after 40, 80 and 160 rows."""
    monkeypatch.setattr("csdpp.estimator.PATIENCE", 40)


def by_hand(learner, X, Y, patience, scale=1.0):
    """What the leaders predicted, and which candidate led at the end: candidates run alone, compared row by row."""
    cost = resolve_cost(getattr(learner, "cost", "hamming"))
    labels = [clone(learner).set_params(regularization=c).prequential(X * scale, Y) for c in CANDIDATES]
    racing, out, sums = list(range(len(CANDIDATES))), [], np.zeros((len(Y) + 1, len(CANDIDATES)))
    for c, answers in enumerate(labels):
        if cost.name == "macro_f1":
            sums[1:, c] = [t * cost.loss(Y[:t], answers[:t]) for t in range(1, len(Y) + 1)]
        else:
            sums[1:, c] = np.cumsum(cost.loss(Y, answers))
    digits = 12 if cost.name == "macro_f1" else 17  # its shares add up to these sums only up to rounding
    for t in range(len(Y)):
        if t in (patience, 2 * patience, 4 * patience):
            worst = max(sums[t, racing])
            racing.remove([c for c in racing if sums[t, c] == worst][-1])
        leader = min(racing, key=lambda c: (round(sums[t, c], digits), c))
        out.append(labels[leader][t])
    leader = min(racing, key=lambda c: (round(sums[-1, c], digits), c))
    return np.array(out), CANDIDATES[leader] / scale**2, racing


@every
def test_the_best_so_far_answers(learner, impatient):
    X, Y = data(220)
    model = clone(learner)
    expected, chosen, racing = by_hand(learner, X, Y, 40)
    np.testing.assert_array_equal(model.prequential(X, Y), expected)
    assert model.regularization_ == chosen
    assert model._engine.live.tolist() == racing
    assert len(racing) == 1
    alone = clone(learner).set_params(regularization=chosen).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), alone.predict(X))


@every
def test_neither_blocks_nor_calls_matter(learner, impatient, monkeypatch):
    X, Y = data(220)
    whole = clone(learner)
    labels = whole.prequential(X, Y)
    monkeypatch.setattr("csdpp.choice._ROWS", 30)
    for size, parts in ((1, 1), (13, 6), (64, 220)):
        model = clone(learner).set_params(block_size=size)
        pieces = [model.prequential(X[p], Y[p]) for p in np.array_split(np.arange(len(X)), parts)]
        np.testing.assert_array_equal(np.concatenate(pieces), labels)
        assert model.regularization_ == whole.regularization_
        np.testing.assert_allclose(model._engine.averages, whole._engine.averages, rtol=1e-12)
        np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-9)


@every
def test_copies_go_on_alike(learner, impatient):
    X, Y = data(220)
    model = clone(learner).fit(X[:100], Y[:100])
    twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), persist.loads(persist.dumps(model))]
    labels = model.prequential(X[100:], Y[100:])
    for twin in twins:
        np.testing.assert_array_equal(twin.prequential(X[100:], Y[100:]), labels)
        for name, value in state(model).items():
            np.testing.assert_array_equal(value, state(twin)[name], err_msg=name)


@pytest.mark.parametrize("learner", [AUTO["csdpp"], AUTO["o-br"]], ids=["csdpp", "o-br"])
def test_scikit_learn_checks(learner):
    check_estimator(clone(learner), on_skip=None, on_fail="raise")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("power", [-6, -1, 1, 7])
def test_the_size_of_the_features_changes_nothing(dtype, form, power, impatient):
    """To the last bit: they are scaled by powers of two."""
    X, Y = data(220)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    X[:3] = 0.0  # nothing to be seen of a size before row 3
    model = CSDPP(2, regularization="auto", dtype=dtype).fit(form(X), Y)
    scaled = CSDPP(2, regularization="auto", dtype=dtype).fit(form(X * 8.0**power), Y)
    np.testing.assert_array_equal(model.decision_function(form(X)), scaled.decision_function(form(X * 8.0**power)))
    np.testing.assert_array_equal(model.coef_, scaled.coef_ * 8.0**power)
    np.testing.assert_array_equal(model.intercept_, scaled.intercept_)
    assert scaled.regularization_ == model.regularization_ * 64.0**power
    fit = X @ model.coef_.T + model.intercept_ - model.reference_
    U = model.directions_.T @ np.diag(model.spectrum_) @ model.directions_
    np.testing.assert_allclose(model.decision_function(form(X)), fit @ U + model.reference_, atol=1e-4)


def test_large_features_choose_as_by_hand(impatient):
    X, Y = data(220)
    learner = AUTO["csdpp"]
    model = clone(learner)
    labels = model.prequential(100.0 * X, Y)
    assert model._engine.scale == 8.0**-2
    expected, chosen, _ = by_hand(learner, 100.0 * X, Y, 40, scale=8.0**-2)
    np.testing.assert_array_equal(labels, expected)
    assert model.regularization_ == chosen


def test_through_prequential_evaluation(impatient):
    X, Y = data(220)
    result = prequential(CSDPP(2, regularization="auto"), X, Y, "f1", bound=True, progress=False)
    expected, _, _ = by_hand(CSDPP(2, regularization="auto"), X, Y, 40)
    assert result.averages["f1"] == pytest.approx(resolve_cost("f1").loss(Y, expected).mean())
    assert result.curves["prediction_error"].shape == (220,)


def test_classes_in_one_column(impatient):
    X, _ = data(220)
    y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = CSDPP(2, regularization="auto")
    assert (model.prequential(X, y)[110:] == y[110:]).mean() > 0.6
    assert model._engine.cost == resolve_cost("hamming")


def test_gradient_has_no_regularisation_to_choose():
    X, Y = data()
    model = CSDPP(2, regressor="gradient", regularization="auto").fit(X, Y)
    assert not isinstance(model._engine, ChoosingEngine)


def test_forgetting_reaches_every_candidate():
    X, Y = data()
    model = CSDPP(2, regularization="auto").fit(X, Y).set_params(forgetting=0.9).partial_fit(X, Y)
    assert [engine.regressor.forgetting for engine in model._engine.engines] == [0.9] * 4


def test_a_cost_that_fails_leaves_all_as_it_was():
    X, Y = data()
    calls, last = [], [0]

    def cost(y, y_hat):
        calls.append(1)
        if len(calls) == last[0]:
            raise RuntimeError("out of luck")
        return float(np.mean(y != y_hat))

    model = CSDPP(2, cost=AnyCost(cost), regularization="auto").fit(X[:20], Y[:20])
    before = copy.deepcopy(model)
    last[0] = 3 * len(calls)  # more than the first candidate asks on 130 rows
    with pytest.raises(RuntimeError, match="out of luck"):
        model.partial_fit(X[20:], Y[20:])
    np.testing.assert_array_equal(model.prequential(X[20:40], Y[20:40]), before.prequential(X[20:40], Y[20:40]))
    np.testing.assert_array_equal(model._engine.sums, before._engine.sums)


def test_features_beyond_all_size_are_refused_by_all():
    X, Y = data()
    model = OnlineBinaryRelevance(regularization="auto").fit(X, Y)
    sums = model._engine.sums.copy()
    with pytest.raises(InvalidInput, match="features must be at most"):
        model.partial_fit(X * 1e160, Y)
    np.testing.assert_array_equal(model._engine.sums, sums)


@pytest.mark.parametrize("value", ["best", None, 0.0, True])
def test_bad_regularisation_is_refused(value):
    X, Y = data()
    with pytest.raises(InvalidParameter, match='regularization must be a number positive, or "auto", got'):
        CSDPP(2, regularization=value).fit(X, Y)


def test_regularisation_is_known_once_fitted():
    X, Y = data()
    assert CSDPP(2, regularization=3.0).fit(X, Y).regularization_ == 3.0
    with pytest.raises(AttributeError, match="not fitted yet: it has no regularization_"):
        _ = CSDPP().regularization_


@pytest.mark.parametrize("live", [[], [0, 0], [1, 0], [0, 9], [1, 2], [0.0], None])
def test_a_file_with_odd_candidates_is_refused(live):
    """The first of them leads; they rise and are known."""
    X, Y = data()
    model = OnlineBinaryRelevance(regularization="auto").fit(X, Y)
    model._engine.leading = 0
    model._engine.live = None if live is None else np.array(live, None if live == [0.0] else np.int64)
    model._engine.engines = model._engine.engines[: 0 if live is None else len(live)] or model._engine.engines[:1]
    with pytest.raises(DataFormatError, match="candidates must be"):
        persist.loads(persist.dumps(model))
