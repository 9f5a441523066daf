"""The contract that all online learners share: validation, formats, scikit-learn's conventions.

A subclass says in `_build` which engine serves d features and K labels; everything a user calls is here.
"""

import re
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from csdpp.choice import ChoosingEngine
from csdpp.costs import Cost, Hamming
from csdpp.encoders import Identity
from csdpp.engine import Engine, FixedEngine
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.growth import GrowingSets
from csdpp.interrupts import Interrupted
from csdpp.regressors import OnlineGradient, OnlineRidge, Regressor
from csdpp.targets import Targets

Array = NDArray[Any]
#: Regularisations that "auto" chooses from, for features of the usual size; the first leads at the start.
CANDIDATES = (10.0, 1.0, 0.1, 100.0)
#: Rows after which the worst of them is dropped; after twice as many the next, and so on.
PATIENCE = 2048


class OnlineClassifier(GrowingSets, ClassifierMixin, BaseEstimator):
    """An online multi-label classifier over an `Engine`."""

    # What every subclass has as parameters.
    regressor: str
    regularization: float | str
    step: float
    forgetting: float
    fit_intercept: bool
    dtype: Any
    block_size: int
    random_state: Any

    _engine: Engine
    _targets: Targets

    # ---- learning

    def fit(self, X: Any, Y: Any) -> Self:
        """Forget everything and learn the rows of (X, Y) once, in order.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n, d)
        Y : 0/1 indicators of shape (n, K), dense, sparse or a frame; or 1-D classes of shape (n,). NaN: not known
        """
        self._learn(X, Y, None, reset=True)
        return self

    def partial_fit(self, X: Any, Y: Any, classes: Any = None, *, mask: Any = None) -> Self:
        """Learn the rows of (X, Y) in order, going on from what was learned before.

        Parameters
        ----------
        X, Y : as in `fit`; no rows at all are fine. Frames may have more columns than before: see `add_labels`
            and `add_features`
        classes : array-like, optional
            In the first call with 1-D targets: all classes that will ever come. With a matrix: label names.
        mask : dense array or frame (n, K), optional
            True where a label of Y is known. So is every label that is not NaN. One that is not known moves nothing,
            and the cost of a row is that of what is known of it.

        Notes
        -----
        All or nothing: if the call fails, the learner is as it was before. Ctrl-C takes effect at the end of a block:
        the rows before it are learned, and ``n_seen_`` counts them (with a cost of your own: all or nothing too).

        `set_params` between two calls may change ``forgetting``, ``step``, ``rate`` and ``block_size``: they hold from
        the next row on. All other parameters wait for `fit`.
        """
        self._learn(X, Y, classes, reset=False, mask=mask)
        return self

    def prequential(
        self,
        X: Any,
        Y: Any,
        *,
        classes: Any = None,
        mask: Any = None,
        return_bound: bool = False,
        return_proba: bool = False,
    ) -> Any:
        """Predict, then learn, row by row; return what was predicted for each row before it was learned.

        Parameters
        ----------
        X, Y, classes, mask : as in `partial_fit`
        return_bound : bool
            Also return the two terms of the paper's bound on the cost of each row (n, 2): prediction error and
            reconstruction error (theorems 1 and 3).
        return_proba : bool
            Also return what `predict_proba` would have said of each row before it was learned (n, K); not for 1-D
            classes.

        Returns
        -------
        Predictions in the format of Y; with bound or chances, or both in this order, a tuple of them.
        """
        options = {"record": return_bound, "chances": return_proba, "mask": mask}
        positive, *more = self._learn(X, Y, classes, reset=False, **options)
        labels = self._targets.format(positive)
        wanted = [extra for extra, asked in zip(more, (return_bound, return_proba), strict=True) if asked]
        return (labels, *wanted) if wanted else labels

    def _learn(
        self,
        X: Any,
        Y: Any,
        classes: Any,
        *,
        reset: bool,
        record: bool = False,
        chances: bool = False,
        mask: Any = None,
    ) -> tuple[Any, Any, Any]:
        first = reset or not self.__sklearn_is_fitted__()
        before = dict(vars(self))
        try:
            if Y is None:
                raise ValueError(f"{self._who} requires y to be passed, but the target y is None.")
            if not first:
                X = self._grow_with(X, Y)
            elif reset:
                self._forget_sets()
            X = self._check_features(X, reset=first, min_rows=1 if reset else 0)
            targets = Targets.learn(self._who, Y, classes) if first else self._targets
            rows, known = targets.read(Y, mask)
            if rows.shape[0] != X.shape[0]:
                raise InvalidInput(f"{self._who}: X and Y must have as many rows, got {X.shape[0]} and {rows.shape[0]}")
            if first:
                self._engine = self._start(X.shape[1], targets)
                self._targets = targets
                self.classes_ = targets.classes
                self.n_seen_ = 0
            else:
                self._adjust()
            P = self._room_for_chances(X.shape[0]) if chances else None
            positive, bound = self._engine.learn(X, rows, record, P, known)
            self.n_seen_ += X.shape[0]
        except BaseException as error:
            self.__dict__.clear()
            self.__dict__.update(before)
            if isinstance(error, Interrupted) and not first:
                self.n_seen_ += error.rows
            raise
        return positive, bound, P

    def _room_for_chances(self, n: int) -> Array:
        if self._targets.kind != "multilabel":
            raise InvalidInput(f"{self._who}: return_proba=True needs (n, K) indicators, got 1-D classes; leave it out")
        return np.empty((n, self._engine.K))

    def _forget_sets(self) -> None:
        """What only a grown learner has."""
        for name in ("_in_any_order", "_fixed_size"):
            self.__dict__.pop(name, None)

    def _adjust(self) -> None:
        """Hand on what `set_params` changed since the last call, as far as it may change amid a stream."""
        current = self._engine.adjustable
        wanted = {name: getattr(self, name) for name in current}
        if wanted != current:
            self._check_options()
            self._engine.adjust(**wanted)

    def _start(self, d: int, targets: Targets) -> Engine:
        """The engine for d features and these targets. 1-D classes are few: no reduction there."""
        d += 1 if self._check_options() else 0
        if isinstance(self.regularization, str):
            return self._start_race(d, targets)
        if targets.kind != "multilabel":
            parts = self._parts(d, targets.K, targets.K, Identity())
            return FixedEngine(**parts, exclusive=targets.kind == "multiclass")
        return self._build(d, targets.K)

    def _start_race(self, d: int, targets: Targets) -> Engine:
        """An engine for each regularisation that may turn out to be right."""
        choices = CANDIDATES if self.regressor == "ridge" else (1.0,)
        d -= int(self.fit_intercept)
        engines = [clone(self).set_params(regularization=value)._start(d, targets) for value in choices]
        if len(engines) == 1:
            return engines[0]
        cost = self._cost() if targets.kind == "multilabel" else Hamming()
        return ChoosingEngine(engines, cost, patience=PATIENCE, scaled=True)

    def _cost(self) -> Cost:
        """What candidates are compared by."""
        return Hamming()

    def _build(self, d: int, K: int) -> Engine:
        raise NotImplementedError

    def _parts(self, d: int, K: int, p: int, encoder: Any) -> dict[str, Any]:
        """What a `FixedEngine` is made of, for codes of p numbers."""
        return {
            "K": K,
            "encoder": encoder,
            "regressor": self._make_regressor(d, p),
            "block_size": int(self.block_size),
            "intercept": bool(self.fit_intercept),
            "regularization": float(self.regularization),
            "dtype": np.dtype(self.dtype),
        }

    def _make_regressor(self, d: int, p: int) -> Regressor:
        shared = {"forgetting": float(self.forgetting), "dtype": np.dtype(self.dtype)}
        if self.regressor == "ridge":
            return OnlineRidge(d, p, regularization=float(self.regularization), **shared)
        return OnlineGradient(d, p, step=float(self.step), **shared)

    # ---- predicting

    def decision_function(self, X: Any) -> Array:
        """Scores: a label is predicted where its score is at least 0. Nothing is learned.

        Columns of a frame that are not known yet add nothing.

        Returns
        -------
        Array (n, K) of floats; (n,) for 1-D targets of two classes.
        """
        check_is_fitted(self)
        X = self._check_features(self._known_features(X), reset=False, min_rows=0)
        scores: Array = self._engine.scores(X)
        return scores[:, 0] if self._targets.kind == "binary" else scores

    def predict(self, X: Any) -> Any:
        """Labels in the format that Y had: 0/1 rows in its dtype (CSR if it was sparse), or classes."""
        check_is_fitted(self)
        X = self._check_features(self._known_features(X), reset=False, min_rows=0)
        return self._targets.format(self._engine.predict(X))

    def predict_proba(self, X: Any) -> Array:
        """Calibrated chances of the labels (n, K): of labels with 0.8, about 8 in 10 are relevant.

        They are learned beside the learner, from the scores of each row before it was learned: a few sums a label,
        which fade over some 1000 rows (`csdpp.calibration`). A label of which nothing is known has 1/2. The chance
        rises with the score within a label. `predict` serves the cost and need not agree with a chance of 1/2, but
        for the first 50 rows, when the chance is kept on its side.

        For 1-D classes: (n, classes), rows add up to 1, and the largest is the class predicted.
        """
        check_is_fitted(self)
        X = self._check_features(self._known_features(X), reset=False, min_rows=0)
        scores, calibration = self._engine.scores(X), self._engine.calibration
        if self._targets.kind == "multilabel":
            return calibration.chances(scores)
        chances = calibration.exclusive_chances(scores)
        if self._targets.kind == "multiclass":
            return chances
        return np.hstack([1.0 - chances, chances])[:, -len(self.classes_) :]

    def predict_top(self, X: Any, k: int, *, by: str = "score", return_values: bool = False) -> Any:
        """The k best labels of each row by name, the best first; exact, and K scores are not sorted.

        Parameters
        ----------
        X : as in `fit`
        k : int, at most K
        by : {"score", "proba"}
            Rank by `decision_function` or by `predict_proba`. Chances compare labels of different frequency; scores
            of a learner told a cost are of that cost.
        return_values : bool
            Also return the scores or chances (n, k).

        Returns
        -------
        array (n, k) of entries of ``classes_``. Of equal labels the one that stands first in ``classes_`` is first.

        Notes
        -----
        O(K + k log k) a row beyond the scores, as a rule (O(K log k) at worst); memory O(n k) and a strip of scores.

        Examples
        --------
        >>> import numpy as np
        >>> from csdpp import OnlineBinaryRelevance
        >>> X, Y = np.eye(3).repeat(50, axis=0), np.eye(3, dtype=int).repeat(50, axis=0)
        >>> model = OnlineBinaryRelevance().partial_fit(X, Y, classes=["spam", "work", "home"])
        >>> model.predict_top(np.eye(3), 1).ravel()
        array(['spam', 'work', 'home'], dtype='<U4')
        """
        check_is_fitted(self)
        X = self._check_features(self._known_features(X), reset=False, min_rows=0)
        if self._targets.kind != "multilabel":
            raise InvalidInput(f"{self._who}: predict_top needs a learner of (n, K) indicators, not of 1-D classes")
        one_of(self._who, "by", by, ("score", "proba"))
        K = self._engine.K
        whole(self._who, "k", k, f"from 1 to the {K} labels", lambda v: 1 <= v <= K)
        columns, values = self._engine.top(X, int(k), by == "proba")
        names: Array = self.classes_[columns]
        return (names, values) if return_values else names

    # ---- files

    def save(self, path: Any) -> None:
        """Write the learner into a file, whole or not at all; no pickle. See `csdpp.persist.save`."""
        from csdpp import persist

        persist.save(self, path)

    @classmethod
    def load(cls, path: Any, **given: Any) -> Self:
        """The learner of this class in a file, as it was: it goes on to the bit as if never saved.

        ``given`` are parameters that no file can hold, such as ``cost=`` a function of one's own. See
        `csdpp.persist.load`.
        """
        from csdpp import persist

        learner: Self = persist.load(path, of=cls, **given)
        return learner

    # ---- fitted state

    @property
    def regularization_(self) -> float:
        """Lambda of the ridge; with "auto", what is chosen now."""
        engine = getattr(self, "_engine", None)
        if engine is None:
            raise AttributeError(f"{self._who} is not fitted yet: it has no regularization_")
        return float(engine.regularization)

    @property
    def _leader(self) -> Any:
        """The engine that answers; None before fitting."""
        engine = getattr(self, "_engine", None)
        return engine.leader if isinstance(engine, ChoosingEngine) else engine

    # ---- checks

    @property
    def _who(self) -> str:
        return type(self).__name__

    def _check_features(self, X: Any, *, reset: bool, min_rows: int) -> Any:
        dtype = self._float() if reset else self._engine.dtype
        if not reset and self._is_plain(X, dtype):
            return X
        return validated(self, X, dtype=dtype, reset=reset, ensure_min_samples=min_rows)

    def _is_plain(self, X: Any, dtype: Any) -> bool:
        """Whether there is nothing to convert or to refuse: what scikit-learn finds out in 60 microseconds.

        A sum of squares is not finite if any of its terms is not; where it overflows, scikit-learn decides.
        """
        return (
            type(X) is np.ndarray
            and X.dtype == dtype
            and X.ndim == 2
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
            and bool(np.isfinite(np.vdot(X, X)))
        )

    def _float(self) -> Any:
        try:
            dtype = np.dtype(self.dtype)
        except TypeError:
            dtype = np.dtype(object)
        if dtype not in (np.dtype(np.float64), np.dtype(np.float32)):
            raise InvalidParameter(f'{self._who}: dtype must be "float64" or "float32", got {self.dtype!r}')
        return dtype

    def _check_options(self) -> bool:
        """Validate what all learners share; return whether there is an intercept."""
        who = self._who
        one_of(who, "regressor", self.regressor, ("ridge", "gradient"))
        if not (isinstance(self.regularization, str) and self.regularization == "auto"):
            number(who, "regularization", self.regularization, 'positive, or "auto"', lambda v: v > 0)
        number(who, "step", self.step, "positive", lambda v: v > 0)
        number(who, "forgetting", self.forgetting, "in (0, 1]", lambda v: 0 < v <= 1)
        whole(who, "block_size", self.block_size, "at least 1", lambda v: v >= 1)
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise InvalidParameter(f"{who}: fit_intercept must be True or False, got {self.fit_intercept!r}")
        return bool(self.fit_intercept)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_engine")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


