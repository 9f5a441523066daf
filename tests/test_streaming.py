"""Learning and predicting files and pipes: the library's results, resumed to the bit, in the formats promised."""

import io
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import sparse

from csdpp import CSDPP, OnlineBinaryRelevance, cli, persist, streaming
from csdpp.costs import F1, CountCost, Hamming
from csdpp.datasets import make_stream
from csdpp.errors import CsdppError, DataFormatError, InvalidInput, InvalidParameter, MissingData
from csdpp.streaming import _learning

SMALL = make_stream(300, 6, 4, rank=2, random_state=0)
BR = {"learner": "OnlineBinaryRelevance"}


def table(X, Y, x="x{}", y="is_{}"):
    head = ",".join([*(x.format(j) for j in range(X.shape[1])), *(y.format(k) for k in range(Y.shape[1]))])
    rows = [",".join(map(repr, [*a, *b])) for a, b in zip(X.tolist(), Y.tolist(), strict=True)]
    return "\n".join([head, *rows]) + "\n"


def json_lines(X, Y, first=0):
    lines = []
    for i, (x, y) in enumerate(zip(X.tolist(), Y.tolist(), strict=True), first):
        labels = [f"is_{k}" for k, on in enumerate(y) if on]
        lines.append(json.dumps({"id": i, "x": {f"x{j}": v for j, v in enumerate(x)}, "y": labels}) + "\n")
    return "".join(lines)


@pytest.fixture
def files(tmp_path):
    """The small stream as CSV and JSON lines, and a place for a model."""
    (tmp_path / "a.csv").write_text(table(SMALL.X, SMALL.Y))
    (tmp_path / "a.jsonl").write_text(json_lines(SMALL.X, SMALL.Y))
    return tmp_path


@pytest.fixture
def dies(monkeypatch):
    """Call something that dies, as far as its file can tell, after so many checkpoints."""

    def call(after, work, *args, **options):
        saved, save = [], persist.save

        def dying(model, path, *, extra=None):
            save(model, path, extra=extra)
            saved.append(extra)
            if len(saved) == after:
                raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(persist, "save", dying)
            with pytest.raises(ZeroDivisionError):
                work(*args, **options)

    return call


# ---- learning


def test_train_is_the_librarys_learning_in_blocks(files):
    report = streaming.train(files / "a.csv", files / "m", label_prefix="is_", block_rows=70, parameters={"cost": "f1"})
    model = CSDPP(cost="f1", random_state=0)
    losses = []
    for start in range(0, 300, 70):
        X, Y = SMALL.X[start : start + 70], SMALL.Y[start : start + 70]
        losses.append(F1().loss(Y, model.prequential(X, Y, classes=None if start else [f"is_{k}" for k in range(4)])))
    assert persist.dumps(persist.load(files / "m")) == persist.dumps(model)
    assert report[1:4] == (300, 300, "f1")
    assert report.average == pytest.approx(np.concatenate(losses).mean(), rel=1e-12)
    assert report.signal is None


@pytest.mark.parametrize("after", [1, 2, 4])
def test_a_run_that_died_goes_on_from_its_last_checkpoint_to_the_bit(files, dies, after):
    settings = {"block_rows": 20, "checkpoint_rows": 60, "parameters": {"decode": "sample", "n_components": 2}}
    streaming.train(files / "a.jsonl", files / "whole", **settings)
    dies(after, streaming.train, files / "a.jsonl", files / "m", **settings)
    report = streaming.train(files / "a.jsonl", files / "m", **settings)
    assert (report.rows, report.learned) == (300, 300 - 60 * after)
    assert (files / "m").read_bytes() == (files / "whole").read_bytes()


def test_update_goes_on_where_it_died_and_with_other_streams_later(files, dies):
    half = files / "b.jsonl"
    half.write_text(json_lines(SMALL.X[:150], SMALL.Y[:150]))
    rest = files / "c.jsonl"
    rest.write_text(json_lines(SMALL.X[150:], SMALL.Y[150:]))
    for name in ("whole", "m"):
        streaming.train(half, files / name, **BR)
    streaming.update(files / "whole", rest, block_rows=10, checkpoint_rows=50)
    dies(2, streaming.update, files / "m", rest, block_rows=10, checkpoint_rows=50)
    with pytest.raises(InvalidInput, match=r"m was left amid 'c.jsonl' after 100 rows, got 'a.csv'; give .*--abandon"):
        streaming.update(files / "m", files / "a.csv")
    report = streaming.update(files / "m", rest, checkpoint_rows=50)  # the size of the blocks is remembered
    assert (report.rows, report.learned) == (150, 50)
    assert (files / "m").read_bytes() == (files / "whole").read_bytes()
    assert streaming.update(files / "m", files / "a.csv").rows == 300
    assert persist.load(files / "m").n_seen_ == 600


