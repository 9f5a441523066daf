"""What reading costs: ARFF beside liac-arff, and the memory of streams that are larger than it.

    python benchmarks/datasets.py --record --peers .venv-bench/bin/python

generates the files in a temporary folder (some 2 GB), prints tables, and with --record writes them into
docs/datasets.md and benchmarks/results/datasets.json. Without --peers only the memory is measured.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import csdpp

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "datasets.md"
RESULTS = ROOT / "benchmarks" / "results" / "datasets.json"
THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

OURS = """
import json, sys, time
from csdpp.datasets import load_meka
load_meka(sys.argv[1])  # compiles, or reads what was compiled
taken = []
for _ in range(3):
    start = time.process_time()
    data = load_meka(sys.argv[2])
    taken.append(time.process_time() - start)
print(json.dumps([min(taken), float(data.X.sum()) + float(data.Y.sum())]))
"""
THEIRS = """
import json, sys, time, arff
kind = arff.LOD if sys.argv[3] == "sparse" else arff.DENSE
taken = []
for _ in range(3):
    start = time.process_time()
    with open(sys.argv[2]) as file:
        data = arff.load(file, return_type=kind)
    taken.append(time.process_time() - start)
rows = (row.values() if sys.argv[3] == "sparse" else row for row in data["data"])
print(json.dumps([min(taken), sum(float(value) for row in rows for value in row), arff.__version__]))
"""
STREAM = """
import json, resource, sys, time
from csdpp.datasets import stream
rows = 0
start = time.process_time()
for block in stream(sys.argv[1], **json.loads(sys.argv[2])):
    rows += len(block)
taken = time.process_time() - start
print(json.dumps([rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, taken]))
"""
IMPORT = """
import resource, csdpp.datasets
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def run(python, code, *arguments):
    """What a process of its own prints, as JSON."""
    environment = os.environ | THREADS
    done = subprocess.run([python, "-c", code, *map(str, arguments)], env=environment, capture_output=True, check=True)
    return json.loads(done.stdout)


# ---- ARFF


def write_arff(path, kind, n, d, K, seed=0):
    """0/1 features and labels, as in delicious: 18 features and 19 labels a row."""
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        file.write(f"@relation 'delicious: -C -{K}'\n")
        file.writelines(f"@attribute TAG_{j} {{0,1}}\n" for j in range(d + K))
        file.write("@data\n")
        for _ in range(n):
            row = rng.random(d + K) < 37 / (d + K)
            if kind == "sparse":
                file.write("{" + ",".join(f"{j} 1" for j in np.flatnonzero(row)) + "}\n")
            else:
                file.write(",".join(np.where(row, "1", "0")) + "\n")


def arff(folder, peers, repeats):
    """CPU seconds of both readers, in turn; the least of each."""
    rows = []
    for kind in ("dense", "sparse"):
        small, large = folder / "small.arff", folder / "delicious.arff"
        write_arff(small, kind, 5, 500, 983)
        write_arff(large, kind, 16105, 500, 983)
        ours, theirs = [], []
        for _ in range(repeats):
            ours.append(run(sys.executable, OURS, small, large))
            theirs.append(run(peers, THEIRS, small, large, kind))
            assert ours[-1][1] == theirs[-1][1], "the two readers must read the same numbers"
        mine, other = min(seconds for seconds, _ in ours), min(found[0] for found in theirs)
        size = large.stat().st_size / 1e6
        rows.append({"rows": kind, "MB": size, "ours": mine, "liac-arff": other, "ratio": other / mine})
        print(rows[-1], flush=True)
        version = theirs[0][2]
    return {"liac-arff": version, "rows": rows}


# ---- memory


def write_rows(path, format, megabytes, d=100, K=20, seed=0):
    """A file of about that size; a thousand different rows over and over."""
    rng = np.random.default_rng(seed)
    X, Y = rng.random((1000, d)).round(6), (rng.random((1000, K)) < 0.1).astype(int)
    lines = {"csv": _csv, "arff": _csv, "jsonl": _jsonl, "svm": _svm, "xmc": _svm}[format](X, Y)
    text = "".join(lines)
    times = max(1, round(megabytes * 1e6 / len(text)))
    names = [*(f"x{j}" for j in range(d)), *(f"y{k}" for k in range(K))]
    with path.open("w") as file:
        if format == "csv":
            file.write(",".join(names) + "\n")
        elif format == "arff":
            file.write(f"@relation 'r: -C -{K}'\n" + "".join(f"@attribute {name} numeric\n" for name in names))
            file.write("@data\n")
        elif format == "xmc":
            file.write(f"{1000 * times} {d} {K}\n")
        for _ in range(times):
            file.write(text)
    return 1000 * times


