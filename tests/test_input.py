"""Bad input: one clear sentence each, and nothing lost or half-changed."""

import re

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from csdpp import CPLST, CSDPP, PLST, OnlineBinaryRelevance, OnlineCompressedSensing, OnlineRandomProjection
from csdpp.costs import AnyCost, CountCost
from csdpp.errors import CsdppError, InvalidInput, InvalidParameter
from learners import assert_same_state, data


def with_value(array, value):
    array = array.astype(float)
    array[3, 2] = value
    return array


X, Y = data(40)

BAD_DATA = {
    "NaN in X": (with_value(X, np.nan), Y, "Input X contains NaN (row 3, column 2); features must be finite"),
    "infinity in X": (with_value(X, np.inf), Y, "dtype('float64') (row 3, column 2); features must be finite"),
    "NaN in sparse X": (sparse.csr_array(with_value(X, np.nan)), Y, "Input X contains NaN (row 3, column 2); f"),
    "text in X": (np.full((40, 7), "a"), Y, "; features must be numbers: encode categories"),
    "complex X": (X + 1j, Y, "Complex data not supported; features must be real numbers"),
    "1-D X": (X[:, 0], Y, "Expected 2D array, got 1D array instead; features must be of shape (n, d)"),
    "3-D X": (X[None], Y, "; features must be of shape (n, d): one row an example"),
    "no features": (X[:, :0], Y, "while a minimum of 1 is required by"),
    "huge X": (X * 1e160, Y, "csdpp: features must be at most"),
    "fewer rows in Y": (X, Y[:39], "X and Y must have as many rows, got 40 and 39"),
    "NaN in Y": (X, with_value(Y, np.nan), "Y must hold 0 and 1, got NaN; drop the rows whose labels are missing"),
    "infinity in Y": (X, with_value(Y, np.inf), "Y must hold 0 and 1, got inf; turn Y into indicators"),
    "-1/+1 in Y": (X, 2 * Y - 1, "Y must hold 0 and 1, got -1; pass (Y > 0)"),
    "shares in Y": (X, with_value(Y, 0.5), "Y must hold 0 and 1, got 0.5; turn Y into indicators"),
    "counts in Y": (X, with_value(Y, 3), "Y must hold 0 and 1, got 3.0; turn Y into indicators"),
    "2 in sparse Y": (X, sparse.csr_array(2 * Y), "Y must hold 0 and 1, got 2; turn Y into indicators"),
    "text in Y": (X, np.full((40, 6), "yes"), "Y must hold 0 and 1, got values of type <U3"),
    "3-D Y": (X, Y[None], "Y must be (n, K) indicators or 1-D classes, got shape (1, 40, 6)"),
    "no labels": (X, Y[:, :0], "Y must have at least one label column, got shape (40, 0)"),
    "label sets": (X, [["a"], ["a", "b"]] * 20, "turn label sets into one with sklearn.preprocessing.MultiLabelB"),
    "sets of labels": (X, [{"a"}, {"a", "b"}] * 20, "turn label sets into one with sklearn.preprocessing.MultiLabelB"),
    "no Y": (X, None, "requires y to be passed, but the target y is None"),
    "continuous y": (X, X[:, 0], "Unknown label type: continuous"),
    "NaN in classes": (X, with_value(Y, np.nan)[:, 2], "y must not contain NaN or infinity"),
}

#: Cases that a learner of indicators need not look into.
NO_MATRIX = ("continuous y", "NaN in classes", "sets of labels", "3-D Y", "no labels", "text in Y")

#: Of online learners; to them NaN in Y is a label that is not known.
BAD_STREAMS = [case for case in BAD_DATA if case != "NaN in Y"]

LATER = {
    "other features": (X[:, :5], Y, "X has 5 features, but"),
    "other labels": (X, Y[:, :4], "Y must have 6 label columns as in the first call, got 4"),
    "classes instead of indicators": (X, Y[:, 0], "Y must be (n, 6) indicators as in the first call, got shape (40,)"),
}

LEARNERS = [
    CSDPP(2, random_state=0),
    CSDPP.published(2, random_state=0),
    OnlineBinaryRelevance(),
    OnlineRandomProjection(2, random_state=0),
    OnlineCompressedSensing(2, random_state=0),
]


