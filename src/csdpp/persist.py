"""Models as files without pickle: `save` and `load`, `dumps` and `loads`, `inspect` (docs/persistence.md).

A file holds the class and the parameters of a learner, its label names, and every number of its state. `load` makes a
fresh learner from the parameters, as a first `partial_fit` would, and puts the numbers into it where type and shape
agree: a file says what the state is and never what to run. What comes back goes on as the original would have, to the
bit, random numbers included.

What is state is found by walking over the attributes of the engine and its parts, so that a new attribute is saved
without a word here; scratch (`_SCRATCH`), costs and functions, which come with the parameters, are passed over.
"""

import copy
import os
from collections.abc import Callable
from dataclasses import fields
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from csdpp._kernels.block import Work
from csdpp._kernels.msg import Turn
from csdpp.choice import ChoosingEngine
from csdpp.container import pack, read_file, unpack, write_file
from csdpp.costs import Cost, resolve_cost
from csdpp.errors import CsdppError, DataFormatError, InvalidInput, InvalidParameter
from csdpp.estimator import OnlineClassifier, code_size
from csdpp.targets import Targets
from csdpp.tuning import OnlineTuner
from csdpp.values import SINGLE, Given, Writer, Wrong, decoded

__all__ = ["save", "load", "dumps", "loads", "inspect", "FORMAT"]

Array = NDArray[Any]
Path_ = str | os.PathLike[str]

#: Of the files that are written. Older ones can be read: tests/stored holds some of each.
FORMAT = 3
#: Attributes of an engine's parts that came with a format: in older files they are absent, and begin afresh.
_SINCE = {"calibration": 3}
LEARNERS: dict[str, type[OnlineClassifier]] = SINGLE | {OnlineTuner.__name__: OnlineTuner}
_SCRATCH = (Work, Turn)
_DERIVED = {"_adjusted", "halving"}  # follows from the parameters, or the next call finds it out again
_CHANGING = {"block_size", "done", "next_drop", "leading"}  # whole numbers that need not be what the parameters say now


def save(model: OnlineClassifier, path: Path_, *, extra: Any = None) -> None:
    """Write a learner into a file, whole or not at all (see `csdpp.container.write_file`).

    Parameters
    ----------
    model : an online learner of this package, fitted or not
    path : str or path
    extra : numbers, strings, arrays, lists, tuples, sets and dicts of them
        Kept beside the learner; `inspect` shows it.

    Notes
    -----
    O(size of the state), one pass for the checksum and one to write, no copy of large arrays. A cost or a rate that
    is a function of one's own cannot be kept: `load` asks for it.

    Examples
    --------
    >>> import tempfile
    >>> from csdpp import CSDPP
    >>> from csdpp.datasets import make_stream
    >>> stream = make_stream(200, 10, 6, rank=2, random_state=0)
    >>> model = CSDPP(2).fit(stream.X, stream.Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/tags.csdpp")
    ...     again = load(f"{folder}/tags.csdpp")
    >>> bool((again.predict(stream.X) == model.predict(stream.X)).all()), again.n_seen_
    (True, 200)
    """
    write_file(path, pack(*_describe(model, extra)))


def load(path: Path_, *, of: type[OnlineClassifier] = OnlineClassifier, **given: Any) -> Any:
    """The learner in a file, as it was.

    Parameters
    ----------
    path : str or path
    of : class
        What the learner must be, if not any.
    given : parameters
        Those that no file can hold, such as ``cost=`` a function of one's own.

    Raises
    ------
    DataFormatError
        If the file is no model, damaged, cut short, of a later version, or says what cannot be. Nothing in it is
        run and nothing larger than the file is allocated before all of it is known to fit.
    """
    return _restore(read_file(path), os.fspath(path), of, given)


def dumps(model: OnlineClassifier, *, extra: Any = None) -> bytes:
    """The bytes that `save` writes."""
    return b"".join(pack(*_describe(model, extra)))


def loads(data: bytes, *, of: type[OnlineClassifier] = OnlineClassifier, **given: Any) -> Any:
    """The learner in the bytes of a file: see `load`."""
    return _restore(data, "the bytes given", of, given)


def inspect(path: Path_) -> dict[str, Any]:
    """What a file says of its learner, whose checksum is tested and which is not built.

    Returns
    -------
    dict
        "format", "version" (of csdpp), "class", "parameters", "n_seen", "n_features", "labels" (array or None),
        "state" (name -> type and shape), "extra", "bytes".
    """
    name, data = os.fspath(path), read_file(path)
    header, decode = _open(data, name)
    fitted, targets = _part(header, "fitted", decode), _part(header, "targets", decode)
    state = {key: decode(value) for key, value in header.get("state", {}).items()}
    return {
        "format": header["format"],
        "version": header.get("version"),
        "class": header.get("class"),
        "parameters": _part(header, "parameters", decode),
        "n_seen": fitted.get("n_seen_", 0),
        "n_features": fitted.get("n_features_in_"),
        "labels": targets.get("classes"),
        "state": {key: _sort(value) for key, value in state.items()},
        "extra": decode(header.get("extra")),
        "bytes": len(data),
    }


