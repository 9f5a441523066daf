"""Calibrated chances: the closed form, exactness row by row, trust on generated streams; the top k labels."""

import numpy as np
import pytest
from scipy import sparse, special
from sklearn.base import clone

from csdpp import CSDPP, OnlineBinaryRelevance, persist
from csdpp.calibration import FADE, Calibration, reliability
from csdpp.datasets import make_stream
from csdpp.errors import InvalidInput, InvalidParameter
from learners import LEARNERS, data

every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS.keys())


def plain(S, Y, fade=FADE, enough=50):
    """Chances of each row by the rows before it, with weighted means written out."""
    out = np.empty(S.shape)
    for t in range(len(S)):
        w = fade ** np.arange(t - 1, -1, -1.0)
        for k in range(S.shape[1]):
            s, y = S[:t, k], Y[:t, k].astype(bool)
            n, n1, n0 = w.sum(), w[y].sum(), w[~y].sum()
            chance, a = (n1 + 0.5) / (n + 1), 0.0
            middle = 0.0
            if y.any() and not y.all():
                m1, m0 = np.average(s[y], weights=w[y]), np.average(s[~y], weights=w[~y])
                spread = w @ (s - np.average(s, weights=w)) ** 2 / n
                v = (w @ (s - np.where(y, m1, m0)) ** 2 + spread) / (n + 1)
                if m1 > m0:
                    a = (m1 - m0) / v * n1 / (n1 + 2) * n0 / (n0 + 2)
                    middle = (m1 + m0) / 2
            x = a * (S[t, k] - middle) + special.logit(chance) if t >= enough else (a or 1.0) * S[t, k]
            out[t, k] = special.expit(x)
    return out


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_closed_form_row_by_row(dtype):
    rng = np.random.default_rng(0)
    S = rng.standard_normal((200, 4)).astype(dtype)
    Y = S + rng.standard_normal((200, 4)) > [0.0, 1.0, 5.0, -9.0]
    Y[:, 2] = False
    calibration, P = Calibration(4), np.empty((200, 4))
    calibration.add(S, Y, 1.0, P)
    np.testing.assert_allclose(P, plain(S.astype(float), Y), atol=1e-9)
    silent = Calibration(4)
    silent.add(S[:70], Y[:70], 1.0)
    silent.add(S[70:], Y[70:], 1.0)
    np.testing.assert_array_equal(silent.sums, calibration.sums)
    more = np.empty((1, 4))
    silent.add(S[:1], Y[:1], 1.0, more)
    np.testing.assert_array_equal(more, calibration.chances(S[:1]))


def test_separated_and_constant_scores_stay_finite():
    for S in (np.repeat([[1.0], [-1.0]], 100, axis=0), np.zeros((200, 1)), np.full((200, 1), 1e-300)):
        calibration = Calibration(1)
        calibration.add(S, S > 0, 1.0)
        P = calibration.chances(np.array([[-1e9], [0.0], [1e9]]))
        assert np.isfinite(P).all()
        assert (np.diff(P[:, 0]) >= 0).all()


# In compressed sensing the last digit may decide which label is taken in, and so its score.
smooth = pytest.mark.parametrize("learner", [v for k, v in LEARNERS.items() if not k.startswith("o-cs")], ids=repr)


@smooth
def test_what_predict_proba_says_before_each_row(learner):
    """`return_proba` is the handwritten loop."""
    X, Y = data(90)
    labels, P = clone(learner).prequential(X, Y, return_proba=True)
    model = clone(learner).partial_fit(X[:0], Y[:0])
    for i in range(len(X)):
        np.testing.assert_allclose(model.predict_proba(X[i : i + 1])[0], P[i], atol=1e-7)
        model.partial_fit(X[i : i + 1], Y[i : i + 1])
    np.testing.assert_array_equal(labels, clone(learner).prequential(X, Y))
    both = clone(learner).prequential(X, Y, return_bound=True, return_proba=True)
    assert [part.shape for part in both] == [(90, 6), (90, 2), (90, 6)]


@smooth
def test_block_size_does_not_matter(learner):
    X, Y = data(120)
    expected = clone(learner).fit(X, Y).predict_proba(X)
    for size in (1, 7):
        got = clone(learner).set_params(block_size=size).fit(X, Y).predict_proba(sparse.csr_array(X))
        np.testing.assert_allclose(got, expected, atol=1e-7)


def test_chances_of_the_leader():
    X, Y = data()
    model = CSDPP(2, regularization="auto")
    _, P = model.prequential(X, Y, return_proba=True)
    assert np.isfinite(P).all()
    np.testing.assert_array_equal(model.predict_proba(X), model._leader.calibration.chances(model.decision_function(X)))
    twin = persist.loads(persist.dumps(model))
    np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("learner", [CSDPP(0.5), CSDPP(0.5, cost="hamming"), OnlineBinaryRelevance()], ids=repr)
def test_chances_can_be_trusted(learner):
    """Where the labels' true chances are known, ours come near them, for labels of any frequency."""
    stream = make_stream(4000, 20, 10, rank=4, noise=0.5, random_state=0)
    _, P = learner.prequential(stream.X, stream.Y, return_proba=True)
    late = slice(1000, None)
    found = reliability(stream.Y[late], P[late])
    assert found.error < 0.025
    frequencies = np.broadcast_to(stream.Y.mean(axis=0), P[late].shape)
    assert found.brier < 0.85 * reliability(stream.Y[late], frequencies).brier