def test_abandon_and_restart_begin_anew(files, dies):
    dies(1, streaming.train, files / "a.jsonl", files / "m", block_rows=10, checkpoint_rows=50, **BR)
    (files / "b.jsonl").write_text(json_lines(SMALL.X[:20], SMALL.Y[:20]))
    with pytest.raises(InvalidInput, match=r"was left amid 'a.jsonl' after 50 rows, got 'b.jsonl'; give .*--restart"):
        streaming.train(files / "b.jsonl", files / "m", **BR)
    with pytest.raises(InvalidParameter, match=r"was begun as OnlineBinaryRelevance, got CSDPP; go on with that, or"):
        streaming.train(files / "a.jsonl", files / "m")
    with pytest.raises(InvalidParameter, match=r"was begun with forgetting=1.0, got 0.9; go on with that, or"):
        streaming.train(files / "a.jsonl", files / "m", parameters={"forgetting": 0.9}, **BR)
    assert streaming.update(files / "m", files / "b.jsonl", abandon=True).rows == 20
    assert persist.load(files / "m").n_seen_ == 70
    assert streaming.train(files / "b.jsonl", files / "m", restart=True, **BR).rows == 20
    assert persist.load(files / "m").n_seen_ == 20
    with pytest.raises(
        InvalidInput, match=r"m must not be there yet, .* got a finished model; go on learning with update"
    ):
        streaming.train(files / "b.jsonl", files / "m", **BR)


def test_a_live_source_is_not_passed_over(files, dies):
    dies(1, streaming.train, files / "a.jsonl", files / "m", block_rows=10, checkpoint_rows=50, **BR)
    (files / "a.jsonl").write_text(json_lines(SMALL.X[:30], SMALL.Y[:30]))
    assert streaming.update(files / "m", files / "a.jsonl", live=True).rows == 80
    assert persist.load(files / "m").n_seen_ == 80


def test_names_that_come_later_are_learned_passed_over_or_refused(files):
    (files / "b.jsonl").write_text('{"x": {"x0": 1, "new": 2}, "y": ["is_0", "late"]}\n' * 3)
    for name in ("m", "ignoring", "refusing"):
        streaming.train(files / "a.jsonl", files / name, **BR)
    streaming.update(files / "m", files / "b.jsonl")
    model = persist.load(files / "m")
    assert model.n_features_in_ == 7
    assert "late" in model.classes_
    assert "new" in streaming.describe(files / "m")
    streaming.update(files / "ignoring", files / "b.jsonl", new_names="ignore")
    assert persist.load(files / "ignoring").n_features_in_ == 6
    message = (
        r"update: rows from 0 of 'b.jsonl' bring features that the learner does not know \(new\); name all of them"
    )
    with pytest.raises(InvalidInput, match=message):
        streaming.update(files / "refusing", files / "b.jsonl", new_names="refuse")
    assert persist.load(files / "refusing").n_seen_ == 300  # as it was


def test_a_stream_with_growth_is_resumed_to_the_bit(files, dies):
    lines = json_lines(SMALL.X[:, :4], SMALL.Y[:, :3]).splitlines(True)[:150]
    lines += json_lines(SMALL.X, SMALL.Y).splitlines(True)[150:]
    (files / "a.jsonl").write_text("".join(lines))
    settings = {"block_rows": 20, "checkpoint_rows": 60, "parameters": {"n_components": 2}}
    streaming.train(files / "a.jsonl", files / "whole", **settings)
    for after in (1, 2, 3):
        dies(after, streaming.train, files / "a.jsonl", files / "m", restart=True, **settings)
        streaming.train(files / "a.jsonl", files / "m", **settings)
        assert (files / "m").read_bytes() == (files / "whole").read_bytes()


