"""Labels that nobody told: they move nothing, and what is known costs what it would cost alone."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import naive
from csdpp import CSDPP, OnlineBinaryRelevance, OnlineCompressedSensing, OnlineRandomProjection, persist
from csdpp.costs import F1, AnyCost, CountCost, Hamming, MacroF1, MicroF1, resolve_cost
from csdpp.errors import InvalidInput
from csdpp.evaluate import prequential
from learners import LEARNERS, assert_same_state, state
from streams import STREAMS
from test_baselines import REGRESSORS, by_hand
from test_learner import COMBINATIONS, WEIGHTINGS, assert_same

every_learner = pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)


def gaps(name="correlated", seed=0, share=0.5, **options):
    """A stream some labels of which are NaN: all of some rows, none of others, and nearly all of label 0."""
    X, Y = STREAMS[name](**options)
    rng = np.random.default_rng(seed)
    mask = rng.random(Y.shape) >= share
    mask[::7], mask[3::7] = False, True
    mask[: len(Y) // 2, 0] = False
    return X, np.where(mask, Y, np.nan), Y, mask


# ---- against the naive statement


@pytest.mark.parametrize("cost", ["hamming", "f1", "accuracy", "rank", "rank_published", "micro_f1", "macro_f1"])
@pytest.mark.parametrize(("basis", "encoder", "reference", "decode"), COMBINATIONS)
def test_equals_naive(basis, encoder, reference, decode, cost):
    X, Y, _, _ = gaps(n=40)
    choice = sum(map(len, (encoder, reference, decode, cost)))
    options = {"weighting": WEIGHTINGS[choice % 4], "forgetting": (1.0, 0.95)[choice % 2]}
    options |= {"basis": basis, "encoder": encoder, "reference": reference, "decode": decode, "cost": cost}
    options |= {"regressor": ("ridge", "gradient")[choice // 2 % 2]}
    assert assert_same(X, Y, 2, **options) > 20


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("options", [{}, {"basis": "pbt", "encoder": "label"}], ids=["pbc", "pbt"])
def test_equals_naive_on_odd_streams(name, options):
    X, Y, _, _ = gaps(name)
    assert_same(X, Y, min(2, Y.shape[1]), cost="f1", **options)


@pytest.mark.parametrize("regressor", REGRESSORS)
def test_baselines_equal_naive(regressor):
    X, Y, _, _ = gaps()
    d, K = X.shape[1] + 1, Y.shape[1]
    model = OnlineBinaryRelevance(regressor=regressor, block_size=7)
    slow = naive.BinaryRelevance(d, K, REGRESSORS[regressor](d))
    np.testing.assert_array_equal(model.prequential(X, Y), by_hand(slow, X, Y))
    np.testing.assert_allclose(np.vstack([model.coef_.T, model.intercept_]), slow.H, atol=1e-9)
    rand = OnlineRandomProjection(2, regressor=regressor, random_state=4, block_size=7).partial_fit(X[:0], Y[:0])
    slow = naive.RandomProjection(d, rand._engine.encoder.P, REGRESSORS[regressor](d))
    np.testing.assert_array_equal(rand.prequential(X, Y), by_hand(slow, X, Y))
    np.testing.assert_allclose(rand._engine.regressor.W, slow.W, atol=1e-9)
    sensing = OnlineCompressedSensing(3, regressor=regressor, random_state=4, block_size=7).partial_fit(X[:0], Y[:0])
    slow = naive.CompressedSensing(d, sensing._engine.encoder.A, REGRESSORS[regressor](d))
    np.testing.assert_array_equal(sensing.prequential(X, Y), by_hand(slow, X, Y))
    np.testing.assert_allclose(sensing._engine.regressor.W, slow.W, atol=1e-9)


# ---- what is promised


@every_learner
def test_a_row_of_which_nothing_is_known_moves_no_label(learner):
    X, Y, _, _ = gaps(n=80)
    model = clone(learner).fit(X, Y)
    before, scores = state(model), model.decision_function(X)
    model.partial_fit(X[:5], np.full((5, Y.shape[1]), np.nan))
    after = state(model)
    sampled = getattr(learner, "decode", "") == "sample"  # anew for each row, whatever it says
    for name in ("W", "o", "Q", "sigma", "keep", "memory"):
        if name in before and not (name == "memory" and learner.forgetting < 1) and not (name == "keep" and sampled):
            np.testing.assert_allclose(after[name], before[name], rtol=0, atol=1e-14, err_msg=name)
    if not sampled:
        np.testing.assert_allclose(model.decision_function(X), scores, rtol=0, atol=1e-13)


@pytest.mark.parametrize("cost", ["hamming", "f1", "rank", "micro_f1", "macro_f1"])
def test_a_label_that_is_not_known_is_one_predicted_exactly_right(cost):
    """Its weight is 0, its column of H stays, its reference stays, and c is 0 there."""
    X, Y, complete, _ = gaps(n=80)
    model = CSDPP(2, cost=cost).fit(X, Y)
    H, o = model.coef_, model.reference_
    row = complete[:1].astype(float)
    row[0, [1, 4]] = np.nan
    model.partial_fit(X[:1], row)
    known = [0, 2, 3, 5]
    assert (model.coef_[[1, 4]] == H[[1, 4]]).all()
    assert (model.coef_[known] != H[known]).any(axis=1).all()
    np.testing.assert_array_equal(model.reference_[[1, 4]], o[[1, 4]])
    assert (model.reference_[known] != o[known]).all()
    # Where nothing is capped and all directions are held, U + eta c c' leaves the rows and columns of the label.
    free = CSDPP(6, cost=cost, rate=1e-4).fit(X, Y)
    U = free.directions_.T @ np.diag(free.spectrum_) @ free.directions_
    free.partial_fit(X[:1], row)
    change = np.abs(free.directions_.T @ np.diag(free.spectrum_) @ free.directions_ - U)
    assert change[np.ix_(known, known)].max() > 1e-9
    assert change[[1, 4]].max() < 1e-15


@every_learner
def test_three_ways_to_say_it_and_what_stands_there_does_not_matter(learner):
    X, Y, complete, mask = gaps(n=90)
    models = [clone(learner) for _ in range(4)]
    answers = [
        models[0].prequential(X, Y),
        models[1].prequential(X, complete, mask=mask),
        models[2].prequential(X, np.where(mask, complete, 1 - complete), mask=mask.astype(int)),
        models[3].prequential(X, sparse.csr_array(complete), mask=mask).toarray(),
    ]
    for model, labels in zip(models[1:], answers[1:], strict=True):
        np.testing.assert_array_equal(labels, answers[0])
        assert_same_state(model, models[0])


@every_learner
def test_a_mask_that_says_all_is_known_changes_no_bit(learner):
    X, _, Y, _ = gaps(n=90)
    told, plain = clone(learner), clone(learner)
    np.testing.assert_array_equal(told.prequential(X, Y, mask=np.ones_like(Y)), plain.prequential(X, Y))
    assert_same_state(told, plain)


@every_learner
def test_block_size_does_not_matter(learner):
    X, Y, _, _ = gaps(n=90)
    one, many = clone(learner).set_params(block_size=1), clone(learner).set_params(block_size=64)
    np.testing.assert_array_equal(one.prequential(X, Y), many.prequential(X, Y))
    if not isinstance(learner, OnlineCompressedSensing):  # a pursuit takes in one of two labels that fit alike
        assert_same_state(one, many, atol=1e-10)
    np.testing.assert_allclose(one._engine.weights, many._engine.weights, rtol=0, atol=1e-10)


@every_learner
def test_saved_amid_gaps_goes_on_to_the_bit(learner):
    X, Y, _, _ = gaps(n=90)
    whole, half = clone(learner).fit(X, Y), clone(learner).fit(X[:40], Y[:40])
    half = persist.loads(persist.dumps(half))
    other = clone(learner).fit(X[:40], Y[:40])
    np.testing.assert_array_equal(half.prequential(X[40:], Y[40:]), other.prequential(X[40:], Y[40:]))
    assert_same_state(half, other)
    np.testing.assert_allclose(half._engine.weights, whole._engine.weights, rtol=0, atol=1e-10)


def test_reference_is_the_mean_of_the_rows_that_told():
    X, Y, _, _ = gaps(n=200)
    model = CSDPP(2, cost="hamming", block_size=13).fit(X, Y)
    signs = np.sign(Y - 0.5) / np.sqrt(np.maximum((~np.isnan(Y)).sum(axis=1, keepdims=True), 1))
    np.testing.assert_allclose(model.reference_, np.nanmean(signs, axis=0), rtol=0, atol=1e-12)


def test_missing_by_chance_costs_little():
    X, Y = STREAMS["correlated"](n=2000, d=8, K=10, seed=5)
    mask = np.random.default_rng(0).random(Y.shape) < 0.5
    for learner in (CSDPP(3), CSDPP.published(3, basis="pbt"), OnlineBinaryRelevance()):
        losses = [
            F1()(Y[1000:], clone(learner).prequential(X, Y, mask=known)[1000:]).mean()
            for known in (None, mask, np.repeat(np.arange(2000)[:, None] % 8 == 0, 10, axis=1))
        ]
        assert losses[1] < losses[0] + 0.03 < losses[2]  # the last: one row in eight is told, with all labels


def test_user_costs_and_candidates_take_gaps():
    X, Y, _, _ = gaps(n=90)
    count = CountCost(lambda tp, fp, fn, tn: (fp + fn) / (tp + fp + fn + tn))
    any_ = AnyCost(lambda y, y_hat: float((y != y_hat).mean()))
    expected = CSDPP(2, cost="hamming", weighting="ordered").fit(X, Y).decision_function(X)
    model = CSDPP(2, cost=count, weighting="ordered").fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)
    assert np.isfinite(CSDPP(2, cost=any_).fit(X, Y).decision_function(X)).all()
    for cost in ("f1", "macro_f1"):
        auto = CSDPP(2, cost=cost, regularization="auto").fit(X, Y)
        assert np.isfinite(auto._engine.sums).all()
    assert auto._engine.done == 90


# ---- the costs


@pytest.mark.parametrize("cost", ["hamming", "f1", "accuracy", "rank", "rank_published"])
def test_costs_of_what_is_known_are_those_of_the_rows_without_the_rest(cost):
    rng = np.random.default_rng(1)
    Y, Y_hat, mask = (rng.random((40, 6)) < p for p in (0.4, 0.4, 0.6))
    mask[0], mask[1:, 0] = False, True
    cost = resolve_cost(cost)
    losses = cost.loss(Y, Y_hat, mask)
    assert losses[0] == 0
    for weighting in WEIGHTINGS:
        weights = cost.weights(Y, Y_hat, weighting, mask)
        for y, y_hat, known, loss, row in zip(Y[1:], Y_hat[1:], mask[1:], losses[1:], weights[1:], strict=True):
            assert loss == cost.loss(y[known], y_hat[known])
            assert (row[~known] == 0).all()
            np.testing.assert_array_equal(row[known], cost.weights(y[known], y_hat[known], weighting))
            if weighting in ("ordered", "shapley") and cost.name != "rank_published":
                assert row[y != y_hat].sum() == pytest.approx(loss, abs=1e-12)  # Lemma 2
    with pytest.raises(
        InvalidInput, match=r"mask must have the shape of Y, \(40, 6\), got \(40, 5\); True means known"
    ):
        cost.loss(Y, Y_hat, mask[:, 1:])


def test_any_cost_gets_all_labels_those_not_known_as_neither_there_nor_predicted():
    prices = np.array([1.0, 2.0, 4.0])
    cost = AnyCost(lambda y, y_hat: float(((y != y_hat) * prices).sum()), vectorized=False)
    y, y_hat, known = np.array([1, 1, 0]), np.array([0, 0, 1]), np.array([True, False, True])
    assert cost.loss(y, y_hat, known) == 5.0
    np.testing.assert_array_equal(cost.weights(y, y_hat, "marginal", known), [1.0, 0.0, 4.0])
    assert CountCost(lambda tp, fp, fn, tn: fp + fn).loss(y, y_hat, known) == 2.0


def test_costs_of_a_stream_count_what_is_known():
    rng = np.random.default_rng(1)
    Y, Y_hat, mask = (rng.random((60, 5)) < p for p in (0.4, 0.4, 0.6))
    pooled = F1().loss(Y[mask], Y_hat[mask])
    assert MicroF1().loss(Y, Y_hat, mask) == pytest.approx(pooled)
    each = [F1().loss(Y[mask[:, k], k], Y_hat[mask[:, k], k]) for k in range(5)]
    assert MacroF1().loss(Y, Y_hat, mask) == pytest.approx(np.mean(each))


# ---- evaluation


def test_evaluation_is_of_what_is_known():
    X, Y, complete, mask = gaps(n=300)
    model = CSDPP(2)
    answers = clone(model).prequential(X, Y).astype(bool)
    costs = ("hamming", "f1", "micro_f1", "macro_f1")
    result = prequential(model, X, Y, costs, checkpoints=[150, 300], keep_losses=True)
    told = mask.any(axis=1)
    rows = zip(complete, answers, mask, strict=True)
    losses = np.array([Hamming().loss(y[known], a[known]) if known.any() else np.nan for y, a, known in rows])
    np.testing.assert_array_equal(result.losses["hamming"], losses)
    assert result.averages["hamming"] == pytest.approx(losses[told].mean())
    assert result.curves["hamming"][0] == pytest.approx(np.nanmean(losses[:150]))
    assert result.averages["micro_f1"] == pytest.approx(MicroF1().loss(complete, answers, mask))
    assert result.averages["macro_f1"] == pytest.approx(MacroF1().loss(complete, answers, mask))
    four = np.array([result.per_label[name] for name in ("tp", "fp", "fn", "tn")])
    np.testing.assert_array_equal(four.sum(axis=0), mask.sum(axis=0))
    np.testing.assert_array_equal(four[0], (complete & answers & mask).sum(axis=0))
    again = prequential(CSDPP(2), X, complete, costs, mask=mask)
    assert again.averages == result.averages
    late = prequential(CSDPP(2), X, Y, costs, batch_size=10)
    assert 0 < late.averages["f1"] < 1


# ---- input


def test_gaps_of_frames_and_lists():
    X, Y, _, _ = gaps(n=60)
    expected = CSDPP(2).fit(X, Y)
    with_none = [[None if np.isnan(value) else int(value) for value in row] for row in Y]
    assert_same_state(CSDPP(2).fit(X, with_none), expected)
    frame = pd.DataFrame(Y, columns=list("uvwxyz"))
    model = CSDPP(2).fit(X, frame)
    assert_same_state(model, expected)
    assert_same_state(CSDPP(2).fit(X, frame.astype("boolean")), expected)
    mask, filled = frame.notna()[list("zyxwvu")], frame.fillna(1)[list("zyxwvu")]
    assert_same_state(model.partial_fit(X, filled, mask=mask), expected.partial_fit(X, Y))
    turned = mask[list("vuxwzy")]  # a mask with names goes by them
    assert_same_state(model.partial_fit(X, filled, mask=turned), expected.partial_fit(X, Y))
    assert_same_state(model.partial_fit(X, frame.fillna(1).to_numpy(), mask=turned), expected.partial_fit(X, Y))
    with pytest.raises(InvalidInput, match=r"mask must have the columns of Y, differs in \['q', 'z'\]"):
        model.partial_fit(X, filled, mask=mask.rename(columns={"z": "q"}))
    one = OnlineBinaryRelevance().fit(X, Y[:, :1])
    assert one.predict(X).shape == (60, 1)


def test_what_is_refused():
    X, Y, complete, mask = gaps(n=60)
    with pytest.raises(InvalidInput, match=r"CSDPP: mask must have the shape of Y, \(60, 6\), got \(60, 5\)"):
        CSDPP(2).partial_fit(X, complete, mask=mask[:, 1:])
    with pytest.raises(InvalidInput, match="CSDPP: mask must hold 0/1 or boolean indicators"):
        CSDPP(2).partial_fit(X, complete, mask=mask + 1)
    with pytest.raises(InvalidInput, match=r"mask must go with indicators \(n, K\), got 1-D classes; drop those rows"):
        CSDPP(2).partial_fit(X, complete[:, 0], mask=mask[:, 0])
    with pytest.raises(InvalidInput, match=r"y must not contain NaN or infinity; drop or impute those rows"):
        CSDPP(2).partial_fit(X, Y[:, 1])
    with pytest.raises(InvalidInput, match=r"Y must hold 0 and 1, got 2\.0; turn Y into indicators"):
        CSDPP(2).partial_fit(X, np.where(np.isnan(Y), np.nan, 2.0))


def test_growing_after_gaps():
    X, Y, _, _ = gaps(n=120)
    for learner, _ in itertools.product((CSDPP(2), CSDPP(2, cost="macro_f1")), range(1)):
        model = clone(learner).fit(X[:60], Y[:60, :4]).add_labels(2)
        assert not model.predict(X)[:, 4:].any()
        assert model.partial_fit(X[60:], Y[60:]).drop_labels([0]).partial_fit(X, Y[:, 1:]).n_seen_ == 240
