"""Cells of the benchmark: each learner on each stream in a process of its own, and what came of it.

A cell that fails, crashes or takes too long is a result as well: it says so. Results are written after every cell,
so that a run that was interrupted goes on where it stopped.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from csdpp.bench import machine, streams, worker
from csdpp.bench.learners import COSTS
from csdpp.costs import resolve_cost
from csdpp.datasets import Dataset

Array = NDArray[Any]

CURVE = 10  # places at which the running averages are recorded
#: Ridge learners keep d x d numbers and touch them at every row: beyond this d gradient descent is meant for the job.
_RIDGE_D = 2000
_NO_RIDGE = f"not run: more than {_RIDGE_D} features are for gradient descent"
_RIDGE = ("CS-DPP", "CS-DPP, PBT", "O-BR", "naive CS-DPP")


class Team(NamedTuple):
    """Learners that share an interpreter."""

    kind: str  # "ours", "naive" or "peer"
    python: str
    module: str
    names: tuple[str, ...]


class Plan(NamedTuple):
    """A whole run: its streams, who runs, how long, and in which order of the rows."""

    sets: tuple[str, ...]
    teams: tuple[Team, ...]
    seconds: dict[str, float]  # CPU seconds that a setting may take, on "generated" and on "real" streams
    rows: dict[str, int | None]  # the first rows only
    seed: int
    data: str | None

    def cells(self) -> list[tuple[str, Team, str]]:
        """Stream, team and name of each cell."""
        return [(stream, team, name) for stream in self.sets for team in self.teams for name in team.names]

    def terms(self) -> dict[str, Any]:
        """What must be the same for a cell to be kept from an earlier, interrupted run."""
        return {"seconds": self.seconds, "rows": self.rows, "seed": self.seed}


def run_cells(
    plan: Plan, done: list[dict[str, Any]], tell: Callable[[str], object], keep: Callable[[], object]
) -> None:
    """Measure the cells of a plan that are not yet ``done``, appending to it; ``keep`` is called after each."""
    known = {(cell["stream"], cell["learner"]) for cell in done}
    cells = plan.cells()
    stream: Dataset | None = None
    for i, (name, team, learner) in enumerate(cells, 1):
        if (name, learner) in known:
            continue
        tell(f"[{i}/{len(cells)}] {name}: {learner}")
        if stream is None or stream.name != name:
            stream = streams.load(name, plan.data, plan.seed, plan.rows.get(name))
        done.append(measure(stream, team, learner, plan))
        keep()


def measure(stream: Dataset, team: Team, learner: str, plan: Plan) -> dict[str, Any]:
    """One cell."""
    N, d, K, _, _ = stream.statistics()
    cell: dict[str, Any] = {"stream": stream.name, "learner": learner, "kind": team.kind}
    cell |= {"n": N, "d": d, "K": K, "error": None, "runs": []}
    if learner in _RIDGE and d > _RIDGE_D:
        return cell | {"error": _NO_RIDGE}
    seconds = plan.seconds["generated" if stream.name in streams.SIZES else "real"]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        worker.save_data(place / "data.npz", stream.X, stream.Y)
        spec: dict[str, Any] = {"module": team.module, "learner": learner, "data": str(place / "data.npz")}
        spec |= {"M": streams.code_size(stream.name), "seconds": seconds, "output": folder}
        (place / "spec.json").write_text(json.dumps(spec), encoding="utf-8")
        lines, cell["error"] = run_worker(team.python, place / "spec.json", timeout=300.0 + 200.0 * seconds)
        for line in lines:
            if "rows" not in line:
                cell |= line
                continue
            packed = np.load(place / f"{len(cell['runs'])}.npy")
            answers = np.unpackbits(packed, axis=1, count=K).astype(np.bool_)
            truth: Any = stream.Y[: len(answers)]
            truth = truth.toarray() if sparse.issparse(truth) else truth
            line |= {"losses": losses(truth, answers), "curve": curve(truth, answers, N)}
            cell["runs"].append(line | {"seconds": round(line["seconds"], 6)})
    return cell


def run_worker(python: str, spec: Path, timeout: float) -> tuple[list[dict[str, Any]], str | None]:
    """The lines that a worker wrote, and what went wrong, in a sentence."""
    command = [python, "-P", worker.__file__, str(spec)]
    try:
        # A folder of its own: a library that writes where it is started leaves nothing behind.
        done = subprocess.run(
            command,
            env=os.environ | machine.ONE_THREAD,
            cwd=spec.parent,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        out, error = done.stdout, None if done.returncode == 0 else failure(done.stderr, done.returncode)
    except subprocess.TimeoutExpired as expired:
        raw = expired.stdout or b""
        out, error = raw if isinstance(raw, str) else raw.decode(), f"stopped after {timeout:.0f} s"
    except OSError as problem:
        out, error = "", f"did not start: {problem.strerror}"
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")], error


def failure(stderr: str, code: int) -> str:
    """The last line of a traceback, or how the process ended."""
    lines = [line for line in stderr.strip().splitlines() if line.strip()]
    if code < 0:
        return f"crashed (signal {-code})" + (f": {lines[-1]}" if lines else "")
    return lines[-1] if lines else f"ended with code {code}"


def losses(truth: Any, answers: Array) -> dict[str, float]:
    """Mean losses over the rows."""
    return {cost: round(float(resolve_cost(cost).loss(truth, answers).mean()), 5) for cost in COSTS}


def curve(truth: Any, answers: Array, n: int) -> dict[str, list[float]]:
    """Running averages after each tenth of the stream, as far as the answers go."""
    places = np.arange(1, CURVE + 1) * n // CURVE
    places = places[(places > 0) & (places <= len(answers))]
    sums = {cost: resolve_cost(cost).loss(truth, answers).cumsum() for cost in COSTS}
    return {cost: (np.round(total[places - 1] / places, 4)).tolist() for cost, total in sums.items()}


def measure_limits() -> dict[str, float]:
    """`csdpp.bench.machine.limits` on one thread."""
    command = [sys.executable, "-P", "-m", machine.__name__]
    done = subprocess.run(command, env=os.environ | machine.ONE_THREAD, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return {name: round(value, 2) for name, value in found.items()}
