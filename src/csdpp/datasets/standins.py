"""Generated streams of the sizes of four sets that are hard to come by, under names that say that they are not those.

A stand-in has the rows, features, labels and cardinality of its model and nothing else of it: features are standard
normal (or sparse and uniform), labels of low rank. It shows what a size costs, never how good a learner is on the set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from csdpp.datasets._types import Dataset
from csdpp.datasets.registry import REGISTRY, Entry
from csdpp.datasets.synthetic import make_stream
from csdpp.errors import InvalidParameter


@dataclass(frozen=True)
class StandIn:
    """Which set it stands in for, and what `make_stream` needs beyond that set's statistics."""

    model: Entry
    rank: int
    density: float = 1.0


#: Ranks are those of the code sizes that the paper takes for sets of this size.
STAND_INS = {
    "mediamill-like": StandIn(REGISTRY["mediamill"], rank=10),
    "nuswide-like": StandIn(REGISTRY["nuswide"], rank=8),
    "delicious-like": StandIn(REGISTRY["delicious"], rank=10),
    "eurlex-like": StandIn(REGISTRY["eurlex-eurovec"], rank=25, density=0.05),
}


def make_stand_in(
    name: str, *, n: int | None = None, random_state: int | np.random.Generator | None = 0, drift: float = 0.0
) -> Dataset:
    """A generated stream with the sizes and the cardinality of a set of the paper.

    Parameters
    ----------
    name : {"mediamill-like", "nuswide-like", "delicious-like", "eurlex-like"}
    n : int, default: as many rows as the set has
    random_state : int, Generator or None
        The same seed gives the same stream.
    drift : float in [0, 1]
        As in `make_stream`.

    Examples
    --------
    >>> make_stand_in("mediamill-like", n=1000)
    Dataset('mediamill-like', N=1000, d=120, K=101, cardinality=4...)
    """
    if name not in STAND_INS:
        raise InvalidParameter(f"make_stand_in: name must be one of {', '.join(STAND_INS)}, got {name!r}; choose one")
    stand_in = STAND_INS[name]
    like = stand_in.model
    stream = make_stream(
        like.N if n is None else n,
        like.d,
        like.K,
        rank=stand_in.rank,
        cardinality=like.cardinality,
        density=stand_in.density,
        drift=drift,
        random_state=random_state,
    )
    return replace(stream, name=name)