def test_columns_are_matched_by_name_or_for_learners_without_names_by_place(files):
    streaming.train(files / "a.csv", files / "m", label_prefix="is_", **BR)
    order = [3, 1, 0, 2, 5, 4]
    text = table(SMALL.X[:, order], SMALL.Y[:, ::-1])
    for j, name in enumerate(order):
        text = text.replace(f"x{j},", f"w{name},", 1)
    (files / "b.csv").write_text(text.replace("w", "x").replace("is_0,is_1,is_2,is_3", "is_3,is_2,is_1,is_0"))
    (files / "same.csv").write_bytes((files / "a.csv").read_bytes())
    (files / "m2").write_bytes((files / "m").read_bytes())
    streaming.update(files / "m", files / "same.csv")
    streaming.update(files / "m2", files / "b.csv")
    assert persist.dumps(persist.load(files / "m")) == persist.dumps(persist.load(files / "m2"))
    plain = OnlineBinaryRelevance().fit(SMALL.X, SMALL.Y)
    plain.save(files / "plain")
    out = io.StringIO()
    (files / "x.csv").write_text(table(SMALL.X, SMALL.Y[:, :0]).replace(",\n", "\n"))
    assert streaming.predict(files / "plain", files / "x.csv", out, output_format="csv") == 300
    assert out.getvalue().startswith("0,1,2,3\n")
    wanted = plain.predict(SMALL.X)
    np.testing.assert_array_equal(np.loadtxt(io.StringIO(out.getvalue()), delimiter=",", skiprows=1), wanted)
    streaming.update(files / "plain", files / "a.csv", label_prefix="is_")
    assert persist.load(files / "plain").n_seen_ == 600
    with pytest.raises(InvalidInput, match=r"predict: rows must have the 6 features of the learner, got 10; give the"):
        streaming.predict(files / "plain", files / "a.csv", io.StringIO())


@pytest.mark.parametrize("format", ["svmlight", "xmc"])
def test_formats_without_names(files, format):
    rows = [
        ",".join(map(str, np.flatnonzero(y))) + " " + " ".join(f"{j}:{v!r}" for j, v in enumerate(x))
        for x, y in zip(SMALL.X.tolist(), SMALL.Y, strict=True)
    ]
    text = "\n".join(["300 6 4", *rows] if format == "xmc" else rows) + "\n"
    (files / "a.txt").write_text(text)
    sizes = {"n_features": 6, "n_labels": 4, "zero_based": True} if format == "svmlight" else {}
    streaming.train(files / "a.txt", files / "m", format=format, **sizes, **BR)
    out = io.StringIO()
    flags = {"zero_based": True} if format == "svmlight" else {}
    streaming.predict(files / "m", files / "a.txt", out, format=format, output_format="svmlight", **flags)
    positive = OnlineBinaryRelevance().fit(SMALL.X, SMALL.Y).predict(SMALL.X)
    assert out.getvalue().splitlines() == [",".join(map(str, np.flatnonzero(row))) for row in positive]
    OnlineBinaryRelevance().fit(SMALL.X, SMALL.Y).save(files / "plain")
    again = io.StringIO()
    streaming.predict(files / "plain", files / "a.txt", again, format=format, output_format="svmlight", **flags)
    assert again.getvalue() == out.getvalue()
    assert streaming.update(files / "plain", files / "a.txt", format=format, **flags).rows == 300


def test_missing_features_are_filled_if_that_is_asked_for_and_located_if_not(files):
    (files / "b.csv").write_text("x0,x1,is_a\n" + "1,2,1\n,3,0\n" * 3)
    with pytest.raises(
        InvalidInput, match=r"train: rows 0 to 5 of 'b.csv' \(from 0\) cannot be learned: .*NaN \(row 1, co"
    ):
        streaming.train(files / "b.csv", files / "m", label_prefix="is_", **BR)
    assert not (files / "m").exists()
    streaming.train(files / "b.csv", files / "m", label_prefix="is_", fill=0.0, **BR)
    out = io.StringIO()
    with pytest.raises(InvalidInput, match=r"predict: rows 0 to 5 \(from 0\) cannot be predicted: .*NaN"):
        streaming.predict(files / "m", files / "b.csv", out)
    assert streaming.predict(files / "m", files / "b.csv", out, fill=0.0) == 6


