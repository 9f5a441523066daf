"""What CS-DPP is compared with: the same parts, with a code that stands still (section 5 of the paper)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from csdpp.encoders import CompressedSensing, Identity, RandomProjection
from csdpp.engine import Engine, FixedEngine, SensingEngine
from csdpp.errors import InvalidParameter
from csdpp.estimator import OnlineClassifier, code_size, whole

Array = NDArray[Any]


class OnlineBinaryRelevance(OnlineClassifier):
    """O-BR: every label on its own, by one online regressor; no reduction, no cost.

    Parameters
    ----------
    regressor, regularization, step, forgetting, fit_intercept, dtype, block_size
        As in `CSDPP`.

    Attributes
    ----------
    coef_ : array (K, d), intercept_ : array (K,)
    n_seen_, classes_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> X = np.eye(4).repeat(50, axis=0)
    >>> Y = (X[:, :3] > 0).astype(int)
    >>> OnlineBinaryRelevance().fit(X, Y).predict(np.eye(4))
    array([[1, 0, 0],
           [0, 1, 0],
           [0, 0, 1],
           [0, 0, 0]])

    Notes
    -----
    O(d^2 + dK) a row; nothing unfolds in sequence, so a block is matrix products throughout.
    """

    def __init__(
        self,
        *,
        regressor: str = "ridge",
        regularization: float | str = 1.0,
        step: float = 1.0,
        forgetting: float = 1.0,
        fit_intercept: bool = True,
        dtype: str = "float64",
        block_size: int = 64,
    ) -> None:
        self.regressor = regressor
        self.regularization = regularization
        self.step = step
        self.forgetting = forgetting
        self.fit_intercept = fit_intercept
        self.dtype = dtype
        self.block_size = block_size

    def _build(self, d: int, K: int) -> Engine:
        return FixedEngine(**self._parts(d, K, K, Identity()))

    @property
    def coef_(self) -> Array:
        """H' without the constant feature (K, d); a copy."""
        return self._all_weights("coef_")[:, : self.n_features_in_]

    @property
    def intercept_(self) -> Array:
        """What the constant feature adds to each label (K,)."""
        weights = self._all_weights("intercept_")
        return weights[:, -1] if self.fit_intercept else np.zeros(len(weights), weights.dtype)

    def _all_weights(self, name: str) -> Array:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{self._who} is not fitted yet: it has no {name}")
        weights: Array = self._engine.weights.T
        return weights


class _FixedCode(OnlineClassifier):
    """A learner whose code stays as long as it was: nothing tells what further codes of past rows would have been."""

    n_components: int | float

    def _take(self, engine: Any, classes: Array) -> None:
        super()._take(engine, classes)
        self._hold_size(int(engine.regressor.W.shape[1]))

    def _hold_size(self, p: int) -> None:
        self._fixed_size = p

    def _size_of_code(self, K: int) -> int:
        fixed: int | None = getattr(self, "_fixed_size", None)
        return code_size(self._who, self.n_components, K) if fixed is None else fixed


class OnlineRandomProjection(_FixedCode):
    """O-RAND: codes by a fixed Gaussian projection, decoded with its pseudo-inverse.

    Parameters
    ----------
    n_components : int or float, default 0.1
        M, or a share in (0, 1] of the K labels.
    regressor, regularization, step, forgetting, fit_intercept, dtype, block_size
        As in `CSDPP`.
    random_state : int, RandomState or None
        Draws the projection.

    Notes
    -----
    O(d^2 + dM + MK) a row.
    """

    def __init__(
        self,
        n_components: int | float = 0.1,
        *,
        regressor: str = "ridge",
        regularization: float | str = 1.0,
        step: float = 1.0,
        forgetting: float = 1.0,
        fit_intercept: bool = True,
        dtype: str = "float64",
        block_size: int = 64,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.regressor = regressor
        self.regularization = regularization
        self.step = step
        self.forgetting = forgetting
        self.fit_intercept = fit_intercept
        self.dtype = dtype
        self.block_size = block_size
        self.random_state = random_state

    def _build(self, d: int, K: int) -> Engine:
        M = self._size_of_code(K)
        encoder = RandomProjection(M, K, check_random_state(self.random_state), np.dtype(self.dtype))
        return FixedEngine(**self._parts(d, K, M, encoder))


class OnlineCompressedSensing(_FixedCode):
    """O-CS: compressed sensing of the label sets (Hsu, Kakade, Langford and Zhang, 2009), online.

    The 0/1 label vector is measured with a Gaussian matrix A (M, K) of unit-length columns, the measurements are
    regressed on the features, and a prediction is decoded with orthogonal matching pursuit: the label whose
    column fits the rest best is taken in, all coefficients are fitted anew, ``sparsity`` times over. Labels with
    a coefficient of at least 1/2 are predicted.

    Parameters
    ----------
    n_components : int or float, default 0.1
        M, or a share in (0, 1] of the K labels.
    sparsity : int or "auto", default "auto"
        Labels that a prediction may have: a number, or the mean number of labels seen so far, rounded up. Never
        more than M.
    regressor, regularization, step, forgetting, fit_intercept, dtype, block_size
        As in `CSDPP`.
    random_state : int, RandomState or None
        Draws the measurements.

    Notes
    -----
    O(d^2 + dM + sparsity MK) a row. Scores are the coefficients less 1/2, and -1/2 for labels not taken in.
    """

    def __init__(
        self,
        n_components: int | float = 0.1,
        *,
        sparsity: int | str = "auto",
        regressor: str = "ridge",
        regularization: float | str = 1.0,
        step: float = 1.0,
        forgetting: float = 1.0,
        fit_intercept: bool = True,
        dtype: str = "float64",
        block_size: int = 64,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.sparsity = sparsity
        self.regressor = regressor
        self.regularization = regularization
        self.step = step
        self.forgetting = forgetting
        self.fit_intercept = fit_intercept
        self.dtype = dtype
        self.block_size = block_size
        self.random_state = random_state

    def _check_options(self) -> bool:
        if isinstance(self.sparsity, str):
            if self.sparsity != "auto":
                raise InvalidParameter(f'{self._who}: sparsity must be a number or "auto", got {self.sparsity!r}')
        else:
            whole(self._who, "sparsity", self.sparsity, "at least 1", lambda v: v >= 1)
        return super()._check_options()

    def _build(self, d: int, K: int) -> Engine:
        M = self._size_of_code(K)
        sparsity = None if isinstance(self.sparsity, str) else int(self.sparsity)
        encoder = CompressedSensing(M, K, check_random_state(self.random_state), np.dtype(self.dtype))
        return SensingEngine(sparsity, **self._parts(d, K, M, encoder))
