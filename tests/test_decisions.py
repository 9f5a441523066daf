"""Thresholds tuned online: against the plain search, cuts of the stream, files, benefit."""

import copy

import numpy as np
import pytest
from scipy import sparse

from csdpp import CSDPP, OnlineBinaryRelevance, persist
from csdpp._kernels.decide import BINS, MIDDLE, OFTEN, SELDOM, WIDTH
from csdpp.costs import AnyCost, CountCost, resolve_cost
from csdpp.datasets import make_stream
from csdpp.decisions import OnlineThresholds
from csdpp.errors import DataFormatError, InvalidInput, InvalidParameter
from learners import data

COSTS = ["hamming", "f1", "accuracy", "rank", "micro_f1", "macro_f1"]


def exact(y, y_hat):
    return float((y != y_hat).any())


def bins_of(P):
    return np.clip(np.floor(np.log(P / (1 - P)) * WIDTH) + MIDDLE, 0, BINS - 1).astype(int)


def by_hand(cost, own, P, Y):
    """Every gain kept, every threshold searched anew; the better of the two decisions so far."""
    n, K = Y.shape
    bins, gains, places = bins_of(P), np.zeros(Y.shape), np.full(K, MIDDLE)
    tuned, out = np.zeros(Y.shape, bool), np.zeros(Y.shape, bool)
    for t in range(n):
        tuned[t] = bins[t] >= places
        before = [np.sum(cost.loss(Y[:t], a[:t])) if t else 0.0 for a in (tuned, own)]
        out[t] = own[t] if before[1] <= before[0] else tuned[t]
        if cost.name == "micro_f1":
            delta = cost.weights(Y[: t + 1], tuned[: t + 1], "marginal")[t]
        else:
            delta = cost.weights(Y[t], tuned[t], "marginal")
        gains[t] = np.where(Y[t], delta, -delta)
        if t + 1 < OFTEN or (t + 1) % SELDOM == 0:
            for k in range(K):
                totals = [gains[: t + 1, k][bins[: t + 1, k] >= b].sum() for b in range(BINS + 1)]
                best = max(totals)
                if gains[: t + 1, k].any():
                    places[k] = max(b for b in range(BINS + 1) if totals[b] > best - 1e-12)
    return out, places


@pytest.mark.parametrize("cost", ["hamming", "f1", "micro_f1", "own"])
def test_against_the_plain_search(cost):
    X, Y = data(120)
    cost = CountCost(lambda tp, fp, fn, tn: (fp + 3 * fn) / 18) if cost == "own" else resolve_cost(cost)
    own, P = OnlineBinaryRelevance().prequential(X, Y, return_proba=True)
    expected, places = by_hand(cost, own.astype(bool), P, Y.astype(bool))
    model = OnlineThresholds(OnlineBinaryRelevance(), cost)
    np.testing.assert_array_equal(model.prequential(X, Y), expected)
    np.testing.assert_array_equal(model.places_, places)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("forgetting", [1.0, 0.98])
def test_cuts_and_files_change_nothing(cost, forgetting, tmp_path):
    X, Y = data()
    whole = OnlineThresholds(CSDPP(2), cost, forgetting=forgetting)
    expected, got = whole.prequential(X, Y), []
    model = OnlineThresholds(CSDPP(2), cost, forgetting=forgetting)
    for rows in np.split(np.arange(len(X)), [1, 40, 100]):
        got.append(model.prequential(X[rows], Y[rows]))
        model.save(tmp_path / "m")
        twin = OnlineThresholds.load(tmp_path / "m")
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))
        model = twin
    np.testing.assert_array_equal(np.vstack(got), expected)
    np.testing.assert_allclose(model.gains_, whole.gains_, atol=1e-12)
    np.testing.assert_array_equal(model.thresholds_, whole.thresholds_)
    assert persist.load(tmp_path / "m").n_seen_ == len(X)


def test_predict_is_what_the_next_row_gets():
    stream = make_stream(800, 20, 12, rank=4, random_state=1)
    X, Y = stream.X, stream.Y
    model = OnlineThresholds(OnlineBinaryRelevance(), "macro_f1").partial_fit(X[:799], Y[:799])
    assert not model.own_
    expected = copy.deepcopy(model).prequential(X[799:], Y[799:])
    np.testing.assert_array_equal(model.predict(X[799:]), expected)
    P = model.predict_proba(X)
    inner = (model.thresholds_ > 0) & (model.places_ < BINS)
    np.testing.assert_array_equal(model.predict(X)[:, inner], (model.thresholds_ <= P)[:, inner])


@pytest.mark.parametrize("cost", ["f1", "macro_f1"])
def test_it_pays(cost):
    stream = make_stream(2000, 20, 12, rank=4, random_state=1)
    model = OnlineThresholds(OnlineBinaryRelevance(), cost)
    Y_hat = model.prequential(stream.X, stream.Y)
    plain = np.mean(resolve_cost(cost).loss(stream.Y, OnlineBinaryRelevance().prequential(stream.X, stream.Y)))
    assert np.mean(resolve_cost(cost).loss(stream.Y, Y_hat)) < plain - 0.03
    assert model.averages_[1] == pytest.approx(plain)


