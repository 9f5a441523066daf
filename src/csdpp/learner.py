"""CS-DPP: cost-sensitive dynamic principal projection (sections 3 and 4 of the paper, and beyond)."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from csdpp._kernels.block import Recipe
from csdpp.costs import Cost, resolve_cost, resolve_weighting
from csdpp.encoders import CappedMSG
from csdpp.engine import BASES, Engine, FollowingEngine
from csdpp.errors import InvalidParameter
from csdpp.estimator import OnlineClassifier, code_size, one_of
from csdpp.rates import Schedule, check_rate

Array = NDArray[Any]


class CSDPP(OnlineClassifier):
    """Online multi-label classification that reduces the label space and optimises a chosen cost.

    Labels are encoded on their M principal directions, which follow the stream (capped MSG); an online regressor
    predicts the codes; the cost enters through a weight for each label of each row. The defaults go beyond the
    paper; `CSDPP.published` gives its recipe.

    Parameters
    ----------
    n_components : int or float, default 0.1
        M, or a share in (0, 1] of the K labels: M = ceil(share * K).
    cost : str or Cost, default "f1"
        "hamming", "f1", "accuracy", "rank", of the whole stream "micro_f1" and "macro_f1", or a `csdpp.costs.Cost`.
    basis : {"pbc", "pbt", "none"}, default "pbc"
        How the regressor stays with the moving directions: principal basis correction (exact, O(dK) a row),
        principal basis transform (O(dM)), or not at all (for comparison only).
    encoder : {"feature", "label"}, default "feature"
        Take the directions from the part of the labels that the features explain (an online CPLST; needs "pbc"),
        or from the labels themselves (PLST, as published).
    reference : {"mean", "zero"}, default "mean"
        The point o that label vectors are measured from.
    decode : {"expected", "sample"}, default "expected"
        Decode with E[P'P], or with a sampled P, as published.
    weighting : {"mean", "ordered", "shapley", "marginal"}, default "mean"
        How a cost becomes label weights; "ordered" is the paper's.
    regressor : {"ridge", "gradient"}, default "ridge"
        Recursive least squares, O(d^2) a row, or gradient descent with a normalised step, O(nnz(x)).
    regularization : float or "auto", default 1.0
        Lambda of the ridge. "auto": four learners side by side, whose lambdas follow the size of the features; the
        one with the lowest running cost answers, and the worst is dropped after 2048, 4096 and 8192 rows. Four
        times the time and memory until then.
    rate : float or callable, default 10.0
        Of the directions: eta_t = rate / sqrt(t) * M / K for a number (the paper has 2), eta_t = rate(t) * M / K for
        `csdpp.rates.Constant` or any function of an array of row numbers, from 1.
    step : float, default 1.0
        Of gradient descent.
    forgetting : float, default 1.0
        In (0, 1]: the past fades by this factor a row, in the regressor, the reference and the two step sizes.
    fit_intercept : bool, default True
        Add a constant feature.
    dtype : {"float64", "float32"}
        Of the arithmetic.
    block_size : int, default 64
        Rows that share one matrix product. Changes speed only.
    random_state : int, RandomState or None
        For decode="sample" and basis="none"; the rest is deterministic.

    Attributes
    ----------
    directions_ : array (held, K), orthonormal rows, at most M + 1
    spectrum_ : array (held,), within the capped simplex, falling
    reference_ : array (K,)
    coef_ : array (K, d), with PBC: the ridge solution from features to weighted labels; `intercept_` (K,)
    codes_ : array (held, d), with PBT and none: the same from features to codes; `codes_intercept_` (held,)
    n_components_ : int, M
    n_seen_ : int, rows learned
    regularization_ : float, lambda; with "auto", what is chosen now
    classes_ : array (K,), names or numbers of the labels
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from csdpp import CSDPP
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 20))
    >>> Y = (X[:, :8] + X[:, 1:9] > 0).astype(int)
    >>> model = CSDPP(n_components=4, cost="f1")
    >>> Y_hat = model.prequential(X, Y)
    >>> float((Y_hat[250:] != Y[250:]).mean().round(1)) < 0.3
    True
    >>> model.directions_.shape
    (5, 8)

    Notes
    -----
    Time per row: O(d^2 + dK + M^2 K) with PBC, O(d^2 + dM^2 + M^2 K) with PBT; memory O(d^2 + dK + MK) and
    O(d^2 + dM + MK). Without the ridge, d^2 falls away. Not thread-safe: one writer at a time.

    Until anything is learned every score is 0 and every label is predicted: sign(0) = +1, as in the paper.

    With 1-D ``y`` (classes) nothing is reduced: one column a class, and the largest score wins.
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
        regularization: float | str = 1.0,
        rate: float | Schedule = 10.0,
        step: float = 1.0,
        forgetting: float = 1.0,
        fit_intercept: bool = True,
        dtype: str = "float64",
        block_size: int = 64,
        random_state: Any = None,
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
        self.random_state = random_state

    @classmethod
    def published(
        cls, n_components: int | float = 0.1, *, cost: Any = "f1", basis: str = "pbt", **options: Any
    ) -> Self:
        """The paper's recipe: label encoder, reference zero, sampled decoder, ordered weights, rate 2.

        ``options`` are parameters of the class that take precedence, such as ``weighting="shapley"``.

        >>> CSDPP.published(0.25, cost="accuracy").decode
        'sample'
        """
        recipe: dict[str, Any] = {
            "encoder": "label",
            "reference": "zero",
            "decode": "sample",
            "weighting": "ordered",
            "rate": 2.0,
        }
        return cls(n_components, cost=cost, basis=basis, **(recipe | options))

    def _check_options(self) -> bool:
        who = self._who
        one_of(who, "basis", self.basis, ("pbc", "pbt", "none"))
        one_of(who, "encoder", self.encoder, ("feature", "label"))
        one_of(who, "reference", self.reference, ("mean", "zero"))
        one_of(who, "decode", self.decode, ("expected", "sample"))
        check_rate(who, self.rate)
        resolve_cost(self.cost)
        resolve_weighting(self.weighting)
        if self.encoder == "feature" and self.basis != "pbc":
            raise InvalidParameter(
                f'{who}: encoder="feature" needs basis="pbc", got basis="{self.basis}"; '
                f'use encoder="label" or basis="pbc"'
            )
        return super()._check_options()

    def _build(self, d: int, K: int) -> Engine:
        M = code_size(self._who, self.n_components, K)
        cost = resolve_cost(self.cost)
        dtype = np.dtype(self.dtype)
        encoder = CappedMSG(M, K, decode_with=self.decode, dtype=dtype)
        recipe = Recipe(
            M=M,
            cost=cost._kind,
            weighting=resolve_weighting(self.weighting),
            basis=BASES[self.basis],
            feature=self.encoder == "feature",
            mean=self.reference == "mean",
            sampled=self.decode == "sample",
            rate=0.0 if callable(self.rate) else float(self.rate),
            forgetting=float(self.forgetting),
        )
        return FollowingEngine(
            cost=cost,
            encoder=encoder,
            regressor=self._make_regressor(d, K if self.basis == "pbc" else encoder.basis.Q.shape[0]),
            recipe=recipe,
            rng=self._generator(),
            block_size=int(self.block_size),
            intercept=bool(self.fit_intercept),
            regularization=float(self.regularization),
            schedule=self.rate if callable(self.rate) else None,
        )

    def _generator(self) -> np.random.RandomState:
        """Of its own without a random state: NumPy's, which others draw from too, only gives the seed."""
        if self.random_state is not None:
            return check_random_state(self.random_state)
        draws = self.decode == "sample" or self.basis == "none"
        return np.random.RandomState(check_random_state(None).randint(2**31 - 1) if draws else 0)

    def _code_size(self, K: int) -> int | None:
        return code_size(self._who, self.n_components, K)

    def _cost(self) -> Cost:
        return resolve_cost(self.cost)

    # ---- fitted state

    def _following(self, name: str) -> FollowingEngine:
        engine = self._leader
        if not isinstance(engine, FollowingEngine):
            state = "is not fitted yet" if engine is None else "does not reduce 1-D y"
            raise AttributeError(f"{self._who} {state}: it has no {name}")
        return engine

    @property
    def directions_(self) -> Array:
        """Q (held, K); a copy."""
        return self._following("directions_").encoder.directions.copy()

    @property
    def spectrum_(self) -> Array:
        """Sigma (held,); a copy."""
        return self._following("spectrum_").encoder.spectrum.copy()

    @property
    def reference_(self) -> Array:
        """O (K,); a copy."""
        return self._following("reference_").o.copy()

    @property
    def n_components_(self) -> int:
        """M."""
        return self._following("n_components_").encoder.M

    @property
    def coef_(self) -> Array:
        """H' without the constant feature (K, d); a copy. With PBC and with 1-D y only."""
        return self._weights("coef_", labels=True)[:, : self.n_features_in_]

    @property
    def intercept_(self) -> Array:
        """What the constant feature adds to each label (K,)."""
        return self._constant(self._weights("intercept_", labels=True))

    @property
    def codes_(self) -> Array:
        """W' without the constant feature (held, d); a copy. With PBT and none only."""
        return self._weights("codes_", labels=False)[:, : self.n_features_in_]

    @property
    def codes_intercept_(self) -> Array:
        """What the constant feature adds to each code (held,)."""
        return self._constant(self._weights("codes_intercept_", labels=False))

    def _weights(self, name: str, *, labels: bool) -> Array:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{self._who} is not fitted yet: it has no {name}")
        engine = self._leader
        of_labels = not isinstance(engine, FollowingEngine) or engine.recipe.basis == BASES["pbc"]
        if of_labels != labels:
            other = "coef_" if of_labels else "codes_"
            raise AttributeError(f'{self._who} with basis="{self.basis}" has no {name}; see {other}')
        weights: Array = self._engine.weights.T
        return weights if labels else weights[: len(engine.encoder.directions)]

    def _constant(self, weights: Array) -> Array:
        return weights[:, -1] if self.fit_intercept else np.zeros(len(weights), weights.dtype)
