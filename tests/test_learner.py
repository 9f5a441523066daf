"""CSDPP against the naive statement of the paper: every combination, ordinary and nasty streams."""

import itertools
import random

import numpy as np
import pytest

import naive
from csdpp import CSDPP
from csdpp.datasets import bundled
from csdpp.evaluate import prequential
from streams import STREAMS

COMBINATIONS = [
    (basis, encoder, reference, decode)
    for basis, encoder, reference, decode in itertools.product(
        ("pbc", "pbt", "none"), ("feature", "label"), ("mean", "zero"), ("expected", "sample")
    )
    if encoder == "label" or basis == "pbc"
]
COSTS = ("hamming", "f1", "accuracy", "rank", "rank_published")
WEIGHTINGS = ("ordered", "shapley", "marginal", "mean")


def both(X, Y, M, *, block_size=7, **options):
    """Run the package and the naive statement over the stream; return the two learners and their predictions."""
    fast = CSDPP(M, random_state=3, block_size=block_size, **options)
    fast_labels = fast.prequential(X, Y)
    one = np.hstack([X, np.ones((len(X), 1))])
    slow = naive.CSDPP(one.shape[1], Y.shape[1], M, seed=3, **options)
    scores = []
    slow_labels = []
    for x, y in zip(one, Y, strict=True):
        scores.append(slow.scores(x))
        slow_labels.append(slow.step(x, y))
    return fast, slow, fast_labels, np.array(slow_labels), np.array(scores)


def assert_equal_state(fast, slow):
    """Directions by projector, weights on the label side: neither depends on how a basis happens to be turned."""
    scale = max(1.0, np.abs(slow.H).max(), np.abs(slow.W).max() if slow.W.size else 0.0)
    Q, sigma = fast.directions_, fast.spectrum_
    np.testing.assert_allclose(Q.T @ np.diag(sigma) @ Q, slow.msg.U, rtol=0, atol=1e-9)
    np.testing.assert_allclose(sigma, slow.msg.sigma, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fast.reference_, slow.o, rtol=0, atol=1e-12)
    if slow.basis == "pbc":
        H = np.vstack([fast.coef_.T, fast.intercept_])
        np.testing.assert_allclose(H, slow.H, rtol=0, atol=1e-9 * scale)
    else:
        W = np.vstack([fast.codes_.T, fast.codes_intercept_])
        # "none" keeps what it learned on single directions, however ill-defined they were at the time.
        atol = 1e-9 if slow.basis == "pbt" else 1e-9 + 100 * np.finfo(float).eps / slow.msg.closest
        np.testing.assert_allclose(W @ Q, slow.W @ slow.msg.Q, rtol=0, atol=atol * scale)


def assert_same(X, Y, M, **options):
    """Predictions identical, state to 1e-9; return the rows that were compared.

    A score that is zero in exact arithmetic and not in floating point is as good as a coin: there the two may part,
    and what comes before is compared.
    """
    fast, slow, a, b, scores = both(X, Y, M, **options)
    if not np.array_equal(a, b):
        parting = np.flatnonzero((a != b).any(axis=1))[0]
        coin = np.abs(scores[parting]) <= 1e-12
        assert coin[a[parting] != b[parting]].all(), f"row {parting}: {scores[parting]}"
        assert (scores[parting][a[parting] != b[parting]] != 0.0).all(), f"row {parting}: {scores[parting]}"
        return assert_same(X[:parting], Y[:parting], M, **options)
    assert_equal_state(fast, slow)
    return len(X)


@pytest.mark.parametrize("regressor", ["ridge", "gradient"])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize(("basis", "encoder", "reference", "decode"), COMBINATIONS)
def test_equals_naive(basis, encoder, reference, decode, weighting, cost, regressor):
    X, Y = STREAMS["correlated"](n=45)
    assert_same(
        X,
        Y,
        2,
        basis=basis,
        encoder=encoder,
        reference=reference,
        decode=decode,
        weighting=weighting,
        cost=cost,
        regressor=regressor,
    )


@pytest.mark.parametrize("regressor", ["ridge", "gradient"])
@pytest.mark.parametrize(("basis", "encoder", "reference", "decode"), COMBINATIONS)
def test_equals_naive_under_forgetting(basis, encoder, reference, decode, regressor):
    """The past fades alike in the regressor, the reference and both step sizes."""
    X, Y = STREAMS["correlated"](n=45)
    options = {"basis": basis, "encoder": encoder, "reference": reference, "decode": decode, "regressor": regressor}
    for cost in ("hamming", "rank"):
        assert_same(X, Y, 2, cost=cost, forgetting=0.95, step=0.7, rate=4.0, **options)


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("cost", ["micro_f1", "macro_f1"])
@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_equals_naive_with_a_memory(name, cost, forgetting):
    X, Y = STREAMS[name]()
    assert_same(X, Y, min(2, Y.shape[1]), cost=cost, forgetting=forgetting, weighting="ordered")


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("regressor", ["ridge", "gradient"])
@pytest.mark.parametrize(("basis", "encoder", "reference", "decode"), COMBINATIONS)
def test_equals_naive_on_nasty_streams(name, basis, encoder, reference, decode, regressor):
    X, Y = STREAMS[name]()
    for M in {1, min(2, Y.shape[1]), Y.shape[1]}:
        for cost in ("hamming", "f1"):
            assert_same(
                X,
                Y,
                M,
                basis=basis,
                encoder=encoder,
                reference=reference,
                decode=decode,
                cost=cost,
                regressor=regressor,
                regularization=0.5,
            )


