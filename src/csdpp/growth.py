"""Label and feature sets that grow and shrink amid a stream (docs/streams.md says what is exact).

`GrowingSets` is what the learners are made of: by name, `add_labels`, `add_features`, `drop_labels` and
`drop_features`; and `partial_fit` takes a frame with more columns than before. How the state follows is said where the
state is: `csdpp.engine`, `csdpp.regressors`, `csdpp.encoders`.
"""

import copy
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from csdpp.errors import InvalidInput
from csdpp.targets import Targets, column_names

Array = NDArray[Any]


class GrowingSets:
    """The part of an online classifier that lets labels and features come and go."""

    _engine: Any
    _targets: Targets
    classes_: Array
    n_features_in_: int

    # ---- what a user calls

    def add_labels(self, names: Any) -> Self:
        """Take in new labels, which come last.

        A new label is one that no row so far had: with fixed weights (`OnlineBinaryRelevance`; `CSDPP` with
        ``cost="hamming"`` and "pbc") the learner is then the one that knew the label from the start.

        Parameters
        ----------
        names : sequence of names, or int
            A number of labels is for learners whose labels are numbered: the numbers go on.

        Examples
        --------
        >>> import numpy as np
        >>> from csdpp import OnlineBinaryRelevance
        >>> X = np.eye(3).repeat(20, axis=0)
        >>> model = OnlineBinaryRelevance().fit(X, X[:, :1])
        >>> model.add_labels(["new"]).classes_.tolist()
        [0, 'new']
        >>> model.partial_fit(X, X[:, :2]).predict(np.eye(3))
        array([[1., 0.],
               [0., 1.],
               [0., 0.]])

        Notes
        -----
        O(d^2 + dK) once, and a copy of the state: all or nothing.
        """
        self._grow(self._new_labels(names), [])
        return self

    def add_features(self, names: Any) -> Self:
        """Take in new features, which come last: they were zero in all rows so far.

        Parameters
        ----------
        names : sequence of names, or int
            Where features have no names (no frame was ever given), only their number counts.

        Examples
        --------
        >>> import numpy as np
        >>> from csdpp import OnlineBinaryRelevance
        >>> X, Y = np.ones((5, 2)), np.ones((5, 1))
        >>> OnlineBinaryRelevance().fit(X, Y).add_features(1).predict(np.ones((1, 3)))
        array([[1.]])
        """
        self._grow([], self._new_features(names))
        return self

    def drop_labels(self, names: Any) -> Self:
        """Forget labels.

        Parameters
        ----------
        names : sequence of names in ``classes_``

        Examples
        --------
        >>> import numpy as np
        >>> from csdpp import OnlineBinaryRelevance
        >>> model = OnlineBinaryRelevance().fit(np.eye(3), np.eye(3))
        >>> model.drop_labels([1]).classes_.tolist()
        [0, 2]
        """
        places = self._places(names, self._growing_targets().classes, "labels", "classes_")
        if len(places) == len(self.classes_):
            raise InvalidInput(f"{self._name}: must keep at least one label, got all {len(places)} to drop")
        engine = self._copy_of_engine()
        engine.drop_labels(places, self._code_size(len(self.classes_) - len(places)))
        self._take(engine, np.delete(self.classes_, places))
        return self

    def drop_features(self, names: Any) -> Self:
        """Forget features: rows must come without them. With the ridge, it is as if they had never been there.

        Parameters
        ----------
        names : sequence of names in ``feature_names_in_``, or of columns where features have no names

        Examples
        --------
        >>> import numpy as np
        >>> from csdpp import OnlineBinaryRelevance
        >>> model = OnlineBinaryRelevance().fit(np.eye(3), np.eye(3)).drop_features([0])
        >>> model.predict(np.eye(3)[:, 1:])
        array([[0., 0., 0.],
               [0., 1., 0.],
               [0., 0., 1.]])
        """
        self._require_fitted()
        known = getattr(self, "feature_names_in_", None)
        columns = np.arange(self.n_features_in_) if known is None else known
        places = self._places(names, columns, "features", "feature_names_in_")
        if len(places) == self.n_features_in_:
            raise InvalidInput(f"{self._name}: must keep at least one feature, got all {len(places)} to drop")
        engine = self._copy_of_engine()
        engine.drop_features(places)
        if known is not None:
            self.feature_names_in_ = np.delete(known, places)
        self.n_features_in_ -= len(places)
        self._engine = engine
        return self

    # ---- frames with more columns than before

    def _grow_with(self, X: Any, Y: Any) -> Any:
        """Grow by the columns of the frames X and Y that are new, if all known ones are there; X as it is known."""
        labels: list[Any] = []
        names = column_names(Y)
        if self._targets.kind == "multilabel" and self._targets.named and names is not None:
            labels = _new(names, self._targets.classes)
        features = [] if (given := self._named_features(X)) is None else _new(given, self.feature_names_in_)
        if labels or features:
            self._grow(labels, features)
        return self._known_features(X)

    def _known_features(self, X: Any) -> Any:
        """The columns of a frame in our order, if it has all of them and more, or if we have grown."""
        names = self._named_features(X)
        if names is None or not set(self.feature_names_in_) <= set(names.tolist()):
            return X  # nothing to do, or scikit-learn says what is missing
        if len(names) == self.n_features_in_ and not getattr(self, "_in_any_order", False):
            return X
        return X[self.feature_names_in_.tolist()]

    def _named_features(self, X: Any) -> Array | None:
        """The columns of X where we and X have names, each of which stands there once."""
        names = column_names(X) if hasattr(self, "feature_names_in_") else None
        return names if names is not None and len(set(names.tolist())) == len(names) else None

    # ---- how it is done

    def _grow(self, labels: list[Any], features: list[Any]) -> None:
        """All or nothing: the state is copied, and the copy taken over at the end."""
        engine = self._copy_of_engine()
        if labels:
            engine.add_labels(len(labels), self._code_size(len(self.classes_) + len(labels)))
        if features:
            engine.add_features(len(features))
        self._take(engine, _joined(self.classes_, labels))
        if features and hasattr(self, "feature_names_in_"):
            self.feature_names_in_ = np.concatenate([self.feature_names_in_, np.array(features, object)])
            self._in_any_order = True
        self.n_features_in_ += len(features)

    def _take(self, engine: Any, classes: Array) -> None:
        self._engine, self._targets, self.classes_ = engine, replace(self._targets, classes=classes), classes

    def _copy_of_engine(self) -> Any:
        """With the user's functions and random state: they stay who they are."""
        engines = getattr(self._engine, "engines", [self._engine])
        kept = [vars(engine).get(name) for engine in engines for name in ("cost", "schedule", "rng")]
        kept.append(getattr(self._engine, "cost", None))
        return copy.deepcopy(self._engine, {id(part): part for part in kept})

    def _code_size(self, K: int) -> Any:
        """M for K labels, where it follows from them; of several learners side by side a list."""
        return None

    def _hold_size(self, p: int) -> None:
        """Go on with p numbers a row from the regressor, where that does not follow from the parameters."""

    # ---- names

    def _new_labels(self, names: Any) -> list[Any]:
        classes = self._growing_targets().classes
        if isinstance(names, int | np.integer) and not isinstance(names, bool):
            if classes.dtype.kind not in "iu":
                raise InvalidInput(f"{self._name}: new labels must have names as the others have, got their number")
            return list(range(int(classes.max()) + 1, int(classes.max()) + 1 + int(names)))
        return self._unknown(names, classes.tolist(), "label")

    def _new_features(self, names: Any) -> list[Any]:
        self._require_fitted()
        known = getattr(self, "feature_names_in_", None)
        if isinstance(names, int | np.integer) and not isinstance(names, bool):
            if known is not None:
                raise InvalidInput(f"{self._name}: new features must have names as the others have, got their number")
            return list(range(self.n_features_in_, self.n_features_in_ + int(names)))
        new = self._unknown(names, [] if known is None else known.tolist(), "feature")
        if known is not None and not all(isinstance(name, str) for name in new):
            raise InvalidInput(f"{self._name}: names of features must be strings, got {new[:5]}")
        return new

    def _unknown(self, names: Any, known: list[Any], what: str) -> list[Any]:
        new, seen = self._listed(names, what + "s"), set(known)
        odd = []
        for name in new:
            if name in seen:
                odd.append(name)
            seen.add(name)
        if odd:
            raise InvalidInput(f"{self._name}: a new {what} must have a name of its own, got {odd[:5]} again")
        return new

    def _listed(self, names: Any, what: str) -> list[Any]:
        if isinstance(names, str | bytes) or not isinstance(names, Iterable):
            raise InvalidInput(f"{self._name}: {what} must be a list of names, got {names!r:.80}; put it into brackets")
        listed = [name.item() if isinstance(name, np.generic) else name for name in names]
        odd = [name for name in listed if not isinstance(name, Hashable)]
        if odd:
            raise InvalidInput(f"{self._name}: names of {what} must be hashable (str, int), got {odd[0]!r:.80}")
        return listed

    def _places(self, names: Any, known: Array, what: str, where: str) -> Array:
        index = {name: place for place, name in enumerate(known.tolist())}
        listed = self._listed(names, what)
        odd = [name for name in listed if name not in index]
        if odd:
            raise InvalidInput(f"{self._name}: {what} to drop must be known, got {odd[:5]}; see {where}")
        return np.array(sorted({index[name] for name in listed}), np.int64)

    def _growing_targets(self) -> Targets:
        self._require_fitted()
        if self._targets.kind != "multilabel":
            raise InvalidInput(
                f"{self._name}: labels come and go with indicators (n, K) only, got 1-D classes before; name all "
                "classes in the first partial_fit(X, y, classes=...)"
            )
        return self._targets

    def _require_fitted(self) -> None:
        if not hasattr(self, "_engine"):
            raise InvalidInput(
                f"{self._name}: must know labels and features before they change; call partial_fit first"
            )

    @property
    def _name(self) -> str:
        return type(self).__name__


def _new(names: Array, known: Array) -> list[Any]:
    """The names that are not known, if all known ones are among them; else none, and others say what is wrong."""
    given, before = names.tolist(), set(known.tolist())
    complete = before <= set(given) and len(set(given)) == len(given)
    return [name for name in given if name not in before] if complete else []


def _joined(classes: Array, names: list[Any]) -> Array:
    """Names of one kind as one array of their type, of several kinds as objects."""
    if not names:
        return classes
    kinds = {type(name) for name in [*classes.tolist(), *names]}
    if classes.dtype != object and len(kinds) == 1:
        return np.concatenate([classes, np.array(names)])
    out = np.empty(len(classes) + len(names), object)
    out[:] = [*classes.tolist(), *names]
    return out
