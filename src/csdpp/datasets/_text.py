"""Files of text: their encoding, and errors that say where it is another."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from csdpp.datasets._types import fail
from csdpp.errors import MissingData


@contextmanager
def opened(path: Path, encoding: str) -> Iterator[TextIO]:
    """The file as text, without a byte-order mark; an error with its line where the encoding is another."""
    if not path.is_file():
        raise MissingData(f"{path}: expected a file, got none; check the path")
    try:
        with path.open(encoding="utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding) as file:
            yield file
    except UnicodeError:
        # The decoder works in chunks and does not know the line.
        with path.open("rb") as file:
            decodable = (raw.decode(encoding, "ignore").encode(encoding) == raw for raw in file)
            line = next((i for i, good in enumerate(decodable, 1) if not good), 1)
        fail(str(path), line, f"expected text in {encoding}, got other bytes; pass encoding=, say 'latin-1'")