def _csv(X, Y):
    return [",".join(map(repr, [*x, *y])) + "\n" for x, y in zip(X.tolist(), Y.tolist(), strict=True)]


def _jsonl(X, Y):
    names = [f"x{j}" for j in range(X.shape[1])]
    for x, y in zip(X.tolist(), Y, strict=True):
        row = {"x": dict(zip(names, x, strict=True)), "y": [f"y{k}" for k in np.flatnonzero(y)]}
        yield json.dumps(row) + "\n"


def _svm(X, Y):
    for x, y in zip(X.tolist(), Y, strict=True):
        labels = ",".join(map(str, np.flatnonzero(y)))
        yield f"{labels} " + " ".join(f"{j}:{value}" for j, value in enumerate(x)) + "\n"


OPTIONS = {
    "csv": {"label_prefix": "y"},
    "arff": {},
    "jsonl": {},
    "svm": {"n_features": 100, "n_labels": 20, "zero_based": True},
    "xmc": {"format": "xmc"},
}


def memory(folder, sizes):
    """Peak resident memory of a process that streams a file, at two sizes."""
    start = run(sys.executable, IMPORT)
    rows = []
    for format, options in OPTIONS.items():
        for size in sizes[format]:
            path = folder / f"rows.{format}"
            n = write_rows(path, format, size)
            run(sys.executable, STREAM, write_small(folder, format), json.dumps(options))  # compiles
            found, peak, seconds = run(sys.executable, STREAM, path, json.dumps(options))
            assert found == n, (found, n)
            megabytes = path.stat().st_size / 1e6
            rows.append({"format": format, "MB": megabytes, "rows": n, "peak": peak, "MB/s": megabytes / seconds})
            print(rows[-1], flush=True)
            path.unlink()
    return {"import": start, "rows": rows}


def write_small(folder, format):
    """A file that is read for the compiler's sake only."""
    path = folder / f"small.{format}"
    write_rows(path, format, 0)
    return path


# ---- the tables


def arff_table(found):
    lines = [
        "| delicious-sized, 16,105 × 1,483 | MB | csdpp, s | liac-arff, s | times faster |",
        "|---|---|---|---|---|",
    ]
    for row in found["rows"]:
        lines.append(
            f"| {row['rows']} | {row['MB']:.1f} | {row['ours']:.2f} | {row['liac-arff']:.1f} | {row['ratio']:.0f} |"
        )
    return "\n".join(lines)


def memory_table(found):
    lines = ["| format | file, MB | rows | peak resident, MB | MB read per CPU second |", "|---|---|---|---|---|"]
    for row in found["rows"]:
        lines.append(
            f"| {row['format']} | {row['MB']:,.0f} | {row['rows']:,} | {row['peak']:.0f} | {row['MB/s']:.0f} |"
        )
    lines.append(f"| (the import alone) | | | {found['import']:.0f} | |")
    return "\n".join(lines)


def put(page, name, table):
    """The page with the table between its marks."""
    begin, end = f"<!-- {name}: python benchmarks/datasets.py --record -->", f"<!-- end of {name} -->"
    before, rest = page.split(begin)
    return f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="write docs/datasets.md and the results")
    parser.add_argument("--peers", metavar="PYTHON", help="an interpreter with liac-arff: make bench-env")
    parser.add_argument("--quick", action="store_true", help="small files")
    options = parser.parse_args()
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    large, medium = (20, 20) if options.quick else (1000, 200)
    sizes = {"csv": (100, large), "arff": (100, large), "jsonl": (50, medium), "svm": (50, medium), "xmc": (50, medium)}
    facts = {"version": csdpp.__version__, "python": platform.python_version(), "numpy": np.__version__}
    with tempfile.TemporaryDirectory() as folder:
        if "arff" in before:
            facts["arff"] = before["arff"]  # unless it is measured anew
        if options.peers:
            facts["arff"] = arff(Path(folder), options.peers, 1 if options.quick else 2)
            print(arff_table(facts["arff"]))
        facts["memory"] = memory(Path(folder), sizes)
    print(memory_table(facts["memory"]))
    if options.record:
        RESULTS.write_text(json.dumps(facts, indent=1) + "\n")
        page = put(PAGE.read_text(), "memory", memory_table(facts["memory"]))
        PAGE.write_text(put(page, "arff", arff_table(facts["arff"])) if options.peers else page)


if __name__ == "__main__":
    main()
