"""The compiled label weights against the plain statement of the paper, and at sizes that it cannot reach."""

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numba import njit

import naive_costs as naive
from csdpp._kernels import weights as kernels

KINDS = {
    "hamming": kernels.HAMMING,
    "f1": kernels.F1,
    "accuracy": kernels.ACCURACY,
    "rank": kernels.RANK,
    "rank_published": kernels.RANK_PUBLISHED,
}
WEIGHTINGS = {
    "ordered": kernels.ORDERED,
    "shapley": kernels.SHAPLEY,
    "marginal": kernels.MARGINAL,
    "mean": kernels.MEAN,
}


@njit
def compiled_f1(tp, fp, fn, tn):
    return 1 - 2 * tp / (2 * tp + fp + fn) if tp + fp + fn > 0 else 0.0


@njit
def compiled_errors(tp, fp, fn, tn):
    return fp + fn  # an integer: not every user writes a float


def row(tp, fp, fn, tn):
    """A row with these counts: hits, false alarms, misses, correct rejections, in this order."""
    y = np.repeat([True, False, True, False], [tp, fp, fn, tn])
    y_hat = np.repeat([True, True, False, False], [tp, fp, fn, tn])
    return y, y_hat


def random_row(rng, K, P, fn, fp):
    y = np.zeros(K, bool)
    y[rng.choice(K, P, replace=False)] = True
    y_hat = y.copy()
    y_hat[rng.choice(np.flatnonzero(y), fn, replace=False)] = False
    y_hat[rng.choice(np.flatnonzero(~y), fp, replace=False)] = True
    return y, y_hat


def weights(kind, weighting, y, y_hat, dtype=np.float64):
    out = np.full(len(y), np.nan, dtype)
    kernels.builtin_weights(KINDS[kind], WEIGHTINGS[weighting], y, y_hat, out)
    return out


def loss(kind, y, y_hat):
    return kernels.builtin_cost(KINDS[kind], *kernels.row_counts(y, y_hat))


def rows(max_size):
    bits = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=max_size)
    return bits.map(lambda pairs: tuple(np.array(side) for side in zip(*pairs, strict=True)))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_of_up_to_four_labels_against_the_plain_statement(kind, weighting):
    for K in range(1, 5):
        for y, y_hat in product(product([0, 1], repeat=K), repeat=2):
            expected = naive.WEIGHTINGS[weighting](naive.COSTS[kind], y, y_hat)
            found = weights(kind, weighting, np.array(y, bool), np.array(y_hat, bool))
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13, err_msg=f"{y} {y_hat}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("y", "y_hat"),
    [
        ([1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 1, 0]),
        ([1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]),
        ([0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 1, 1]),
        ([1, 1, 1, 1, 1, 1], [0, 1, 0, 0, 0, 0]),
        ([0, 1, 0, 0, 1, 0], [1, 1, 1, 1, 0, 0]),
    ],
)
def test_shapley_is_the_average_over_all_orders_of_six_labels(kind, y, y_hat):
    expected = naive.shapley_all_orders(naive.COSTS[kind], y, y_hat)
    found = weights(kind, "shapley", np.array(y, bool), np.array(y_hat, bool))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("tp", "fp", "fn", "tn"),
    [
        (3, 40, 40, 7),
        (0, 40, 41, 0),
        (1, 60, 2, 1),
        (4, 2, 60, 1),
        (0, 60, 0, 3),
        (0, 0, 60, 5),
        (5, 20, 60, 0),
        (0, 60, 20, 3),
        (2, 0, 0, 2),
        (100, 10, 30, 1000),
        (300, 3, 2, 5000),
    ],
)
def test_shapley_against_the_double_sum(kind, tp, fp, fn, tn):
    def cost(*counts):
        return kernels.builtin_cost(KINDS[kind], *counts)

    y, y_hat = row(tp, fp, fn, tn)
    found = weights(kind, "shapley", y, y_hat)
    expected = naive.shapley_four(cost, tp, fp, fn, tn)
    kinds_of_label = zip(expected, [y & y_hat, y & ~y_hat, ~y & y_hat, ~y & ~y_hat], strict=True)
    for value, labels in kinds_of_label:
        if value is None:
            assert not labels.any()
        else:
            np.testing.assert_allclose(found[labels], value, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("P", "fn", "fp"),
    [(4000, 2500, 2500), (5000, 4990, 10), (10, 5, 5000), (10, 0, 99_990), (50_000, 25_000, 25_000)],
)
def test_shapley_weights_of_the_mistakes_add_up_to_the_cost_for_1e5_labels(kind, P, fn, fp):
    y, y_hat = random_row(np.random.default_rng(0), 100_000, P, fn, fp)
    found = weights(kind, "shapley", y, y_hat)
    assert found[y != y_hat].sum() == pytest.approx(loss(kind, y, y_hat), abs=1e-12)


