"""kill -9 in mid-traffic, 200 times: nothing acknowledged is lost or learned twice, and the model is the same bits.

    python benchmarks/service_kill.py --record

One folder lives through all cycles. In each, a service is started on it, four clients predict, answer and learn (one by
one, in bulk and as NDJSON, with new labels and features, some requests sent a second time), and after a random time the
process is killed. The next start is held against what the clients know:

* lost: what was acknowledged, and is not in the store at its place;
* doubled: an item that the log has twice, or a place of the log that is missing;
* torn: a request of which only a part is there;
* unequal: the model right after the start, as bytes, against a plain CSDPP that was never killed and learned what the
  clients sent, request by request, in the order of the log.

Every fifth service is killed while it starts. The clients' randomness and the moments are those of the seeds; which
instruction a kill hits is the machine's choice. The services are forked from a process that has everything imported.
"""

import argparse
import hashlib
import json
import os
import platform
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import numpy as np

from csdpp import CSDPP, __version__, persist
from csdpp.service import pipeline as pipelines
from csdpp.service import server
from csdpp.service.bulk import LINES
from csdpp.service.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "service_kill.json"
LABELS, FEATURES = [f"label-{i}" for i in range(6)], [f"feature-{i}" for i in range(8)]
LEARNER = {"n_components": 3, "cost": "f1"}
LIMITS = {"checkpoint_rows": 400, "checkpoint_seconds": 0.3, "grow": True}
JSON, NDJSON = "application/json", "application/x-ndjson"


def digest(model):
    return hashlib.sha256(persist.dumps(model)).hexdigest()


def held(labels, name):
    """1 or 0, or NaN where an answer leaves it open."""
    return labels.get(name, np.nan) if isinstance(labels, dict) else name in labels


class Service:
    """A forked service; ``facts`` are those of its model right after the start."""

    def __init__(self, folder):
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(folder, write)
        os.close(write)
        self.pipe = os.fdopen(read)

    def _run(self, folder, write):
        """The child: tells its model and its port, serves, and never comes back."""
        try:
            out = os.fdopen(write, "w", buffering=1)
            sys.stdout = out
            sys.stderr = open(folder.parent / "stderr.log", "a")  # noqa: SIM115
            opened = pipelines.Pipeline.open

            def tell(pipeline):
                opened(pipeline)
                model = pipeline.learning.model
                print(json.dumps([pipeline.learning.seq, None if model is None else digest(model)]))

            pipelines.Pipeline.open = tell
            given = {"folder": str(folder), "port": 0, "learner": LEARNER, "labels": LABELS, "features": FEATURES}
            server.run(Settings.of(given | LIMITS))
        finally:
            os._exit(3)

    def wait(self):
        """Until it serves."""
        self.facts = json.loads(self.pipe.readline())
        self.port = int(self.pipe.readline().rpartition(":")[2])

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.pipe.close()


