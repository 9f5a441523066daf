"""JSON lines: a row of named features and labels in each line, the format of pipes.

    {"x": {"price": 3.5, "new": 1}, "y": ["toys", "gifts"]}     relevant labels; the others are not relevant
    {"x": {"price": 1}, "y": {"toys": true, "gifts": false}}    what is known; other labels, and null, are unknown
    {"id": "a7", "x": [3.5, 1], "y": []}                        features by place, named x0, x1, ...

A feature that an object leaves out is 0, one that is null is missing. Names that come for the first time are new
columns.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from csdpp.datasets._text import FilePath, Source, opened, paths_of, shown
from csdpp.datasets._types import Dataset, fail, few
from csdpp.datasets.blocks import Block
from csdpp.errors import InvalidInput, InvalidParameter

_DECODER = json.JSONDecoder(parse_constant=lambda text: _refuse_constant(text))


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def stream_jsonl(
    source: Source,
    rows: int,
    *,
    encoding: str = "utf-8",
    labelled: bool = True,
    feature_names: tuple[str, ...] = (),
    label_names: tuple[str, ...] = (),
) -> Iterator[Block]:
    """Blocks of `rows` rows out of JSON lines; the names given come first, new ones behind them."""
    reader = _Reader(shown(source), labelled, feature_names, label_names if labelled else ())
    first_row = n = 0
    with opened(source, encoding) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                reader.read(line, number)
                n += 1
                if n == rows:
                    yield reader.block(first_row)
                    first_row, n = first_row + n, 0
        if n:
            yield reader.block(first_row)


def load_jsonl(path: FilePath | Iterable[FilePath], *, name: str | None = None, encoding: str = "utf-8") -> Dataset:
    r"""A file of JSON lines as a data set; every label has to be known.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "toy.jsonl"
    >>> _ = file.write_text('{"x": [1, 2.5], "y": ["a"]}\n{"x": [0, 1], "y": []}\n')
    >>> load_jsonl(file)
    Dataset('toy', N=2, d=2, K=1, cardinality=0.500)
    """
    paths = paths_of("load_jsonl", path)
    if len(paths) > 1:
        raise InvalidParameter(f"load_jsonl: path must name one file, got {len(paths)}; join them beforehand")
    block = next(stream_jsonl(paths[0], sys.maxsize, encoding=encoding), None)
    if block is None:
        fail(str(paths[0]), 1, "expected rows, got none")
    if block.Y is None or block.Y.dtype != np.uint8:
        raise InvalidInput(f"load_jsonl: labels in {paths[0]} must all be known, got unknown ones; use stream for them")
    return Dataset(block.X, block.Y, block.feature_names, block.label_names, name or paths[0].stem)


class _Reader:
    """The rows of the block to come, and the names of all rows so far."""

    def __init__(self, path: str, labelled: bool, feature_names: tuple[str, ...], label_names: tuple[str, ...]) -> None:
        self.path, self.labelled = path, labelled
        self.features = {name: j for j, name in enumerate(feature_names)}
        self.labels = {name: k for k, name in enumerate(label_names)}
        self.names: tuple[tuple[str, ...], tuple[str, ...]] = (tuple(feature_names), tuple(label_names))
        self.by_place: bool | None = None  # whether features come as a list; known from the first row on
        self.clear()

    def clear(self) -> None:
        self.xs: list[Any] = []  # for each row a list of values, or columns and values
        self.ys: list[tuple[list[int], list[float]]] = []  # columns and values
        self.partial: list[bool] = []  # whether labels that are left out are unknown
        self.ids: list[str | None] = []

    def refuse(self, line: int, wanted: str, got: object) -> NoReturn:
        fail(self.path, line, f"expected {wanted}, got {few([got if isinstance(got, str) else _shown(got)])}")

    def read(self, text: str, line: int) -> None:
        """Take in one line."""
        try:
            row = _DECODER.decode(text.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            fail(self.path, line, f'expected a JSON object with "x" and "y", got {few([text.strip()])} ({error})')
        if not isinstance(row, dict) or "x" not in row:
            self.refuse(line, 'a JSON object with "x"', row)
        if unknown := row.keys() - {"x", "y", "id"}:
            self.refuse(line, '"x", "y" and "id" only', sorted(unknown)[0])
        self.xs.append(self._features(row["x"], line))
        if self.labelled:
            if "y" not in row:
                self.refuse(line, 'labels under "y"', row)
            self.ys.append(self._labels(row["y"], line))
        given = row.get("id")
        if given is not None and (isinstance(given, bool) or not isinstance(given, str | int)):
            self.refuse(line, "an id that is a text or a whole number", given)
        self.ids.append(None if given is None else str(given))

    def _features(self, x: Any, line: int) -> Any:
        by_place = isinstance(x, list)
        if not by_place and not isinstance(x, dict):
            self.refuse(line, 'an object or a list under "x"', x)
        if self.by_place is None:
            self.by_place = by_place
            if by_place and not self.features:
                self.features = {f"x{j}": j for j in range(len(x))}
        if by_place != self.by_place:
            self.refuse(line, f'{"a list" if self.by_place else "an object"} under "x", as in the first row', x)
        if by_place:
            if len(x) != len(self.features):
                fail(self.path, line, f"expected {len(self.features)} features, got {len(x)}")
            return [self._number(value, j, line) for j, value in enumerate(x)]
        values = [self._number(value, name, line) for name, value in x.items()]
        return [self.features.setdefault(name, len(self.features)) for name in x], values

    def _number(self, value: Any, name: str | int, line: int) -> float:
        if value is None:
            return math.nan
        try:
            number = float(value) if isinstance(value, int | float) else math.inf
        except OverflowError:
            number = math.inf
        if math.isinf(number):
            self.refuse(line, f"a finite number for feature {name!r}", value)
        return number

    def _labels(self, y: Any, line: int) -> tuple[list[int], list[float]]:
        known = {True: 1.0, False: 0.0, None: math.nan}
        if isinstance(y, dict):
            for name, value in y.items():
                if value is not None and not isinstance(value, bool):
                    self.refuse(line, f"true, false or null for label {name!r}", value)
            values = [known[value] for value in y.values()]
        elif isinstance(y, list):
            for name in y:
                if not isinstance(name, str):
                    self.refuse(line, 'names of labels (texts) under "y"', name)
            if len(set(y)) < len(y):
                self.refuse(line, "each label once", y)
            values = [1.0] * len(y)
        else:
            self.refuse(line, 'a list or an object under "y"', y)
        self.partial.append(isinstance(y, dict))
        return [self.labels.setdefault(name, len(self.labels)) for name in y], values

    def block(self, first_row: int) -> Block:
        """The rows taken in since the last block."""
        if (len(self.features), len(self.labels)) != tuple(map(len, self.names)):
            self.names = (tuple(self.features), tuple(self.labels))
        (d, K), n = map(len, self.names), len(self.xs)
        X: Any = np.array(self.xs, np.float64).reshape(n, d) if self.by_place else _csr(self.xs, d)
        if not self.by_place:
            X.eliminate_zeros()
        Y: Any = None
        if self.labelled:
            Y = _csr(self.ys, K)
            unknown = np.isnan(Y.data).any() or any(
                partial and len(columns) < K for partial, (columns, _) in zip(self.partial, self.ys, strict=True)
            )
            if unknown:
                stated = Y
                Y = np.where(np.array(self.partial)[:, None], np.nan, np.zeros((n, K)))
                rows = np.repeat(np.arange(n), np.diff(stated.indptr))
                Y[rows, stated.indices] = stated.data
            else:
                Y.eliminate_zeros()
                Y = Y.astype(np.uint8)
        ids = tuple(self.ids) if any(given is not None for given in self.ids) else None
        self.clear()
        return Block(X, Y, *self.names, first_row, ids)


def _csr(rows: list[Any], width: int) -> sparse.csr_array:
    """Columns and values of each row as a matrix."""
    indptr = np.concatenate(([0], np.cumsum([len(columns) for columns, _ in rows])))
    columns = np.array([j for columns, _ in rows for j in columns], np.int64)
    values = np.array([value for _, values in rows for value in values], np.float64)
    matrix = sparse.csr_array((values, columns, indptr), (len(rows), width))
    matrix.sort_indices()
    return matrix


def _shown(value: Any) -> str:
    return json.dumps(value)