def test_labels_that_are_unknown_move_nothing_and_cost_nothing(files):
    rows = '{"x": {"a": 1}, "y": {"u": true, "v": null}}\n{"x": {"b": 1}, "y": {"v": true}}\n' * 30
    (files / "b.jsonl").write_text(rows)
    report = streaming.train(files / "b.jsonl", files / "m", **BR)
    X, Y = np.eye(2)[[0, 1] * 30], np.array([[1, np.nan], [np.nan, 1]])[[0, 1] * 30]
    model = OnlineBinaryRelevance()
    Y_hat = model.prequential(X, Y)
    assert report.average == pytest.approx(Hamming().loss(np.where(np.isnan(Y), Y_hat, Y), Y_hat).mean())
    np.testing.assert_array_equal(persist.load(files / "m").decision_function(X), model.decision_function(X))


def test_unknown_labels_count_as_predicted_right():
    Y, Y_hat = np.array([[1, np.nan], [np.nan, 0]]), sparse.csr_array([[0, 1], [1, 0]])
    np.testing.assert_array_equal(Hamming().loss(*_learning._comparable(Y, Y_hat)), [0.5, 0.0])


def test_sparse_rows_are_learned_as_sparse_or_as_dense_ones(files):
    X, Y = sparse.random_array((200, 50), density=0.03, rng=np.random.default_rng(0)), SMALL.Y[:200]
    rows = [
        {"x": {f"x{j}": v for j, v in enumerate(x) if v}, "y": [f"is_{k}" for k in np.flatnonzero(y)]}
        for x, y in zip(X.toarray().tolist(), Y, strict=True)
    ]
    (files / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = streaming.train(files / "b.jsonl", files / "m", **BR)
    model = OnlineBinaryRelevance()
    # in the order in which they came
    features = list(dict.fromkeys(name for row in rows for name in row["x"]))
    labels = list(dict.fromkeys(name for row in rows for name in row["y"]))
    A = X.toarray()[:, [int(name[1:]) for name in features]]
    B = Y[:, [int(name[3:]) for name in labels]]
    losses = Hamming().loss(B, model.prequential(sparse.csr_array(A), B))
    assert report.average == pytest.approx(losses.mean(), abs=1e-12)


def test_what_cannot_be_learned_is_refused(files):
    empty = files / "b.jsonl"
    empty.write_text("\n")
    with pytest.raises(InvalidInput, match=r"train: 'b.jsonl' must have rows to learn from, got none"):
        streaming.train(empty, files / "m")
    empty.write_text('{"x": {"a": 1}, "y": []}\n')
    with pytest.raises(InvalidInput, match=r"train: the first 1 rows must bring a label, got none; name labels"):
        streaming.train(empty, files / "m")
    assert streaming.train(empty, files / "m", label_names=["u", "v"]).rows == 1
    for options, message in (
        ({"learner": "Magic"}, "train: learner must be one of CSDPP, .*, got 'Magic'"),
        ({"parameters": {"magic": 1}}, "train: CSDPP has the parameters .*, got 'magic'; choose one"),
        ({"block_rows": -1}, "train: rows of a block or checkpoint must be a whole number at least 1, got -1"),
        ({"checkpoint_rows": 0}, "train: rows of a block or checkpoint must be a whole number at least 1, got 0"),
        ({"new_names": "maybe"}, "new_names must be grow, ignore or refuse, got 'maybe'"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            streaming.train(files / "a.jsonl", files / "n", **options)
    (files / "c.jsonl").write_text('{"x": {"a": 1}, "y": ["u"]}\n{"x"\n')
    with pytest.raises(DataFormatError, match=r"c.jsonl, line 2: expected a JSON object"):
        streaming.train(files / "c.jsonl", files / "n")
    with pytest.raises(MissingData, match="there is no such file"):
        streaming.update(files / "gone", files / "a.jsonl")
    OnlineBinaryRelevance().fit(SMALL.X, SMALL.Y[:, 0]).save(files / "classes")
    with pytest.raises(InvalidInput, match="must hold a model of label sets, got one of single classes"):
        streaming.update(files / "classes", files / "a.jsonl")
    persist.save(CSDPP(2), files / "odd", extra={"stream": {"rows": "many"}})
    with pytest.raises(DataFormatError, match="odd: must tell the place in its stream, and does not"):
        streaming.update(files / "odd", files / "a.jsonl")


def test_what_others_keep_in_the_file_and_costs_of_ones_own_stay(files):
    cost = CountCost(lambda tp, fp, fn, tn: (fp + fn) / (tp + fp + fn + tn), name="mine")
    persist.save(CSDPP(2, cost=cost), files / "m", extra={"note": "by hand"})
    with pytest.raises(InvalidParameter, match="pass it"):
        streaming.update(files / "m", files / "a.jsonl")
    assert streaming.update(files / "m", files / "a.jsonl", given={"cost": cost}).cost == "mine"
    assert persist.inspect(files / "m")["extra"]["note"] == "by hand"


# ---- predicting


@pytest.fixture
def model(files):
    """A learner of the small stream, in a file."""
    streaming.train(files / "a.csv", files / "m", label_prefix="is_", **BR)
    return files / "m"


def predicted(model, source, **options):
    out = io.StringIO()
    assert streaming.predict(model, source, out, **options) == 300
    return out.getvalue()


@pytest.mark.parametrize("block_rows", [1, 7, 5000])
def test_predictions_are_the_librarys_in_every_format(files, model, block_rows):
    learner = persist.load(model)
    positive, scores = learner.predict(SMALL.X), learner.decision_function(SMALL.X)
    names = learner.classes_
    rows = [json.loads(line) for line in predicted(model, files / "a.csv", block_rows=block_rows).splitlines()]
    assert rows == [{"labels": names[row > 0].tolist()} for row in positive]
    rows = [json.loads(line) for line in predicted(model, files / "a.jsonl", scores=True).splitlines()]
    assert [row["id"] for row in rows] == [str(i) for i in range(300)]
    assert [row["labels"] for row in rows] == [names[row > 0].tolist() for row in positive]
    for row, wanted in zip(rows, scores, strict=True):
        assert list(row["scores"].values()) == pytest.approx(wanted, rel=1e-5)
    text = predicted(model, files / "a.csv", output_format="csv", block_rows=block_rows)
    assert text.startswith(",".join(names) + "\n")
    np.testing.assert_array_equal(np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1), positive)
    text = predicted(model, files / "a.jsonl", output_format="csv", scores=True, block_rows=block_rows)
    found = np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1)
    np.testing.assert_array_equal(found[:, 0], range(300))
    np.testing.assert_allclose(found[:, 1:], scores, rtol=1e-5, atol=1e-9)


def test_the_labels_of_the_highest_scores(files, model):
    learner = persist.load(model)
    scores = learner.decision_function(SMALL.X)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :2]
    rows = [json.loads(line) for line in predicted(model, files / "a.csv", top=2).splitlines()]
    assert [row["labels"] for row in rows] == learner.classes_[best].tolist()
    assert [list(row["scores"]) for row in rows] == learner.classes_[best].tolist()
    text = predicted(model, files / "a.csv", top=9, output_format="svmlight")
    assert {len(line.split(",")) for line in text.splitlines()} == {4}
    for options, message in (({"top": 0}, "top must be"), ({"top": 1, "output_format": "csv"}, "top needs an output")):
        with pytest.raises(InvalidParameter, match=message):
            predicted(model, files / "a.csv", **options)


