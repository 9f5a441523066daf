"""Data by whatever name: a file of any format, a set of the paper, or a stand-in for one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from csdpp.datasets._types import Dataset
from csdpp.datasets.bundled import load_named
from csdpp.datasets.mulan import load_meka, load_mulan
from csdpp.datasets.registry import REGISTRY, plain_name
from csdpp.datasets.standins import STAND_INS, make_stand_in
from csdpp.errors import InvalidParameter, MissingData

FilePath = str | os.PathLike[str]

#: Formats and their readers; each takes one path, or a list of paths that are joined.
FORMATS: dict[str, Callable[..., Dataset]] = {"mulan": load_mulan, "meka": load_meka}


def load(
    source: FilePath | Iterable[FilePath],
    *,
    format: str | None = None,
    root: FilePath | None = None,
    random_state: int | np.random.Generator | None = 0,
    **options: Any,
) -> Dataset:
    """A data set by the name of a set of the paper or of a stand-in, or from files of any format.

    Nothing is downloaded: a set of the paper must lie below CSDPP_DATA or in the cache (`fetch` puts it there);
    yeast may also come from river's wheel.

    Parameters
    ----------
    source : str or path, or several paths to be joined
        A name wins over a file of the same name; write ./yeast for the file.
    format : {"mulan", "meka"}, default: by the file's ending
        An ARFF file is Mulan's where `xml=` is given or a file of its name with the ending .xml lies beside it, else
        MEKA's.
    root : path, default: CSDPP_DATA, then the cache
        Folder of the sets of the paper.
    random_state : int, Generator or None
        Seed of a stand-in.
    **options
        Of the reader of the format, or `n=` and `drift=` of a stand-in.

    Examples
    --------
    >>> load("mediamill-like", n=100)
    Dataset('mediamill-like', N=100, d=120, K=101, cardinality=4...)
    >>> load("no/such.arff")
    Traceback (most recent call last):
    ...
    csdpp.errors.MissingData: load: expected a file, or one of cal500, ..., eurlex-like, got 'no/such.arff'; ...
    """
    if isinstance(source, str) and source.lower() in STAND_INS:
        return make_stand_in(source.lower(), random_state=random_state, **options)
    if isinstance(source, str) and plain_name(source) in REGISTRY:
        return load_named(source, root, **options)
    paths = [Path(source)] if isinstance(source, str | os.PathLike) else [Path(path) for path in source]
    for path in paths:
        if not path.exists():
            names = ", ".join([*REGISTRY, *STAND_INS])
            raise MissingData(f"load: expected a file, or one of {names}, got {str(path)!r}; check the name")
    return FORMATS[_format(paths, format, options)](paths, **options)


def _format(paths: list[Path], format: str | None, options: dict[str, Any]) -> str:
    """The format asked for, or else the one that the first file's ending tells."""
    if format is not None:
        if format not in FORMATS:
            raise InvalidParameter(f"load: format must be one of {', '.join(FORMATS)}, got {format!r}; choose one")
        return format
    if not paths:
        raise InvalidParameter("load: source must name one file or more, got an empty list; pass a path")
    ending = paths[0].suffix.lower()
    if ending == ".arff":
        return "mulan" if "xml" in options or paths[0].with_suffix(".xml").exists() else "meka"
    raise InvalidParameter(f"load: format must be given where the ending does not tell, got {paths[0].name!r}; pass it")
