"""CSV: a table whose first line names the columns.

Rows of plain numbers go through the compiled reader, all others through Python's `csv`, which finds the line of what is
wrong; both give the same numbers.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray

from csdpp.datasets import blocks
from csdpp.datasets._columns import Choice, Columns, blocks_of_table, chosen, joined
from csdpp.datasets._text import FilePath, Source, opened, paths_of, shown
from csdpp.datasets._types import Attribute, Dataset, fail, few
from csdpp.datasets.arff import PlainRows
from csdpp.datasets.blocks import Block, stretches
from csdpp.errors import InvalidParameter

MISSING = frozenset(("", "?", "NA"))
_TRUTH = {"0": 0.0, "1": 1.0, "false": 0.0, "true": 1.0} | dict.fromkeys((text.lower() for text in MISSING), np.nan)


def load_csv(
    path: FilePath | Iterable[FilePath],
    *,
    labels: Sequence[str] | None = None,
    label_prefix: str | None = None,
    features: Sequence[str] | None = None,
    id_column: str | None = None,
    delimiter: str | None = None,
    name: str | None = None,
    encoding: str = "utf-8",
) -> Dataset:
    r"""A table in CSV, whose first line names the columns.

    Parameters
    ----------
    path : path, or paths of files with the same columns, which are joined in this order
    labels : sequence of str, optional
        Columns that are labels: 0 or 1, or true or false.
    label_prefix : str, optional
        Columns that begin so are labels too. One of the two must be given.
    features : sequence of str, default: all other columns
        Columns that are features: numbers. Nothing, `?` or `NA` is a missing one, NaN.
    id_column : str, optional
        A column that is neither; `stream` gives it as the ids of the rows.
    delimiter : str, default: "," or, where the file is named .tsv, a tab
    name : str, default: the first file's, without ending
    encoding : str

    Raises
    ------
    DataFormatError
        At a row that does not fit the first line or a value that is none, with file and line.

    Notes
    -----
    Values may be quoted, as in RFC 4180. O(size of the files).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "toy.csv"
    >>> _ = file.write_text("width,is_red,is_big\n2.5,1,0\n30,0,1\n")
    >>> ds = load_csv(file, label_prefix="is_")
    >>> ds, ds.label_names, ds.X.tolist()
    (Dataset('toy', N=2, d=1, K=2, cardinality=1.000), ('is_red', 'is_big'), [[2.5], [30.0]])
    """
    choice = Choice(labels, label_prefix, features, id_column)
    choice.check("load_csv")
    paths = paths_of("load_csv", path)
    tables = (_Csv(one, choice, delimiter, encoding) for one in paths)
    return joined("load_csv", paths, tables, name)


def stream_csv(
    source: Source,
    rows: int,
    *,
    encoding: str = "utf-8",
    labelled: bool = True,
    feature_names: tuple[str, ...] = (),
    label_names: tuple[str, ...] = (),
    labels: Sequence[str] | None = None,
    label_prefix: str | None = None,
    features: Sequence[str] | None = None,
    id_column: str | None = None,
    delimiter: str | None = None,
) -> Iterator[Block]:
    """Blocks of `rows` rows; parameters as in `load_csv`. A label that is missing is NaN in Y."""
    choice = chosen(labels, label_prefix, features, id_column, labelled, feature_names, label_names)
    return blocks_of_table(_Csv(source, choice, delimiter, encoding), rows, labelled, feature_names, label_names)


class _Csv:
    """A file or open stream of CSV: its columns, and its rows as numbers."""

    def __init__(self, source: Source, choice: Choice, delimiter: str | None, encoding: str) -> None:
        self.source, self.path, self.choice, self.encoding = source, shown(source), choice, encoding
        self.delimiter = delimiter or ("\t" if self.path.lower().endswith(".tsv") else ",")
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n\0':
            raise InvalidParameter(f"csv: delimiter must be one character, got {delimiter!r}; pass ',' or ';'")

    def pieces(self, rows: int) -> Iterator[tuple[Columns, Any, Any, Any]]:
        """Columns, features, labels and ids of at most `rows` rows at a time."""
        with opened(self.source, self.encoding) as file:
            lines = self._whole(file)
            header = next(lines, "")
            found = self._records([header], 1)
            if not found:
                fail(self.path, 1, "expected a line with the names of the columns, got none")
            names = [text.strip() for text in found[0][1]]
            names[0] = names[0].removeprefix("\ufeff")

            def refuse(wanted: str, got: str) -> NoReturn:
                fail(self.path, 1, f"expected {wanted}, got {got}")

            columns = self.choice.among(names, refuse)
            plain = self._plain(columns)
            for first, run in stretches(lines, 2, rows):
                X, Y, ids = plain("".join(run)) or self._numbers(run, first, columns)
                if len(X):
                    yield columns, X, Y, ids

    def _plain(self, columns: Columns) -> Callable[[str], Any]:
        """The compiled reader; columns of no use are read behind the features and left out again."""
        d, unused = len(columns.features), sorted(set(range(len(columns.names))) - {*columns.features, *columns.labels})
        attributes = [Attribute(name, None, 1) for name in columns.names]
        plain = PlainRows(attributes, [*columns.features, *unused], columns.labels)

        def read(text: str) -> Any:
            if columns.id is not None or (self.delimiter != "," and ("," in text or self.delimiter not in ";|\t")):
                return None
            found = plain.read(text.replace(self.delimiter, ","), False)
            return found and (np.ascontiguousarray(found[0][:, :d]), found[1].astype(np.float64), None)

        return read

    def _whole(self, file: TextIO) -> Iterator[str]:
        """Lines; one with an open quotation mark goes on until it is closed, and nothing stands for the rest."""
        for line in file:
            if line.count('"') % 2 == 0:
                yield line
                continue
            parts, size, is_open = [line], len(line), True
            while is_open and size <= blocks.CHARACTERS and (more := file.readline()):
                parts.append(more)
                size += len(more)
                is_open = more.count('"') % 2 == 0
            yield "".join(parts)
            yield from [""] * (len(parts) - 1)

    def _records(self, lines: list[str], first: int) -> list[tuple[int, list[str]]]:
        """The line and the fields of each row."""
        records = []
        for number, line in enumerate(lines, first):
            if line.strip():
                try:
                    (fields,) = csv.reader([line], delimiter=self.delimiter, strict=True)
                except (csv.Error, ValueError) as error:
                    fail(self.path, number, f"expected fields with {self.delimiter!r} between them, got {error}")
                records.append((number, fields))
        return records

    def _numbers(self, lines: list[str], first: int, columns: Columns) -> tuple[Any, Any, Any]:
        """Features, labels and ids the slow way, with errors that say where."""
        records = self._records(lines, first)
        for number, fields in records:
            if len(fields) != len(columns.names):
                wanted = f"{len(columns.names)} values, one for each column"
                fail(self.path, number, f"expected {wanted}, got {len(fields)}")
        X = self._matrix(records, columns, columns.features, _feature, "a finite number")
        Y = self._matrix(records, columns, columns.labels, _label, "0 or 1")
        return X, Y, None if columns.id is None else [fields[columns.id] for _, fields in records]

    def _matrix(
        self, records: Any, columns: Columns, places: list[int], value: Callable[[str], float], wanted: str
    ) -> NDArray[np.float64]:
        """Some columns as numbers; a column is looked at value by value only where that fails."""
        matrix = np.empty((len(records), len(places)))
        for i, j in enumerate(places):
            texts = [fields[j] for _, fields in records]
            try:
                matrix[:, i] = list(map(value, texts))
            except (KeyError, ValueError):
                for (number, _), text in zip(records, texts, strict=True):
                    try:
                        value(text)
                    except (KeyError, ValueError):
                        got = few([text])
                        fail(self.path, number, f"expected {wanted} for column {columns.names[j]!r}, got {got}")
        return matrix


def _feature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        if text.strip() in MISSING:
            return np.nan
        raise
    if "_" in text or np.isinf(value):
        raise ValueError(text)
    return value


def _label(text: str) -> float:
    text = text.strip().lower()
    if text in _TRUTH:
        return _TRUTH[text]
    value = _feature(text)
    if value not in (0.0, 1.0) and not np.isnan(value):
        raise ValueError(text)
    return value
