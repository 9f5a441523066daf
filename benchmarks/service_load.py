"""How fast the service is beside Vowpal Wabbit's daemon and a plain FastAPI service with river, in one run.

    python benchmarks/service_load.py --vw PYTHON --record

d = 100 named features, K = 14 labels; PYTHON has vowpalwabbit (`make bench-env`). One process a service, one process
that asks, loopback. Our service commits every item and answer to the disk before it acknowledges; the other two keep
everything in memory. Prints a table, and with --record writes it into docs/service.md and
benchmarks/results/service_load.json.

VW's daemon answers one connection at a time (children share no model), so that all goes over one connection to it.
"""

import argparse
import asyncio
import json
import os
import platform
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from csdpp import __version__
from csdpp.bench.machine import processor

ROOT = Path(__file__).resolve().parents[1]
PAGE, RESULTS = ROOT / "docs" / "service.md", ROOT / "benchmarks" / "results" / "service_load.json"
BEGIN, END = "<!-- load: python benchmarks/service_load.py --record -->", "<!-- end of load -->"
D, K, BATCH, RATE, CONNECTIONS = 100, 14, 100, 500, 16
FEATURES, LABELS = [f"feature-{i}" for i in range(D)], [f"label-{i}" for i in range(K)]


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, D)).round(4)
    scores = X @ rng.standard_normal((D, 4)) @ rng.standard_normal((4, K))
    return X, scores > np.quantile(scores, 0.8, axis=0)


X, Y = rows(1000)


# ---- the services: how each is started, and the bytes of its requests


def _children(pid):
    return map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


