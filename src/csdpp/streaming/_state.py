"""What is kept beside the learner in its file: names of its columns, place in the stream, running cost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from csdpp import persist
from csdpp.costs import F1, Cost, StreamCost, resolve_cost
from csdpp.datasets._text import shown
from csdpp.datasets.sources import format_of
from csdpp.errors import DataFormatError, InvalidInput
from csdpp.estimator import OnlineClassifier

_KEY = "stream"


@dataclass
class Place:
    """Where a stream was left: its name, rows learned, whether its end was reached; and the costs of these rows."""

    source: str = ""
    rows: int = 0
    done: bool = True
    block_rows: int = 1000
    cost: str = "f1"
    total: float = 0.0  # of the costs of `rows` rows, each predicted before it was learned


@dataclass
class State:
    """A learner and all that its file says beside it."""

    model: OnlineClassifier
    features: tuple[str, ...] = ()
    place: Place = field(default_factory=Place)
    others: dict[str, Any] = field(default_factory=dict)  # what somebody else keeps in the file

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels; none before anything is learned."""
        return tuple(map(str, getattr(self.model, "classes_", ())))

    def save(self, path: Path) -> None:
        """Write the file, whole or not at all."""
        beside = {"features": np.array(self.features, str), **asdict(self.place)}
        persist.save(self.model, path, extra={**self.others, _KEY: beside})


def restore(path: Path, given: dict[str, Any]) -> State:
    """What a file holds; a model that was saved without a stream has none behind it."""
    model = persist.load(path, **given)
    if getattr(getattr(model, "_targets", None), "kind", "multilabel") != "multilabel":
        raise InvalidInput(f"{path} must hold a model of label sets, got one of single classes; use it in Python")
    extra = persist.inspect(path)["extra"]
    others = dict(extra) if isinstance(extra, dict) else {} if extra is None else {"extra": extra}
    beside = others.pop(_KEY, None)
    features = tuple(map(str, getattr(model, "feature_names_in_", ())))
    if beside is None:
        return State(model, features, Place(), others)
    try:
        beside = dict(beside)
        features = tuple(beside.pop("features").tolist()) or features
        return State(model, features, Place(**beside), others)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise DataFormatError(f"{path}: must tell the place in its stream, and does not ({error})") from None


def source_name(source: Any) -> str:
    """What a source is called in the file: names without folders, as folders may move."""
    if isinstance(source, str) and (source == "-" or not os.path.exists(source)):
        return source
    if isinstance(source, str | os.PathLike):
        return Path(source).name
    if isinstance(source, Iterable) and not hasattr(source, "readline"):
        return " ".join(source_name(one) for one in source)
    return shown(source)


def known_names(state: State, source: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Names of columns that a stream shall begin with. A learner without names takes columns by their place."""
    model = state.model
    if not model.__sklearn_is_fitted__():
        return {"feature_names": state.features, "label_names": ()}
    placed = format_of(source, options.get("format"), options) in ("mulan", "meka", "csv", "parquet", None)
    features, labels = state.features, state.labels
    if not features and not placed:
        features = tuple(f"x{j}" for j in range(int(model.n_features_in_)))
    if placed and model.classes_.dtype.kind in "iu":
        labels = ()
    return {"feature_names": features, "label_names": labels}


def running_cost(model: OnlineClassifier) -> Cost:
    """The cost that is told on the way: the learner's, if each row has it by itself."""
    cost = resolve_cost(getattr(model, "cost", "hamming"))
    return F1() if isinstance(cost, StreamCost) else cost


def describe(path: str | os.PathLike[str]) -> str:
    """What a file of a model says, in words; the model is not built.

    Examples
    --------
    >>> import tempfile
    >>> from csdpp import CSDPP
    >>> path = tempfile.mkdtemp() + "/tags.csdpp"
    >>> CSDPP(2).fit([[1.0], [2.0]], [[0, 1, 1], [1, 0, 1]]).save(path)
    >>> print(describe(path))
    CSDPP, 2 rows learned, 1 features, 3 labels
    ...
    """
    told = persist.inspect(path)
    labels = told["labels"]
    n_labels = 0 if labels is None else len(labels)
    lines = [
        f"{told['class']}, {told['n_seen']:,} rows learned, {told['n_features'] or 0:,} features, {n_labels:,} labels"
    ]
    extra = told["extra"]
    beside = extra.get(_KEY) if isinstance(extra, dict) else None
    if isinstance(beside, dict) and beside.get("rows"):
        end = "to its end" if beside["done"] else "not to its end: the command that was stopped goes on from there"
        lines.append(f"stream      {beside['source']}: {beside['rows']:,} rows, {end}")
        average = beside["total"] / beside["rows"]
        lines.append(f"cost        {beside['cost']} {average:.4f}, mean over these rows, each predicted before learned")
    if n_labels:
        lines.append(f"labels      {_some(labels)}")
    if isinstance(beside, dict) and len(beside["features"]):
        lines.append(f"features    {_some(beside['features'])}")
    lines.append(f"file        format {told['format']}, written by csdpp {told['version']}, {told['bytes']:,} bytes")
    lines.append("parameters  " + ", ".join(f"{name}={value!r}" for name, value in told["parameters"].items()))
    state = told["state"]
    width = max(map(len, state), default=0)
    lines += ["state", *(f"  {name:<{width}}  {sort}" for name, sort in state.items())] if state else []
    return "\n".join(lines)


def _some(names: Sequence[Any]) -> str:
    texts = [str(name) for name in names[:8]]
    return ", ".join(texts) + (f" and {len(names) - 8:,} more" if len(names) > 8 else "")
