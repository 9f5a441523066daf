"""From the cells of a run to tables in Markdown, and to who is lowest where."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from csdpp.bench import streams
from csdpp.bench.learners import COSTS, GRID, LARGEST

Cell = dict[str, Any]
Run = dict[str, Any]

_TITLES = {"hamming": "Hamming", "f1": "F1", "accuracy": "Accuracy", "rank": "Rank"}
_SHARE = 0.5  # of the labels: the code size up to which reduction is reduction
_LIMITS = {
    "dgemm_gflops": "matrix product (dgemm)|GFLOP/s",
    "copy_gb_per_second": "memory, copying|GB/s",
    "read_gb_per_second": "memory, reading|GB/s",
    "dsyr_5000_per_second": "dsyr, n = 5000|a second",
    "dsymv_5000_per_second": "dsymv, n = 5000|a second",
}


def best(cell: Cell, cost: str, fits: Any = None) -> Run | None:
    """The run of a cell that is lowest in a cost, of those that were told this cost or none (and fit).

    Runs over all rows come before those that the time did not suffice for.
    """
    told = [run for run in cell["runs"] if run["setting"].get("cost", cost) == cost]
    told = [run for run in told if fits is None or fits(run)]
    return min(told, key=lambda run: (run["rows"] < cell["n"], run["losses"][cost]), default=None)


def speed(run: Run) -> float:
    """Rows per CPU second."""
    return float(run["rows"] / max(run["seconds"], 1e-9))


def reduced(run: Run, K: int) -> bool:
    """Whether the code has at most half as many numbers as there are labels (a run without a code has not)."""
    return bool(run["setting"].get("n_components", K) <= _SHARE * K)


def over(run: Run, cost: str, rows: int, n: int) -> float:
    """The mean loss over the first ``rows`` of n rows, by the last tenth of the stream that lies within them."""
    if rows >= run["rows"]:
        return float(run["losses"][cost])
    tenth = len(run["curve"][cost]) * rows // n if run["rows"] == n else 0
    return float(run["curve"][cost][max(tenth, 1) - 1])


class Verdict(NamedTuple):
    """Who is lowest in a cost on a set: CS-DPP, CS-DPP with M at most K / 2, and the best of the others."""

    stream: str
    cost: str
    ours: float
    setting: dict[str, Any]
    halved: float | None
    other: str
    loss: float
    partial: tuple[str, ...]  # others that saw a part of the rows only and are lower there than ours over the same

    @property
    def lowest(self) -> bool:
        """Whether CS-DPP is."""
        return self.ours < self.loss and not self.partial


def verdict(cells: list[Cell], stream: str, cost: str, name: str = "CS-DPP") -> Verdict | None:
    """Compare one learner with all others on a stream; None if it or the others did not run."""
    here = {cell["learner"]: cell for cell in cells if cell["stream"] == stream and cell["runs"]}
    if name not in here or len(here) < 2:
        return None
    K = here[name]["K"]
    ours, halved = best(here[name], cost), best(here[name], cost, lambda run: reduced(run, K))
    assert ours is not None
    whole: list[tuple[float, str]] = []
    partial = []
    for other, cell in here.items():
        run = best(cell, cost)
        if cell["kind"] == "naive" or other.startswith("CS-DPP") or run is None:
            continue  # the same algorithm
        if run["rows"] == cell["n"]:
            whole.append((run["losses"][cost], other))
        elif run["losses"][cost] < over(ours, cost, run["rows"], cell["n"]):
            partial.append(other)
    if not whole:
        return None
    loss, other = min(whole)
    below = halved["losses"][cost] if halved else None
    return Verdict(stream, cost, ours["losses"][cost], ours["setting"], below, other, loss, tuple(partial))


def as_markdown(results: dict[str, Any]) -> str:
    """All tables of a run."""
    cells = results["cells"]
    names = list(dict.fromkeys(cell["stream"] for cell in cells))
    lines = [*_limit_table(results), *_loss_tables(cells, [name for name in names if name in streams.REAL])]
    for name in names:
        lines += _stream_table([cell for cell in cells if cell["stream"] == name])
    missing = dict.fromkeys((cell["learner"], cell["stream"], cell["error"]) for cell in cells if cell["error"])
    if missing:
        lines += ["", "## Not or not wholly measured", ""]
        lines += [f"* {learner}, {stream}: {error.rstrip('.')}." for learner, stream, error in missing]
    made = dict.fromkeys(cell["made_with"] for cell in cells if cell.get("made_with"))
    lines += ["", "## Made with", "", *(f"* {key}: {value}" for key, value in results["made_with"].items())]
    lines += [f"* packages measured: {', '.join(sorted(made))}", ""]
    return "\n".join(lines)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """A table; columns after the first are flush right."""
    titles = list(head)
    lines = ["", f"| {' | '.join(titles)} |", f"|---|{'---:|' * (len(titles) - 1)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def number(value: float) -> str:
    """Three digits or more: 1,234,567 and 0.0123."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _limit_table(results: dict[str, Any]) -> list[str]:
    rows = []
    for key, value in results["limits"].items():
        name, unit = _LIMITS[key].split("|")
        rows.append((name, number(value), unit))
    return ["", "## What the machine can do on one thread", *table(("", "measured", ""), rows)]