def _sort(value: Any) -> str:
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__


# ------------------------------------------------------------------------------------------------ saving


def _describe(model: OnlineClassifier, extra: Any) -> tuple[dict[str, Any], list[Array]]:
    from csdpp import __version__

    who = type(model).__name__
    if LEARNERS.get(who) is not type(model):
        raise InvalidInput(f"csdpp.persist: can save {', '.join(LEARNERS)}, got {who}; save one of these")
    writer = Writer()
    parameters = model.get_params(deep=False)
    learned = {k: v for k, v in vars(model).items() if k not in parameters and k not in _DERIVED}
    engine, targets = learned.pop("_engine", None), learned.pop("_targets", None)
    state = {} if engine is None else dict(_leaves(engine, ""))
    header = {
        "format": FORMAT,
        "version": __version__,
        "class": who,
        "parameters": {k: writer.parameter(v) for k, v in parameters.items()},
        "fitted": {k: writer.value(v, k) for k, v in learned.items()},
        "targets": None if targets is None else {k: writer.value(v, k) for k, v in vars(targets).items()},
        "state": {k: writer.value(v, k) for k, v in state.items()},
        "extra": writer.value(extra, "extra"),
    }
    return header, writer.arrays


def _leaves(node: Any, path: str) -> Any:
    """Names and values of all state below a node."""
    children = _children(node)
    if children is None:
        yield path, node
        return
    for name, child in children.items():
        yield from _leaves(child, f"{path}.{name}" if path else name)


def _children(node: Any) -> dict[str, Any] | None:
    """The named parts of a part of the engine; None for a plain value; {} for what is no state."""
    if isinstance(node, (*_SCRATCH, Cost)):
        return {}
    if isinstance(node, np.dtype) or callable(node):
        return {}
    if hasattr(node, "_fields"):
        return cast(dict[str, Any], node._asdict())
    if type(node).__module__.startswith("csdpp."):
        known = vars(node) if hasattr(node, "__dict__") else {}
        derived = _DERIVED | {k for k in known if isinstance(getattr(type(node), k, None), cached_property)}
        return {k: v for k, v in known.items() if k not in derived}
    if isinstance(node, list | tuple) and any(_children(part) is not None for part in node):
        return {str(i): part for i, part in enumerate(node)}
    return None


# ----------------------------------------------------------------------------------------------- loading

Decode = Callable[[Any], Any]


def _restore(data: bytes, name: str, of: type[OnlineClassifier], given: dict[str, Any]) -> Any:
    header, decode = _open(data, name)
    cls = LEARNERS.get(str(header.get("class")))
    if cls is None:
        raise DataFormatError(f"{name}: must hold one of {', '.join(LEARNERS)}, got {header.get('class')!r:.80}")
    if not issubclass(cls, of):
        raise DataFormatError(f"{name}: holds a {cls.__name__}, and {of.__name__} was asked for; use {cls.__name__}")
    parameters = _with_given(name, cls, _part(header, "parameters", decode), given)
    try:
        return _build(cls, parameters, header, decode, len(data))
    except Wrong as error:
        raise DataFormatError(f"{name}: {error}; the file was not written by `save`") from None
    except (CsdppError, TypeError, ValueError, ArithmeticError, AttributeError, LookupError, MemoryError) as error:
        said = (str(error).splitlines() or [""])[0]
        raise DataFormatError(f"{name}: the parts of the model do not fit together ({said:.200})") from None


def _open(data: bytes, name: str) -> tuple[dict[str, Any], Decode]:
    header, arrays = unpack(data, name)
    version = header.get("format")
    if type(version) is not int or version < 1:
        raise DataFormatError(f"{name}: the header must give the version of its format, got {version!r:.80}")
    if version > FORMAT:
        raise DataFormatError(
            f"{name}: is of format {version}, and this csdpp reads up to {FORMAT}; upgrade csdpp "
            f"(it was written by {header.get('version')!s:.40})"
        )

    def decode(value: Any) -> Any:
        try:
            return decoded(value, arrays)
        except (Wrong, TypeError, ValueError, LookupError, RecursionError) as error:
            said = (str(error).splitlines() or [""])[0]
            raise DataFormatError(f"{name}: the header holds what cannot be read ({said:.200})") from None

    return header, decode


def _part(header: dict[str, Any], key: str, decode: Decode) -> dict[str, Any]:
    part = header.get(key) or {}
    return {k: decode(v) for k, v in part.items()} if isinstance(part, dict) else {}


