"""Online ridge and gradient descent: a block against rows one by one and against the closed form."""

import numpy as np
import pytest
from scipy import sparse

import naive
from csdpp.errors import InvalidInput
from csdpp.regressors import OnlineGradient, OnlineRidge


def learn(regressor, X, V, size):
    """Learn targets V in blocks of at most ``size`` rows; return the codes predicted before each row."""
    start, codes = 0, []
    while start < len(V):
        block, plan = regressor.open(X[start : start + size], 0)
        targets = V[start : start + len(block.Z)]
        for i in range(len(targets)):
            block.E[i] = block.Z[i] - block.L[i, :i] @ block.E[:i] - targets[i]
        codes.append(block.E + targets)
        regressor.close(block, plan, carried=False)
        start += len(targets)
    return np.vstack(codes)


def data(n=60, d=5, p=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal((n, p))


def ridge(d=5, p=3, regularization=0.7, forgetting=1.0, dtype=np.float64):
    return OnlineRidge(d, p, regularization=regularization, forgetting=forgetting, dtype=dtype)


def gradient(d=5, p=3, step=1.0, forgetting=1.0, dtype=np.float64):
    return OnlineGradient(d, p, step=step, forgetting=forgetting, dtype=dtype)


@pytest.mark.parametrize("size", [1, 7, 33, 60, 1000])
def test_ridge_is_the_closed_form(size):
    X, V = data()
    regressor = ridge()
    learn(regressor, X, V, size)
    np.testing.assert_allclose(regressor.W, naive.ridge(X, V, 0.7), atol=1e-12)
    np.testing.assert_allclose(regressor.precision(), np.linalg.inv(0.7 * np.eye(5) + X.T @ X), atol=1e-13)


@pytest.mark.parametrize("forgetting", [1.0, 0.95])
@pytest.mark.parametrize("kind", ["ridge", "gradient"])
@pytest.mark.parametrize("size", [1, 4, 60])
def test_a_block_is_its_rows(kind, size, forgetting):
    X, V = data()
    regressor = ridge(forgetting=forgetting) if kind == "ridge" else gradient(step=0.8, forgetting=forgetting)
    slow = naive.Ridge(5, 0.7, forgetting) if kind == "ridge" else naive.Gradient(0.8, forgetting)
    codes = learn(regressor, X, V, size)
    W = np.zeros((5, 3))
    for x, v, code in zip(X, V, codes, strict=True):
        z = W.T @ x
        np.testing.assert_allclose(code, z, atol=1e-11)
        W = W - np.outer(slow.gain(x), z - v)
    np.testing.assert_allclose(regressor.W, W, atol=1e-11)


@pytest.mark.parametrize("kind", ["ridge", "gradient"])
def test_gain_is_what_learning_a_row_changes(kind):
    """The fit after row i is z - gain (z - v): what the feature encoder takes in."""
    X, V = data(n=20)
    regressor, copy = (ridge(), ridge()) if kind == "ridge" else (gradient(), gradient())
    learn(regressor, X[:19], V[:19], 19)
    learn(copy, X, V, 20)
    block, _ = regressor.open(X[19:], 0)
    z = block.Z[0]
    np.testing.assert_allclose(copy.W.T @ X[19], z - block.gain[0] * (z - V[19]), atol=1e-12)


def test_forgetting_shortens_blocks_rather_than_lose_digits():
    regressor = ridge(forgetting=0.5)
    assert 1 <= regressor.rows_per_block(1000) < 20
    assert ridge(forgetting=1.0).rows_per_block(1000) == 1000
    X, V = data(n=200)
    size = regressor.rows_per_block(64)
    learn(regressor, X, V, size)
    used = 200
    weights = 0.5 ** np.arange(used - 1, -1, -1)
    A = 0.5**used * 0.7 * np.eye(5) + (X[:used] * weights[:, None]).T @ X[:used]
    np.testing.assert_allclose(regressor.W, np.linalg.solve(A, (X[:used] * weights[:, None]).T @ V[:used]), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("forgetting", [0.99, 0.5])
def test_forgetting_does_not_wear_out_silent_features(forgetting, dtype):
    """Found: A^-1 grew by 1 / mu a row where no row has a feature, first past the digits of the others and in the
    end to infinity. The others are those of a ridge that never had the silent ones."""
    X, V = data(n=3000)
    X[:, 1], X[400:, 3] = 0.0, 0.0
    silent, without = ridge(forgetting=forgetting, dtype=dtype), ridge(d=3, forgetting=forgetting, dtype=dtype)
    sizes = []
    for start in range(0, 3000, 100):
        X_part, V_part = X[start : start + 100].astype(dtype), V[start : start + 100].astype(dtype)
        learn(silent, X_part, V_part, silent.rows_per_block(64))
        learn(without, X_part[:, [0, 2, 4]], V_part, silent.rows_per_block(64))
        sizes.append(np.linalg.norm(silent.F, 2))
    limit = np.finfo(dtype).eps ** -0.25 / np.sqrt(0.7)
    assert max(sizes) < 1.01 * limit
    assert max(sizes) > 10  # and was let grow before
    assert (silent.W[1] == 0).all()
    np.testing.assert_allclose(silent.W[[0, 2, 4]], without.W, atol=1e-4 if forgetting == 0.99 else 0.05)


def test_the_regularisation_that_is_given_back():
    """(A + lambda I)^-1, once a direction of A is worn to less than sqrt(eps) lambda; before, nothing."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    for weakest, gives_back in [(1e-7, False), (1e-9, True)]:
        A = Q @ np.diag([3.0, 1.0, 0.2, weakest]) @ Q.T
        regressor = ridge(d=4, p=1, regularization=1.0, forgetting=0.9)
        regressor.F = Q / np.sqrt([3.0, 1.0, 0.2, weakest])
        before = regressor.F.copy()
        regressor._restore()
        if gives_back:
            np.testing.assert_allclose(regressor.precision(), np.linalg.inv(A + np.eye(4)), atol=1e-7)
            assert regressor.F.flags.c_contiguous
        else:
            np.testing.assert_array_equal(regressor.F, before)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3, 1e9, 1e12])
def test_ridge_survives_features_of_any_scale(scale):
    """A time stamp among the features: A^-1 stays positive and the fit right, in any block size."""
    X, V = data(n=300)
    X = X * [1, 1, 1, scale, 1]
    X[:, 4] = 1.0
    for size in (1, 64):
        regressor = ridge()
        codes = learn(regressor, X, V, size)
        assert smallest_eigenvalue(regressor.precision()) > 0.1
        np.testing.assert_array_equal(regressor.precision(), regressor.precision().T)
        expected = X @ (
            naive.ridge(X / [1, 1, 1, scale, 1], V, 1e-9 if scale > 1 else 0.7) / [[1], [1], [1], [scale], [1]]
        )
        if scale >= 1:
            np.testing.assert_allclose(X @ regressor.W, expected, atol=0.05)
        assert np.abs(codes[100:]).max() < 5


def smallest_eigenvalue(S):
    """Of S scaled to a unit diagonal: rounding in eigvalsh would hide the sign of the tiny ones."""
    size = np.sqrt(np.diag(S))
    return np.linalg.eigvalsh(S / np.outer(size, size)).min()


def test_why_the_square_root_is_kept():
    """A^-1 updated by subtraction, as printed, turns indefinite on large features that nearly agree.

    On which streams depends on the last digit, and with it on the machine: one of several is enough.
    """
    lost = 0
    for seed in range(12):
        X, _ = data(n=300, seed=seed)
        X[:, 4] = 1.0
        X[:, 3] *= 1e12
        X[:, 2] = X[:, 3] * (1 + 1e-6 * X[:, 2])
        slow, ours = naive.Ridge(5, 0.7), ridge()
        for x in X:
            slow.gain(x)
        learn(ours, X, np.zeros((300, 3)), 64)
        lost += slow.S.diagonal().min() < 0
        assert smallest_eigenvalue(ours.precision()) > 0
    assert lost > 0


def test_why_blocks_end_early():
    """In one block the first rows of large features would leave C without a Cholesky factor."""
    X, V = data(n=300)
    X[:, 3] *= 1e9
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(np.eye(64) + X[:64] @ X[:64].T)
    whole, single = ridge(), ridge()
    block, _ = whole.open(X[:64], 0)
    assert len(block.Z) == 1
    learn(whole, X, V, 64)
    learn(single, X, V, 1)
    np.testing.assert_allclose(X @ whole.W, X @ single.W, atol=1e-8)
    block, _ = whole.open(X[:64], 0)
    assert len(block.Z) == 64


def test_ridge_does_not_depend_on_the_order_of_features():
    X, V = data()
    order = [3, 1, 4, 0, 2]
    a, b = ridge(), ridge()
    learn(a, X, V, 60)
    learn(b, X[:, order], V, 60)
    np.testing.assert_allclose(a.W[order], b.W, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e6, 1e60])
@pytest.mark.parametrize("step", [0.1, 1.0, 50.0])
def test_gradient_never_diverges(scale, step):
    X, V = data(n=400)
    V = X @ np.ones((5, 3)) / 5
    regressor = gradient(step=step)
    codes = learn(regressor, X * scale, V, 50)
    assert np.isfinite(codes).all()
    early, late = np.abs(codes[:50] - V[:50]).mean(), np.abs(codes[-50:] - V[-50:]).mean()
    assert late < early


def test_gradient_does_not_depend_on_the_scale():
    X, V = data()
    one = learn(gradient(), X, V, 60)
    np.testing.assert_allclose(learn(gradient(), X * 1e5, V, 60), one, atol=1e-12)


def test_gradient_is_the_published_step_on_rows_of_length_one():
    X, V = data()
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    W = np.zeros((5, 3))
    for t, (x, v) in enumerate(zip(X, V, strict=True), start=1):
        W = W - np.outer(x, W.T @ x - v) / np.sqrt(t)
    regressor = gradient()
    learn(regressor, X, V, 60)
    np.testing.assert_allclose(regressor.W, W, atol=1e-12)


def test_sparse_rows_are_dense_rows():
    X, V = data()
    X[X < 0.3] = 0.0
    for make in (gradient, ridge):
        dense, csr = make(), make()
        np.testing.assert_allclose(learn(csr, sparse.csr_array(X), V, 20), learn(dense, X, V, 20), atol=1e-13)
        np.testing.assert_allclose(csr.W, dense.W, atol=1e-13)


def test_rows_of_zeros_teach_nothing():
    X, V = np.zeros((4, 5)), np.ones((4, 3))
    for make in (gradient, ridge):
        regressor = make()
        learn(regressor, X, V, 4)
        assert (regressor.W == 0).all()


@pytest.mark.parametrize("make", [gradient, ridge])
def test_overflow_is_an_error_before_anything_changes(make):
    regressor = make()
    with pytest.raises(InvalidInput, match=r"must have finite squares, got values up to 1e\+200"):
        regressor.open(np.full((2, 5), 1e200), 0)
    assert (regressor.W == 0).all()