def validated(model: Any, X: Any, *, dtype: Any, **options: Any) -> Any:
    """Features by scikit-learn's `validate_data`, and what is wrong with them in one sentence of ours."""
    try:
        return validate_data(model, X, accept_sparse="csr", dtype=dtype, **options)
    except ValueError as error:
        said = str(error).splitlines()[0].rstrip(".:")
        if _OTHER_WIDTH.match(said):
            raise InvalidInput(f"{said}; call add_features first, if there are new ones") from None
        required = next((hint for start, hint in _REQUIRED.items() if said.startswith(start)), None)
        if required is None:
            raise
        if "contains NaN" in said or "contains infinity" in said:
            said += _first_place(X, dtype)
        raise InvalidInput(f"{type(model).__name__}: {said}; {required}") from None


_OTHER_WIDTH = re.compile(r"X has \d+ features, but \w+ is expecting \d+ features as input")
#: What scikit-learn says first, and what is required and to be done (its checks look for "Reshape your data").
_REQUIRED = {
    "Input X contains NaN": "features must be finite numbers: impute what is missing (sklearn.impute), or drop the row",
    "Input X contains infinity": "features must be finite numbers: clip them, or drop the row",
    "Complex data not supported": "features must be real numbers: pass X.real and X.imag as features of their own",
    "could not convert string to float": "features must be numbers: encode categories (sklearn.preprocessing."
    "OneHotEncoder) and texts (sklearn.feature_extraction.text) first",
    "Found array with dim": "features must be of shape (n, d): one row an example",
    "Found array with 0 feature(s)": "pass at least one feature",
    "Found array with 0 sample(s)": "fit from at least one row; partial_fit takes none too",
    "Expected 2D array, got 1D array instead": "features must be of shape (n, d). Reshape your data: "
    "X.reshape(1, -1) if it is one row, X.reshape(-1, 1) if it is one feature",
    "Expected 2D array, got scalar array instead": "features must be of shape (n, d). Reshape your data: "
    "[[x]] is one row of one feature",
}


