"""Toward internet scale: what a row costs on the sketched path, measured on a small simulation, and what follows.

    python benchmarks/scale.py --record

measures CPU time a row and the size of the sums for 10^4 to 10^6 labels, what a sketch loses, and the time to solve;
--record writes docs/scale.md and benchmarks/results/scale.json. Some 3 minutes on one core, 6 GB of memory.
"""

import argparse
import json
import os
import platform
import time
import warnings
from pathlib import Path

import dask.array as da
import numpy as np
from dask import delayed
from scipy import sparse
from threadpoolctl import threadpool_limits

import csdpp
from csdpp import PLST, distributed
from csdpp.costs import F1
from csdpp.distributed._learn import sketch_rows
from csdpp.distributed._sums import Pass, Rule, collect, total
from csdpp.merge import put_ridge
from csdpp.regressors import OnlineRidge

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "scale.md"
RESULTS = ROOT / "benchmarks" / "results" / "scale.json"
BEGIN, END = "<!-- figures: python benchmarks/scale.py --record -->", "<!-- end of figures -->"
D, NNZ, LABELS = 1000, 50, 5  # features, those of a row that are not 0, labels of a row
M = 50
ROWS, TARGET_ROWS, TARGET_K, TARGET_SHARDS, TARGET_SAMPLE = 4096, 10**10, 10**6, 10**5, 10**8


