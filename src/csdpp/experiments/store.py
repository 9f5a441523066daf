"""Results in one SQLite file: each run once, whole or not at all, whenever the process dies.

Tables, tidy: `runs` (a row for each run with its spec, seeds and provenance), `losses` (run, cost, loss), `curves`
(run, cost, t, loss so far). A run and all that belongs to it is one transaction; its key, the hash of its spec, is
the primary key, so that it cannot be there twice. Results of another version of csdpp are kept but not used.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import csdpp
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.experiments.spec import Run
from csdpp.experiments.work import Outcome

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    key TEXT NOT NULL, version TEXT NOT NULL, spec TEXT NOT NULL,
    measure TEXT, data TEXT, learner TEXT, options TEXT, share REAL, cost TEXT, noise REAL, row_limit INTEGER,
    label_order INTEGER, repeat INTEGER, seed INTEGER,
    facts TEXT, seconds REAL, python TEXT, numpy TEXT, made_at TEXT,
    PRIMARY KEY (key, version));
CREATE TABLE IF NOT EXISTS losses (
    key TEXT NOT NULL, version TEXT NOT NULL, cost TEXT NOT NULL, loss REAL, PRIMARY KEY (key, version, cost));
CREATE TABLE IF NOT EXISTS curves (
    key TEXT NOT NULL, version TEXT NOT NULL, cost TEXT NOT NULL, points TEXT, PRIMARY KEY (key, version, cost));
"""


class Result(NamedTuple):
    """What the store knows of a run."""

    losses: dict[str, float]
    facts: dict[str, Any]
    seconds: float


class Store:
    """The file of results, open. Closes as a context.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> run = Run("prequential", "yeast", "obr")
    >>> made = {"version": csdpp.__version__, "python": "3", "numpy": "2", "at": "now"}
    >>> with tempfile.TemporaryDirectory() as folder, Store(pathlib.Path(folder) / "results.sqlite") as store:
    ...     store.add(run, Outcome(run.key, {"f1": 0.4}, {}, {}, 0.1, made))
    ...     store.add(run, Outcome(run.key, {"f1": 0.5}, {}, {}, 0.1, made))  # too late
    ...     store.results()[run.key].losses
    {'f1': 0.4}
    """

    def __init__(self, path: Path) -> None:
        self.path, self.version = path, csdpp.__version__
        try:
            self.connection = sqlite3.connect(path, timeout=60.0)
            # WAL: a killed process leaves the last whole transaction; the file itself is never half written.
            self.connection.execute("PRAGMA journal_mode = WAL")
            self.connection.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise InvalidInput(
                f"reproduce: {path} must be a file of results or absent, got another file ({error}); move it away"
            ) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()

    def keys(self) -> set[str]:
        """Of the runs that are there."""
        rows = self.connection.execute("SELECT key FROM runs WHERE version = ?", (self.version,))
        return {key for (key,) in rows}

    def add(self, run: Run, outcome: Outcome) -> None:
        """Keep what came of a run; what is there already stays."""
        spec, made, who = asdict(run), outcome.made, (outcome.key, self.version)
        values = [*who, json.dumps(spec, sort_keys=True), *spec.values()]
        values += [json.dumps(outcome.facts), outcome.seconds, made["python"], made["numpy"], made["at"]]
        with self.connection:
            marks = ", ".join("?" * len(values))
            if not self.connection.execute(f"INSERT OR IGNORE INTO runs VALUES ({marks})", values).rowcount:
                return
            rows = [(*who, cost, loss) for cost, loss in outcome.losses.items()]
            self.connection.executemany("INSERT INTO losses VALUES (?, ?, ?, ?)", rows)
            points = [(*who, cost, json.dumps(curve)) for cost, curve in outcome.curves.items()]
            self.connection.executemany("INSERT INTO curves VALUES (?, ?, ?, ?)", points)

    def results(self) -> dict[str, Result]:
        """Of all runs of this version, by key."""
        self.connection.execute("BEGIN")  # one state of the file, whoever else is writing
        try:
            return self._results()
        finally:
            self.connection.rollback()

    def _results(self) -> dict[str, Result]:
        found: dict[str, Result] = {}
        query = "SELECT key, facts, seconds FROM runs WHERE version = ?"
        for key, facts, seconds in self.connection.execute(query, (self.version,)):
            found[key] = Result({}, json.loads(facts), seconds)
        query = "SELECT key, cost, loss FROM losses WHERE version = ?"
        for key, cost, loss in self.connection.execute(query, (self.version,)):
            found[key].losses[cost] = loss
        return found

    def curves(self, keys: Iterable[str], cost: str) -> list[tuple[list[float], list[float]]]:
        """T and the loss so far, of those runs that have a curve in this cost."""
        found = []
        for key in keys:
            query = "SELECT cost, points FROM curves WHERE key = ? AND version = ? AND cost IN ('t', ?)"
            parts = dict(self.connection.execute(query, (key, self.version, cost)).fetchall())
            if len(parts) == 2:
                found.append((json.loads(parts["t"]), json.loads(parts[cost])))
        return found

    def provenance(self) -> dict[str, Any]:
        """Versions, seeds and times of the runs."""
        query = """SELECT count(*), group_concat(DISTINCT python), group_concat(DISTINCT numpy),
                   group_concat(DISTINCT seed), min(made_at), max(made_at), sum(seconds) FROM runs WHERE version = ?"""
        names = ("runs", "python", "numpy", "seeds", "first", "last", "cpu_seconds")
        row = self.connection.execute(query, (self.version,)).fetchone()
        return {"csdpp": self.version, **dict(zip(names, row, strict=True))}

    def export(self, path: Path) -> None:
        """One row for each run and cost as .parquet (needs polars) or .csv."""
        query = """SELECT runs.*, losses.cost AS measured, losses.loss FROM runs
                   JOIN losses USING (key, version) ORDER BY data, learner, share, noise, repeat, measured"""
        with closing(self.connection.execute(query)) as cursor:
            names = [column[0] for column in cursor.description]
            rows = cursor.fetchall()
        if path.suffix not in {".parquet", ".csv"}:
            raise InvalidParameter(f"reproduce: export must end in .parquet or .csv, got {path.name!r}; rename it")
        try:
            import polars
        except ImportError:
            raise ImportError("reproduce: export needs polars; pip install 'csdpp[experiments]'") from None
        frame = polars.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)
        frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
