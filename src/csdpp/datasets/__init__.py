"""Multi-label data: readers of the usual formats, the sets of the paper, and generated streams.

Every reader gives a `Dataset`: features X, 0/1 labels Y, and their names. `load` takes whatever there is: the name
of a set or of a stand-in, or files of any format.
"""

from csdpp.datasets._types import Dataset, Statistics
from csdpp.datasets.blocks import Block
from csdpp.datasets.bundled import load_named, load_river_yeast
from csdpp.datasets.csvfiles import load_csv
from csdpp.datasets.fetching import fetch
from csdpp.datasets.jsonlines import load_jsonl
from csdpp.datasets.mails import read_mails, write_mails
from csdpp.datasets.mulan import load_meka, load_mulan
from csdpp.datasets.parquet import from_frame, load_parquet
from csdpp.datasets.registry import REGISTRY
from csdpp.datasets.sources import load, stream
from csdpp.datasets.standins import STAND_INS, make_stand_in
from csdpp.datasets.svmlight import load_svmlight
from csdpp.datasets.synthetic import make_stream
from csdpp.datasets.xmc import load_xmc

__all__ = [
    "Dataset",
    "Statistics",
    "Block",
    "load",
    "stream",
    "load_mulan",
    "load_meka",
    "load_svmlight",
    "load_jsonl",
    "load_xmc",
    "load_csv",
    "load_parquet",
    "from_frame",
    "load_named",
    "load_river_yeast",
    "fetch",
    "REGISTRY",
    "STAND_INS",
    "make_stand_in",
    "make_stream",
    "write_mails",
    "read_mails",
]