class Client(threading.Thread):
    """Sends until the service dies; notes what it sent before sending, and what was acknowledged."""

    def __init__(self, port, seed, sent):
        super().__init__()
        self.http = HTTPConnection("127.0.0.1", port, timeout=10)
        self.rng, self.sent, self.seed = random.Random(seed), sent, seed
        self.requests, self.acknowledged, self.kept, self.wrong = [], {}, [], []
        self.made = 0

    def run(self):
        try:
            while True:
                self.rng.choice((self.predict_and_answer, self.learn_one, self.learn_many, self.learn_lines))()
        except (OSError, HTTPException):
            pass  # killed

    def post(self, path, body, kind=JSON):
        self.http.request("POST", path, body, {"content-type": kind})
        answer = self.http.getresponse()
        text = answer.read().decode()
        if answer.status != 200:
            self.wrong.append(f"{answer.status} {text[:200]}")
        return answer.status, text

    def item(self):
        rng = self.rng
        self.made += 1
        names = rng.sample(FEATURES, rng.randint(1, len(FEATURES)))
        labels = rng.sample(LABELS, rng.randint(0, 3))
        if rng.random() < 0.002:
            names.append(f"feature-{rng.randint(8, 20)}")
        if rng.random() < 0.002:
            labels.append(f"label-{rng.randint(6, 12)}")
        if rng.random() < 0.1:  # only some are known
            labels = {name: rng.random() < 0.5 for name in labels}
        return {
            "id": f"c{self.seed}-{self.made}",
            "features": {name: round(rng.uniform(-1, 1), 3) for name in names},
            "labels": labels,
        }

    def note(self, items):
        """One request, one batch."""
        self.requests.append([item["id"] for item in items])
        for item in items:
            self.sent[item["id"]] = item

    def acknowledge(self, learned):
        self.acknowledged[learned["id"]] = learned["seq"]

    def learn_one(self):
        item = self.item()
        self.note([item])
        for _ in range(1 + (self.rng.random() < 0.1)):  # some are sent twice
            status, text = self.post("/v1/learn", json.dumps(item))
            if status == 200:
                self.acknowledge(json.loads(text))

    def learn_many(self):
        items = [self.item() for _ in range(self.rng.randint(2, 100))]
        self.note(items)
        status, text = self.post("/v1/learn", json.dumps({"items": items}))
        if status == 200:
            for learned in json.loads(text)["items"]:
                self.acknowledge(learned)

    def learn_lines(self):
        items = [self.item() for _ in range(self.rng.randint(2, 400))]
        for start in range(0, len(items), LINES):
            self.note(items[start : start + LINES])
        status, text = self.post("/v1/learn", "\n".join(map(json.dumps, items)), NDJSON)
        if status == 200:
            for line in text.splitlines():
                self.acknowledge(json.loads(line))

    def predict_and_answer(self):
        item = self.item()
        asked = {"id": item["id"], "features": item["features"]}
        status, _ = self.post("/v1/predict", json.dumps(asked))
        if status == 200:
            self.kept.append(item["id"])
        if status == 200 and self.rng.random() < 0.8:
            self.note([item])
            status, text = self.post("/v1/feedback", json.dumps({"id": item["id"], "labels": item["labels"]}))
            if status == 200:
                self.acknowledge(json.loads(text))


class Reference:
    """A learner that was never killed, and what has been found so far."""

    def __init__(self):
        self.model, self.seq, self.known = None, 0, set()
        self.lost = self.doubled = self.torn = 0

    def take(self, db, clients, sent):
        """Hold the log against what was sent and acknowledged, and learn what is new in it."""
        rows = db.execute(
            "SELECT log.seq, batch, d, K, items.id FROM log JOIN items ON items.n = log.item WHERE log.seq > ? "
            "ORDER BY log.seq",
            (self.seq,),
        ).fetchall()
        names = {kind: [n for (n,) in db.execute("SELECT name FROM names WHERE kind = ? ORDER BY place", (kind,))]
                 for kind in ("feature", "label")}  # fmt: skip
        places = {id_: seq for seq, *_, id_ in rows}
        requests = {request[0]: request for client in clients for request in client.requests}
        self.doubled += len(rows) - len(places) + len(self.known & places.keys())
        self.doubled += sum(row[0] != self.seq + 1 + i for i, row in enumerate(rows))
        for client in clients:
            self.lost += sum(places.get(id_) != seq for id_, seq in client.acknowledged.items())
            marks = [(id_,) for id_ in client.kept]
            self.lost += sum(not db.execute("SELECT 1 FROM items WHERE id = ?", mark).fetchone() for mark in marks)
        for batch in sorted({row[1] for row in rows}):
            part = [row for row in rows if row[1] == batch]
            ids = [row[4] for row in part]
            self.torn += requests.get(ids[0]) != ids
            self.learn([sent[id_] for id_ in ids], *part[0][2:4], names)
        self.seq += len(rows)
        self.known |= places.keys()
        return len(rows)

    def learn(self, items, d, K, names):
        if self.model is None:
            self.model = CSDPP(**LEARNER)
            self.model.partial_fit(np.empty((0, d)), np.empty((0, K), bool), np.array(names["label"][:K]))
        if d > self.model.n_features_in_:
            self.model.add_features(d - self.model.n_features_in_)
        if len(self.model.classes_) < K:
            self.model.add_labels(names["label"][len(self.model.classes_) : K])
        features, labels = names["feature"][:d], names["label"][:K]
        X = np.array([[item["features"].get(name, 0.0) for name in features] for item in items])
        Y = np.array([[held(item["labels"], name) for name in labels] for item in items], float)
        Y = Y if np.isnan(Y).any() else Y.astype(bool)
        self.model.partial_fit(X, Y)