def _with_given(name: str, cls: type, saved: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """All parameters, those given in the place of those that the file does not hold."""
    wanted = {key: value for key, value in saved.items() if isinstance(value, Given)}
    missing = [key for key in wanted if key not in given]
    if missing:
        key = missing[0]
        raise InvalidParameter(
            f"{name}: was saved with {key} {str(wanted[key])!r}, a function of your own, which no file can hold; "
            f"pass it: load(path, {key}=...)"
        )
    odd = [key for key in given if key not in wanted]
    if odd:
        raise InvalidParameter(f"{name}: {odd[0]} must be left out, the file holds it; use set_params afterwards")
    for key, value in wanted.items():
        if key == "cost" and resolve_cost(given[key]).name != value:
            raise InvalidParameter(
                f"{name}: cost must be the one called {str(value)!r}, got {resolve_cost(given[key]).name!r}"
            )
    return saved | given


def _build(cls: type[OnlineClassifier], parameters: dict[str, Any], header: Any, decode: Decode, size: int) -> Any:
    """A fresh learner as a first `partial_fit` would make it, and then the state."""
    if not set(parameters) <= set(cls().get_params(deep=False)):
        raise Wrong(f"the parameters must be those of {cls.__name__}, got {', '.join(parameters):.200}")
    model = cls(**parameters)
    fitted, state = _part(header, "fitted", decode), _part(header, "state", decode)
    for key, value in fitted.items():
        if hasattr(cls, key) or key in parameters or key in ("_engine", "_targets"):
            raise Wrong(f"a learner has no fitted {key:.80}")
        setattr(model, key, value)
    if not header.get("targets"):
        return model
    targets = _targets(_part(header, "targets", decode))
    if header["format"] == 1:
        _upgrade(state, targets.K, bool(model.fit_intercept))
    d = fitted.get("n_features_in_")
    if type(d) is not int or not 0 <= d <= size or not 1 <= targets.K <= size:
        raise Wrong(f"features and labels must be counted, got {d!r:.80} and {targets.K}")
    engine = _fresh_engine(model, d, targets, state, fitted)
    unused = dict(state)
    _complete(engine, unused, header["format"])
    _put(engine, "", unused)
    if unused:
        raise Wrong(f"there is no place for {', '.join(unused):.200}")
    model._engine, model._targets = engine, targets
    if isinstance(getattr(model, "random_state", None), np.random.RandomState):
        model.random_state.set_state(decode(header["parameters"]["random_state"]).get_state())
    return model


def _upgrade(state: dict[str, Any], K: int, intercept: bool) -> None:
    """What files of format 1 do not say: of a label that comes later, they know that it was never there."""
    for name in [name for name in state if name.endswith("regressor.W")]:
        prefix, absent = name[: -len("regressor.W")], np.zeros(len(state[name]))
        if intercept:  # the column of such a label is -1/sqrt(K) for the constant feature
            absent[-1] = -1.0 / np.sqrt(K)
            if f"{prefix}regressor.F" in state:  # and A times that is what the ridge keeps
                F = state[f"{prefix}regressor.F"].astype(np.float64)
                absent = np.linalg.solve(F.T, np.linalg.solve(F, absent))
        state[f"{prefix}regressor.absent"] = absent
        if f"{prefix}clock" in state:
            state[f"{prefix}clock"] = np.concatenate([state[f"{prefix}clock"], [-1.0 / np.sqrt(K), 0.0]])
            state[f"{prefix}known"] = np.zeros(K)


def _fresh_engine(model: Any, d: int, targets: Targets, state: dict[str, Any], fitted: dict[str, Any]) -> Any:
    """The engine that the numbers go into; nothing much larger than the file is made."""
    if isinstance(model, OnlineTuner):
        candidates = model._checked()
        live = _live(state, np.arange(len(candidates)))
        left = [_seeded(clone(candidates[place])) for place in live.tolist()]
        for i, one in enumerate(left):
            W = state.get(f"engines.{i}.regressor.W")
            if targets.kind == "multilabel" and isinstance(W, np.ndarray) and W.ndim == 2:
                one._hold_size(W.shape[1])
            _check_sizes(one, d, targets, state, f"engines.{i}.", vars(one))
        return model._start_with(d, targets, live, left)
    # Of candidates that differ in lambda only, all are alike.
    _check_sizes(model, d, targets, state, "" if "regressor.W" in state else "engines.0.", fitted)
    engine = _seeded(copy.copy(model))._start(d, targets)
    if isinstance(engine, ChoosingEngine):
        engine.keep(_live(state, engine.live))
    return engine


def _seeded(model: Any) -> Any:
    """The model, which draws nothing from NumPy's own random state: what was drawn is in the file."""
    if getattr(model, "random_state", 0) is None:
        model.random_state = 0
    return model


def _check_sizes(
    model: Any, d: int, targets: Targets, state: dict[str, Any], prefix: str, fitted: dict[str, Any]
) -> None:
    """Whether what is large in the state of a learner is in the file."""
    W, F = state.get(f"{prefix}regressor.W"), state.get(f"{prefix}regressor.F")
    if (W is None or len(W) != d + bool(model.fit_intercept)) or (
        model.regressor == "ridge" and (F is None or F.shape != (len(W), len(W)))
    ):
        raise Wrong(f"the regressor must be that of {d} features")
    held = sum(array.nbytes for array in state.values() if isinstance(array, np.ndarray))
    M = getattr(model, "n_components", None) if targets.kind == "multilabel" else None
    M = fitted.get("_fixed_size", None if M is None else code_size(type(model).__name__, M, targets.K))
    if M is not None and not (type(M) is int and 1 <= M <= held // (targets.K * W.itemsize)):
        raise Wrong("the directions must be in the file")


def _complete(engine: Any, state: dict[str, Any], version: int) -> None:
    """Add to the state of an older file what it could not have."""
    for path, value in _leaves(engine, ""):
        if any(_SINCE.get(part, 0) > version for part in path.split(".")):
            state.setdefault(path, value)


def _live(state: dict[str, Any], known: Array) -> Array:
    """The candidates that the file has, some of the ``known`` ones."""
    live, leading = state.get("live"), state.get("leading")
    if not isinstance(live, np.ndarray) or live.dtype != known.dtype or live.ndim != 1 or not len(live):
        raise Wrong("the candidates must be numbered")
    if not np.isin(live, known).all() or (np.diff(live) < 1).any() or leading not in live.tolist():
        raise Wrong("the candidates must be some of those of the parameters, and the leader one of them")
    return live


def _targets(parts: dict[str, Any]) -> Targets:
    if set(parts) != {field.name for field in fields(Targets)}:
        raise Wrong(f"the labels must be described by {', '.join(field.name for field in fields(Targets))}")
    targets = Targets(**parts)
    classes = targets.classes
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or not len(classes):
        raise Wrong("the labels must have names, in a row")
    if targets.kind not in ("multilabel", "multiclass", "binary") or not isinstance(targets.dtype, np.dtype):
        raise Wrong(f"labels cannot be {targets.kind!r:.80} of type {targets.dtype!r:.80}")
    if targets.kind == "binary" and len(classes) > 2:
        raise Wrong(f"two classes have two names, got {len(classes)}")
    return targets


def _put(node: Any, path: str, state: dict[str, Any]) -> Any:
    """The node with the state in it, taken out of ``state``; parts are changed in place where they can be."""
    children = _children(node)
    if children is None:
        if path not in state:
            raise Wrong(f"{path} is missing")
        return _fitting(node, state.pop(path), path)
    new = {name: _put(child, f"{path}.{name}" if path else name, state) for name, child in children.items()}
    if hasattr(node, "_fields") and children:
        _check_kernel_state(node, new, path)
        return type(node)(**new)
    if isinstance(node, list | tuple) and children:
        return type(node)(new.values())
    if children:
        vars(node).update(new)
    return node


def _fitting(fresh: Any, saved: Any, path: str) -> Any:
    """The saved value, if the fresh one could have become it by learning."""
    if isinstance(fresh, np.ndarray):
        if not isinstance(saved, np.ndarray) or saved.dtype != fresh.dtype or saved.shape != fresh.shape:
            raise Wrong(f"{path} must be {_sort(fresh)}, got {_sort(saved)}")
        return saved
    if isinstance(fresh, np.random.RandomState):
        if not isinstance(saved, np.random.RandomState):
            raise Wrong(f"{path} must be a random state, got {_sort(saved)}")
        fresh.set_state(saved.get_state())  # in place: the parameter may be the same object
        return fresh
    if isinstance(fresh, float):
        if not isinstance(saved, float):
            raise Wrong(f"{path} must be a number, got {_sort(saved)}")
        return saved
    same = path.rpartition(".")[2] not in _CHANGING
    if isinstance(fresh, bool | int | str) and (type(saved) is not type(fresh) or (same and saved != fresh)):
        raise Wrong(f"{path} must be {fresh!r} with these parameters, got {saved!r:.80}")
    return saved


def _check_kernel_state(node: Any, new: dict[str, Any], path: str) -> None:
    """Numbers that compiled code takes for places in an array."""
    if "counts" in new:
        m = len(new["sigma"])
        held, full, updates, repaired, width = new["counts"].tolist()
        if not (0 <= held <= m and full in (0, 1) and 0 <= repaired <= updates and 0 <= width <= m):
            raise Wrong(f"{path}.counts cannot be {new['counts'].tolist()}")