@pytest.mark.parametrize("cost", ["f1", "micro_f1", "macro_f1", "own"])
def test_what_is_not_known_gains_nothing(cost):
    """Rows of which nothing is known change nothing; labels that never were known keep their threshold."""
    X, Y = data()
    cost = CountCost(lambda tp, fp, fn, tn: (fp + 2 * fn) / 12) if cost == "own" else cost
    partial = Y.astype(float)
    partial[:, 2] = np.nan
    partial[::3] = np.nan
    model = OnlineThresholds(OnlineBinaryRelevance(), cost).partial_fit(X, partial)
    assert not model.gains_[2].any()
    assert model.places_[2] == MIDDLE
    told = np.arange(150) % 3 != 0
    assert (model.n_seen_, model.n_told_) == (150, told.sum())
    before = copy.deepcopy(model)
    model.partial_fit(X[:9], Y[:9], mask=np.zeros((9, 6), bool))
    for name in ("gains_", "places_", "memory_", "sums_", "counts_", "n_told_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(before, name))


@pytest.mark.parametrize("cost", ["f1", "micro_f1", "macro_f1"])
def test_labels_come_and_go(cost, tmp_path):
    X, Y = data()
    model = OnlineThresholds(OnlineBinaryRelevance(), cost).partial_fit(X[:80], Y[:80, :4])
    gains = model.gains_.copy()
    model.model.drop_labels([1]).add_labels(2)
    model.save(tmp_path / "m")
    model = OnlineThresholds.load(tmp_path / "m")
    assert model.predict(X).shape == (150, 5)
    np.testing.assert_array_equal(model.gains_[:3], gains[[0, 2, 3]])
    assert not model.gains_[3:].any()
    answers = model.partial_fit(X[80:], Y[80:, [0, 2, 3, 4, 5]]).predict(X)
    assert answers.shape == (150, 5)
    assert model.gains_[3:].any()


def test_a_label_that_went_and_came_back_is_a_new_one():
    X, Y = data()
    model = OnlineThresholds(OnlineBinaryRelevance(), "f1")
    model.partial_fit(X, Y)
    gains = model.gains_.copy()
    model.model.drop_labels([1]).add_labels([1]).drop_labels([4]).add_labels([9])
    model.partial_fit(X[:0], Y[:0])
    assert model.model.classes_.tolist() == [0, 2, 3, 5, 1, 9]
    np.testing.assert_array_equal(model.gains_[:4], gains[[0, 2, 3, 5]])
    assert not model.gains_[4:].any()


def test_formats():
    X, Y = data()
    model = OnlineThresholds(CSDPP(2), "f1")
    labels = model.prequential(X, sparse.csr_matrix(Y))
    assert sparse.issparse(labels)
    np.testing.assert_array_equal(labels.toarray(), OnlineThresholds(CSDPP(2)).prequential(X, Y))
    assert OnlineThresholds(CSDPP(2).partial_fit(X[:0], Y[:0])).predict(X).shape == Y.shape
    assert model.prequential(X[:0], sparse.csr_matrix(Y[:0])).shape == (0, 6)


def test_what_cannot_be_is_said(tmp_path):
    X, Y = data()
    with pytest.raises(InvalidParameter, match="model must be an online learner of this package, got int"):
        OnlineThresholds(3)
    with pytest.raises(InvalidParameter, match=r"forgetting must be a number in \(0, 1\], got 2"):
        OnlineThresholds(CSDPP(2), forgetting=2)
    with pytest.raises(InvalidInput, match="return_proba=True needs"):
        OnlineThresholds(CSDPP(2)).partial_fit(X, Y[:, 0])
    CSDPP(2).fit(X, Y).save(tmp_path / "plain")
    with pytest.raises(DataFormatError, match=r"must be written by OnlineThresholds\.save"):
        OnlineThresholds.load(tmp_path / "plain")
    model = OnlineThresholds(CSDPP(2), AnyCost(exact))
    model.partial_fit(X[:20], Y[:20]).save(tmp_path / "own")
    with pytest.raises(InvalidParameter, match="cost must be one of"):
        OnlineThresholds.load(tmp_path / "own")
    with pytest.raises(InvalidParameter, match="cost must be the one called 'exact'"):
        OnlineThresholds.load(tmp_path / "own", cost="f1")
    assert OnlineThresholds.load(tmp_path / "own", cost=model.cost).n_seen_ == 20
    good = persist.inspect(tmp_path / "own")["extra"]
    for name in good["state"]:
        wrong = {**good, "state": {**good["state"], name: np.zeros(3)}}
        persist.save(model.model, tmp_path / "bad", extra=wrong)
        with pytest.raises(DataFormatError, match="the thresholds do not fit the model"):
            OnlineThresholds.load(tmp_path / "bad", cost=model.cost)
