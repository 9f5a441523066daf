"""PLST and CPLST: optimal by definition, and what the online learner goes towards."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score

import naive
from csdpp import CPLST, CSDPP, PLST
from learners import data


def vectors(Y):
    V = np.where(Y == 1, 1.0, -1.0) / np.sqrt(Y.shape[1])
    return V, V.mean(axis=0)


def with_one(X):
    return np.hstack([X, np.ones((len(X), 1))])


@pytest.mark.parametrize("reference", ["mean", "zero"])
def test_plst_by_its_definition(reference):
    X, Y = data()
    model = PLST(2, reference=reference, regularization=0.5).fit(X, Y)
    V, o = vectors(Y)
    o = o if reference == "mean" else np.zeros(6)
    P = np.linalg.svd(V - o)[2][:2]
    np.testing.assert_allclose(model.directions_.T @ model.directions_, P.T @ P, atol=1e-10)
    H = naive.ridge(with_one(X), V - o, 0.5)
    np.testing.assert_allclose(model.decision_function(X), with_one(X) @ H @ P.T @ P + o, atol=1e-10)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X) >= 0)
    codes = X @ model.codes_.T + model.codes_intercept_
    np.testing.assert_allclose(codes @ model.directions_ + model.reference_, model.decision_function(X), atol=1e-12)


def test_cplst_minimises_its_objective():
    """|X W - V P'|^2 + |V - V P'P|^2 over orthonormal P: no other directions do better, PLST's included."""
    X, Y = data()
    V, o = vectors(Y)
    hat = with_one(X) @ np.linalg.solve(np.eye(8) + with_one(X).T @ with_one(X), with_one(X).T)

    def objective(P):
        codes = (V - o) @ P.T
        # the ridge solution W: |XW - Z|^2 + |W|^2 = tr(Z'(I - hat)Z)
        return np.trace(codes.T @ (np.eye(len(X)) - hat) @ codes) + np.sum((V - o - codes @ P) ** 2)

    best = objective(CPLST(2).fit(X, Y).directions_)
    assert best <= objective(PLST(2).fit(X, Y).directions_) + 1e-12
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert best <= objective(np.linalg.qr(rng.standard_normal((6, 2)))[0].T) + 1e-12


def test_feature_encoder_goes_to_cplst_and_label_encoder_to_plst():
    """On a long stream the held directions turn into the batch ones: the online CPLST is one."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((6000, 4))
    hidden = rng.standard_normal((6000, 1))  # pulls four labels together, and no feature explains it
    scores = [X[:, 0], X[:, 0] + 0.5 * X[:, 1], *(hidden + 0.05 * rng.standard_normal((6000, 4))).T]
    Y = (np.column_stack(scores) > 0).astype(int)
    for encoder, batch in (("feature", CPLST(2)), ("label", PLST(2))):
        model = CSDPP(2, cost="hamming", encoder=encoder).fit(X, Y)
        U = model.directions_.T @ np.diag(model.spectrum_) @ model.directions_
        P = batch.fit(X, Y).directions_
        assert np.trace(P @ U @ P.T) > 1.9
    a, b = PLST(1).fit(X, Y).directions_, CPLST(1).fit(X, Y).directions_
    assert abs((a @ b.T).item()) < 0.1  # and they are not the same


def test_with_all_directions_both_are_ridge_regression():
    X, Y = data()
    V, _ = vectors(Y)
    for model in (PLST(1.0, reference="zero"), CPLST(1.0, reference="zero")):
        np.testing.assert_allclose(model.fit(X, Y).decision_function(X), with_one(X) @ naive.ridge(with_one(X), V, 1.0))


def test_formats():
    X, Y = data()
    model = PLST(2).fit(X, Y)
    scores = model.decision_function(X)
    for features, labels in ((sparse.csr_array(X), Y), (X, sparse.csr_matrix(Y)), (pd.DataFrame(X), pd.DataFrame(Y))):
        np.testing.assert_allclose(PLST(2).fit(features, labels).decision_function(features), scores, atol=1e-10)
    assert sparse.issparse(PLST(2).fit(X, sparse.csr_matrix(Y)).predict(X))
    assert PLST(2, fit_intercept=False).fit(X, Y).codes_intercept_.tolist() == [0.0, 0.0]
    assert cross_val_score(CPLST(2), X, Y, cv=3).shape == (3,)


def test_classes_in_one_column():
    X, _ = data()
    for y in (np.where(X[:, 0] > 0, "yes", "no"), np.digitize(X[:, 0], [-1, 1])):
        model = PLST().fit(X, y)
        assert (model.predict(X) == y).mean() > 0.7
