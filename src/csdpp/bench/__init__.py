"""Benchmarks (`csdpp bench`): this package, the same in plain NumPy, and what users would pick instead.

The order to read: `naive` (the yardstick), `streams`, `learners`, `worker` (one cell, in a process of its own),
`runner` (all cells), `report` and `pictures`. Peers live in an environment of their own, see `make bench-env`.
"""

import json
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from csdpp.bench import learners, machine, pictures, report, runner, streams, worker
from csdpp.bench.runner import Plan, Team
from csdpp.errors import CsdppError, InvalidParameter
from csdpp.estimator import whole

__all__ = ["run"]

_WHO = "bench"
_PEERS = Path("benchmarks") / "peers" / "peers.py"
_QUICK_ROWS = {"S1": 4000, "S2": 1500, "S3": 200, "S4": 100, **dict.fromkeys(streams.REAL, 300)}
_QUICK_SETS = ("S1", "yeast")


def run(
    output: str | os.PathLike[str] = "bench-output",
    *,
    sets: tuple[str, ...] | list[str] | None = None,
    peers: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    quick: bool = False,
    seed: int = 0,
    progress: bool = True,
) -> dict[str, Any]:
    """Measure speed, memory and losses of every learner on every stream, single-threaded, and write tables.

    Parameters
    ----------
    output : path
        The folder, made if absent, for ``bench.json`` (all that was measured), ``bench.md`` (the tables) and
        pictures (speed against loss, if matplotlib is there).
    sets : names, optional
        Of `csdpp.bench.streams.NAMES`. By default all that can be had.
    peers : path, optional
        A Python that has the peers. Run from the root of the source tree, whose benchmarks/peers it needs.
    data : path, optional
        Folder of the real sets; by default the environment variable CSDPP_DATA.
    quick : bool
        A few rows of two streams: under a minute.
    seed : int
        Of the generated streams, and of the order of the rows of the others.
    progress : bool
        Say on stderr what is being measured.

    Returns
    -------
    dict
        What ``bench.json`` has.

    Notes
    -----
    About 20 minutes with the peers. A run that was interrupted goes on where it stopped, if it is started again
    in the same way.
    """
    whole(_WHO, "seed", seed, f"from 0 to {2**32 - 1}", lambda v: 0 <= v < 2**32)
    folder = _make_folder(output)
    teams = [Team("ours", sys.executable, learners.__name__, _names("ours"))]
    teams.append(Team("naive", sys.executable, learners.__name__, _names("naive")))
    teams.append(Team("peer", sys.executable, learners.__name__, _names("peer")))
    if peers is not None:
        teams.append(_peer_team(peers))
    plan = Plan(
        sets=_choose_sets(sets, data, quick),
        teams=tuple(teams),
        seconds={"generated": 0.2, "real": 0.2} if quick else {"generated": 0.8, "real": 6.0},
        rows=dict(_QUICK_ROWS) if quick else {},
        seed=seed,
        data=None if data is None else str(data),
    )
    results = _measure(plan, folder, progress)
    (folder / "bench.md").write_text("# Benchmarks\n" + report.as_markdown(results), encoding="utf-8")
    written = ["bench.json", "bench.md"]
    if find_spec("matplotlib") is not None:
        written += pictures.plot_all(results["cells"], folder)
    print(report.as_markdown(results))
    print(f"Written into {folder}: {', '.join(written)}")
    return results


def _measure(plan: Plan, folder: Path, progress: bool) -> dict[str, Any]:
    """Run the cells; what is done lies in bench.partial.json until all are."""
    partial = folder / "bench.partial.json"
    terms = {"terms": plan.terms(), "made_with": machine.circumstances()}
    results: dict[str, Any] = {**terms, "limits": {}, "cells": []}
    if partial.exists():
        before = json.loads(partial.read_text(encoding="utf-8"))
        if {key: before.get(key) for key in terms} == terms:
            results = before
    tell = _say if progress else _be_silent
    if not results["limits"]:
        tell("the limits of this machine")
        results["limits"] = runner.measure_limits()

    def keep() -> None:
        temporary = partial.with_suffix(".new")
        temporary.write_text(as_json(results), encoding="utf-8")
        temporary.replace(partial)

    runner.run_cells(plan, results["cells"], tell, keep)
    wanted = {(stream, name) for stream, _, name in plan.cells()}
    results["cells"] = [cell for cell in results["cells"] if (cell["stream"], cell["learner"]) in wanted]
    keep()
    partial.replace(folder / "bench.json")
    return results


def as_json(results: dict[str, Any]) -> str:
    """All of it, a line for each cell."""
    head = {key: value for key, value in results.items() if key != "cells"}
    cells = ",\n".join(json.dumps(cell) for cell in results["cells"])
    return json.dumps(head, indent=1)[:-2] + ',\n "cells": [\n' + cells + "\n ]\n}\n"


def _names(kind: str) -> tuple[str, ...]:
    """Which of this package's own learners are of a kind; NumPy binary relevance is what a user would write."""
    kinds = {"naive": ("naive",), "peer": ("NumPy",)}
    others = kinds["naive"] + kinds["peer"]
    if kind == "ours":
        return tuple(name for name in learners.LEARNERS if not name.startswith(others))
    return tuple(name for name in learners.LEARNERS if name.startswith(kinds[kind]))


def _peer_team(peers: str | os.PathLike[str]) -> Team:
    python = shutil.which(os.fspath(peers))
    if python is None:
        raise InvalidParameter(f"{_WHO}: peers must be a Python that has them, got {peers}; make one: make bench-env")
    if not _PEERS.exists():
        raise InvalidParameter(f"{_WHO}: peers needs {_PEERS}, not found here; start it at the root of the source tree")
    names = tuple(worker.load_module(str(_PEERS)).LEARNERS)
    return Team("peer", os.path.abspath(python), str(_PEERS.absolute()), names)


def _choose_sets(
    sets: tuple[str, ...] | list[str] | None, data: str | os.PathLike[str] | None, quick: bool
) -> tuple[str, ...]:
    """Names that are wanted, or all those that can be had; each is tried before the work begins."""
    chosen = []
    for name in sets or (_QUICK_SETS if quick else streams.NAMES):
        if name in streams.REAL or name not in streams.NAMES:
            try:
                streams.load(name, data, 0, rows=1)
            except (CsdppError, OSError, ImportError):
                if sets:
                    raise
                _say(f"{name} is left out: not found; say where the sets are with --data")
                continue
        chosen.append(name)
    return tuple(chosen)


def _make_folder(output: str | os.PathLike[str]) -> Path:
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        reason = None if os.access(folder, os.W_OK) else "no permission"
    except OSError as error:
        reason = error.strerror
    if reason is not None:
        raise InvalidParameter(
            f"{_WHO}: output must be a folder to write into, got {folder} ({reason}); choose another with --output"
        )
    return folder


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _be_silent(text: str) -> None:
    return
