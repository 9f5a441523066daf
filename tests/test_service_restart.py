"""What a restart finds: all that was acknowledged, once, and the model bit for bit; and what faults of the disk do."""

import json
import random
import sqlite3
import threading
from contextlib import closing

import numpy as np
import pytest

pytest.importorskip("fastapi")
from csdpp import CSDPP, cli, persist
from csdpp.service.learning import snapshots
from service import FRUIT, Process, live

FLAGS = ["--labels", "apple", "ripe", "--features", "red", "round", "--learner", "n_components=2"]


def fill(service, rows, seed=0, size=3):
    """Learn so many rows in requests of 1 to ``size``; what was sent, by id."""
    rng, sent = random.Random(seed), {}
    while len(sent) < rows:
        items = [
            {
                "id": f"s{seed}-{len(sent) + i}",
                "features": {"red": rng.random(), "round": rng.random()},
                "labels": rng.choice([rng.sample(["apple", "ripe"], rng.randint(0, 2)), {"apple": rng.random() < 0.5}]),
            }
            for i in range(rng.randint(1, size))
        ]
        status, said = service.post("/v1/learn", {"items": items})
        assert status == 200
        for item, learned in zip(items, said["items"], strict=True):
            sent[item["id"]] = item | {"seq": learned["seq"], "batch": said["items"][0]["seq"]}
    return sent


def reference(sent):
    """The plain learner after one partial_fit a request, in the order of the log."""
    model, rows = CSDPP(2), sorted(sent.values(), key=lambda item: item["seq"])
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    model.partial_fit(np.empty((0, 2)), np.empty((0, 2), bool), classes=np.array(["apple", "ripe"]))
    for first in sorted({row["batch"] for row in rows}):
        part = [row for row in rows if row["batch"] == first]
        X = np.array([[row["features"]["red"], row["features"]["round"]] for row in part])
        Y = np.array([[held(row["labels"], name) for name in ("apple", "ripe")] for row in part])
        model.partial_fit(X, Y)
    return model


def held(labels, name):
    """1 or 0, or NaN where an answer leaves it open."""
    return labels.get(name, np.nan) if isinstance(labels, dict) else name in labels


def newest(folder):
    return persist.dumps(persist.load(snapshots(folder)[0]))


def test_model_after_restart_is_that_of_one_run_bit_for_bit(tmp_path):
    sent = {}
    for seed, stop in enumerate((True, False, True)):
        with live(tmp_path, checkpoint_rows=20, **FRUIT) as service:
            sent |= fill(service, 50, seed)
            assert service.pipeline.learning.tally.rows == len(sent)
            if not stop:  # no last snapshot: the next start has something to replay
                service.pipeline.snapshot["seq"] = service.pipeline.learning.seq
    assert newest(tmp_path) == persist.dumps(reference(sent))


@pytest.mark.parametrize(
    "learner",
    [
        {"n_components": 2},
        {"n_components": 1, "regularization": "auto", "cost": "micro_f1"},
        {"n_components": 1, "basis": "pbt", "encoder": "label", "decode": "sample"},
        {"n_components": 2, "regressor": "gradient", "dtype": "float32", "forgetting": 0.99},
    ],
    ids=["default", "auto", "sampled", "gradient"],
)
def test_log_alone_gives_the_same_model(tmp_path, learner):
    settings = FRUIT | {"learner": learner}
    with live(tmp_path, checkpoint_rows=20, **settings) as service:
        sent = fill(service, 60)
        published, model = service.pipeline.published, service.pipeline.learning.model
        X = np.random.default_rng(0).random((9, 2)).astype(learner.get("dtype", "float64"))
        assert np.array_equal(published.scores(X), model.decision_function(X))
    before = newest(tmp_path)
    for path in snapshots(tmp_path):
        path.unlink()
    with live(tmp_path, **settings) as service:
        assert service.get("/v1/model")[1]["version"] == len(sent)
        assert service.get("/v1/metrics")[1]["refused_by_model"] == 0
        service.ask("POST", "/v1/checkpoint")
    assert newest(tmp_path) == before


def test_killed_process_has_all_that_it_acknowledged_once(tmp_path):
    """The whole of it, 200 times and at random moments, is benchmarks/service_kill.py."""
    service = Process(tmp_path, *FLAGS)
    sent = fill(service, 20)
    service.kill()
    service = Process(tmp_path, *FLAGS)
    assert service.get("/v1/model")[1]["version"] == len(sent)
    assert all(service.get(f"/v1/items/{id_}")[1]["seq"] == item["seq"] for id_, item in sent.items())
    body = {"items": [{key: item[key] for key in ("id", "features", "labels")} for item in sent.values()]}
    assert all(item["repeated"] for item in service.post("/v1/learn", body)[1]["items"])
    code, errors = service.stop()
    assert code == 0
    assert newest(tmp_path) == persist.dumps(reference(sent))
    says = [json.loads(line)["says"] for line in errors.splitlines()]
    assert any(line.startswith("replayed 20 answers after 0") for line in says)


