"""The online learners that the shared contract runs over, and small data for them."""

import numpy as np

from csdpp import CSDPP, OnlineBinaryRelevance, OnlineCompressedSensing, OnlineRandomProjection
from streams import correlated

LEARNERS = {
    "csdpp": CSDPP(2, random_state=0),
    "csdpp-pbt": CSDPP(2, basis="pbt", encoder="label", random_state=0),
    "csdpp-gradient": CSDPP(2, regressor="gradient", weighting="ordered", cost="accuracy", random_state=0),
    "csdpp-forgetting": CSDPP(2, basis="pbt", encoder="label", forgetting=0.98, random_state=0),
    "csdpp-micro-f1": CSDPP(2, cost="micro_f1", random_state=0),
    "csdpp-macro-f1": CSDPP(2, cost="macro_f1", forgetting=0.98, random_state=0),
    "published-pbt": CSDPP.published(2, cost="f1", random_state=0),
    "published-pbc": CSDPP.published(2, cost="hamming", basis="pbc", random_state=0),
    "published-none": CSDPP.published(2, cost="hamming", basis="none", random_state=0),
    "o-br": OnlineBinaryRelevance(),
    "o-br-gradient": OnlineBinaryRelevance(regressor="gradient", forgetting=0.99),
    "o-rand": OnlineRandomProjection(2, random_state=0),
    "o-cs": OnlineCompressedSensing(0.6, random_state=0),
    "o-cs-2": OnlineCompressedSensing(0.6, sparsity=2, random_state=0),
}


def data(n=150, seed=11):
    """Features (n, 7) and indicators (n, 6)."""
    return correlated(n, 7, 6, seed)


def state(model):
    """All arrays that a learner has learned."""
    engine = model._engine
    found = {"W": engine.regressor.W, "calibration": engine.calibration.sums}
    for name in ("F", "mass", "power"):
        if hasattr(engine.regressor, name):
            found[name] = np.asarray(getattr(engine.regressor, name))
    if hasattr(engine, "o"):
        basis = engine.encoder.basis
        found |= {"o": engine.o, "clock": engine.clock, "Q": basis.Q, "sigma": basis.sigma, "keep": basis.keep}
        found["memory"] = engine.memory
        found["counts"] = basis.counts[:3]  # what comes after says when the basis was last repaired
    return {name: np.array(value) for name, value in found.items()}


def assert_same_state(a, b, atol=0.0):
    """To the bit, or up to ``atol``."""
    first, second = state(a), state(b)
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_allclose(first[name], second[name], rtol=0, atol=atol, err_msg=name)
