"""Online multi-label classification that reduces the label space and optimises the cost you chose.

`CSDPP` is the learner; `OnlineBinaryRelevance`, `OnlineCompressedSensing` and `OnlineRandomProjection` are what it
is compared with, `PLST` and `CPLST` its batch ceilings. `csdpp.costs` holds the cost functions, `csdpp.evaluate`
the prequential evaluation, `csdpp.river` an adapter to river.
"""

from csdpp.baselines import OnlineBinaryRelevance, OnlineCompressedSensing, OnlineRandomProjection
from csdpp.batch import CPLST, PLST
from csdpp.learner import CSDPP

__version__ = "0.1.0"

__all__ = [
    "CPLST",
    "CSDPP",
    "PLST",
    "OnlineBinaryRelevance",
    "OnlineCompressedSensing",
    "OnlineRandomProjection",
    "__version__",
]
