"""Data by whatever name, whole or in blocks: files of any format, pipes, sets of the paper, stand-ins for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import Parameter, signature
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from csdpp.datasets._text import FilePath, Source, paths_of, shown, standard_input
from csdpp.datasets._types import Dataset
from csdpp.datasets.blocks import Block, arranged, blocks_of
from csdpp.datasets.bundled import load_named
from csdpp.datasets.csvfiles import load_csv, stream_csv
from csdpp.datasets.jsonlines import load_jsonl, stream_jsonl
from csdpp.datasets.mulan import load_meka, load_mulan, stream_meka, stream_mulan
from csdpp.datasets.parquet import load_parquet, stream_parquet
from csdpp.datasets.registry import REGISTRY, entry, find, plain_name
from csdpp.datasets.standins import STAND_INS, make_stand_in
from csdpp.datasets.svmlight import load_svmlight, stream_svmlight
from csdpp.datasets.xmc import load_xmc, stream_xmc
from csdpp.errors import InvalidParameter, MissingData


class Format(NamedTuple):
    """A format: the endings of its files, what reads it whole (a list of paths), what reads it in blocks."""

    endings: tuple[str, ...]
    load: Callable[..., Dataset]
    stream: Callable[..., Iterator[Block]]


#: Formats by name. The parameters of each reader are options of `load` and `stream`.
FORMATS: dict[str, Format] = {
    "mulan": Format((), load_mulan, stream_mulan),
    "meka": Format((), load_meka, stream_meka),
    "svmlight": Format((".svm", ".svmlight", ".libsvm"), load_svmlight, stream_svmlight),
    "jsonl": Format((".jsonl", ".ndjson"), load_jsonl, stream_jsonl),
    "xmc": Format((), load_xmc, stream_xmc),
    "csv": Format((".csv", ".tsv"), load_csv, stream_csv),
    "parquet": Format((".parquet", ".pq"), load_parquet, stream_parquet),
}


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
    format : one of `FORMATS`, default: by the file's ending
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
    paths = _files("load", source)
    chosen = _format("load", paths[0], format, options)
    _check_options("load", chosen, options, set(_keywords(chosen.load)))
    return chosen.load(paths, **options)


def stream(
    source: Source | Iterable[FilePath],
    *,
    format: str | None = None,
    block_rows: int = 1000,
    skip_rows: int = 0,
    labelled: bool = True,
    feature_names: Sequence[str] = (),
    label_names: Sequence[str] = (),
    root: FilePath | None = None,
    **options: Any,
) -> Iterator[Block]:
    r"""Rows of a file or pipe in blocks; what a block is and what is promised stands in `csdpp.datasets.blocks`.

    Parameters
    ----------
    source : path, several paths, open text stream, "-" for standard input, or the name of a set or a stand-in
    format : one of `FORMATS`, default: by the file's ending
        Must be said where there is no ending to tell.
    block_rows : int
        Rows of a block. With 1, each row comes as soon as its line is there.
    skip_rows : int
        How many rows at the start are read and passed over, to go on where an earlier run stopped.
    labelled : bool
        Whether rows have labels. If not, `Y` is None; labels in the source are passed over.
    feature_names, label_names : sequence of str
        Names that are known beforehand, say of a learner: the first columns of every block, in this order.
    root : path
        As in `load`.
    **options
        Of the reader of the format, as in `load`.

    Examples
    --------
    >>> import io
    >>> lines = '{"x": {"a": 1, "b": 2}, "y": ["u"]}\n{"x": {"c": 3}, "y": ["v"]}\n'
    >>> for block in stream(io.StringIO(lines), format="jsonl", block_rows=1):
    ...     print(block, block.X.toarray(), block.Y.toarray(), block.label_names)
    Block(rows 0 to 0, d=2, K=1) [[1. 2.]] [[1]] ('u',)
    Block(rows 1 to 1, d=3, K=2) [[0. 0. 3.]] [[0 1]] ('u', 'v')
    """
    for name, number, least in (("block_rows", block_rows, 1), ("skip_rows", skip_rows, 0)):
        if isinstance(number, bool) or not isinstance(number, Integral) or number < least:
            raise InvalidParameter(f"stream: {name} must be a whole number from {least}, got {number!r}; change it")
    known = (tuple(feature_names), tuple(label_names))
    for part, names in zip(("feature_names", "label_names"), known, strict=True):
        if len(set(names)) < len(names):
            raise InvalidParameter(f"stream: {part} must differ from each other, got one twice; leave it out")
    found: Iterator[Block]
    if isinstance(source, str) and source.lower() in STAND_INS:
        found = arranged(blocks_of(make_stand_in(source.lower(), **options), block_rows), labelled, *known)
    else:
        sources: list[Any]
        if isinstance(source, str) and plain_name(source) in REGISTRY:
            try:
                arffs, xml = find(source, root, "stream")
            except MissingData:
                if plain_name(source) != "yeast":
                    raise
                found = arranged(blocks_of(load_named(source, root), block_rows), labelled, *known)  # river's wheel
                return _from_row(found, int(skip_rows))
            sources, format = list(arffs), "mulan"
            options = {"xml": xml, "corrections": entry(source).corrections, **options}
        elif isinstance(source, str) and source == "-":
            sources = [standard_input(options.get("encoding", "utf-8"))]
        elif hasattr(source, "readline"):
            sources = [source]
        else:
            sources = list(_files("stream", source))
        chosen = _format("stream", sources[0], format, options)
        _check_options("stream", chosen, options, {*_keywords(chosen.load)} - {"name"})
        options = {"labelled": labelled, "feature_names": known[0], "label_names": known[1], **options}
        found = _in_turn(chosen, sources, int(block_rows), options)
    return _from_row(found, int(skip_rows))


def format_of(source: Any, format: str | None, options: Mapping[str, Any]) -> str | None:
    """The name of the format in which `stream` would read the source; None for a set or stand-in by name."""
    if isinstance(source, str) and (source.lower() in STAND_INS or plain_name(source) in REGISTRY):
        return None
    if not isinstance(source, str | Path) and not hasattr(source, "readline"):
        source = next(iter(source))
    chosen = _format("stream", Path(source) if isinstance(source, str) else source, format, dict(options))
    return next(name for name, one in FORMATS.items() if one is chosen)


def _keywords(call: Callable[..., Any]) -> list[str]:
    """Names of its parameters but the first."""
    return [name for name, given in signature(call).parameters.items() if given.kind != Parameter.VAR_KEYWORD][1:]


def _check_options(who: str, format: Format, options: dict[str, Any], known: set[str]) -> None:
    """Refuse what the reader of a format does not know."""
    if odd := [name for name in options if name not in known]:
        name = next(name for name, one in FORMATS.items() if one is format)
        raise InvalidParameter(
            f"{who}: {name} has the options {', '.join(sorted(known))}, got {odd[0]!r}; leave it out"
        )


def _in_turn(format: Format, sources: list[Any], rows: int, options: dict[str, Any]) -> Iterator[Block]:
    """One source after the other; names that one brings are known to the next."""
    first_row = 0
    for source in sources:
        for block in format.stream(source, rows, **options):
            options = {**options, "feature_names": block.feature_names}
            if block.Y is not None:
                options["label_names"] = block.label_names
            yield replace(block, first_row=first_row)
            first_row += len(block)


def _from_row(blocks: Iterator[Block], row: int) -> Iterator[Block]:
    """The blocks without the rows before `row`."""
    for block in blocks:
        if (skip := max(0, row - block.first_row)) < len(block):
            yield block.rows_from(skip) if skip else block


def _files(who: str, source: Any) -> list[Path]:
    """Paths of files that are there."""
    paths = paths_of(who, source)
    for path in paths:
        if not path.exists():
            names = ", ".join([*REGISTRY, *STAND_INS])
            raise MissingData(f"{who}: expected a file, or one of {names}, got {str(path)!r}; check the name")
    return paths


def _format(who: str, source: Any, format: str | None, options: dict[str, Any]) -> Format:
    """The format asked for, or else the one that the ending of the (first) file tells."""
    if format is not None:
        if format not in FORMATS:
            raise InvalidParameter(f"{who}: format must be one of {', '.join(FORMATS)}, got {format!r}; choose one")
        return FORMATS[format]
    if isinstance(source, Path):
        ending = source.suffix.lower()
        if ending == ".arff":
            return FORMATS["mulan" if "xml" in options or source.with_suffix(".xml").exists() else "meka"]
        for known in FORMATS.values():
            if ending in known.endings:
                return known
    name = source.name if isinstance(source, Path) else shown(source)
    raise InvalidParameter(
        f"{who}: format must be given where the ending does not tell, got {name!r}; "
        f"pass format=, one of {', '.join(FORMATS)}"
    )
