"""Label formats: whatever users hold in, boolean rows inside, the same format out.

Accepted are 0/1 indicator matrices (n, K), dense, sparse, or a frame with named columns, and plain 1-D classes,
which are taken one against the rest.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from csdpp.costs import check_mask
from csdpp.errors import InvalidInput

Array = NDArray[Any]
_BINARIZE = "turn label sets into one with sklearn.preprocessing.MultiLabelBinarizer"


@dataclass
class Targets:
    """How the labels of a learner look outside.

    ``classes`` are the names of the K labels, or the classes of 1-D targets; ``kind`` is "multilabel",
    "multiclass" or "binary" (one column, the second class positive; also where there is one class only).
    """

    who: str
    kind: str
    classes: Array
    dtype: Any
    sparse_output: bool = False
    named: bool = False

    @property
    def K(self) -> int:
        """Number of columns inside."""
        return 1 if self.kind == "binary" else len(self.classes)

    @classmethod
    def learn(cls, who: str, y: Any, classes: Any = None) -> "Targets":
        """Read the format off the first targets; ``classes`` names what is still to come."""
        if is_matrix(y):
            return cls._multilabel(who, y, classes)
        y = flat(who, y)
        seen = np.unique(y)
        known = seen if classes is None else np.unique(np.asarray(classes))
        kind = "binary" if len(known) <= 2 else "multiclass"
        return cls(who, kind, known, known.dtype)

    @classmethod
    def _multilabel(cls, who: str, y: Any, classes: Any) -> "Targets":
        names = column_names(y)
        matrix = as_matrix(y)
        K = matrix.shape[1]
        if K == 0:
            raise InvalidInput(f"{who}: Y must have at least one label column, got shape {matrix.shape}")
        given = names if names is not None else np.arange(K)
        if classes is not None:
            classes = np.asarray(classes)
            if len(classes) != K:
                raise InvalidInput(f"{who}: classes must name the {K} columns of Y, got {len(classes)} names")
            if names is not None and not np.array_equal(classes, names):
                raise InvalidInput(f"{who}: classes must equal the column names of Y; leave classes out")
            given = classes
        named = names is not None
        return cls(who, "multilabel", given, matrix.dtype, sparse.issparse(matrix), named)

    def rows(self, y: Any) -> Any:
        """Boolean rows (n, K), dense or CSR, of targets ``y`` that are all known."""
        rows, known = self.read(y)
        if known is not None:
            raise InvalidInput(f"{self.who}: Y must hold 0 and 1, got NaN; drop the rows whose labels are missing")
        return rows

    def read(self, y: Any, mask: Any = None) -> tuple[Any, Array | None]:
        """Boolean rows (n, K), dense or CSR, of targets ``y``, and which of them are known (n, K), None if all are.

        Not known are NaN and where ``mask`` is False; the rows are False there. What is wrong with targets is said in
        one clear sentence.
        """
        if (self.kind == "multilabel") != is_matrix(y):
            expected = f"(n, {len(self.classes)}) indicators" if self.kind == "multilabel" else "1-D classes"
            raise InvalidInput(f"{self.who}: Y must be {expected} as in the first call, got shape {np.shape(y)}")
        if self.kind == "multilabel":
            return self._indicators(y, mask)
        if mask is not None:
            raise InvalidInput(f"{self.who}: mask must go with indicators (n, K), got 1-D classes; drop those rows")
        y = flat(self.who, y)
        unknown = np.setdiff1d(y, self.classes)
        if len(unknown):
            raise InvalidInput(
                f"{self.who}: y must hold classes known from the first call, got {unknown[:5].tolist()}; "
                f"name all classes in the first partial_fit(X, y, classes=...)"
            )
        positive = self.classes[-1:] if self.kind == "binary" else self.classes
        return y[:, None] == positive[None, :], None

    def _indicators(self, y: Any, mask: Any) -> tuple[Any, Array | None]:
        names = column_names(y)
        mask = self._in_order(mask, self.classes if names is None and self.named else names)
        given = None if mask is None else _dense(as_matrix(mask))
        if self.named and names is not None and not np.array_equal(names, self.classes):
            if set(names) != set(self.classes):
                odd = sorted(set(names.tolist()) ^ set(self.classes.tolist()), key=str)[:5]
                raise InvalidInput(f"{self.who}: Y must have the label columns of the first call, differs in {odd}")
            order = [names.tolist().index(name) for name in self.classes.tolist()]
            y = y[list(self.classes)]
            given = given[:, order] if given is not None and given.shape[1:] == (len(order),) else given
        matrix = as_matrix(y)
        if matrix.shape[1] != len(self.classes):
            raise InvalidInput(
                f"{self.who}: Y must have {len(self.classes)} label columns as in the first call, "
                f"got {matrix.shape[1]}; call add_labels first, if there are new ones"
            )
        known = None if given is None else check_mask(self.who, given, matrix.shape)
        if not sparse.issparse(matrix) and matrix.dtype.kind == "f" and (missing := np.isnan(matrix)).any():
            known = ~missing if known is None else known & ~missing
        if known is None:
            return indicators(self.who, matrix), None
        if sparse.issparse(matrix):
            return sparse.csr_array(indicators(self.who, matrix)).multiply(known).tocsr(), known
        return indicators(self.who, np.where(known, matrix, 0)), known

    def _in_order(self, mask: Any, names: Array | None) -> Any:
        """The mask with its columns in the order of those of Y, where both have names."""
        told = column_names(mask)
        if names is None or told is None:
            return mask
        if len(told) != len(names) or set(told.tolist()) != set(names.tolist()):
            odd = sorted(set(names.tolist()) ^ set(told.tolist()), key=str)[:5]
            raise InvalidInput(f"{self.who}: mask must have the columns of Y, differs in {odd}; or pass an array")
        return mask[names.tolist()]

    def format(self, positive: Array) -> Any:
        """Boolean predictions (n, K) in the format of the targets."""
        if self.kind == "multilabel":
            return sparse.csr_matrix(positive, dtype=self.dtype) if self.sparse_output else positive.astype(self.dtype)
        if self.kind == "binary":
            return np.where(positive[:, 0], self.classes[-1], self.classes[0])
        return self.classes[positive.argmax(axis=1)]


def is_matrix(y: Any) -> bool:
    """Whether targets are a matrix of label columns (a single column of classes is not)."""
    if sparse.issparse(y) or (type(y) is np.ndarray and y.ndim == 2 and y.shape[1] > 1):
        return True
    array = np.asarray(y, dtype=None if hasattr(y, "dtype") or hasattr(y, "columns") else _ragged_safe(y))
    if array.ndim != 2:
        return False
    if array.shape[1] != 1:
        return True
    return all(value in (0, 1) or value is None or value != value for value in array[:, 0].tolist())


def _ragged_safe(y: Any) -> Any:
    """None for what NumPy can read; an error for lists of label sets, which it cannot."""
    try:
        np.asarray(y)
    except ValueError:
        raise InvalidInput(
            f"csdpp: Y must be a 0/1 indicator matrix, got rows of different lengths; {_BINARIZE}"
        ) from None
    return None


def flat(who: str, y: Any) -> Array:
    """1-D classes; a single column is taken with a warning, as scikit-learn does."""
    shape = np.asarray(y).shape
    if len(shape) > 2:
        raise InvalidInput(f"{who}: Y must be (n, K) indicators or 1-D classes, got shape {shape}")
    array: Array = column_or_1d(y, warn=True)
    if array.dtype == object and any(isinstance(label, set | frozenset | list | tuple | dict) for label in array):
        raise InvalidInput(f"{who}: Y must be a 0/1 indicator matrix, got label sets; {_BINARIZE}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InvalidInput(f"{who}: y must not contain NaN or infinity; drop or impute those rows")
    check_classification_targets(array)
    return array


def _dense(matrix: Any) -> Array:
    dense: Array = matrix.toarray() if sparse.issparse(matrix) else matrix
    return dense


def column_names(y: Any) -> Array | None:
    """The column names of a pandas or polars frame."""
    return np.asarray(list(y.columns)) if hasattr(y, "columns") else None


def as_matrix(y: Any) -> Any:
    """A frame, list or matrix as a CSR or dense matrix."""
    if sparse.issparse(y):
        return y.tocsr()
    array = np.asarray(y)
    if array.dtype == object and hasattr(y, "isna"):  # a pandas frame with its own mark for what is missing
        array = np.where(y.isna(), np.nan, array)
    if array.dtype == object:
        with suppress(TypeError, ValueError):
            array = array.astype(np.float64)
    return array


def indicators(who: str, matrix: Any) -> Any:
    """Boolean rows of a 0/1 matrix."""
    values = matrix.data if sparse.issparse(matrix) else matrix
    if values.dtype == np.bool_:
        return matrix
    if values.dtype.kind in "iu" and values.size and values.min() >= 0 and values.max() <= 1:
        return matrix.astype(np.bool_)
    if values.dtype.kind not in "iuf":
        raise InvalidInput(f"{who}: Y must hold 0 and 1, got values of type {values.dtype}; turn them into indicators")
    if values.dtype.kind == "f" and np.isnan(values).any():
        raise InvalidInput(f"{who}: Y must hold 0 and 1, got NaN; drop the rows whose labels are missing")
    wrong = values[(values != 0) & (values != 1)]
    if wrong.size:
        hint = "pass (Y > 0)" if (wrong == -1).all() else "turn Y into indicators"
        raise InvalidInput(f"{who}: Y must hold 0 and 1, got {wrong.flat[0]!s}; {hint}")
    return matrix.astype(np.bool_)
