"""Calibrated chances: how often a label with this score came out relevant, learned beside the learner itself.

`Calibration` is the part of an engine that `predict_proba` asks. `reliability` says how far chances can be trusted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from csdpp._kernels.chances import (
    HIT_SCORES,
    SCORES,
    SQUARES,
    put_chances,
    put_lines,
    tally_rows,
    tally_rows_with_chances,
)
from csdpp.errors import InvalidInput, InvalidParameter

__all__ = ["Calibration", "Reliability", "reliability"]

Array = NDArray[Any]
#: The past fades by this factor a row, or by the learner's forgetting if that is less: scores change while it learns.
FADE = 0.999
_ALL = np.empty((0, 0), np.bool_)  # every label is known


class Calibration:
    """Scores of K labels against what came (`csdpp._kernels.chances`); six numbers a label, O(K) a row.

    The scores of a row are taken in as they were before the row was learned: those are the ones a user meets.

    >>> import numpy as np
    >>> calibration = Calibration(1)
    >>> calibration.add(np.array([[1.0], [-1.0]] * 20), np.array([[True], [False]] * 20), 1.0)
    >>> calibration.chances(np.array([[1.0], [0.0], [-1.0]])).ravel() > 0.5
    array([ True, False, False])
    """

    def __init__(self, K: int) -> None:
        self.sums = np.zeros((6, K))

    def add(
        self, S: Array, Y: Array, forgetting: float, chances: Array | None = None, known: Array | None = None
    ) -> None:
        """Take in scores S (n, K) and truth Y (n, K), as far as it is ``known`` (n, K).

        Into ``chances`` (n, K) goes what was thought before each row.
        """
        fade = min(FADE, forgetting)
        told = _ALL if known is None else known
        if chances is None:
            tally_rows(self.sums, S, Y, told, fade)
        else:
            tally_rows_with_chances(self.sums, S, Y, told, fade, chances)

    def add_labels(self, count: int) -> None:
        """Labels of which nothing is known yet, last."""
        self.sums = np.hstack([self.sums, np.zeros((len(self.sums), count))])

    def drop_labels(self, places: Array) -> None:
        """Forget labels."""
        self.sums = np.ascontiguousarray(np.delete(self.sums, places, axis=1))

    def rescale(self, factor: float) -> None:
        """Scores are ``factor`` times what they were."""
        self.sums[HIT_SCORES : SCORES + 1] *= factor
        self.sums[SQUARES] *= factor**2

    def chances(self, S: Array) -> Array:
        """P(label) for scores S (n, K); of a label of which nothing is known yet, 1/2."""
        chances = np.empty(S.shape)
        put_chances(self.sums, S, chances)
        return chances

    def exclusive_chances(self, S: Array) -> Array:
        """P(class) for scores S (n, K) of which the largest wins, with one slope for all: the same one wins."""
        a, b = np.empty(1), np.empty(1)
        put_lines(self.sums.sum(axis=1, keepdims=True), a, b)
        slope = float(a[0]) or 1.0
        chances: Array = special.expit(slope * S) if S.shape[1] == 1 else special.softmax(slope * S, axis=1)
        return chances


@dataclass(frozen=True, eq=False)
class Reliability:
    """Chances against what came, in bins of equal width.

    Attributes
    ----------
    count : array (B,), entries in each bin
    chance : array (B,), their mean chance; NaN where there are none
    frequency : array (B,), the share of them that were relevant; NaN where there are none
    error : float
        Expected calibration error: how far chance and frequency are apart, the mean over all entries.
    brier : float
        The mean of (chance - truth) squared.
    """

    count: Array
    chance: Array
    frequency: Array
    error: float
    brier: float


def reliability(Y: Any, P: Any, bins: int = 15) -> Reliability:
    """How far chances P (n, K) agree with what came, Y (n, K) of 0/1; all labels pooled.

    Parameters
    ----------
    Y : 0/1 indicators, dense or sparse; NaN, not known, is left out
    P : numbers in [0, 1], of the same shape
    bins : int, default 15

    Examples
    --------
    >>> import numpy as np
    >>> P = np.full((4, 1), 0.75)
    >>> reliability([[1], [1], [1], [0]], P).error
    0.0
    >>> reliability([[1], [0], [0], [0]], P).error
    0.5
    """
    if not isinstance(bins, int | np.integer) or bins < 1:
        raise InvalidParameter(f"reliability: bins must be a whole number at least 1, got {bins!r}")
    truth = np.asarray(Y.toarray() if sparse.issparse(Y) else Y, np.float64).ravel()
    chance = np.asarray(P, np.float64)
    if truth.size != chance.size or chance.size == 0:
        raise InvalidInput(f"reliability: Y and P must have one shape and entries, got {np.shape(Y)} and {np.shape(P)}")
    chance = chance.ravel()
    known = ~np.isnan(truth)
    truth, chance = truth[known], chance[known]
    if not ((chance >= 0) & (chance <= 1)).all():
        raise InvalidInput("reliability: P must hold chances in [0, 1]; pass what predict_proba gives")
    place = np.minimum((chance * bins).astype(np.int64), bins - 1)
    count = np.bincount(place, minlength=bins)
    mean = [np.bincount(place, part, bins) / np.where(count, count, np.nan) for part in (chance, truth)]
    gap = np.where(count, np.abs(mean[0] - mean[1]), 0.0)
    return Reliability(
        count=count,
        chance=mean[0],
        frequency=mean[1],
        error=float(count @ gap / max(count.sum(), 1)),
        brier=float(np.square(chance - truth).mean()) if len(truth) else 0.0,
    )
