"""What the command line costs: `csdpp predict` of a million rows beside the library's calls; memory of `csdpp train`.

    python benchmarks/pipes.py --record

writes the table into docs/pipes.md and benchmarks/results/pipes.json. Takes 1 GB of disk in the temporary folder.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import csdpp
from csdpp import CSDPP
from csdpp.datasets import make_stream

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "pipes.md"
RESULTS = ROOT / "benchmarks" / "results" / "pipes.json"
THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

LIBRARY = """
import json, sys, time
import numpy as np
from csdpp import CSDPP
from csdpp.datasets import stream
model = CSDPP.load(sys.argv[1])
rows = list(stream(sys.argv[3], labelled=False, block_rows=1000))  # compiles, too
model.predict(rows[0].X)
taken = {}
start = time.process_time()
X = np.vstack([block.X for block in stream(sys.argv[2], labelled=False, block_rows=5000)])
taken["read"] = time.process_time() - start
start = time.process_time()
Y = model.predict(X)
taken["predict"] = time.process_time() - start
print(json.dumps([taken, int(Y.sum())]))
"""


def write(folder, n, d, K):
    """A model, its rows as CSV and as Parquet, and a few of them."""
    import polars

    data = make_stream(5000, d, K, rank=5, random_state=0)
    names = [f"x{j}" for j in range(d)]
    model = CSDPP(0.5, cost="f1").fit(data.X, data.Y)
    model.save(folder / "model")
    frame = polars.DataFrame(data.X.round(6), schema=names)
    frame.head(1000).write_csv(folder / "few.csv")
    frame.head(1000).write_parquet(folder / "few.parquet")
    polars.concat([frame] * (n // 5000)).write_parquet(folder / "rows.parquet")
    head, _, text = frame.write_csv().partition("\n")
    with (folder / "rows.csv").open("w") as file:
        file.write(head + "\n")
        for _ in range(n // 5000):
            file.write(text)


def library(folder, ending):
    """CPU seconds of the library's calls, and how many labels they predict."""
    command = [
        sys.executable,
        "-c",
        LIBRARY,
        *(str(folder / name) for name in ("model", f"rows.{ending}", f"few.{ending}")),
    ]
    done = subprocess.run(command, env=os.environ | THREADS, capture_output=True, check=True)
    return json.loads(done.stdout)


def command(folder, ending, output):
    """CPU and wall seconds and peak memory of the whole process."""
    start = time.perf_counter()
    arguments = [
        "predict",
        str(folder / "model"),
        str(folder / f"rows.{ending}"),
        "--output",
        str(folder / f"out.{output}"),
    ]
    process = subprocess.Popen([sys.executable, "-m", "csdpp", *arguments], env=os.environ | THREADS)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime, time.perf_counter() - start, usage.ru_maxrss / 1024


def training(folder, n):
    """CPU seconds and peak memory of `csdpp train` on n rows of CSV, by a parent that never held much."""
    path = folder / f"labelled-{n}.csv"
    data = make_stream(5000, 100, 20, rank=5, random_state=0)
    with path.open("w") as file:
        file.write(",".join([*(f"x{j}" for j in range(100)), *(f"y{k}" for k in range(20))]) + "\n")
        rows = zip(data.X.round(6).tolist(), data.Y.tolist(), strict=True)
        text = "".join(",".join(map(repr, [*x, *y])) + "\n" for x, y in rows)
        for _ in range(n // 5000):
            file.write(text)
    arguments = ["train", str(folder / f"trained-{n}"), str(path), "--label-prefix", "y", "--components", "0.5"]
    process = subprocess.Popen([sys.executable, "-m", "csdpp", *arguments], env=os.environ | THREADS)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return {
        "rows": n,
        "MB": path.stat().st_size / 1e6,
        "command": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss / 1024,
    }


def training_table(rows):
    lines = ["| rows | file, MB | CPU seconds | peak resident, MB |", "|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['rows']:,} | {row['MB']:,.0f} | {row['command']:.1f} | {row['peak']:.0f} |")
    return "\n".join(lines)


INTRODUCED = {
    "predict": """## How fast

`csdpp predict` (100 features, 20 labels, from a file into a file, starting Python included) beside the library's own
calls on the same rows in one process; CPU seconds, one thread.""",
    "train": "`csdpp train` on CSV (100 features, 20 labels): memory does not grow with the file.",
}


def put(name, table):
    """The table between its marks on the page; at its end, with an introduction, where they are not there yet."""
    begin, end = f"<!-- {name}: python benchmarks/pipes.py --record -->", f"<!-- end of {name} -->"
    page = PAGE.read_text()
    if begin not in page:
        page = f"{page.rstrip()}\n\n{INTRODUCED[name]}\n\n{begin}\n{end}\n"
    before, rest = page.split(begin)
    PAGE.write_text(f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}")


def predicted(folder, output):
    """How many labels the answers have."""
    path = folder / f"out.{output}"
    if output == "jsonl":
        with path.open() as file:
            return sum(len(json.loads(line)["labels"]) for line in file)
    raw = path.read_bytes().partition(b"\n")[2]
    return int((np.frombuffer(raw, np.uint8) == ord("1")).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="write docs/pipes.md and the results")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", choices=["train", "predict"], help="measure one of the two (default: both)")
    parser.add_argument("--repeats", type=int, default=2, help="of which the best counts")
    parser.add_argument("--write", metavar="DIR", help="only write model and rows there")
    options = parser.parse_args()
    if options.write:
        write(Path(options.write), options.rows, 100, 20)
        return
    facts = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    facts |= {"version": csdpp.__version__, "python": platform.python_version()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.only != "predict":
            facts["train"] = [training(folder, n) for n in (options.rows // 20, options.rows // 4)]
            print(training_table(facts["train"]))
        if options.only != "train":
            facts |= {"rows": options.rows, "runs": predicting(folder, options.rows, options.repeats)}
            print(table_of(facts["runs"]))
    if options.record:
        RESULTS.write_text(json.dumps(facts, indent=1) + "\n")
        for name, key, table in (("predict", "runs", table_of), ("train", "train", training_table)):
            if key in facts:
                put(name, f"{facts['rows']:,} rows:\n\n{table(facts[key])}" if key == "runs" else table(facts[key]))


def predicting(folder, n, repeats):
    """The library's calls and the command on the same rows, in turn."""
    # In a process of its own: a child inherits what its parent ever held as its own peak.
    subprocess.run([sys.executable, __file__, "--write", str(folder), "--rows", str(n)], check=True)
    rows = []
    for ending, output in (("csv", "csv"), ("parquet", "csv"), ("csv", "jsonl")):
        runs = [(library(folder, ending), command(folder, ending, output)) for _ in range(repeats)]
        taken = {part: min(found[0][0][part] for found in runs) for part in ("read", "predict")}
        cpu, wall, peak = (min(found[1][i] for found in runs) for i in range(3))
        assert runs[0][0][1] == predicted(folder, output), "the command must predict what the library predicts"
        row = {"from": ending, "to": output, **taken, "command": cpu, "wall": wall, "peak": peak}
        rows.append(row | {"ratio": (taken["read"] + taken["predict"]) / cpu})
        print(rows[-1], flush=True)
    return rows


def table_of(rows):
    lines = [
        "| from, to | library: read | library: `predict` | `csdpp predict` | library ÷ command | peak MB |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        figures = f"{row['read']:.2f} | {row['predict']:.2f} | {row['command']:.2f} | {row['ratio']:.2f}"
        lines.append(f"| {row['from']}, {row['to']} | {figures} | {row['peak']:.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
