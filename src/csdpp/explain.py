"""Why a label is predicted, and which labels pull together: linear learners, read by name.

>>> import numpy as np
>>> from csdpp import CSDPP, explain
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((500, 4))
>>> Y = np.column_stack([X[:, 0] > 0, X[:, 0] > 0.2, X[:, 1] > 0, X[:, 1] < -0.2])
>>> model = CSDPP(2).partial_fit(X, Y.astype(int), classes=["invoice", "tax", "holiday", "work"])
>>> [name for name, _ in explain.top_features(model, "tax", 1, names=["euro", "sun", "noise", "noise 2"])]
['euro']
>>> [name for name, _ in explain.related_labels(model, "invoice", 1)]
['tax']
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from csdpp.batch import PLST
from csdpp.engine import BASES, FixedEngine, FollowingEngine, SensingEngine
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.estimator import OnlineClassifier, whole

__all__ = ["top_features", "direction_labels", "related_labels", "effects"]

Array = NDArray[Any]
Named = list[tuple[Any, float]]


def effects(model: Any, labels: Any = None) -> Array:
    """What one unit of each feature adds to the score of each label: (labels, d), exact.

    Parameters
    ----------
    model : fitted `CSDPP`, `OnlineBinaryRelevance`, `OnlineRandomProjection`, `PLST` or `CPLST`
        Not `OnlineCompressedSensing`, whose decoder is not linear.
    labels : names, optional
        Which labels; by default all.

    Notes
    -----
    O(dMK) for all labels, O(d (K + M)) for one with PBC.
    """
    places = np.arange(len(model.classes_)) if labels is None else [_place(model, label) for label in labels]
    W, Q, keep, encoded = _linear(model)
    if Q is None:
        weights = W[:, places]
    else:
        decoder = keep[:, None] * Q[:, places]  # (held, labels): codes to scores
        weights = W @ (Q.T @ decoder) if encoded else W[:, : len(Q)] @ decoder
    return np.ascontiguousarray(weights.T[:, : model.n_features_in_])


def top_features(model: Any, label: Any, n: int = 10, *, names: Any = None, scale: Any = None) -> Named:
    """The features that move the score of a label most, strongest first: [(name, effect), ...].

    Parameters
    ----------
    model, label : as in `effects`; a name in ``classes_``
    n : int
    names : sequence of d, optional
        Of the features; by default those of the frame that the model learned from, else their numbers.
    scale : array of d, optional
        How far each feature usually varies, such as its standard deviation: effects are multiplied by it. Without,
        features must be of one scale to be compared.
    """
    whole("explain", "n", n, "at least 1", lambda v: v >= 1)
    found = effects(model, [label])[0]
    if scale is not None:
        found = found * _of_features("scale", np.asarray(scale, np.float64), model)
    known = getattr(model, "feature_names_in_", np.arange(model.n_features_in_)) if names is None else names
    return _strongest(found, _of_features("names", np.asarray(known, object), model), n)


def direction_labels(model: Any, direction: int, n: int = 10) -> Named:
    """The labels that make up a direction, strongest first; labels of one sign rise and fall together.

    ``direction`` is a row of ``directions_``: 0 is the one held most firmly.
    """
    whole("explain", "n", n, "at least 1", lambda v: v >= 1)
    Q = _directions(model)[0]
    whole("explain", "direction", direction, f"from 0 to {len(Q) - 1}", lambda v: 0 <= v < len(Q))
    return _strongest(Q[direction], np.asarray(model.classes_, object), n)


def related_labels(model: Any, label: Any, n: int = 10) -> Named:
    """The labels whose scores move with that of a label, strongest first; negative: against it.

    It is the row of U = Q' diag(sigma) Q, scaled to correlations. O(MK).
    """
    whole("explain", "n", n, "at least 1", lambda v: v >= 1)
    Q, sigma = _directions(model)
    k = _place(model, label)
    own = sigma @ Q**2
    together = (sigma * Q[:, k]) @ Q
    size = np.sqrt(own * own[k])
    together = np.divide(together, size, out=np.zeros_like(together), where=size > 0)
    others = np.arange(len(together)) != k
    return _strongest(together[others], np.asarray(model.classes_, object)[others], n)


# ---- what a learner is made of


def _linear(model: Any) -> tuple[Array, Array | None, Array, bool]:
    """W (d, p); Q and keep of the decoder, or None; whether W is of labels that are still to be encoded."""
    none = np.empty(0)
    if isinstance(model, PLST):
        Q = getattr(model, "directions_", None)
        return _fitted(model)._W, Q, np.ones(0 if Q is None else len(Q)), False
    if not isinstance(model, OnlineClassifier):
        raise InvalidInput(f"explain: model must be a learner of this package, got {type(model).__name__}")
    engine, W = _fitted(model)._leader, model._engine.weights
    if isinstance(engine, FollowingEngine):
        held = len(engine.encoder.directions)
        return W, engine.encoder.directions, engine.encoder.basis.keep[:held], engine.recipe.basis == BASES["pbc"]
    if isinstance(engine, SensingEngine) or not isinstance(engine, FixedEngine):
        raise InvalidInput(f"explain: {type(model).__name__} decodes label by label, and has no effects of features")
    return engine.encoder.decode(W), None, none, False


def _directions(model: Any) -> tuple[Array, Array]:
    if isinstance(model, PLST):
        Q = _fitted(model).directions_
        return Q, np.ones(len(Q))
    engine = _fitted(model)._leader if isinstance(model, OnlineClassifier) else None
    if not isinstance(engine, FollowingEngine):
        raise InvalidInput(f"explain: {type(model).__name__} has no directions; use CSDPP or PLST")
    return engine.encoder.directions, engine.encoder.spectrum


def _fitted(model: Any) -> Any:
    if not hasattr(model, "classes_"):
        raise InvalidInput(f"explain: {type(model).__name__} is not fitted yet; let it learn first")
    return model


def _place(model: Any, label: Any) -> int:
    places = np.flatnonzero(np.asarray(_fitted(model).classes_, object) == label)
    if not len(places):
        raise InvalidParameter(f"explain: label must be one of classes_, got {label!r:.80}")
    return int(places[0])


def _of_features(what: str, values: Array, model: Any) -> Array:
    if values.shape != (model.n_features_in_,):
        raise InvalidParameter(
            f"explain: {what} must be of the {model.n_features_in_} features, got shape {values.shape}"
        )
    return values


def _strongest(values: Array, names: Array, n: int) -> Named:
    """Of equal ones the first comes first; what is exactly 0 is left out."""
    order = np.argsort(-np.abs(values), kind="stable")[:n]
    return [(names[i], float(values[i])) for i in order if values[i] != 0.0]
