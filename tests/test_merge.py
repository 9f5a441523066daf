"""Learners joined: the ridge is the one of all rows, and the order of joining does not matter."""

import numpy as np
import pytest
from sklearn.base import clone

import naive
from csdpp import CSDPP, PLST, OnlineBinaryRelevance
from csdpp.errors import InvalidInput
from csdpp.merge import merge
from learners import LEARNERS, assert_same_state, data, state
from streams import STREAMS

PARTS = slice(0, 60), slice(60, 85), slice(85, 150)


def with_one(X):
    return np.hstack([X, np.ones((len(X), 1))])


def sites(model, X=None, Y=None):
    X, Y = data() if X is None else (X, Y)
    return [clone(model).fit(X[rows], Y[rows]) for rows in PARTS]


@pytest.mark.parametrize("name", LEARNERS)
def test_order_of_joining_does_not_matter(name):
    """(a + b) + c = a + (b + c), to rounding, and so are all scores; commutative too where no code is drawn."""
    a, b, c = sites(LEARNERS[name])
    X, _ = data()
    left, right, at_once = merge(merge(a, b), c), merge(a, merge(b, c)), merge(a, b, c)
    for other in (right, at_once, merge(c, a, b)):
        np.testing.assert_allclose(left.decision_function(X), other.decision_function(X), atol=1e-9)
        assert other.n_seen_ == 150
    for name in ("o", "clock", "memory", "sigma", "F", "power", "mass"):
        if name in state(left) and name != "F":
            np.testing.assert_allclose(state(left)[name], state(right)[name], atol=1e-9)


@pytest.mark.parametrize("name", ["o-br", "o-rand", "o-cs", "o-cs-2"])
def test_fixed_codes_become_the_learner_of_all_rows(name):
    X, Y = data()
    joined, whole = merge(*sites(LEARNERS[name])), clone(LEARNERS[name]).fit(X, Y)
    np.testing.assert_allclose(joined._engine.weights, whole._engine.weights, atol=1e-12)
    product = joined._engine.regressor.precision()
    np.testing.assert_allclose(product, whole._engine.regressor.precision(), atol=1e-12)
    np.testing.assert_allclose(joined.decision_function(X), whole.decision_function(X), atol=1e-12)
    again = joined.partial_fit(X, Y), whole.partial_fit(X, Y)
    np.testing.assert_allclose(again[0]._engine.weights, again[1]._engine.weights, atol=1e-12)


@pytest.mark.parametrize("stream", STREAMS)
def test_hamming_ridge_is_that_of_all_rows_on_any_data(stream):
    """For Hamming the label vectors do not depend on what was predicted: W is the batch solution, by its definition."""
    X, Y = STREAMS[stream]()
    half = len(X) // 2
    model = CSDPP(1, cost="hamming")
    joined = merge(clone(model).fit(X[:half], Y[:half]), clone(model).fit(X[half:], Y[half:]))
    V = np.where(Y == 1, 1.0, -1.0) / np.sqrt(Y.shape[1])
    H = naive.ridge(with_one(X), V, 1.0)
    np.testing.assert_allclose(np.vstack([joined.coef_.T, joined.intercept_]), H, atol=1e-9)
    np.testing.assert_allclose(joined.reference_, V.mean(axis=0), atol=1e-12)
    Q, sigma = joined.directions_, joined.spectrum_
    np.testing.assert_allclose(Q @ Q.T, np.eye(len(Q)), atol=1e-9)
    assert (sigma >= 0).all()
    assert sigma.sum() <= 1 + 1e-9


def test_directions_of_the_feature_encoder_are_those_of_all_rows():
    """By the definition of CPLST: top eigenvectors of (V - o)'H(V - o)."""
    X, Y = data()
    joined = merge(*sites(CSDPP(2, cost="hamming")))
    V = np.where(Y == 1, 1.0, -1.0) / np.sqrt(6)
    V -= V.mean(axis=0)
    P = np.linalg.eigh(V.T @ with_one(X) @ naive.ridge(with_one(X), V, 1.0))[1][:, ::-1][:, :3]
    Q = joined.directions_
    np.testing.assert_allclose(Q.T @ Q, P @ P.T, atol=1e-9)


def test_label_encoder_takes_the_mean_of_the_projectors():
    parts = sites(CSDPP(2, basis="pbt", encoder="label"))
    joined = merge(*parts)
    mass = [60, 25, 65]
    U = sum(n * m.directions_.T @ np.diag(m.spectrum_) @ m.directions_ for n, m in zip(mass, parts, strict=True)) / 150
    top = np.linalg.eigh(U)[1][:, ::-1][:, :3]
    np.testing.assert_allclose(joined.directions_.T @ joined.directions_, top @ top.T, atol=1e-9)
    # and its codes are what the joint ridge knows of the sites' label vectors along them
    X, _ = data()
    A = sum(with_one(X[r]).T @ with_one(X[r]) for r in PARTS) + np.eye(8)
    B = 0
    for rows, m in zip(PARTS, parts, strict=True):
        W = np.vstack([m.codes_.T, m.codes_intercept_])
        B += (with_one(X[rows]).T @ with_one(X[rows]) + np.eye(8)) @ W @ m.directions_
    expected = np.linalg.solve(A, B) @ joined.directions_.T
    np.testing.assert_allclose(np.vstack([joined.codes_.T, joined.codes_intercept_]), expected, atol=1e-9)


