"""Sums over shards against one machine: the learners over Dask."""

import importlib.util
import json
import os
import signal
import sqlite3
import warnings
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import distributed as dask_distributed
import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from csdpp import (
    CPLST,
    CSDPP,
    PLST,
    OnlineBinaryRelevance,
    OnlineCompressedSensing,
    OnlineRandomProjection,
    cli,
    distributed,
)
from csdpp.costs import CountCost, resolve_cost
from csdpp.datasets import load_named, make_stream
from csdpp.distributed import _shards
from csdpp.engine import FollowingEngine
from csdpp.errors import InvalidInput, InvalidParameter, MissingData
from csdpp.evaluate import scorer
from csdpp.experiments import spec, work
from learners import data
from streams import STREAMS

SHARDS = 1, 2, 7, 40


def cut(X, Y, shards):
    size = -(-len(X) // shards)
    return da.from_array(X, chunks=(size, -1)), da.from_array(Y, chunks=(size, -1))


def gap(a, b, X):
    return np.abs(a.decision_function(X) - b.decision_function(X)).max()


def to_labels(model):
    """P'W', from features to labels: directions have no sign of their own."""
    return model.directions_.T @ model.codes_


def bits(model):
    """All arrays a learner has learned, as bytes."""
    parts = [model.directions_] if hasattr(model, "directions_") else []
    regressor = getattr(getattr(model, "_engine", None), "regressor", None)
    parts += [model._W] if regressor is None else [regressor.W, regressor.F]
    return b"".join(part.tobytes() for part in parts)


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes, started anew by their nannies when they die."""
    settings = {
        "distributed.logging.distributed": "critical",
        "distributed.worker.memory.terminate": False,
        "distributed.deploy.lost-worker-timeout": "10m",  # a nanny on a busy machine is slow, not lost
    }
    with (
        dask.config.set(settings),
        dask_distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL"
        ) as local,
        dask_distributed.Client(local, set_as_default=False) as client,
    ):
        yield client


# ------------------------------------------------------------------------------------------------- exactness

EXACT = {
    "plst": (PLST(2), PLST(2)),
    "plst-zero": (PLST(2, reference="zero", fit_intercept=False), PLST(2, reference="zero", fit_intercept=False)),
    "cplst": (CPLST(2), CPLST(2)),
    "cplst-zero": (CPLST(2, reference="zero", regularization=0.1), CPLST(2, reference="zero", regularization=0.1)),
    "o-br": (OnlineBinaryRelevance(), OnlineBinaryRelevance()),
    "o-rand": (OnlineRandomProjection(2, random_state=0), OnlineRandomProjection(2, random_state=0)),
    "o-cs": (OnlineCompressedSensing(0.6, random_state=0), OnlineCompressedSensing(0.6, random_state=0)),
    "dpp-pbt": (CSDPP(2, cost="hamming", basis="pbt", encoder="label"), PLST(2)),
    "dpp-published": (CSDPP.published(2, cost="hamming", random_state=0), PLST(2, reference="zero")),
    "dpp-published-pbc": (CSDPP.published(2, cost="hamming", basis="pbc"), PLST(2, reference="zero")),
    "dpp-feature": (CSDPP(2, cost="hamming", reference="zero"), CPLST(2, reference="zero")),
}


@pytest.mark.parametrize("shards", SHARDS)
@pytest.mark.parametrize("name", EXACT)
def test_equal_to_one_machine_whatever_the_number_of_shards(name, shards):
    model, whole = (clone(one) for one in EXACT[name])
    X, Y = data()
    fitted = distributed.fit(model, *cut(X, Y, shards))
    assert fitted is model
    assert gap(fitted, whole.fit(X, Y), X) < 1e-10
    assert fitted.fit_report_["rows"] == 150


def test_with_the_mean_as_reference_pbc_has_the_ridge_of_o_br_and_the_directions_of_cplst():
    """Its ridge is of v, that of CPLST of v - o: scores differ by what lambda takes off the intercept, o / (n + 1)."""
    X, Y = data()
    model = distributed.fit(CSDPP(2, cost="hamming"), *cut(X, Y, 4))
    np.testing.assert_allclose(model.coef_, OnlineBinaryRelevance().fit(X, Y).coef_, atol=1e-12)
    P = CPLST(2).fit(X, Y).directions_
    np.testing.assert_allclose(model.directions_.T @ model.directions_, P.T @ P, atol=1e-10)
    assert gap(model, CPLST(2).fit(X, Y), X) < np.abs(model.reference_).max() / 50


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(
    "model",
    [PLST(1), CPLST(1), OnlineBinaryRelevance(), CSDPP(1), CSDPP(1, fit_intercept=False), CSDPP(1, cost="hamming")],
)
def test_nasty_data(model, stream):
    """Ranks below M, labels without an example, one label: as one machine, or at least finite scores."""
    X, Y = STREAMS[stream]()
    fitted = distributed.fit(clone(model), *cut(X, Y, 3))
    assert np.isfinite(fitted.decision_function(X)).all()
    if isinstance(model, CPLST | OnlineBinaryRelevance):
        assert gap(fitted, clone(model).fit(X, Y), X) < 1e-9
    if not isinstance(model, PLST):
        fitted.partial_fit(X, Y)


def test_collections_of_any_kind_give_the_same(tmp_path):
    X, Y = data()
    whole = CPLST(2).fit(X, Y)
    x, y = cut(X, Y, 3)
    csr = [A.map_blocks(sparse.csr_matrix) for A in (x, y)]
    frame = dd.from_pandas(pd.DataFrame(np.hstack([X, Y]), columns=[*"abcdefg", *"stuvwx"]), npartitions=3)
    named = frame[[*"abcdefg"]], frame[[*"stuvwx"]].astype(int)
    columns_cut = x.rechunk((50, 3)), y.rechunk((70, 2))
    unknown = [frame[[*names]].to_dask_array() for names in ("abcdefg", "stuvwx")]
    for pair in (csr, columns_cut, unknown, (x, csr[1])):
        assert gap(distributed.fit(CPLST(2), *pair), whole, X) < 1e-10
    np.testing.assert_allclose(to_labels(distributed.fit(CPLST(2), *named)), to_labels(whole), atol=1e-10)
    model = distributed.fit(CSDPP(2), *named)
    assert model.classes_.tolist() == [*"stuvwx"]
    assert model.feature_names_in_.tolist() == [*"abcdefg"]
    assert sparse.issparse(distributed.fit(PLST(2), *csr).predict(X))


def write_svmlight(folder, X, Y, shards):
    for i, rows in enumerate(np.array_split(np.arange(len(X)), shards)):
        lines = []
        for x, y in zip(X[rows], Y[rows], strict=True):
            labels = ",".join(map(str, np.flatnonzero(y)))
            lines.append(labels + " " + " ".join(f"{j + 1}:{float(v)!r}" for j, v in enumerate(x)) + "\n")
        (folder / f"{i:03}.svm").write_text("".join(lines))


def test_folders_of_files(tmp_path):
    X, Y = data()
    whole = CPLST(2).fit(X, Y)
    for kind in ("svm", "parquet", "xmc"):
        (tmp_path / kind).mkdir()
    write_svmlight(tmp_path / "svm", X, Y, 4)
    frame = pd.DataFrame(np.hstack([X, Y]), columns=[*"abcdefg", *(f"is_{k}" for k in range(6))])
    for i in range(3):
        frame.iloc[i * 50 : i * 50 + 50].to_parquet(tmp_path / "parquet" / f"{i}.parquet")
        rows = slice(i * 50, i * 50 + 50)
        text = (tmp_path / "svm").glob("*")
        lines = "".join(file.read_text() for file in sorted(text)).splitlines(keepends=True)[rows]
        head = "50 8 6\n"  # XMC counts from 0: feature 0 is never there
        (tmp_path / "xmc" / f"{i}.txt").write_text(head + "".join(lines))
    sizes = {"n_features": 7, "n_labels": 6}
    by_svmlight = distributed.fit(CPLST(2), tmp_path / "svm", **sizes)
    assert gap(by_svmlight, whole, X) < 1e-10
    assert by_svmlight.fit_report_["shards"] == 4
    assert bits(distributed.fit(CPLST(2), str(tmp_path / "svm" / "*.svm"), **sizes)) == bits(by_svmlight)
    few = distributed.fit(CPLST(2), [tmp_path / "svm" / f"00{i}.svm" for i in range(4)], block_rows=11, **sizes)
    assert gap(few, whole, X) < 1e-10
    by_parquet = distributed.fit(CPLST(2), tmp_path / "parquet", label_prefix="is_")
    assert gap(by_parquet, whole, X) < 1e-10
    assert by_parquet.classes_.tolist() == [f"is_{k}" for k in range(6)]
    by_xmc = distributed.fit(CPLST(2), tmp_path / "xmc", format="xmc")
    np.testing.assert_allclose(to_labels(by_xmc)[:, 1:], to_labels(whole), atol=1e-10)
    labels = distributed.predict(by_svmlight, tmp_path / "svm", **sizes)
    np.testing.assert_array_equal(labels.compute().toarray(), whole.predict(X))


def test_pairs_of_xmc_files(tmp_path):
    """Version 2: features and labels in files of their own, by their order."""
    X, Y = data()
    for folder, A in (("X", X), ("Y", Y)):
        (tmp_path / folder).mkdir()
        for i in range(3):
            rows = A[i * 50 : i * 50 + 50]
            lines = [" ".join(f"{j}:{float(a)!r}" for j, a in enumerate(row) if a) for row in rows]
            (tmp_path / folder / f"{i}.txt").write_text("\n".join([f"50 {A.shape[1]}", *lines, ""]))
    features, labels = tmp_path / "X", tmp_path / "Y"
    whole, cut_alike = CPLST(2).fit(X, Y), cut(X, Y, 3)
    model = distributed.fit(CPLST(2), features, labels, format="xmc", block_rows=20)
    assert gap(model, whole, X) < 1e-10
    assert model.fit_report_["shards"] == 3
    by_pattern = distributed.fit(CSDPP(2), str(features / "*.txt"), sorted(labels.iterdir()), format="xmc")
    np.testing.assert_allclose(
        by_pattern.fit_report_["losses"], distributed.fit(CSDPP(2), *cut_alike).fit_report_["losses"]
    )
    np.testing.assert_array_equal(
        distributed.predict(model, features, format="xmc").compute().toarray(), whole.predict(X)
    )
    (labels / "1.txt").write_text("50 6\n" + "1:1\n" * 49 + "nonsense\n")
    with pytest.raises(InvalidInput, match=r"shard .*X.1\.txt cannot be used: .*Y.1\.txt, line 51: expected index"):
        distributed.fit(model, features, labels, format="xmc")
    (labels / "1.txt").write_text("50 9\n" + "1:1\n" * 50)
    with pytest.raises(InvalidInput, match=r"shard .*X.1\.txt cannot be used: Y must have 6 labels, as in the first"):
        distributed.fit(model, features, labels, format="xmc")
    (labels / "1.txt").unlink()
    with pytest.raises(InvalidInput, match="X and Y must be as many files, got 3 and 2"):
        distributed.fit(model, features, labels, format="xmc")


def test_first_file_may_be_empty_but_not_malformed(tmp_path):
    X, Y = data()
    write_svmlight(tmp_path, X, Y, 3)
    (tmp_path / "!.svm").write_text("")
    model = distributed.fit(CPLST(2), tmp_path, n_features=7, n_labels=6)
    assert gap(model, CPLST(2).fit(X, Y), X) < 1e-10
    (tmp_path / "!.svm").write_text("1,2 nonsense\n")
    with pytest.raises(InvalidInput, match=r"shard .*!\.svm cannot be used: .*!\.svm, line 1"):
        distributed.fit(model, tmp_path, n_features=7, n_labels=6)


# ------------------------------------------------------------------------------------------------- the rounds


@pytest.mark.parametrize("shards", [1, 5])
def test_rounds_of_a_cost_by_their_definition(shards):
    """Predict with the Hamming solution, weigh, regress: stated here once more, without a sum over shards."""
    stream = make_stream(600, 15, 12, rank=3, random_state=1)
    X, Y, cost = stream.X, stream.Y, resolve_cost("f1")
    model = distributed.fit(CSDPP.published(2, cost="f1", basis="pbc"), *cut(X, Y, shards), rounds=1)
    first = PLST(2, reference="zero").fit(X, Y)
    V = np.sqrt(cost.weights(Y, first.predict(X), "ordered")) * np.where(Y == 1, 1.0, -1.0)
    F = np.hstack([X, np.ones((600, 1))])
    H = np.linalg.solve(F.T @ F + np.eye(16), F.T @ V)
    P = np.linalg.svd(V)[2][:2]
    losses = [cost.loss(Y, first.predict(X)).mean(), cost.loss(Y, F @ H @ P.T @ P >= 0).mean()]
    np.testing.assert_allclose(model.fit_report_["losses"], losses, atol=1e-12)
    assert losses[1] < losses[0]
    np.testing.assert_allclose(model.decision_function(X), F @ H @ P.T @ P, atol=1e-10)
    # the second round: the mean of the sums of both
    V2 = np.sqrt(cost.weights(Y, F @ H @ P.T @ P >= 0, "ordered")) * np.where(Y == 1, 1.0, -1.0)
    H = np.linalg.solve(F.T @ F + np.eye(16), F.T @ (V + V2) / 2)
    P = np.linalg.eigh((V.T @ V + V2.T @ V2) / 2)[1][:, ::-1][:, :2].T
    losses.append(cost.loss(Y, F @ H @ P.T @ P >= 0).mean())
    model = CSDPP.published(2, cost="f1", basis="pbc")
    distributed.fit(model, *cut(X, Y, shards), rounds=2, tol=0.0)
    np.testing.assert_allclose(model.fit_report_["losses"], losses, atol=1e-12)


@pytest.mark.parametrize("cost", ["f1", "accuracy", "rank", "micro_f1", "macro_f1"])
def test_loss_reported_is_the_loss_of_the_model(cost):
    stream = make_stream(600, 15, 12, rank=3, random_state=1)
    model = distributed.fit(CSDPP(3, cost=cost), *cut(stream.X, stream.Y, 4))
    loss = np.mean(resolve_cost(cost).loss(stream.Y, model.predict(stream.X)))
    assert loss == pytest.approx(min(model.fit_report_["losses"]), abs=1e-12)
    assert loss < model.fit_report_["losses"][0]
    assert len(model.fit_report_["losses"]) <= 5
    assert model.spectrum_.sum() == pytest.approx(3)
    if cost == "micro_f1":  # what it remembers goes on from the counts of its own predictions
        truth, guess = np.asarray(stream.Y, bool), model.predict(stream.X).astype(bool)
        kinds = truth & guess, ~truth & guess, truth & ~guess, ~truth & ~guess
        assert model._engine.memory.ravel().tolist() == [kind.sum() for kind in kinds]


def test_cost_of_ones_own():
    X, Y = data()
    own = CountCost(lambda tp, fp, fn, tn: (fp + fn) / (2 * tp + fp + fn) if tp + fp + fn else 0.0, name="mine")
    a = distributed.fit(CSDPP(2, cost=own), *cut(X, Y, 3))
    b = distributed.fit(CSDPP(2, cost="f1"), *cut(X, Y, 3))
    assert gap(a, b, X) < 1e-9


SETS = {"yeast": 0.5, "scene": 0.5, "emotions": 0.5, "cal500": 0.1}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SETS, "enron", "corel5k"])
@pytest.mark.parametrize("cost", ["f1", "accuracy", "rank"])
def test_rounds_come_as_far_as_several_passes_of_one_machine(name, cost, data_dir):
    check_rounds(name, cost, data_dir)


@pytest.mark.parametrize("name", ["emotions", "scene"])
def test_rounds_come_as_far_as_several_passes_on_two_small_sets(name, data_dir):
    check_rounds(name, "f1", data_dir)


def check_rounds(name, cost, data_dir):
    stream = load_named(name, data_dir).scaled().permuted(0)
    X, Y = (A.toarray() if sparse.issparse(A) else A for A in (stream.X, stream.Y))
    online, measure = CSDPP(SETS.get(name, 0.1), cost=cost), resolve_cost(cost)
    passes = [measure.loss(Y, online.partial_fit(X, Y).predict(X)).mean() for _ in range(3)]
    model = distributed.fit(clone(online), *cut(X, Y, 5))
    assert measure.loss(Y, model.predict(X)).mean() <= min(passes) + 0.005


# ------------------------------------------------------------------------------------------------- going on


@pytest.mark.parametrize("name", ["o-br", "o-rand", "o-cs"])
def test_goes_on_online_as_if_it_had_learned_row_by_row(name):
    X, Y = data()
    model, online = (clone(EXACT[name][0]) for _ in range(2))
    distributed.fit(model, *cut(X[:100], Y[:100], 3))
    online.fit(X[:100], Y[:100])
    np.testing.assert_array_equal(model.prequential(X[100:], Y[100:]), online.prequential(X[100:], Y[100:]))
    assert gap(model, online, X) < 1e-10
    assert model.n_seen_ == 150


@pytest.mark.parametrize("basis", ["pbc", "pbt", "none"])
def test_csdpp_goes_on_and_is_saved(basis, tmp_path):
    stream = make_stream(2000, 15, 12, rank=3, random_state=1)
    X, Y, model = stream.X, stream.Y, CSDPP(3, basis=basis, encoder="label", random_state=0)
    distributed.fit(model, *cut(X[:1000], Y[:1000], 4))
    model.save(tmp_path / "tags.csdpp")
    again = CSDPP.load(tmp_path / "tags.csdpp")
    assert again.fit_report_["losses"] == model.fit_report_["losses"]
    loss = resolve_cost("f1").loss
    answers = model.prequential(X[1000:], Y[1000:])
    np.testing.assert_array_equal(again.prequential(X[1000:], Y[1000:]), answers)
    if basis != "none":
        online = clone(model).fit(X[:1000], Y[:1000])
        assert loss(Y[1000:], answers).mean() < loss(Y[1000:], online.prequential(X[1000:], Y[1000:])).mean() + 0.01
    joined = distributed.merge(model, clone(model).fit(X[:500], Y[:500]))
    assert joined.n_seen_ == 2500


@pytest.mark.parametrize("model", [OnlineBinaryRelevance(), CSDPP(2, cost="hamming")])
def test_labels_that_come_later_were_never_there(model):
    X, Y = data()
    Y[:, 4:] = 0
    grown = distributed.fit(clone(model), *cut(X, Y[:, :4], 3)).add_labels(2)
    knowing = distributed.fit(clone(model), *cut(X, Y, 3))
    np.testing.assert_allclose(grown.coef_, knowing.coef_, atol=1e-10)
    np.testing.assert_allclose(grown.intercept_, knowing.intercept_, atol=1e-10)


def test_label_that_never_came_has_the_sum_of_an_online_learner():
    """Of rounds too: sum x v for a label that is neither there nor predicted, row by row from the same predictions."""
    stream = make_stream(300, 15, 12, rank=3, random_state=1)
    X, Y, cost = stream.X, stream.Y, resolve_cost("f1")
    model = distributed.fit(CSDPP(2, decode="sample"), *cut(X, Y, 4), rounds=1)
    guess = distributed.fit(CSDPP(2, cost="hamming"), *cut(X, Y, 2)).predict(X)
    assert model.fit_report_["losses"][1] < model.fit_report_["losses"][0]
    expected = np.zeros(16)
    for x, y, y_hat in zip(X, Y, guess, strict=True):
        delta = cost.weights(y, y_hat, "mean")
        silent = np.flatnonzero((y == 0) & (y_hat == 0))
        expected -= np.append(x, 1.0) * np.sqrt(delta[silent[-1]] if len(silent) else delta.min())
    np.testing.assert_allclose(model._engine.regressor.absent, expected, atol=1e-10)
    assert model._engine.clock.tolist() == pytest.approx([300, 300, expected[-1] / 300, 0])


def test_chances_are_calibrated(tmp_path):
    from csdpp.calibration import reliability

    stream = make_stream(6000, 15, 12, rank=3, random_state=1)
    X, Y = stream.X, stream.Y
    model = distributed.fit(CSDPP(3), *cut(X[:4000], Y[:4000], 4))
    assert reliability(Y[4000:], model.predict_proba(X[4000:])).error < 0.05


def test_chances_take_a_strip_of_rows_at_a_time(monkeypatch):
    """Scores of a whole shard are never there at once."""
    X, Y = data()
    whole = distributed.fit(CSDPP(2), *cut(X, Y, 1))
    heights, scores = [], FollowingEngine.scores
    monkeypatch.setattr(_shards, "STRIP", 7 * 64)
    monkeypatch.setattr(FollowingEngine, "scores", lambda engine, X: heights.append(len(X)) or scores(engine, X))
    model = distributed.fit(CSDPP(2), *cut(X, Y, 1))
    assert heights == [64, 64, 22]
    np.testing.assert_allclose(model._engine.calibration.sums, whole._engine.calibration.sums, rtol=1e-9)


# --------------------------------------------------------------------------------------------------- sketch


def test_sketch_keeps_its_bound_however_it_is_made():
    """0 <= sum r r' - S'S <= shed I, and shed <= lost / (l + 1); sketches of parts joined keep it."""
    rng = np.random.default_rng(0)
    R = rng.standard_normal((900, 40)) * 0.85 ** np.arange(40)
    B = sparse.csr_array((rng.random((900, 40)) < 0.1).astype(float))
    for rows in (R, B):
        dense = rows.toarray() if sparse.issparse(rows) else rows
        parts = []
        for start in range(0, 900, 100):
            parts.append(distributed.FrequentDirections(8, 40))
            parts[-1].add(rows[start : start + 100])
        whole = distributed.FrequentDirections(8, 40)
        for part in parts:
            whole.join(part)
        error = np.linalg.eigvalsh(dense.T @ dense - whole.S.T @ whole.S)
        assert len(whole.S) == 8
        assert error[0] > -1e-9
        assert 0.2 * whole.shed < error[-1] <= whole.shed + 1e-9
        assert whole.shed <= whole.lost / 9
        assert whole.lost == pytest.approx(error.sum())


@pytest.mark.parametrize("reference", ["mean", "zero"])
def test_sketched_plst_is_exact_where_nothing_was_shed_and_within_its_bound_else(reference):
    stream = make_stream(1500, 20, 60, rank=4, cardinality=4, random_state=2)
    X, Y = stream.X, stream.Y
    whole, shards = PLST(4, reference=reference).fit(X, Y), cut(X, Y, 6)
    exact = distributed.fit(PLST(4, reference=reference), *shards, sketch=60)
    assert gap(exact, whole, X) < 1e-9
    assert exact.fit_report_["sketch"]["shortfall"] < 1e-9
    V = np.where(Y == 1, 1.0, -1.0) / np.sqrt(60) - whole.reference_
    C = V.T @ V

    def captured(P):
        return np.trace(P @ C @ P.T)

    for size in (10, 20, 40):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = distributed.fit(PLST(4, reference=reference), *shards, sketch=size)
        report, P = model.fit_report_["sketch"], model.directions_
        assert [("raise sketch=" in str(one.message)) for one in caught] == [True] * (report["shortfall"] > 0.05)
        missing = (captured(whole.directions_) - captured(P)) / np.trace(C)
        assert -1e-12 < missing <= report["shortfall"]
        # the codes are exact for these directions
        F = np.hstack([X, np.ones((len(X), 1))])
        W = np.linalg.solve(F.T @ F + np.eye(21), F.T @ V @ P.T)
        np.testing.assert_allclose(model.decision_function(X), F @ W @ P + whole.reference_, atol=1e-9)
        assert model.fit_report_["passes"] == 2


def test_sketched_rounds():
    stream = make_stream(800, 15, 30, rank=3, random_state=2)
    parts = cut(stream.X, stream.Y, 4)
    for basis in ("pbt", "pbc"):
        exact = distributed.fit(CSDPP(3, basis=basis, encoder="label"), *parts, rounds=1)
        sketched = distributed.fit(CSDPP(3, basis=basis, encoder="label"), *parts, rounds=1, sketch=30)
        np.testing.assert_allclose(exact.fit_report_["losses"], sketched.fit_report_["losses"], atol=2e-3)
        assert gap(exact, sketched, stream.X) < 1e-9


def test_no_matrix_of_features_by_labels_moves_on_the_sketched_path():
    """O(d^2 + dM) and l K numbers: less than d K where K is large."""
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((400, 60)), sparse.random(400, 3000, 0.002, "csr", random_state=0).astype(bool)
    x = da.from_array(X, chunks=(100, -1))
    y = da.concatenate([da.from_delayed(dask.delayed(Y[i : i + 100]), (100, 3000), bool) for i in range(0, 400, 100)])
    with pytest.warns(UserWarning, match="raise sketch="):
        model = distributed.fit(CSDPP(4, cost="hamming", basis="pbt", encoder="label"), x, y, sketch=12)
    assert model.fit_report_["shard_bytes"] < 8 * (61**2 + 3000 * 14 + 100)
    assert model.fit_report_["passes"] == 2


# ------------------------------------------------------------------------------------------------- predicting


def test_predictions_are_lazy_and_the_models(tmp_path):
    X, Y = data()
    model = CSDPP(2).fit(X, Y)
    made = []

    def block(block_info=None):
        made.append(block_info[None]["chunk-location"])
        return X[: block_info[None]["chunk-shape"][0]]

    x = da.map_blocks(block, chunks=((50, 50, 50), (7,)), dtype=float, meta=np.empty((0, 0)))
    labels, scores = distributed.predict(model, x), distributed.decision_function(model, x)
    assert not made
    assert labels.shape == (150, 6)
    np.testing.assert_array_equal(labels.blocks[1].compute(), model.predict(X[:50]))
    assert made == [(1, 0)]
    np.testing.assert_array_equal(scores.blocks[0].compute(), model.decision_function(X[:50]))
    csr = CSDPP(2).fit(X, sparse.csr_matrix(Y))
    assert sparse.issparse(distributed.predict(csr, x).blocks[0].compute())
    frame = pd.DataFrame(X, columns=[*"abcdefg"])
    named = CSDPP(2).fit(frame, pd.DataFrame(Y, columns=[*"stuvwx"]))
    table = distributed.predict(named, dd.from_pandas(frame, npartitions=3))
    table.to_parquet(tmp_path / "labels")
    back = pd.read_parquet(tmp_path / "labels")
    assert list(back.columns) == [*"stuvwx"]
    np.testing.assert_array_equal(back.to_numpy(), named.predict(frame))
    frames = dd.from_dask_array(distributed.predict(model, x), columns=[f"y{k}" for k in range(6)])
    frames.to_parquet(tmp_path / "more")
    assert pd.read_parquet(tmp_path / "more").shape == (150, 6)
    with pytest.raises(InvalidInput, match=r"X must be a Dask array or DataFrame, or paths of files, got ndarray"):
        distributed.predict(model, X)


def test_sparse_answers_for_files_go_to_parquet(tmp_path):
    X, Y = data()
    (tmp_path / "rows").mkdir()
    write_svmlight(tmp_path / "rows", X, Y, 3)
    (tmp_path / "rows" / "001b.svm").write_text("")  # no rows: no answers
    sizes = {"n_features": 7, "n_labels": 6}
    model = distributed.fit(CSDPP(2), tmp_path / "rows", **sizes)
    labels = distributed.predict(model, tmp_path / "rows", **sizes)
    labels = labels.map_blocks(lambda block: block.toarray(), dtype=labels.dtype)
    names = [str(name) for name in model.classes_]
    dd.from_dask_array(labels, columns=names).to_parquet(tmp_path / "labels")
    expected = model.predict(X).toarray()
    np.testing.assert_array_equal(pd.read_parquet(tmp_path / "labels").to_numpy(), expected)
    scores = distributed.decision_function(model, tmp_path / "rows", **sizes).compute()
    np.testing.assert_array_equal(scores >= 0, expected.astype(bool))


# ------------------------------------------------------------------------------------------------- a cluster


def test_a_cluster_gives_the_bits_of_one_process(cluster):
    stream = make_stream(900, 15, 12, rank=3, random_state=1)
    shards = cut(stream.X, stream.Y, 20)
    for model in (CPLST(3), PLST(3), OnlineBinaryRelevance(), CSDPP(3), CSDPP(3, basis="pbt", encoder="label")):
        there = distributed.fit(clone(model), *shards, client=cluster)
        here = distributed.fit(clone(model), *shards)
        assert bits(there) == bits(here)
        report = there.fit_report_
        assert set(report["peak_memory"]) <= set(cluster.scheduler_info()["workers"])
        assert all(1e7 < peak < 1e10 for peak in report["peak_memory"].values())
        assert report["moved_bytes"] >= 20 * report["shard_bytes"] > 0


def test_killed_workers_change_no_bit(cluster, tmp_path):
    """Three shards kill the worker that makes them, one in each of three passes; the fit ends with the same bits."""
    stream = make_stream(800, 15, 12, rank=3, random_state=1)

    def deadly(X, times, at):
        with times.open("a") as file:
            file.write("x")
        if times.stat().st_size == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return X

    def build(deaths):
        blocks = [
            dask.delayed(deadly)(stream.X[i * 50 : i * 50 + 50], tmp_path / f"{i}", deaths.get(i)) for i in range(16)
        ]
        X = da.concatenate([da.from_delayed(block, (50, 15), float) for block in blocks])
        return X, da.from_array(stream.Y, chunks=(50, -1))

    pids = cluster.run(os.getpid).values()
    harmed = distributed.fit(CSDPP(3), *build({2: 1, 7: 2, 13: 3}), client=cluster)
    passes = harmed.fit_report_["passes"]
    assert passes >= 3
    made = [(tmp_path / f"{i}").stat().st_size for i in range(16)]
    assert min(made[i] for i in (2, 7, 13)) > passes  # once more for each death
    assert not set(cluster.run(os.getpid).values()) & set(pids)
    assert bits(harmed) == bits(distributed.fit(CSDPP(3), *build({}), client=cluster))


def test_a_shard_that_kills_its_workers_is_named(cluster):
    """Dask suspects all that waited on a worker that died; here others wait, and only one of them kills."""
    stream = make_stream(300, 15, 12, rank=3, random_state=1)

    def deadly(block, block_info=None):
        if block_info[None]["chunk-location"][0] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    x, y = cut(stream.X, stream.Y, 6)
    x = x.map_blocks(deadly, meta=np.empty((0, 0)))
    cluster.run_on_scheduler(allow_failures, 1)
    try:
        with pytest.raises(
            InvalidInput, match=r"shard block 3 of 6 cannot be used: the worker died in each of 2 tries"
        ):
            distributed.fit(CPLST(3), x, y, client=cluster)
    finally:
        cluster.run_on_scheduler(allow_failures, 3)
    cluster.wait_for_workers(2)


def test_shards_are_not_tried_again_where_workers_stay_dead_or_nobody_asks_any_more():
    def tried(shard):
        raise AssertionError("a shard was tried")

    class Client:
        status = "running"

        def scheduler_info(self):
            return {"workers": {"tcp://10.0.0.1:1": {"nanny": None}}}

    shards = [_shards.Shard("block 0 of 1")]
    lost = _shards.blame("fit", shards, tried, Client(), dask_distributed.KilledWorker("task", None, 3))
    assert isinstance(lost, InvalidInput)
    assert str(lost).startswith("fit: workers died in each of 4 tries, of which shard is not known; see their logs")
    cancelled = dask_distributed.CancelledError("sum")
    assert _shards.blame("fit", shards, tried, Client(), cancelled) is cancelled


def allow_failures(number, dask_scheduler=None):
    dask_scheduler.allowed_failures = number


def test_a_poisoned_shard_is_named(cluster, tmp_path):
    X, Y = data()
    write_svmlight(tmp_path, X, Y, 5)
    with (tmp_path / "003.svm").open("a") as file:
        file.write("1,2 nonsense\n")
    model = CPLST(2).fit(X, Y)
    before = bits(model)
    for client in (None, cluster):
        with pytest.raises(InvalidInput, match=r"shard .*003\.svm cannot be used: .*003\.svm, line 31"):
            distributed.fit(model, tmp_path, n_features=7, n_labels=6, client=client)
    assert bits(model) == before
    bad = X.copy()
    bad[80, 2] = np.nan
    with pytest.raises(InvalidInput, match=r"shard block 2 of 5 cannot be used: Input X contains NaN"):
        distributed.fit(model, *cut(bad, Y, 5), client=cluster)
    with pytest.raises(InvalidInput, match=r"shard block 4 of 5 cannot be used: .*Y must hold 0 and 1, got 2"):
        distributed.fit(model, *cut(X, np.where(np.arange(150)[:, None] == 149, 2, Y), 5))

    missing = Y.astype(float)
    missing[60, 1] = np.nan
    with pytest.raises(InvalidInput, match=r"shard block 2 of 5 cannot be used: .*Y must hold 0 and 1, got NaN"):
        distributed.fit(model, *cut(X, missing, 5))

    def breaking(block, block_info=None):
        if block_info[None]["chunk-location"][0] == 1:
            raise OSError("disk on fire")
        return block

    x, y = cut(X, Y, 5)
    with pytest.raises(InvalidInput, match=r"shard block 1 of 5 cannot be made: OSError: disk on fire"):
        distributed.fit(model, x.map_blocks(breaking, meta=np.empty((0, 0))), y, client=cluster)
    assert bits(model) == before


def test_search_under_joblib_on_dask(cluster):
    stream = make_stream(300, 10, 8, rank=2, random_state=0)
    grid = {"n_components": [2, 4], "regularization": [0.1, 1.0]}
    with cluster.as_current(), joblib.parallel_config(backend="dask"):
        search = GridSearchCV(CSDPP(), grid, scoring=scorer("f1"), cv=3).fit(stream.X, stream.Y)
    alone = GridSearchCV(CSDPP(), grid, scoring=scorer("f1"), cv=3).fit(stream.X, stream.Y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])


def test_runs_are_spread_over_a_cluster(cluster):
    def run(seed):
        stream = make_stream(100, 5, 4, rank=2, random_state=seed)
        return seed, float(CSDPP(2).fit(stream.X, stream.Y).decision_function(stream.X).sum()), os.getpid()

    outcomes = {seed: (total, pid) for seed, total, pid in distributed.spread(cluster)(run, range(8))}
    assert {seed: total for seed, (total, _) in outcomes.items()} == {seed: run(seed)[1] for seed in range(8)}
    assert os.getpid() not in {pid for _, pid in outcomes.values()}
    by_address = distributed.spread(cluster.scheduler.address)
    assert sorted(by_address(abs, [-2, 1])) == [1, 2]
    assert list(by_address(abs, [])) == []
    with pytest.raises(InvalidInput, match="expected a scheduler at 'tcp://nowhere', got no answer"):
        list(distributed.spread("tcp://nowhere")(abs, [1]))


def test_workers_that_do_not_answer_hide_no_interruption(cluster, monkeypatch):
    """Ctrl-C ends local workers too; closing then is not waited for, and its error is none."""
    closed, close = [], dask_distributed.Client.close

    def late(client, timeout=None):
        close(client)
        if timeout is not None:
            closed.append(timeout)
            raise TimeoutError("timed out")

    monkeypatch.setattr(dask_distributed.Client, "close", late)
    outcomes = iter(distributed.spread(cluster.scheduler.address)(abs, [-3, 2, 1]))
    next(outcomes)
    with pytest.raises(KeyboardInterrupt):
        outcomes.throw(KeyboardInterrupt())
    assert closed == [10]


def test_commands_spread_their_runs(cluster, tmp_path):
    """The same losses as on one machine, and results that either can go on with."""
    address = cluster.scheduler.address
    run = ["run", "yeast", "--rows", "150", "--costs", "f1", "--repeats", "2", "--learners", "cs-dpp", "o-br"]
    for name, options in (("here", []), ("there", ["--dask", address])):
        assert cli.main([*run, "--no-progress", "--output", str(tmp_path / name), *options]) == 0
    tables = [pd.read_csv(tmp_path / name / "costs.csv").drop(columns="rows_per_second") for name in ("here", "there")]
    pd.testing.assert_frame_equal(*tables, check_exact=True)
    assert len(tables[0]) == 4

    output = tmp_path / "reproduction"
    reproduce = ["reproduce", "--only", "noise", "--sets", "yeast", "--repeats", "1", "--output", str(output)]
    assert cli.main([*reproduce, "--dask", address, "--no-progress"]) == 0
    with sqlite3.connect(output / "results.sqlite") as connection:
        made = connection.execute("SELECT key, made_at FROM runs").fetchall()
        key, cost, loss = connection.execute("SELECT key, cost, loss FROM losses ORDER BY key, cost").fetchone()
    assert len(made) > 5
    runs = spec.unique_runs([c for e in spec.experiments(["noise"]) for c in e.cells(["yeast"], 1, 0)])
    outcome = work.execute(next(one for one in runs if one.key == key))
    assert outcome.losses[cost] == loss
    assert cli.main([*reproduce, "--jobs", "1", "--no-progress"]) == 0
    with sqlite3.connect(output / "results.sqlite") as connection:
        assert connection.execute("SELECT key, made_at FROM runs").fetchall() == made


def test_an_address_without_a_scheduler_is_one_line(capsys, tmp_path):
    assert cli.main(["run", "yeast", "--rows", "50", "--dask", "tcp://nowhere", "--output", str(tmp_path)]) == 2
    assert "expected a scheduler at 'tcp://nowhere', got no answer" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------- refusals


def test_what_cannot_be_fitted():
    X, Y = data()
    x, y = cut(X, Y, 3)
    for model, options, said in (
        (CSDPP(2, regressor="gradient"), {}, "regressor must be 'ridge', got 'gradient'"),
        (CSDPP(2, forgetting=0.9), {}, r"forgetting must be 1.0, got 0.9; shards have no order"),
        (CSDPP(2, regularization="auto"), {}, 'regularization must be a number, got "auto"; fit a sample'),
        (PLST(2, regularization=-1), {}, "regularization must be a number positive"),
        (CSDPP(7), {}, "n_components must be at most the 6 labels"),
        (CSDPP(2), {"rounds": 0}, "rounds must be a whole number at least 1, got 0"),
        (CSDPP(2), {"client": "tcp://nowhere:8786"}, "client must be a distributed.Client, got 'tcp://nowhere:8786'"),
        (CSDPP(2), {"sketch": 1}, "sketch must be a whole number at least 2"),
        (GridSearchCV(CSDPP(), {}), {}, "model must be a learner of csdpp, got GridSearchCV"),
    ):
        with pytest.raises(InvalidParameter, match=said):
            distributed.fit(model, x, y, **options)
        assert not hasattr(model, "classes_")
    for pair, options, said in (
        ((X, Y), {}, "X must be a Dask array or DataFrame, or paths of files, got ndarray"),
        ((x, y), {"n_labels": 6}, "n_labels is an option of files"),
        ((x, y[:100]), {}, "as many rows, got 150 and 100"),
        ((x, y[:, 0]), {}, "Y must have rows and columns"),
        ((x[:0], y[:0]), {}, "X must have rows, got none"),
    ):
        with pytest.raises(InvalidInput, match=said):
            distributed.fit(CSDPP(2), *pair, **options)
    with pytest.raises(MissingData, match="matches none"):
        distributed.fit(CSDPP(2), "no/such/*.svm", n_features=3, n_labels=2)


# ------------------------------------------------------------------------------------------------- the pages


@pytest.mark.parametrize(("script", "page"), [("sharding", "distributed.md"), ("scale", "scale.md")])
def test_figures_of_the_pages_are_the_recorded_ones(script, page):
    root = Path(__file__).resolve().parents[1]
    results = root / "benchmarks" / "results" / f"{script}.json"
    if not results.exists():
        pytest.skip(f"nothing recorded: python benchmarks/{script}.py --record")
    found = importlib.util.spec_from_file_location(f"benchmarks_{script}", root / "benchmarks" / f"{script}.py")
    benchmark = importlib.util.module_from_spec(found)
    found.loader.exec_module(benchmark)
    text = (root / "docs" / page).read_text(encoding="utf-8").split(benchmark.BEGIN)[1].split(benchmark.END)[0]
    assert text.strip() == benchmark.tables(json.loads(results.read_text(encoding="utf-8"))).strip()
