"""What every data set can do; generated streams: what was asked for is there, and what should drift does."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from csdpp.datasets import Dataset, make_stream
from csdpp.errors import InvalidInput, InvalidParameter


def dense(A):
    return A.toarray() if sparse.issparse(A) else A


def correlations(Y):
    """Correlations of the labels that occur, 0 for the others."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(np.corrcoef(Y.T.astype(float)))


def least_squares(ds, rows):
    """Coefficients (d, K) of the centred labels on the features of some rows."""
    X, Y = dense(ds.X)[rows], dense(ds.Y)[rows].astype(float)
    return np.linalg.lstsq(X - X.mean(axis=0), Y - Y.mean(axis=0), rcond=None)[0]


# -------------------------------------------------------------------------------------------------------- the Dataset


def toy(X, Y=None, **kwargs):
    Y = np.zeros((X.shape[0], 1)) if Y is None else Y
    return Dataset(X, Y, [f"x{j}" for j in range(X.shape[1])], [f"y{k}" for k in range(Y.shape[1])], "toy", **kwargs)


def test_dataset_has_types_statistics_and_a_line_to_print():
    ds = toy(np.array([[1, 2], [3, 4], [5, 6]]), np.array([[True, False], [True, True], [False, False]]))
    assert (ds.X.dtype, ds.Y.dtype, ds.label_names) == (np.float64, np.uint8, ("y0", "y1"))
    assert ds.statistics() == (3, 2, 2, 1.0, 0.5)
    assert ds.statistics()._fields == ("N", "d", "K", "cardinality", "density")
    assert repr(ds) == "Dataset('toy', N=3, d=2, K=2, cardinality=1.000)"
    assert repr(toy(sparse.csc_matrix(ds.X))) == "Dataset('toy', N=3, d=2, K=1, cardinality=0.000, sparse)"
    assert isinstance(toy(sparse.csc_matrix(ds.X)).X, sparse.csr_array)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(ds)).X, ds.X)
    with pytest.raises(AttributeError):
        ds.X = ds.X


def test_statistics_of_a_long_sparse_set_do_not_wrap_at_a_byte():
    Y = sparse.csr_array(np.ones((1000, 3), np.uint8))
    assert toy(sparse.csr_array(np.ones((1000, 2))), Y).statistics().cardinality == 3.0


def test_empty_dataset_has_statistics():
    ds = toy(np.zeros((0, 2)))
    assert ds.scaled().permuted(0).statistics() == (0, 2, 1, 0.0, 0.0)
    assert toy(sparse.csr_array((0, 2))).scaled().X.shape == (0, 2)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_scaled_maps_each_column_to_0_1_and_constants_to_0(kind):
    X = np.array([[0, -2, 7, 0, 5, 0.1], [4, 0, 7, 0, 6, 0], [1, 2, 7, 0, 9, 0.3]])
    scaled = toy(kind(X)).scaled()
    wanted = [[0, 0, 0, 0, 0, 1 / 3], [1, 0.5, 0, 0, 0.25, 0], [0.25, 1, 0, 0, 1, 1]]
    assert sparse.issparse(scaled.X) == sparse.issparse(kind(X))
    np.testing.assert_allclose(dense(scaled.X), wanted, rtol=1e-15)
    np.testing.assert_array_equal(X[0], [0, -2, 7, 0, 5, 0.1])


@given(st.lists(st.lists(st.floats(-1e9, 1e9) | st.just(0.0) | st.just(np.nan), min_size=3, max_size=3), min_size=1))
def test_scaled_sparse_equals_scaled_dense_bit_for_bit(rows):
    X = np.array(rows)
    a, b = toy(X).scaled().X, toy(sparse.csr_array(X)).scaled().X
    assert np.all(b.data != 0)
    b = dense(b)
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.isnan(a), np.isnan(X))
    assert np.all(np.isnan(a) | ((a >= 0) & (a <= 1)))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_permuted_keeps_rows_together_and_obeys_the_seed(kind):
    X = np.arange(1.0, 41).reshape(20, 2)
    ds = toy(kind(X), kind((X[:, :1] % 4 == 1).astype(int)))
    a, b, c = ds.permuted(3), ds.permuted(3), ds.permuted(4)
    np.testing.assert_array_equal(dense(a.X), dense(b.X))
    assert not np.array_equal(dense(a.X), dense(c.X))
    np.testing.assert_array_equal(np.sort(dense(a.X), axis=0), X)
    np.testing.assert_array_equal(dense(a.Y)[:, 0], dense(a.X)[:, 0] % 4 == 1)


