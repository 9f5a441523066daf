"""Soak: a long small stream with everything at once, and a learner that has to stay whole.

    python benchmarks/soak.py --record             # 10,000,000 rows
    python benchmarks/soak.py --rows 200000

Features and labels come one after the other in the first hundredth of the stream; a fifth of the labels is not known;
the past fades (`forgetting`); the world turns every tenth of the stream; one feature is silent for a tenth at a time,
and one for ever. Every hundredth the state is looked at: A^-1 positive and bounded, Q orthonormal, sigma in the capped
simplex, all finite; and the memory of the process is noted. With --record the figures go into
benchmarks/results/soak.json and the table into docs/streams.md.
"""

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np

from csdpp import CSDPP, __version__

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "benchmarks" / "results" / "soak.json", ROOT / "docs" / "streams.md"
BEGIN, END = "<!-- table: python benchmarks/soak.py --record -->", "<!-- end of soak -->"

D, K, RANK = 8, 8, 3  # in the end
FIRST_D, FIRST_K = 3, 2
STRIP = 1000
LEARNERS = {
    "defaults": {},
    "PBT": {"basis": "pbt", "encoder": "label"},
    "gradient": {"regressor": "gradient"},
}


def memory() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def world(phase: int) -> np.ndarray:
    """From features to scores of labels (D, K)."""
    rng = np.random.default_rng([7, phase])
    return rng.standard_normal((D, RANK)) @ rng.standard_normal((RANK, K))


def state_of(model) -> dict[str, float]:
    """How far the state is from what it must be."""
    engine = model._engine
    Q, sigma = model.directions_, model.spectrum_
    health = {
        "orthonormal": float(np.abs(Q @ Q.T - np.eye(len(Q))).max()),
        "simplex": float(max(0.0, -sigma.min(), sigma.max() - 1.0, sigma.sum() - model.n_components_)),
        "weights": float(np.abs(engine.regressor.W).max()),
        "finite": bool(all(np.isfinite(a).all() for a in (Q, sigma, engine.regressor.W, engine.o, engine.known))),
    }
    if hasattr(engine.regressor, "F"):
        values = np.linalg.eigvalsh(engine.regressor.precision())
        health |= {"least": float(values[0]), "largest": float(values[-1])}
    return health


def soak(options: dict, n: int, seed: int = 0) -> dict:
    """Run the stream; figures of every hundredth of it."""
    rng = np.random.default_rng(seed)
    model = CSDPP(0.4, forgetting=0.9995, random_state=0, **options)
    d, k = FIRST_D, FIRST_K
    look, growth, steps = max(STRIP, n // 100), max(10 * STRIP, n // 100), []
    wrong = known_labels = 0
    start = time.process_time()
    for done in range(0, n, STRIP):
        phase = done * 10 // n
        X = rng.standard_normal((STRIP, D))
        X[:, -1] = 0.0  # silent for ever
        if phase % 2:
            X[:, 0] = 0.0  # silent for a tenth
        Y = (X @ world(phase) + 0.3 * rng.standard_normal((STRIP, K)) > 0.8).astype(float)
        mask = rng.random((STRIP, K)) < 0.8
        if STRIP <= done <= growth:
            want_d = min(D, FIRST_D + 1 + done * (D - FIRST_D) // growth)
            want_k = min(K, FIRST_K + 1 + done * (K - FIRST_K) // growth)
            model.add_features(want_d - d)
            model.add_labels(want_k - k)
            d, k = want_d, want_k
        answers = model.prequential(X[:, :d], np.where(mask, Y, np.nan)[:, :k])
        if done * 10 >= n * 9:
            wrong += int(((answers != Y[:, :k]) & mask[:, :k]).sum())
            known_labels += int(mask[:, :k].sum())
        if (done + STRIP) % look == 0:
            steps.append({"row": done + STRIP, "memory": memory(), **state_of(model)})
    assert (d, k) == (D, K), (d, k)
    return {
        "rows": n,
        "seconds": time.process_time() - start,
        "hamming": wrong / known_labels,
        "steps": steps,
    }


def summary(result: dict) -> dict:
    """The worst of the whole stream, and the memory after a tenth of it and at its end."""
    steps = result["steps"]
    worst = {name: max(step[name] for step in steps) for name in ("orthonormal", "simplex", "weights")}
    tenth = next(step for step in steps if step["row"] * 10 >= result["rows"])
    return {
        **worst,
        "finite": all(step["finite"] for step in steps),
        "least": min((step["least"] for step in steps if "least" in step), default=None),
        "largest": max((step["largest"] for step in steps if "largest" in step), default=None),
        "memory at a tenth": tenth["memory"],
        "memory at the end": steps[-1]["memory"],
        "hamming": result["hamming"],
        "seconds": result["seconds"],
        "rows": result["rows"],
    }


def markdown(summaries: dict[str, dict]) -> str:
    """One row a learner."""
    lines = [
        "| learner | rows | CPU s | memory after a tenth, at the end (MB) | eigenvalues of A⁻¹ | QQ' − I "
        "| sigma beyond the simplex | Hamming loss of the last tenth |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, s in summaries.items():
        values = "–" if s["least"] is None else f"{s['least']:.1e} to {s['largest']:.1e}"
        memory = f"{s['memory at a tenth']:.1f}, {s['memory at the end']:.1f}"
        lines.append(
            f"| {name} | {s['rows']:,} | {s['seconds']:.0f} | {memory} | {values} | {s['orthonormal']:.0e} "
            f"| {s['simplex']:.0e} | {s['hamming']:.3f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--learners", nargs="+", default=["defaults"], choices=list(LEARNERS))
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    found = {name: summary(soak(LEARNERS[name], arguments.rows)) for name in arguments.learners}
    table = markdown(found)
    print(table)
    if arguments.record:
        about = {"csdpp": __version__, "python": platform.python_version(), "machine": platform.machine()}
        RESULTS.write_text(json.dumps({"about": about, "learners": found}, indent=1) + "\n")
        before, rest = PAGE.read_text().split(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
