"""Algorithm 1 read to the letter: the regressor is carried onto the sampled P_t, not onto the whole of Q.

For the ablation only. Each re-sampling deletes what was learned along the direction that was dropped; `CSDPP`
carries W on all M + 1 rows of Q and leaves the sampled row out when it decodes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from csdpp.costs import resolve_cost
from csdpp.encoders import CappedMSG

Array = NDArray[Any]


def predict_literally(
    X: Array, Y: Array, M: int, cost: str, seed: int, *, rate: float = 2.0, regularization: float = 1.0
) -> NDArray[np.bool_]:
    """Predictions (n, K), each made before its row was learned: PBT as printed, ridge, one row at a time.

    O(d^2 + dM^2 + M^2 K) a row.

    Examples
    --------
    >>> Y_hat = predict_literally(np.eye(3).repeat(20, axis=0), np.eye(3).repeat(20, axis=0), 2, "hamming", 0)
    >>> Y_hat.shape
    (60, 3)
    """
    measure, rng = resolve_cost(cost), np.random.RandomState(seed)
    X = np.hstack([X, np.ones((len(X), 1))])
    Y = Y.astype(bool)
    d, K = X.shape[1], Y.shape[1]
    encoder = CappedMSG(M, K, decode_with="sample")
    S, W, P = np.eye(d) / regularization, np.zeros((d, 0)), np.zeros((0, K))
    Y_hat = np.empty(Y.shape, bool)
    for t, (x, y, y_hat) in enumerate(zip(X, Y, Y_hat, strict=True), 1):
        y_hat[:] = P.T @ (W.T @ x) >= 0.0
        v = np.sqrt(measure.weights(y, y_hat)) * np.where(y, 1.0, -1.0)
        encoder.update(v, rate / np.sqrt(t) * M / K, rng.random_sample())
        old, P = P, encoder.directions[encoder.basis.keep[: len(encoder.directions)] > 0.5].copy()
        W = W @ (old @ P.T)  # the line of Algorithm 1
        Sx = S @ x
        gain = Sx / (1.0 + x @ Sx)
        S -= np.outer(gain, Sx)
        W -= np.outer(gain, W.T @ x - P @ v)
    return Y_hat
