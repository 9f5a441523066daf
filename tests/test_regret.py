"""Theorem 2: the regret against batch PLST, against plain loops, and its fall with T."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from csdpp import CSDPP, PLST
from csdpp.datasets import make_stream
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.regret import average_regret

N, D, K, M = 200, 5, 7, 2


def stream(seed=0, n=N):
    data = make_stream(n, D, K, rank=M, cardinality=2.0, random_state=seed)
    return data.X, data.Y


def paper(**options):
    return CSDPP.published(M, **({"cost": "hamming", "basis": "pbc", "decode": "expected"} | options))


def by_enumeration(model, x, v):
    """E_P of the two terms of l_t(W_t, P): the M + 1 events of Lemma 1, or the one P before there are so many."""
    Q, sigma = model.directions_, model.spectrum_
    events = [(Q, 1.0)]
    if len(Q) == M + 1:
        full = np.isclose(sigma.sum(), M, atol=1e-9)
        chances = 1.0 - sigma if full else np.eye(M + 1)[M]
        events = [(np.delete(Q, i, axis=0), chances[i]) for i in range(M + 1)]
    assert sum(p for _, p in events) == pytest.approx(1.0)
    h = model.coef_ @ x + model.intercept_
    prediction = sum(p * ((P @ h - P @ v) ** 2).sum() for P, p in events)
    reconstruction = sum(p * ((v - P.T @ P @ v) ** 2).sum() for P, p in events)
    return prediction, reconstruction


@pytest.fixture(scope="module")
def by_hand():
    """Both sides of the regret at T = N, and the bound of the theorem, by plain loops."""
    X, Y = stream()
    V = (2.0 * Y - 1.0) / np.sqrt(K)
    X1 = np.hstack([X, np.ones((N, 1))])

    P = np.linalg.svd(V)[2][:M]
    H = np.linalg.lstsq(X1, V, rcond=None)[0]
    W = H @ P.T
    offline = sum(((W.T @ x - P @ v) ** 2).sum() + ((v - P.T @ P @ v) ** 2).sum() for x, v in zip(X1, V, strict=True))

    model, terms, drift, worst = paper(), [], 0.0, 0.0
    model.partial_fit(X[:0], Y[:0])
    for x, y, v in zip(X, Y, V, strict=True):
        terms.append(by_enumeration(model, x, v))
        Q, keep = model.directions_, model._engine.encoder.basis.keep
        U = Q.T @ np.diag(keep[: len(Q)]) @ Q
        drift += np.linalg.norm(U - P.T @ P, 2)
        worst = max(worst, ((model.coef_ @ x + model.intercept_ - v) ** 2).sum())
        model.partial_fit([x], [y])
    # The printed bound with the constants that online ridge regression gives: the squared norm of W# in full (the
    # paper has M/2 |H*|^2), and epsilon log det(I + X'X / lambda) for its 2 epsilon M d log(1 + T/d).
    bound = (1.0 + worst) * drift + (W**2).sum() + worst * np.linalg.slogdet(np.eye(D + 1) + X1.T @ X1)[1]
    return np.array(terms), offline / N, bound / N


def test_both_sides_equal_the_plain_loops(by_hand):
    terms, offline, _ = by_hand
    found = average_regret(*stream(), M, checkpoints=[50, N])
    assert found.T.tolist() == [50, N]
    np.testing.assert_allclose(found.online, [terms[:50].sum() / 50, terms.sum() / N], rtol=1e-9)
    assert found.offline[1] == pytest.approx(offline, rel=1e-9)
    np.testing.assert_array_equal(found.regret, found.online - found.offline)


def test_recorded_terms_are_the_expectation_over_all_events(by_hand):
    """Also before the trace is full: there the one P that is used takes the place of the expectation."""
    X, Y = stream()
    model = paper()
    _, recorded = model.prequential(X, Y, return_bound=True)
    assert model.spectrum_.sum() == pytest.approx(M)
    np.testing.assert_allclose(recorded, by_hand[0], atol=1e-10)


def test_theorem_2_bounds_the_regret(by_hand):
    regret = average_regret(*stream(), M, checkpoints=[N]).regret[0]
    assert 0.0 < regret <= by_hand[2]


def test_offline_side_is_plst_without_regularisation():
    X, Y = stream()
    V = (2.0 * Y[:120] - 1.0) / np.sqrt(K)
    plst = PLST(M, reference="zero", regularization=1e-9).fit(X[:120], Y[:120])
    P, codes = plst.directions_, X[:120] @ plst.codes_.T + plst.codes_intercept_
    expected = ((codes - V @ P.T) ** 2).sum() + ((V - V @ P.T @ P) ** 2).sum()
    found = average_regret(X, Y, M, checkpoints=[120])
    assert found.offline[0] == pytest.approx(expected / 120, rel=1e-7)


def test_least_norm_where_the_features_are_dependent():
    X, Y = stream()
    expected = average_regret(X, Y, M).offline
    np.testing.assert_allclose(average_regret(np.hstack([X, X]), Y, M).offline, expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_falls_on_a_stationary_stream(seed):
    X, Y = stream(seed, n=4000)
    found = average_regret(X, Y, M, checkpoints=[250, 1000, 4000])
    assert (found.regret > 0.0).all()
    assert found.regret[2] < 0.5 * found.regret[0]
    assert found.regret[1] < found.regret[0]


def test_does_not_fall_without_basis_correction():
    """The regressor of basis="none" knows the codes of directions long gone: no sublinear regret."""
    X, Y = stream(n=4000)
    checkpoints = [250, 4000]
    corrected = average_regret(X, Y, M, checkpoints=checkpoints).regret
    found = average_regret(X, Y, M, checkpoints=checkpoints, model=paper(basis="none", random_state=0)).regret
    assert found[1] > 5.0 * corrected[1]


def test_sampling_has_the_same_regret_in_the_mean():
    X, Y = stream()
    expected = average_regret(X, Y, M, checkpoints=1).online[0]
    drawn = [
        average_regret(X, Y, M, checkpoints=1, model=paper(decode="sample", random_state=seed)).online[0]
        for seed in range(100)
    ]
    assert abs(np.mean(drawn) - expected) < 4.0 * np.std(drawn, ddof=1) / 10.0


def test_formats_and_the_model_of_the_user():
    X, Y = stream()
    expected = average_regret(X, Y, M)
    assert expected.T.tolist() == list(range(20, N + 1, 20))
    for features, labels in [
        (X.tolist(), Y.tolist()),
        (sparse.csr_array(X), sparse.csr_matrix(Y)),
        (pd.DataFrame(X), pd.DataFrame(Y)),
    ]:
        np.testing.assert_allclose(average_regret(features, labels, M).regret, expected.regret, atol=1e-10)
    model = paper(fit_intercept=False).fit(X, Y)
    seen = model.n_seen_
    centred = average_regret(X, Y, M / K, model=model)
    assert model.n_seen_ == seen  # a clone ran
    assert centred.offline[-1] > expected.offline[-1]  # no constant feature on the offline side either


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": CSDPP(M)}, r"model must be a CSDPP with cost=\"hamming\", reference=\"zero\" and 2 components, got"),
        ({"model": CSDPP(M, cost="hamming")}, r"got CSDPP\(cost='hamming', n_components=2\); the theorem"),
        ({"model": CSDPP.published(3, cost="hamming")}, "and 2 components"),
        ({"model": PLST(M)}, "got PLST"),
        ({"n_components": 8}, "n_components must be at most the 7 labels, got 8"),
        ({"checkpoints": [0]}, "average_regret: checkpoints must be"),
        ({"Y": np.zeros(N, int)}, r"Y must be 0/1 indicators of shape \(n, K\)"),
    ],
)
def test_refusals(arguments, message):
    X, Y = stream()
    with pytest.raises(InvalidInput, match=message) as caught:
        average_regret(**({"X": X, "Y": Y, "n_components": M} | arguments))
    assert isinstance(caught.value, InvalidParameter)
