"""A million requests, good, bad and hostile: no crash, no 5xx but the intended 503, flat memory.

    python benchmarks/service_storm.py --requests 1000000 --record

Four connections send, drawn by seed: good requests of every kind; bodies that are no JSON, of wrong types, too deep,
too large, with NaN, with names that do not exist, with hostile names; wrong types, tokens, methods and paths; heads
that end amid a line and bodies that never come. Grow is on, with limits that are reached. Prints counts by status and
the resident memory along the way, and with --record writes benchmarks/results/service_storm.json.
"""

import argparse
import asyncio
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from csdpp import __version__
from csdpp.service.tokens import new_token

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "service_storm.json"
EVIL = [
    "",
    "\u0000",
    "a" * 300,
    "'; DROP TABLE items; --",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "\u202egpj",
    "__proto__",
    "constructor",
    "%n%s",
    "𝔘𝔫𝔦",
    "e\u0301" * 50,
]
SETTINGS = """
labels = ["a", "b", "c"]
features = ["x", "y", "z"]
grow = true
max_labels = 12
max_features = 40
max_body = 20000
max_bulk_body = 100000
max_items = 50
keep_items = 20000
checkpoint_rows = 5000
request_seconds = 5.0
learner = { n_components = 2 }
"""


class Sender:
    """One connection's worth of requests; `wrong` are answers that should not be."""

    def __init__(self, port, secrets, seed):
        self.port, self.secrets, self.rng = port, secrets, random.Random(seed)
        self.statuses, self.kinds, self.wrong = Counter(), Counter(), []
        self.ids, self.connection = [], None

    # ---- making requests: method, path, headers, body

    def item(self):
        rng = self.rng
        names = rng.sample("xyz", rng.randint(0, 3))
        return {"id": f"i{rng.randrange(10**9)}", "features": {name: round(rng.uniform(-9, 9), 2) for name in names}}

    def labels(self):
        names = self.rng.sample("abc", self.rng.randint(0, 3))
        return names

    def good(self):
        rng = self.rng
        match rng.randrange(8):
            case 0 | 1:
                item = self.item()
                self.ids = [*self.ids[-50:], item["id"]]
                return "POST", "/v1/predict", {}, item | {"keep": rng.random() < 0.5}
            case 2:
                return "POST", "/v1/learn", {}, self.item() | {"labels": self.labels()}
            case 3 if self.ids:
                return "POST", "/v1/feedback", {}, {"id": rng.choice(self.ids), "labels": self.labels()}
            case 4:
                items = [self.item() | {"labels": self.labels()} for _ in range(rng.randint(1, 20))]
                return "POST", "/v1/learn", {}, {"items": items}
            case 5:
                lines = [json.dumps(self.item() | {"labels": self.labels()}) for _ in range(rng.randint(1, 20))]
                return "POST", "/v1/learn", {"content-type": "application/x-ndjson"}, "\n".join(lines)
            case 6 if self.ids:
                return "GET", f"/v1/items/{rng.choice(self.ids)}", {}, None
        paths = ["/v1/model", "/v1/metrics", "/metrics", "/healthz", "/readyz", "/v1/items?limit=5", "/"]
        return "GET", rng.choice(paths), {}, None

    def bad(self):
        rng = self.rng
        path = rng.choice(["/v1/predict", "/v1/learn", "/v1/feedback"])
        return (
            "POST",
            path,
            {},
            rng.choice(
                [
                    "",
                    "{",
                    "null",
                    "[]",
                    "1",
                    '"x"',
                    "{}",
                    '{"items": []}',
                    '{"features": {"x": NaN}}',
                    '{"features": {"x": 1e999}}',
                    '{"features": {"x": "1"}, "labels": ["a"]}',
                    '{"features": null, "labels": []}',
                    '{"features": {}, "labels": {"a": 1}}',
                    '{"features": {"x": 1e30}, "labels": []}',
                    '{"id": 5, "features": {}, "labels": []}',
                    '{"id": "a b", "features": {}}',
                    '{"features": [1, 2], "labels": ["a"]}',
                    '{"features": [], "labels": ["a"]}',
                    '{"id": "none-such", "labels": []}',
                    json.dumps({"items": [self.item() | {"labels": []}] * 60}),
                    '{"features": {}, "labels": ["a", "a"]}',
                ]
            ),
        )

    def hostile(self):
        rng = self.rng
        evil = rng.choice(EVIL)
        match rng.randrange(9):
            case 0:
                return "POST", "/v1/predict", {}, rng.choice(["[", '{"a":', '{"features":[']) * rng.choice([10, 3000])
            case 1:
                return "POST", "/v1/learn", {}, {"id": evil, "features": {evil: 1.0}, "labels": [evil]}
            case 2:
                return "POST", "/v1/learn", {}, {"features": {evil + str(rng.randrange(99)): 1.0}, "labels": ["a"]}
            case 3:
                return "POST", "/v1/learn", {}, "x" * rng.choice([19_999, 20_001, 90_000])
            case 4:
                return "POST", "/v1/learn", {}, bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
            case 5:
                kind = rng.choice(["text/plain", "application/json; charset=utf-16", "x" * 500, "multipart/form-data"])
                return "POST", "/v1/predict", {"content-type": kind}, self.item()
            case 6:
                wrong = rng.choice(["Bearer x", "Basic eDp5", "Bearer " + "y" * 2000, ""])
                return "GET", "/v1/model", {"authorization": wrong}, None
            case 7:
                path = "/" + "".join(rng.choice("ab/.%20?&=#~") for _ in range(rng.randrange(60)))
                return rng.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]), path, {}, None
        lines = rng.choice(["\n" * 500, "{\n" * 300, '{"features": {"x": 1}, "labels": ["a"]}\n[]\n' * 50])
        return "POST", "/v1/learn", {"content-type": "application/x-ndjson"}, lines

    # ---- sending

    async def open(self):
        self.connection = await asyncio.open_connection("127.0.0.1", self.port)

    def close(self):
        if self.connection is not None:
            self.connection[1].close()
        self.connection = None

    async def raw(self):
        """Bytes that are no request, or half of one."""
        rng = self.rng
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        token = self.secrets[0]
        whole = f"POST /v1/predict HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n".encode()
        writer.write(
            rng.choice(
                [
                    b"GET / HT",
                    b"\x16\x03\x01\x00\xa5",
                    b"GET / HTTP/9.9\r\n\r\n",
                    whole + b"content-length: 50\r\n\r\n{",
                    whole + b"transfer-encoding: chunked\r\n\r\nZZ\r\n",
                    whole + b"content-length: -5\r\n\r\n",
                    whole + b"content-length: 5\r\ncontent-length: 9\r\n\r\n{}{}{",
                    b"\r\n" * 50,
                    b"A" * 60_000,
                ]
            )
        )
        with suppress(TimeoutError, ConnectionError):
            await asyncio.wait_for(reader.read(4096), 0.01 if rng.random() < 0.9 else 0.2)
        writer.close()

    async def one(self):
        """Send one request; note its answer."""
        draw = self.rng.random()
        kind = "good" if draw < 0.5 else "bad" if draw < 0.75 else "hostile" if draw < 0.995 else "raw"
        self.kinds[kind] += 1
        if kind == "raw":
            await self.raw()
            return
        method, path, headers, body = getattr(self, kind)()
        if body is not None and not isinstance(body, bytes):
            body = (body if isinstance(body, str) else json.dumps(body)).encode()
        headers = {
            "host": "x",
            "authorization": f"Bearer {self.secrets[0]}",
            "content-type": "application/json",
        } | headers
        if body is not None:
            headers["content-length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        data = f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + (body or b"")
        for again in (False, True):
            try:
                status, answer, last = await self.send(data)
                break
            except (ConnectionError, asyncio.IncompleteReadError):
                self.close()  # the last answer said so, or this one is a refusal whose body nobody reads
                if again:
                    self.statuses["cut"] += 1
                    return
        self.statuses[status] += 1
        bug = status >= 500 and (status != 503 or b'"code"' not in answer)
        if bug or b"Traceback" in answer or (kind == "good" and status not in (200, 404, 409, 429, 503)):
            self.wrong.append([status, kind, data[:300].decode("latin-1"), answer[:300].decode("latin-1")])
        if last:
            self.close()

    async def send(self, data):
        if self.connection is None:
            await self.open()
        reader, writer = self.connection
        writer.write(data)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if b"content-length:" not in head:  # what is no HTTP at all
            return int(head[9:12]), await reader.read(), True
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        answer = await reader.readexactly(length)
        return int(head[9:12]), answer, b"connection: close" in head


def memory(pid):
    """Resident megabytes."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmRSS:")[1].split()[0]) / 1024


async def storm(port, pid, secrets, requests, seconds, seed):
    senders = [Sender(port, secrets, seed + i) for i in range(4)]
    left, start, marks = requests, time.monotonic(), []

    async def work(sender):
        nonlocal left
        while left > 0 and time.monotonic() - start < seconds:
            left -= 1
            await sender.one()

    async def watch():
        while True:
            marks.append([requests - left, round(memory(pid), 1)])
            print(*marks[-1], flush=True)
            await asyncio.sleep(max(5.0, seconds / 200))

    watching = asyncio.create_task(watch())
    await asyncio.gather(*map(work, senders))
    watching.cancel()
    marks.append([requests - left, round(memory(pid), 1)])
    return senders, marks, round(time.monotonic() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=7200.0, help="at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="write benchmarks/results/service_storm.json")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="service-storm-"))
    secret, token = new_token("storm", ["predict", "learn", "admin"])
    (folder / "serve.toml").write_text(f"{SETTINGS}\n{token.toml()}\n")
    command = [
        sys.executable,
        "-m",
        "csdpp",
        "serve",
        "--config",
        folder / "serve.toml",
        "--port",
        "0",
        "--folder",
        folder / "store",
    ]
    with open(folder / "errors.log", "wb") as errors:
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        )
    port = int(process.stdout.readline().decode().rpartition(":")[2])
    senders, marks, spent = asyncio.run(
        storm(port, process.pid, [secret], options.requests, options.seconds, options.seed)
    )
    process.terminate()
    code = process.wait(60)
    statuses = sum((sender.statuses for sender in senders), Counter())
    kinds = sum((sender.kinds for sender in senders), Counter())
    wrong = [one for sender in senders for one in sender.wrong]
    settled = [mark for mark in marks if mark[0] >= 0.2 * marks[-1][0]]
    logged = (folder / "errors.log").read_text()
    result = {
        "requests": sum(kinds.values()),
        "kinds": dict(kinds),
        "seed": options.seed,
        "seconds": spent,
        "statuses": {str(k): v for k, v in sorted(statuses.items(), key=str)},
        "wrong": len(wrong),
        "exit_code": code,
        "bugs_in_log": logged.count("Traceback"),
        "store_mb": round((folder / "store" / "store.sqlite3").stat().st_size / 2**20, 1),
        "memory_mb": {
            "after a fifth": settled[0][1],
            "largest since": max(mark[1] for mark in settled),
            "at the end": marks[-1][1],
        },
    }
    print(json.dumps(result, indent=1))
    for one in wrong[:5]:
        print(one)
    if options.record:
        facts = {"csdpp": __version__, "python": platform.python_version()}
        RESULTS.write_text(json.dumps(facts | result | {"memory": marks[:: max(1, len(marks) // 50)]}) + "\n")
    if wrong or code or result["bugs_in_log"]:
        sys.exit(f"see {folder}")


if __name__ == "__main__":
    main()