def test_stopping_finishes_what_was_accepted(tmp_path):
    """As SIGTERM does: what was let in is stored, learned and answered; the snapshot holds it."""
    answers = []
    with live(tmp_path, **FRUIT) as service:
        go, write = threading.Event(), service.pipeline.store.write
        service.pipeline.store.write = lambda *jobs: (go.wait(20), write(*jobs))[1]
        items = [{"id": f"x{i}", "features": {"red": i / 500}, "labels": ["ripe"]} for i in range(500)]
        asking = threading.Thread(target=lambda: answers.append(service.post("/v1/learn", {"items": items})))
        asking.start()
        while not service.pipeline.waiting:
            pass
        service.stop()
        go.set()
        asking.join()
    assert [(status, said["version"]) for status, said in answers] == [(200, 500)]
    assert len(snapshots(tmp_path)) == 1
    with live(tmp_path, **FRUIT) as again:
        assert again.get("/v1/model")[1]["version"] == 500
        assert again.pipeline.snapshot["seq"] == 500


def test_second_service_in_a_folder_is_refused(tmp_path):
    with (
        live(tmp_path, **FRUIT),
        pytest.raises(Exception, match="another csdpp serve works in this folder; stop it first"),
        live(tmp_path, **FRUIT),
    ):
        pass


def test_other_learner_in_a_folder_is_refused(tmp_path):
    with live(tmp_path, **FRUIT):
        pass
    with pytest.raises(Exception, match="was begun with the learner"), live(tmp_path, **FRUIT | {"learner": {}}):
        pass


# ---- faults


def test_damaged_snapshot_falls_back_to_the_one_before(tmp_path, caplog):
    with live(tmp_path, checkpoint_rows=20, **FRUIT) as service:
        sent = fill(service, 60)
    latest, *others = snapshots(tmp_path)
    assert others
    good = persist.dumps(persist.load(latest))
    for damaged in (latest.read_bytes()[:-7], b"", latest.read_bytes().replace(b"ripe", b"rope")):
        latest.write_bytes(damaged)
        with live(tmp_path, **FRUIT) as service:
            assert service.get("/v1/model")[1]["version"] == len(sent)
            service.ask("POST", "/v1/checkpoint")
        assert "cannot be used" in caplog.text
        assert newest(tmp_path) == good
        assert list(tmp_path.glob("*.damaged"))


def test_torn_tail_of_the_log_costs_only_what_was_not_acknowledged(tmp_path):
    """A write-ahead log cut amid a transaction, as by a power cut: what was whole before it is there."""
    service = Process(tmp_path, *FLAGS)
    sent = fill(service, 20)
    service.kill()
    wal = tmp_path / "store.sqlite3-wal"
    with open(wal, "r+b") as file:
        file.seek(0, 2)
        file.write(b"\x55" * 3000)  # a page that was begun
    with live(tmp_path, **FRUIT) as again:
        assert again.get("/v1/model")[1]["version"] == len(sent)


def test_lost_tail_of_the_log_is_made_up_by_the_snapshot(tmp_path, caplog):
    with live(tmp_path, **FRUIT) as service:
        sent = fill(service, 20)
    with closing(sqlite3.connect(tmp_path / "store.sqlite3")) as db, db:
        db.execute("DELETE FROM log WHERE seq > 15")
    with live(tmp_path, **FRUIT) as service:
        assert "the log has lost its tail" in caplog.text
        assert service.get("/v1/model")[1]["version"] == len(sent)
        assert fill(service, 1, seed=9, size=1)["s9-0"]["seq"] == len(sent) + 1
    with live(tmp_path, **FRUIT) as service:
        assert service.get("/v1/model")[1]["version"] == len(sent) + 1


