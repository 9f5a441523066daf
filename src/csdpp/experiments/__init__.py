"""The paper's experiments as data, a runner that survives being killed, and a report (`csdpp reproduce`).

`reproduce` runs the experiments of specs/*.toml on the sets at hand and writes, into one folder, results.sqlite (all
results), report.html, report.md and the pictures. Needs ``pip install 'csdpp[experiments]'``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from csdpp.datasets import STAND_INS
from csdpp.datasets.registry import find
from csdpp.errors import CsdppError, InvalidParameter, MissingData
from csdpp.estimator import whole
from csdpp.experiments.pictures import pictures
from csdpp.experiments.report import Report, as_html, as_markdown, make_report
from csdpp.experiments.runner import Spread, mapped, minutes, run_all, teller, usable_cores
from csdpp.experiments.spec import REPEATS, Experiment, experiments, unique_runs
from csdpp.experiments.store import Store
from csdpp.experiments.tables import figures

__all__ = ["reproduce", "sets_at_hand"]

_WHO = "reproduce"


def reproduce(
    output: str | os.PathLike[str] = "reproduction",
    *,
    only: Sequence[str] | None = None,
    sets: Sequence[str] | None = None,
    repeats: int = REPEATS,
    seed: int = 0,
    jobs: int | None = None,
    spread: Spread | None = None,
    export: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Report:
    """Run the paper's experiments on the sets at hand and lay our figures beside the published ones.

    Parameters
    ----------
    output : path
        The folder of results.sqlite, report.html, report.md and the figures. Results that are there already are
        used: an interrupted call goes on where it was, and a larger ``repeats`` adds to what is there.
    only : names of experiments, optional
        "noise", "large", "basis", "cost", "orders", "defaults", "ablation", "regret", "ceilings", "batch", "readings".
    sets : names of data sets, optional
        By default all that are at hand, and the stand-ins of the experiment "large".
    repeats : int
        15 as published. The 50 orders of the labels are shortened in proportion.
    seed : int
        Of the permutations, the noise and all draws: the r-th repetition has 1000 * seed + r.
    jobs : int, optional
        Processes, one BLAS thread each; by default as many as there are cores.
    spread : callable, optional
        Another way to map a function over runs, instead of processes: see `csdpp.experiments.runner`.
    export : path that ends in .parquet or .csv, optional
        Also write one row for each run and cost.
    progress : bool
        Say on stderr how far it is, and how long it will take.

    Returns
    -------
    Report
        What the page says.
    """
    whole(_WHO, "repeats", repeats, "at least 1", lambda v: v >= 1)
    whole(_WHO, "seed", seed, "at least 0", lambda v: v >= 0)
    _require_extra()
    chosen = experiments(only)
    at_hand = sets_at_hand(chosen, sets)
    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidParameter(
            f"{_WHO}: output must be a folder to write into, got {folder} ({error.strerror}); choose another"
        ) from None
    cells = {e.name: list(e.cells([s for s in e.sets if s in at_hand], repeats, seed)) for e in chosen}
    runs = unique_runs([cell for group in cells.values() for cell in group])
    with Store(folder / "results.sqlite") as store:
        failed = run_all(runs, store, spread=spread or mapped(jobs or usable_cores()), tell=teller(progress))
        if failed and len(failed) == len(runs):
            raise CsdppError(f"{_WHO}: every run failed, the first with {failed[0].error}; mend that and call again")
        report = _reported(chosen, cells, at_hand, repeats, seed, store, [str(f.error) for f in failed])
        if export is not None:
            store.export(Path(export))
    (folder / "report.html").write_text(as_html(report), encoding="utf-8")
    (folder / "report.md").write_text(as_markdown(report), encoding="utf-8")
    (folder / "summary.json").write_text(json.dumps(summary(report), indent=1) + "\n", encoding="utf-8")
    for section in report.sections:
        if section.picture is not None:
            svg = section.picture.svg.replace("<svg ", '<svg color="#222" ', 1)
            (folder / f"{section.picture.name}.svg").write_text(svg, encoding="utf-8")
    if progress:
        _say(report, folder)
    return report


def sets_at_hand(chosen: Sequence[Experiment], sets: Sequence[str] | None = None) -> list[str]:
    """The sets of some experiments that can be loaded here; those asked for by name must be.

    Examples
    --------
    >>> sets_at_hand(experiments(["large"]))
    ['delicious-like', 'eurlex-like']
    """
    known = list(dict.fromkeys(name for experiment in chosen for name in experiment.sets))
    unknown = [name for name in sets or () if name not in known]
    if unknown:
        raise InvalidParameter(
            f"{_WHO}: sets must be some of {', '.join(known)}, got {', '.join(unknown)}; choose these"
        )
    there = []
    for name in known:
        if sets is not None and name not in sets:
            continue
        try:
            if name not in STAND_INS:
                find(name, None, _WHO)
        except MissingData:
            if name == "yeast" and find_spec("river") is not None:
                there.append(name)
            elif sets is not None:
                raise
            continue
        there.append(name)
    if not there:
        raise MissingData(
            f"{_WHO}: expected at least one of {', '.join(known)}, got none here; set CSDPP_DATA to a folder that has "
            "them, or run csdpp datasets fetch"
        )
    return there


def _reported(
    chosen: Sequence[Experiment],
    cells: dict[str, Any],
    at_hand: list[str],
    repeats: int,
    seed: int,
    store: Store,
    failures: list[str],
) -> Report:
    results = store.results()
    found = {e.name: figures(e, cells[e.name], results) for e in chosen}
    drawn = pictures(chosen, at_hand, repeats, seed, store)
    wanted = {name for experiment in chosen for name in experiment.sets}
    facts: dict[str, Any] = store.provenance()
    facts |= {"repeats": repeats, "seed": seed, "sets": at_hand, "failures": failures}
    facts["missing"] = [name for name in dict.fromkeys(n for e in chosen for n in e.sets) if name not in at_hand]
    facts["whole"] = wanted <= set(at_hand)
    facts["data"] = _data_facts(cells, results)
    facts["time"] = minutes(facts["cpu_seconds"] or 0.0)
    return make_report(chosen, found, drawn, facts)


def _data_facts(cells: dict[str, Any], results: Any) -> dict[str, dict[str, Any]]:
    """Of each set, as the runs found it: without noise and sub-sampling."""
    facts: dict[str, dict[str, Any]] = {}
    for cell in (cell for group in cells.values() for cell in group):
        if cell.noise == 0.0 and cell.data not in facts:
            found = next((results[run.key].facts for run in cell.runs if run.key in results), None)
            if found:
                facts[cell.data] = {name: found[name] for name in ("N", "d", "K", "cardinality")}
    return facts


def summary(report: Report) -> dict[str, Any]:
    """The report as plain numbers: what benchmarks record."""
    figures_of = [
        {
            "experiment": f.cell.experiment,
            "line": f.cell.line.name,
            "set": f.cell.data,
            "share": f.cell.share,
            "noise": f.cell.noise,
            "cost": f.cell.cost,
            "mean": round(f.mean, 6),
            "error": round(f.error, 6),
            "count": f.size,
            "published": f.published.mean if f.published else None,
            "verdict": f.verdict,
        }
        for section in report.sections
        for table in section.tables
        for row in table.rows
        for f in row.figures
        if f is not None
    ]
    return {
        "facts": report.facts,
        "reading": report.reading,
        "counts": report.counts,
        "by_reading": report.by_reading,
        "by_cost": report.by_cost,
        "by_set": report.by_set,
        "orderings": {table: list(pair) for table, pair in report.orderings.items()},
        "claims": [claim._asdict() | {"verdict": claim.verdict} for claim in report.claims],
        "defaults": [versus._asdict() for versus in report.versus],
        "deviations": [[reason, len(group)] for reason, group in report.deviations],
        "figures": figures_of,
    }


def _say(report: Report, folder: Path) -> None:
    """The verdict in a few lines on stdout."""
    count = report.counts
    if count["all"]:
        print(
            f"{count['agree']} of {count['all']} published figures agree ({count['agree'] / count['all']:.0%}), "
            f"{count['better']} are lower with us, {count['worse']} higher; "
            f"{report.pairs.hold} of {report.pairs.all} orderings hold (weights: {report.reading})."
        )
    for claim in report.claims:
        if claim.verdict is not None:
            print(f"  {'true ' if claim.verdict else 'FALSE'}  {claim.sentence} ({claim.holds} of {claim.cases})")
    for failure in report.facts["failures"][:3]:
        print(f"failed: {failure}")
    print(f"written: {folder / 'report.html'}, report.md, summary.json, figures as SVG; results.sqlite has every run")


def _require_extra() -> None:
    missing = [name for name in ("jinja2", "matplotlib", "joblib") if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"{_WHO}: needs {' and '.join(missing)}, not installed here; pip install 'csdpp[experiments]'"
        )