def test_dataset_refuses_parts_that_do_not_fit():
    X, Y = np.zeros((3, 2)), np.zeros((3, 1))
    with pytest.raises(InvalidInput, match=r"X \(3, 2\), Y \(2, 1\), 2 feature names"):
        toy(X, Y[:2])
    with pytest.raises(InvalidInput, match="1 feature names"):
        Dataset(X, Y, ["x"], ["y"], "toy")
    with pytest.raises(InvalidInput, match="2 label parents"):
        toy(X, Y, label_parents=[None, None])
    for bad in (Y - 1, Y + 2, Y + 0.5, Y * np.nan):
        with pytest.raises(InvalidInput, match="Y must hold 0 and 1 only"):
            toy(X, bad)


# ------------------------------------------------------------------------------------------------- sizes and types


def test_dense_stream_has_the_sizes_types_and_names_asked_for():
    ds = make_stream(40, 7, 5, rank=2, cardinality=1.5, random_state=0)
    assert ds.X.shape == (40, 7)
    assert ds.Y.shape == (40, 5)
    assert (ds.X.dtype, ds.Y.dtype) == (np.float64, np.uint8)
    assert ds.feature_names == ("x0", "x1", "x2", "x3", "x4", "x5", "x6")
    assert ds.label_names == ("y0", "y1", "y2", "y3", "y4")
    assert set(np.unique(ds.Y)) == {0, 1}


def test_features_are_standard_normal_unless_sparse():
    X = make_stream(20_000, 6, 4, rank=2, cardinality=1, random_state=1).X
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=0.03)
    np.testing.assert_allclose(np.cov(X.T), np.eye(6), atol=0.04)


def test_sparse_stream_is_csr_with_the_density_asked_for():
    ds = make_stream(3000, 200, 30, density=0.05, random_state=2)
    assert sparse.issparse(ds.X)
    assert sparse.issparse(ds.Y)
    assert ds.X.format == ds.Y.format == "csr"
    assert ds.X.has_canonical_format
    assert ds.X.nnz / (3000 * 200) == pytest.approx(0.05, rel=0.02)
    assert ds.X.data.min() > 0
    assert ds.X.data.max() <= 1
    # Every column and row has its share: non-zeros are nowhere crowded.
    assert ds.X.count_nonzero(axis=0).min() > 0.6 * 150
    assert np.abs(ds.X.count_nonzero(axis=1) - 10).max() < 20


@pytest.mark.parametrize("density", [1.0, 0.2])
def test_constant_feature_is_the_last_of_the_features_asked_for(density):
    ds = make_stream(50, 9, 4, rank=2, cardinality=1, density=density, constant_feature=True, random_state=3)
    assert ds.X.shape == (50, 9)
    np.testing.assert_array_equal(dense(ds.X)[:, -1], 1)
    assert dense(ds.X)[:, :-1].std(axis=0).min() > 0


def test_a_stream_of_one_row_one_feature_one_label():
    ds = make_stream(1, 1, 1, rank=1, cardinality=0.5, random_state=0)
    assert ds.X.shape == ds.Y.shape == (1, 1)


# ---------------------------------------------------------------------------------------------------- seeds, blocks


@pytest.mark.parametrize("kwargs", [{}, {"density": 0.1}, {"drift": 1.0, "noise": 0.5}])
def test_same_seed_same_stream_other_seed_other_stream(kwargs):
    a, b, c = (make_stream(300, random_state=seed, **kwargs) for seed in (5, 5, 6))
    np.testing.assert_array_equal(dense(a.X), dense(b.X))
    np.testing.assert_array_equal(dense(a.Y), dense(b.Y))
    assert not np.array_equal(dense(a.X), dense(c.X))
    assert not np.array_equal(dense(a.Y), dense(c.Y))


