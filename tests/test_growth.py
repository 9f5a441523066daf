"""Labels and features that come and go: equal to a learner that knew them all along, where that can be."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from csdpp import CSDPP, OnlineBinaryRelevance, OnlineCompressedSensing, OnlineRandomProjection, persist
from csdpp.costs import F1, AnyCost, CountCost
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.evaluate import prequential
from csdpp.rates import Constant
from learners import LEARNERS, assert_same_state, state
from streams import correlated

every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)

FIXED_WEIGHTS = {
    "o-br": OnlineBinaryRelevance(),
    "o-br, no constant": OnlineBinaryRelevance(fit_intercept=False),
    "o-br, gradient": OnlineBinaryRelevance(regressor="gradient", forgetting=0.98),
    "defaults": CSDPP(2, cost="hamming"),
    "share": CSDPP(0.4, cost="hamming"),
    "published": CSDPP.published(2, cost="hamming", basis="pbc", random_state=0),
    "gradient": CSDPP(2, cost="hamming", regressor="gradient", fit_intercept=False),
    "label": CSDPP(2, cost="hamming", encoder="label", weighting="ordered", block_size=7),
}
# Directions that are still far from their caps, and a label encoder whose mean reference silences a constant label:
# then the basis too is that of the learner who knew. With PBT that makes all of it exact.
ALL_OF_IT = {
    "pbc": CSDPP(2, cost="hamming", encoder="label", rate=0.01),
    "pbt": CSDPP(2, cost="hamming", encoder="label", basis="pbt", rate=Constant(0.01)),
    "pbt, share, sampled": CSDPP(0.42, cost="hamming", encoder="label", basis="pbt", rate=0.01, decode="sample"),
}


def late(n=200, first=100, d=6, K=7):
    """The last two labels are never there in the first rows, the last feature is zero."""
    X, Y = correlated(n, d, K, 21)
    Y[:first, -2:], X[:first, -1] = 0, 0.0
    return X, Y, first


def grown_and_knowing(learner, labels=2, features=1):
    """A learner that grew, one that knew all along, and the stream; both have learned its first part."""
    X, Y, first = late()
    grown = clone(learner).fit(X[:first, :-features], Y[:first, :-labels])
    return grown.add_labels(labels).add_features(features), clone(learner).fit(X[:first], Y[:first]), X, Y, first


# ---- exact


@pytest.mark.parametrize("learner", FIXED_WEIGHTS.values(), ids=FIXED_WEIGHTS)
def test_fixed_weights_are_those_of_a_learner_that_knew(learner):
    grown, knowing, X, Y, first = grown_and_knowing(learner)
    for _ in range(2):
        np.testing.assert_allclose(grown.coef_, knowing.coef_, rtol=0, atol=1e-9)
        np.testing.assert_allclose(grown.intercept_, knowing.intercept_, rtol=0, atol=1e-9)
        if getattr(learner, "reference", "zero") == "mean":
            np.testing.assert_allclose(grown.reference_, knowing.reference_, rtol=0, atol=1e-9)
        if isinstance(learner, OnlineBinaryRelevance):
            np.testing.assert_allclose(grown.decision_function(X), knowing.decision_function(X), rtol=0, atol=1e-9)
        else:
            assert grown.n_components_ == knowing.n_components_
        grown.partial_fit(X[first:], Y[first:])
        knowing.partial_fit(X[first:], Y[first:])


@pytest.mark.parametrize("learner", ALL_OF_IT.values(), ids=ALL_OF_IT)
def test_with_free_directions_all_is_that_of_a_learner_that_knew(learner):
    learner = clone(learner).set_params(random_state=3)
    # One label, for the share is then rounded to the same M.
    grown, knowing, X, Y, first = grown_and_knowing(learner, labels=1)
    np.testing.assert_allclose(grown.decision_function(X), knowing.decision_function(X), rtol=0, atol=1e-9)
    np.testing.assert_allclose(grown.spectrum_, knowing.spectrum_, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(grown.prequential(X[first:], Y[first:]), knowing.prequential(X[first:], Y[first:]))
    np.testing.assert_allclose(grown.decision_function(X), knowing.decision_function(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "learner", [OnlineBinaryRelevance(), CSDPP(2, cost=CountCost(lambda tp, fp, fn, tn: fp + fn))], ids=["o-br", "own"]
)
def test_growth_after_missing_labels_is_exact_where_each_label_weighs_for_itself(learner):
    X, Y, first = late()
    partial = np.where(np.random.default_rng(4).random(Y.shape) < 0.3, np.nan, Y)
    partial[:first, -2:] = 0
    knowing = clone(learner).partial_fit(X, partial)
    grown = clone(learner).partial_fit(X[:first, :-1], partial[:first, :-2]).add_labels(2).add_features(1)
    grown.partial_fit(X[first:], partial[first:])
    np.testing.assert_allclose(grown.coef_, knowing.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(grown.intercept_, knowing.intercept_, rtol=0, atol=1e-9)


def test_forgetting_is_exact_for_labels():
    """A feature begins with all of its regularisation; one that was silent for long has less of it left."""
    X, Y, first = late()
    for regressor in ("ridge", "gradient"):
        model = OnlineBinaryRelevance(forgetting=0.8, regressor=regressor)
        grown = clone(model).fit(X[:first, :2], Y[:first, :-2]).add_labels(2)  # long enough to give lambda back
        knowing = clone(model).fit(X[:first, :2], Y[:first])
        np.testing.assert_allclose(grown.coef_, knowing.coef_, rtol=0, atol=1e-9)
        assert grown.add_features(1).coef_[:, -1].tolist() == [0.0] * 7


def test_regularisation_given_back_is_exact_for_labels():
    X, Y, first = late()
    X[10:, 0] = 0.0
    model = OnlineBinaryRelevance(forgetting=0.5)
    grown, knowing = clone(model).fit(X[:first], Y[:first, :-2]).add_labels(2), clone(model).fit(X[:first], Y[:first])
    S = grown._engine.regressor.precision().diagonal()
    assert S[0] < 1e8  # without, it would be 2^90
    np.testing.assert_allclose(grown.coef_, knowing.coef_, rtol=0, atol=1e-7)  # the digits that such a S leaves


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
@pytest.mark.parametrize("learner", [OnlineBinaryRelevance(), CSDPP(2, cost="hamming")], ids=["o-br", "csdpp"])
def test_dropped_is_as_never_there(learner, forgetting):
    X, Y = correlated(120, 6, 7, 3)
    learner = clone(learner).set_params(forgetting=forgetting)
    model, fresh = clone(learner).fit(X, Y), clone(learner).fit(X[:, [0, 2, 3, 5]], Y[:, [1, 2, 4, 5, 6]])
    model.drop_labels([3, 0, 3]).drop_features([1, 4])
    assert (model.classes_.tolist(), model.n_features_in_) == ([1, 2, 4, 5, 6], 4)
    np.testing.assert_allclose(model.coef_, fresh.coef_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, fresh.intercept_, rtol=0, atol=1e-9)
    S, T = model._engine.regressor.precision(), fresh._engine.regressor.precision()
    np.testing.assert_allclose(S, T, rtol=0, atol=1e-9)
    for what in (model, fresh):
        what.partial_fit(X[:, [0, 2, 3, 5]], Y[:, [1, 2, 4, 5, 6]])
    np.testing.assert_allclose(model.coef_, fresh.coef_, rtol=0, atol=1e-9)


def test_silent_labels_leave_with_no_trace():
    """What was added and never came can be dropped, and all is as before."""
    with_a_number = [learner for name, learner in FIXED_WEIGHTS.items() if name != "share"]
    for learner in (*with_a_number, *ALL_OF_IT.values(), CSDPP(2), CSDPP(2, cost="macro_f1")):
        X, Y, _ = late()
        model = clone(learner).fit(X, Y)
        scores = model.decision_function(X)
        model.add_labels(["a", "b"]).drop_labels(["b", "a"])
        np.testing.assert_allclose(model.decision_function(X), scores, rtol=0, atol=1e-12)


# ---- as close as can be


@pytest.mark.parametrize("cost", ["f1", "accuracy", "rank", "micro_f1", "macro_f1"])
@pytest.mark.parametrize("basis", ["pbc", "pbt"])
def test_loss_after_growth_is_near_that_of_a_learner_that_knew(cost, basis):
    X, Y = correlated(1200, 8, 10, 5)
    Y[:400, -3:], X[:400, -2:] = 0, 0.0
    learner = CSDPP(0.4, cost=cost, basis=basis, encoder="feature" if basis == "pbc" else "label")
    grown = clone(learner).fit(X[:400, :-2], Y[:400, :-3]).add_labels(3).add_features(2)
    knowing = clone(learner).fit(X[:400], Y[:400])
    losses = [prequential(model, X[400:], Y[400:], "f1").averages["f1"] for model in (grown, knowing)]
    assert losses[0] < losses[1] + 0.03


@every_learner
def test_new_labels_are_not_predicted_and_new_features_change_nothing(learner):
    X, Y = correlated(150, 7, 6, 11)
    model = clone(learner).fit(X, Y)
    before = model.predict(X)
    wider = np.hstack([X, np.ones((len(X), 2))])
    np.testing.assert_array_equal(model.add_features(2).predict(wider), before)
    after = model.add_labels(3).predict(wider)
    # O-RAND decodes three more labels out of as many codes; with Hamming, M / K is another step for the old ones.
    if not isinstance(learner, OnlineRandomProjection | OnlineCompressedSensing):
        np.testing.assert_array_equal(after[:, :6], before)
        assert not after[:, 6:].any()
    assert after.shape == (150, 9)
    more = np.hstack([Y, Y[:, :3]])
    assert model.prequential(wider, more).shape == (150, 9)
    assert model.fit(X, Y).predict(X).shape == (150, 6)  # fit forgets that it has grown
    assert_same_state(model, clone(learner).fit(X, Y))


@every_learner
def test_grown_and_shrunk_learners_are_saved_to_the_bit(learner):
    X, Y = correlated(150, 7, 6, 11)
    X_new, Y_new = np.hstack([X[:, 1:], X[:, :2]]), np.hstack([Y[:, :5], Y[:, :2]])
    model = clone(learner).fit(X, Y).add_labels(["a", "b"]).add_features(2).drop_labels([5]).drop_features([0])
    model.partial_fit(X_new[:50], Y_new[:50])
    again = persist.loads(persist.dumps(model))
    assert again.classes_.tolist() == [0, 1, 2, 3, 4, "a", "b"]
    for what in (model, again):
        what.add_labels(["c"])
    Y_new = np.hstack([Y_new, Y[:, 3:4]])
    np.testing.assert_array_equal(model.prequential(X_new, Y_new), again.prequential(X_new, Y_new))
    assert_same_state(model, again)


@every_learner
def test_growth_is_all_or_nothing_and_copies_the_state(learner):
    X, Y = correlated(150, 7, 6, 11)
    model = clone(learner).fit(X, Y)
    engine, before, scores = model._engine, state(model), model.decision_function(X)
    grown = model.add_labels(1).add_features(1).partial_fit(np.hstack([X, X[:, :1]]), np.hstack([Y, Y[:, :1]]))
    assert grown is model
    model._engine = engine
    assert {name: value.tolist() for name, value in state(model).items()} == {k: v.tolist() for k, v in before.items()}
    np.testing.assert_array_equal(engine.scores(X), scores if scores.ndim == 2 else scores[:, None])


def test_share_of_labels_grows_with_them_and_a_number_does_not():
    X, Y = correlated(60, 5, 10, 0)
    model = CSDPP(0.2).fit(X, Y)
    assert [model.n_components_, model.add_labels(1).n_components_, model.add_labels(5).n_components_] == [2, 3, 4]
    assert model.drop_labels(list(range(8))).n_components_ == 2
    model.partial_fit(X, Y[:, :8])
    np.testing.assert_allclose(model.directions_ @ model.directions_.T, np.eye(3), atol=1e-12)
    model = CSDPP(2).fit(X, Y).add_labels(10)
    assert model.n_components_ == 2
    with pytest.raises(InvalidParameter, match="n_components must be at most the 1 labels, got 2"):
        model.drop_labels(list(range(19)))
    assert model.n_components_ == 2
    assert len(model.classes_) == 20


def test_directions_without_dropped_labels_are_those_of_what_is_left_of_U():
    X, Y = correlated(200, 5, 8, 2)
    for learner in (CSDPP(3), CSDPP(3, basis="pbt", encoder="label")):
        model = clone(learner).fit(X, Y)
        U = model.directions_.T @ np.diag(model.spectrum_) @ model.directions_
        model.drop_labels([0, 5])
        kept = [1, 2, 3, 4, 6, 7]
        left = model.directions_.T @ np.diag(model.spectrum_) @ model.directions_
        np.testing.assert_allclose(left, U[np.ix_(kept, kept)], rtol=0, atol=1e-12)
        assert (model.spectrum_ <= 1).all()
        assert model.spectrum_.sum() <= 3 + 1e-12
        assert np.isfinite(model.partial_fit(X, Y[:, kept]).decision_function(X)).all()


def test_random_columns_of_grown_baselines_are_the_same_each_time():
    X, Y = correlated(60, 5, 6, 0)
    for learner in (OnlineRandomProjection(0.5, random_state=0), OnlineCompressedSensing(0.5, random_state=0)):
        models = [clone(learner).fit(X, Y).add_labels(2) for _ in range(2)]
        assert_same_state(*models)
        P, Q = (next(v for n, v in vars(m._engine.encoder).items() if n in "PA") for m in models)
        np.testing.assert_array_equal(P, Q)
        assert P.shape == (3, 8)
        assert models[0].add_labels(20).partial_fit(X, np.tile(Y[:, :1], 28)).decision_function(X).shape == (60, 28)


def test_candidates_of_auto_grow_together():
    X, Y, first = late()
    model = CSDPP(2, regularization="auto").fit(X[:first, :-1], Y[:first, :-2]).add_labels(2).add_features(1)
    model = persist.loads(persist.dumps(model))
    assert model.prequential(X[first:], Y[first:]).shape == (100, 7)
    assert model.drop_labels([0]).drop_features([0]).predict(X[:, 1:]).shape == (200, 6)
    macro = CSDPP(2, regularization="auto", cost="macro_f1").fit(X[:, :-1], Y[:, :-2]).add_labels(2)
    assert macro.partial_fit(X[:, :-1], Y).drop_labels([0, 1]).partial_fit(X[:, :-1], Y[:, 2:]).n_seen_ == 600


# ---- by name


FRAMES = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])


def frames(frame, X, Y):
    return frame(dict(zip("abcdef", X.T, strict=False))), frame(dict(zip("uvwxyz", Y.T, strict=False)))


@FRAMES
def test_frames_with_more_columns_grow_by_name(frame):
    X, Y = correlated(120, 4, 5, 1)
    grown, by_hand = CSDPP(2), CSDPP(2)
    grown.partial_fit(*frames(frame, X[:60, :3], Y[:60, :4]))
    by_hand.partial_fit(X[:60, :3], Y[:60, :4])
    X_frame, Y_frame = frames(frame, X[60:], Y[60:])
    X_frame, Y_frame = X_frame[list("dabc")], Y_frame[list("yvuxw")]
    before = grown.predict(X_frame)  # what is not known yet adds nothing
    np.testing.assert_array_equal(before, by_hand.predict(X[60:, :3]))
    answers = grown.prequential(X_frame, Y_frame)
    np.testing.assert_array_equal(answers, by_hand.add_labels(1).add_features(1).prequential(X[60:], Y[60:]))
    assert (grown.classes_.tolist(), grown.feature_names_in_.tolist()) == (list("uvwxy"), list("abcd"))
    grown.partial_fit(X_frame, Y_frame)  # who has grown finds columns by name, in whatever order
    assert_same_state(grown, by_hand.partial_fit(X[60:], Y[60:]))
    np.testing.assert_array_equal(grown.predict(X_frame), by_hand.predict(X[60:]))
    again = persist.loads(persist.dumps(grown))
    np.testing.assert_array_equal(again.predict(X_frame), grown.predict(X_frame))


@FRAMES
def test_evaluation_goes_on_with_more_columns(frame):
    X, Y = correlated(120, 4, 5, 1)
    model = CSDPP(2)
    prequential(model, *frames(frame, X[:60, :3], Y[:60, :4]))
    result = prequential(model, *frames(frame, X[60:], Y[60:]))
    assert result.per_label["label"].tolist() == list("uvwxy")
    other = CSDPP(2).fit(X[:60, :3], Y[:60, :4]).add_labels(1).add_features(1)
    assert result.averages == prequential(other, X[60:], Y[60:]).averages


@FRAMES
def test_missing_columns_are_said_and_nothing_grows(frame):
    X, Y = correlated(60, 4, 5, 1)
    X_frame, Y_frame = frames(frame, X, Y)
    model = CSDPP(2).partial_fit(X_frame[list("abc")], Y_frame[list("uvw")])
    with pytest.raises(ValueError, match="yet now missing"):
        model.partial_fit(X_frame[list("abd")], Y_frame[list("uvw")])
    with pytest.raises(ValueError, match="yet now missing"):
        model.predict(X_frame[list("abd")])
    with pytest.raises(InvalidInput, match=r"the label columns of the first call, differs in \['w', 'x'\]"):
        model.partial_fit(X_frame, Y_frame[list("uvx")])
    with pytest.raises(InvalidInput, match="as many rows"):
        model.partial_fit(X_frame, Y_frame[:10])
    assert (model.classes_.tolist(), model.feature_names_in_.tolist(), model.n_seen_) == (list("uvw"), list("abc"), 60)
    assert model.partial_fit(X_frame, Y_frame).n_seen_ == 120


def test_arrays_with_more_columns_are_told_what_to_call():
    X, Y = correlated(60, 4, 5, 1)
    model = CSDPP(2).fit(X[:, :3], Y[:, :4])
    with pytest.raises(InvalidInput, match=r"Y must have 4 label columns.*got 5; call add_labels first"):
        model.partial_fit(X[:, :3], Y)
    with pytest.raises(ValueError, match=r"X has 4 features, but CSDPP is expecting 3.*; call add_features first"):
        model.partial_fit(X, Y[:, :4])


def test_a_failing_call_leaves_the_names_as_they_were():
    def fails(y, y_hat):
        if len(y) > 3:
            raise OSError("no")
        return float((y != y_hat).any())

    X, Y = correlated(60, 4, 5, 1)
    X_frame, Y_frame = frames(pd.DataFrame, X, Y)
    model = CSDPP(2, cost=AnyCost(fails, vectorized=False)).fit(X_frame[list("abc")], Y_frame[list("uvw")])
    before = state(model)
    with pytest.raises(OSError, match="no"):
        model.partial_fit(X_frame, Y_frame)
    assert (model.classes_.tolist(), model.feature_names_in_.tolist(), model.n_seen_) == (list("uvw"), list("abc"), 60)
    for name, value in state(model).items():
        np.testing.assert_array_equal(value, before[name])


def test_single_precision_stays_single_and_is_saved():
    X, Y = correlated(120, 5, 6, 3)
    for learner in (CSDPP(2, dtype="float32"), CSDPP.published(2, dtype="float32", random_state=0)):
        model = learner.fit(X, Y).drop_labels([1, 4]).add_labels(1)
        assert model.directions_.dtype == model._engine.regressor.W.dtype == np.float32
        again = persist.loads(persist.dumps(model))
        np.testing.assert_array_equal(again.prequential(X, Y[:, :5]), model.prequential(X, Y[:, :5]))


# ---- names that cannot be


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.add_labels(["u"]), r"a new label must have a name of its own, got \['u'\] again"),
        (lambda m: m.add_labels(["s", "s"]), r"a new label must have a name of its own, got \['s'\] again"),
        (lambda m: m.add_labels([["s"]]), r"names of labels must be hashable \(str, int\), got \['s'\]"),
        (lambda m: m.drop_labels([{}]), r"names of labels must be hashable \(str, int\), got {}"),
        (lambda m: m.add_labels("spam"), "labels must be a list of names, got 'spam'; put it into brackets"),
        (lambda m: m.add_labels(2), "new labels must have names as the others have, got their number"),
        (lambda m: m.add_features(2), "new features must have names as the others have, got their number"),
        (lambda m: m.add_features([1]), r"names of features must be strings, got \[1\]"),
        (lambda m: m.add_features(["a"]), r"a new feature must have a name of its own, got \['a'\] again"),
        (lambda m: m.drop_labels(["t"]), r"labels to drop must be known, got \['t'\]; see classes_"),
        (lambda m: m.drop_features([0]), r"features to drop must be known, got \[0\]; see feature_names_in_"),
        (lambda m: m.drop_labels(list("uvw")), "must keep at least one label, got all 3 to drop"),
        (lambda m: m.drop_features(list("abc")), "must keep at least one feature, got all 3 to drop"),
    ],
)
def test_names_are_checked(call, message):
    X, Y = correlated(60, 3, 3, 1)
    model = CSDPP(2).fit(*frames(pd.DataFrame, X, Y))
    scores = model.decision_function(frames(pd.DataFrame, X, Y)[0])
    with pytest.raises(InvalidInput, match="CSDPP: " + message):
        call(model)
    np.testing.assert_array_equal(model.decision_function(frames(pd.DataFrame, X, Y)[0]), scores)


def test_only_fitted_learners_of_indicators_grow():
    X, Y = correlated(60, 3, 3, 1)
    with pytest.raises(InvalidInput, match="must know labels and features before they change; call partial_fit first"):
        CSDPP(2).add_labels(["a"])
    with pytest.raises(InvalidInput, match=r"with indicators .* only, got 1-D classes before; name all classes"):
        CSDPP(2).fit(X, Y[:, 0]).add_labels([2])
    assert CSDPP(2).fit(X, Y[:, 0]).add_features(1).n_features_in_ == 4


def test_costs_with_a_memory_know_new_labels_as_silent():
    X, Y, first = late()
    model = CSDPP(2, cost="macro_f1").fit(X[:first], Y[:first, :-2]).add_labels(2)
    np.testing.assert_array_equal(model._engine.memory[:, -2:], [[0, 0], [0, 0], [0, 0], [100, 100]])
    micro = CSDPP(2, cost="micro_f1").fit(X[:first], Y[:first, :-2])
    rows = micro._engine.memory.sum() / 5
    assert micro.add_labels(2)._engine.memory.sum() / 7 == pytest.approx(rows)
    assert micro.drop_labels([0, 1, 2])._engine.memory.sum() / 4 == pytest.approx(rows)
    assert F1()._more_labels(np.zeros((4, 0)), 2, 3.0).shape == (4, 0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_features_that_never_come_back_do_not_wind_up(dtype):
    """Nothing excites them, and forgetting would let A^-1 grow without end: also those that came amid the stream."""
    X, Y = correlated(400, 5, 4, 8)
    model = CSDPP(2, forgetting=0.9, dtype=dtype).fit(X[:, :3], Y).add_features(2)
    X[:, 1], X[:, 4] = 0.0, 0.0  # one falls silent, one never says anything
    for _ in range(5):
        model.partial_fit(X, Y)
        values = np.linalg.eigvalsh(model._engine.regressor.precision().astype(float))
        assert values[0] > 0
        assert values[-1] < 2 * np.finfo(dtype).eps ** -0.5
    assert np.isfinite(model._engine.regressor.absent).all()
    assert not model.add_labels(1).predict(X)[:, -1].any()
