"""Multi-label svmlight: `label,label index:value index:value # comment`, a row in each line.

A row without labels begins with a blank, or with its first index:value. A line of blanks is a row with nothing in it;
an empty line, or one with a comment only, is no row. The file does not say how many features and labels there are, nor
whether it counts from 0 or from 1, so the caller does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, TextIO

import numpy as np

from csdpp.datasets._entries import Bounds, Lines, read_entries, read_labels, read_plain
from csdpp.datasets._text import FilePath, Source, opened, paths_of, shown
from csdpp.datasets._types import Dataset, fail, stack_emptying
from csdpp.datasets.blocks import Block, rebatched, stretches
from csdpp.errors import InvalidParameter

Size = int | Literal["largest"]
MOST = 2**31 - 1  # columns, where the caller leaves their number open


def load_svmlight(
    path: FilePath | Iterable[FilePath],
    *,
    n_features: Size,
    n_labels: Size,
    zero_based: bool = False,
    zero_based_labels: bool = True,
    name: str | None = None,
    encoding: str = "utf-8",
) -> Dataset:
    r"""A data set in multi-label svmlight (libsvm) format, as CSR.

    Parameters
    ----------
    path : path, or paths of files that are joined in this order
    n_features, n_labels : int or "largest"
        How many there are. The file does not say, and the largest index is a guess that differs from part to part of a
        set; "largest" takes it all the same.
    zero_based, zero_based_labels : bool
        Whether features and labels count from 0; the usual files count features from 1 and labels from 0. An index
        that does not fit is refused.
    name : str, default: the first file's, without ending
    encoding : str

    Raises
    ------
    DataFormatError
        At a line that is not as the format wants it, with file and line.

    Notes
    -----
    Features are named x0, x1, ... and labels y0, y1, ..., from 0 whatever the file counts from. O(size of the files).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "toy.svm"
    >>> _ = file.write_text("0,2 1:0.5 4:2\n 2:1.5\n")
    >>> ds = load_svmlight(file, n_features=4, n_labels=3)
    >>> ds.X.toarray().tolist(), ds.Y.toarray().tolist()
    ([[0.5, 0.0, 0.0, 2.0], [0.0, 1.5, 0.0, 0.0]], [[1, 0, 1], [0, 0, 0]])
    """
    sizes = check_sizes("load_svmlight", n_features, n_labels)
    paths = paths_of("load_svmlight", path)
    Xs: list[Any] = []
    Ys: list[Any] = []
    for one in paths:
        with opened(one, encoding) as file:
            found = len(Xs)
            for X, Y in read_rows(file, str(one), *sizes, int(not zero_based), int(not zero_based_labels)):
                Xs.append(X)
                Ys.append(Y)
            if len(Xs) == found:
                fail(str(one), 1, "expected rows, got none")
    X, Y = stack_emptying(Xs), stack_emptying(Ys)
    for matrix, size in ((X, n_features), (Y, n_labels)):
        if size == "largest":
            matrix.resize(matrix.shape[0], int(matrix.indices.max(initial=-1)) + 1)
    return Dataset(X, Y, numbered("x", X.shape[1]), numbered("y", Y.shape[1]), name or paths[0].stem)


def stream_svmlight(
    source: Source,
    rows: int,
    *,
    encoding: str = "utf-8",
    labelled: bool = True,
    feature_names: tuple[str, ...] = (),
    label_names: tuple[str, ...] = (),
    n_features: int | None = None,
    n_labels: int | None = None,
    zero_based: bool = False,
    zero_based_labels: bool = True,
) -> Iterator[Block]:
    """Blocks of `rows` rows; parameters as in `load_svmlight`. Names given say how many columns there are."""
    if not labelled:
        n_labels, label_names = MOST, ()
    d, K = check_sizes("stream", n_features or len(feature_names), n_labels or len(label_names), open_ended=False)
    features = (*feature_names, *numbered("x", d)[len(feature_names) :])
    labels = (*label_names, *numbered("y", K)[len(label_names) :]) if labelled else ()
    first_row = 0
    with opened(source, encoding) as file:
        pieces = read_rows(file, shown(source), d, K, int(not zero_based), int(not zero_based_labels), rows)
        for X, Y in rebatched(pieces, rows):
            yield Block(X, Y if labelled else None, features, labels, first_row)
            first_row += X.shape[0]


def read_rows(
    file: TextIO, path: str, d: int, K: int, feature_base: int, label_base: int, rows: int = MOST, first: int = 1
) -> Iterator[tuple[Any, Any]]:
    """Features and labels in stretches of at most `rows` rows; `first` is the number of the next line."""
    for number, run in stretches(file, first, rows, _is_row):
        found = [(line, number + i) for i, line in enumerate(run) if _is_row(line)]
        if found:
            lines = Lines(path, [place for _, place in found])
            yield parse_rows([line for line, _ in found], lines, d, K, feature_base, label_base)


def parse_rows(texts: list[str], lines: Lines, d: int, K: int, feature_base: int, label_base: int) -> tuple[Any, Any]:
    """Lines `label,label index:value ...` as features and labels."""
    if (plain := read_plain(texts, Bounds(d, K, feature_base, label_base))) is not None:
        return plain
    heads: list[str] = []
    bodies: list[str] = []
    for text in texts:
        text = text.partition("#")[0]
        if "\t" in text:
            text = text.replace("\t", " ")
        head, _, body = text.partition(" ")
        labelled = ":" not in head
        heads.append(head.strip() if labelled else "")
        bodies.append(body if labelled else text)
    return read_entries(bodies, lines, d, feature_base), read_labels(heads, lines, K, label_base)


def _is_row(line: str) -> bool:
    """Whether it is neither empty nor a comment alone."""
    return line not in ("\n", "") and not line.lstrip().startswith("#")


def check_sizes(who: str, n_features: Any, n_labels: Any, open_ended: bool = True) -> tuple[int, int]:
    """Both as numbers of columns; `MOST` where the largest index decides."""
    sizes = []
    for name, size in (("n_features", n_features), ("n_labels", n_labels)):
        whole = isinstance(size, int | np.integer) and not isinstance(size, bool) and 0 < size <= MOST
        if not whole and not (open_ended and isinstance(size, str) and size == "largest"):
            raise InvalidParameter(f"{who}: {name} must be a whole number from 1, got {size!r}; say how many there are")
        sizes.append(int(size) if whole else MOST)
    return sizes[0], sizes[1]


def numbered(letter: str, n: int) -> tuple[str, ...]:
    """Names of columns that have none: x0, x1, ..."""
    return tuple(f"{letter}{i}" for i in range(n))
