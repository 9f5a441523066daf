"""RiverCSDPP: river's own checks, the same numbers as CSDPP, and streams that change as they go."""

import copy
import pickle
import warnings
from collections import Counter, defaultdict

import numpy as np
import pytest
from river import checks, compose, datasets, evaluate, feature_extraction, metrics, preprocessing
from river.checks import common
from river.datasets.base import RemoteDataset

from csdpp import CSDPP
from csdpp.costs import F1, AnyCost, CountCost
from csdpp.errors import CsdppError, InvalidInput, InvalidParameter
from csdpp.river import RiverCSDPP
from streams import correlated

# Checks in river's list that river does not ask of a multi-label classifier, each with the reason.
NOT_ASKED = {
    "check_has_tag": "not a check: a helper that takes the tag to look for",
    "check_transform_one": "for transformers",
    "check_transform_many_matches_transform_one": "for transformers",
    "check_predict_many_matches_predict_one": "for mini-batches, which river has for single labels only",
    "check_predict_proba_many_matches_predict_proba_one": "for mini-batches, which river has for single labels only",
    "check_learn_many_matches_learn_one": "for mini-batches, which river has for single labels only",
    "check_debug_one": "for models that have debug_one",
    "check_mutable_attributes_exist": "for models that declare mutable attributes",
    "check_wrapper_accepts_kwargs": "for wrappers of other river models",
}


