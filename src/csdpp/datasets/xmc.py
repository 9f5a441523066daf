"""The formats of the extreme classification collections, both counted from 0, a row in each line.

Version 1 is one file: `N D L` (rows, features, labels), then `label,label index:value index:value`. Version 2 is two
files, features and labels: `rows columns`, then `index:value index:value`. The header says how many rows follow, so a
line with nothing in it is a row with nothing in it, and a file that was cut short is found out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from scipy import sparse

from csdpp.datasets._entries import Bounds, Lines, read_entries, read_labels, read_plain
from csdpp.datasets._text import FilePath, Source, opened, paths_of, shown
from csdpp.datasets._types import Dataset, fail, few, stack_emptying
from csdpp.datasets.blocks import Block, rebatched, stretches
from csdpp.datasets.svmlight import numbered
from csdpp.errors import InvalidParameter

MOST = 1 << 24  # columns: each of them gets a name


def load_xmc(
    path: FilePath | Iterable[FilePath],
    label_path: FilePath | Iterable[FilePath] | None = None,
    *,
    name: str | None = None,
    encoding: str = "utf-8",
) -> Dataset:
    r"""A data set of the extreme classification collections, version 1 or 2, as CSR.

    Parameters
    ----------
    path : path, or paths of files that are joined in this order
        Version 1: features and labels (header `N D L`). Version 2: features (header `rows columns`).
    label_path : path or paths, in the same order
        Version 2 only: the files of labels.
    name : str, default: the first file's, without ending
    encoding : str

    Raises
    ------
    DataFormatError
        At a line that is not as the format wants it, or where there are more or fewer rows than the header says,
        with file and line.

    Notes
    -----
    Features are named x0, x1, ... and labels y0, y1, ... O(size of the files).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "v1.txt").write_text("2 4 3\n0,2 0:0.5 3:2\n 1:1.5\n")
    >>> ds = load_xmc(folder / "v1.txt")
    >>> ds.X.toarray().tolist(), ds.Y.toarray().tolist()
    ([[0.5, 0.0, 0.0, 2.0], [0.0, 1.5, 0.0, 0.0]], [[1, 0, 1], [0, 0, 0]])
    >>> _ = (folder / "X.txt").write_text("2 4\n0:0.5 3:2\n1:1.5\n")
    >>> _ = (folder / "Y.txt").write_text("2 3\n0:1 2:1\n\n")
    >>> again = load_xmc(folder / "X.txt", folder / "Y.txt")
    >>> bool((again.X != ds.X).nnz or (again.Y != ds.Y).nnz)
    False
    """
    paths = paths_of("load_xmc", path)
    label_paths: list[Any] = [None] * len(paths) if label_path is None else paths_of("load_xmc", label_path)
    if len(label_paths) != len(paths):
        raise InvalidParameter(
            f"load_xmc: label_path must name a file for each of path, got {len(label_paths)} for {len(paths)}; "
            "pass them in the same order"
        )
    sizes: list[tuple[int, int]] = []
    Xs: list[Any] = []
    Ys: list[Any] = []
    for one, labels in zip(paths, label_paths, strict=True):
        with _Reader(one, labels, encoding) as reader:
            sizes.append((reader.d, reader.K))
            if sizes[-1] != sizes[0]:
                got = f"{reader.d} and {reader.K}, as in {paths[0]} {sizes[0][0]} and {sizes[0][1]}"
                fail(reader.path, 1, f"expected as many features and labels as in the first file, got {got}")
            for X, Y in reader.pieces(sys.maxsize):
                Xs.append(X)
                Ys.append(Y)
    d, K = sizes[0]
    return Dataset(stack_emptying(Xs), stack_emptying(Ys), numbered("x", d), numbered("y", K), name or paths[0].stem)


def stream_xmc(
    source: Source,
    rows: int,
    *,
    label_path: FilePath | None = None,
    encoding: str = "utf-8",
    labelled: bool = True,
    feature_names: tuple[str, ...] = (),
    label_names: tuple[str, ...] = (),
) -> Iterator[Block]:
    """Blocks of `rows` rows; parameters as in `load_xmc`. Names given stand for the first columns."""
    if label_path is not None and not isinstance(label_path, str | Path):
        raise InvalidParameter(f"stream: label_path must name one file, got {label_path!r}; stream one set at a time")
    first_row = 0
    with _Reader(source, label_path if labelled else None, encoding, labelled) as reader:
        features = reader.names("feature", feature_names, reader.d)
        labels = reader.names("label", label_names, reader.K) if labelled else ()
        for X, Y in rebatched(reader.pieces(rows), rows):
            yield Block(X, Y if labelled else None, features, labels, first_row)
            first_row += X.shape[0]


class _Reader:
    """One file or two, their headers read."""

    def __init__(self, source: Source, label_path: FilePath | None, encoding: str, labelled: bool = True) -> None:
        self.path, self.label_path, self.labelled = shown(source), label_path, labelled
        self.stack = ExitStack()
        self.label_file: TextIO | None = None
        try:
            self.file = self.stack.enter_context(opened(source, encoding))
            header = self._header(self.file, self.path, (3,) if label_path is None else (2,))
            if len(header) == 3:
                self.n, self.d, self.K = header
                return
            self.n, self.d = header
            self.K = 1  # unless there are labels
            if label_path is not None:
                self.label_file = self.stack.enter_context(opened(label_path, encoding))
                rows, self.K = self._header(self.label_file, str(label_path), (2,))
                if rows != self.n:
                    fail(str(label_path), 1, f"expected {self.n} rows, as in {self.path}, got {rows}")
        except BaseException as error:
            self.stack.__exit__(type(error), error, error.__traceback__)
            raise

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *error: Any) -> bool | None:
        return self.stack.__exit__(*error)

    def _header(self, file: TextIO, path: str, lengths: tuple[int, ...]) -> list[int]:
        """The numbers of the first line."""
        line = file.readline()
        numbers = line.split()
        whole = all(text.isascii() and text.isdecimal() and len(text) < 16 for text in numbers)
        lengths = lengths if self.labelled else (2, 3)
        if not whole or len(numbers) not in lengths:
            wanted = "'rows columns'" if lengths == (2,) else "'rows features labels'"
            hint = "; are labels in a file of their own? pass label_path=" if whole and len(numbers) == 2 else ""
            fail(path, 1, f"expected {wanted} in whole numbers, got {few([line.strip()])}{hint}")
        sizes = [int(text) for text in numbers]
        if not sizes[0] or not all(0 < size <= MOST for size in sizes[1:]):
            fail(path, 1, f"expected rows, and 1 to {MOST} columns, got {few([line.strip()])}")
        return sizes

    def names(self, what: str, given: tuple[str, ...], n: int) -> tuple[str, ...]:
        """Names of the columns, those given first."""
        if len(given) > n:
            fail(self.path, 1, f"expected at least {len(given)} {what}s, as many as are known beforehand, got {n}")
        return (*given, *numbered("xy"[what == "label"], n)[len(given) :])

    def pieces(self, rows: int) -> Iterator[tuple[Any, Any]]:
        """Features and labels in stretches of at most `rows` rows, as many as the header says."""
        found = 0
        for number, run in stretches(self.file, 2, rows, lambda line: True):
            run = self._rows(run, number, self.n - found, self.path)
            if run:
                yield self._parsed(run, number)
            found += len(run)
        if found < self.n:
            fail(self.path, found + 1, f"expected {self.n} rows, as the first line says, got {found}")
        if self.label_file is not None:
            self._rows(list(self.label_file), self.n + 2, 0, str(self.label_path))

    def _rows(self, run: list[str], number: int, most: int, path: str) -> list[str]:
        """The lines that are rows; below the last one blank lines are let pass."""
        for i, line in enumerate(run[most:], number + most):
            if line.strip():
                fail(path, i, f"expected {self.n} rows, as the first line says, got more")
        return run[:most]

    def _parsed(self, run: list[str], number: int) -> tuple[Any, Any]:
        lines = Lines(self.path, range(number, number + len(run)))
        if self.label_file is not None:
            plain = read_plain(run, Bounds(self.d, 1, 0, 0, labelled=False))
            X = plain[0] if plain is not None else read_entries(run, lines, self.d, 0)
            return X, self._label_rows(self.label_file, number, len(run))
        if self.labelled and (plain := read_plain(run, Bounds(self.d, self.K, 0, 0))) is not None:
            return plain
        heads: list[str] = []
        bodies: list[str] = []
        for line in run:
            head, _, body = line.replace("\t", " ").partition(" ")
            has_labels = ":" not in head
            heads.append(head.strip() if has_labels else "")
            bodies.append(body if has_labels else line)
        X = read_entries(bodies, lines, self.d, 0)
        if not self.labelled:
            return X, sparse.csr_array((len(run), self.K), dtype=np.uint8)
        return X, read_labels(heads, lines, self.K, 0)

    def _label_rows(self, file: TextIO, number: int, n: int) -> sparse.csr_array:
        """The next rows of the file of labels."""
        path = str(self.label_path)
        run = list(islice(file, n))
        if len(run) < n:
            fail(path, number + len(run) - 1, f"expected {self.n} rows, as the first line says, got fewer")
        lines = Lines(path, range(number, number + n))
        plain = read_plain(run, Bounds(self.K, 1, 0, 0, labelled=False))
        Y = plain[0] if plain is not None else read_entries(run, lines, self.K, 0, "label")
        if (odd := np.flatnonzero(Y.data != 1)).size:
            row = int(np.searchsorted(Y.indptr, odd[0], side="right")) - 1
            lines.refuse(row, f"1 for label {Y.indices[odd[0]]}", f"{Y.data[odd[0]]:g}")
        return Y.astype(np.uint8)
