"""What stands between requests and the disk: a store thread, a learner thread, a keeper of snapshots.

    submit -> [waiting] -> store thread: one transaction -> [stored] -> learner thread: learn, publish -> answer

Rows that are neither learned nor refused are counted, and no more than ``max_waiting`` are let in. The order of the
log is the order of learning. Whoever predicts reads `published` and waits for nobody.
"""

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from csdpp.container import write_file
from csdpp.errors import CsdppError
from csdpp.service.learning import KEPT, Published, restore, snapshot_path, snapshot_seq, snapshots
from csdpp.service.rows import Batch, Names, Refused
from csdpp.service.settings import Settings
from csdpp.service.store import Job, Store, StoreError, Written

log = logging.getLogger("csdpp.service")
#: Rows in one commit, and seconds of learning before the copy for predicting is made anew.
_ROWS, _SLICE = 4000, 0.02
_STOP: Any = object()


class Pipeline:
    """The threads, and all that they own."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.folder = Path(settings.folder)
        self.names = Names(
            grow=settings.grow,
            max_features=settings.max_features,
            max_labels=settings.max_labels,
            max_value=settings.max_value,
        )
        for kind, names in (("feature", settings.features), ("label", settings.labels)):
            for name in names:
                self.names.add(kind, name)
        self.sick = ""  # why nothing can be stored now
        self.dead = ""  # why nothing can be learned any more
        self.ending = False  # told to stop: what was accepted is finished
        self.stopping = False  # nothing more is accepted
        self.waiting = 0  # rows let in, and neither learned nor refused
        self._count = threading.Lock()
        self._to_store: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._to_learn: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._to_keep: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._speed: deque[tuple[float, int]] = deque(maxlen=64)  # when, and rows done in all
        self.rows_done = 0
        self.snapshot: dict[str, Any] = {"seq": 0, "at": None, "error": None}
        self.on_death: Callable[[], None] = lambda: None

    # ---- starting and stopping

    def attach(self) -> None:
        """Take the folder and open the store; `StoreError` says why it cannot be."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock_folder()
        except OSError as error:
            raise StoreError(f"{self.folder}: must be a folder to write into ({error.strerror})") from None
        self.store = Store(self.folder / "store.sqlite3", self.names, self.settings.learner)

    def open(self) -> None:
        """Store, snapshot and replay: afterwards the model is what it was. `StoreError` says why it cannot be."""
        self.attach()
        self.learning = restore(self.folder, self.settings.learner, self.names)
        last = self.store.last
        start, came = time.perf_counter(), self.learning.seq
        replayed = self.learning.replay(self.store.replay(came))
        if came > last:
            log.error("the log ends at answer %d, the snapshot holds %d: the log has lost its tail", last, came)
        log.info("replayed %d answers after %d in %.2f s", replayed, came, time.perf_counter() - start)
        self.next_seq = max(last, came) + 1
        self.snapshot["seq"] = came
        self.published = Published(self.learning.seq, self.learning.model)

    def _lock_folder(self) -> None:
        """Two services in one folder would each learn half."""
        self._lock = open(self.folder / "lock", "w")  # noqa: SIM115 (it stays open)
        with suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise StoreError(f"{self.folder}: another csdpp serve works in this folder; stop it first") from None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the threads run; results come back in ``loop``."""
        self.loop = loop
        work = {"store": self._store_loop, "learner": self._learn_loop, "keeper": self._keep_loop}
        self._threads = [threading.Thread(target=target, name=name, daemon=True) for name, target in work.items()]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Finish what was let in, take a snapshot, close. Blocks."""
        self.stopping = True
        store, learner, keeper = self._threads
        self._to_store.put(_STOP)
        store.join()
        self._to_learn.put(_STOP)
        learner.join()
        if not self.dead and self.learning.seq > self.snapshot["seq"]:
            self._to_keep.put((self.learning.seq, self.learning.dumps(), None))
        self._to_keep.put(_STOP)
        keeper.join()

    def close(self) -> None:
        """Let go of the store and the folder."""
        if hasattr(self, "store"):
            self.store.close()
        if hasattr(self, "_lock"):
            self._lock.close()

    # ---- what the event loop calls

    @property
    def trouble(self) -> str:
        """Why nothing can be learned now; empty if all is well."""
        return self.dead or self.sick or ("stopping" if self.ending or self.stopping else "")

    def submit(self, job: Job) -> "asyncio.Future[tuple[Written, int]]":
        """Results and the version of the model after them. `Refused` if there is no room."""
        rows = len(job.rows)
        if self.dead or self.stopping:
            raise Refused(503, "unavailable", f"nothing can be stored: {self.trouble}", retry=5)
        with self._count:
            if self.waiting and self.waiting + rows > self.settings.max_waiting:
                raise Refused(429, "busy", f"{self.waiting} rows are waiting already; send slower", self.retry_after())
            self.waiting += rows
        future: asyncio.Future[tuple[Written, int]] = self.loop.create_future()
        job.done = future
        self._to_store.put(job)
        return future

    def checkpoint(self) -> "asyncio.Future[dict[str, Any]]":
        """A snapshot of all that was accepted before."""
        if self.dead or self.stopping:
            raise Refused(503, "unavailable", f"no snapshot can be taken: {self.trouble}", retry=5)
        future: asyncio.Future[dict[str, Any]] = self.loop.create_future()
        self._to_store.put(future)
        return future

    def retry_after(self) -> int:
        """Seconds in which half of what is waiting is done, from 1 to 30."""
        return max(1, min(30, round(0.5 * self.waiting / max(self.rows_per_second(), 1.0))))

    def rows_per_second(self) -> float:
        """Rows done a second, over some 15 busy seconds."""
        marks = list(self._speed)
        if len(marks) < 2 or time.monotonic() - marks[-1][0] > 5.0:
            return 0.0
        (start, before), (end, after) = marks[0], marks[-1]
        return (after - before) / max(end - start, 1e-3)

    # ---- results

    def _answer(self, answers: list[tuple[Any, Any]]) -> None:
        """Resolve futures, in their loop, at one go."""

        def resolve() -> None:
            for future, result in answers:
                if not future.done():
                    if isinstance(result, Exception):
                        future.set_exception(result)
                    else:
                        future.set_result(result)

        if answers:
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self.loop.call_soon_threadsafe(resolve)

    def _done(self, rows: int) -> None:
        with self._count:
            self.waiting -= rows
        self.rows_done += rows
        now = time.monotonic()
        if not self._speed or now - self._speed[-1][0] > 0.25:
            self._speed.append((now, self.rows_done))

    # ---- the store thread

    def _store_loop(self) -> None:
        running = True
        while running:
            work = [self._to_store.get()]
            rows = 0
            while rows < _ROWS:
                rows += len(work[-1].rows) if isinstance(work[-1], Job) else 0
                try:
                    work.append(self._to_store.get_nowait())
                except queue.Empty:
                    break
            running = _STOP not in work
            jobs = [one for one in work if isinstance(one, Job)]
            if jobs:
                self._write(jobs)
            for one in work:
                if isinstance(one, asyncio.Future):
                    self._to_learn.put(one)
                elif callable(one):
                    one()

    def _write(self, jobs: list[Job]) -> None:
        try:
            written = self.store.write(jobs, self.next_seq)
        except (sqlite3.Error, CsdppError, OSError) as error:
            self.sick = f"the store cannot be written ({error})"
            log.error("%s", self.sick)
            refused = Refused(503, "storage", self.sick, retry=5)
            self._done(sum(len(job.rows) for job in jobs))
            self._answer([(job.done, refused) for job in jobs])
            return
        except Exception as error:
            self._die("store", error, [job.done for job in jobs])
            return
        self.sick = ""
        answers, rows, version = [], 0, self.published.version
        for job, result in zip(jobs, written, strict=True):
            if result.batch is None:
                answers.append((job.done, (result, version)))
                rows += len(job.rows)
            else:
                self.next_seq = result.batch.last + 1
                self._to_learn.put((job, result))
        self._done(rows)  # before the answer: who has it may send again
        self._answer(answers)

    # ---- the learner thread

    def _learn_loop(self) -> None:
        due = time.monotonic() + self.settings.checkpoint_seconds
        running = True
        while running:
            try:
                work = [self._to_learn.get(timeout=max(0.0, min(1.0, due - time.monotonic())))]
            except queue.Empty:
                work = []
            start = time.monotonic()
            learned: list[tuple[Any, Written]] = []
            wanted = []
            try:
                while work:
                    one = work.pop()
                    if one is _STOP:
                        running = False
                    elif isinstance(one, asyncio.Future):
                        wanted.append(one)
                    else:
                        learned.append(one)
                        self._learn(one[1].batch)
                    if running and time.monotonic() - start < _SLICE:
                        with suppress(queue.Empty):
                            work.append(self._to_learn.get_nowait())
                if learned:
                    self.published = Published(self.learning.seq, self.learning.model)
                due = self._maybe_snapshot(due, wanted)
            except Exception as error:
                self._die("learner", error, [*wanted, *(job.done for job, _ in learned)])
                return
            self._done(sum(len(job.rows) for job, _ in learned))
            self._answer([(job.done, (result, self.published.version)) for job, result in learned])

    def _learn(self, batch: Batch | None) -> None:
        assert batch is not None
        assert batch.first > self.learning.seq
        self.learning.learn(batch)

    def _maybe_snapshot(self, due: float, wanted: list[Any]) -> float:
        new = self.learning.seq - self.snapshot["seq"]
        late = time.monotonic() >= due
        if wanted or (new and late) or new >= self.settings.checkpoint_rows:
            if self._to_keep.qsize() <= 1 or wanted:
                self._to_keep.put((self.learning.seq, self.learning.dumps(), wanted))
                self.snapshot["seq"] = self.learning.seq
            return time.monotonic() + self.settings.checkpoint_seconds
        return time.monotonic() + self.settings.checkpoint_seconds if late else due

    def _die(self, who: str, error: Exception, futures: list[Any]) -> None:
        """A bug: what is on the disk is right, and a restart will show it."""
        self.dead = f"the {who} thread failed"
        log.critical("%s", self.dead, exc_info=error)
        refused = Refused(503, "unavailable", f"{self.dead}; the service restarts", retry=5)
        self._answer([(future, refused) for future in futures])
        self.loop.call_soon_threadsafe(self.on_death)

    # ---- the keeper: snapshots, and a store that does not grow

    def _keep_loop(self) -> None:
        while True:
            try:
                one = self._to_keep.get(timeout=1.0)
            except queue.Empty:
                self.store.tidy()
                continue
            if one is _STOP:
                return
            seq, data, wanted = one
            try:
                write_file(snapshot_path(self.folder, seq), [data])
                self.snapshot.update(kept=seq, at=time.time(), error=None, bytes=len(data))
                for old in snapshots(self.folder)[KEPT:]:
                    old.unlink()
            except OSError as error:
                log.error("snapshot at answer %d cannot be written: %s", seq, error)
                self.snapshot["error"] = str(error)
                refused = Refused(503, "storage", f"the snapshot cannot be written ({error})", retry=5)
                self._answer([(future, refused) for future in wanted or ()])
                continue
            self._answer([(future, dict(self.snapshot)) for future in wanted or ()])
            self._to_store.put(self._compact)

    def _compact(self) -> None:
        """In the store thread, a little at a time."""
        kept = snapshots(self.folder)
        floor = snapshot_seq(kept[-1]) if len(kept) > 1 else 0  # each of them can be fallen back to
        try:
            gone = self.store.compact(floor, self.settings.keep_items, self.settings.keep_days)
        except sqlite3.Error as error:
            log.error("the store cannot be made smaller: %s", error)
            return
        if gone >= 500 and not self.stopping:
            self._to_store.put(self._compact)
