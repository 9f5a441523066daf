"""Rows as they come in and as the log holds them: features as bytes, answers as text, names as places.

Features are kept by the places of their names, which never change: a 0 that is said and one that is not are the same.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Features = Mapping[str, float] | Sequence[float]
#: The names of all that hold, or which hold and which do not.
Labels = Sequence[str] | Mapping[str, bool]
_COUNT = struct.Struct("<I")


class Refused(Exception):
    """A request that cannot be met: status and code of HTTP's answer, a sentence, seconds until it is worth a retry."""

    def __init__(self, status: int, code: str, message: str, retry: int | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.retry = status, code, message, retry


@dataclass(slots=True)
class Row:
    """An item, an answer to one, or both; ``said`` are the places of labels predicted by version ``version``."""

    id: str
    features: Features | None = None
    labels: Labels | None = None
    said: list[int] | None = None
    version: int = 0


class Answer(NamedTuple):
    """Places of labels that hold, rising; of those that do not, or None: all others."""

    yes: list[int]
    no: list[int] | None

    def text(self) -> str:
        """As the log holds it."""
        return json.dumps([self.yes] if self.no is None else [self.yes, self.no], separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> "Answer":
        """The inverse of `text`."""
        yes, *rest = json.loads(text)
        return cls(yes, rest[0] if rest else None)

    def includes(self, other: "Answer") -> bool:
        """Whether ``other`` says nothing but what this says.

        >>> Answer([1, 2], None).includes(Answer([2], [0])), Answer([1], [0]).includes(Answer([1], None))
        (True, False)
        """
        if other.no is None:
            return self.no is None and self.yes == other.yes
        no = set(other.no)
        return set(other.yes) <= set(self.yes) and (no.isdisjoint(self.yes) if self.no is None else no <= set(self.no))


class Batch(NamedTuple):
    """Rows that are learned together, in the order of the log; d features and K labels were known."""

    first: int
    d: int
    K: int
    x: list[bytes]
    y: list[Answer]

    @property
    def last(self) -> int:
        """The sequence number of the last row."""
        return self.first + len(self.x) - 1


def pack_features(places: Sequence[int], values: Sequence[float]) -> bytes:
    """Places and values, in one way only: rising, without zeros.

    >>> pack_features([3, 1], [0.0, 2.0]) == pack_features([1], [2.0])
    True
    """
    at, value = np.asarray(places, "<u4"), np.asarray(values, "<f8")
    kept = value != 0.0
    if not kept.all():
        at, value = at[kept], value[kept]
    if len(at) > 1 and (at[1:] <= at[:-1]).any():
        order = np.argsort(at, kind="stable")
        at, value = at[order], value[order]
    if len(at) and at[-1] == len(at) - 1:  # the first so many, all of them: the places go without saying
        return b"\0\0\0\0" + value.tobytes()
    return _COUNT.pack(len(at)) + at.tobytes() + value.tobytes()


def unpack_features(data: bytes) -> tuple[Array, Array]:
    """Places and values."""
    (n,) = _COUNT.unpack_from(data)
    if n == 0:
        values = np.frombuffer(data, "<f8", -1, 4) if len(data) > 4 else np.empty(0)
        return np.arange(len(values)), values
    return np.frombuffer(data, "<u4", n, 4), np.frombuffer(data, "<f8", n, 4 + 4 * n)


def dense_rows(rows: Sequence[bytes], d: int) -> Array:
    """Features (n, d); places from d on are left out."""
    out = np.zeros((len(rows), d))
    for row, data in zip(out, rows, strict=True):
        places, values = unpack_features(data)
        if len(places) and places[-1] >= d:
            known = places < d
            places, values = places[known], values[known]
        row[places] = values
    return out


def label_rows(answers: Sequence[Answer], K: int) -> Array:
    """Labels (n, K): bool, or float with NaN for what an answer leaves open."""
    if all(answer.no is None for answer in answers):
        whole = np.zeros((len(answers), K), np.bool_)
        for holds, answer in zip(whole, answers, strict=True):
            holds[answer.yes] = True
        return whole
    partial = np.zeros((len(answers), K))
    for row, answer in zip(partial, answers, strict=True):
        if answer.no is not None:
            row[:] = np.nan
            row[answer.no] = 0.0
        row[answer.yes] = 1.0
    return partial


class Names:
    """The features and labels known, each a place for good. Written by one thread, read by others."""

    def __init__(self, *, grow: bool, max_features: int, max_labels: int, max_value: float) -> None:
        self.features: dict[str, int] = {}
        self.labels: dict[str, int] = {}
        self.label_list: list[str] = []
        self.feature_list: list[str] = []
        self.grow, self.max_value = grow, max_value
        self.most = {"feature": max_features, "label": max_labels}

    def add(self, kind: str, name: str) -> int:
        """A new name's place."""
        places, names = (self.features, self.feature_list) if kind == "feature" else (self.labels, self.label_list)
        if len(names) >= self.most[kind]:
            raise Refused(422, "too_many_names", f"a new {kind} {name[:80]!r} would be more than {self.most[kind]}")
        names.append(name)
        places[name] = len(names) - 1
        return len(names) - 1

    def forget(self, d: int, K: int) -> None:
        """Undo what was added beyond d features and K labels."""
        for places, names, kept in ((self.features, self.feature_list, d), (self.labels, self.label_list, K)):
            for name in names[kept:]:
                del places[name]
            del names[kept:]

    def unknown(self, kind: str, name: str) -> int:
        """The place of a name that is not known: a new one if the model may grow."""
        if not self.grow:
            raise Refused(422, f"unknown_{kind}", f"there is no {kind} {name[:80]!r}, and this model does not grow")
        return self.add(kind, name)

    def encode(self, features: Features) -> bytes:
        """As the log holds them; new names are added if the model may grow."""
        values: list[float]
        if isinstance(features, Mapping):
            known = self.features
            places = [known[name] if name in known else self.unknown("feature", name) for name in features]
            values = list(features.values())
        else:
            places, values = self._by_place(len(features)), list(features)
        if values and (max(values) > self.max_value or min(values) < -self.max_value):
            raise self._too_large()
        return pack_features(places, values)

    def _by_place(self, n: int) -> list[int]:
        if not self.feature_list:  # arrays alone: places are the names
            if n > self.most["feature"]:
                raise Refused(422, "too_many_names", f"an item may have {self.most['feature']} features, got {n}")
            return [self.add("feature", str(place)) for place in range(n)]
        if n != len(self.feature_list):
            raise self._wrong_length(n)
        return list(range(n))

    def _wrong_length(self, n: int) -> Refused:
        most = len(self.feature_list)
        return Refused(422, "wrong_length", f"an array must have the {most} features of the model, got {n}")

    def fill(self, row: Array, features: Features) -> None:
        """Write features into a row of zeros (d,): those that the model has not learned yet are left out."""
        d = len(row)
        if isinstance(features, Mapping):
            known = self.features
            for name, value in features.items():
                place = known.get(name)
                if place is None and not self.grow:
                    self.unknown("feature", name)
                elif place is not None and place < d:
                    row[place] = value
        else:
            if self.feature_list and len(features) != len(self.feature_list):
                raise self._wrong_length(len(features))
            row[:] = features[:d]
        if d and not -self.max_value <= row.min() <= row.max() <= self.max_value:
            raise self._too_large()

    def _too_large(self) -> Refused:
        return Refused(422, "too_large", f"features must be at most {self.max_value:g} in size; scale them")

    def answer(self, labels: Labels) -> Answer:
        """Places of labels; new names are added if the model may grow."""
        known = self.labels
        places = {name: known[name] if name in known else self.unknown("label", name) for name in labels}
        if not isinstance(labels, Mapping):
            return Answer(sorted(places.values()), None)
        return Answer(
            sorted(places[name] for name, holds in labels.items() if holds),
            sorted(places[name] for name, holds in labels.items() if not holds),
        )
