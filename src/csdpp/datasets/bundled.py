"""Real data sets by name, from folders with their original files or from river's wheel; nothing is downloaded."""

from __future__ import annotations

import gzip
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from csdpp.datasets._types import Dataset, Nominal
from csdpp.datasets.mulan import load_mulan
from csdpp.datasets.registry import entry, find
from csdpp.errors import DataFormatError, MissingData


def load_named(name: str, root: str | os.PathLike[str] | None = None, *, nominal: Nominal = "index") -> Dataset:
    """A data set of the paper, from its original files; nothing is downloaded.

    Parameters
    ----------
    name : one of `REGISTRY`: "cal500", "corel5k", "emotions", ...
        Upper and lower case are the same. Of sets in two parts the training file and then the test file.
    root : path, default: the environment variable CSDPP_DATA, then the cache that `fetch` fills
        It has a folder for each set, for instance with `yeast/yeast.arff` and `yeast/yeast.xml`. Where no root is
        given and no files are there, yeast comes from river's wheel if river is installed.
    nominal : {"index", "onehot"}
        As in `load_mulan`.

    Examples
    --------
    >>> load_named("yeast", root="no such folder")
    Traceback (most recent call last):
    ...
    csdpp.errors.MissingData: load_named: expected 'yeast' (yeast.arff, yeast.xml) in no such folder/yeast, got ...
    """
    known = entry(name, "load_named")
    try:
        arff, xml = find(name, root, "load_named")
    except MissingData:
        if known.name == "yeast" and root is None and find_spec("river") is not None:
            return load_river_yeast()
        raise
    return load_mulan(arff, xml, nominal=nominal, name=known.name, corrections=known.corrections)


def load_river_yeast() -> Dataset:
    """The yeast stream (2,417 rows, 103 features, 14 labels) from river's wheel: real data, no download.

    Rows, features and labels of `river.datasets.Yeast` in their order.

    Examples
    --------
    >>> load_river_yeast()
    Dataset('yeast', N=2417, d=103, K=14, cardinality=4.237)
    """
    river = find_spec("river")  # to import it would take longer than to read the file
    if river is None or river.origin is None:
        raise ModuleNotFoundError("load_river_yeast: needs the package river, got none; pip install csdpp[river]")
    path = Path(river.origin).parent / "datasets" / "yeast.csv.gz"
    if not path.exists():
        raise FileNotFoundError(
            f"load_river_yeast: expected {path}, got a river without it; pip install --upgrade csdpp[river]"
        )
    with gzip.open(path, "rt", encoding="utf-8") as file:
        names = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",", ndmin=2)
    is_label = np.char.startswith(names, "Class")
    if table.shape != (2417, 117) or is_label.sum() != 14:
        raise DataFormatError(f"{path}: expected 2417 rows of 103 features and 14 labels, got {table.shape}")
    features, labels = (tuple(np.array(names)[chosen].tolist()) for chosen in (~is_label, is_label))
    return Dataset(table[:, ~is_label], table[:, is_label], features, labels, "yeast")
