"""Real data sets by name, from a folder of Mulan files or from river's wheel; nothing is downloaded."""

from __future__ import annotations

import gzip
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from csdpp.datasets._types import Dataset
from csdpp.datasets.arff import load_mulan
from csdpp.errors import DataFormatError, InvalidParameter

# Folder, ARFF files in the order in which they are joined, XML.
_FILES = {
    "yeast": ("yeast", ["yeast.arff"], "yeast.xml"),
    "scene": ("scene", ["scene-train.arff", "scene-test.arff"], "scene.xml"),
    "emotions": ("emotions", ["emotions.arff"], "emotions.xml"),
    "cal500": ("cal500", ["cal500.arff"], "cal500.xml"),
    "corel5k": ("corel5k", ["Corel5k-sparse.arff"], "Corel5k.xml"),
    "enron": ("enron", ["enron.arff"], "enron.xml"),
}


def load_named(name: str, root: str | os.PathLike[str] | None = None) -> Dataset:
    """A data set of the paper, from a folder with its original Mulan files.

    Parameters
    ----------
    name : {"yeast", "scene", "emotions", "cal500", "corel5k", "enron"}
        Upper and lower case are the same. Of scene the training file and then the test file.
    root : path, default: the environment variable CSDPP_DATA
        It has a folder for each set, for instance with `yeast/yeast.arff` and `yeast/yeast.xml`.

    Examples
    --------
    >>> load_named("yeast", root="no such folder")
    Traceback (most recent call last):
    ...
    FileNotFoundError: load_named: expected 'yeast' in no such folder/yeast, got no such folder; ...
    """
    if name.lower() not in _FILES:
        raise InvalidParameter(f"load_named: name must be one of {', '.join(_FILES)}, got {name!r}; choose one")
    root = os.environ.get("CSDPP_DATA") if root is None else root
    if not root:
        raise InvalidParameter(f"load_named: root must be the folder of {name!r}, got none; pass it or set CSDPP_DATA")
    folder, arffs, xml = _FILES[name.lower()]
    place = Path(root) / folder
    if not place.is_dir():
        raise FileNotFoundError(
            f"load_named: expected {name!r} in {place}, got no such folder; pass root= or set CSDPP_DATA"
        )
    return load_mulan([place / arff for arff in arffs], place / xml, name=name.lower())


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
