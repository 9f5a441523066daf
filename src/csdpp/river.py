"""CS-DPP for river: dicts in, dicts out, one row at a time."""

import sys
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from operator import itemgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from river import base

from csdpp.errors import InvalidInput
from csdpp.learner import CSDPP

Array = NDArray[Any]
_BOOLEANS = frozenset((bool, np.bool_))
_UNKNOWN = object()  # stands for a label that a row does not name


class RiverCSDPP(base.MultiLabelClassifier):
    """`csdpp.CSDPP` as a river classifier.

    Labels and features are those that have been named so far; rows before the first that has a feature and a label are
    passed over. A label or a feature that comes later is taken in as `CSDPP.add_labels` and `CSDPP.add_features` have
    it: as if it had been there from the start, never positive and always zero. The predictions are those of
    `CSDPP.prequential` on the same rows as arrays.

    A feature that a row does not name is 0 there. A label that a row does not name is not known there, and moves
    nothing: name it, as False, where it is known not to hold.

    Parameters
    ----------
    n_components : int or float, default 0.1
        M, or a share in (0, 1] of the labels so far. While there are fewer labels than M, M is their number.
    cost, basis, encoder, reference, decode, weighting, regressor, regularization, rate, step, forgetting
        As in `CSDPP`.
    fit_intercept, dtype, block_size
        As in `CSDPP`; ``block_size`` changes nothing here, where rows come one by one.
    seed : int or None
        As ``random_state`` of `CSDPP`: for decode="sample" and basis="none"; the rest is deterministic.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from csdpp.river import RiverCSDPP
    >>> model = preprocessing.StandardScaler() | RiverCSDPP(n_components=0.5, cost="f1")
    >>> metric = metrics.multioutput.MicroAverage(metrics.F1())
    >>> evaluate.progressive_val_score(datasets.Yeast().take(500), model, metric).get() > 0.5
    True

    Notes
    -----
    Time and memory of a row are those of `CSDPP`, and O(d + K) to read the dicts. A label that comes later costs a copy
    of the state, O(d^2 + dK). So does a feature, but room is made for an eighth more, so that few features do.
    """

    def __init__(
        self,
        n_components: int | float = 0.1,
        *,
        cost: Any = "f1",
        basis: str = "pbc",
        encoder: str = "feature",
        reference: str = "mean",
        decode: str = "expected",
        weighting: str = "mean",
        regressor: str = "ridge",
        regularization: float = 1.0,
        rate: float = 10.0,
        step: float = 1.0,
        forgetting: float = 1.0,
        fit_intercept: bool = True,
        dtype: str = "float64",
        block_size: int = 64,
        seed: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.cost = cost
        self.basis = basis
        self.encoder = encoder
        self.reference = reference
        self.decode = decode
        self.weighting = weighting
        self.regressor = regressor
        self.regularization = regularization
        self.rate = rate
        self.step = step
        self.forgetting = forgetting
        self.fit_intercept = fit_intercept
        self.dtype = dtype
        self.block_size = block_size
        self.seed = seed
        self._learner: CSDPP | None = None
        self._features = self._labels = _Columns(())
        self._largest = sys.float_info.max  # what a feature may be

    @classmethod
    def published(
        cls, n_components: int | float = 0.1, *, cost: Any = "f1", basis: str = "pbt", **options: Any
    ) -> Self:
        """The paper's recipe, as `CSDPP.published` has it.

        >>> RiverCSDPP.published(0.25, cost="accuracy", seed=1).decode
        'sample'
        """
        recipe = CSDPP.published(n_components, cost=cost, basis=basis).get_params()
        del recipe["random_state"]
        return cls(**(recipe | options))

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        """What river's checks run on: our defaults and the paper's recipe."""
        yield {"n_components": 0.5}
        yield cls.published(0.5)._get_params()

    # ---- learning

    def learn_one(self, x: Mapping[Hashable, Any], y: Mapping[Hashable, bool]) -> None:
        """Learn that the features ``x`` have the labels ``y``. All or nothing: a row that fails leaves no trace."""
        if self._learner is None:
            _check_dict(x)
            _check_dict(y)
            if x and y:
                self._learn_first(x, y)
            return
        row, new_features = _read_features(x, self._features, self._largest)
        truth, known, new_labels = _read_labels(y, self._labels)
        new_features = {name: value for name, value in new_features.items() if value}
        if new_features or new_labels:
            self._learn_wider(x, y, new_features, new_labels)
            return
        # What `CSDPP.partial_fit` does, less its checks of arrays, which take longer than the learning.
        self._learner._engine.learn(self._padded(row), truth, known=known)
        self._learner.n_seen_ += 1

    def _learn_first(self, x: Mapping[Hashable, Any], y: Mapping[Hashable, bool]) -> None:
        features, labels = _Columns(x), _Columns(y)
        params = self._get_params()
        params["random_state"] = params.pop("seed")
        learner = CSDPP(**(params | self._size_of_code(len(labels.names))))
        learner.partial_fit(_read_features(x, features, self._largest)[0], _read_labels(y, labels)[0])
        self._features, self._labels, self._learner = features, labels, learner
        self._largest = float(np.finfo(learner.dtype).max)

    def _learn_wider(self, x: Any, y: Any, new_features: dict[Hashable, Any], new_labels: dict[Hashable, Any]) -> None:
        """Learn a row that names what no row has named; the learner is put back if that fails."""
        learner = self._learner
        assert learner is not None
        features, labels = self._features.wider(new_features), self._labels.wider(new_labels)
        row, _ = _read_features(x, features, self._largest)
        truth, known, _ = _read_labels(y, labels)
        before = dict(vars(learner))
        try:
            if new_labels:
                learner.set_params(**self._size_of_code(len(labels.names))).add_labels(len(new_labels))
            if len(features.names) > learner.n_features_in_:
                learner.add_features(len(features.names) - learner.n_features_in_ + len(self._features.names) // 8)
            learner._engine.learn(self._padded(row), truth, known=known)
            learner.n_seen_ += 1
        except BaseException:
            learner.__dict__.clear()
            learner.__dict__.update(before)
            raise
        self._features, self._labels = features, labels

    def _size_of_code(self, K: int) -> dict[str, Any]:
        """M that is wanted, or as many as there are labels so far."""
        M = self.n_components
        return {"n_components": min(M, K) if isinstance(M, int | np.integer) else M}

    def _padded(self, row: Array) -> Array:
        """The row (1, d) with zeros for the features that there is room for."""
        assert self._learner is not None
        room = self._learner.n_features_in_ - row.shape[1]
        return np.pad(row, ((0, 0), (0, room))) if room else row

    # ---- predicting

    def predict_one(self, x: Mapping[Hashable, Any]) -> dict[Hashable, bool]:
        """True or False for every label known so far; {} before any. Nothing is learned.

        A label that is not known yet reads as False and not as a KeyError: river's metrics survive the row in which
        it first comes.
        """
        if self._learner is None:
            return {}
        positive = (self._scores(x) >= 0.0).tolist()
        return _Prediction(zip(self._labels.names, positive, strict=True))

    def predict_proba_one(self, x: Mapping[Hashable, Any]) -> dict[Hashable, dict[bool, float]]:
        """A number in [0, 1] for every label known so far, rising with its score; {} before any.

        It is at least 1/2 exactly where the label is predicted, and it ranks labels. It is no calibrated
        probability: a label with 0.8 need not be right in 8 of 10 cases.
        """
        if self._learner is None:
            return {}
        scores = self._scores(x).astype(np.float64)
        # With Hamming weights v = y / sqrt(K), so (1 + sqrt(K) s) / 2 estimates P(label); tanh bends it into [0, 1].
        chances = 0.5 + 0.5 * np.tanh(np.sqrt(len(scores)) * scores)
        # A score just below 0 must not be rounded up to 1/2.
        chances = np.where(scores >= 0.0, chances, np.minimum(chances, np.nextafter(0.5, 0.0)))
        # True stands first: the larger of two equal chances is then True, as in `predict_one`.
        known = zip(self._labels.names, chances.tolist(), strict=True)
        return {label: {True: chance, False: 1.0 - chance} for label, chance in known}

    def _scores(self, x: Mapping[Hashable, Any]) -> Array:
        """Scores (K,) of the labels so far."""
        assert self._learner is not None
        row, _ = _read_features(x, self._features, self._largest)
        scores: Array = self._learner._engine.scores(self._padded(row))[0]
        return scores


class _Prediction(dict[Hashable, bool]):
    """Labels and whether they are predicted; one that is not known is not predicted."""

    def __missing__(self, label: Hashable) -> bool:
        return False


class _Columns:
    """The names of the columns, and how a dict becomes a row."""

    def __init__(self, names: Iterable[Hashable]) -> None:
        self.names = tuple(names)
        self.index = {name: column for column, name in enumerate(self.names)}
        self._get = itemgetter(*self.names) if len(self.names) > 1 else None  # of one name it gives no tuple

    def wider(self, names: Iterable[Hashable]) -> "_Columns":
        """These columns and more; the same ones if there are none."""
        more = tuple(names)
        return _Columns(self.names + more) if more else self

    def read(self, row: Mapping[Hashable, Any], absent: Any) -> tuple[Sequence[Any], dict[Hashable, Any]]:
        """The values in the order of the columns, and what the row says of names that are no columns."""
        # The usual row has exactly our names, and one call reads it. Other kinds of dict may invent absent values.
        if self._get is not None and type(row) is dict and len(row) == len(self.names):
            try:
                return self._get(row), {}
            except KeyError:
                pass
        _check_dict(row)
        values, strange = [absent] * len(self.names), {}
        for name, value in row.items():
            column = self.index.get(name)
            if column is None:
                strange[name] = value
            else:
                values[column] = value
        return values, strange


def _check_dict(row: Any) -> None:
    if not isinstance(row, Mapping):
        raise InvalidInput(f"RiverCSDPP: x and y must be dicts from names to values, got {row!r:.80}")


def _read_features(x: Mapping[Hashable, Any], columns: _Columns, largest: float) -> tuple[Array, dict[Hashable, Any]]:
    """The row (1, d) of ``x``, and what it says of names that are no columns."""
    values, strange = columns.read(x, 0.0)
    row = _numbers(values, largest)
    if row is None or (strange and _numbers(list(strange.values()), largest) is None):
        items = [*zip(columns.names, values, strict=True), *strange.items()]
        name, value = next(item for item in items if _numbers(item[1:], largest) is None)
        raise InvalidInput(
            f"RiverCSDPP: features must be finite numbers up to {largest:.1e}, got {value!r} for {name!r}; "
            f"encode words (river.preprocessing.OneHotEncoder), fill gaps (river.preprocessing.StatImputer)"
        )
    return row[None, :], strange


def _numbers(values: Sequence[Any], largest: float) -> Array | None:
    """The values as float64; None if one is no number, NaN or too large."""
    try:
        row = np.frombuffer(array("d", values))  # np.array would read None as NaN and "1.5" as 1.5
    except (TypeError, ValueError, OverflowError):
        return None
    return row if np.abs(row).max() <= largest else None


def _read_labels(y: Mapping[Hashable, bool], columns: _Columns) -> tuple[Array, Array | None, dict[Hashable, Any]]:
    """The row (1, K) of ``y``, what of it is known (1, K; None: all), and what it says of names that are no columns."""
    values, strange = columns.read(y, _UNKNOWN)
    known = None
    kinds = frozenset(map(type, values))
    if type(_UNKNOWN) in kinds:
        known = np.array([[value is not _UNKNOWN for value in values]])
        values = [False if value is _UNKNOWN else value for value in values]
    if strange or not _BOOLEANS.issuperset(kinds):
        for name, value in [*zip(columns.names, values, strict=True), *strange.items()]:
            if not (isinstance(value, bool | np.bool_) or (isinstance(value, Real) and value in (0, 1))):
                raise InvalidInput(
                    f"RiverCSDPP: labels must be True or False, got {value!r} for {name!r}; "
                    f"leave out a label that is not known"
                )
    return np.array([values], np.bool_), known, strange