def cycle(number, seed, folder, reference):
    """Start, compare, traffic, kill. What the next start has to be held against."""
    rng = random.Random(seed)
    if number % 5 == 4:
        starting = Service(folder)
        time.sleep(rng.uniform(0.0, 0.3))
        starting.kill()
    service = Service(folder)
    service.wait()
    return service, rng


def run(cycles, first_seed, folder):
    reference, clients, sent = Reference(), [], {}
    unequal = refused = 0
    rows = []
    started = time.time()
    for number in range(cycles + 1):  # the last start only compares
        service, rng = cycle(number, first_seed + number, folder, reference)
        with closing(sqlite3.connect(folder / "store.sqlite3")) as db:
            new = reference.take(db, clients, sent)
        seq, bits = service.facts
        same = seq == reference.seq and bits == (None if reference.model is None else digest(reference.model))
        unequal += not same
        refused += sum(len(client.wrong) for client in clients)
        rows.append(new)
        sent.clear()
        clients = []
        if number < cycles:
            clients = [Client(service.port, 1000 * (first_seed + number) + i, sent) for i in range(4)]
            for client in clients:
                client.start()
            time.sleep(rng.uniform(0.02, 1.2))
        service.kill()
        for client in clients:
            client.join()
        if number % 10 == 0:
            print(f"{number}: {reference.seq} answers, lost {reference.lost}, doubled {reference.doubled}, "
                  f"torn {reference.torn}, unequal {unequal}", flush=True)  # fmt: skip
    return {
        "kills": cycles + cycles // 5,
        "cycles": cycles,
        "seeds": [first_seed, first_seed + cycles - 1],
        "answers": reference.seq,
        "labels": len(reference.model.classes_),
        "features": int(reference.model.n_features_in_),
        "lost": reference.lost,
        "doubled": reference.doubled,
        "torn": reference.torn,
        "unequal": unequal,
        "refused": refused,
        "seconds": round(time.time() - started),
        "answers_per_cycle": rows[1:],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the first cycle; the next has the next")
    parser.add_argument("--record", action="store_true", help="write benchmarks/results/service_kill.json")
    options = parser.parse_args()
    server._warm_up(Settings.of({"learner": LEARNER}))  # compile before the first fork
    folder = Path(tempfile.mkdtemp(prefix="service-kill-")) / "store"
    result = run(options.cycles, options.seed, folder)
    errors = (folder.parent / "stderr.log").read_text()
    result["bugs"] = errors.count("Traceback")
    facts = {"csdpp": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    print(json.dumps({key: value for key, value in result.items() if key != "answers_per_cycle"}, indent=1))
    if options.record:
        RESULTS.write_text(json.dumps(facts | result) + "\n")
    bad = [key for key in ("lost", "doubled", "torn", "unequal", "refused", "bugs") if result[key]]
    if bad:
        sys.exit(f"{', '.join(bad)}: see {folder.parent}")
    shutil.rmtree(folder.parent)


if __name__ == "__main__":
    main()
