"""Multi-label data: readers of the usual formats, the sets at hand, and generated streams.

Every reader gives a `Dataset`: features X, 0/1 labels Y, and their names.
"""

from csdpp.datasets._types import Dataset, Statistics
from csdpp.datasets.arff import load_meka, load_mulan
from csdpp.datasets.bundled import load_named, load_river_yeast
from csdpp.datasets.synthetic import make_stream

__all__ = [
    "Dataset",
    "Statistics",
    "load_mulan",
    "load_meka",
    "load_named",
    "load_river_yeast",
    "make_stream",
]
