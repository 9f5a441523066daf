"""Capped MSG: the spectrum, the eigenpairs of an update, the directions, what is kept."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from csdpp._kernels.capped import project_capped_inplace
from csdpp._kernels.eigen import rank_one_eigen
from csdpp._kernels.msg import Basis, choose_keep_inplace, orthonormalise_inplace
from csdpp.encoders import CappedMSG

spectra = st.lists(st.floats(0, 3), min_size=1, max_size=8).map(lambda values: np.sort(values)[::-1].copy())


@given(spectra, st.integers(1, 8), st.booleans())
def test_projection_is_the_nearest_point(sigma, M, full):
    held = len(sigma)
    if held > M + 1:
        sigma, held = sigma[: M + 1].copy(), M + 1
    expected, expected_full = naive.project_capped(sigma, M, full)
    is_full = project_capped_inplace(sigma, held, M, full)
    assert is_full == expected_full
    np.testing.assert_allclose(sigma, expected, rtol=0, atol=1e-14)
    assert sigma.min() >= 0.0
    assert sigma.max() <= 1.0
    assert (np.diff(sigma) <= 0).all()
    if is_full:
        assert sigma.sum() == pytest.approx(min(M, held), abs=4e-15 * held)


@pytest.mark.parametrize(
    ("sigma", "M", "expected"),
    [
        ([1.2, 0.5, 0.4], 2, [1.0, 0.55, 0.45]),  # one capped, the others shifted up
        ([1.0, 1.0, 0.25], 2, [2.75 / 3 - 0.0, 2.75 / 3, 2.0 - 5.5 / 3]),  # none capped: tau = 1/12
        ([3.0, 2.0, 0.1], 2, [1.0, 1.0, 0.0]),  # the weakest would turn negative
    ],
)
def test_projection_by_hand(sigma, M, expected):
    sigma = np.array(sigma)
    assert project_capped_inplace(sigma, 3, M, True)
    np.testing.assert_allclose(sigma, expected, atol=1e-15)


def hard_update(rng, kind, n):
    """A spectrum and a vector: random, with ties at one and zero, nearly tied, of very different sizes."""
    d = rng.random(n)
    if kind == "ones":
        d[: n // 2] = 1.0
    elif kind == "zeros":
        d[n // 2 :] = 0.0
    elif kind == "close":
        d = 1.0 - rng.integers(0, 3, n) * 10.0 ** -rng.integers(1, 17)
    elif kind == "start":
        d[:] = 0.0
    z = rng.standard_normal(n) * 10.0 ** rng.integers(-12 if kind == "sizes" else -2, 1, n)
    z[rng.random(n) < 0.1] = 0.0
    return np.sort(d)[::-1].copy(), z


@pytest.mark.parametrize("kind", ["random", "ones", "zeros", "close", "start", "sizes"])
def test_eigenpairs_of_an_update(kind):
    rng = np.random.default_rng(0)
    for _ in range(1500):
        n = int(rng.integers(1, 30))
        d, z = hard_update(rng, kind, n)
        rho = 10.0 ** rng.integers(-8, 3)
        lam, V = np.empty(n), np.empty((n, n))
        rank_one_eigen(d, z, rho, lam, V)
        A = np.diag(d) + rho * np.outer(z, z)
        size = max(np.abs(A).max(), 1e-300)
        assert (np.diff(lam) <= 0).all()
        assert np.abs(V.T @ V - np.eye(n)).max() < 1e-13
        assert np.abs(V * lam @ V.T - A).max() < 1e-13 * size
        assert np.abs(lam - np.linalg.eigvalsh(A)[::-1]).max() < 1e-13 * size


def run(encoder, vectors, rate=2.0):
    for t, v in enumerate(vectors, start=1):
        encoder.update(v, rate / np.sqrt(t) * 0.3)


@pytest.mark.parametrize("M", [1, 2, 4])
def test_equals_plain_msg_where_the_rank_allows(M):
    """On vectors from an (M + 1)-dimensional space the cap on the rank never binds."""
    rng = np.random.default_rng(M)
    vectors = rng.standard_normal((80, M + 1)) @ rng.standard_normal((M + 1, 7)) / 5
    encoder, plain = CappedMSG(M, 7), naive.FullMSG(M, 7)
    run(encoder, vectors)
    run(plain, vectors)
    U = encoder.directions.T @ np.diag(encoder.spectrum) @ encoder.directions
    np.testing.assert_allclose(U, plain.U, atol=1e-12)


def test_keeps_up_with_plain_msg():
    """The yardstick: the energy that U captures, capped against plain, on vectors of full rank."""
    rng = np.random.default_rng(5)
    shape = np.diag([1.0, 0.8, 0.6, 0.2, 0.2, 0.1, 0.1, 0.1]) @ np.linalg.qr(rng.standard_normal((8, 8)))[0]
    vectors = rng.standard_normal((2000, 8)) @ shape / 3
    encoder, plain = CappedMSG(3, 8), naive.FullMSG(3, 8)
    captured = np.zeros(2)
    for t, v in enumerate(vectors, start=1):
        U = encoder.directions.T @ np.diag(encoder.spectrum) @ encoder.directions
        captured += v @ U @ v, v @ plain.U @ v
        encoder.update(v, 2 / np.sqrt(t) * 3 / 8)
        plain.update(v, 2 / np.sqrt(t) * 3 / 8)
    assert captured[0] > 0.98 * captured[1]
    top = np.linalg.eigvalsh(vectors.T @ vectors)[-3:].sum()
    assert captured[0] > 0.93 * top


def test_the_start_grows_from_nothing():
    encoder = CappedMSG(2, 5)
    assert encoder.spectrum.size == 0
    encoder.update(np.array([0.6, 0.0, 0.0, 0.0, 0.0]), 0.5)
    np.testing.assert_allclose(encoder.spectrum, [0.18])
    np.testing.assert_allclose(encoder.basis.keep, [1.0, 0.0, 0.0])
    encoder.update(np.array([0.0, 0.5, 0.0, 0.0, 0.0]), 0.5)
    encoder.update(np.array([0.0, 0.0, 0.4, 0.0, 0.0]), 0.5)
    np.testing.assert_allclose(encoder.spectrum, [0.18, 0.125, 0.08])
    assert not encoder.full
    np.testing.assert_allclose(encoder.basis.keep, [1.0, 1.0, 0.0])  # the weakest of M + 1 is left out
    encoder.update(np.array([3.0, 0.0, 0.0, 0.0, 0.0]), 0.5)
    np.testing.assert_allclose(encoder.spectrum, [1.0, 0.125, 0.08])  # capped, the trace still free
    run(encoder, np.random.default_rng(0).standard_normal((20, 5)))
    assert encoder.full
    assert encoder.spectrum.sum() == pytest.approx(2.0)
    np.testing.assert_allclose(encoder.basis.keep, encoder.spectrum)


def full_encoder(M=3, K=6, decode_with="sample"):
    encoder = CappedMSG(M, K, decode_with=decode_with)
    run(encoder, np.random.default_rng(1).standard_normal((60, K)) / 2)
    assert encoder.full
    assert len(encoder.spectrum) == M + 1
    return encoder


def test_sampling_is_unbiased():
    """Lemma 1: E[P'P] = U. Over a fine grid of u each row is dropped in a share 1 - sigma of the cases."""
    encoder = full_encoder()
    Q, basis = encoder.directions, encoder.basis
    grid = (np.arange(20_000) + 0.5) / 20_000
    mean = np.zeros((6, 6))
    for u in grid:
        choose_keep_inplace(basis, 3, True, u)
        assert basis.keep.sum() == 3
        mean += Q.T @ np.diag(basis.keep) @ Q / len(grid)
    np.testing.assert_allclose(mean, Q.T @ np.diag(encoder.spectrum) @ Q, atol=2e-4)


def test_sampling_is_unbiased_with_random_numbers():
    encoder = full_encoder()
    rng = np.random.RandomState(0)
    kept = np.zeros(4)
    for u in rng.random_sample(40_000):
        choose_keep_inplace(encoder.basis, 3, True, u)
        kept += encoder.basis.keep
    deviation = np.sqrt(encoder.spectrum * (1 - encoder.spectrum) / 40_000)
    assert (np.abs(kept / 40_000 - encoder.spectrum) <= 5 * deviation + 1e-12).all()


def test_repair_removes_a_defect_and_keeps_the_directions():
    rng = np.random.default_rng(2)
    Q = np.linalg.qr(rng.standard_normal((9, 4)))[0].T.copy()
    bent = Q + 1e-6 * rng.standard_normal(Q.shape)
    orthonormalise_inplace(bent, 4)
    assert np.abs(bent @ bent.T - np.eye(4)).max() < 1e-10
    np.testing.assert_allclose(bent, Q, atol=1e-5)


def test_stays_orthonormal_over_a_million_updates():
    """Drift would be 1e-16 an update at best; the repair holds it at rounding for good."""
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((1000, 8)) / 3
    encoder = CappedMSG(3, 8)
    worst = 0.0
    for t in range(1_000_000):
        encoder.update(vectors[t % 1000], 0.05)  # a rate that does not die: the directions keep turning
        if t % 1009 == 0:
            worst = max(
                worst, np.abs(encoder.directions @ encoder.directions.T - np.eye(len(encoder.directions))).max()
            )
            assert encoder.spectrum.min() >= 0
            assert encoder.spectrum.max() <= 1
    assert worst < 1e-10
    assert worst < 1e-12  # what it is in fact
    assert encoder.spectrum.sum() == pytest.approx(3.0, abs=1e-12)


def test_an_example_of_zeros_changes_nothing():
    encoder = full_encoder(decode_with="expected")
    before = [array.copy() for array in encoder.basis]
    encoder.update(np.zeros(6), 0.5)
    for was, now in zip(before, encoder.basis, strict=True):
        np.testing.assert_array_equal(was, now)


def test_basis_is_plain_arrays():
    encoder = CappedMSG(3, 2)
    assert isinstance(encoder.basis, Basis)
    assert encoder.basis.Q.shape == (2, 2)  # never more directions than labels