# ------------------------------------------------------------------------------------------- bases that stay and move


@pytest.mark.parametrize("decode", ["expected", "sample"])
@pytest.mark.parametrize("regressor", ["ridge", "gradient"])
def test_pbt_is_pbc_while_nothing_leaves_the_span_of_the_basis(decode, regressor):
    """Label vectors of M + 1 = 3 kinds: the directions turn, but among themselves only."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    kinds = np.array([[1, 1, 0, 0, 0, 1], [0, 1, 1, 0, 1, 0], [1, 0, 1, 1, 0, 0]])
    Y = kinds[np.argmax(X[:, :3] + 0.5 * rng.standard_normal((200, 3)), axis=1)]
    pbc, pbt, none = (
        CSDPP.published(2, cost="hamming", basis=basis, decode=decode, regressor=regressor, random_state=0)
        for basis in ("pbc", "pbt", "none")
    )
    labels = pbc.prequential(X, Y)
    np.testing.assert_array_equal(pbt.prequential(X, Y), labels)
    np.testing.assert_allclose(pbt.decision_function(X), pbc.decision_function(X), atol=1e-12)
    np.testing.assert_allclose(pbt.codes_, pbt.directions_ @ pbc.coef_, atol=1e-12)
    assert (none.prequential(X, Y) != labels).any()


@pytest.mark.parametrize(("cost", "apart", "behind"), [("hamming", 0.002, 0.2), ("f1", 0.002, 0.2)])
def test_pbt_stays_close_to_pbc_while_the_basis_moves_and_none_is_worse(cost, apart, behind):
    """The paper's Figure 2, on yeast."""
    stream = bundled.load_river_yeast()
    pbc, pbt, none = (
        prequential(CSDPP.published(4, cost=cost, basis=basis, random_state=0), stream.X, stream.Y, [cost])
        for basis in ("pbc", "pbt", "none")
    )
    assert abs(pbt.averages[cost] - pbc.averages[cost]) < apart
    assert none.averages[cost] > pbc.averages[cost] + behind


# ------------------------------------------------------------------------------------------- the whole product

EVERYTHING = [
    (combination, regressor, cost, weighting, name)
    for combination, regressor, name in itertools.product(COMBINATIONS, ("ridge", "gradient"), STREAMS)
    for cost in (*COSTS, "micro_f1", "macro_f1")
    for weighting in (WEIGHTINGS if cost in COSTS else ("mean",))
]


def run_one(rng, combination, regressor, cost, weighting, name):
    """Compare on the whole stream, with the other parameters drawn; return whether it was compared to its end."""
    X, Y = STREAMS[name]()
    K = Y.shape[1]
    options = dict(zip(("basis", "encoder", "reference", "decode"), combination, strict=True))
    options |= {"regressor": regressor, "cost": cost, "weighting": weighting}
    options |= {"forgetting": rng.choice([1.0, 1.0, 0.95]), "rate": rng.choice([2.0, 10.0, 40.0])}
    options |= {"regularization": rng.choice([0.1, 1.0, 10.0]), "step": rng.choice([0.3, 1.0])}
    M = rng.choice([1, min(2, K), max(1, K - 1), K, rng.randint(1, K)])
    return assert_same(X, Y, M, block_size=rng.choice([1, 7, 64]), **options) == len(X)


@pytest.mark.parametrize("part", range(12))
def test_equals_naive_wherever_one_looks(part):
    """A sample of the whole product; all of it is `test_equals_naive_everywhere`."""
    rng = random.Random(part)
    whole = [run_one(rng, *rng.choice(EVERYTHING)) for _ in range(30)]
    assert sum(whole) >= 29


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("combination", COMBINATIONS, ids="-".join)
def test_equals_naive_everywhere(combination, name):
    """Every basis, encoder, reference, decoder, regressor, cost and weighting on every stream."""
    cases = [case for case in EVERYTHING if case[0] == combination and case[-1] == name]
    rng = random.Random(str((combination, name)))
    whole = [run_one(rng, *case) for case in cases]
    assert len(cases) == 44
    assert sum(whole) >= 40
