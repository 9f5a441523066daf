"""Ctrl-C between blocks: never in the middle of one, where directions and regressor are not of the same row."""

import _signal  # what `signal` wraps to give enums, which takes 20 microseconds of a row that is learned by itself
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, at the end of a block: the first ``rows`` of the call are learned, the others are not."""

    def __init__(self, rows: int) -> None:
        super().__init__(f"the first {rows} rows of this call are learned")
        self.rows = rows


class Interrupts:
    """Within the context Ctrl-C waits for the next `check`. About 3 microseconds.

    Not with ``wait=False``, and not where Python does not ask for it: in other threads than the main one, and
    where SIGINT is ignored.
    """

    def __init__(self, wait: bool = True) -> None:
        handler: Any = _signal.getsignal(signal.SIGINT)
        self.wait = wait and callable(handler) and threading.current_thread() is threading.main_thread()
        self.handler = handler
        self.came: tuple[int, FrameType | None] | None = None
        self.rows = 0

    def __enter__(self) -> Self:
        if self.wait:
            _signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.came = number, frame

    def check(self, rows: int) -> None:
        """After ``rows`` rows are learned: what Ctrl-C would have done, if it came."""
        self.rows = rows
        if self.came is None:
            return
        came, self.came = self.came, None
        try:
            self.handler(*came)
        except KeyboardInterrupt:
            raise Interrupted(rows) from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.wait:
            _signal.signal(signal.SIGINT, self.handler)
            if kind is None:
                self.check(self.rows)
