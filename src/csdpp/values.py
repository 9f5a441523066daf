"""Plain values as JSON and back: what headers of files are made of (`csdpp.persist`).

Numbers, strings and None stand for themselves, all else is a dict of one key that begins with $: ``{"$array": 3}`` is
the third array behind the header. Nothing that is read is ever run: classes and costs are looked up by name.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from csdpp.baselines import OnlineBinaryRelevance, OnlineCompressedSensing, OnlineRandomProjection
from csdpp.container import can_hold
from csdpp.costs import NAMED, Cost
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.estimator import OnlineClassifier
from csdpp.learner import CSDPP
from csdpp.rates import Constant

Array = NDArray[Any]
#: Learners that may be parts of others.
SINGLE: dict[str, type[OnlineClassifier]] = {
    cls.__name__: cls for cls in (CSDPP, OnlineBinaryRelevance, OnlineCompressedSensing, OnlineRandomProjection)
}


class Given(str):
    """The name of a parameter's value that the file does not hold."""


class Wrong(Exception):
    """What is wrong with a file, in words."""


class Writer:
    """Plain values as JSON; arrays go into a list, each only once."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._known: dict[int, int] = {}

    def parameter(self, value: Any) -> Any:
        """A parameter; a function is only named."""
        if isinstance(value, type) and value in NAMED.values():
            value = value()
        if isinstance(value, Cost):
            return {"$cost" if type(value) in NAMED.values() else "$given": value.name}
        if isinstance(value, type):  # such as numpy.float32
            value = np.dtype(value)
        if type(value) is Constant:
            return {"$constant": float(value.rate)}
        if callable(value):
            return {"$given": getattr(value, "__name__", type(value).__name__)}
        if isinstance(value, list | tuple) and any(isinstance(item, OnlineClassifier) for item in value):
            return {"$list": [self.learner(item) for item in value]}
        return self.value(value, "a parameter")

    def learner(self, value: Any) -> Any:
        """A candidate: its class and parameters."""
        who = type(value).__name__
        if SINGLE.get(who) is not type(value):
            raise InvalidInput(f"csdpp.persist: candidates must be {', '.join(SINGLE)} to be saved, got {who}")
        parameters = {k: self.parameter(v) for k, v in value.get_params(deep=False).items()}
        functions = [k for k, v in parameters.items() if isinstance(v, dict) and "$given" in v]
        if functions:
            raise InvalidInput(
                f"csdpp.persist: candidates must have no functions to be saved, got one as {functions[0]}"
            )
        return {"$learner": [who, parameters]}

    def value(self, value: Any, where: str) -> Any:
        """Numbers, strings, None, arrays, random states, and containers of them."""
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if isinstance(value, float):  # NumPy's float64 is one
            return float(value) if np.isfinite(value) else {"$float": str(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if isinstance(value, np.generic):
            return {"$scalar": self._put(np.asarray(value), where)}
        if isinstance(value, np.dtype):
            return {"$dtype": value.str}
        if isinstance(value, np.random.RandomState):
            return self._random_state(value)
        if isinstance(value, dict):
            return {"$dict": [[self.value(k, where), self.value(v, where)] for k, v in value.items()]}
        for kind in (list, tuple, set):
            if type(value) is kind:
                items = sorted(value, key=repr) if kind is set else value
                return {f"${kind.__name__}": [self.value(item, where) for item in items]}
        raise InvalidInput(
            f"csdpp.persist: {where} must be numbers, strings or arrays to be saved, got {type(value).__name__}"
        )

    def _array(self, array: Array, where: str) -> Any:
        if array.dtype == object:
            items = [self.value(item, where) for item in array.ravel().tolist()]
            return {"$objects": [list(array.shape), items]}
        return {"$array": self._put(array, where)}

    def _put(self, array: Array, where: str) -> int:
        if not can_hold(array):
            raise InvalidInput(f"csdpp.persist: {where} must be numbers or strings to be saved, got {array.dtype}")
        if id(array) not in self._known:
            self._known[id(array)] = len(self.arrays)
            self.arrays.append(array)  # which keeps it alive, and its id its own
        return self._known[id(array)]

    def _random_state(self, rng: np.random.RandomState) -> Any:
        state = rng.get_state(legacy=False)
        kind, inner = state["bit_generator"], state["state"]
        if kind != "MT19937":
            raise InvalidParameter(f"csdpp.persist: random_state must be MT19937 to be saved, got {kind}; use a seed")
        keys = self._put(inner["key"], "random_state")
        return {"$random": [keys, int(inner["pos"]), int(state["has_gauss"]), float(state["gauss"])]}


def decoded(value: Any, arrays: list[Array]) -> Any:
    """Plain values; the inverse of `Writer.value`."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if not isinstance(value, dict) or len(value) != 1:
        raise Wrong(f"no value is written {value!r:.80}")
    ((key, inner),) = value.items()
    match key:
        case "$float":
            return float(inner)
        case "$array" | "$scalar":
            array = arrays[_index(inner, arrays)]
            return array if key == "$array" else array.reshape(())[()]
        case "$dtype":
            return _dtype(inner)
        case "$objects":
            shape, items = inner
            out = np.empty(len(items), object)
            out[:] = [decoded(item, arrays) for item in items]
            return out.reshape(shape)
        case "$random":
            return _random_state(inner, arrays)
        case "$dict":
            return {decoded(k, arrays): decoded(v, arrays) for k, v in inner}
        case "$list" | "$tuple" | "$set":
            items = [decoded(item, arrays) for item in inner]
            return items if key == "$list" else tuple(items) if key == "$tuple" else set(items)
        case "$cost":
            return NAMED[inner]()
        case "$constant":
            return Constant(float(inner))
        case "$given":
            return Given(inner)
        case "$learner":
            who, parameters = inner
            return SINGLE[who](**{name: decoded(part, arrays) for name, part in parameters.items()})
    raise Wrong(f"no value is written {key!r:.80}")


def _index(value: Any, arrays: list[Array]) -> int:
    if type(value) is not int or not 0 <= value < len(arrays):
        raise Wrong(f"there is no array {value!r:.80}")
    return value


def _dtype(text: Any) -> np.dtype[Any]:
    if text == "|O":
        return np.dtype(object)
    dtype = np.dtype(text) if isinstance(text, str) and len(text) < 12 and "," not in text else None
    if dtype is None or dtype.kind not in "biufU":
        raise Wrong(f"labels cannot be of type {text!r:.80}")
    return dtype


def _random_state(parts: Any, arrays: list[Array]) -> np.random.RandomState:
    index, position, has_gauss, gauss = parts
    keys = arrays[_index(index, arrays)]
    good = keys.shape == (624,) and keys.dtype == np.uint32 and type(position) is int and 0 <= position <= 624
    if not good or has_gauss not in (0, 1) or not isinstance(gauss, float):
        raise Wrong("the random state must be one of MT19937")
    rng = np.random.RandomState(0)
    rng.set_state(("MT19937", keys, position, has_gauss, gauss))
    return rng