class Service:
    """A process, and ready requests for it: `one`, `bulk` and `ask` are lists of bytes."""

    connections = CONNECTIONS
    pause = 0.0

    def command(self, port):
        raise NotImplementedError

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        self.process = subprocess.Popen(
            self.command(self.port), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(1200):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                time.sleep(1.0)
                return self
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the service did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)

    def cpu(self):
        """Seconds of CPU so far: what a figure costs, however busy the machine is otherwise."""
        pids = [self.process.pid, *_children(self.process.pid)]
        fields = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
        return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")

    def memory(self):
        """Resident megabytes."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1024


def http(path, body):
    data = json.dumps(body, separators=(",", ":")).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n"
    )
    return head.encode() + b"\r\n" + data


class Csdpp(Service):
    name = "csdpp serve"

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("CSDPP_BENCH_DISK"))
        features = [dict(zip(FEATURES, x, strict=True)) for x in X.tolist()]
        items = [
            {"features": x, "labels": [name for name, holds in zip(LABELS, y, strict=True) if holds]}
            for x, y in zip(features, Y, strict=True)
        ]
        self.one = [http("/v1/learn", item) for item in items]
        self.bulk = [http("/v1/learn", {"items": items[i : i + BATCH]}) for i in range(0, len(items), BATCH)]
        self.ask = [http("/v1/predict", {"features": x}) for x in features]

    def command(self, port):
        settings = ["--features", *FEATURES, "--labels", *LABELS, "--learner", "n_components=4", "--port", str(port)]
        settings += ["--head-seconds", "60"]
        return [sys.executable, "-m", "csdpp", "serve", "--folder", self.folder.name, *settings]


class CsdppUnkept(Csdpp):
    name = "csdpp serve, predictions not kept"

    def __init__(self):
        super().__init__()
        features = [dict(zip(FEATURES, x, strict=True)) for x in X.tolist()]
        self.ask = [http("/v1/predict", {"features": x, "keep": False}) for x in features]


class River(Service):
    name = "FastAPI + river, in memory"

    def __init__(self):
        features = [dict(zip(FEATURES, x, strict=True)) for x in X.tolist()]
        items = [
            {"features": x, "labels": dict(zip(LABELS, y, strict=True))}
            for x, y in zip(features, Y.tolist(), strict=True)
        ]
        self.one = [http("/learn", {"items": [item]}) for item in items]
        self.bulk = [http("/learn", {"items": items[i : i + BATCH]}) for i in range(0, len(items), BATCH)]
        self.ask = [http("/predict", {"features": x}) for x in features]

    def command(self, port):
        return [sys.executable, str(ROOT / "benchmarks" / "peers" / "river_service.py"), str(port)]


class Wabbit(Service):
    name = "Vowpal Wabbit's daemon, in memory"
    connections = 1

    def __init__(self, python):
        self.python = python
        said = [" ".join(f"{name}:{value}" for name, value in zip(FEATURES, x, strict=True)) for x in X.tolist()]
        true = [",".join(map(str, np.flatnonzero(y))) for y in Y]
        self.one = [f"{y} | {x}\n".encode() for x, y in zip(said, true, strict=True)]
        self.bulk = [b"".join(self.one[i : i + BATCH]) for i in range(0, len(X), BATCH)]
        self.ask = [f" | {x}\n".encode() for x in said]

    def command(self, port):
        options = f"--daemon --foreground --num_children 1 --port {port} --multilabel_oaa {K} --quiet -b 20"
        run = "import sys, vowpalwabbit; vowpalwabbit.Workspace(arg_list=sys.argv[1:]).run_parser()"
        return [self.python, "-c", run, *options.split()]


# ---- asking


class Line:
    """A connection: send a request, read its whole answer."""

    def __init__(self, service):
        self.service = service
        self.wabbit = isinstance(service, Wabbit)

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.service.port)
        return self

    async def send(self, data):
        self.writer.write(data)
        if self.wabbit:
            for _ in range(data.count(b"\n")):
                if not await self.reader.readline():
                    raise RuntimeError("the daemon hung up")
            return
        head = await self.reader.readuntil(b"\r\n\r\n")
        status = head[9:12]
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        body = await self.reader.readexactly(length)
        if status != b"200":
            raise RuntimeError(f"{status!r}: {body[:200]!r}")

    def close(self):
        self.writer.close()


async def saturate(lines, requests, until, rate=None):
    """As many requests as come back, over all lines; seconds of each. ``rate``: no more than so many a second."""
    spent, sent = [], 0
    start = time.perf_counter()

    async def work(line):
        nonlocal sent
        while time.perf_counter() < until:
            mine = sent
            sent += 1
            if rate:
                await asyncio.sleep(max(0.0, start + mine / rate - time.perf_counter()))
            began = time.perf_counter()
            await line.send(requests[mine % len(requests)])
            spent.append(time.perf_counter() - began)

    await asyncio.gather(*(work(line) for line in lines))
    return spent, time.perf_counter() - start


async def at_rate(lines, requests, until, rate):
    """Requests at fixed moments, whatever comes back when; seconds of each from the moment at which it was due."""
    free, spent, tasks = asyncio.Queue(), [], []
    for line in lines:
        free.put_nowait(line)
    start = time.perf_counter()

    async def one(due, data):
        line = await free.get()
        await line.send(data)
        spent.append(time.perf_counter() - due)
        free.put_nowait(line)

    number = 0
    while (due := start + number / rate) < until:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(due, requests[number % len(requests)])))
        number += 1
    await asyncio.gather(*tasks)
    return spent


async def opened(service, n):
    return [await Line(service).open() for _ in range(n)]


def percentiles(spent):
    p50, p99 = np.percentile(spent, [50, 99])
    return {"p50_ms": round(1e3 * p50, 2), "p99_ms": round(1e3 * p99, 2), "requests": len(spent)}


async def measure(service, seconds):
    """All figures of a service."""
    shared = service.connections == 1
    lines = await opened(service, 1 if shared else CONNECTIONS)
    out = {}
    await saturate(lines, service.one, time.perf_counter() + 1.0)
    before = service.cpu()
    spent, wall = await saturate(lines[:4], service.bulk, time.perf_counter() + seconds)
    out["CPU us a row, in batches"] = round(1e6 * (service.cpu() - before) / (BATCH * len(spent)))
    out["learned in batches of 100, a second"] = round(BATCH * len(spent) / wall)
    before = service.cpu()
    spent, wall = await saturate(lines, service.one, time.perf_counter() + seconds)
    out["CPU us a row, one by one"] = round(1e6 * (service.cpu() - before) / len(spent))
    out["learned one by one, a second"] = round(len(spent) / wall)
    out["learned one by one"] = percentiles(spent)
    asking = lines if shared else await opened(service, CONNECTIONS)
    before = service.cpu()
    out["predict, idle"] = percentiles(await at_rate(asking, service.ask, time.perf_counter() + seconds, RATE))
    out["CPU us a prediction"] = round(1e6 * (service.cpu() - before) / out["predict, idle"]["requests"])
    for name, requests, rate, n in (
        ("predict, 250 learned a second", service.one, 250, 8),
        ("predict, learning all it can", service.bulk, None, 4),
    ):
        if shared:
            continue  # one connection at a time: nobody else could learn
        until = time.perf_counter() + seconds
        learning = asyncio.create_task(saturate(lines[:n], requests, until, rate))
        out[name] = percentiles(await at_rate(asking, service.ask, until, RATE))
        spent, wall = await learning
        out[name]["learned a second"] = round(len(spent) * (BATCH if requests is service.bulk else 1) / wall)
    out["memory_mb"] = round(service.memory())
    for line in {*lines, *asking}:
        line.close()
    return out


def fsync_ms():
    """Median milliseconds of a commit of a kilobyte: what the disk allows."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("CSDPP_BENCH_DISK")) as folder:
        db = sqlite3.connect(f"{folder}/x", isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE t (x BLOB)")
        spent = []
        for _ in range(200):
            start = time.perf_counter()
            db.execute("INSERT INTO t VALUES (?)", (bytes(1000),))
            spent.append(time.perf_counter() - start)
        db.close()
    return {
        "commit_p50_ms": round(1e3 * np.median(spent), 2),
        "commit_p99_ms": round(1e3 * np.percentile(spent, 99), 2),
    }


def circumstances(facts):
    """What the figures depend on."""
    load = facts["load_average"][1]
    busy = ", so that seconds say little and CPU says more" if load > 4 else ""
    return (
        f"A commit took {facts['commit_p50_ms']} ms, one in a hundred {facts['commit_p99_ms']} ms; the load average of "
        f"the {facts['cores']} cores was {load:.1f}{busy}."
    )


def markdown(results):
    figures = ["learned in batches of 100, a second", "learned one by one, a second"]
    figures += ["CPU us a row, in batches", "CPU us a row, one by one", "CPU us a prediction"]
    latencies = ["predict, idle", "predict, 250 learned a second", "predict, learning all it can"]
    lines = ["| | " + " | ".join(results) + " |", "|---|" + "---|" * len(results)]
    for name in figures:
        lines.append(f"| {name} | " + " | ".join(f"{r[name]:,}" for r in results.values()) + " |")
    for name in latencies:
        cells = [f"{r[name]['p50_ms']:.1f}, {r[name]['p99_ms']:.1f}" if name in r else "–" for r in results.values()]
        lines.append(f"| {name}: p50, p99 in ms | " + " | ".join(cells) + " |")
    name = latencies[-1]
    cells = [f"{r[name]['learned a second']:,}" if name in r else "–" for r in results.values()]
    lines.append("| rows learned a second meanwhile | " + " | ".join(cells) + " |")
    lines.append(
        "| resident memory afterwards, MB | " + " | ".join(f"{r['memory_mb']:,}" for r in results.values()) + " |"
    )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vw", metavar="PYTHON", help="an interpreter with vowpalwabbit")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each figure")
    parser.add_argument("--record", action="store_true", help="write the page and benchmarks/results")
    options = parser.parse_args()
    services = [Csdpp(), CsdppUnkept(), River()] + ([Wabbit(options.vw)] if options.vw else [])
    disk, results = fsync_ms(), {}
    print(disk, flush=True)
    for service in services:
        with service:
            results[service.name] = asyncio.run(measure(service, options.seconds))
        print(service.name, json.dumps(results[service.name]), flush=True)
    print(markdown(results))
    if options.record:
        facts = {"csdpp": __version__, "python": platform.python_version(), "processor": processor(), **disk}
        facts |= {"cores": os.cpu_count(), "load_average": os.getloadavg()}
        RESULTS.write_text(json.dumps(facts | {"results": results}, indent=1) + "\n")
        before, rest = PAGE.read_text().split(BEGIN)
        text = f"{markdown(results)}\n\n{circumstances(facts)}"
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