def _first_place(X: Any, dtype: Any) -> str:
    """Where the first number is that is not finite."""
    if sparse.issparse(X):
        X = X.tocoo()
        bad = np.flatnonzero(~np.isfinite(X.data))
        places = sorted([row, column] for row, column in zip(X.row[bad].tolist(), X.col[bad].tolist(), strict=True))
    else:
        with np.errstate(over="ignore"):
            places = np.argwhere(~np.isfinite(np.asarray(X, dtype))).tolist()
    return " (row {}, column {})".format(*places[0]) if places else ""


def one_of(who: str, name: str, value: Any, allowed: tuple[str, ...]) -> None:
    """Raise unless ``value`` is one of the ``allowed`` words."""
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(f'"{word}"' for word in allowed)
        raise InvalidParameter(f"{who}: {name} must be one of {words}, got {value!r}")


def number(who: str, name: str, value: Any, required: str, holds: Any) -> None:
    """Raise unless ``value`` is a finite number for which ``holds``."""
    good = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool | np.bool_)
    if not good or not np.isfinite(value) or not holds(value):
        raise InvalidParameter(f"{who}: {name} must be a number {required}, got {value!r}")


def whole(who: str, name: str, value: Any, required: str, holds: Any) -> None:
    """Raise unless ``value`` is a whole number for which ``holds``."""
    good = isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)
    if not good or not holds(value):
        raise InvalidParameter(f"{who}: {name} must be a whole number {required}, got {value!r}")


def code_size(who: str, n_components: Any, K: int) -> int:
    """M for ``n_components``: a whole number in 1..K, or a share in (0, 1] of the K labels, rounded up."""
    if isinstance(n_components, int | np.integer) and not isinstance(n_components, bool | np.bool_):
        if not n_components >= 1:
            raise InvalidParameter(f"{who}: n_components must be at least 1, got {n_components}")
        if n_components > K:
            raise InvalidParameter(
                f"{who}: n_components must be at most the {K} labels, got {n_components}; "
                f"lower it, or use OnlineBinaryRelevance"
            )
        return int(n_components)
    number(who, "n_components", n_components, "of dimensions (int) or a share in (0, 1]", lambda v: 0 < v <= 1)
    # A share of 0.1 of 30 labels is 3, though 0.1 * 30 is a little more in floating point.
    return max(1, int(np.ceil(n_components * K * (1.0 - 1e-12))))
