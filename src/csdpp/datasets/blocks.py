"""Rows of a file or pipe in blocks, so that what is learned from may be larger than memory.

The contract of `csdpp.datasets.stream`, whatever the format:

* A block is `X` (float64, an array or CSR), `Y` (uint8, an array or CSR; see below), `feature_names` and `label_names`
  for their columns, `first_row` (which row of the source its first one is, from 0) and `ids` (a text or None for each
  row where the rows bring ids, else None).
* Blocks have exactly `block_rows` rows, the last one of a file maybe fewer; the source's order is kept; none is empty.
* Names only grow, at the end: those of a block begin with those of the block before, and while nothing new comes they
  are the same tuple (`is`). Only JSON lines bring new names in mid-stream. They begin with those that the caller gives
  (`feature_names=`, `label_names=`): the columns of a learner that knows them are the first ones of X and Y. A table or
  an ARFF file must have all given features and labels; svmlight, which has no names, takes the given ones by place.
* `Y` is None where `labelled=False` was asked for. Where some labels are unknown (JSON lines only) it is a float64
  array with NaN there.
* A missing feature is NaN in `X`.
* No more is read from a pipe than the rows of a block need: with `block_rows=1` each row comes as soon as its line is
  there. Memory: the text and the arrays of one block.
* A malformed line raises `DataFormatError` (file, line, what was expected) when its block is due; the blocks before
  it have been given.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from csdpp.datasets._types import Dataset, few, stack_emptying
from csdpp.errors import DataFormatError

CHARACTERS = 1 << 20  # of text that are parsed at once: the bound on what parsing needs beyond the arrays


@dataclass(frozen=True, eq=False, repr=False)
class Block:
    """Some rows of a stream with the names of their columns; the contract is at the top of this module."""

    X: NDArray[np.float64] | sparse.csr_array
    Y: NDArray[np.uint8] | NDArray[np.float64] | sparse.csr_array | None
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    first_row: int = 0
    ids: tuple[str | None, ...] | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def rows_from(self, row: int) -> Block:
        """The block without its first rows."""
        Y = None if self.Y is None else self.Y[row:]
        return replace(self, X=self.X[row:], Y=Y, first_row=self.first_row + row, ids=self.ids and self.ids[row:])

    def __repr__(self) -> str:
        end = self.first_row + len(self)
        return f"Block(rows {self.first_row} to {end - 1}, d={len(self.feature_names)}, K={len(self.label_names)})"


def stretches(
    lines: Iterable[str], first: int, rows: int, is_row: Callable[[str], object] = str.strip
) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines with the number of their first line: at most `rows` rows and about `CHARACTERS` of text each.

    `first` is the number of the next line; `is_row` tells rows from comments and blank lines. A line is taken only when
    the run needs it.
    """
    run: list[str] = []
    if rows == sys.maxsize and isinstance(lines, io.TextIOBase):  # the same without looking at each line
        while run := lines.readlines(CHARACTERS):
            yield first, run
            first += len(run)
        return
    found = characters = 0
    for line in lines:
        run.append(line)
        found += bool(is_row(line))
        characters += len(line)
        if found == rows or characters >= CHARACTERS:
            yield first, run
            first += len(run)
            run, found, characters = [], 0, 0
    if run:
        yield first, run


def rebatched(pieces: Iterable[tuple[Any, Any]], rows: int) -> Iterator[tuple[Any, Any]]:
    """The same rows in pieces of exactly `rows`, the last one maybe fewer; a piece that fits is passed on as it is."""
    waiting: list[tuple[Any, Any]] = []
    n = 0
    for X, Y in pieces:
        start = 0
        while n + X.shape[0] - start >= rows:
            end = start + rows - n
            waiting.append((X[start:end], Y[start:end]) if (start, end) != (0, X.shape[0]) else (X, Y))
            yield _joined(waiting)
            start, n = end, 0
        if start < X.shape[0]:
            waiting.append((X[start:], Y[start:]) if start else (X, Y))
            n += X.shape[0] - start
    if waiting:
        yield _joined(waiting)


def _joined(waiting: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """The pieces as one; empties the list."""
    Xs, Ys = [X for X, _ in waiting], [Y for _, Y in waiting]
    waiting.clear()
    return stack_emptying(Xs), stack_emptying(Ys)


def blocks_of(data: Dataset, block_rows: int) -> Iterator[Block]:
    """A set that is in memory, in blocks."""
    for start in range(0, data.X.shape[0], block_rows):
        rows = slice(start, start + block_rows)
        yield Block(data.X[rows], data.Y[rows], data.feature_names, data.label_names, start)


def arranged(
    blocks: Iterable[Block],
    labelled: bool,
    feature_names: tuple[str, ...] = (),
    label_names: tuple[str, ...] = (),
    source: str = "stream",
) -> Iterator[Block]:
    """Blocks of a source with fixed names, their columns in the order given; others behind those given."""
    of: dict[int, list[int]] = {}
    names: list[tuple[str, ...]] = []
    for block in blocks:
        if not names:
            label_names = label_names if labelled else ()
            for i, (there, wanted) in enumerate(
                ((block.feature_names, feature_names), (block.label_names, label_names))
            ):
                if lacking := [name for name in wanted if name not in set(there)]:
                    what = "label" if i else "feature"
                    raise DataFormatError(
                        f"{source}: expected each {what} that is known beforehand, got none named {few(lacking)}; "
                        f"check that the source belongs to the learner"
                    )
                place = {name: j for j, name in enumerate(there)}
                order = dict.fromkeys((*wanted, *there))
                names.append(tuple(order))
                if names[i] != there:
                    of[i] = [place[name] for name in order]
        X = block.X[:, of[0]] if 0 in of else block.X
        Y = block.Y[:, of[1]] if 1 in of and block.Y is not None else block.Y
        labels = names[1] if labelled else ()
        yield replace(block, X=X, Y=Y if labelled else None, feature_names=names[0], label_names=labels)
