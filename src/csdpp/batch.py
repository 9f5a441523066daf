"""PLST and CPLST: label-space reduction with all data at hand (section 3.1 of the paper).

References, not competitors: PLST gives the (W#, P*) that the regret of theorem 2 is measured against, and both are
ceilings for what one pass can reach.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from csdpp.errors import InvalidInput
from csdpp.estimator import code_size, number, one_of, validated
from csdpp.targets import Targets

Array = NDArray[Any]


class PLST(ClassifierMixin, BaseEstimator):
    """Principal label space transformation (Tai and Lin, 2012): PCA of the labels, then ridge regression.

    Parameters
    ----------
    n_components : int or float, default 0.1
        M, or a share in (0, 1] of the K labels.
    regularization : float, default 1.0
        Lambda of the ridge.
    reference : {"mean", "zero"}, default "mean"
        The point that label vectors are measured from.
    fit_intercept : bool, default True
        Add a constant feature.

    Attributes
    ----------
    directions_ : array (M, K), orthonormal rows: P*
    codes_ : array (M, d), W#' without the constant feature; `codes_intercept_` (M,)
    reference_ : array (K,)
    classes_ : array (K,)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(4).repeat(10, axis=0)
    >>> Y = (X[:, :3] > 0).astype(int)
    >>> PLST(n_components=3, regularization=0.1).fit(X, Y).predict(np.eye(4))
    array([[1, 0, 0],
           [0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]])

    Notes
    -----
    O(n d^2 + d^3 + n d K + n K^2 + K^2 M) once. Label vectors are y / sqrt(K), as online. With 1-D ``y`` nothing
    is reduced.
    """

    def __init__(
        self,
        n_components: int | float = 0.1,
        *,
        regularization: float = 1.0,
        reference: str = "mean",
        fit_intercept: bool = True,
    ) -> None:
        self.n_components = n_components
        self.regularization = regularization
        self.reference = reference
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn from all of X (n, d), dense or CSR, and Y (n, K)."""
        who = type(self).__name__
        number(who, "regularization", self.regularization, "positive", lambda v: v > 0)
        one_of(who, "reference", self.reference, ("mean", "zero"))
        if Y is None:
            raise ValueError(f"{who} requires y to be passed, but the target y is None.")
        X = validated(self, X, dtype=np.float64)
        targets = Targets.learn(who, Y)
        rows = targets.rows(Y)
        if rows.shape[0] != X.shape[0]:
            raise InvalidInput(f"{who}: X and Y must have as many rows, got {X.shape[0]} and {rows.shape[0]}")
        K = targets.K
        M = code_size(who, self.n_components, K) if targets.kind == "multilabel" else K
        V = np.where(rows.toarray() if sparse.issparse(rows) else rows, 1.0, -1.0) / np.sqrt(K)
        reference = V.mean(axis=0) if self.reference == "mean" and targets.kind == "multilabel" else np.zeros(K)
        H, fitted = _ridge(self._features(X), V - reference, float(self.regularization))
        P = np.eye(K) if targets.kind != "multilabel" else self._directions(V - reference, fitted, M)
        self.directions_, self.reference_ = P, reference
        self._W = H @ P.T
        self._targets, self.classes_ = targets, targets.classes
        return self

    def _directions(self, V: Array, fitted: Array, M: int) -> Array:
        """P*: the top M eigenvectors of sum (v - o)(v - o)'."""
        return _top_directions(V.T @ V, M)

    def decision_function(self, X: Any) -> Array:
        """Scores (n, K): o + P' W' x."""
        check_is_fitted(self)
        X = validated(self, X, dtype=np.float64, reset=False)
        scores: Array = (self._features(X) @ self._W) @ self.directions_ + self.reference_
        return scores[:, 0] if self._targets.kind == "binary" else scores

    def predict(self, X: Any) -> Any:
        """Labels where the score is at least 0, in the format that Y had."""
        scores = self.decision_function(X)
        if self._targets.kind == "multiclass":
            return self.classes_[scores.argmax(axis=1)]
        return self._targets.format(scores.reshape(len(scores), -1) >= 0.0)

    @property
    def codes_(self) -> Array:
        """W#' without the constant feature (M, d)."""
        check_is_fitted(self)
        weights: Array = self._W.T[:, : self.n_features_in_]
        return weights

    @property
    def codes_intercept_(self) -> Array:
        """What the constant feature adds to each code (M,)."""
        check_is_fitted(self)
        weights: Array = self._W[-1] if self.fit_intercept else np.zeros(self._W.shape[1])
        return weights

    def _features(self, X: Any) -> Any:
        if not self.fit_intercept:
            return X
        one = np.ones((X.shape[0], 1))
        return sparse.csr_array(sparse.hstack([X, one])) if sparse.issparse(X) else np.hstack([X, one])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.input_tags.sparse = True
        return tags


class CPLST(PLST):
    """Conditional PLST (Chen and Lin, 2012): the directions of the labels that the features explain.

    They are the top eigenvectors of (V - o)' H (V - o), H the hat matrix of the ridge regression: what the
    feature encoder of `CSDPP` follows online.

    Parameters
    ----------
    n_components, regularization, reference, fit_intercept
        As in `PLST`, and so are the attributes.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 5))
    >>> Y = np.column_stack([X[:, 0] > 0, rng.random((100, 2)) > 0.5])
    >>> np.abs(CPLST(n_components=1).fit(X, Y).directions_).argmax()
    np.int64(0)
    """

    def _directions(self, V: Array, fitted: Array, M: int) -> Array:
        """The top M eigenvectors of (V - o)' fitted, where fitted = H (V - o)."""
        product = V.T @ fitted
        return _top_directions((product + product.T) / 2.0, M)


def _ridge(X: Any, V: Array, regularization: float) -> tuple[Array, Array]:
    """H = (lambda I + X'X)^-1 X'V and the fitted values X H."""
    gram = (X.T @ X).toarray() if sparse.issparse(X) else X.T @ X
    gram[np.diag_indices_from(gram)] += regularization
    H: Array = linalg.solve(gram, X.T @ V, assume_a="pos")
    return H, X @ H


def _top_directions(C: Array, M: int) -> Array:
    K = len(C)
    vectors: Array = linalg.eigh(C, subset_by_index=(K - M, K - 1))[1]
    return np.ascontiguousarray(vectors.T[::-1])