def test_a_generator_is_used_as_it_is():
    a = make_stream(50, random_state=np.random.default_rng(5))
    b = make_stream(50, random_state=5)
    np.testing.assert_array_equal(a.X, b.X)


@pytest.mark.parametrize("density", [1.0, 0.2])
def test_small_blocks_give_the_same_kind_of_stream(monkeypatch, density):
    monkeypatch.setattr("csdpp.datasets.synthetic.BLOCK", 1000)  # 20 rows at a time
    ds = make_stream(4001, 50, 20, density=density, drift=0.5, random_state=7)
    assert ds.X.shape == (4001, 50)
    assert ds.statistics().cardinality == pytest.approx(3.0, rel=0.1)


# ------------------------------------------------------------------------------------------------------ cardinality


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"cardinality": 0.5},
        {"cardinality": 17.0},
        {"noise": 0.0},
        {"noise": 1.0},
        {"rank": 1},
        {"rank": 20},
        {"K": 300, "d": 100, "cardinality": 6},
        {"drift": 1.0},
        {"density": 0.1},
        {"density": 0.02, "d": 300, "drift": 1.0},
        {"density": 0.01, "d": 200, "cardinality": 0.3, "noise": 0.0},  # far from normal: half as many again
    ],
    ids=str,
)
def test_cardinality_is_within_ten_per_cent(kwargs, seed):
    ds = make_stream(8000, random_state=seed, **kwargs)
    assert ds.statistics().cardinality == pytest.approx(kwargs.get("cardinality", 3.0), rel=0.1)


def test_cardinality_stays_where_it_is_while_the_stream_drifts():
    ds = make_stream(20_000, drift=1.0, random_state=0)
    for part in np.array_split(ds.Y, 5):
        assert part.sum() / len(part) == pytest.approx(3.0, rel=0.1)


@pytest.mark.parametrize("density", [1.0, 0.2])
def test_frequencies_fall_as_documented(density):
    Y = make_stream(50_000, 60, 10, density=density, random_state=0).Y
    p = np.sort(Y.sum(axis=0) / 50_000)[::-1]
    odds = p / (1 - p)
    np.testing.assert_allclose(odds[0] / odds, np.arange(1, 11), rtol=0.12)


# ------------------------------------------------------------------------------------------------- rank, noise, drift


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_the_map_from_features_to_labels_has_the_rank_asked_for(rank):
    """For normal features E[y xᵀ] = diag(φ(θ)) C P: of rank r exactly, so the rest is what sampling leaves."""
    ds = make_stream(40_000, 30, 20, rank=rank, noise=0.1, cardinality=6, random_state=1)
    s = np.linalg.svd(least_squares(ds, slice(None)), compute_uv=False)
    assert s[rank - 1] > 4 * s[rank]
    assert s[rank] < 3 * s[-1] + 0.02


def test_labels_of_a_low_rank_model_are_correlated_and_noise_takes_that_away():
    strongest = []
    for noise in (0.0, 0.5, 1.0):
        Y = make_stream(20_000, 30, 20, rank=2, noise=noise, cardinality=6, random_state=2).Y
        off = np.abs(correlations(Y) - np.eye(20))
        strongest.append(off.mean())
    assert strongest[0] > 1.5 * strongest[1] > 5 * strongest[2]
    assert strongest[2] < 0.01


def test_without_noise_and_with_rank_one_any_two_labels_are_nested_or_disjoint_or_cover():
    """Each score is ± the one factor, so each label is one side of it; noise breaks that."""

    def misfit(noise):
        Y = make_stream(500, 8, 6, rank=1, noise=noise, cardinality=2, random_state=3).Y.astype(float)
        both, p = Y.T @ Y / 500, Y.mean(axis=0)
        most = np.minimum.outer(p, p)
        least = np.maximum(0, np.add.outer(p, p) - 1)
        return np.minimum(np.abs(both - most), np.abs(both - least)).max()

    assert misfit(0.0) < 1e-12
    assert misfit(0.1) > 0.01