def test_a_file_of_answers_is_there_when_it_is_complete(files, model):
    assert streaming.predict(model, files / "a.csv", files / "out.csv") == 300
    assert (files / "out.csv").read_text().startswith("is_0,")
    (files / "bad.csv").write_text((files / "a.csv").read_text() + "oops\n")
    before = set(files.iterdir())
    with pytest.raises(DataFormatError, match="line 302: expected 10 values"):
        streaming.predict(model, files / "bad.csv", files / "out.csv", block_rows=10)
    assert set(files.iterdir()) == before
    assert len((files / "out.csv").read_text().splitlines()) == 301
    with pytest.raises(InvalidInput, match=r"predict: the folder of .*out.csv must be there, and is not"):
        streaming.predict(model, files / "a.csv", files / "nowhere" / "out.csv")
    with pytest.raises(InvalidParameter, match="output_format must be one of jsonl, csv, svmlight, got 'xml'"):
        streaming.predict(model, files / "a.csv", output_format="xml")
    CSDPP(2).save(files / "fresh")
    with pytest.raises(InvalidInput, match="fresh must hold a model that has learned, got one that has not"):
        streaming.predict(files / "fresh", files / "a.csv")


def test_names_that_need_quotation_marks(files):
    (files / "b.jsonl").write_text('{"id": "a,b", "x": {"p": 1}, "y": ["say \\"é\\", twice"]}\n' * 5)
    streaming.train(files / "b.jsonl", files / "m", **BR)
    out = io.StringIO()
    streaming.predict(files / "m", files / "b.jsonl", out)
    assert json.loads(out.getvalue().splitlines()[0]) == {"id": "a,b", "labels": ['say "é", twice']}
    out = io.StringIO()
    streaming.predict(files / "m", files / "b.jsonl", out, output_format="csv")
    assert out.getvalue().splitlines()[:2] == ['id,"say ""é"", twice"', '"a,b",1']


