"""CSDPP against the naive statement of the paper: every combination, ordinary and nasty streams."""

import itertools

import numpy as np
import pytest

import naive
from csdpp import CSDPP
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
        np.testing.assert_allclose(W @ Q, slow.W @ slow.msg.Q, rtol=0, atol=1e-9 * scale)


def assert_same(X, Y, M, **options):
    """Predictions identical wherever the score is not zero up to rounding, state to 1e-9."""
    fast, slow, a, b, scores = both(X, Y, M, **options)
    clear = np.abs(scores) > 1e-12
    # A score that is zero in exact arithmetic and not in floating point is as good as a coin: none may be
    # among the rows of an ordinary stream.
    assert (a == b)[clear | (scores == 0.0)].all()
    assert_equal_state(fast, slow)
    return clear


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
        if basis == "none" and M == Y.shape[1] > 1:
            continue  # many sigmas are one up to rounding; their order is a coin's, and only "none" depends on it
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
