"""Parquet files, through pyarrow (`csdpp[frames]`), and frames of pandas or polars that are in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from csdpp.datasets._columns import Choice, Columns, blocks_of_table, check_numbers, chosen, joined
from csdpp.datasets._text import FilePath, Source, paths_of, shown
from csdpp.datasets._types import Dataset, few
from csdpp.datasets.blocks import Block
from csdpp.errors import DataFormatError, InvalidInput, InvalidParameter, MissingData


def load_parquet(
    path: FilePath | Iterable[FilePath],
    *,
    labels: Sequence[str] | None = None,
    label_prefix: str | None = None,
    features: Sequence[str] | None = None,
    id_column: str | None = None,
    name: str | None = None,
) -> Dataset:
    """A table in Parquet; parameters as in `load_csv`. Needs pyarrow.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import polars
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "toy.parquet"
    >>> polars.DataFrame({"width": [2.5, None], "red": [True, False]}).write_parquet(file)
    >>> load_parquet(file, labels=["red"]).X.tolist()
    [[2.5], [nan]]
    """
    choice = Choice(labels, label_prefix, features, id_column)
    choice.check("load_parquet")
    paths = paths_of("load_parquet", path)
    return joined("load_parquet", paths, (_Parquet(one, choice) for one in paths), name)


def stream_parquet(
    source: Source,
    rows: int,
    *,
    labelled: bool = True,
    feature_names: tuple[str, ...] = (),
    label_names: tuple[str, ...] = (),
    labels: Sequence[str] | None = None,
    label_prefix: str | None = None,
    features: Sequence[str] | None = None,
    id_column: str | None = None,
) -> Iterator[Block]:
    """Blocks of `rows` rows; parameters as in `load_csv`. A label that is missing is NaN in Y."""
    if hasattr(source, "readline"):
        raise InvalidParameter(f"stream: Parquet must come from a file, got {shown(source)!r}; pass a path")
    choice = chosen(labels, label_prefix, features, id_column, labelled, feature_names, label_names)
    return blocks_of_table(_Parquet(source, choice), rows, labelled, feature_names, label_names)


class _Parquet:
    """A file of Parquet: its columns, and its rows as numbers."""

    def __init__(self, source: Any, choice: Choice) -> None:
        try:
            import pyarrow.parquet
        except ImportError:
            raise ImportError("parquet: needs pyarrow, not installed here; pip install 'csdpp[frames]'") from None
        self.arrow, self.source, self.path, self.choice = pyarrow, source, str(source), choice

    def pieces(self, rows: int) -> Iterator[tuple[Columns, Any, Any, Any]]:
        """Columns, features, labels and ids of at most `rows` rows at a time."""
        if not os.path.isfile(self.source):
            raise MissingData(f"{self.path}: expected a file, got none; check the path")
        try:
            with open(self.source, "rb") as raw, self.arrow.parquet.ParquetFile(raw) as file:
                columns = self.choice.among(file.schema_arrow.names, self._refuse)
                used = [*columns.features, *columns.labels, *([] if columns.id is None else [columns.id])]
                first = 0
                names = [columns.names[j] for j in used]
                for batch in file.iter_batches(min(rows, 1 << 16), columns=names):
                    if len(batch):
                        yield columns, *self._numbers(batch, columns, first)
                    first += len(batch)
        except (self.arrow.ArrowException, OSError, ValueError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise DataFormatError(f"{self.path}: expected a Parquet file, got {str(error).splitlines()[0]}") from None

    def _refuse(self, wanted: str, got: str) -> NoReturn:
        raise DataFormatError(f"{self.path}: expected {wanted}, got {got}")

    def _numbers(self, batch: Any, columns: Columns, first: int) -> tuple[Any, Any, Any]:
        def numbers(places: list[int]) -> NDArray[np.float64]:
            out, types = np.empty((len(batch), len(places))), self.arrow.types
            for i, j in enumerate(places):
                column, kind = batch.column(columns.names[j]), batch.schema.field(columns.names[j]).type
                if types.is_boolean(kind):
                    column = column.cast(self.arrow.uint8())
                elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
                    self._refuse(f"numbers in column {columns.names[j]!r}", str(kind))
                if not types.is_float64(kind):
                    column = column.cast(self.arrow.float64(), safe=False)
                out[:, i] = column.to_numpy(zero_copy_only=False)
            return out

        def refuse(row: int, wanted: str, got: str) -> NoReturn:
            raise DataFormatError(f"{self.path}, row {first + row}: expected {wanted}, got {got}")

        X, Y = numbers(columns.features), numbers(columns.labels)
        check_numbers(X, Y, columns, refuse)
        ids = None
        if columns.id is not None:
            ids = [
                None if value is None else str(value) for value in batch.column(columns.names[columns.id]).to_pylist()
            ]
        return X, Y, ids


def from_frame(
    frame: Any,
    *,
    labels: Sequence[str] | None = None,
    label_prefix: str | None = None,
    features: Sequence[str] | None = None,
    name: str = "frame",
) -> Dataset:
    """A frame of pandas or polars as a data set; parameters as in `load_csv`.

    Examples
    --------
    >>> import pandas
    >>> from_frame(pandas.DataFrame({"width": [2.5, 30], "is_red": [1, 0]}), label_prefix="is_")
    Dataset('frame', N=2, d=1, K=1, cardinality=0.500)
    """
    choice = Choice(labels, label_prefix, features)
    choice.check("from_frame")

    def refuse(wanted: str, got: str) -> NoReturn:
        raise InvalidInput(f"from_frame: expected {wanted}, got {got}; name other columns")

    if not hasattr(frame, "columns"):
        refuse("a frame of pandas or polars", type(frame).__name__)
    columns = choice.among(list(map(str, frame.columns)), refuse)

    def numbers(places: list[int]) -> NDArray[np.float64]:
        out = np.empty((len(frame), len(places)))
        for i, j in enumerate(places):
            values = frame[frame.columns[j]].to_numpy()
            if values.dtype == object:  # nulls among whole numbers or truth values
                values = [np.nan if value is None or value != value else value for value in values.tolist()]
            try:
                out[:, i] = values
            except (TypeError, ValueError):
                refuse(f"numbers in column {columns.names[j]!r}", few([str(values[0])]))
        return out

    X, Y = numbers(columns.features), numbers(columns.labels)
    check_numbers(X, Y, columns, lambda row, wanted, got: refuse(f"{wanted} in row {row}", got))
    if np.isnan(Y).any():
        refuse("labels that are all known", "missing ones")
    return Dataset(X, Y, columns.feature_names, columns.label_names, name)