# ---- processes


CSDPP_COMMAND = (sys.executable, "-m", "csdpp")


def run(*arguments, **options):
    return subprocess.run(
        [*CSDPP_COMMAND, *map(str, arguments)], capture_output=True, timeout=300, check=False, **options
    )


def test_commands_in_a_pipe(files):
    data = (files / "a.jsonl").read_bytes()
    done = run("train", files / "m", "--components", "2", input=data)
    assert done.returncode == 0, done.stderr
    assert b"300 rows learned, 300 of this stream; f1 0." in done.stdout
    done = run("predict", files / "m", "--top", "1", "--block-rows", "1", input=data)
    assert (len(done.stdout.splitlines()), done.stderr) == (300, b"")
    assert json.loads(done.stdout.splitlines()[7])["id"] == "7"
    done = run("info", files / "m")
    assert done.stdout.startswith(
        b"CSDPP, 300 rows learned, 6 features, 4 labels\nstream      -: 300 rows, to its end\n"
    )


def test_answers_come_as_rows_come_and_nobody_minds_when_the_reader_leaves(files, model):
    command = [*CSDPP_COMMAND, "predict", str(model), "--block-rows", "1"]
    row = json_lines(SMALL.X[:1], SMALL.Y[:1]).encode()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        for _ in range(3):
            process.stdin.write(row)
            assert b'"labels"' in process.stdout.readline()
        process.stdout.close()
        for _ in range(100):
            try:
                process.stdin.write(row)
            except BrokenPipeError:
                break
            time.sleep(0.02)
        assert process.stderr.read() == b""
        process.stdin.close()
    assert process.returncode == 141
    closed = f"{sys.executable} -m csdpp info {model} {model} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", closed], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"141\n", b"")


def long_stream(path, n=6000):
    data = make_stream(n, 8, 5, rank=2, random_state=1)
    path.write_text(json_lines(data.X, data.Y))
    return ["--components", "2", "--block-rows", "10", "--checkpoint-rows", "20", "--no-progress"]


def wait_for_another_checkpoint(path, process):
    """Until the file is written anew, or the process is over."""
    before = path.stat().st_mtime_ns if path.exists() else None
    for _ in range(20_000):
        if process.poll() is not None or (path.exists() and path.stat().st_mtime_ns != before):
            return
        time.sleep(0.005)


@pytest.mark.parametrize("command", ["train", pytest.param("update", marks=pytest.mark.slow)])
def test_killed_at_random_moments_the_result_is_that_of_a_run_without_interruption(tmp_path, command):
    """SIGKILL, on files and, with train, on a pipe that is given anew from its start."""
    options = long_stream(tmp_path / "a.jsonl")
    first = tmp_path / "first.jsonl"
    first.write_text("".join((tmp_path / "a.jsonl").read_text().splitlines(True)[:30]))
    chance = random.Random(0)
    for name in ("whole", "m"):
        if command == "update":
            streaming.train(first, tmp_path / name, parameters={"n_components": 2})
    learning = options[2:] if command == "update" else options
    source = "-" if command == "train" else str(tmp_path / "a.jsonl")
    ours = [command, str(tmp_path / "m"), source, *learning, "--format", "jsonl"]
    kills = 0
    for _ in range(4):
        with (
            (tmp_path / "a.jsonl").open("rb") as pipe,
            subprocess.Popen([*CSDPP_COMMAND, *ours], stdin=pipe) as process,
        ):
            wait_for_another_checkpoint(tmp_path / "m", process)
            time.sleep(chance.random() * 0.3)
            process.kill()
        if process.returncode == 0:
            break
        kills += process.returncode == -signal.SIGKILL
    assert kills >= 2
    if process.returncode != 0:
        with (tmp_path / "a.jsonl").open("rb") as pipe:
            assert run(*ours, stdin=pipe).returncode == 0
    with (tmp_path / "a.jsonl").open("rb") as pipe:
        assert run(command, tmp_path / "whole", source, *learning, "--format", "jsonl", stdin=pipe).returncode == 0
    assert persist.inspect(tmp_path / "m")["n_seen"] == 6000 + 30 * (command == "update")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.skipif(not os.path.exists("/proc/self/wchan"), reason="needs /proc to see that a process waits")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)]
)
def test_a_signal_stops_between_blocks_with_a_checkpoint(tmp_path, number, code):
    options = long_stream(tmp_path / "a.jsonl")
    options[5] = "1000000"  # no checkpoint but upon the signal
    command = [*CSDPP_COMMAND, "train", str(tmp_path / "m"), *options]
    whole = (tmp_path / "a.jsonl").read_bytes()
    lines = whole.splitlines(True)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b"".join(lines[:1005]))
        process.stdin.flush()
        for _ in range(3000):  # it waits for more when the pipe is empty
            time.sleep(0.02)
            if os.path.exists(f"/proc/{process.pid}") and _waits(process.pid):
                break
        process.send_signal(number)
        out, err = process.communicate()
    assert process.returncode == code, err
    assert b"1,000 rows learned" in out  # five more had come of a block of ten
    assert b"stopped; the same command goes on from there" in err
    assert "not to its end" in streaming.describe(tmp_path / "m")
    assert run("train", tmp_path / "m", *options, input=whole).returncode == 0
    assert run("train", tmp_path / "whole", *options, input=whole).returncode == 0
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


