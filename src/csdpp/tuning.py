"""Parameters chosen on the stream, in one pass: candidates side by side, the best so far answers (docs/tuning.md)."""

from itertools import product
from typing import Any

from numpy.typing import NDArray
from sklearn.base import clone

from csdpp.choice import ChoosingEngine
from csdpp.costs import Cost, Hamming, resolve_cost
from csdpp.engine import Engine
from csdpp.errors import InvalidParameter
from csdpp.estimator import OnlineClassifier, number, whole
from csdpp.learner import CSDPP
from csdpp.targets import Targets

__all__ = ["OnlineTuner", "grid"]

Array = NDArray[Any]


def grid(learner: OnlineClassifier, **choices: Any) -> list[OnlineClassifier]:
    """Copies of a learner with every combination of the choices; the first of each come first.

    >>> from csdpp import CSDPP
    >>> [(c.n_components, c.rate) for c in grid(CSDPP(), n_components=(2, 4), rate=(10.0, 3.0))]
    [(2, 10.0), (2, 3.0), (4, 10.0), (4, 3.0)]
    """
    combined = product(*choices.values())
    return [clone(learner).set_params(**dict(zip(choices, values, strict=True))) for values in combined]


def usual_candidates(cost: Any) -> list[OnlineClassifier]:
    """What `OnlineTuner` tries unless told: M, lambda and weighting in all combinations; rate and forgetting once.

    Files that hold a tuner count on this list: change it together with `csdpp.persist.FORMAT`.

    >>> len(usual_candidates("f1"))
    16
    """
    learner = CSDPP(0.5, cost=cost, regularization=10.0)
    shapes = grid(learner, n_components=(0.5, 0.1), regularization=(10.0, 1.0, 100.0), weighting=("mean", "marginal"))
    others: list[dict[str, Any]] = [{"rate": 30.0}, {"rate": 3.0}, {"forgetting": 0.999}, {"weighting": "shapley"}]
    return shapes + [clone(learner).set_params(**other) for other in others]


class OnlineTuner(OnlineClassifier):
    """Several learners side by side on one stream; the one with the lowest running cost answers.

    Every candidate learns every row; the choice for a row is made from the costs of the rows before it, so that what
    was predicted is what a user would have seen. After ``patience`` rows the worse half is dropped, after twice as many
    half of the rest, and so on until one is left (successive halving).

    Parameters
    ----------
    candidates : list of online learners of this package, the preferred first; default None
        `grid` makes such a list. None: 16 of `CSDPP` that differ in M, lambda, weighting, rate and forgetting. All must
        be of one dtype, and their parameters are those of the beginning: `set_params` on them comes too late.
    cost : str or Cost, default "f1"
        What they are compared by.
    patience : int or None, default 512
        None: nobody is dropped, and a stream that drifts may change the choice at any time; see ``forgetting``.
    forgetting : float, default 1.0
        In (0, 1]: the running costs fade by this factor a row.

    Attributes
    ----------
    best_params_ : dict, the parameters of the one that answers now
    live_ : array, the candidates that still learn, by their places
    averages_ : array (C,), running mean cost of each candidate; of the dropped, as it was then
    n_seen_, classes_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from csdpp import CSDPP
    >>> from csdpp.datasets import make_stream
    >>> stream = make_stream(1500, 20, 12, rank=4, random_state=0)
    >>> tuner = OnlineTuner(grid(CSDPP(4), regularization=(1.0, 1000.0), weighting=("mean", "ordered")), patience=200)
    >>> Y_hat = tuner.prequential(stream.X, stream.Y)
    >>> tuner.live_.tolist(), tuner.best_params_["regularization"]
    ([0], 1.0)

    Notes
    -----
    Time and memory: the sum over the candidates that are left. With 16 and the default patience some 16 000 rows'
    worth of extra learning in all. Features are scaled by a power of 8 to the usual size, as with
    ``regularization="auto"``: lambdas are relative to it.
    """

    def __init__(
        self, candidates: Any = None, *, cost: Any = "f1", patience: int | None = 512, forgetting: float = 1.0
    ) -> None:
        self.candidates = candidates
        self.cost = cost
        self.patience = patience
        self.forgetting = forgetting

    # ---- what the contract of all learners asks for

    def _start(self, d: int, targets: Targets) -> Engine:
        return self._race([clone(one)._start(d, targets) for one in self._checked()], targets)

    def _start_with(self, d: int, targets: Targets, places: Array, left: list[OnlineClassifier]) -> Engine:
        """As a race in which only the candidates ``places`` are ``left``."""
        engine = self._race([one._start(d, targets) for one in left], targets)
        engine.stand_in(places, len(self._candidates()))
        return engine

    def _code_size(self, K: int) -> list[int | None]:
        candidates = self._candidates()
        return [candidates[place]._code_size(K) for place in self.live_.tolist()]

    def _race(self, engines: list[Any], targets: Targets) -> ChoosingEngine:
        cost = resolve_cost(self.cost) if targets.kind == "multilabel" else Hamming()
        patience = None if self.patience is None else int(self.patience)
        kept = float(self.forgetting)
        return ChoosingEngine(engines, cost, patience=patience, forgetting=kept, scaled=True, halving=True)

    def _checked(self) -> list[OnlineClassifier]:
        """The candidates, if they are fit to run side by side."""
        who = self._who
        resolve_cost(self.cost)
        number(who, "forgetting", self.forgetting, "in (0, 1]", lambda v: 0 < v <= 1)
        if self.patience is not None:
            whole(who, "patience", self.patience, "at least 1, or None", lambda v: v >= 1)
        candidates = self._candidates()
        for one in candidates:
            if not isinstance(one, OnlineClassifier) or isinstance(one, OnlineTuner):
                raise InvalidParameter(f"{who}: candidates must be online learners of this package, got {one!r:.80}")
            if isinstance(one.regularization, str):
                raise InvalidParameter(
                    f"{who}: candidates must have numbers as regularization, got {one.regularization!r}; several "
                    "candidates with one each do the same"
                )
            if one._float() != candidates[0]._float():
                raise InvalidParameter(f"{who}: candidates must be of one dtype, got {one.dtype} and others")
        return candidates

    def _candidates(self) -> list[OnlineClassifier]:
        if self.candidates is None:
            return usual_candidates(self.cost)
        if not isinstance(self.candidates, list | tuple) or not self.candidates:
            raise InvalidParameter(f"{self._who}: candidates must be a list of learners, got {self.candidates!r:.80}")
        return list(self.candidates)

    def _adjust(self) -> None:
        """Candidates keep the parameters that they began with."""

    def _float(self) -> Any:
        return self._checked()[0]._float()

    def _cost(self) -> Cost:
        return resolve_cost(self.cost)

    @property
    def block_size(self) -> int:  # type: ignore[override]  # the others have it as a parameter
        """Of the first candidate."""
        return int(self._candidates()[0].block_size)

    # ---- fitted state

    @property
    def best_params_(self) -> dict[str, Any]:
        """The parameters of the candidate that answers now."""
        best: dict[str, Any] = self._candidates()[self._fitted("best_params_").leading].get_params()
        return best

    @property
    def live_(self) -> Array:
        """The candidates that still learn, by their places."""
        live: Array = self._fitted("live_").live.copy()
        return live

    @property
    def averages_(self) -> Array:
        """Running mean cost of each candidate (C,)."""
        averages: Array = self._fitted("averages_").averages
        return averages

    def _fitted(self, name: str) -> Any:
        if not self.__sklearn_is_fitted__():
            raise AttributeError(f"{self._who} is not fitted yet: it has no {name}")
        return self._engine
