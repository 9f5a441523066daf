"""Fitting over Dask, measured: one process against two workers, shards against bytes, deaths against bits.

    python benchmarks/sharding.py --record

makes 10^7 rows of 100 features and 200 labels shard by shard, never whole in memory, fits CPLST by their sums in one
process and on two worker processes, kills a worker three times on the way, and compares the bits. Then the same 10^6
rows cut into 2 to 64 shards, and rounds of the F1 cost. --record writes docs/distributed.md and
benchmarks/results/sharding.json. --rows 1e6 is the same in a tenth of the time. Some 5 minutes on two cores.
"""

import argparse
import hashlib
import json
import os
import platform
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from scipy import sparse
from threadpoolctl import threadpool_limits

import csdpp
from csdpp import CPLST, CSDPP, OnlineBinaryRelevance, distributed
from csdpp.costs import resolve_cost
from csdpp.datasets import load_named

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "distributed.md"
RESULTS = ROOT / "benchmarks" / "results" / "sharding.json"
BEGIN, END = "<!-- figures: python benchmarks/sharding.py --record -->", "<!-- end of figures -->"
D, K, RANK, M = 100, 200, 10, 10
SETS = {"yeast": 0.5, "scene": 0.5, "emotions": 0.5, "cal500": 0.1, "enron": 0.1, "corel5k": 0.1}


def make_shard(number, rows, flag=None):
    """Features and labels of a shard, from its number; with a flag that is not yet there, the worker dies first."""
    if flag is not None and not os.path.exists(flag):
        Path(flag).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    fixed, rng = np.random.default_rng(0), np.random.default_rng([1, number])
    P, C = fixed.standard_normal((D, RANK)) / np.sqrt(D), fixed.standard_normal((RANK, K))
    threshold = np.linspace(1.0, 2.5, K) * np.linalg.norm(C, axis=0) * np.sqrt(1.25)
    X = rng.standard_normal((rows, D))
    Z = X @ P + 0.5 * rng.standard_normal((rows, RANK))
    scores = Z @ C
    return X, scores >= threshold


def collection(rows, shards, flags=None):
    """Dask arrays whose blocks are made where they are summed; X and Y of a block are made once."""
    size = rows // shards
    pairs = [dask.delayed(make_shard, nout=2)(i, size, (flags or {}).get(i)) for i in range(shards)]
    X = da.concatenate([da.from_delayed(pair[0], (size, D), float) for pair in pairs])
    Y = da.concatenate([da.from_delayed(pair[1], (size, K), bool) for pair in pairs])
    return X, Y


def bits(model):
    return hashlib.sha256(model.directions_.tobytes() + model._W.tobytes()).hexdigest()[:16]


def _spent(dask_worker=None):
    return time.process_time(), getattr(dask_worker, "transfer_outgoing_bytes_total", 0)


def timed(call, client=None):
    """What a call gives, its wall time, CPU time of all who work, and bytes that workers sent."""

    def spent():
        if client is None:
            return {"here": _spent()}
        return client.run(_spent)

    before, start = spent(), time.perf_counter()
    value = call()
    wall, after = time.perf_counter() - start, spent()
    known = [place for place in after if place in before]
    cpu = sum(after[place][0] - before[place][0] for place in known)
    sent = sum(after[place][1] - before[place][1] for place in known)
    return value, {"wall_s": wall, "cpu_s": cpu, "sent_bytes": sent}


