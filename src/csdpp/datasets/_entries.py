"""Text of sparse rows, `index:value index:value` and `label,label`, as CSR; what svmlight and the XMC formats share.

Plain rows are read by compiled code. Else all entries of a stretch of lines are converted at once; only where that
fails are they looked at one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from csdpp._kernels import text as text_kernel
from csdpp.datasets._types import fail, few


class Lines(NamedTuple):
    """Where rows come from: the file, and the line of each."""

    path: str
    numbers: Sequence[int]

    def refuse(self, row: int, wanted: str, got: str) -> NoReturn:
        """Say what was expected in that row."""
        fail(self.path, self.numbers[row], f"expected {wanted}, got {few([got])}")


class Bounds(NamedTuple):
    """Numbers of features and labels, what each counts from, and whether labels stand before features."""

    d: int
    K: int
    feature_base: int
    label_base: int
    labelled: bool = True


def read_plain(rows: Sequence[str], bounds: Bounds) -> tuple[sparse.csr_array, sparse.csr_array] | None:
    """Features and labels of rows, each a line; None where they have to be read the slow way."""
    text = "".join(rows)
    raw = text.encode("utf-8", "surrogatepass")
    n, entries = len(rows), text.count(":")
    xs = np.empty(entries, np.int64), np.empty(entries), np.zeros(n + 2, np.int64)
    ys = np.empty(n + text.count(","), np.int64), np.zeros(n + 2, np.int64)
    odd = np.empty((entries, 3), np.int64)
    found, strange = text_kernel.entry_rows(np.frombuffer(raw, np.uint8), np.array(bounds, np.int64), xs, ys, odd)
    if found != n:
        return None
    for place, start, end in odd[:strange].tolist():
        try:
            value = _number(raw[start:end].decode())
        except ValueError:
            return None
        if not np.isfinite(value):
            return None
        xs[1][place] = value
    x, y = int(xs[2][n]), int(ys[1][n])
    X = sparse.csr_array((xs[1][:x], xs[0][:x], xs[2][: n + 1]), (n, bounds.d))
    X.eliminate_zeros()
    return X, sparse.csr_array((np.ones(y, np.uint8), ys[0][:y], ys[1][: n + 1]), (n, bounds.K))


def read_entries(bodies: Sequence[str], lines: Lines, width: int, base: int, what: str = "feature") -> sparse.csr_array:
    """A row of `index:value` pairs in each text; indices from `base` to `base + width - 1`; zeros are not stored."""
    rows = [body.split() for body in bodies]
    pairs = [pair for row in rows for pair in row]
    parts = [pair.partition(":") for pair in pairs]
    lengths = np.array([len(row) for row in rows], np.int64)
    try:
        columns = _indices([part[0] for part in parts])
        values = np.array([_number(part[2]) for part in parts], np.float64)
    except ValueError:
        for i, (index, colon, value) in enumerate(parts):
            row = _row_of(lengths, i)
            if not colon or not _is_index(index):
                lines.refuse(row, "index:value", pairs[i])
            try:
                _number(value)
            except ValueError:
                lines.refuse(row, f"a number for {what} {index}", value)
        raise
    if not np.isfinite(values).all():
        i = int(np.flatnonzero(~np.isfinite(values))[0])
        lines.refuse(_row_of(lengths, i), f"a finite number for {what} {parts[i][0]}", parts[i][2])
    matrix = _matrix(columns, values, lengths, lines, width, base, what)
    matrix.eliminate_zeros()
    return matrix


def read_labels(heads: Sequence[str], lines: Lines, width: int, base: int) -> sparse.csr_array:
    """A row of `label,label` in each text, none in an empty one, as 0/1."""
    rows = [head.split(",") if head else [] for head in heads]
    texts = [text for row in rows for text in row]
    lengths = np.array([len(row) for row in rows], np.int64)
    try:
        columns = _indices(texts)
    except ValueError:
        i = next(i for i, text in enumerate(texts) if not _is_index(text))
        row = _row_of(lengths, i)
        lines.refuse(row, "labels as whole numbers with commas between them", heads[row])
    return _matrix(columns, np.ones(columns.size), lengths, lines, width, base, "label").astype(np.uint8)


def _matrix(
    columns: NDArray[np.int64],
    values: NDArray[np.float64],
    lengths: NDArray[np.int64],
    lines: Lines,
    width: int,
    base: int,
    what: str,
) -> sparse.csr_array:
    """The entries as CSR; an index out of range, or twice in a row, is refused."""
    columns = columns - base
    if (outside := np.flatnonzero((columns < 0) | (columns >= width))).size:
        i = int(outside[0])
        wanted = f"a {what} from {base} to {base + width - 1}"
        lines.refuse(_row_of(lengths, i), wanted, str(columns[i] + base))
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    matrix = sparse.csr_array((values, columns, indptr), (lengths.size, width))
    matrix.sort_indices()
    rows = np.repeat(np.arange(lengths.size), lengths)
    if (twice := np.flatnonzero((np.diff(rows) == 0) & (np.diff(matrix.indices) == 0))).size:
        i = int(twice[0])
        lines.refuse(int(rows[i]), f"each {what} once in a row", f"{matrix.indices[i] + base} again")
    return matrix


def _row_of(lengths: NDArray[np.int64], i: int) -> int:
    """Which row the i-th entry of all is in."""
    return int(np.searchsorted(np.cumsum(lengths), i, side="right"))


def _is_index(text: str) -> bool:
    return text.isdecimal() and len(text) < 19  # int() would take -1 and 1_0


def _indices(texts: Sequence[str]) -> NDArray[np.int64]:
    if not all(map(_is_index, texts)):
        raise ValueError
    return np.array(list(map(int, texts)), np.int64)


def _number(text: str) -> float:
    """float(), which reads 1_000 as a number where these formats do not."""
    if "_" in text:
        raise ValueError(text)
    return float(text)