def _waits(pid):
    """Whether a process (of Linux) sleeps in a read of its standard input that brings nothing, twice in a row."""
    states = set()
    for _ in range(10):
        with open(f"/proc/{pid}/stat") as file:
            states.add(file.read().rpartition(")")[2].split()[0])
        with open(f"/proc/{pid}/io") as file:
            states.add(file.readline())
        time.sleep(0.02)
    with open(f"/proc/{pid}/wchan") as file:
        return states - {"S"} != set() and len(states) == 2 and "S" in states and "pipe" in file.read()


# ---- options of commands


def test_options_become_library_calls(monkeypatch, capsys):
    made = []
    report = streaming.Report("m", 5, 3, "f1", 0.25, None)
    for name, given in (("train", report), ("update", report), ("predict", 5)):
        monkeypatch.setattr(
            streaming,
            name,
            lambda *args, _name=name, _given=given, **options: made.append((_name, args, options)) or _given,
        )
    common = {"live": False, "progress": None, "fill": None, "label_names": (), "block_rows": None, "new_names": "grow"}
    common["checkpoint_rows"] = 100_000
    assert cli.main(["train", "m"]) == 0
    plain = {"learner": "CSDPP", "parameters": {}, "restart": False, "format": "jsonl"}
    assert made.pop() == ("train", ("-", "m"), common | plain)
    assert capsys.readouterr().out == "m: 3 rows learned, 5 of this stream; f1 0.2500 before each was learned\n"
    chosen = ["--cost", "rank", "--components", "0.5", "--set", "rate=3", "--set", "basis=pbt", "--one-based-labels"]
    assert cli.main(["train", "m", "a.svm", "b.svm", *chosen, "--labels", "a, b", "--fill", "0"]) == 0
    name, args, options = made.pop()
    assert args == (["a.svm", "b.svm"], "m")
    assert options["parameters"] == {"cost": "rank", "n_components": 0.5, "rate": 3, "basis": "pbt"}
    assert (options["label_names"], options["fill"], options["zero_based_labels"]) == (["a", "b"], 0.0, False)
    assert "format" not in options
    assert cli.main(["update", "m", "a.csv", "--abandon", "--live", "--new-names", "ignore", "--no-progress"]) == 0
    changed = {"abandon": True, "live": True, "new_names": "ignore", "progress": False}
    assert made.pop() == ("update", ("m", "a.csv"), common | changed)
    assert cli.main(["predict", "m", "a.csv", "--output", "o.csv", "--scores", "--id-column", "id"]) == 0
    name, args, options = made.pop()
    assert args == ("m", "a.csv", "o.csv")
    assert (options["scores"], options["top"], options["id_column"], options["fill"]) == (True, None, "id", None)
    with pytest.raises(SystemExit) as left:
        cli.main(["train", "m", "--set", "rate"])
    assert left.value.code == 2
    assert "must be NAME=VALUE, got 'rate'" in capsys.readouterr().err


def test_errors_are_one_line(files, capsys):
    assert cli.main(["predict", str(files / "gone"), str(files / "a.csv")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    with pytest.raises(CsdppError):
        streaming.describe(files / "a.csv")
