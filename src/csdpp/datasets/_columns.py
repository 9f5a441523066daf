"""Tables of named columns: which of them are features, labels and ids is said by the caller.

A table is something with `pieces(rows)`: columns, features, labels (float64, NaN where unknown) and ids of some rows
at a time. This module makes data sets and blocks of it, whatever the file.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from csdpp.datasets._text import shown
from csdpp.datasets._types import Dataset, fail, few, stack_emptying
from csdpp.datasets.blocks import Block, arranged, rebatched
from csdpp.errors import DataFormatError, InvalidInput, InvalidParameter


class Columns(NamedTuple):
    """Names of a table's columns, and the places of features, labels and ids among them."""

    names: tuple[str, ...]
    features: list[int]
    labels: list[int]
    id: int | None

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(self.names[j] for j in self.features)

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(self.names[j] for j in self.labels)


class Choice(NamedTuple):
    """Which columns the caller wants to be what; see `load_csv`."""

    labels: Sequence[str] | None = None
    label_prefix: str | None = None
    features: Sequence[str] | None = None
    id_column: str | None = None
    labelled: bool = True

    def check(self, who: str) -> None:
        """Refuse what says nothing of labels, and a text in the place of a list."""
        for part in ("labels", "features"):
            if isinstance(getattr(self, part), str):
                raise InvalidParameter(f"{who}: {part} must be a list of columns, got {getattr(self, part)!r}; use []")
        if self.labelled and not self.labels and not self.label_prefix:
            raise InvalidParameter(
                f"{who}: the columns of labels must be named, got neither; pass labels=[...] or label_prefix="
            )

    def among(self, names: Sequence[str], refuse: Any) -> Columns:
        """The places of the columns that are wanted; `refuse` says what is wrong with them."""
        place = {name: j for j, name in enumerate(names)}
        if len(place) < len(names):
            refuse("each column once", few([name for name, count in Counter(names).items() if count > 1]) + " twice")
        prefixed = [name for name in names if self.label_prefix and name.startswith(self.label_prefix)]
        labels = [*dict.fromkeys([*(self.labels or ()), *prefixed])]
        if self.labelled and not labels:
            refuse(f"columns of labels that begin with {self.label_prefix!r}", few(names))
        taken = {*labels, self.id_column}
        features = [name for name in names if name not in taken] if self.features is None else list(self.features)
        wanted = [*features, *(labels if self.labelled else ()), *filter(None, [self.id_column])]
        if lacking := [name for name in wanted if name not in place]:
            refuse(f"columns {few(lacking)}", few(names))
        if not features:
            refuse("a column besides labels", few(names))
        chosen_as = [*features, *labels, *filter(None, [self.id_column])]
        if twice := [name for name, count in Counter(chosen_as).items() if count > 1]:
            refuse("each column as one thing, feature, label or id", few(twice))
        id_place = None if self.id_column is None else place[self.id_column]
        places = [place[name] for name in labels] if self.labelled else []
        return Columns(tuple(names), [place[name] for name in features], places, id_place)


class Table(Protocol):
    """What is read in pieces."""

    source: Any

    def pieces(self, rows: int) -> Iterator[tuple[Columns, Any, Any, Sequence[str | None] | None]]:
        """Columns, features, labels and ids of at most `rows` rows at a time."""
        ...


def check_numbers(X: Any, Y: Any, columns: Columns, refuse: Any) -> None:
    """Refuse the first feature that is infinite and the first label that is none."""
    for matrix, places, wanted, bad in (
        (X, columns.features, "a finite number", np.isinf(X)),
        (Y, columns.labels, "0 or 1", (Y != 0) & (Y != 1) & ~np.isnan(Y)),
    ):
        if bad.any():
            row, i = (int(along) for along in np.argwhere(bad)[0])
            refuse(row, f"{wanted} for column {columns.names[places[i]]!r}", f"{matrix[row, i]:g}")


def chosen(
    labels: Any, prefix: Any, features: Any, id_column: Any, labelled: bool, known_x: Any, known_y: Any
) -> Choice:
    """What is wanted, where names that are known beforehand say it too."""
    if labelled and labels is None:
        labels = known_y or None
    choice = Choice(labels, prefix, features, id_column, labelled)
    choice.check("stream")
    if not labelled and features is None and known_x:
        choice = choice._replace(features=known_x)
    return choice


def joined(who: str, paths: list[Any], tables: Iterable[Table], name: str | None) -> Dataset:
    """The rows of all tables; every label has to be known."""
    columns: Columns | None = None
    Xs: list[Any] = []
    Ys: list[Any] = []
    for path, table in zip(paths, tables, strict=True):
        found = len(Xs)
        for these, X, Y, _ in table.pieces(sys.maxsize):
            if columns is not None and these != columns:
                raise DataFormatError(f"{path}: expected the columns of {paths[0]}, got others")
            columns = these
            if np.isnan(Y).any():
                raise InvalidInput(f"{who}: labels in {path} must all be known, got missing ones; use stream for them")
            Xs.append(X)
            Ys.append(Y)
        if len(Xs) == found:
            fail(str(path), 2, "expected rows, got none")
    assert columns is not None
    names = columns.feature_names, columns.label_names
    return Dataset(stack_emptying(Xs), stack_emptying(Ys), *names, name or paths[0].stem)


def blocks_of_table(table: Table, rows: int, labelled: bool, known_x: Any, known_y: Any) -> Iterator[Block]:
    """Blocks of exactly `rows` rows, the columns that are known beforehand first."""

    def found() -> Iterator[Block]:
        columns: Columns | None = None
        ids: list[Any] = []
        names: tuple[Any, Any] = ((), ())

        def pieces() -> Iterator[tuple[Any, Any]]:
            nonlocal columns, names
            for these, X, Y, new in table.pieces(rows):
                if columns is None:
                    columns, names = these, (these.feature_names, these.label_names)
                ids.extend(new or ())
                yield X, Y

        first = 0
        for X, Y in rebatched(pieces(), rows):
            mine = tuple(ids[: len(X)]) or None
            del ids[: len(X)]
            yield Block(X, _as_labels(Y) if labelled else None, names[0], names[1], first, mine)
            first += len(X)

    return arranged(found(), labelled, known_x, known_y, source=shown(table.source))


def _as_labels(Y: NDArray[np.float64]) -> NDArray[Any]:
    """As whole numbers, unless some are unknown."""
    return Y if np.isnan(Y).any() else Y.astype(np.uint8)