def make_rows(n, d, K, seed, topics=60):
    """Sparse rows of hidden topics: each has features and labels of its own, their frequencies fall like 1 / rank."""
    rng = np.random.default_rng(seed)

    def ranks(size, shape):
        return (np.exp(rng.random(shape) * np.log(size + 1)) - 1).astype(int).clip(0, size - 1)

    topic = ranks(topics, (n, 1))

    def draw(size, each):
        own, shared = topic * (size // topics) + ranks(size // topics, (n, each)), ranks(size, (n, each))
        columns = np.where(rng.random((n, each)) < 0.2, shared, own)
        return sparse.csr_array((np.ones(n * each), (np.repeat(np.arange(n), each), columns.ravel())), (n, size))

    X, Y = draw(d, NNZ), draw(K, LABELS)
    X.sum_duplicates(), Y.sum_duplicates()
    Y.data[:] = 1.0
    return X, Y.astype(bool)


def spent(call):
    start = time.process_time()
    value = call()
    return value, time.process_time() - start


def a_row():
    """CPU time a row of the two passes, of prediction, and what is moved, by K."""
    found = []
    for K in (10**4, 10**5, 10**6):
        X, Y = make_rows(ROWS, D, K, 1)
        size = sketch_rows("auto", M, K)
        _, moments = spent(lambda X=X, Y=Y, K=K: collect(Pass(True, False, False), [(X, Y)], D, K))
        job = Pass(True, False, False, sketch=size)
        first, both = spent(lambda job=job, X=X, Y=Y, K=K: collect(job, [(X, Y)], D, K))
        P = np.linalg.qr(first.sketch.S[:M].T)[0].T.copy()
        job = Pass(False, True, False, code=P)
        second, codes = spent(lambda job=job, X=X, Y=Y, K=K: collect(job, [(X, Y)], D, K))
        _, joining = spent(lambda first=first: total([first, first]))
        rule = Rule(np.zeros((D + 1, M)), P, np.zeros(K), np.ones((1, M)), 0, False, None, 0, np.zeros((4, 0)))
        one = sparse.csr_array(np.hstack([X[:64].toarray(), np.ones((64, 1))]))
        _, predicting = spent(lambda rule=rule, one=one: rule.predict(rule.codes(one), 0))
        found.append(
            {
                "K": K,
                "sketch_rows": size,
                "moments_us": moments / ROWS * 1e6,
                "sketch_us": (both - moments) / ROWS * 1e6,
                "codes_us": codes / ROWS * 1e6,
                "predict_us": predicting / 64 * 1e6,
                "join_s": joining,
                "first_bytes": first.nbytes,
                "second_bytes": second.nbytes,
                "model_bytes": 8 * ((D + 1) ** 2 + (D + 1) * M + M * K + K),
            }
        )
        print(found[-1], flush=True)
    return found


def solving():
    """Seconds to solve for W and the root of A^-1, by d."""
    found = []
    for d in (500, 1000, 2000):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((2 * d, d))
        ridge = OnlineRidge(d, M, regularization=1.0, forgetting=1.0, dtype=np.float64)
        A, B = X.T @ X, rng.standard_normal((d, M))
        _, seconds = spent(lambda ridge=ridge, A=A, B=B: put_ridge(ridge, A, B))
        found.append({"d": d, "s": seconds})
    return found


def losing():
    """K = 2,000, where K x K still fits: the sketch against the exact sums, on rows that were not learned."""
    K, n, shards = 2000, 12_000, 8
    parts = [make_rows(n // shards, 300, K, 10 + i) for i in range(shards)]
    X, Y = (
        da.concatenate([da.from_delayed(delayed(p[i]), p[i].shape, p[i].dtype, meta=p[i][:0]) for p in parts])
        for i in (0, 1)
    )
    test, truth = make_rows(2000, 300, K, 99)
    exact = distributed.fit(PLST(M), X, Y, sketch=None)
    labels = sparse.vstack([part[1] for part in parts]).toarray() * (2.0 / np.sqrt(K))
    C = labels.T @ labels - n * np.outer(labels.mean(axis=0), labels.mean(axis=0))

    def captured(model):
        return float(np.trace(model.directions_ @ C @ model.directions_.T) / np.trace(C))

    truth = truth.toarray()
    found = [
        {"rows": K, "captured": captured(exact), "bound": 0.0, "f1": float(F1().loss(truth, best(exact, test)).mean())}
    ]
    for size in (400, 2 * M + 32, 2 * M, M + 10):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = distributed.fit(PLST(M), X, Y, sketch=size)
        found.append(
            {
                "rows": size,
                "captured": captured(model),
                "bound": model.fit_report_["sketch"]["shortfall"],
                "f1": float(F1().loss(truth, best(model, test)).mean()),
            }
        )
    return found


def best(model, X):
    """The two labels with the largest scores: rare labels stay below zero for a least-squares learner."""
    scores = model.decision_function(X)
    chosen = np.zeros(scores.shape, bool)
    np.put_along_axis(chosen, np.argpartition(-scores, 2, axis=1)[:, :2], True, axis=1)
    return chosen


def tables(figures):
    """Markdown of the figures, and what they come to at 10^10 rows and 10^6 labels."""
    rows, solve, sketch = figures["a_row"], figures["solving"], figures["losing"]
    lines = [
        f"CPU time on one core; d = {D:,} sparse features ({NNZ} a row), {LABELS} labels a row at most, M = {M}, PLST:",
        "",
        "| K | rows of the sketch | sum x x', µs a row | sketch, µs a row | codes, µs a row | predict, µs a row "
        "| joining two sums, s | sums of the passes, MB | model, MB |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['K']:,} | {row['sketch_rows']} | {row['moments_us']:.1f} | {row['sketch_us']:.1f} | "
            f"{row['codes_us']:.1f} | {row['predict_us']:.0f} | {row['join_s']:.2f} | "
            f"{row['first_bytes'] / 1e6:.0f} and {row['second_bytes'] / 1e6:.1f} | {row['model_bytes'] / 1e6:.0f} |"
        )
    lines += ["", "| d | solving, s |", "|---|---|"]
    lines += [f"| {row['d']:,} | {row['s']:.2f} |" for row in solve]
    lines += [
        "",
        f"What a sketch loses (K = 2,000, 12,000 rows, M = {M}; F1 loss of the two best labels on new rows):",
        "",
        "| rows of the sketch | variance captured | may miss at most (reported) | F1 loss |",
        "|---|---|---|---|",
    ]
    for row in sketch:
        name = "exact" if row["bound"] == 0.0 else row["rows"]
        lines.append(f"| {name} | {row['captured']:.4f} | {row['bound']:.4f} | {row['f1']:.4f} |")
    big = rows[-1]
    hours = 1e-6 / 3600.0
    nodes = TARGET_SHARDS * 8 / 7
    lines += [
        "",
        f"For {TARGET_ROWS:.0e} rows and K = {TARGET_K:,} in {TARGET_SHARDS:,} shards these come to:",
        "",
        "| | |",
        "|---|---|",
        f"| sum x x', all rows | {TARGET_ROWS * big['moments_us'] * hours:,.0f} core hours |",
        f"| codes, all rows | {TARGET_ROWS * big['codes_us'] * hours:,.0f} core hours |",
        f"| the sketch, all rows | {TARGET_ROWS * big['sketch_us'] * hours:,.0f} core hours |",
        f"| the sketch, a sample of {TARGET_SAMPLE:.0e} rows | "
        f"{TARGET_SAMPLE * big['sketch_us'] * hours:,.0f} core hours |",
        f"| sketches moved, {TARGET_SHARDS:,} shards | {nodes * big['first_bytes'] / 1e12:,.0f} TB |",
        f"| sketches moved, the sample in {TARGET_SHARDS // 100:,} shards | "
        f"{nodes / 100 * big['first_bytes'] / 1e12:,.1f} TB |",
        f"| codes moved | {nodes * big['second_bytes'] / 1e9:,.0f} GB |",
        f"| memory of a worker, first pass (8 sums wait in a node) | {10 * big['first_bytes'] / 1e9:,.0f} GB |",
        f"| solving | {solve[1]['s']:.1f} s |",
        f"| the model | {big['model_bytes'] / 1e9:.1f} GB |",
    ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="write docs/scale.md and the results")
    options = parser.parse_args()
    with threadpool_limits(1):
        collect(Pass(True, True, True, sketch=4), [make_rows(64, 120, 120, 0)], 120, 120)
        figures = {"losing": losing(), "solving": solving(), "a_row": a_row()}
    text = tables(figures)
    print(text)
    if options.record:
        facts = {
            "version": csdpp.__version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "cores": os.cpu_count(),
        }
        RESULTS.write_text(json.dumps(facts | figures, indent=1) + "\n", encoding="utf-8")
        before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
