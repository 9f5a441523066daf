"""The store: one SQLite file that holds items, answers in the order in which they are learned, and names.

`write` puts many requests into one transaction, each whole or not at all, and returns when the disk has them. A row
of the log carries a checksum over all that learning it depends on. See docs/service.md for the tables.
"""

import json
import sqlite3
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from csdpp.errors import CsdppError
from csdpp.service.rows import Answer, Batch, Names, Refused, Row, unpack_features

FORMAT = 1
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE names (kind TEXT, place INTEGER, name TEXT NOT NULL, PRIMARY KEY (kind, place)) WITHOUT ROWID;
CREATE TABLE items (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, at REAL NOT NULL,
                    x BLOB NOT NULL, said TEXT, version INTEGER, seq INTEGER);
CREATE TABLE log (seq INTEGER PRIMARY KEY, item INTEGER NOT NULL, batch INTEGER NOT NULL, d INTEGER NOT NULL,
                  K INTEGER NOT NULL, y TEXT NOT NULL, at REAL NOT NULL, crc INTEGER NOT NULL);
"""
_REPLAY = """SELECT log.seq, log.batch, log.d, log.K, log.y, log.crc, items.id, items.x
FROM log LEFT JOIN items ON items.n = log.item WHERE log.seq > ? ORDER BY log.seq"""


class StoreError(CsdppError):
    """A store that cannot be used: damaged, read-only, full, of another service or version."""


@dataclass(slots=True)
class Job:
    """Rows of a request. ``each``: what is wrong with one row does not touch the others (NDJSON)."""

    kind: str  # "keep", "learn" or "feedback"
    rows: list[Row]
    each: bool = False
    done: Any = None  # what to call with the results


@dataclass(slots=True)
class Written:
    """Of each row its sequence number (0: nothing was learned), or why it was refused; and what is to be learned."""

    results: list[int | Refused]
    batch: Batch | None = None
    repeated: set[int] = field(default_factory=set)  # rows that the log had already


class Store:
    """The file, and the names in it. One thread writes; `read_item` and `newest` have a connection of their own."""

    def __init__(self, path: Path, names: Names, learner: dict[str, Any]) -> None:
        self.path, self.names = path, names
        try:
            self._db = self._connect()
            self._prepare(learner)
            self._reader = self._connect()
            self._reader.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            raise StoreError(f"{path}: cannot be opened for writing ({error}); {_remedy(error)}") from None

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=10.0)

    def _prepare(self, learner: dict[str, Any]) -> None:
        db = self._db
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise StoreError(f"{self.path}: must be on a disk where SQLite can keep a write-ahead log, got {mode}")
        db.execute("PRAGMA synchronous = FULL")  # a commit is on the disk when it returns
        db.execute("PRAGMA wal_autocheckpoint = 0")  # see `tidy`
        db.execute("PRAGMA journal_size_limit = 67108864")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, FORMAT):
            raise StoreError(f"{self.path}: must be a store of format {FORMAT}, got {version}; use a newer csdpp")
        db.execute("BEGIN IMMEDIATE")
        if version == 0:
            for statement in _TABLES.split(";"):
                db.execute(statement)
            db.execute("INSERT INTO meta VALUES ('learner', ?)", (json.dumps(learner),))
            db.execute(f"PRAGMA user_version = {FORMAT}")
        began = json.loads(db.execute("SELECT value FROM meta WHERE key = 'learner'").fetchone()[0])
        if began != json.loads(json.dumps(learner)):
            raise StoreError(f"{self.path}: was begun with the learner {began}, got {learner}; take another folder")
        # A write, so that a disk that is full or read-only says so now.
        db.execute("INSERT OR REPLACE INTO meta VALUES ('started', ?)", (str(time.time()),))
        self._read_names()
        db.execute("COMMIT")

    def _read_names(self) -> None:
        wanted = {"feature": self.names.feature_list[:], "label": self.names.label_list[:]}
        self.names.forget(0, 0)
        for kind, place, name in self._db.execute("SELECT kind, place, name FROM names ORDER BY kind, place"):
            if self.names.add(kind, name) != place:
                raise StoreError(f"{self.path}: the names of {kind}s are damaged at {place}; restore a backup")
        d, K = self.known
        for kind, names in wanted.items():
            have = self.names.features if kind == "feature" else self.names.labels
            for name in names:
                if name not in have:
                    self.names.add(kind, name)
        self._write_names(d, K)

    @property
    def known(self) -> tuple[int, int]:
        """How many features and labels have names."""
        return len(self.names.feature_list), len(self.names.label_list)

    @property
    def last(self) -> int:
        """The sequence number of the last answer."""
        return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM log").fetchone()[0])

    def close(self) -> None:
        """Put the write-ahead log into the file and let go of it."""
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._reader.close()
        self._db.close()

    # ---- writing

    def write(self, jobs: Sequence[Job], next_seq: int) -> list[Written]:
        """All jobs in one transaction; sqlite3.Error if none of them is in the store."""
        before = self.known
        self._db.execute("BEGIN IMMEDIATE")
        try:
            done = []
            for job in jobs:
                written = self._write_job(job, next_seq)
                next_seq = next_seq if written.batch is None else written.batch.last + 1
                done.append(written)
            self._db.execute("COMMIT")
        except BaseException:
            self.names.forget(*before)
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return done

    def _write_job(self, job: Job, next_seq: int) -> Written:
        d, K = self.known
        out = Written([])
        plans: list[tuple[Row, int | None, bytes, Answer | None]] = []
        seen: set[str] = set()
        for place, row in enumerate(job.rows):
            before = self.known
            try:
                if row.id in seen:
                    raise Refused(422, "twice", f"item {row.id!r} stands twice in one request")
                seen.add(row.id)
                plan = self._check(job.kind, row)
            except Refused as refused:
                self.names.forget(*before)
                if not job.each:
                    self.names.forget(d, K)
                    where = f"item {place}: " if len(job.rows) > 1 else ""
                    again = Refused(refused.status, refused.code, where + refused.message)
                    return Written([again] * len(job.rows))
                out.results.append(refused)
                continue
            if isinstance(plan, int):
                out.repeated.add(place)
                out.results.append(plan)
            else:
                plans.append((row, *plan))
                out.results.append(0 if plan[2] is None else next_seq)
                next_seq += plan[2] is not None
        self._write_names(d, K)
        self._insert(plans, next_seq, out)
        return out

    def _check(self, kind: str, row: Row) -> int | tuple[int | None, bytes, Answer | None]:
        """The number in the log of what it holds already; or what is to be written: item, features, answer."""
        found = self._db.execute("SELECT n, x, seq FROM items WHERE id = ?", (row.id,)).fetchone()
        answer = None if row.labels is None else self.names.answer(row.labels)
        if kind == "feedback":
            if found is None:
                raise Refused(
                    404, "unknown_item", f"there is no item {row.id!r}; predict it first, or send it to learn"
                )
        else:
            assert row.features is not None
            x = self.names.encode(row.features)
            if found is None:
                return None, x, answer
            if found[1] != x:
                raise Refused(409, "other_features", f"item {row.id!r} has other features; take another id")
        n, x, seq = found
        if answer is None:
            return seq or 0
        if seq is None:
            return n, x, answer
        (text,) = self._db.execute("SELECT y FROM log WHERE seq = ?", (seq,)).fetchone() or ("[[]]",)
        if not Answer.parse(text).includes(answer):
            raise Refused(409, "other_answer", f"item {row.id!r} was answered otherwise before; an answer is final")
        return int(seq)

    def _write_names(self, d: int, K: int) -> None:
        for kind, names, known in (("feature", self.names.feature_list, d), ("label", self.names.label_list, K)):
            new = [(kind, place, names[place]) for place in range(known, len(names))]
            if new:
                self._db.executemany("INSERT INTO names VALUES (?, ?, ?)", new)

    def _insert(self, plans: list[Any], next_seq: int, out: Written) -> None:
        now = time.time()
        answered = [plan for plan in plans if plan[3] is not None]
        first = next_seq - len(answered)
        seq = first
        d, K = self.known
        log = []
        for row, n, x, answer in plans:
            mine = None if answer is None else seq
            if n is None:
                said = None if row.said is None else json.dumps(row.said, separators=(",", ":"))
                n = self._db.execute(
                    "INSERT INTO items (id, at, x, said, version, seq) VALUES (?, ?, ?, ?, ?, ?)",
                    (row.id, now, x, said, row.version, mine),
                ).lastrowid
            else:
                self._db.execute("UPDATE items SET seq = ? WHERE n = ?", (mine, n))
            if answer is not None:
                text = answer.text()
                log.append((seq, n, first, d, K, text, now, _checksum(seq, first, d, K, row.id, x, text)))
                seq += 1
        if log:
            self._db.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?)", log)
            out.batch = Batch(first, d, K, [plan[2] for plan in answered], [plan[3] for plan in answered])

    # ---- reading

    def replay(self, after: int) -> Iterator[Batch]:
        """What was to be learned together, after a sequence number; StoreError where the log is damaged."""
        expected, d, K = after + 1, 0, 0
        rows: list[tuple[bytes, str]] = []
        try:
            for seq, first, at_d, at_K, text, crc, id_, x in self._db.execute(_REPLAY, (after,)):
                if (
                    seq != expected
                    or not isinstance(x, bytes)
                    or crc != _checksum(seq, first, at_d, at_K, id_, x, text)
                ):
                    raise StoreError(
                        f"{self.path}: the log is damaged at answer {expected}; restore a backup of the folder, or cut "
                        f"the log there: csdpp serve --cut-log {expected}"
                    )
                if rows and first == seq:
                    yield _batch(seq - len(rows), d, K, rows)
                    rows = []
                rows.append((x, text))
                expected, d, K = seq + 1, at_d, at_K
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise StoreError(
                f"{self.path}: the log cannot be read at answer {expected} ({error}); {_remedy(error)}"
            ) from None
        if rows:
            yield _batch(expected - len(rows), d, K, rows)

    def cut(self, seq: int) -> int:
        """Drop answers from ``seq`` on, for good: their items wait again. Returns how many."""
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute("UPDATE items SET seq = NULL WHERE seq >= ?", (seq,))
        gone = self._db.execute("DELETE FROM log WHERE seq >= ?", (seq,)).rowcount
        self._db.execute("COMMIT")
        return int(gone)

    def read_item(self, id_: str) -> dict[str, Any] | None:
        """What is known of an item."""
        rows = self._items("WHERE items.id = ?", (id_,))
        return rows[0] if rows else None

    def newest(self, limit: int) -> list[dict[str, Any]]:
        """The items that came last."""
        return self._items("ORDER BY items.n DESC LIMIT ?", (limit,), features=False)

    def _items(self, where: str, parameters: tuple[Any, ...], *, features: bool = True) -> list[dict[str, Any]]:
        query = f"""SELECT items.id, items.at, items.x, items.said, items.version, items.seq, log.y, log.at
        FROM items LEFT JOIN log ON log.seq = items.seq {where}"""
        out = []
        labels, columns = self.names.label_list, self.names.feature_list
        for id_, at, x, said, version, seq, text, answered in self._reader.execute(query, parameters):
            item: dict[str, Any] = {"id": id_, "received": at, "state": "waiting" if seq is None else "learned"}
            if features:
                places, values = unpack_features(x)
                item["features"] = {columns[at]: value for at, value in zip(places, values.tolist(), strict=True)}
            item["predicted"] = None if said is None else [labels[at] for at in json.loads(said)]
            item["version"] = None if said is None else version
            item["seq"], item["answered"], item["answer"] = seq, answered, None
            if text is not None:
                answer = Answer.parse(text)
                item["answer"] = dict.fromkeys((labels[at] for at in answer.yes), True)
                item["answer"] |= dict.fromkeys((labels[at] for at in answer.no or ()), False)
                item["complete"] = answer.no is None
            out.append(item)
        return out

    # ---- keeping it small

    def compact(self, floor: int, keep_items: int, keep_days: float, limit: int = 500) -> int:
        """Delete old items whose answers, if any, are in every snapshot: up to ``floor``. Returns how many."""
        db = self._db
        oldest = time.time() - 86400.0 * keep_days
        (most,) = db.execute("SELECT coalesce(max(n), 0) FROM items").fetchone()
        db.execute("BEGIN IMMEDIATE")
        try:
            gone = db.execute(
                "SELECT n, seq FROM items WHERE (n <= ? OR at < ?) AND (seq IS NULL OR seq <= ?) ORDER BY n LIMIT ?",
                (most - keep_items, oldest, floor, limit),
            ).fetchall()
            db.executemany("DELETE FROM items WHERE n = ?", [(n,) for n, _ in gone])
            db.executemany("DELETE FROM log WHERE seq = ?", [(seq,) for _, seq in gone if seq is not None])
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        db.execute("PRAGMA incremental_vacuum(1000)").fetchall()
        return len(gone)

    def tidy(self) -> None:
        """Move the write-ahead log into the file, beside the writer; called from a thread of its own."""
        with suppress(sqlite3.Error):
            db = self._connect()
            try:
                db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            finally:
                db.close()


def _batch(first: int, d: int, K: int, rows: list[tuple[bytes, str]]) -> Batch:
    return Batch(first, d, K, [x for x, _ in rows], [Answer.parse(text) for _, text in rows])


def _checksum(seq: int, first: int, d: int, K: int, id_: str, x: bytes, text: str) -> int:
    return zlib.crc32(f"{seq},{first},{d},{K},{id_},{text}".encode(), zlib.crc32(x))


def _remedy(error: Exception) -> str:
    said = str(error)
    if "full" in said:
        return "make room on the disk"
    if "readonly" in said or "unable to open" in said:
        return "let the service write into the folder"
    if "malformed" in said or "not a database" in said:
        return "the file is damaged: restore a backup of the folder"
    return "see what the disk says"