@pytest.mark.parametrize("counts", [(1500, 2500, 2500, 93_500), (10, 10, 4990, 94_990), (5, 5000, 5, 94_990)])
def test_closed_form_equals_the_general_path_for_1e5_labels(counts):
    y, y_hat = row(*counts)
    general = np.empty(len(y))
    kernels.count_weights(compiled_f1, kernels.SHAPLEY, y, y_hat, general)
    np.testing.assert_allclose(weights("f1", "shapley", y, y_hat), general, rtol=1e-9, atol=0)


@pytest.mark.parametrize("weighting", ["ordered", "shapley"])
@pytest.mark.parametrize("kind", KINDS)
@given(pair=rows(40))
@example(pair=(np.array([True]), np.array([False])))
@example(pair=(np.array([True, True]), np.array([False, False])))
@example(pair=(np.array([False, False]), np.array([True, True])))
def test_lemma_2(kind, weighting, pair):
    y, y_hat = pair
    if kind == "rank_published" and not y.any():
        return  # there it costs 1 whatever is predicted: c(y, y) = 0 does not hold
    found = weights(kind, weighting, y, y_hat)
    assert (found >= 0).all()
    assert found[y != y_hat].sum() == pytest.approx(loss(kind, y, y_hat), abs=1e-12)


@pytest.mark.parametrize("weighting", ["shapley", "marginal", "mean"])
@pytest.mark.parametrize("kind", KINDS)
@given(pair=rows(20), seed=st.integers(0, 1000))
def test_order_free_weightings_do_not_see_the_order_of_labels(kind, weighting, pair, seed):
    y, y_hat = pair
    order = np.random.default_rng(seed).permutation(len(y))
    moved = weights(kind, weighting, y[order], y_hat[order])
    np.testing.assert_array_equal(moved, weights(kind, weighting, y, y_hat)[order])


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_float32_output_is_the_rounded_float64_output(weighting):
    y, y_hat = random_row(np.random.default_rng(1), 50, 12, 5, 9)
    wide = weights("f1", weighting, y, y_hat)
    np.testing.assert_array_equal(weights("f1", weighting, y, y_hat, np.float32), wide.astype(np.float32))


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@given(pair=rows(30))
def test_a_compiled_function_has_the_weights_of_the_built_in_cost(weighting, pair):
    y, y_hat = pair
    out = np.full(len(y), np.nan)
    report = kernels.count_weights(compiled_f1, WEIGHTINGS[weighting], y, y_hat, out)
    assert report[0] == kernels.FINE
    np.testing.assert_allclose(out, weights("f1", weighting, y, y_hat), rtol=0, atol=1e-12)


def test_a_compiled_function_may_return_integers():
    y, y_hat = row(2, 3, 1, 4)
    out = np.empty(10)
    assert kernels.count_weights(compiled_errors, kernels.MEAN, y, y_hat, out)[0] == kernels.FINE
    np.testing.assert_allclose(out, 1.0, rtol=1e-14)


@pytest.mark.parametrize("f", [0, 1, 7, 40])
@pytest.mark.parametrize("g", [0, 1, 9, 40])
@pytest.mark.parametrize("room", [1, 30, 10_000])
def test_shapley_terms_are_the_exact_probabilities_however_they_are_cut(f, g, room):
    size = max(min(f, g) + 1, room)
    i, j, weight = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    found, m = {}, 0
    while m <= f + g:
        n, m = kernels.shapley_terms(f, g, m, i, j, weight)
        assert n > 0
        for t in range(n):
            assert (i[t], j[t]) not in found
            found[i[t], j[t]] = weight[t]
    for a, b in product(range(f + 1), range(g + 1)):
        exact = float(Fraction(comb(f, a) * comb(g, b), comb(f + g, a + b) * (f + g + 1)))
        assert found.get((a, b), 0.0) == pytest.approx(exact, rel=1e-12, abs=1e-18)


def test_shapley_terms_add_up_to_one_where_most_are_left_out():
    f, g = 3000, 2000
    size = kernels.shapley_scratch(f, g)
    assert size <= 5000
    i, j, weight = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    total, terms, m = 0.0, 0, 0
    while m <= f + g:
        n, m = kernels.shapley_terms(f, g, m, i, j, weight)
        total, terms = total + weight[:n].sum(), terms + n
    assert total == pytest.approx(1, abs=1e-12)
    assert terms < 0.3 * (f + 1) * (g + 1)


def test_builtin_loss_is_the_plain_loss_of_every_row_of_three_labels():
    pairs = list(product(product([0, 1], repeat=3), repeat=2))
    Y, Y_hat = (np.array(side, bool) for side in zip(*pairs, strict=True))
    for name, kind in KINDS.items():
        out = np.empty(len(pairs))
        kernels.builtin_loss(kind, Y, Y_hat, out)
        np.testing.assert_allclose(out, [naive.COSTS[name](*pair) for pair in pairs], rtol=0, atol=1e-15)
