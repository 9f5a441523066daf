"""Multi-label data: readers of the usual formats, the sets of the paper, and generated streams.

Every reader gives a `Dataset`: features X, 0/1 labels Y, and their names. `load` takes whatever there is: the name
of a set or of a stand-in, or files of any format.
"""

from csdpp.datasets._types import Dataset, Statistics
from csdpp.datasets.bundled import load_named, load_river_yeast
from csdpp.datasets.mulan import load_meka, load_mulan
from csdpp.datasets.registry import REGISTRY
from csdpp.datasets.sources import load
from csdpp.datasets.standins import STAND_INS, make_stand_in
from csdpp.datasets.synthetic import make_stream

__all__ = [
    "Dataset",
    "Statistics",
    "load",
    "load_mulan",
    "load_meka",
    "load_named",
    "load_river_yeast",
    "REGISTRY",
    "STAND_INS",
    "make_stand_in",
    "make_stream",
]
