"""CS-DPP for river: dicts in, dicts out, one row at a time."""

import sys
from array import array
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from operator import itemgetter
from typing import Any, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from river import base

from csdpp.errors import InvalidInput
from csdpp.learner import CSDPP

Array = NDArray[Any]
_BOOLEANS = frozenset((bool, np.bool_))


class RiverCSDPP(base.MultiLabelClassifier):
    """`csdpp.CSDPP` as a river classifier.

    The first row that has a feature and a label says which features and labels there are; rows before it are
    passed over. The predictions are those of `CSDPP.prequential` on the same rows as arrays.

    Parameters
    ----------
    n_components : int or float, default 0.1
        M, or a share in (0, 1] of the labels of the first row. More than those labels is lowered to their number,
        with a warning.
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
    Limits of this version: a feature that comes later is ignored, a label that comes later is always predicted
    False (one warning each); an absent feature counts as 0, an absent label as False.

    Time and memory of a row are those of `CSDPP`, and O(d + K) to read the dicts.
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
        self._late: dict[Hashable, bool] = {}  # labels that came after the first row, all of them False
        self._warned: set[str] = set()
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
        row, late_features = _read_features(x, self._features, self._largest)
        truth, late_labels = _read_labels(y, self._labels)
        if late_features:
            self._warn_once("feature", late_features[0], "ignored", "0")
        if late_labels:
            self._warn_once("label", late_labels[0], "always predicted False", "False")
        # What `CSDPP.partial_fit` does, less its checks of arrays, which take longer than the learning.
        self._learner._engine.learn(row, truth)
        self._learner.n_seen_ += 1
        self._late.update(dict.fromkeys(late_labels, False))

    def _learn_first(self, x: Mapping[Hashable, Any], y: Mapping[Hashable, bool]) -> None:
        features, labels = _Columns(x), _Columns(y)
        learner = self._make_learner(len(labels.names))
        learner.partial_fit(_read_features(x, features, self._largest)[0], _read_labels(y, labels)[0])
        self._features, self._labels, self._learner = features, labels, learner
        self._largest = float(np.finfo(learner.dtype).max)

    def _make_learner(self, K: int) -> CSDPP:
        """The CSDPP with our parameters, for K labels."""
        params = self._get_params()
        params["random_state"] = params.pop("seed")
        M = self.n_components
        if isinstance(M, int | np.integer) and M > K:
            # No error as in CSDPP: nobody knows beforehand how many labels the first row of a stream names.
            params["n_components"] = K
            warn(
                f"RiverCSDPP: n_components must be at most the labels of the first row, got {M} for {K}; "
                f"going on with {K}; begin with a row that names every label, if only as False",
                stacklevel=4,
            )
        return CSDPP(**params)

    def _warn_once(self, what: str, name: Hashable, treated: str, value: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            warn(
                f"RiverCSDPP: {what} {name!r} was not in the first row and is {treated}, as is any other that comes "
                f"later; begin with a row that names every {what}, if only as {value}",
                stacklevel=3,
            )

    # ---- predicting

    def predict_one(self, x: Mapping[Hashable, Any]) -> dict[Hashable, bool]:
        """True or False for every label known so far; {} before any. Nothing is learned.

        A label that is not known yet reads as False and not as a KeyError: river's metrics survive the row in which
        it first comes.
        """
        if self._learner is None:
            return {}
        positive = (self._scores(x) >= 0.0).tolist()
        prediction = _Prediction(zip(self._labels.names, positive, strict=True))
        prediction.update(self._late)
        return prediction

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
        both = {label: {True: chance, False: 1.0 - chance} for label, chance in known}
        return both | {label: {True: 0.0, False: 1.0} for label in self._late}

    def _scores(self, x: Mapping[Hashable, Any]) -> Array:
        """Scores (K,) of the labels of the first row."""
        assert self._learner is not None
        row, _ = _read_features(x, self._features, self._largest)
        scores: Array = self._learner._engine.scores(row)[0]
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

    def read(self, row: Mapping[Hashable, Any], absent: Any) -> tuple[Sequence[Any], list[Hashable]]:
        """The values in the order of the columns, and the names that are no columns."""
        # The usual row has exactly our names, and one call reads it. Other kinds of dict may invent absent values.
        if self._get is not None and type(row) is dict and len(row) == len(self.names):
            try:
                return self._get(row), []
            except KeyError:
                pass
        _check_dict(row)
        values, strange = [absent] * len(self.names), []
        for name, value in row.items():
            column = self.index.get(name)
            if column is None:
                strange.append(name)
            else:
                values[column] = value
        return values, strange


def _check_dict(row: Any) -> None:
    if not isinstance(row, Mapping):
        raise InvalidInput(f"RiverCSDPP: x and y must be dicts from names to values, got {row!r:.80}")


def _read_features(x: Mapping[Hashable, Any], columns: _Columns, largest: float) -> tuple[Array, list[Hashable]]:
    """The row (1, d) of ``x``, and the names in it that are no columns."""
    values, strange = columns.read(x, 0.0)
    row = _numbers(values, largest)
    if row is None:
        items = zip(columns.names, values, strict=True)
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


def _read_labels(y: Mapping[Hashable, bool], columns: _Columns) -> tuple[Array, list[Hashable]]:
    """The row (1, K) of ``y``, and the names in it that are no columns."""
    values, strange = columns.read(y, False)
    if not _BOOLEANS.issuperset(map(type, values)):
        for name, value in zip(columns.names, values, strict=True):
            if not (isinstance(value, bool | np.bool_) or (isinstance(value, Real) and value in (0, 1))):
                raise InvalidInput(
                    f"RiverCSDPP: labels must be True or False, got {value!r} for {name!r}; "
                    f"a label that is left out counts as False"
                )
    return np.array([values], np.bool_), strange