def yield_checks():
    """River's checks for both parameter sets, on the yeast set of its wheel instead of a download."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(datasets, "Music", datasets.Yeast)
        for name, params in zip(("default", "published"), RiverCSDPP._unit_test_params(), strict=True):
            model = RiverCSDPP(**params)
            for check in checks.yield_checks(model):
                yield pytest.param(model, check, id=f"{name}-{check.__name__}")


CHECKS = list(yield_checks())


@pytest.fixture(autouse=True)
def _no_download(monkeypatch):
    def download(self, *args, **options):
        pytest.fail(f"{self} would be downloaded")

    monkeypatch.setattr(RemoteDataset, "download", download)


@pytest.fixture(scope="module")
def yeast():
    """The first 400 rows of the yeast stream: dicts and arrays."""
    rows = list(datasets.Yeast().take(400))
    return rows, np.array([list(x.values()) for x, _ in rows]), np.array([list(y.values()) for _, y in rows])


def progress(model, rows):
    """What the model predicts before it learns each row."""
    predictions = []
    for x, y in rows:
        predictions.append(model.predict_one(x))
        model.learn_one(x, y)
    return predictions


# ---- river's contract


@pytest.mark.parametrize(("model", "check"), CHECKS)
def test_passes_check_of_river(model, check):
    check(model.clone())


def test_no_check_of_river_is_left_out():
    names = Counter(param.values[1].__name__ for param in CHECKS)
    offered = {name for name in vars(common) if name.startswith("check_")}
    assert set(names) | set(NOT_ASKED) == offered
    assert not set(names) & set(NOT_ASKED)
    assert set(names.values()) == {2}  # once for each parameter set
    assert RiverCSDPP()._unit_test_skips() == set()


def test_passes_check_estimator_as_river_calls_it(monkeypatch):
    monkeypatch.setattr(datasets, "Music", datasets.Yeast)
    checks.check_estimator(RiverCSDPP())


def test_has_the_parameters_of_csdpp():
    ours, theirs = RiverCSDPP()._get_params(), CSDPP().get_params()
    theirs["seed"] = theirs.pop("random_state")
    assert ours == theirs
    ours, theirs = RiverCSDPP.published(3)._get_params(), CSDPP.published(3).get_params()
    theirs["seed"] = theirs.pop("random_state")
    assert ours == theirs
    assert RiverCSDPP.published(0.2, cost="rank", basis="pbc", seed=3, weighting="shapley")._get_params() == ours | {
        "n_components": 0.2,
        "cost": "rank",
        "basis": "pbc",
        "seed": 3,
        "weighting": "shapley",
    }


# ---- the same as CSDPP on arrays


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        (None, {}),
        (None, {"cost": "hamming", "dtype": "float32"}),
        (None, {"cost": "accuracy", "regressor": "gradient", "fit_intercept": False}),
        (None, {"cost": CountCost(lambda tp, fp, fn, tn: (fp + 2 * fn) / (2 * (tp + fp + fn + tn)))}),
        (None, {"forgetting": 0.99, "block_size": 1}),
        ("published", {"seed": 5}),
        ("published", {"basis": "pbc", "cost": "hamming", "seed": 5}),
        ("published", {"basis": "none", "cost": "rank", "seed": 5}),
    ],
)
def test_predicts_what_csdpp_predicts(yeast, recipe, options):
    rows, X, Y = yeast
    same = {"random_state" if name == "seed" else name: value for name, value in options.items()}
    if recipe is None:
        ours, theirs = RiverCSDPP(0.5, **options), CSDPP(0.5, **same)
    else:
        ours, theirs = RiverCSDPP.published(0.5, **options), CSDPP.published(0.5, **same)
    expected = theirs.prequential(X, Y)
    first, *predicted = progress(ours, rows)
    assert first == {}  # CSDPP says yes to everything before it has learned; river wants silence
    assert all(list(prediction) == list(rows[0][1]) for prediction in predicted)
    np.testing.assert_array_equal([list(prediction.values()) for prediction in predicted], expected[1:])
    assert expected[1:].any(axis=0).sum() > 3  # no trivial agreement


def test_order_of_keys_does_not_matter(yeast):
    rows, _, _ = yeast
    turned = [(dict(reversed(x.items())), dict(reversed(y.items()))) for x, y in rows[1:100]]
    assert progress(RiverCSDPP(0.5), rows[:100]) == progress(RiverCSDPP(0.5), [rows[0], *turned])


# ---- within river


@pytest.mark.parametrize(
    ("metric", "least"),
    [
        (metrics.multioutput.MicroAverage(metrics.F1()), 0.5),
        (metrics.multioutput.MacroAverage(metrics.F1()), 0.3),
        (metrics.multioutput.SampleAverage(metrics.Jaccard()), 0.35),
        (metrics.multioutput.SampleAverage(metrics.F1()), 0.5),
        (metrics.multioutput.ExactMatch(), 0.01),
        (metrics.multioutput.MicroAverage(metrics.FBeta(2.0)), 0.5),
    ],
    ids=["micro-F1", "macro-F1", "sample-jaccard", "sample-F1", "exact", "micro-F2"],
)
def test_progressive_val_score_in_a_pipeline(yeast, metric, least):
    rows, _, _ = yeast
    model = preprocessing.StandardScaler() | RiverCSDPP(0.5)
    expected = copy.deepcopy(metric)
    for (_, y), prediction in zip(rows, progress(model.clone(), rows), strict=True):
        if prediction:
            expected.update(y, prediction)
    assert evaluate.progressive_val_score(rows, model, metric).get() == expected.get() >= least


def test_per_label_metrics_and_delayed_answers(yeast):
    rows, _, _ = yeast
    metric = metrics.multioutput.PerOutput(metrics.Accuracy())
    evaluate.progressive_val_score(rows[:100], RiverCSDPP(0.5), metric, delay=10)
    assert list(metric.get()) == list(rows[0][1])


def test_sample_average_is_one_minus_our_cost(yeast):
    """River counts a row without truth and prediction as 0, we as no loss; yeast has no such row."""
    rows, _, Y = yeast
    assert Y.any(axis=1).all()
    predicted = np.array([list(p.values()) for p in progress(RiverCSDPP(0.5), rows)[1:]])
    metric = evaluate.progressive_val_score(rows, RiverCSDPP(0.5), metrics.multioutput.SampleAverage(metrics.F1()))
    assert metric.get() == pytest.approx(1.0 - F1()(Y[1:], predicted).mean())


@pytest.mark.parametrize("model", [RiverCSDPP(0.5), RiverCSDPP.published(0.5, seed=1)], ids=["default", "published"])
def test_copies_go_on_alike_and_clones_begin_anew(yeast, model):
    rows, _, _ = yeast
    model = model.clone()
    progress(model, rows[:60])
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.clone(include_attributes=True)]
    fresh = model.clone()
    expected = progress(model, rows[60:120])
    for copied in copies:
        assert progress(copied, rows[60:120]) == expected
    assert fresh.predict_one(rows[0][0]) == {}
    assert fresh._get_params() == model._get_params()


def test_sparse_text_rows(recwarn):
    """A bag of words is a Counter, has few of the features at a time, and meets new words later."""
    model = compose.Pipeline(feature_extraction.BagOfWords(), RiverCSDPP(1.0, cost="hamming", regularization=0.1))
    model.learn_one("red green blue round square", {"colour": True, "shape": True})
    for text, colour, shape in [("red", 1, 0), ("round", 0, 1), ("blue square", 1, 1), ("green", 1, 0)] * 10:
        model.learn_one(text, {"colour": bool(colour), "shape": bool(shape)})
    assert model.predict_one("red, not blond") == {"colour": True, "shape": False}
    assert model.predict_one("round") == {"colour": False, "shape": True}
    assert model.predict_one("blue square") == {"colour": True, "shape": True}
    assert not recwarn


# ---- scores


@pytest.mark.parametrize("cost", ["hamming", "f1"])
def test_chances_rise_with_the_score_and_pass_one_half_where_predicted(yeast, cost):
    rows, X, _ = yeast
    model = RiverCSDPP(0.5, cost=cost)
    assert model.predict_proba_one(rows[0][0]) == {}
    progress(model, rows[:200])
    scores = model._learner.decision_function(X[200:])
    for (x, _), row in zip(rows[200:], scores, strict=True):
        chances = model.predict_proba_one(x)
        prediction = model.predict_one(x)
        assert all(0.0 <= p[False] <= 1.0 and p[True] + p[False] == pytest.approx(1.0) for p in chances.values())
        assert {label: p[True] >= 0.5 for label, p in chances.items()} == prediction
        assert {label: max(p, key=p.get) for label, p in chances.items()} == prediction
        assert (np.diff([p[True] for p in chances.values()])[np.diff(row) > 0] > 0).all()


@pytest.mark.parametrize(
    ("score", "positive"), [(0.0, True), (-1e-300, False), (1e-300, True), (-9e9, False), (9e9, True)]
)
def test_chances_agree_with_predictions_at_the_extremes(monkeypatch, score, positive):
    model = RiverCSDPP(1.0)
    model.learn_one({"a": 1.0}, {"u": True})
    monkeypatch.setattr(model, "_scores", lambda x: np.array([score]))
    (chance,) = model.predict_proba_one({"a": 1.0}).values()
    assert model.predict_one({"a": 1.0}) == {"u": positive}
    assert (chance[True] >= 0.5) == positive == max(chance, key=chance.get)
    assert 0.0 <= chance[True] <= 1.0


# ---- streams that change


def test_waits_for_the_first_row_with_features_and_labels():
    model = RiverCSDPP(1.0)
    for x, y in [({}, {}), ({"a": 1.0}, {}), ({}, {"u": True})]:
        model.learn_one(x, y)
        assert model.predict_one({"a": 1.0}) == {} == model.predict_proba_one({"a": 1.0})
    model.learn_one({"b": 1.0}, {"v": True})
    assert model.predict_one({"b": 1.0}) == {"v": True}


def as_rows(X, Y, features, labels, known=None):
    """Dicts with the first columns of X and Y; of Y only what is known."""
    return [
        (
            {f"x{j}": value for j, value in enumerate(x[:d].tolist())},
            {f"y{k}": bool(value) for k, value in enumerate(y[:K]) if known is None or known[t, k]},
        )
        for t, (x, y, d, K) in enumerate(zip(X, Y, features, labels, strict=True))
    ]


def coming_and_going(n=300, seed=5):
    """A stream whose features and labels come one after the other, and the number of them at each row."""
    X, Y = correlated(n, 9, 8, seed)
    features, labels = np.minimum(2 + np.arange(n) // 20, 9), np.minimum(3 + np.arange(n) // 30, 8)
    X[np.arange(9) >= features[:, None]] = 0.0
    Y[np.arange(8) >= labels[:, None]] = 0
    return X, Y, features, labels


@pytest.mark.parametrize(
    "options",
    [{}, {"cost": "hamming"}, {"cost": "macro_f1", "basis": "pbt", "encoder": "label"}, {"regressor": "gradient"}],
    ids=["f1", "hamming", "macro_f1", "gradient"],
)
def test_labels_and_features_that_come_later_are_those_of_csdpp(options, recwarn):
    """Added by hand to CSDPP on arrays, right before the row that first names them."""
    X, Y, features, labels = coming_and_going()
    model, by_hand = RiverCSDPP(0.4, **options), CSDPP(0.4, **options)
    predicted = progress(model, as_rows(X, Y, features, labels))
    by_hand.partial_fit(X[:1, :2], Y[:1, :3])
    for t in range(1, 300):
        answers = by_hand.predict(X[t : t + 1, : features[t - 1]])[0]
        assert list(predicted[t].values()) == answers.astype(bool).tolist()
        if labels[t] > labels[t - 1]:
            by_hand.add_labels(1)
        if features[t] > features[t - 1]:
            by_hand.add_features(1)
        by_hand.partial_fit(X[t : t + 1, : features[t]], Y[t : t + 1, : labels[t]])
    assert list(predicted[-1]) == [f"y{k}" for k in range(8)]
    assert not recwarn
    chances = model.predict_proba_one({"x0": 1.0, "never": 2.0})
    assert chances.keys() == predicted[-1].keys()


def test_growing_is_exact_with_fixed_weights():
    """H is that of a learner that knew all labels and features from the start."""
    X, Y, features, labels = coming_and_going()
    model = RiverCSDPP(0.4, cost="hamming")
    progress(model, as_rows(X, Y, features, labels))
    knowing = CSDPP(0.4, cost="hamming").fit(X, Y)
    np.testing.assert_allclose(model._learner.coef_[:, :9], knowing.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model._learner.intercept_, knowing.intercept_, rtol=0, atol=1e-9)
    assert not model._learner.coef_[:, 9:].any()  # the room that was made for more


def test_labels_that_come_later_are_learned():
    """Half-way through, a label comes that is easy; before, it reads as False."""
    X, Y = correlated(600, 6, 5, 3)
    model = RiverCSDPP(0.6)
    predicted = progress(model, as_rows(X, Y, np.full(600, 6), np.where(np.arange(600) < 300, 4, 5)))
    assert not any(prediction.get("y4") for prediction in predicted[:300])
    hits = [prediction["y4"] == bool(y) for prediction, y in zip(predicted[400:], Y[400:, 4], strict=True)]
    assert np.mean(hits) > max(Y[400:, 4].mean(), 1 - Y[400:, 4].mean()) + 0.05


def test_metrics_of_river_survive_a_new_label():
    rows = [({"a": 1.0}, {"u": True}), ({"a": 1.0}, {"u": True}), ({"a": 1.0}, {"u": True, "v": True})]
    metric = metrics.multioutput.MicroAverage(metrics.Accuracy())
    evaluate.progressive_val_score(rows, RiverCSDPP(1.0), metric)
    assert metric.get() == 2 / 3
    prediction = RiverCSDPP(1.0).predict_one({})
    assert prediction == {}


def test_absent_features_are_0_and_absent_labels_not_known(yeast):
    rows, X, Y = yeast
    zeros = [({n: v if v > 0 else 0.0 for n, v in x.items()}, y) for x, y in rows[:80]]
    gaps = [({n: v for n, v in x.items() if v}, y) for x, y in zeros]
    assert progress(RiverCSDPP(0.5), zeros) == progress(RiverCSDPP(0.5), [zeros[0], *gaps[1:]])
    known = np.random.default_rng(0).random((200, Y.shape[1])) < 0.5
    known[0], known[50] = True, False
    names = list(rows[0][1])
    told = [
        (x, {n: y[n] for n, k in zip(names, row, strict=True) if k})
        for (x, y), row in zip(rows[:200], known, strict=True)
    ]
    expected = CSDPP(0.5).prequential(X[:200], Y[:200], mask=known)
    predicted = progress(RiverCSDPP(0.5), told)
    np.testing.assert_array_equal([list(prediction.values()) for prediction in predicted[1:]], expected[1:])


def test_a_row_that_fails_adds_no_name():
    def fails(y, y_hat):
        if len(y) > 2 and not y.any():
            raise OSError("no")
        return float((y != y_hat).any())

    cost = AnyCost(fails, vectorized=False)
    model = RiverCSDPP(1.0, cost=cost)
    model.learn_one({"a": 1.0}, {"u": True, "v": False})
    for x, y, error in [
        ({"a": 1.0, "b": "red"}, {"u": True}, InvalidInput),
        ({"a": 1.0}, {"u": True, "w": "yes"}, InvalidInput),
        ({"a": 1.0, "b": 1.0}, {"u": False, "v": False, "w": False}, OSError),
    ]:
        before = model._learner.coef_
        with pytest.raises(error):
            model.learn_one(x, y)
        np.testing.assert_array_equal(model._learner.coef_, before)
        assert model.predict_one({"a": 1.0}).keys() == {"u", "v"}
    model.learn_one({"a": 1.0, "b": 1.0}, {"u": True, "w": True})
    assert model.predict_one({"b": 1.0}).keys() == {"u", "v", "w"}


def test_rows_are_not_changed_even_if_they_invent_values():
    model = RiverCSDPP(1.0)
    model.learn_one({"a": 1.0, "b": 2.0}, {"u": True, "v": False})
    x, y = defaultdict(lambda: 9.0, a=1.0, c=2.0), defaultdict(lambda: True, u=True, w=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.learn_one(x, y)
    assert (dict(x), dict(y)) == ({"a": 1.0, "c": 2.0}, {"u": True, "w": False})
    assert model.predict_one(x).keys() == {"u", "v", "w"}
    assert dict(x) == {"a": 1.0, "c": 2.0}


def test_names_may_be_of_any_kind():
    model = RiverCSDPP(1.0)
    model.learn_one({1: 1.0, "1": 2, ("a", 0): True}, {0: 1, "0": 0, None: np.True_})
    assert model.predict_one({1: 1.0}).keys() == {0, "0", None}


def test_components_come_with_the_labels():
    model = RiverCSDPP(3)
    for names, M in (("uv", 2), ("uvw", 3), ("uvwxyz", 3)):
        model.learn_one({"a": 1.0}, dict.fromkeys(names, True))
        assert model._learner.n_components_ == M
    assert model.n_components == 3
    share = RiverCSDPP(0.5)
    for names, M in (("u", 1), ("uvw", 2), ("uvwxyz", 3)):
        share.learn_one({"a": 1.0}, dict.fromkeys(names, True))
        assert share._learner.n_components_ == M


# ---- what cannot be used


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ({"a": "red"}, {"u": True}, "features must be finite numbers .* got 'red' for 'a'; encode words"),
        ({"a": "1.5"}, {"u": True}, "got '1.5' for 'a'"),
        ({"b": 1, "a": None}, {"u": True}, "got None for 'a'; .* fill gaps"),
        ({"b": 1, "a": float("nan")}, {"u": True}, "got nan for 'a'"),
        ({"a": -float("inf")}, {"u": True}, "got -inf for 'a'"),
        ({"a": 10**400}, {"u": True}, "got 1000+ for 'a'"),
        ({"a": [1.0]}, {"u": True}, r"got \[1.0\] for 'a'"),
        ({"a": 1e200}, {"u": True}, "scale the features"),
        ({"a": 1.0}, {"u": "yes"}, "labels must be True or False, got 'yes' for 'u'"),
        ({"a": 1.0}, {"u": None}, "got None for 'u'; leave out a label that is not known"),
        ({"a": 1.0}, {"u": 0.3}, "got 0.3 for 'u'"),
        ({"a": 1.0}, {"u": float("nan")}, "got nan for 'u'"),
        ({"a": 1.0}, {"u": [True]}, r"got \[True\] for 'u'"),
        ({"a": 1.0}, True, "must be dicts from names to values, got True"),
        ({"a": 1.0}, {"u"}, "must be dicts from names to values, got {'u'}"),
        ([1.0], {"u": True}, r"must be dicts from names to values, got \[1.0\]"),
    ],
)
def test_bad_rows_leave_no_trace(trained, x, y, message):
    model = RiverCSDPP(1.0)
    if trained:
        model.learn_one({"a": 1.0, "b": 0.0}, {"u": True, "v": False})
    before = pickle.dumps(model)
    with pytest.raises(CsdppError, match=message) as caught:
        model.learn_one(x, y)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, InvalidInput)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_predicting_needs_numbers_too(dtype):
    model = RiverCSDPP(1.0, dtype=dtype)
    assert model.predict_one({"a": "red"}) == {}
    model.learn_one({"a": 1.0}, {"u": True})
    for value in ("red", float("inf"), *([1e39] if dtype == "float32" else [])):
        for method in (model.predict_one, model.predict_proba_one):
            with pytest.raises(InvalidInput, match="features must be finite numbers"):
                method({"a": value})


@pytest.mark.parametrize(
    ("options", "message"),
    [({"n_components": 0}, "n_components"), ({"dtype": "int8"}, "dtype"), ({"basis": "pbt"}, "encoder")],
)
def test_wrong_parameters_are_named_at_the_first_row(options, message):
    with pytest.raises(InvalidParameter, match=message):
        RiverCSDPP(**options).learn_one({"a": 1.0}, {"u": True})
