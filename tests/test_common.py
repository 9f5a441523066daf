"""One contract over every online learner; scikit-learn's own checks over everything."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from csdpp import CPLST, CSDPP, PLST, OnlineBinaryRelevance, OnlineRandomProjection
from csdpp.costs import Accuracy
from learners import LEARNERS, assert_same_state, data, state

every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())


# ------------------------------------------------------------------------------------------ scikit-learn


@pytest.mark.parametrize(
    "estimator",
    [*LEARNERS.values(), CSDPP(dtype="float32"), PLST(), CPLST()],
    ids=[*LEARNERS.keys(), "float32", "plst", "cplst"],
)
def test_scikit_learn_checks(estimator):
    """Every check that applies, none expected to fail; those that do not apply say why."""
    results = check_estimator(clone(estimator), on_skip=None, on_fail="raise")
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= {
        "check_array_api_input",  # NumPy and SciPy only
        "check_classifiers_multilabel_output_format_predict_proba",  # no probabilities
    }
    assert sum(result["status"] == "passed" for result in results) >= 57


@every_learner
def test_cross_validation_and_pipeline(learner):
    X, Y = data()
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), clone(learner))
    scores = cross_val_score(pipeline, X, Y, cv=3)
    assert scores.shape == (3,)
    assert np.isfinite(scores).all()


def test_grid_search_over_components_and_cost():
    X, Y = data()
    grid = {"n_components": [1, 0.5, 1.0], "cost": ["hamming", "f1", Accuracy()]}
    search = GridSearchCV(CSDPP(), grid, cv=KFold(3), error_score="raise").fit(X, Y)
    assert search.best_params_["n_components"] in (1, 0.5, 1.0)
    assert search.predict(X).shape == Y.shape
    assert search.best_score_ >= cross_val_score(CSDPP(1, cost="hamming"), X, Y, cv=KFold(3)).mean()


def test_parameters_of_a_clone():
    model = CSDPP(3, cost=Accuracy(), rate=4.0)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(cost="f1").cost == "f1"


# ----------------------------------------------------------------------------------------------- streams


@every_learner
@pytest.mark.parametrize("forgetting", [None, 0.97])
@pytest.mark.parametrize("size", [1, 2, 7, 64, 1000])
def test_block_size_changes_speed_only(learner, size, forgetting):
    X, Y = data()
    more = {} if forgetting is None else {"forgetting": forgetting}
    one = clone(learner).set_params(block_size=33, **more)
    other = clone(learner).set_params(block_size=size, **more)
    np.testing.assert_array_equal(one.prequential(X, Y), other.prequential(X, Y))
    assert_same_state(one, other, atol=1e-10)


@every_learner
def test_block_size_changes_speed_only_in_float32(learner):
    X, Y = data(400)
    labels = [
        clone(learner).set_params(dtype="float32", block_size=size).prequential(X, Y).astype(int)
        for size in (1, 2, 7, 64, 1000)
    ]
    for other in labels[1:]:
        assert (labels[0] != other).mean() < 0.005
    full = clone(learner).prequential(X, Y)
    assert (labels[0] != full).mean() < (0.2 if learner is LEARNERS["published-none"] else 0.01)


@every_learner
def test_pieces_of_a_stream_are_the_stream(learner):
    X, Y = data()
    whole, pieces = clone(learner), clone(learner)
    expected = whole.prequential(X, Y)
    got = [pieces.prequential(X[rows], Y[rows]) for rows in np.array_split(np.arange(len(X)), 13)]
    np.testing.assert_array_equal(np.vstack(got), expected)
    assert whole.n_seen_ == pieces.n_seen_ == len(X)


@every_learner
def test_prequential_is_predict_then_learn(learner):
    X, Y = data(60)
    model, by_hand = clone(learner), clone(learner)
    expected = model.prequential(X, Y)
    by_hand.partial_fit(X[:1], Y[:1])
    for i in range(1, len(X)):
        np.testing.assert_array_equal(by_hand.predict(X[i : i + 1])[0], expected[i])
        by_hand.partial_fit(X[i : i + 1], Y[i : i + 1])


@every_learner
def test_fit_forgets(learner):
    X, Y = data()
    fresh, used = clone(learner), clone(learner)
    fresh.fit(X, Y)
    used.partial_fit(X[:40, :3], Y[:40, :4]).fit(X, Y)
    assert_same_state(fresh, used)


@every_learner
def test_predicting_changes_nothing(learner):
    X, Y = data()
    model = clone(learner).fit(X, Y)
    before = state(model)
    rng = None if not hasattr(model._engine, "rng") else model._engine.rng.get_state()[1].copy()
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), scores >= 0)
    np.testing.assert_array_equal(model.decision_function(X), scores)
    for name, value in state(model).items():
        np.testing.assert_array_equal(value, before[name])
    if rng is not None:
        np.testing.assert_array_equal(model._engine.rng.get_state()[1], rng)


@every_learner
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_go_on_alike(learner, copied):
    X, Y = data()
    model = clone(learner)
    model.partial_fit(X[:70], Y[:70])
    twin = copied(model)
    np.testing.assert_array_equal(model.prequential(X[70:], Y[70:]), twin.prequential(X[70:], Y[70:]))
    assert_same_state(model, twin)


@every_learner
def test_same_seed_same_result(learner):
    X, Y = data()
    np.testing.assert_array_equal(clone(learner).prequential(X, Y), clone(learner).prequential(X, Y))


# ----------------------------------------------------------------------------------------------- formats


@every_learner
def test_sparse_features_are_dense_features(learner):
    X, Y = data()
    X[X < 0.2] = 0.0
    dense, csr = clone(learner), clone(learner)
    np.testing.assert_array_equal(dense.prequential(X, Y), csr.prequential(sparse.csr_array(X), Y))
    np.testing.assert_allclose(csr.decision_function(sparse.csc_matrix(X)), dense.decision_function(X), atol=1e-10)


@every_learner
@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.uint8, np.int64, np.float32, np.float64])
def test_predictions_have_the_type_of_the_labels(learner, kind):
    X, Y = data()
    model = clone(learner)
    labels = model.prequential(X, Y.astype(kind))
    assert labels.dtype == model.predict(X).dtype == np.dtype(kind)
    np.testing.assert_array_equal(labels, clone(learner).prequential(X, Y))


@every_learner
def test_sparse_labels(learner):
    X, Y = data()
    model = clone(learner)
    labels = model.prequential(X, sparse.csr_matrix(Y))
    assert sparse.issparse(labels)
    assert sparse.issparse(model.predict(X))
    np.testing.assert_array_equal(labels.toarray(), clone(learner).prequential(X, Y))
    model.partial_fit(X, sparse.coo_array(Y))
    model.partial_fit(X, Y)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame):
    X, Y = data()
    features = [f"f{i}" for i in range(X.shape[1])]
    labels = [f"tag {k}" for k in range(Y.shape[1])]
    X_frame = frame(dict(zip(features, X.T, strict=True)))
    Y_frame = frame(dict(zip(labels, Y.T, strict=True)))
    model = CSDPP(2)
    np.testing.assert_array_equal(model.prequential(X_frame, Y_frame), CSDPP(2).prequential(X, Y))
    assert model.classes_.tolist() == labels
    assert model.feature_names_in_.tolist() == features
    np.testing.assert_array_equal(model.predict(X_frame[features]), CSDPP(2).fit(X, Y).predict(X))
    turned = CSDPP(2).fit(X_frame, Y_frame)
    turned.partial_fit(X_frame, Y_frame[labels[::-1]])  # labels are matched by name
    assert_same_state(turned, CSDPP(2).fit(X, Y).partial_fit(X, Y))
    with pytest.raises(
        ValueError, match=r"Y must have the label columns of the first call, differs in \['tag 0', 'x'\]"
    ):
        model.partial_fit(X_frame, frame(dict(zip(["x", *labels[1:]], Y.T, strict=True))))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(X_frame[features[::-1]])


def test_lists_and_label_names():
    model = CSDPP(1).partial_fit([[0.0, 1.0], [1.0, 0.0]], [[1, 0], [0, 1]], classes=["spam", "work"])
    assert model.classes_.tolist() == ["spam", "work"]
    assert model.predict([[0.0, 1.0]]).shape == (1, 2)


@every_learner
def test_arrays_nobody_may_write_to(learner):
    X, Y = data()
    frozen_X, frozen_Y = X.copy(), Y.copy()
    frozen_X.flags.writeable = frozen_Y.flags.writeable = False
    odd_X, odd_Y = np.asfortranarray(np.repeat(X, 2, axis=0))[::2], np.repeat(Y, 2, axis=1)[:, ::2]
    expected = clone(learner).prequential(X, Y)
    np.testing.assert_array_equal(clone(learner).prequential(frozen_X, frozen_Y), expected)
    np.testing.assert_array_equal(clone(learner).prequential(odd_X, odd_Y), expected)
    np.testing.assert_array_equal(frozen_X, X)


@every_learner
def test_no_rows(learner):
    X, Y = data()
    model = clone(learner).partial_fit(X[:0], Y[:0])
    assert model.n_seen_ == 0
    model.partial_fit(X, Y)
    before = state(model)
    assert model.prequential(X[:0], Y[:0]).shape == (0, 6)
    assert model.predict(X[:0]).shape == (0, 6)
    assert model.decision_function(X[:0]).shape == (0, 6)
    for name, value in state(model).items():
        np.testing.assert_array_equal(value, before[name])
    assert_same_state(model, clone(learner).fit(X, Y))


@every_learner
def test_odd_data_gives_finite_scores(learner):
    """Constant features, rows of zeros, labels never and always seen, huge and tiny features, one label only."""
    X, Y = data()
    X[:, 0] = 3.0
    X[::4] = 0.0
    X[:, 1] *= 1e8
    X[:, 2] *= 1e-8
    Y[:, 0], Y[:, 1] = 0, 1
    assert np.isfinite(clone(learner).fit(X, Y).decision_function(X)).all()
    for constant in (np.zeros_like(Y), np.ones_like(Y)):
        assert np.isfinite(clone(learner).fit(X, constant).decision_function(X)).all()
    one = clone(learner)
    if hasattr(one, "n_components"):
        one.set_params(n_components=1)
    assert one.fit(X, Y[:, 2:3]).predict(X).shape == (len(X), 1)


@every_learner
def test_classes_in_one_column(learner):
    X, _ = data()
    y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    model = clone(learner)
    labels = model.prequential(X, y)
    assert labels.dtype == y.dtype
    assert (labels[75:] == y[75:]).mean() > 0.5
    assert model.decision_function(X).shape == (len(X), 3)
    late = clone(learner).partial_fit(X[:1], y[:1], classes=["high", "low", "middle"])
    assert late.partial_fit(X, y).classes_.tolist() == ["high", "low", "middle"]


# ------------------------------------------------------------------------------------------ fitted state


def test_fitted_state_of_csdpp():
    X, Y = data()
    model = CSDPP(2).fit(X, Y)
    assert model.directions_.shape == (3, 6)
    assert model.spectrum_.shape == (3,)
    assert model.reference_.shape == (6,)
    assert model.coef_.shape == (6, 7)
    assert model.intercept_.shape == (6,)
    assert (model.n_components_, model.n_seen_, model.n_features_in_) == (2, 150, 7)
    assert model.classes_.tolist() == list(range(6))
    fit = X @ model.coef_.T + model.intercept_ - model.reference_
    U = model.directions_.T @ np.diag(model.spectrum_) @ model.directions_
    np.testing.assert_allclose(model.decision_function(X), fit @ U + model.reference_, atol=1e-12)
    with pytest.raises(AttributeError, match='with basis="pbc" has no codes_; see coef_'):
        _ = model.codes_


def test_fitted_state_with_pbt():
    X, Y = data()
    model = CSDPP(2, basis="pbt", encoder="label", reference="zero").fit(X, Y)
    codes = X @ model.codes_.T + model.codes_intercept_
    expected = (codes * model.spectrum_) @ model.directions_
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-12)
    with pytest.raises(AttributeError, match='with basis="pbt" has no coef_; see codes_'):
        _ = model.coef_


def test_fitted_state_is_a_copy():
    X, Y = data()
    model = CSDPP(2).fit(X, Y)
    scores = model.decision_function(X)
    for name in ("directions_", "spectrum_", "reference_", "coef_", "intercept_"):
        getattr(model, name)[:] = 0.0
    np.testing.assert_array_equal(model.decision_function(X), scores)


def test_nothing_is_there_before_fitting():
    for model in (CSDPP(), OnlineBinaryRelevance(), OnlineRandomProjection()):
        with pytest.raises(AttributeError):
            _ = model.coef_
        assert not hasattr(model, "directions_")
        assert not hasattr(model, "classes_")


@pytest.mark.parametrize(("share", "K", "M"), [(0.1, 14, 2), (0.1, 30, 3), (0.25, 6, 2), (1.0, 5, 5), (0.001, 9, 1)])
def test_share_of_labels_is_rounded_up(share, K, M):
    X, _ = data(30)
    Y = np.tile(np.arange(30)[:, None] % 2, (1, K))
    assert CSDPP(share).fit(X, Y).n_components_ == M


def test_published_recipe():
    model = CSDPP.published(0.5, cost="accuracy")
    assert (model.basis, model.encoder, model.reference) == ("pbt", "label", "zero")
    assert (model.decode, model.weighting, model.rate, model.regularization) == ("sample", "ordered", 2.0, 1.0)
    assert CSDPP.published(weighting="shapley", random_state=3).weighting == "shapley"
