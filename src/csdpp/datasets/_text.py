"""Files and streams of text: their encoding, and errors that say where it is another."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from csdpp.datasets._types import fail
from csdpp.errors import InvalidParameter, MissingData

FilePath = str | os.PathLike[str]
Source = FilePath | TextIO


def shown(source: Source) -> str:
    """What errors call it: the path, or what an open stream says of itself."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    return str(getattr(source, "name", "<stream>"))


def paths_of(who: str, path: FilePath | Iterable[FilePath]) -> list[Path]:
    """One path or several, as a list."""
    paths = [Path(path)] if isinstance(path, str | os.PathLike) else [Path(one) for one in path]
    if not paths:
        raise InvalidParameter(f"{who}: path must name one file or more, got an empty list; pass a path")
    return paths


@contextmanager
def opened(source: Source, encoding: str = "utf-8") -> Iterator[TextIO]:
    """The source as text, a file without its byte-order mark; an error with the line where the encoding is another.

    A stream that is open already is left open.
    """
    if not isinstance(source, str | os.PathLike):
        try:
            yield source
        except UnicodeError as error:
            fail(shown(source), 1, f"expected text in {encoding} from here on, got other bytes ({error})")
        return
    path = Path(source)
    if not path.is_file():
        raise MissingData(f"{path}: expected a file, got none; check the path")
    try:
        with path.open(encoding="utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding) as file:
            yield file
    except UnicodeError:
        # The decoder works in chunks and does not know the line.
        with path.open("rb") as binary:
            decodable = (raw.decode(encoding, "ignore").encode(encoding) == raw for raw in binary)
            line = next((i for i, good in enumerate(decodable, 1) if not good), 0)
        if not line:  # of two files that are read side by side it is the other one
            raise
        fail(str(path), line, f"expected text in {encoding}, got other bytes; pass encoding=, say 'latin-1'")


def standard_input(encoding: str) -> TextIO:
    """Standard input as text in the encoding; each line as soon as it is there."""
    if sys.stdin is None:
        raise MissingData("stream: expected data on standard input, got none; pass a path")
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(encoding=encoding, errors="strict")
    return sys.stdin