def test_no_drift_means_one_model():
    ds = make_stream(40_000, 20, 10, rank=2, random_state=4)
    first, last = slice(0, 20_000), slice(20_000, None)
    np.testing.assert_allclose(ds.Y[first].mean(axis=0), ds.Y[last].mean(axis=0), atol=0.02)
    np.testing.assert_allclose(correlations(ds.Y[first]), correlations(ds.Y[last]), atol=0.05)
    np.testing.assert_allclose(least_squares(ds, first), least_squares(ds, last), atol=0.03)


@pytest.mark.parametrize(
    ("what", "of"),
    [
        ("frequencies", lambda ds, rows: dense(ds.Y)[rows].mean(axis=0)),
        ("correlations", lambda ds, rows: correlations(dense(ds.Y)[rows])),
        ("map", least_squares),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("density", [1.0, 0.3])
def test_drift_moves_each_part_continuously(what, of, density):
    """The farther apart two stretches of the stream, the less they agree; neighbours differ little."""
    ds = make_stream(60_000, 20, 10, rank=3, cardinality=4, drift=1.0, noise=0.0, density=density, random_state=5)
    parts = [of(ds, slice(start, start + 10_000)) for start in range(0, 60_000, 10_000)]
    from_first = [np.linalg.norm(part - parts[0]) for part in parts]
    steps = [np.linalg.norm(b - a) for a, b in itertools.pairwise(parts)]
    assert np.all(np.diff(from_first) > 0)
    assert max(steps) < 0.5 * from_first[-1]


def test_a_small_drift_moves_less_than_a_large_one():
    moved = []
    for drift in (0.2, 0.6, 1.0):
        ds = make_stream(40_000, 20, 10, rank=2, drift=drift, random_state=6)
        moved.append(np.linalg.norm(least_squares(ds, slice(0, 4000)) - least_squares(ds, slice(-4000, None))))
    assert moved[0] < moved[1] < moved[2]


def test_after_full_drift_the_first_model_is_of_no_use():
    ds = make_stream(30_000, 40, 10, rank=3, noise=0.0, drift=1.0, random_state=8)
    before, after = least_squares(ds, slice(0, 3000)), least_squares(ds, slice(-3000, None))
    cosine = np.sum(before * after) / np.linalg.norm(before) / np.linalg.norm(after)
    assert abs(cosine) < 0.15


# ---------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"n": 0}, "n must be a whole number from 1, got 0"),
        ({"n": 10.0}, "n must be a whole number from 1, got 10.0"),
        ({"d": 0}, "d must be a whole number from 1"),
        ({"d": 1, "rank": 1, "constant_feature": True}, "not counting a constant feature, got 0"),
        ({"K": -3}, "K must be a whole number from 1, got -3"),
        ({"K": True}, "K must be a whole number from 1, got True"),
        ({"rank": 0}, "rank must be a whole number from 1 to 20"),
        ({"rank": 21}, "rank must be a whole number from 1 to 20"),
        ({"rank": 9, "d": 16, "drift": 0.1}, r"rank must be a whole number from 1 to 8 \(at most half the features"),
        ({"cardinality": 0}, "cardinality must be above 0 and below the 20 labels, got 0"),
        ({"cardinality": 20}, "cardinality must be above 0 and below the 20 labels, got 20"),
        ({"cardinality": "3"}, "cardinality must be above 0 and below the 20 labels, got '3'"),
        ({"noise": 1.1}, "noise must be from 0 to 1, got 1.1"),
        ({"noise": np.nan}, "noise must be from 0 to 1, got nan"),
        ({"drift": -0.1}, "drift must be from 0 to 1, got -0.1"),
        ({"density": 0.0}, "density must be above 0 and at most 1, got 0.0"),
        ({"density": None}, "density must be above 0 and at most 1, got None"),
    ],
    ids=str,
)
def test_impossible_streams_are_refused_by_name(kwargs, message):
    with pytest.raises(InvalidParameter, match=f"^make_stream: {message}" if "not" not in message else message):
        make_stream(**kwargs)
