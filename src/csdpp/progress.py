"""A progress bar of one line, on a terminal only and without a dependency."""

import os
import shutil
import sys
import time
from typing import Self

import numpy as np

PAUSE = 0.1  # seconds between two pictures of the bar


class ProgressBar:
    """One line on a terminal, gone when the run is over or an exception flies."""

    def __init__(self, n: int | None, shown: bool | None, *, unit: str = "rows") -> None:
        terminal = sys.stderr is not None and sys.stderr.isatty()
        self.shown = n != 0 and sys.stderr is not None and (terminal if shown is None else bool(shown))
        self.n, self.unit, self.written = n, unit, 0
        self.since: tuple[float, int] | None = None  # the end of the first step, which may have had to compile
        self.drawn = -np.inf

    def __enter__(self) -> Self:
        if self.shown:
            self._write(_line(self.n, 0, "", 0.0, None, _columns(), self.unit))
        return self

    def update(self, done: int, name: str, average: float) -> None:
        """Draw anew if the last picture is old enough."""
        now = time.monotonic()
        if self.shown and now - self.drawn >= PAUSE:
            self.drawn = now
            rate = (done - self.since[1]) / (now - self.since[0]) if self.since else None
            self._write(_line(self.n, done, name, average, rate, _columns(), self.unit))
        if self.since is None:
            self.since = (now, done)

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _write(self, line: str) -> None:
        # Blanks wipe what the last line had more; a terminal made narrower since must not wrap them.
        sys.stderr.write("\r" + line.ljust(min(self.written, _columns())))
        sys.stderr.flush()
        self.written = len(line)


def _line(
    n: int | None, done: int, name: str, average: float, rate: float | None, width: int, unit: str = "rows"
) -> str:
    """The bar in at most ``width`` characters; what matters least goes first. Plain ASCII but for the name."""
    if n is None:  # nobody knows where it ends
        pieces = [f"{done:,} {unit}", f"{name} {average:.4f}" if done and name else ""]
        pieces += [f"{rate:,.0f} {unit.split()[0]}/s"] if rate else []
        return "  ".join(filter(None, pieces))[:width]
    pieces = [f"{done / n:4.0%}", f"{name} {average:.4f}" if done and name else ""]
    if rate:
        minutes, seconds = divmod(round((n - done) / rate), 60)
        hours, minutes = divmod(minutes, 60)
        left = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
        pieces += [f"{left} left", f"{rate:,.0f} {unit.split()[0]}/s"]
    pieces = [piece for piece in [*pieces, f"{done:,}/{n:,} {unit}"] if piece]
    while len(pieces) > 1 and len("  ".join(pieces)) > width:
        pieces.pop()
    room = min(42, width - len("  ".join(pieces)) - 2)
    if room >= 8:
        filled = (room - 2) * done // n
        pieces.insert(1, "[" + "#" * filled + "." * (room - 2 - filled) + "]")
    return "  ".join(pieces)[:width] if width > 4 else pieces[0].strip()[:width]


def _columns() -> int:
    """What fits on a line of the terminal behind stderr; the last column makes some of them wrap."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):  # no terminal, or no file at all
        columns = shutil.get_terminal_size().columns
    return max(1, (columns or 80) - 1)