@pytest.mark.parametrize("name", LEARNERS)
def test_nothing_learned_changes_nothing_and_parts_stay(name):
    a, b, _ = sites(LEARNERS[name])
    X, Y = data()
    fresh = clone(LEARNERS[name]).partial_fit(X[:0], Y[:0])
    before = state(a)
    assert_same_state(merge(a, fresh), a)
    assert_same_state(merge(fresh, a), a)
    merge(a, b)
    for key, value in before.items():
        np.testing.assert_array_equal(state(a)[key], value)


@pytest.mark.parametrize("name", LEARNERS)
def test_joined_goes_on_and_is_saved(name, tmp_path):
    X, Y = data()
    joined = merge(*sites(LEARNERS[name]))
    joined.save(tmp_path / "joined.csdpp")
    again = type(joined).load(tmp_path / "joined.csdpp")
    np.testing.assert_array_equal(joined.prequential(X, Y), again.prequential(X, Y))
    assert_same_state(joined, again)
    assert joined.n_seen_ == 300
    a, b = joined, sites(LEARNERS[name])[0]  # what it was joined from does not stand for it any more
    forgetful = type(a).load(tmp_path / "joined.csdpp").partial_fit(X, Y)
    vars(forgetful).pop("joined_", None)
    np.testing.assert_array_equal(merge(a, b).decision_function(X), merge(forgetful, b).decision_function(X))


def test_joined_sites_predict_nearly_as_well_as_one_learner_of_all_rows():
    """Not promised to a digit for the directions; here the loss on new rows is within 0.02."""
    from csdpp.costs import F1
    from csdpp.datasets import make_stream

    stream = make_stream(6000, 30, 20, rank=4, random_state=3)
    X, Y, test, truth = stream.X[:4000], stream.Y[:4000], stream.X[4000:], stream.Y[4000:]
    for model in (CSDPP(0.25), CSDPP(0.25, basis="pbt", encoder="label")):
        joined = merge(*(clone(model).fit(X[i::4], Y[i::4]) for i in range(4)))
        whole, part = clone(model).fit(X, Y), clone(model).fit(X[::4], Y[::4])
        losses = [F1().loss(truth, one.predict(test)).mean() for one in (joined, whole, part)]
        assert losses[0] < losses[1] + 0.02
        assert losses[0] < losses[2]


@pytest.mark.parametrize("model", [OnlineBinaryRelevance(), CSDPP(2, cost="hamming")])
def test_labels_that_come_after_joining_were_never_there(model):
    X, Y = data()
    Y[:, 4:] = 0
    grown = merge(*sites(model, X, Y[:, :4])).add_labels(2)
    np.testing.assert_allclose(grown.coef_, clone(model).fit(X, Y).coef_, atol=1e-10)
    np.testing.assert_allclose(
        grown.reference_ if hasattr(grown, "reference_") else 0, reference(model, X, Y), atol=1e-10
    )


def reference(model, X, Y):
    return getattr(clone(model).fit(X, Y), "reference_", 0)


def test_grown_sites_are_joined():
    """Sites that met a label at different times; those that hold unlike numbers of directions are refused."""
    X, Y = data()
    Y[:60, 5] = 0
    early, late = (
        OnlineBinaryRelevance().fit(X[:60], Y[:60, :5]).add_labels(1),
        OnlineBinaryRelevance().fit(X[60:], Y[60:]),
    )
    np.testing.assert_allclose(merge(early, late).coef_, OnlineBinaryRelevance().fit(X, Y).coef_, atol=1e-10)
    share = CSDPP(0.5).fit(X, Y)
    assert merge(share, CSDPP(0.5).fit(X, Y[:, :5]).add_labels(1)).n_seen_ == 300


def test_float32_and_forgetting():
    X, Y = data()
    single = merge(*sites(OnlineBinaryRelevance(dtype="float32")))
    assert single._engine.weights.dtype == np.float32
    np.testing.assert_allclose(single._engine.weights, OnlineBinaryRelevance().fit(X, Y)._engine.weights, atol=1e-4)
    # under forgetting, A of each, summed
    parts = sites(OnlineBinaryRelevance(forgetting=0.95))
    A = sum(np.linalg.inv(one._engine.regressor.precision()) for one in parts)
    np.testing.assert_allclose(np.linalg.inv(merge(*parts)._engine.regressor.precision()), A, rtol=1e-8, atol=1e-8)


def test_what_cannot_be_joined():
    X, Y = data()
    a = CSDPP(2).fit(X, Y)
    for other, said in (
        (CSDPP(3).fit(X, Y), "must agree in n_components, got 2 and 3"),
        (OnlineBinaryRelevance().fit(X, Y), "must be of one class, got CSDPP and OnlineBinaryRelevance"),
        (CSDPP(2).fit(X[:, 1:], Y), "must have as many features, got 7 and 6"),
        (CSDPP(2).fit(X, Y[:, 1:]), "must have the same labels"),
        (PLST(2).fit(X, Y), "must be online learners of csdpp, got PLST"),
    ):
        with pytest.raises(InvalidInput, match=said):
            merge(a, other)
    auto = CSDPP(2, regularization="auto").fit(X, Y)
    with pytest.raises(InvalidInput, match='regularization must be a number, got "auto"'):
        merge(auto, auto)
    from csdpp import OnlineRandomProjection

    with pytest.raises(InvalidInput, match="share their random code"):
        merge(*(OnlineRandomProjection(2, random_state=seed).fit(X, Y) for seed in (0, 1)))
