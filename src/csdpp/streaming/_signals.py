"""SIGTERM and Ctrl-C at a moment that suits: between two blocks, or while waiting for rows, never amid learning."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Stopped(Exception):
    """A signal came while rows were awaited."""


class Signals:
    """While it is open, SIGTERM and SIGINT are kept in `got`; in other threads than the main one, nothing is done."""

    def __init__(self) -> None:
        self.got: int | None = None
        self.waiting = False
        self.before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self.before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.got = number
        if self.waiting:
            self.waiting = False  # a second signal must not break what is done about the first
            raise Stopped

    def wait(self, call: Callable[[], T]) -> T:
        """The result of a call that a signal may interrupt, as `Stopped`."""
        if self.got is not None:
            raise Stopped
        self.waiting = True
        try:
            return call()
        finally:
            self.waiting = False
