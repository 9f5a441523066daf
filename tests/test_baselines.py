"""O-BR, O-RAND and O-CS against their naive statements."""

import numpy as np
import pytest

import naive
from csdpp import OnlineBinaryRelevance, OnlineCompressedSensing, OnlineRandomProjection
from learners import data
from streams import STREAMS

REGRESSORS = {"ridge": lambda d: naive.Ridge(d, 1.0), "gradient": lambda d: naive.Gradient(1.0)}


def by_hand(learner, X, Y):
    one = np.hstack([X, np.ones((len(X), 1))])
    return np.array([learner.step(x, y) for x, y in zip(one, Y, strict=True)])


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("regressor", REGRESSORS)
def test_binary_relevance(stream, regressor):
    X, Y = STREAMS[stream]()
    model = OnlineBinaryRelevance(regressor=regressor, block_size=7)
    slow = naive.BinaryRelevance(X.shape[1] + 1, Y.shape[1], REGRESSORS[regressor](X.shape[1] + 1))
    np.testing.assert_array_equal(model.prequential(X, Y), by_hand(slow, X, Y))
    np.testing.assert_allclose(np.vstack([model.coef_.T, model.intercept_]), slow.H, atol=1e-9)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("regressor", REGRESSORS)
def test_random_projection(stream, regressor):
    X, Y = STREAMS[stream]()
    M = min(2, Y.shape[1])
    model = OnlineRandomProjection(M, regressor=regressor, random_state=4, block_size=7)
    predicted = model.prequential(X, Y)
    slow = naive.RandomProjection(X.shape[1] + 1, model._engine.encoder.P, REGRESSORS[regressor](X.shape[1] + 1))
    np.testing.assert_array_equal(predicted, by_hand(slow, X, Y))
    np.testing.assert_allclose(model._engine.regressor.W, slow.W, atol=1e-9)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("sparsity", ["auto", 1, 3])
def test_compressed_sensing(stream, sparsity):
    X, Y = STREAMS[stream]()
    M = min(3, Y.shape[1])
    model = OnlineCompressedSensing(M, sparsity=sparsity, random_state=4, block_size=7)
    predicted = model.prequential(X, Y)
    size = None if sparsity == "auto" else sparsity
    slow = naive.CompressedSensing(X.shape[1] + 1, model._engine.encoder.A, naive.Ridge(X.shape[1] + 1, 1.0), size)
    np.testing.assert_array_equal(predicted, by_hand(slow, X, Y))
    np.testing.assert_allclose(model._engine.regressor.W, slow.W, atol=1e-9)


def test_pursuit_recovers_sparse_label_sets():
    """With enough measurements the decoder is exact: what compressed sensing promises."""
    rng = np.random.default_rng(0)
    Y = np.zeros((50, 40), int)
    for row in Y:
        row[rng.choice(40, 3, replace=False)] = 1
    encoder = OnlineCompressedSensing(34, random_state=1).partial_fit(np.ones((1, 1)), Y[:1])._engine.encoder
    codes = encoder.encode(np.where(Y, 1.0, -1.0))
    np.testing.assert_array_equal(encoder.pursue(codes, np.full(50, 3)) >= 0, Y)


def test_projection_and_measurements_are_as_stated():
    X, Y = data()
    P = OnlineRandomProjection(3, random_state=1).fit(X, Y)._engine.encoder
    np.testing.assert_allclose(P.P @ P.inverse, np.eye(3), atol=1e-12)
    A = OnlineCompressedSensing(3, random_state=1).fit(X, Y)._engine.encoder.A
    np.testing.assert_allclose(np.linalg.norm(A, axis=0), 1.0)


def test_full_random_projection_is_binary_relevance():
    X, Y = data()
    full = OnlineRandomProjection(1.0, random_state=0).fit(X, Y)
    np.testing.assert_allclose(
        full.decision_function(X), OnlineBinaryRelevance().fit(X, Y).decision_function(X), atol=1e-9
    )
