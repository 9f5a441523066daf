"""Prequential evaluation: against the loop a user would write by hand, against scikit-learn, against the paper."""

import csv
import json
import os
import struct
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import metrics
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multioutput import MultiOutputClassifier

import naive_costs
from csdpp import CSDPP, PLST, OnlineBinaryRelevance, OnlineRandomProjection, evaluate, progress
from csdpp.costs import F1, AnyCost, CountCost
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.evaluate import PrequentialResult, choose_checkpoints, prequential, scorer
from learners import assert_same_state

COSTS = ("hamming", "f1", "accuracy", "rank")


def stream(n=150, d=4, K=6, seed=0):
    """Features and indicators of rank two, with empty rows among them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    Y = (X @ rng.standard_normal((d, 2)) @ rng.standard_normal((2, K)) > 0.4).astype(int)
    return X, Y


def models():
    return {
        "defaults": CSDPP(2),
        "published": CSDPP.published(2, random_state=3),
        "forgetting": CSDPP(2, forgetting=0.5, block_size=40),
        "gradient": CSDPP(2, regressor="gradient", basis="pbt", encoder="label", block_size=7),
        "binary relevance": OnlineBinaryRelevance(block_size=16),
        "random projection": OnlineRandomProjection(2, random_state=3),
    }


class Parrot:
    """Predicts what it was told to, whatever it learns; remembers how it was called."""

    def __init__(self, answers):
        self.answers, self.learned, self.calls = answers, 0, []

    def predict(self, X):
        self.calls.append(("predict", len(X)))
        return self.answers[self.learned : self.learned + len(X)]

    def partial_fit(self, X, Y, **options):
        self.calls.append(("learn", len(X), *options))
        self.learned += len(X)


def without_time(result):
    return {k: v for k, v in result.to_dict().items() if k not in {"seconds", "rows_per_second"}}


def running(losses):
    return [sum(losses[: t + 1]) / (t + 1) for t in range(len(losses))]


# ---- against the handwritten loop


@pytest.mark.parametrize("name", models())
def test_equals_the_handwritten_loop(name):
    X, Y = stream()
    model, answers = models()[name], []
    for t in range(len(X)):
        answers.append(model.prequential(X[t : t + 1], Y[t : t + 1])[0])
    result = prequential(models()[name], X, Y)
    assert result.checkpoints.tolist() == list(range(1, len(X) + 1))
    for cost in COSTS:
        losses = [naive_costs.COSTS[cost](y, p) for y, p in zip(Y.tolist(), answers, strict=True)]
        np.testing.assert_allclose(result.curves[cost], running(losses), rtol=1e-12)
        assert result.averages[cost] == result.curves[cost][-1]
    answers = np.array(answers)
    assert result.per_label["tp"].tolist() == (Y & answers).sum(axis=0).tolist()
    assert result.per_label["fp"].tolist() == (~Y & answers & 1).sum(axis=0).tolist()


@pytest.mark.parametrize("name", models())
def test_pieces_change_no_bit(name, monkeypatch):
    X, Y = stream()
    whole, pieces, once = (models()[name] for _ in range(3))
    expected = prequential(whole, X, Y, keep_losses=True)
    monkeypatch.setattr(evaluate, "_CELLS", 40 * 6)  # 40 rows a call, or a block if that is longer
    assert without_time(prequential(pieces, X, Y, keep_losses=True)) == without_time(expected)
    once.prequential(X, Y)
    for model in (whole, pieces):
        assert_same_state(model, once)
        assert model.n_seen_ == len(X)


def test_a_model_with_a_past_goes_on_from_it():
    X, Y = stream()
    model = OnlineBinaryRelevance().fit(X, Y)
    expected = (OnlineBinaryRelevance().fit(X, Y).prequential(X, Y) != Y).mean()
    assert prequential(model, X, Y).averages["hamming"] == pytest.approx(expected, rel=1e-12)
    assert model.n_seen_ == 2 * len(X)


@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_any_model_is_predicted_then_taught_batch_by_batch(batch_size):
    X, Y = stream(n=40)
    answers = np.random.default_rng(1).integers(0, 2, Y.shape)
    parrot = Parrot(answers)
    result = prequential(parrot, X, Y, batch_size=batch_size, classes=[0, 1])
    expected = []
    for start in range(0, 40, batch_size):
        size = min(batch_size, 40 - start)
        expected += [("predict", size), ("learn", size, *(["classes"] if start == 0 else []))]
    assert parrot.calls == expected
    for cost in COSTS:
        losses = [naive_costs.COSTS[cost](y, p) for y, p in zip(Y.tolist(), answers.tolist(), strict=True)]
        np.testing.assert_allclose(result.curves[cost], running(losses), rtol=1e-12)


def test_scikit_learn_model_starts_from_nothing():
    X, Y = stream(n=30)
    make = lambda: MultiOutputClassifier(SGDClassifier(random_state=0))  # noqa: E731
    classes = [[0, 1]] * 6
    by_hand, losses = make(), [Y[:10].mean()]  # nothing learned: no label predicted
    by_hand.partial_fit(X[:10], Y[:10], classes=classes)
    for start in (10, 20):
        part = slice(start, start + 10)
        losses.append((by_hand.predict(X[part]) != Y[part]).mean())
        by_hand.partial_fit(X[part], Y[part])
    result = prequential(make(), X, Y, "hamming", batch_size=10, classes=classes)
    assert result.averages["hamming"] == pytest.approx(np.mean(losses), rel=1e-12)


def test_a_model_that_forgets_how_to_predict_is_an_error():
    class Forgetful(Parrot):
        def predict(self, X):
            raise NotFittedError("what?")

    X, Y = stream(n=4)
    with pytest.raises(NotFittedError, match="what"):
        prequential(Forgetful(Y), X, Y)


def test_our_learners_in_batches():
    X, Y = stream(n=60)
    by_hand, wrong = CSDPP(2), []
    by_hand.partial_fit(X[:0], Y[:0])
    for start in range(0, 60, 25):
        part = slice(start, start + 25)
        wrong.append(by_hand.predict(X[part]) != Y[part])
        by_hand.partial_fit(X[part], Y[part])
    result = prequential(CSDPP(2), X, Y, "hamming", batch_size=25)
    assert result.averages["hamming"] == pytest.approx(np.vstack(wrong).mean(), rel=1e-12)


# ---- figures against scikit-learn


def corner(name, rng):
    Y, Y_hat = rng.integers(0, 2, (2, 30, 5))
    if name == "empty rows":
        Y[:10], Y_hat[5:15] = 0, 0
    elif name == "empty labels":
        Y[:, 0], Y_hat[:, 0], Y_hat[:, 1], Y[:, 2] = 0, 0, 0, 0
    elif name == "nothing predicted":
        Y_hat[:] = 0
    elif name == "all right":
        Y_hat = Y.copy()
    elif name == "one label":
        Y, Y_hat = Y[:, :1], Y_hat[:, :1]
    return Y, Y_hat


@pytest.mark.parametrize(
    "name", ["random", "empty rows", "empty labels", "nothing predicted", "all right", "one label"]
)
def test_figures_are_scikit_learns(name):
    Y, Y_hat = corner(name, np.random.default_rng(0))
    result = prequential(Parrot(Y_hat), np.zeros((30, 1)), Y)
    # scikit-learn takes a single column for classes: give it a second one without any label, which changes
    # neither samples nor micro averages; macro then has to be rescaled.
    wide, wide_hat = (np.hstack([a, np.zeros_like(a)]) if a.shape[1] == 1 else a for a in (Y, Y_hat))
    scale = wide.shape[1] / Y.shape[1]
    for figure in ("precision", "recall", "f1"):
        function = getattr(metrics, f"{figure}_score")
        for kind in ("samples", "micro", "macro"):
            expected = function(wide, wide_hat, average=kind, zero_division=0)
            expected *= scale if kind == "macro" else 1
            assert result.scores[f"{figure}_{kind}"] == pytest.approx(expected, rel=1e-12), (figure, kind)
        expected = function(wide, wide_hat, average=None, zero_division=0)[: Y.shape[1]]
        np.testing.assert_allclose(result.per_label[figure], expected, rtol=1e-12)
    assert result.scores["subset_accuracy"] == pytest.approx(metrics.accuracy_score(Y, Y_hat))
    tables = metrics.multilabel_confusion_matrix(wide, wide_hat)[: Y.shape[1]]
    for k, (tn, fp, fn, tp) in enumerate(tables.reshape(-1, 4)):
        assert [result.per_label[c][k] for c in ("tp", "fp", "fn", "tn")] == [tp, fp, fn, tn]
        assert result.per_label["support"][k] == tp + fn


# ---- formats


def test_formats_give_the_same():
    X, Y = stream()
    expected = without_time(prequential(CSDPP(2), X, Y))
    names = list("abcdef")
    columns = [f"x{j}" for j in range(X.shape[1])]
    for features, labels in [
        (X.tolist(), Y.tolist()),
        (X, Y.astype(bool)),
        (X, sparse.csr_matrix(Y)),
        (X, sparse.coo_array(Y)),
        (pd.DataFrame(X, columns=columns), pd.DataFrame(Y, columns=names)),
        (pl.DataFrame(X, schema=columns), pl.DataFrame(Y, schema=names)),
    ]:
        result = prequential(CSDPP(2), features, labels)
        found = without_time(result)
        if hasattr(labels, "columns"):
            assert result.per_label["label"].tolist() == names
            found["per_label"]["label"] = expected["per_label"]["label"]
        assert found == expected, type(labels)


def test_sparse_features_and_sparse_predictions():
    X, Y = stream()
    X[np.abs(X) < 0.5] = 0.0
    dense = prequential(OnlineBinaryRelevance(), X, Y)
    result = prequential(OnlineBinaryRelevance(), sparse.coo_array(X), sparse.csr_matrix(Y))
    assert result.averages == pytest.approx(dense.averages)
    told = prequential(Parrot(sparse.csr_matrix(Y)), X, Y)
    assert told.averages["hamming"] == 0.0


def test_labels_of_a_frame_are_matched_by_name():
    X, Y = stream()
    frame = pd.DataFrame(Y, columns=list("abcdef"))
    model, other = CSDPP(2).fit(X, frame), CSDPP(2).fit(X, frame)
    expected = prequential(model, X, frame)
    result = prequential(other, X, frame[list("fbdeca")])
    assert without_time(result) == without_time(expected)


def test_frame_slices_reach_a_model_from_elsewhere():
    X, Y = stream(n=5)
    frame = pd.DataFrame(Y, columns=list("abcdef"))
    seen = []

    class Curious(Parrot):
        def partial_fit(self, X, Y):
            seen.append((list(X.columns), list(Y.columns), len(Y)))
            super().partial_fit(X, Y)

    prequential(Curious(Y), pd.DataFrame(X, columns=list("wxyz")), frame, batch_size=4)
    assert seen == [(list("wxyz"), list("abcdef"), 4), (list("wxyz"), list("abcdef"), 1)]


def test_label_names():
    X, Y = stream(n=10)
    assert prequential(CSDPP(2), X, Y).per_label["label"].tolist() == [0, 1, 2, 3, 4, 5]
    named = prequential(CSDPP(2), X, Y, label_names=list("uvwxyz"))
    assert named.per_label["label"].tolist() == list("uvwxyz")


def test_one_label_and_no_rows():
    X, Y = stream(K=1)
    assert prequential(CSDPP(1), X, Y).per_label["support"].tolist() == [Y.sum()]
    result = prequential(CSDPP(1), X[:0], Y[:0], bound=True, keep_losses=True, progress=True)
    assert result.n_rows == 0
    assert np.isnan(list(result.averages.values())).all()
    assert result.curves["f1"].shape == (0,)
    assert "0 rows, 1 labels" in str(result)
    assert prequential(Parrot(Y[:0]), X[:0], Y[:0]).per_label["tn"].tolist() == [0]


# ---- costs and checkpoints


def test_costs_of_any_kind():
    X, Y = stream(n=30)
    misses = CountCost(lambda tp, fp, fn, tn: fn / (tp + fp + fn + tn), name="misses")
    first = AnyCost(lambda y, y_hat: float(y[0] != y_hat[0]), name="first")
    answers = np.random.default_rng(0).integers(0, 2, Y.shape)
    result = prequential(Parrot(answers), X, Y, [misses, first, F1, "rank_published"])
    assert list(result.averages) == ["misses", "first", "f1", "rank_published"]
    assert result.averages["misses"] == pytest.approx((Y & (1 - answers)).mean())
    assert result.averages["first"] == pytest.approx((Y[:, 0] != answers[:, 0]).mean())
    assert list(prequential(Parrot(answers), X, Y, F1()).averages) == ["f1"]


def test_checkpoints():
    X, Y = stream()
    everywhere = prequential(CSDPP(2), X, Y, "f1").curves["f1"]
    for asked, places in [
        (4, [37, 75, 112, 150]),
        (1000, range(1, 151)),
        ([64, 65, 150], [64, 65, 150]),
        (range(10, 30, 10), [10, 20]),
        (np.array([], int), []),
    ]:
        result = prequential(CSDPP(2), X, Y, "f1", checkpoints=asked)
        assert result.checkpoints.tolist() == list(places)
        assert result.curves["f1"].tolist() == everywhere[result.checkpoints - 1].tolist()
        assert result.averages["f1"] == everywhere[-1]
    default = choose_checkpoints("test", None, 123_456, 1000)
    assert (len(default), default[-1], (np.diff(default) > 0).all()) == (1000, 123_456, True)


def test_losses_are_kept_if_asked_for():
    X, Y = stream()
    assert prequential(CSDPP(2), X, Y).losses == {}
    result = prequential(CSDPP(2), X, Y, "f1", bound=True, keep_losses=True)
    assert list(result.losses) == ["f1", "prediction_error", "reconstruction_error"]
    for name, losses in result.losses.items():
        np.testing.assert_allclose(running(losses), result.curves[name], rtol=1e-12)


# ---- the paper's bound


@st.composite
def bounded_learners(draw):
    """A learner for which theorem 1 or 3 applies, the cost that is bounded, and the seed of a stream."""
    K = draw(st.integers(1, 6))
    basis = draw(st.sampled_from(["pbc", "pbt", "none"]))
    fourfold = CountCost(lambda tp, fp, fn, tn: (fp + 4 * fn) / (4 * (tp + fp + fn + tn)), name="fourfold")
    cost = draw(st.sampled_from(["hamming", "f1", "accuracy", "rank", fourfold]))
    lemma_2 = ["ordered", "shapley"]
    model = CSDPP(
        draw(st.integers(1, K)),
        cost=cost,
        basis=basis,
        encoder=draw(st.sampled_from(["label", "feature"] if basis == "pbc" else ["label"])),
        reference=draw(st.sampled_from(["mean", "zero"])),
        decode=draw(st.sampled_from(["expected", "sample"])),
        weighting=draw(st.sampled_from([*lemma_2, "marginal", "mean"] if cost == "hamming" else lemma_2)),
        regressor=draw(st.sampled_from(["ridge", "gradient"])),
        rate=draw(st.sampled_from([0.5, 2.0, 10.0, 100.0])),
        forgetting=draw(st.sampled_from([1.0, 0.8])),
        block_size=draw(st.sampled_from([1, 5, 64])),
        random_state=0,
    )
    return model, cost, K, draw(st.integers(0, 2**32 - 1))


@given(bounded_learners())
@settings(max_examples=300)
def test_cost_of_every_row_is_bounded(drawn):
    """Theorems 1 and 3, from any reference o and any H: sum_k delta_k [wrong] <= prediction + reconstruction."""
    model, cost, K, seed = drawn
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 40)), int(rng.integers(1, 5))
    X = rng.standard_normal((n, d)) * rng.choice([0.1, 1.0, 30.0])
    Y = (rng.random((n, K)) < rng.choice([0.1, 0.5, 0.9])).astype(int)
    model.partial_fit(X[:0], Y[:0])
    engine = model._engine
    engine.o[:] = rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal(K)
    engine.regressor.W[:] = rng.choice([0.0, 0.1, 1.0]) * rng.standard_normal(engine.regressor.W.shape)
    losses = prequential(model, X, Y, cost, bound=True, keep_losses=True).losses
    loss, prediction, reconstruction = losses.values()
    assert (prediction >= -1e-9).all()
    assert (reconstruction >= -1e-9).all()
    limit = prediction + reconstruction
    assert (loss <= limit + 1e-9 * (1.0 + limit)).all()


def test_bound_of_binary_relevance():
    X, Y = stream()
    losses = prequential(OnlineBinaryRelevance(), X, Y, "hamming", bound=True, keep_losses=True).losses
    model, squares = OnlineBinaryRelevance(), []
    model.partial_fit(X[:0], Y[:0])
    for x, y in zip(X, Y, strict=True):
        squares.append(((model.decision_function([x])[0] - (2 * y - 1) / np.sqrt(6)) ** 2).sum())
        model.partial_fit([x], [y])
    np.testing.assert_allclose(losses["prediction_error"], squares, rtol=1e-9)
    assert not losses["reconstruction_error"].any()
    assert (losses["hamming"] <= losses["prediction_error"] + 1e-9).all()


@pytest.mark.parametrize("basis", ["pbc", "pbt"])
@pytest.mark.parametrize("reference", ["mean", "zero"])
def test_bound_terms_are_the_printed_ones(basis, reference):
    """|r(x) - P y'|^2 and |(I - P'P) y'|^2, y' = C y - o, with the P that the learner sampled."""
    X, Y = stream(n=40)
    model = CSDPP.published(2, basis=basis, reference=reference, random_state=0)
    model.partial_fit(X[:0], Y[:0])
    terms = []
    for x, y in zip(X, Y, strict=True):
        Q, o = model.directions_, model.reference_
        kept = model._engine.encoder.basis.keep[: len(Q)] == 1.0
        P = Q[kept]
        if basis == "pbc":
            r = P @ (model.coef_ @ x + model.intercept_ - o)
        else:
            r = (model.codes_ @ x + model.codes_intercept_)[kept]
        delta = F1().weights(y, model.predict([x])[0], "ordered")
        c = np.sqrt(delta) * (2 * y - 1) - o
        terms.append([((r - P @ c) ** 2).sum(), ((c - P.T @ P @ c) ** 2).sum()])
        model.partial_fit([x], [y])
    model = CSDPP.published(2, basis=basis, reference=reference, random_state=0)
    losses = prequential(model, X, Y, "f1", bound=True, keep_losses=True).losses
    found = np.column_stack([losses["prediction_error"], losses["reconstruction_error"]])
    np.testing.assert_allclose(found, terms, atol=1e-9)


# ---- saving


def test_json_round_trip(tmp_path):
    X, Y = stream(n=30)
    for labels in (Y, pd.DataFrame(Y, columns=["å", *"bcdef"])):
        result = prequential(CSDPP(2), X, labels, bound=True, keep_losses=True)
        result.save(tmp_path / "result.json")
        loaded = PrequentialResult.load(str(tmp_path / "result.json"))
        assert loaded.to_dict() == result.to_dict()
        for name in ("curves", "per_label", "losses"):
            for key, values in getattr(result, name).items():
                assert getattr(loaded, name)[key].dtype.kind == values.dtype.kind
        assert str(loaded) == str(result)
    assert os.listdir(tmp_path) == ["result.json"]


def test_empty_result_survives_json(tmp_path):
    result = prequential(CSDPP(2), *(part[:0] for part in stream()))
    result.save(tmp_path / "empty.json")
    assert "NaN" not in (tmp_path / "empty.json").read_text()
    loaded = PrequentialResult.load(tmp_path / "empty.json")
    assert np.isnan(loaded.averages["f1"])
    assert loaded.checkpoints.dtype == np.int64


def test_csv_holds_the_curves(tmp_path):
    result = prequential(CSDPP(2), *stream(n=30), checkpoints=3, bound=True)
    result.save(tmp_path / "curves.csv")
    with open(tmp_path / "curves.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["t", *COSTS, "prediction_error", "reconstruction_error"]
    t, *columns = zip(*rows, strict=True)
    assert t == ("10", "20", "30")
    for column, curve in zip(columns, result.curves.values(), strict=True):
        assert [float(value) for value in column] == curve.tolist()


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    result = prequential(CSDPP(2), *stream(n=5))
    result.save(tmp_path / "result.json")
    before = (tmp_path / "result.json").read_bytes()

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        result.save(tmp_path / "result.json")
    assert os.listdir(tmp_path) == ["result.json"]
    assert (tmp_path / "result.json").read_bytes() == before


def test_loading_something_else(tmp_path):
    for text in ("not json", "[]", json.dumps({"kind": "other"})):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(InvalidInput, match="json file written by save, and is not"):
            PrequentialResult.load(tmp_path / "x.json")


def test_table():
    result = prequential(Parrot(stream(n=4)[1]), *stream(n=4), costs=["hamming", "f1"])
    lines = str(result).splitlines()
    assert lines[0].startswith("4 rows, 6 labels, ")
    assert "hamming           0.0000" in lines
    assert [line.split()[:1] for line in lines if line.startswith(("precision", "recall", "f1  "))]
    assert lines[-1].split() == ["subset", "accuracy", "1.0000"]
    assert repr(result) == "PrequentialResult(4 rows, hamming=0.0000, f1=0.0000)"
    with pytest.raises(AttributeError):
        result.n_rows = 3


# ---- the bar


def screen(text, width):
    """What a terminal of this width shows in the end, and whether a line ever ran over its edge."""
    cells, column, wrapped = [" "] * width, 0, False
    for character in text:
        if character == "\r":
            column = 0
        elif column < width:
            cells[column] = character
            column += 1
        else:
            wrapped = True
    return "".join(cells).rstrip(), wrapped


def read_or_nothing(master):
    os.set_blocking(master, False)
    try:
        return os.read(master, 100_000)
    except OSError:  # nothing left
        return b""


@pytest.fixture
def eager(monkeypatch):
    """A bar that draws after every block of eight rows."""
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    monkeypatch.setattr(evaluate, "_PATIENCE", 0.0)
    monkeypatch.setattr(evaluate, "_CELLS", 0)
    return OnlineBinaryRelevance(block_size=8)


@pytest.mark.parametrize("width", [3, 12, 30, 79, 200])
@pytest.mark.parametrize("fails", [False, True])
def test_bar_on_a_terminal(width, fails, eager, monkeypatch):
    pytest.importorskip("termios")
    import fcntl
    import termios

    X, Y = stream(n=100)
    if fails:
        X[50] = np.nan
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    with open(slave, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        if fails:
            with pytest.raises(ValueError, match="NaN"):
                prequential(eager, X, Y)
        else:
            prequential(eager, X, Y)
    text = b""
    while chunk := read_or_nothing(master):
        text += chunk
    os.close(master)
    text = text.decode()
    assert screen(text, width) == ("", False)
    lines = [line.strip() for line in text.split("\r") if line.strip()]
    assert len(lines) == (7 if fails else 14)
    assert lines[0].startswith("0%")
    if width >= 12:
        assert lines[-1].startswith("48%" if fails else "100%")
    if width >= 30:
        assert "hamming 0." in lines[-1]
    if width >= 79:
        assert ("48/100 rows" if fails else "100/100 rows") in lines[-1]
        assert " rows/s" in lines[-1]
        assert "[####" in lines[-1]
        assert " left" in lines[-1]


def test_bar_is_silent_in_a_pipe(eager, capsys, monkeypatch):
    X, Y = stream(n=100)
    prequential(eager, X, Y)
    assert capsys.readouterr() == ("", "")
    prequential(eager, X, Y, progress=False)
    assert capsys.readouterr() == ("", "")
    prequential(eager, X, Y, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "100/100 rows" in err
    assert screen(err, 80) == ("", False)
    monkeypatch.setattr(sys, "stderr", None)  # no console at all
    prequential(eager, X, Y)


@pytest.mark.parametrize(
    ("rate", "left"), [(10.0, "0:09 left"), (0.1, "15:00 left"), (0.01, "2:30:00 left"), (None, None)]
)
def test_time_left(rate, left):
    line = progress._line(100, 10, "f1", 0.25, rate, 100)
    assert (left is None and "left" not in line) or left in line
    assert " 10%  [" in line
    assert "f1 0.2500" in line


# ---- the scorer


def test_scorer_in_cross_validation_and_grid_search():
    X, Y = stream()
    folds = KFold(3)
    scores = cross_val_score(CSDPP(2), X, Y, scoring=scorer("f1"), cv=folds)
    expected = [
        -F1().loss(Y[test], CSDPP(2).fit(X[train], Y[train]).predict(X[test])).mean() for train, test in folds.split(X)
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    grid = {"n_components": [1, 4], "cost": ["f1", "hamming"]}
    search = GridSearchCV(CSDPP(), grid, scoring=scorer(F1()), cv=folds).fit(X, sparse.csr_matrix(Y))
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.best_score_ < 0
    with pytest.raises(InvalidInput, match="scorer: Y must be 0/1 indicators"):
        scorer("f1")(CSDPP().fit(X, Y[:, 0]), X, Y[:, 0])


# ---- what is refused


class Narrow(Parrot):
    def predict(self, X):
        return super().predict(X)[:, :2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Y": np.zeros(9)}, r"Y must be 0/1 indicators of shape \(n, K\), got shape \(9,\); turn classes into"),
        ({"Y": np.full((9, 6), 2)}, "Y must hold 0 and 1, got 2"),
        ({"Y": np.zeros((8, 6))}, r"X and Y must have as many rows, got shapes \(9, 4\) and \(8, 6\)"),
        ({"X": np.zeros(5)}, "X and Y must have as many rows"),
        ({"model": PLST(2)}, "model must have predict and partial_fit, got PLST; use an online learner"),
        ({"model": Narrow(np.zeros((9, 6)))}, r"of shape \(1, 6\), got shape \(1, 2\)"),
        ({"model": Parrot(np.full((9, 6), 0.5))}, "predict: Y must hold 0 and 1, got 0.5"),
        ({"costs": "f2"}, "cost must be one of 'hamming'"),
        ({"costs": ["f1", F1()]}, r"costs must have names of their own, got \['f1', 'f1'\]"),
        ({"checkpoints": 0}, "checkpoints must be a whole number at least 1, or rows, got 0"),
        ({"checkpoints": True}, "checkpoints must be a whole number"),
        ({"checkpoints": [3, 3]}, r"rising within 1..9, got \[3, 3\]"),
        ({"checkpoints": [0, 3]}, r"rising within 1..9"),
        ({"checkpoints": [3, 10]}, r"rising within 1..9"),
        ({"checkpoints": [1.5]}, r"rising within 1..9"),
        ({"batch_size": 0}, "batch_size must be a whole number at least 1, got 0"),
        ({"label_names": ["a"]}, r"label_names must name the 6 columns of Y, got shape \(1,\)"),
        ({"bound": True, "batch_size": 2}, "bound=True must go with CSDPP or OnlineBinaryRelevance and batch"),
        ({"bound": True, "model": OnlineRandomProjection(2)}, "got OnlineRandomProjection and batch_size=1"),
    ],
)
def test_refusals(arguments, message):
    X, Y = stream(n=9)
    arguments = {"model": CSDPP(2), "X": X, "Y": Y} | arguments
    with pytest.raises(InvalidInput, match=message):
        prequential(**arguments)
    assert not hasattr(arguments["model"], "n_features_in_")  # refused before anything was learned


def test_path_of_another_kind(tmp_path):
    result = prequential(CSDPP(2), *stream(n=5))
    with pytest.raises(InvalidParameter, match=r"path must end in .json \(everything\) or .csv"):
        result.save(tmp_path / "result.txt")