@pytest.mark.parametrize("damage", ["UPDATE log SET y = '[[0]]' WHERE seq = 12 AND y != '[[0]]'", "gap", "features"])
def test_damaged_log_is_refused_and_can_be_cut(tmp_path, damage, capsys):
    with live(tmp_path, **FRUIT) as service:
        for i in range(20):
            item = {"id": f"a{i}", "features": {"red": i}, "labels": ["ripe"]}
            assert service.post("/v1/learn", item)[0] == 200
        service.pipeline.snapshot["seq"] = 20  # no snapshot: all is replayed
    statement = {"gap": "DELETE FROM log WHERE seq = 12", "features": "UPDATE items SET x = x || x WHERE seq = 12"}
    with closing(sqlite3.connect(tmp_path / "store.sqlite3")) as db, db:
        db.execute(statement.get(damage, damage))
    with (
        pytest.raises(Exception, match=r"damaged at answer 12; restore a backup .*--cut-log 12"),
        live(tmp_path, **FRUIT),
    ):
        pass
    assert cli.main(["serve", "--folder", str(tmp_path), "--cut-log", "12", *FLAGS]) == 0
    assert "answers from 12 on are dropped" in capsys.readouterr().out
    with live(tmp_path, **FRUIT) as service:
        assert service.get("/v1/model")[1]["version"] == 11
        assert service.get("/v1/items/a12")[1]["state"] == "waiting"
        assert service.get("/v1/items/a10")[1]["state"] == "learned"


def test_damaged_file_is_refused(tmp_path):
    with live(tmp_path, **FRUIT) as service:
        fill(service, 20)
    path = tmp_path / "store.sqlite3"
    for damaged in (b"no database at all" * 1000, path.read_bytes()[:4096] + b"\xff" * 20_000):
        path.write_bytes(damaged)
        with (
            pytest.raises(Exception, match="the file is damaged: restore a backup of the folder"),
            live(tmp_path, **FRUIT),
        ):
            pass


def test_full_disk_refuses_and_recovers(tmp_path):
    with live(tmp_path, **FRUIT) as service:
        fill(service, 5)
        db = service.pipeline.store._db
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages}")
        item = {"id": "big", "features": {"red": 1}, "labels": ["apple"]}
        many = [item | {"id": f"{'x' * 190}{i}"} for i in range(400)]
        answer = service.http.post("/v1/learn", json={"items": many})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "full" in answer.json()["error"]["message"]
        status, said = service.get("/readyz")
        assert (status, said["error"]["code"]) == (503, "not_ready")
        assert service.get("/healthz")[0] == 200
        assert service.post("/v1/predict", {"features": {"red": 1}, "keep": False})[0] == 200
        assert service.get("/v1/model")[1]["version"] == 5 or service.get("/v1/model")[1]["version"] == 6
        db.execute(f"PRAGMA max_page_count = {pages + 10_000}")
        before = service.get("/v1/model")[1]["version"]
        assert service.post("/v1/learn", {"items": many})[1]["version"] == before + 400
        assert service.get("/readyz")[0] == 200


def test_disk_that_becomes_read_only_refuses(tmp_path):
    with live(tmp_path, **FRUIT) as service:
        fill(service, 5, size=1)
        service.pipeline.store._db.execute("PRAGMA query_only = ON")
        status, said = service.post("/v1/feedback", {"id": "s0-1", "labels": []})
        assert status == 503
        assert "readonly" in said["error"]["message"]
        service.pipeline.store._db.execute("PRAGMA query_only = OFF")
        assert service.get("/v1/model")[1]["version"] == 5


def test_folder_that_cannot_be_written_is_refused_at_the_start(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Exception, match="must be a folder to write into"), live(tmp_path / "file" / "below", **FRUIT):
        pass


def test_snapshot_that_cannot_be_written_is_told_and_the_service_goes_on(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    with live(tmp_path, **FRUIT) as service:
        fill(service, 5)
        with monkeypatch.context() as patched:
            patched.setattr("csdpp.service.pipeline.write_file", fail)
            status, said = service.ask("POST", "/v1/checkpoint")
            assert (status, said["error"]["code"]) == (503, "storage")
        assert "No space left" in service.get("/v1/model")[1]["snapshot"]["error"]
        assert fill(service, 1, seed=1)
        assert service.ask("POST", "/v1/checkpoint")[0] == 200


# ---- what is kept


def test_old_items_go_and_what_snapshots_need_stays(tmp_path):
    with live(tmp_path, keep_items=30, checkpoint_rows=20, **FRUIT) as service:
        sent = fill(service, 200, size=4)
        for _ in range(4):
            fill(service, 4, seed=len(sent), size=1)
            sent |= fill(service, 0)
            service.ask("POST", "/v1/checkpoint")
        version = service.get("/v1/model")[1]["version"]
        first = service.get("/v1/items/s0-0")
    assert first[0] == 404
    with closing(sqlite3.connect(tmp_path / "store.sqlite3")) as db:
        (items,), (rows,) = (db.execute(f"SELECT count(*) FROM {table}").fetchone() for table in ("items", "log"))
    assert 30 <= items == rows < 100
    latest, *_ = snapshots(tmp_path)
    latest.write_bytes(b"")
    with live(tmp_path, **FRUIT) as service:  # from the one before and the log
        assert service.get("/v1/model")[1]["version"] == version