def generating(rows, shards):
    """CPU time to make the data alone, of three shards."""
    start = time.process_time()
    for number in range(3):
        make_shard(number, rows // shards)
    return (time.process_time() - start) / (3 * (rows // shards)) * 1e6


def whole(client, rows, shards):
    """The large fit: one process, two workers, and with three deaths."""
    with dask.config.set(scheduler="synchronous"):
        alone, one = timed(lambda: distributed.fit(CPLST(M), *collection(rows, shards)))
    fitted, two = timed(lambda: distributed.fit(CPLST(M), *collection(rows, shards), client=client), client)
    with tempfile.TemporaryDirectory() as folder:
        flags = {shards // 5 * (i + 1): f"{folder}/{i}" for i in range(3)}
        start = time.perf_counter()
        harmed = distributed.fit(CPLST(M), *collection(rows, shards, flags), client=client)
        wall, deaths = time.perf_counter() - start, sum(map(os.path.exists, flags.values()))
    client.wait_for_workers(2, timeout=120)
    return {
        "rows": rows,
        "shards": shards,
        "generating_us_per_row": generating(rows, shards),
        "one_process": one | {"bits": bits(alone), "report": alone.fit_report_},
        "two_workers": two | {"bits": bits(fitted), "report": fitted.fit_report_},
        "with_deaths": {"wall_s": wall, "deaths": deaths, "bits": bits(harmed)},
    }


def reduction(client, rows):
    """The same rows in 2 to 64 shards, made beforehand: what is timed are sums and their tree."""
    found = []
    for shards in (2, 4, 8, 16, 32, 64):
        X, Y = client.persist(list(collection(rows, shards)))
        with client.as_current():
            wait([X, Y])
        fitted, spent = timed(partial(distributed.fit, CPLST(M), X, Y, client=client), client)
        report = fitted.fit_report_
        found.append(
            {"shards": shards, **spent, "moved_bytes": report["moved_bytes"], "shard_bytes": report["shard_bytes"]}
        )
        del X, Y
    return {"rows": rows, "figures": found}


def rounds(client, rows, shards):
    """CS-DPP for F1 in rounds, and the online learner row by row on some of the rows."""
    model, spent = timed(lambda: distributed.fit(CSDPP(M), *collection(rows, shards), client=client), client)
    X, Y = make_shard(0, 20_000)
    online, o_br = CSDPP(M).fit(X[:2000], Y[:2000]), OnlineBinaryRelevance().fit(X[:2000], Y[:2000])
    _, following = timed(lambda: online.partial_fit(X, Y))
    _, ridge = timed(lambda: o_br.partial_fit(X, Y))
    return {
        "rows": rows,
        **spent,
        "report": model.fit_report_,
        "online_us_per_row": following["cpu_s"] / len(X) * 1e6,
        "o_br_us_per_row": ridge["cpu_s"] / len(X) * 1e6,
    }


def real_sets(folder):
    """Rounds against passes of one machine on the real sets: losses on the rows learned, which are what both lower."""
    found = []
    for name, share in SETS.items():
        data = load_named(name, folder).scaled().permuted(0)
        X, Y = (A.toarray() if sparse.issparse(A) else A for A in (data.X, data.Y))
        size = -(-len(X) // 8)
        blocks = da.from_array(X, chunks=(size, -1)), da.from_array(Y, chunks=(size, -1))
        for cost in ("f1", "accuracy", "rank"):
            online, measure = CSDPP(share, cost=cost), resolve_cost(cost).loss
            passes = [float(measure(Y, online.partial_fit(X, Y).predict(X)).mean()) for _ in range(3)]
            model = distributed.fit(CSDPP(share, cost=cost), *blocks)
            loss = float(measure(Y, model.predict(X)).mean())
            found.append(
                {"set": name, "cost": cost, "passes": passes, "losses": model.fit_report_["losses"], "loss": loss}
            )
    return found


def tables(figures):
    """Markdown of the figures; of the real sets alone where nothing was timed."""
    lines = [*timed_tables(figures), ""] if "whole" in figures else []
    lines += [
        "The real sets, features in [0, 1], our defaults, 8 shards; losses on the rows learned:",
        "",
        "| set | cost | one machine: first, second, third pass | rounds | the model |",
        "|---|---|---|---|---|",
    ]
    for row in figures["real_sets"]:
        passes, losses = (", ".join(f"{loss:.3f}" for loss in row[name]) for name in ("passes", "losses"))
        lines.append(f"| {row['set']} | {row['cost']} | {passes} | {losses} | {row['loss']:.3f} |")
    return "\n".join(lines)


def timed_tables(figures):
    """Lines of what depends on the machine."""
    big, cut, turns = figures["whole"], figures["reduction"], figures["rounds"]
    n, one, two, harmed = big["rows"], big["one_process"], big["two_workers"], big["with_deaths"]
    peak = max(two["report"]["peak_memory"].values()) / 1e6
    same = "the same" if len({one["bits"], two["bits"], harmed["bits"]}) == 1 else "NOT the same"
    lines = [
        f"{n:,} rows, d = {D}, K = {K}, CPLST with M = {M}, {big['shards']} shards made where they are summed "
        f"({n * D * 8 / 1e9:.0f} GB of features, never whole in memory):",
        "",
        "| | one process | two workers | two workers, three of them killed |",
        "|---|---|---|---|",
        f"| wall time, s | {one['wall_s']:.1f} | {two['wall_s']:.1f} | {harmed['wall_s']:.1f} |",
        f"| time a row, µs | {one['wall_s'] / n * 1e6:.2f} | {two['wall_s'] / n * 1e6:.2f} | "
        f"{harmed['wall_s'] / n * 1e6:.2f} |",
        f"| CPU time a row, µs | {one['cpu_s'] / n * 1e6:.2f} | {two['cpu_s'] / n * 1e6:.2f} | |",
        f"| of it making the rows, µs | {big['generating_us_per_row']:.2f} | {big['generating_us_per_row']:.2f} | |",
        f"| speed-up | 1 | {one['wall_s'] / two['wall_s']:.2f} | {one['wall_s'] / harmed['wall_s']:.2f} |",
        f"| bytes sent between workers | 0 | {two['sent_bytes'] / 1e6:.1f} MB | |",
        f"| bytes moved, at most (`fit_report_`) | | {two['report']['moved_bytes'] / 1e6:.1f} MB | |",
        f"| most memory of a worker | | {peak:.0f} MB | |",
        f"| bits of the model | {one['bits']} | {two['bits']} | {harmed['bits']} |",
        "",
        "Bytes sent between workers include blocks of rows that Dask gave to a worker that had nothing to do. "
        f"The bits are {same}. The same sums of {cut['rows']:,} rows that lie on the workers already, by the number of "
        "shards:",
        "",
        "| shards | wall time, s | CPU time, s | bytes sent between workers, MB | moved at most, MB |",
        "|---|---|---|---|---|",
    ]
    for row in cut["figures"]:
        lines.append(
            f"| {row['shards']} | {row['wall_s']:.2f} | {row['cpu_s']:.2f} | {row['sent_bytes'] / 1e6:.1f} | "
            f"{row['moved_bytes'] / 1e6:.1f} |"
        )
    report = turns["report"]
    losses = ", ".join(f"{loss:.4f}" for loss in report["losses"])
    each = turns["cpu_s"] / turns["rows"] / report["passes"] * 1e6
    lines += [
        "",
        f"Rounds of the F1 cost (CS-DPP, M = {M}), {turns['rows']:,} rows: {report['passes']} passes, {each:.1f} µs of "
        f"CPU a row and pass, losses {losses}. The online learner takes {turns['online_us_per_row']:.1f} µs a row, "
        f"O-BR {turns['o_br_us_per_row']:.1f} µs.",
    ]
    return lines


def timings(rows):
    """All that takes a cluster."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs="CRITICAL") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        distributed.fit(CSDPP(M), *collection(2000, 2), client=client)  # everything is imported and compiled
        distributed.fit(CSDPP(M), *collection(2000, 2))
        return {
            "whole": whole(client, rows, 80),
            "reduction": reduction(client, rows // 10),
            "rounds": rounds(client, rows // 10, 16),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="write docs/distributed.md and the results")
    parser.add_argument("--losses", action="store_true", help="the losses on the real sets alone: nothing is timed")
    parser.add_argument("--rows", type=float, default=1e7, help="of the large fit (default: %(default)g)")
    options = parser.parse_args()
    rows = int(options.rows)
    # A nanny that takes longer than 15 s to start a worker anew, on a busy machine, would be given up.
    dask.config.set({"distributed.logging.distributed": "critical", "distributed.deploy.lost-worker-timeout": "10m"})
    sets = os.environ.get("CSDPP_DATA", ROOT / "../shared/data")
    with threadpool_limits(1):
        figures = {} if options.losses else timings(rows)
        figures["real_sets"] = real_sets(sets)
    text = tables(figures)
    print(text)
    if options.record:
        facts = {
            "version": csdpp.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "dask": dask.__version__,
            "cores": os.cpu_count(),
        }
        RESULTS.write_text(json.dumps(facts | figures, indent=1) + "\n", encoding="utf-8")
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
