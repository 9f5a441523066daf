"""Average regret of the online learner against batch PLST (theorem 2 of the paper)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import clone

from csdpp.costs import Hamming, resolve_cost
from csdpp.errors import InvalidParameter
from csdpp.estimator import code_size
from csdpp.evaluate import BOUND_TERMS, choose_checkpoints, prequential
from csdpp.learner import CSDPP
from csdpp.targets import Targets

__all__ = ["Regret", "average_regret"]

Array = NDArray[Any]
_WHO = "average_regret"


@dataclass(frozen=True, eq=False)
class Regret:
    """The regret after the first T rows, for each checkpoint.

    Attributes
    ----------
    T : array (c,)
        Numbers of rows, rising.
    regret : array (c,)
        R / T = ``online - offline``.
    online : array (c,)
        Average of E_P l_t(W_t, P_t) over the T rows, each predicted before it was learned.
    offline : array (c,)
        Average of l_t(W#, P*) over the same rows, with (W#, P*) fitted on just these.
    """

    T: NDArray[np.int64]
    regret: NDArray[np.float64]
    online: NDArray[np.float64]
    offline: NDArray[np.float64]


def average_regret(
    X: Any, Y: Any, n_components: int | float, *, checkpoints: Any = None, model: CSDPP | None = None
) -> Regret:
    """R / T of theorem 2: what a stream costs the online learner above what it costs PLST, which saw it whole.

    With y scaled to length one, that is y / sqrt(K), and o = 0,

        R / T = 1/T sum_t E_P [ l_t(W_t, P_t) - l_t(W#, P*) ],
        l_t(W, P) = |W'x_t - P y_t|^2 + |(I - P'P) y_t|^2,

    P* = the minimiser of sum_t |(I - P'P) y_t|^2 and W# = that of sum_t |W'x_t - P* y_t|^2 over the first T rows:
    PLST without regularisation, and where W# is not unique, the one of least norm.

    Parameters
    ----------
    X : array-like, sparse or frame of shape (n, d)
    Y : 0/1 indicators of shape (n, K)
    n_components : int or float
        M, or a share in (0, 1] of the K labels.
    checkpoints : int or array of T, optional
        So many evenly spaced (10 by default), or these.
    model : CSDPP, optional
        The online learner; a clone runs. It must have ``cost="hamming"``, ``reference="zero"`` and n_components
        like this function. By default the paper's DPP with PBC, decoded with the expectation of P'P.

    Returns
    -------
    Regret

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (1000, 5))
    >>> Y = (X @ rng.standard_normal((5, 2)) @ rng.standard_normal((2, 8)) > 0).astype(int)
    >>> found = average_regret(X, Y, n_components=2, checkpoints=[100, 1000])
    >>> bool(0 < found.regret[1] < found.regret[0])
    True

    Notes
    -----
    The online side is the bound that the learner records (`csdpp.evaluate.BOUND_TERMS`). With ``decode="expected"``
    it is E_P l_t over Lemma 1's P once the trace of U is M. Before that there is no such distribution, and it
    is l_t for the one P that the learner uses: every held direction but the weakest of M + 1. With
    ``decode="sample"`` it is l_t for the P drawn.

    The constant feature, if the model has one, counts as part of x on both sides.

    Each checkpoint costs O(T d^2 + T K M + K^3), and X is made dense.
    """
    targets = Targets.learn(_WHO, Y)
    truth = targets.rows(Y)
    if targets.kind != "multilabel":
        raise InvalidParameter(f"{_WHO}: Y must be 0/1 indicators of shape (n, K), got 1-D classes")
    n, K = truth.shape
    M = code_size(_WHO, n_components, K)
    model = _checked(model, M, K)
    T = choose_checkpoints(_WHO, checkpoints, n, 10)
    curves = prequential(model, X, Y, (), checkpoints=T, bound=True, progress=False).curves
    prediction, reconstruction = (curves[term] for term in BOUND_TERMS)
    online = prediction + reconstruction

    V = np.where(truth.toarray() if sparse.issparse(truth) else truth, 1.0, -1.0) / np.sqrt(K)
    features = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
    if model.fit_intercept:
        features = np.hstack([features, np.ones((n, 1))])
    offline = np.array([_plst_loss(features[:t], V[:t], M) for t in T], np.float64)
    return Regret(T, online - offline, online, offline)


def _plst_loss(X: Array, V: Array, M: int) -> float:
    """The average of l_t(W#, P*) over the rows that (W#, P*) is fitted on."""
    K = V.shape[1]
    P = linalg.eigh(V.T @ V, subset_by_index=(K - M, K - 1))[1].T
    codes = V @ P.T
    # NumPy's, not SciPy's: that takes singular values down to one eps for real, which dependent features undercut.
    W = np.linalg.lstsq(X, codes)[0]
    prediction = np.square(X @ W - codes).sum()
    reconstruction = np.square(V - codes @ P).sum()
    return float(prediction + reconstruction) / len(V)


def _checked(model: CSDPP | None, M: int, K: int) -> CSDPP:
    if model is None:
        return CSDPP.published(M, cost="hamming", basis="pbc", decode="expected")
    fits = (
        isinstance(model, CSDPP)
        and resolve_cost(model.cost) == Hamming()
        and model.reference == "zero"
        and code_size(_WHO, model.n_components, K) == M
    )
    if not fits:
        raise InvalidParameter(
            f'{_WHO}: model must be a CSDPP with cost="hamming", reference="zero" and {M} components, got '
            f"{' '.join(repr(model).split())}; the theorem is about these"
        )
    fresh: CSDPP = clone(model)
    return fresh