@pytest.mark.parametrize("learner", [CSDPP(2, cost="hamming"), OnlineBinaryRelevance()], ids=repr)
def test_labels_come_and_go(learner):
    """The scores of the others change with K, their chances do not; of a new label nothing is known."""
    X, Y = data()
    model = clone(learner).fit(X, Y)
    before = model.predict_proba(X)
    model.add_labels(["new"])
    np.testing.assert_allclose(model.predict_proba(X)[:, :6], before, atol=1e-9)
    model.partial_fit(X, np.hstack([Y, Y[:, :1]]))
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.drop_labels([0, 3]).predict_proba(X).shape == (150, 5)
    assert model.predict_top(X, 5)[0].tolist().count("new") == 1


def test_early_chances_agree_with_the_decision():
    X, Y = data(40)
    model = CSDPP(2).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X) >= 0.5, model.predict(X))
    fresh = CSDPP(2).partial_fit(X[:0], Y[:0])
    np.testing.assert_array_equal(fresh.predict_proba(X), 0.5)


def test_forgetting_fades_what_was_seen():
    X, Y = data()
    model = CSDPP(2, forgetting=0.9).fit(X, Y)
    np.testing.assert_allclose(model._engine.calibration.sums[0], 10.0, atol=1e-5)


@pytest.mark.parametrize("names", [["no", "yes"], ["high", "low", "middle"]], ids=len)
def test_classes_in_one_column(names):
    X, _ = data()
    y = np.array(names)[np.digitize(X[:, 0], np.linspace(-0.5, 0.5, len(names) - 1))]
    model = CSDPP(2).fit(X, y)
    P = model.predict_proba(X)
    assert P.shape == (len(X), len(names))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    with pytest.raises(InvalidInput, match="return_proba=True needs"):
        model.prequential(X, y, return_proba=True)
    with pytest.raises(InvalidInput, match="predict_top needs"):
        model.predict_top(X, 1)


def test_reliability():
    found = reliability([[1, 0], [1, np.nan]], [[0.9, 0.1], [0.95, 0.2]], bins=2)
    assert found.count.tolist() == [1, 2]
    np.testing.assert_allclose(found.chance, [0.1, 0.925])
    np.testing.assert_allclose(found.frequency, [0.0, 1.0])
    assert found.error == pytest.approx((0.1 + 2 * 0.075) / 3)
    assert found.brier == pytest.approx((0.01 + 0.01 + 0.0025) / 3)
    assert np.isnan(reliability([[1]], [[0.9]], bins=2).frequency[0])
    with pytest.raises(InvalidInput, match="Y and P must have one shape"):
        reliability([[1]], [[0.5, 0.5]])
    with pytest.raises(InvalidInput, match=r"P must hold chances in \[0, 1\]"):
        reliability([[1]], [[1.5]])
    with pytest.raises(InvalidParameter, match="bins must be a whole number at least 1, got 0"):
        reliability([[1]], [[0.5]], bins=0)


# ------------------------------------------------------------------------------------------------ top k


@every_learner
@pytest.mark.parametrize("by", ["score", "proba"])
def test_top_is_the_sorted_order(learner, by):
    X, Y = data()
    model = clone(learner).fit(X, Y)
    values = model.decision_function(X) if by == "score" else model.predict_proba(X)
    order = np.argsort(-values, axis=1, kind="stable")
    for k in (1, 3, 6):
        names, best = model.predict_top(X, k, by=by, return_values=True)
        np.testing.assert_array_equal(names, model.classes_[order[:, :k]])
        np.testing.assert_array_equal(best, np.take_along_axis(values, order[:, :k], axis=1))
    np.testing.assert_array_equal(model.predict_top(sparse.csr_array(X[:0]), 2, by=by).shape, (0, 2))


@pytest.mark.parametrize("levels", [1, 3, 1000])
def test_ties_go_to_the_label_that_stands_first(levels):
    from csdpp._kernels.top import top_columns

    rng = np.random.default_rng(0)
    for K in (1, 2, 7, 64):
        S = rng.integers(0, levels, (30, K)).astype(float)
        S[0] = np.arange(K)  # the worst order there is
        for k in {1, K // 2 or 1, K}:
            np.testing.assert_array_equal(top_columns(S, k), np.argsort(-S, axis=1, kind="stable")[:, :k])


def test_top_in_strips_is_top_at_once(monkeypatch):
    X, Y = data()
    model = CSDPP(2, regularization="auto").fit(X, Y)
    expected = model.predict_top(X, 3)
    monkeypatch.setattr("csdpp.engine._STRIP", 50)
    np.testing.assert_array_equal(model.predict_top(X, 3), expected)


@pytest.mark.parametrize("k", [0, 7, 1.5, True])
def test_bad_k_is_refused(k):
    X, Y = data()
    with pytest.raises(InvalidParameter, match="k must be a whole number from 1 to the 6 labels, got"):
        CSDPP(2).fit(X, Y).predict_top(X, k)
    with pytest.raises(InvalidParameter, match='by must be one of "score", "proba", got'):
        CSDPP(2).fit(X, Y).predict_top(X, 1, by="chance")