@pytest.mark.parametrize("model", [*LEARNERS, PLST(2), CPLST(2)], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_at_the_start(model, case):
    features, labels, message = BAD_DATA[case]
    if case == "huge X" and isinstance(model, PLST):
        pytest.skip("a batch solver, not a running state")
    model = type(model)(**model.get_params())
    if case == "NaN in Y" and not isinstance(model, PLST):
        assert model.fit(features, labels).n_seen_ == 40  # a label that is not known
        return
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        model.fit(features, labels)
    assert "\n" not in str(error.value) or not isinstance(error.value, CsdppError)
    assert not model.__sklearn_is_fitted__() if hasattr(model, "__sklearn_is_fitted__") else not hasattr(model, "_W")
    model.fit(X, Y)  # and is as good as new


@pytest.mark.parametrize("model", LEARNERS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("case", [*BAD_STREAMS, *LATER])
@pytest.mark.parametrize("call", ["partial_fit", "prequential", "fit"])
def test_bad_data_later_changes_nothing(model, case, call):
    if call == "fit" and case in LATER:
        return  # a fit starts anew: other sizes are fine
    features, labels, message = (BAD_DATA | LATER)[case]
    if (
        case in ("continuous y", "NaN in classes", "sets of labels", "3-D Y", "no labels", "text in Y")
        and call != "fit"
    ):
        message = "Y must"  # be like that of the first call
    learned = type(model)(**model.get_params()).fit(X, Y)
    untouched = type(model)(**model.get_params()).fit(X, Y)
    with pytest.raises(ValueError, match=re.escape(message)):
        getattr(learned, call)(features, labels)
    assert_same_state(learned, untouched)
    assert (learned.n_seen_, learned.n_features_in_) == (40, 7)
    np.testing.assert_array_equal(learned.prequential(X, Y), untouched.prequential(X, Y))


@pytest.mark.parametrize("model", [*LEARNERS, PLST(2), CPLST(2)], ids=lambda model: type(model).__name__)
def test_nothing_to_fit_from(model):
    with pytest.raises(InvalidInput, match=r"0 sample\(s\) .*; fit from at least one row; partial_fit takes none too$"):
        clone(model).fit(X[:0], Y[:0])


def test_unknown_classes_later():
    model = CSDPP().partial_fit(X[:20], np.array(["a", "b"] * 10))
    message = r"y must hold classes known from the first call, got \['c'\]; name all classes in the first partial_fit"
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X[:20], np.array(["a", "c"] * 10))
    assert model.n_seen_ == 20


@pytest.mark.parametrize("model", LEARNERS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("call", ["predict", "decision_function"])
def test_predicting_before_learning(model, call):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(type(model)(**model.get_params()), call)(X)


@pytest.mark.parametrize("model", LEARNERS, ids=lambda model: type(model).__name__)
def test_predicting_on_bad_features(model):
    model = type(model)(**model.get_params()).fit(X, Y)
    for features, message in [
        (X[:, :3], "X has 3 features, but"),
        (X[0], "Expected 2D array"),
        (with_value(X, np.nan), "Input X contains NaN"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.predict(features)


BAD_PARAMETERS = [
    ({"n_components": 0}, "CSDPP: n_components must be at least 1, got 0"),
    ({"n_components": -2}, "CSDPP: n_components must be at least 1, got -2"),
    (
        {"n_components": 7},
        "CSDPP: n_components must be at most the 6 labels, got 7; lower it, or use OnlineBinaryRelevance",
    ),
    ({"n_components": 1.5}, "CSDPP: n_components must be a number of dimensions (int) or a share in (0, 1], got 1.5"),
    ({"n_components": True}, "share in (0, 1], got True"),
    ({"n_components": "half"}, "share in (0, 1], got 'half'"),
    ({"cost": "f2"}, "'f2'"),
    ({"cost": 3}, "3"),
    ({"weighting": "even"}, "'even'"),
    ({"basis": "pca"}, 'CSDPP: basis must be one of "pbc", "pbt", "none", got \'pca\''),
    ({"encoder": "labels"}, 'CSDPP: encoder must be one of "feature", "label", got \'labels\''),
    (
        {"basis": "pbt"},
        'CSDPP: encoder="feature" needs basis="pbc", got basis="pbt"; use encoder="label" or basis="pbc"',
    ),
    ({"basis": "none"}, 'CSDPP: encoder="feature" needs basis="pbc", got basis="none"'),
    ({"reference": None}, 'CSDPP: reference must be one of "mean", "zero", got None'),
    ({"decode": "mean"}, 'CSDPP: decode must be one of "expected", "sample", got \'mean\''),
    ({"regressor": "lasso"}, 'CSDPP: regressor must be one of "ridge", "gradient", got \'lasso\''),
    ({"regularization": 0}, 'CSDPP: regularization must be a number positive, or "auto", got 0'),
    ({"regularization": np.nan}, 'CSDPP: regularization must be a number positive, or "auto", got nan'),
    ({"rate": -1.0}, "CSDPP: rate must be a positive number or a function of the rows' numbers, got -1.0"),
    ({"step": "1"}, "CSDPP: step must be a number positive, got '1'"),
    ({"forgetting": 1.01}, "CSDPP: forgetting must be a number in (0, 1], got 1.01"),
    ({"forgetting": 0.0}, "CSDPP: forgetting must be a number in (0, 1], got 0.0"),
    ({"fit_intercept": "no"}, "CSDPP: fit_intercept must be True or False, got 'no'"),
    ({"dtype": "float16"}, 'CSDPP: dtype must be "float64" or "float32", got \'float16\''),
    ({"block_size": 0}, "CSDPP: block_size must be a whole number at least 1, got 0"),
    ({"block_size": 2.5}, "CSDPP: block_size must be a whole number at least 1, got 2.5"),
    ({"random_state": "dice"}, "'dice' cannot be used to seed"),
]


@pytest.mark.parametrize(("options", "message"), BAD_PARAMETERS, ids=lambda value: str(value)[:40])
def test_bad_parameters(options, message):
    model = CSDPP(**({"n_components": 2} | options))
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit(X, Y)
    assert not hasattr(model, "n_seen_")
    good = CSDPP(2).fit(X, Y)
    with pytest.raises(ValueError, match=re.escape(message)):
        good.set_params(**options).fit(X, Y)
    np.testing.assert_array_equal(good.decision_function(X), CSDPP(2).fit(X, Y).decision_function(X))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (OnlineCompressedSensing(2, sparsity=0), "sparsity must be a whole number at least 1, got 0"),
        (OnlineCompressedSensing(2, sparsity="few"), "sparsity must be a number or \"auto\", got 'few'"),
        (OnlineRandomProjection(7), "OnlineRandomProjection: n_components must be at most the 6 labels, got 7"),
        (PLST(7), "PLST: n_components must be at most the 6 labels, got 7"),
        (CPLST(2, regularization=-1), "CPLST: regularization must be a number positive, got -1"),
        (PLST(2, reference="median"), 'PLST: reference must be one of "mean", "zero", got \'median\''),
    ],
    ids=str,
)
def test_bad_parameters_of_the_others(model, message):
    with pytest.raises(InvalidParameter, match=re.escape(message)):
        model.fit(X, Y)


class Flaky:
    """A cost that fails at its n-th call."""

    def __init__(self, n):
        self.left = n

    def __call__(self, y, y_hat):
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("the database is gone")
        return float(np.mean(y != y_hat))


def hamming(y, y_hat):
    return float(np.mean(y != y_hat))


@pytest.mark.parametrize("cost", [AnyCost, lambda f: CountCost(lambda tp, fp, fn, tn: f(np.r_[fp], np.r_[0]))])
@pytest.mark.parametrize(("calls", "rows"), [(150, 800), (1, 6), (0, 1)])
def test_a_cost_that_fails_leaves_the_learner_as_it_was(cost, calls, rows):
    """It fails in the middle of the call: some blocks after its start, in its only block, in its only row."""
    model = CSDPP(2, cost=AnyCost(hamming), decode="sample", block_size=8, random_state=0).fit(X, Y)
    untouched = CSDPP(2, cost=AnyCost(hamming), decode="sample", block_size=8, random_state=0).fit(X, Y)
    model._engine.cost = cost(Flaky(calls))
    with pytest.raises(RuntimeError, match="the database is gone"):
        model.partial_fit(np.vstack([X] * 20)[:rows], np.vstack([Y] * 20)[:rows])
    model._engine.cost = untouched._engine.cost
    assert_same_state(model, untouched)
    assert model.n_seen_ == 40
    np.testing.assert_array_equal(model.prequential(X, Y), untouched.prequential(X, Y))


def test_a_user_cost_is_its_built_in_twin():
    for weighting in ("ordered", "shapley", "marginal", "mean"):
        built_in = CSDPP(2, cost="f1", weighting=weighting)
        mine = CSDPP(
            2,
            weighting=weighting,
            cost=CountCost(lambda tp, fp, fn, tn: (fp + fn) / np.maximum(2 * tp + fp + fn, 1)),
        )
        np.testing.assert_array_equal(built_in.prequential(X, Y), mine.prequential(X, Y))
        assert_same_state(built_in, mine, atol=1e-9)