def _stream_table(cells: list[Cell]) -> list[str]:
    first = cells[0]
    title = f"## {first['stream']}: {first['n']:,} rows, {first['d']:,} features, {first['K']:,} labels"
    naive = {cell["learner"]: speed(cell["runs"][0]) for cell in cells if cell["kind"] == "naive" and cell["runs"]}
    rows = []
    for cell in sorted((c for c in cells if c["runs"]), key=lambda c: -_speed_at_best(c)):
        run = best(cell, "f1")
        assert run is not None
        rate = speed(run)
        note = f" ({run['rows']:,} rows)" if run["rows"] < cell["n"] else ""
        together = f", {cell['batch']} rows at a time" if cell["batch"] > 1 else ""
        peak = [r["peak"] for r in cell["runs"] if r["peak"]]
        losses = [_loss(cell, cost) for cost in COSTS]
        rows.append(
            (
                f"{cell['learner']}{together}{note}",
                number(rate),
                f"{rate / _yard(naive, cell['learner']):.3g}" if naive else "",
                f"{peak[0] / 2**20:,.0f}" if peak else "",
                *losses,
            )
        )
    head = ("", "rows a second", "× naive", "peak MB", *(_TITLES[cost] for cost in COSTS))
    return ["", title, *table(head, rows)]


def _yard(naive: dict[str, float], learner: str) -> float:
    """The speed of the naive learner of the same kind, else of any."""
    same = [rate for name, rate in naive.items() if ("gradient" in name) == ("gradient" in learner)]
    return max(same or naive.values())


def _speed_at_best(cell: Cell) -> float:
    run = best(cell, "f1")
    return speed(run) if run else 0.0


def _loss(cell: Cell, cost: str) -> str:
    run = best(cell, cost)
    return f"{run['losses'][cost]:.3f}" if run else ""


def _loss_tables(cells: list[Cell], names: list[str]) -> list[str]:
    lines: list[str] = []
    if not names:
        return lines
    for cost in ("f1", "accuracy"):
        verdicts = {name: found for name in names if (found := verdict(cells, name, cost))}
        lines += ["", f"## {_TITLES[cost]} loss on the real sets, best of four settings"]
        lines += table(("", *names), _loss_rows(cells, names, cost))
        for name, found in verdicts.items():
            lines.append(f"* {name}: {_sentence(found)}")
        count = sum(found.lowest for found in verdicts.values())
        half = sum(found.halved is not None and found.halved < found.loss for found in verdicts.values())
        lines += ["", f"CS-DPP is lowest on {count} of {len(verdicts)}; with M at most K / 2 on {half}.", ""]
    grid = ", ".join(f"({share:g}, {strength:g}, {weighting})" for share, strength, weighting in GRID)
    note = (
        f"The grid of CS-DPP over (M / K, λ, weighting), M at most {LARGEST}: {grid}. All learners have four settings."
    )
    return [*lines, f"{note} A figure in brackets is over the first rows only."]


def _sentence(found: Verdict) -> str:
    if found.lowest:
        text = f"CS-DPP, {found.ours:.3f}; next {found.other}, {found.loss:.3f}"
    elif found.partial:
        text = f"over their first rows lower than CS-DPP: {', '.join(found.partial)}"
    else:
        text = f"**{found.other}**, {found.loss:.3f}; CS-DPP {found.ours:.3f}"
    if found.halved is not None and found.halved > found.ours:
        text += f" (CS-DPP with M at most K / 2: {found.halved:.3f})"
    return text


def _loss_rows(cells: list[Cell], names: list[str], cost: str) -> list[tuple[str, ...]]:
    shown = [cell for cell in cells if cell["stream"] in names and cell["kind"] != "naive"]
    rows: dict[str, dict[str, tuple[float, bool]]] = {}
    for cell in shown:
        run = best(cell, cost)
        if run:
            rows.setdefault(cell["learner"], {})[cell["stream"]] = run["losses"][cost], run["rows"] == cell["n"]
    lowest = {
        name: min((found[name][0] for found in rows.values() if name in found and found[name][1]), default=0.0)
        for name in names
    }

    def text(found: dict[str, tuple[float, bool]], name: str) -> str:
        if name not in found:
            return "–"
        loss, whole = found[name]
        shown = f"{loss:.3f}" if whole else f"({loss:.3f})"
        return f"**{shown}**" if whole and loss == lowest[name] else shown

    return [(learner, *(text(found, name) for name in names)) for learner, found in rows.items()]
