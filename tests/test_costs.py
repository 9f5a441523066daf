"""The costs as a user meets them: values, inputs, own functions, warnings, errors, use as a parameter."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numba import njit
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import f1_score, hamming_loss, jaccard_score
from sklearn.model_selection import GridSearchCV

import naive_costs as naive
from csdpp import costs
from csdpp.costs import F1, Accuracy, AnyCost, CountCost, Hamming, Rank, RankPublished
from csdpp.errors import CostConditionWarning, CsdppError, InvalidInput, InvalidParameter

BUILTIN = [Hamming, F1, Accuracy, Rank, RankPublished]
WEIGHTINGS = ["ordered", "shapley", "marginal", "mean"]


def f1_of_arrays(tp, fp, fn, tn):
    return (fp + fn) / np.maximum(2 * tp + fp + fn, 1)


def f1_of_integers(tp, fp, fn, tn):
    return 1 - 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else 0


@njit
def f1_compiled(tp, fp, fn, tn):
    return 1 - 2 * tp / (2 * tp + fp + fn) if tp + fp + fn > 0 else 0.0


def f1_of_matrix(y, Y_hat):
    both = (y * Y_hat).sum(axis=-1)
    either = y.sum() + Y_hat.sum(axis=-1)
    return 1 - 2 * both / np.where(either == 0, 2, either) - (either == 0)


def uneven(y, Y_hat):
    """Not a function of the counts, and not a sum over labels."""
    importance = np.arange(1, len(y) + 1)
    return np.sqrt(((y != Y_hat) * importance).sum(axis=-1) / importance.sum())


def uneven_row(y, y_hat):
    assert y_hat.ndim == 1
    return float(uneven(y, y_hat))


OWN_F1 = [CountCost(f1_of_arrays), CountCost(f1_of_integers), CountCost(f1_compiled), AnyCost(f1_of_matrix)]


def labels(n, K, seed=0):
    rng = np.random.default_rng(seed)
    Y, Y_hat = rng.random((2, n, K)) < rng.random((2, n, 1))
    Y[:3], Y_hat[1:4], Y[4:6], Y_hat[5:7] = False, False, True, True  # every corner
    return Y, Y_hat


# ------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("y", "y_hat", "hamming", "f1", "accuracy", "rank", "published"),
    [
        ([0, 0, 0], [0, 0, 0], 0, 0, 0, 0, 1),  # nothing relevant, nothing predicted
        ([0, 0, 0], [1, 0, 0], 1 / 3, 1, 1, 0, 1),  # nothing relevant
        ([0, 0, 0], [1, 1, 1], 1, 1, 1, 0, 1),
        ([1, 1, 0, 0], [0, 0, 0, 0], 1 / 2, 1, 1, 1 / 2, 1 / 2),  # nothing predicted
        ([1, 1, 1], [1, 1, 1], 0, 0, 0, 0, 0),  # all relevant, all predicted
        ([1, 1, 1], [0, 1, 1], 1 / 3, 1 / 5, 1 / 3, 0, 0),  # all relevant
        ([1, 1, 1], [0, 0, 0], 1, 1, 1, 0, 0),
        ([1, 1, 0, 0], [1, 1, 1, 1], 1 / 2, 1 / 3, 1 / 2, 1 / 2, 0),  # all predicted
        ([1, 1, 0, 0], [0, 0, 1, 1], 1, 1, 1, 1, 1),  # all wrong
        ([1, 1, 0, 0, 0], [1, 0, 1, 0, 0], 2 / 5, 1 / 2, 2 / 3, 5 / 12, 1 / 3),
        ([1], [1], 0, 0, 0, 0, 0),
        ([1], [0], 1, 1, 1, 0, 0),
        ([0], [1], 1, 1, 1, 0, 1),
        ([0], [0], 0, 0, 0, 0, 1),
    ],
)
def test_losses_in_every_corner(y, y_hat, hamming, f1, accuracy, rank, published):
    for cost, expected in zip(BUILTIN, [hamming, f1, accuracy, rank, published], strict=True):
        assert cost().loss(y, y_hat) == pytest.approx(expected, abs=1e-15), cost
        assert naive.COSTS[cost.name](y, y_hat) == pytest.approx(expected, abs=1e-15), cost


@pytest.mark.parametrize(
    ("cost", "y", "y_hat", "weighting", "expected"),
    [
        (Hamming(), [1, 0], [0, 0], "ordered", [1 / 2, 1 / 2]),
        # c: 1 as predicted, 1/3 with the first label right, 0 with both
        (F1(), [1, 1], [0, 0], "ordered", [2 / 3, 1 / 3]),
        (F1(), [1, 1], [0, 0], "shapley", [1 / 2, 1 / 2]),
        (F1(), [1, 1], [0, 0], "marginal", [2 / 3, 2 / 3]),
        (F1(), [1, 1], [0, 0], "mean", [7 / 12, 7 / 12]),
        # nothing relevant: whichever false alarm is put right last carries the whole loss
        (F1(), [0, 0, 0], [1, 1, 0], "ordered", [0, 1, 1]),
        (F1(), [0, 0, 0], [1, 1, 0], "shapley", [1 / 2, 1 / 2, 1 / 3]),
        (F1(), [0, 0, 0], [1, 1, 0], "marginal", [0, 0, 0]),
        (Accuracy(), [0, 0, 0], [1, 1, 0], "shapley", [1 / 2, 1 / 2, 1 / 3]),
        (Accuracy(), [1, 0], [0, 1], "shapley", [3 / 4, 1 / 4]),
        (Rank(), [1, 0, 0], [0, 1, 0], "shapley", [1 / 2, 1 / 4, 1 / 4]),
        (Rank(), [1, 1, 1], [0, 1, 1], "ordered", [0, 0, 0]),
        (RankPublished(), [0, 0], [1, 0], "mean", [0, 0]),
        (RankPublished(), [1, 0], [0, 1], "shapley", [3 / 4, 1 / 4]),
        (F1(), [1], [0], "shapley", [1]),
        (F1(), [0], [0], "mean", [1]),
    ],
)
def test_weights_by_hand(cost, y, y_hat, weighting, expected):
    np.testing.assert_allclose(cost.weights(y, y_hat, weighting), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("cost", BUILTIN)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_a_batch_is_the_plain_statement_row_by_row(cost, weighting):
    Y, Y_hat = labels(12, 5)
    c = naive.COSTS[cost.name]
    expected = [naive.WEIGHTINGS[weighting](c, y, y_hat) for y, y_hat in zip(Y * 1, Y_hat * 1, strict=True)]
    np.testing.assert_allclose(cost().weights(Y, Y_hat, weighting), expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(
        cost()(Y, Y_hat), [c(y, y_hat) for y, y_hat in zip(Y * 1, Y_hat * 1, strict=True)], atol=1e-15
    )


def test_losses_agree_with_scikit_learn():
    Y, Y_hat = labels(200, 9)
    f1 = f1_score(Y, Y_hat, average="samples", zero_division=1)
    jaccard = jaccard_score(Y[6:], Y_hat[6:], average="samples", zero_division=1)
    assert Hamming().loss(Y, Y_hat).mean() == pytest.approx(hamming_loss(Y, Y_hat))
    assert F1().loss(Y, Y_hat).mean() == pytest.approx(1 - f1)
    assert Accuracy().loss(Y[6:], Y_hat[6:]).mean() == pytest.approx(1 - jaccard)


# ------------------------------------------------------------------------------------------------- inputs


@pytest.mark.parametrize("cost", [F1(), CountCost(f1_of_arrays), AnyCost(uneven)], ids=repr)
def test_every_form_of_input_gives_the_same(cost, monkeypatch):
    Y, Y_hat = labels(9, 6)
    loss, weights = cost.loss(Y, Y_hat), cost.weights(Y, Y_hat)
    monkeypatch.setattr(costs._base, "CELLS", 12)
    monkeypatch.setattr(costs._user, "CELLS", 12)  # sparse rows and candidate predictions go by twos
    assert loss.shape == (9,)
    assert weights.shape == (9, 6)
    forms = [
        (Y.tolist(), Y_hat.tolist()),
        (Y * 1, Y_hat * 1.0),
        (np.asfortranarray(Y), Y_hat.astype(np.int8)),
        (sparse.csr_array(Y), sparse.csr_matrix(Y_hat * 1)),
        (sparse.coo_array(Y * 1.0), Y_hat),
        (Y, sparse.csc_array(Y_hat)),
        (pd.DataFrame(Y), pd.DataFrame(Y_hat * 1)),
        (pd.DataFrame(Y).astype("boolean"), pd.DataFrame(Y_hat).astype(object)),
    ]
    for form in forms:
        np.testing.assert_array_equal(cost.loss(*form), loss)
        np.testing.assert_array_equal(cost.weights(*form), weights)
    assert isinstance(cost.loss(Y[7], Y_hat[7]), float)
    assert cost.loss(pd.Series(Y[7]), Y_hat[7]) == loss[7]
    np.testing.assert_array_equal(cost.weights(Y[7], Y_hat[7]), weights[7])


def test_no_rows_have_no_losses():
    assert F1().loss(np.empty((0, 3)), np.empty((0, 3), bool)).shape == (0,)
    assert CountCost(f1_of_integers).loss(np.empty((0, 3)), np.empty((0, 3))).shape == (0,)
    assert F1().weights(sparse.csr_array((0, 3)), sparse.csr_array((0, 3))).shape == (0, 3)


def test_inputs_are_left_alone():
    Y, Y_hat = np.array([[1.0, 0.0]]), np.array([[0, 1]])
    for cost in (F1(), *OWN_F1):
        cost.weights(Y, Y_hat, "mean")
    assert Y.tolist() == [[1, 0]]
    assert Y_hat.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("Y", "Y_hat", "message"),
    [
        (
            [[0, 2]],
            [[0, 1]],
            "f1: Y must hold 0/1 or boolean indicators in rows of one length, got 2; encode",
        ),
        ([[0, 1]], [[0, -1]], "f1: Y_hat must hold 0/1 .* got .*-1"),
        ([[0, 1]], [[0, np.nan]], "f1: Y_hat must hold 0/1 .* got .*nan"),
        ([[0, 1]], [[0, None]], "f1: Y_hat must hold 0/1 .* got .*"),
        ([["a", "b"]], [[0, 1]], "f1: Y must hold 0/1 .* got a; encode"),
        ([[0, 1], [1]], [[0, 1], [1, 1]], r"f1: Y must hold .* rows of one length, got \[\[0, 1\], \[1\]\]"),
        (sparse.csr_array([[0, 3]]), [[0, 1]], "f1: Y must hold 0/1 .* got .*3"),
        ([[0, 1]], [[0, 1, 1]], r"must have one shape, .* got \(1, 2\) and \(1, 3\); pass"),
        ([[0, 1]], [0, 1], r"must have one shape, .* got \(1, 2\) and \(2,\)"),
        ([], [], r"at least one label, got \(0,\)"),
        (np.zeros((2, 0)), np.zeros((2, 0)), r"at least one label, got \(2, 0\)"),
        (1, 1, r"got \(\) and \(\)"),
        (np.zeros((1, 1, 1)), np.zeros((1, 1, 1)), r"got \(1, 1, 1\)"),
    ],
)
def test_bad_labels(Y, Y_hat, message):
    for ask in (F1().loss, F1().weights):
        with pytest.raises(InvalidInput, match=message):
            ask(Y, Y_hat)


# -------------------------------------------------------------------------------------------- own functions


@pytest.mark.parametrize("cost", OWN_F1, ids=repr)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_an_own_f1_is_the_built_in_one(cost, weighting):
    Y, Y_hat = labels(25, 11)
    np.testing.assert_allclose(cost.loss(Y, Y_hat), F1().loss(Y, Y_hat), rtol=0, atol=1e-12)
    if isinstance(cost, AnyCost) and weighting in ("shapley", "mean"):
        return  # a sample of the orders, see below
    expected = F1().weights(Y, Y_hat, weighting)
    np.testing.assert_allclose(cost.weights(Y, Y_hat, weighting), expected, rtol=0, atol=1e-12)


def test_shapley_of_plain_functions_with_hundreds_of_mistakes():
    y, y_hat = np.zeros((2, 1000), bool)
    y[:300], y_hat[200:450] = True, True
    expected = F1().weights(y, y_hat, "shapley")
    found = CountCost(f1_of_arrays).weights(y, y_hat, "shapley")
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=0)


@pytest.mark.parametrize("f", [uneven, uneven_row])
@pytest.mark.parametrize("weighting", ["ordered", "marginal"])
def test_any_cost_against_the_plain_statement(f, weighting):
    Y, Y_hat = labels(20, 6)
    for y, y_hat in zip(Y * 1, Y_hat * 1, strict=True):
        expected = naive.WEIGHTINGS[weighting](lambda a, b: uneven(a, np.array(b)), y, y_hat)
        np.testing.assert_allclose(AnyCost(f).weights(y, y_hat, weighting), expected, rtol=0, atol=1e-13)


def test_any_cost_shapley_is_exact_where_an_order_and_its_reverse_are_all():
    for y, y_hat in [([1, 0], [0, 1]), ([1, 1], [0, 0]), ([0, 0], [0, 1]), ([1, 0], [1, 0])]:
        y, y_hat = np.array(y), np.array(y_hat)
        cost = AnyCost(uneven, orders=2)
        expected = naive.shapley_all_orders(lambda a, b: uneven(a, np.array(b)), y, y_hat)
        np.testing.assert_allclose(cost.weights(y, y_hat, "shapley"), expected, rtol=0, atol=1e-15)
        expected = naive.mean(lambda a, b: uneven(a, np.array(b)), y, y_hat)
        np.testing.assert_allclose(cost.weights(y, y_hat, "mean"), expected, rtol=0, atol=1e-15)


def test_any_cost_shapley_comes_near_the_average_over_all_orders():
    y, y_hat = np.array([1, 0, 1, 0, 0]), np.array([0, 1, 1, 1, 0])
    expected = naive.shapley_all_orders(lambda a, b: uneven(a, np.array(b)), y, y_hat)
    found = AnyCost(uneven, orders=2000, random_state=3).weights(y, y_hat, "shapley")
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.01)  # about five standard errors


@pytest.mark.parametrize("weighting", ["ordered", "shapley"])
@pytest.mark.parametrize("orders", [1, 5, 8])
def test_lemma_2_holds_exactly_for_any_cost(weighting, orders):
    Y, Y_hat = labels(20, 6)
    cost = AnyCost(uneven, orders=orders)
    paid = (cost.weights(Y, Y_hat, weighting) * (Y_hat != Y)).sum(axis=1)
    np.testing.assert_allclose(paid, cost.loss(Y, Y_hat), rtol=0, atol=1e-13)


def test_any_cost_shapley_depends_on_the_row_and_the_seed_alone():
    Y, Y_hat = labels(20, 6)
    all_rows = AnyCost(uneven).weights(Y, Y_hat, "shapley")
    np.testing.assert_array_equal(AnyCost(uneven).weights(Y[::-1], Y_hat[::-1], "shapley"), all_rows[::-1])
    assert not np.array_equal(AnyCost(uneven, random_state=1).weights(Y, Y_hat, "shapley"), all_rows)


def test_any_cost_takes_orders_in_pairs_and_other_orders_for_other_rows(monkeypatch):
    taken = []

    def remember(self, y, y_hat, order):
        taken.append(order.tolist())
        return np.zeros(len(y))

    monkeypatch.setattr(AnyCost, "_along", remember)
    AnyCost(uneven, orders=4).weights([[0] * 9, [1] * 9], [[0] * 9, [0] * 9], "shapley")
    assert len(taken) == 8
    assert all(taken[t] == taken[t - 1][::-1] for t in range(1, 8, 2))
    assert len({tuple(order) for order in taken}) == 8


def test_any_cost_makes_candidates_in_chunks():
    largest = 0

    def share_wrong(y, Y_hat):
        nonlocal largest
        largest = max(largest, Y_hat.size)
        return (y != Y_hat).mean(axis=-1)

    y, y_hat = np.random.default_rng(0).integers(0, 2, (2, 3000))
    found = AnyCost(share_wrong).weights(y, y_hat)
    assert largest <= 2**20  # 2K candidates would be 18 million entries
    np.testing.assert_allclose(found, 1 / 3000, rtol=0, atol=1e-13)


def test_functions_are_called_with_many_where_they_take_many():
    calls = []

    def counting(tp, fp, fn, tn):
        calls.append(np.shape(tp))
        return (fp + fn) / (tp + fp + fn + tn)

    Y, Y_hat = labels(50, 8)
    cost = CountCost(counting)
    cost.loss(Y, Y_hat)
    calls.clear()
    cost.loss(Y, Y_hat)
    assert calls == [(50,)]


def test_any_cost_told_to_be_vectorized_is_never_called_otherwise():
    def only_matrix(y, Y_hat):
        assert Y_hat.ndim == 2
        return (y != Y_hat).mean(axis=1)

    Y, Y_hat = labels(10, 4)
    cost = AnyCost(only_matrix, vectorized=True)
    np.testing.assert_allclose(cost.loss(Y, Y_hat), Hamming().loss(Y, Y_hat))
    np.testing.assert_allclose(cost.weights(Y, Y_hat), 1 / 4)

    def only_row(y, y_hat):
        return float(y[0] != y_hat[0])  # of a matrix it would compare a row

    assert AnyCost(only_row, vectorized=False).loss([1, 1], [0, 1]) == 1.0
    assert AnyCost(only_row).loss([1, 1], [0, 1]) == 1.0


# -------------------------------------------------------------------------------------- warnings and errors


def half_price_for_perfection(tp, fp, fn, tn):
    return 0.5 if fp + fn == 0 else 1.0


def rewards_a_second_false_alarm(tp, fp, fn, tn):
    return (fp == 1) * 0.5 + (fp > 1) * 0.25


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_a_cost_that_is_not_zero_for_perfection_warns_once(compiled, weighting):
    f = half_price_for_perfection
    cost = CountCost(njit(f) if compiled else f, name="mine")
    message = r"cost 'mine' must be 0 for a perfect prediction, got 0.5 at tp=2, fp=0, fn=0, tn=1; Lemma 2"
    with pytest.warns(CostConditionWarning, match=message):
        first = cost.weights([1, 1, 0], [0, 0, 1], weighting)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(cost.weights([1, 1, 0], [0, 0, 1], weighting), first)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_cost_that_rises_when_a_label_is_put_right_warns_once(compiled):
    f = rewards_a_second_false_alarm
    cost = CountCost(njit(f) if compiled else f, name="mine")
    message = (
        r"cost 'mine' must not rise when a label is put right, got 0.25 before and 0.5 after "
        r"at tp=0, fp=1, fn=0, tn=2; Lemma 2 of the paper does not hold"
    )
    with pytest.warns(CostConditionWarning, match=message):
        found = cost.weights([0, 0, 0], [1, 1, 0])
    np.testing.assert_allclose(found, [0.25, 0.5, 0.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for weighting in WEIGHTINGS:
            cost.weights([0, 0, 0], [1, 1, 0], weighting)


@pytest.mark.parametrize("weighting", ["ordered", "marginal"])
def test_any_cost_warns_once(weighting):
    cost = AnyCost(lambda y, y_hat: 1.0 - y_hat[1] / 2, vectorized=False, name="mine")
    with pytest.warns(CostConditionWarning, match=r"'mine' must be 0 for a perfect prediction, got 0\.5 at label"):
        cost.weights([1, 1], [1, 0], weighting)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cost.weights([1, 1], [1, 0], weighting)
    cost = AnyCost(lambda y, y_hat: float(y_hat[1]) / 2, vectorized=False, name="mine")
    with pytest.warns(CostConditionWarning) as caught:
        cost.weights([0, 1], [0, 0], weighting)
    assert len(caught) == 1


def test_loss_alone_does_not_warn():
    assert CountCost(half_price_for_perfection).loss([1, 0], [1, 0]) == 0.5


def without_guard(tp, fp, fn, tn):
    return 1 - 2 * tp / (2 * tp + fp + fn)


@pytest.mark.parametrize("f", [without_guard, njit(without_guard)], ids=["plain", "compiled"])
@pytest.mark.parametrize("weighting", ["ordered", "mean"])
def test_a_division_of_0_by_0_names_the_cost_and_the_counts(f, weighting):
    cost = CountCost(f, name="mine")
    message = (
        r"cost 'mine' must be a finite number, got nan at tp=0, fp=0, fn=0, tn=3; "
        "return 0 where the formula divides 0 by 0"
    )
    with pytest.raises(InvalidInput, match=message):
        cost.loss([[1, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]])
    with pytest.raises(InvalidInput, match=message):
        cost.weights([0, 0, 0], [0, 1, 0], weighting)
    assert cost.loss([1, 0, 0], [0, 0, 0]) == 1.0  # nothing wrong here


@pytest.mark.parametrize("compiled", [False, True])
def test_a_warning_does_not_hide_a_later_value_that_is_not_finite(compiled):
    def f(tp, fp, fn, tn):
        return np.nan if tp == 2 else 0.5

    cost = CountCost(njit(f) if compiled else f, name="mine")
    with pytest.warns(CostConditionWarning):
        cost.weights([1, 0], [0, 0])
    with pytest.raises(InvalidInput, match=r"'mine' must be a finite number, got nan at tp=2, fp=0, fn=0, tn=0"):
        cost.weights([1, 1], [0, 0])


def test_infinite_and_strange_values_of_own_functions():
    with pytest.raises(InvalidInput, match=r"cost 'inf' must be a finite number, got inf at tp=1, fp=0, fn=0, tn=1"):
        AnyCost(lambda y, y_hat: np.inf, name="inf").weights([1, 0], [1, 0])
    with pytest.raises(InvalidInput, match=r"cost 'none' must return one number for one row, got None"):
        CountCost(lambda tp, fp, fn, tn: None, name="none").loss([1, 0], [1, 0])
    with pytest.raises(InvalidInput, match=r"cost 'one' must return 1 numbers for 1 predictions, got shape \(\)"):
        AnyCost(lambda y, Y_hat: 0.0, vectorized=True, name="one").loss([1, 0], [1, 0])


def test_an_error_inside_an_own_function_keeps_its_traceback():
    def broken(tp, fp, fn, tn):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        CountCost(broken).loss([1], [1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CountCost("f1"), "CountCost: f must be a function, got 'f1'; pass"),
        (lambda: AnyCost(None), "AnyCost: f must be a function, got None"),
        (lambda: AnyCost(uneven, orders=0), "AnyCost: orders must be an integer, at least 1, got 0"),
        (lambda: AnyCost(uneven, orders=2.0), "AnyCost: orders must be an integer, at least 1, got 2.0"),
        (
            lambda: AnyCost(uneven, random_state=-1),
            "AnyCost: random_state must be an integer, at least 0, got -1",
        ),
        (
            lambda: costs.resolve_cost("f2"),
            "cost must be one of 'hamming', 'f1', 'accuracy', 'rank', 'rank_published', 'micro_f1', 'macro_f1' or a "
            "cost of csdpp.costs, got 'f2'; wrap",
        ),
        (
            lambda: costs.resolve_cost(uneven),
            "got <function uneven .*>; wrap a function of your own in CountCost",
        ),
        (lambda: costs.resolve_cost(CountCost), "cost must be one of .* got <class 'csdpp.costs._user.CountCost'>"),
        (lambda: costs.resolve_cost(["f1"]), "cost must be one of"),
        (
            lambda: costs.resolve_weighting("shaply"),
            "weighting must be one of 'ordered', 'shapley', 'marginal', 'mean', got 'shaply'",
        ),
        (lambda: F1().weights([1], [1], weighting=0), "weighting must be one of .* got 0"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(InvalidParameter, match=message) as caught:
        make()
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, CsdppError)


# ------------------------------------------------------------------------------------------- as a parameter


def test_resolve_cost_takes_an_instance_a_class_or_a_name():
    own = CountCost(f1_of_arrays)
    assert costs.resolve_cost(own) is own
    for cost in BUILTIN:
        assert costs.resolve_cost(cost.name) == costs.resolve_cost(cost) == cost()
    assert [costs.resolve_weighting(w) for w in WEIGHTINGS] == [0, 1, 2, 3]


ALL = [*(cost() for cost in BUILTIN), *OWN_F1, AnyCost(uneven), AnyCost(uneven, orders=4)]


@pytest.mark.parametrize("cost", ALL, ids=repr)
def test_copies_are_equal_and_others_are_not(cost):
    for same in (copy.deepcopy(cost), pickle.loads(pickle.dumps(cost)), clone(cost, safe=False)):
        assert same == cost
        assert hash(same) == hash(cost)
    assert sum(other == cost for other in ALL) == 1
    assert cost != cost.name


def test_having_warned_is_no_difference():
    quiet, loud = CountCost(half_price_for_perfection), CountCost(half_price_for_perfection)
    with pytest.warns(CostConditionWarning):
        loud.weights([1], [0])
    assert quiet == loud
    assert pickle.loads(pickle.dumps(loud)) == quiet


def test_names():
    assert [repr(cost()) for cost in BUILTIN] == [
        "Hamming()",
        "F1()",
        "Accuracy()",
        "Rank()",
        "RankPublished()",
    ]
    assert repr(CountCost(f1_of_arrays)) == "CountCost(f1_of_arrays)"
    assert repr(AnyCost(uneven, name="mine")) == "AnyCost(mine)"


class PredictsAll(BaseEstimator):
    """Predicts every label; its score is one of the costs."""

    def __init__(self, cost="f1"):
        self.cost = cost

    def fit(self, X, Y):
        self.cost_ = costs.resolve_cost(self.cost)
        return self

    def score(self, X, Y):
        return -self.cost_.loss(Y, np.ones_like(Y)).mean()


def test_grid_search_over_costs():
    Y, _ = labels(30, 4)
    grid = [F1(), "hamming", CountCost(f1_of_integers), AnyCost(uneven)]
    search = GridSearchCV(PredictsAll(), {"cost": grid}, cv=3).fit(np.zeros((30, 1)), Y)
    scores = dict(zip([repr(c) for c in grid], search.cv_results_["mean_test_score"], strict=True))
    assert scores["F1()"] == pytest.approx(scores["CountCost(f1_of_integers)"])
    assert list(search.cv_results_["param_cost"]) == grid
    assert clone(search.best_estimator_).cost == search.best_estimator_.cost
