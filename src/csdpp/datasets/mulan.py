"""Data sets in ARFF: Mulan's, whose labels an XML file names, and MEKA's, whose labels the relation's name counts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from csdpp.datasets._text import FilePath, Source, opened, paths_of, shown
from csdpp.datasets._types import Dataset, Header, Nominal, fail, few, stack_emptying
from csdpp.datasets.arff import read_blocks, read_header
from csdpp.datasets.blocks import Block, arranged, rebatched
from csdpp.errors import DataFormatError, InvalidParameter, MissingData

LabelsOf = Callable[[Header], list[int]]


def load_mulan(
    arff: FilePath | Iterable[FilePath],
    xml: FilePath | None = None,
    *,
    nominal: Nominal = "index",
    name: str | None = None,
    encoding: str = "utf-8",
    corrections: Mapping[str, str] | None = None,
) -> Dataset:
    r"""A data set in Mulan's format: ARFF, and an XML file that names the attributes that are labels.

    Labels are matched by name and keep the order of the ARFF, whatever that of the XML; labels nested in the
    XML are a hierarchy, given as `label_parents`. X and Y are CSR where the ARFF is sparse, else arrays.
    O(size of the files); memory for the arrays (for CSR twice) and a block of text.

    Parameters
    ----------
    arff : path, or paths of files with the same attributes, which are joined in this order
    xml : path, default: that of the first ARFF file, with the ending .xml
    nominal : {"index", "onehot"}
        A feature declared {0,1} is 0 or 1. One with other values becomes the place of its value in the
        declaration ("index"), or a 0/1 feature `name=value` for each declared value ("onehot").
    name : str, default: the first ARFF file's, without ending
    encoding : str, of the ARFF files
    corrections : mapping of str to str, optional
        Labels that the XML misspells, and their names in the ARFF.

    Raises
    ------
    DataFormatError
        At anything that is not as the format wants it, with file and line.

    Notes
    -----
    A missing feature (?) becomes NaN; a missing label is refused. In sparse rows an omitted number is 0, an
    omitted nominal its first declared value. String, date and relational attributes are refused.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> header = "@relation r\n@attribute b {0,1}\n@attribute x real\n@attribute a {0,1}\n@data\n"
    >>> _ = (folder / "toy.arff").write_text(header + "1,2.5,0\n")
    >>> _ = (folder / "toy.xml").write_text('<labels><label name="a"/><label name="b"/></labels>')
    >>> ds = load_mulan(folder / "toy.arff")
    >>> ds, ds.label_names, ds.X.tolist(), ds.Y.tolist()
    (Dataset('toy', N=1, d=1, K=2, cardinality=1.000), ('b', 'a'), [[2.5]], [[1, 0]])
    """
    paths = _paths("load_mulan", arff, nominal)
    xml = paths[0].with_suffix(".xml") if xml is None else Path(xml)
    if not xml.exists():
        raise MissingData(f"load_mulan: expected the label names in {xml}, got no such file; pass xml=")
    parents = _corrected(read_label_parents(xml), corrections or {})
    data = _load(paths, _mulan_labels(parents, xml), nominal, name or paths[0].stem, encoding)
    if any(parents.values()):
        data = replace(data, label_parents=tuple(parents[label] for label in data.label_names))
    return data


def _mulan_labels(parents: Iterable[str], xml: Path) -> LabelsOf:
    """Positions of the labels that the XML names."""

    def labels_of(header: Header) -> list[int]:
        place = {attribute.name: j for j, attribute in enumerate(header.attributes)}
        if unknown := [label for label in parents if label not in place]:
            raise DataFormatError(
                f"{header.path}: expected an attribute for each label of {xml}, "
                f"got none for {few(unknown)}; check that the two files belong together"
            )
        return sorted(place[label] for label in parents)

    return labels_of


def _corrected(parents: dict[str, str | None], corrections: Mapping[str, str]) -> dict[str, str | None]:
    """The labels and those above them, with other names for some."""
    return {
        corrections.get(label, label): parent and corrections.get(parent, parent) for label, parent in parents.items()
    }


def load_meka(
    arff: FilePath | Iterable[FilePath],
    *,
    nominal: Nominal = "index",
    name: str | None = None,
    encoding: str = "utf-8",
) -> Dataset:
    r"""A data set in MEKA's format: ARFF whose relation is named `'name: -C K'`.

    The first K attributes are the labels; with a negative K the last ones. All else is as in `load_mulan`;
    the default name is the relation's, up to the colon.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "toy.arff"
    >>> _ = file.write_text("@relation 'toy: -C -1'\n@attribute x real\n@attribute a {0,1}\n@data\n2.5,1\n")
    >>> load_meka(file).label_names
    ('a',)
    """
    return _load(_paths("load_meka", arff, nominal), _meka_labels, nominal, name, encoding)


_MEKA = re.compile(r"[^:]*:(?:.*\s)?-C\s+(?P<K>-?[0-9]{1,9})(?!\S)")


def _meka_labels(header: Header) -> list[int]:
    """Positions of the labels that the relation's name counts."""
    match, line = _MEKA.match(header.relation), header.relation_line
    if not match:
        fail(header.path, line, f"expected @relation 'name: -C K', got {few([header.relation])}; is it Mulan's?")
    K, m = int(match["K"]), len(header.attributes)
    if not 0 < abs(K) < m:
        fail(header.path, line, f"expected -C with 1 to {m - 1} of the {m} attributes as labels, got {K}")
    return list(range(K)) if K > 0 else list(range(m + K, m))


def _paths(who: str, arff: FilePath | Iterable[FilePath], nominal: str) -> list[Path]:
    """The files as paths; the arguments that the loaders share are checked."""
    if nominal not in ("index", "onehot"):
        raise InvalidParameter(f"{who}: nominal must be 'index' or 'onehot', got {nominal!r}; choose one")
    return paths_of(who, arff)


def stream_mulan(
    source: Source,
    rows: int,
    *,
    xml: FilePath | None = None,
    corrections: Mapping[str, str] | None = None,
    **options: Any,
) -> Iterator[Block]:
    """Blocks of `rows` rows; parameters as in `load_mulan`."""
    if xml is None and isinstance(source, str | os.PathLike):
        xml = Path(source).with_suffix(".xml")
    if xml is None or not Path(xml).exists():
        raise MissingData(f"stream: expected the label names in {xml}, got no such file; pass xml=")
    parents = _corrected(read_label_parents(Path(xml)), corrections or {})
    return _stream(source, rows, _mulan_labels(parents, Path(xml)), **options)


def stream_meka(source: Source, rows: int, **options: Any) -> Iterator[Block]:
    """Blocks of `rows` rows; parameters as in `load_meka`."""
    return _stream(source, rows, _meka_labels, **options)


def _stream(
    source: Source,
    rows: int,
    labels_of: LabelsOf,
    *,
    nominal: Nominal = "index",
    encoding: str = "utf-8",
    labelled: bool = True,
    **known: tuple[str, ...],
) -> Iterator[Block]:
    def blocks() -> Iterator[Block]:
        with opened(source, encoding) as file:
            header = read_header(file, shown(source))
            header = replace(header, labels=labels_of(header))
            first_row, names = 0, _names(header, nominal)
            for X, Y in rebatched(read_blocks(file, header, nominal, rows), rows):
                yield Block(X, Y, *names, first_row)
                first_row += X.shape[0]

    return arranged(blocks(), labelled, source=shown(source), **known)


def _names(header: Header, nominal: Nominal) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of features and of labels."""
    features = [column for j in header.features for column in header.attributes[j].columns(nominal)]
    return tuple(features), tuple(header.attributes[j].name for j in header.labels)


def _load(paths: list[Path], labels_of: LabelsOf, nominal: Nominal, name: str | None, encoding: str) -> Dataset:
    """Read files that declare the same attributes and labels, and join their rows."""
    headers: list[Header] = []
    Xs: list[Any] = []
    Ys: list[Any] = []
    for path in paths:
        with opened(path, encoding) as file:
            header = read_header(file, str(path))
            header = replace(header, labels=labels_of(header))
            headers.append(header)
            if header != headers[0]:
                raise DataFormatError(f"{path}: expected the attributes and labels of {paths[0]}, got others")
            for X, Y in read_blocks(file, header, nominal):
                Xs.append(X)
                Ys.append(Y)
    if not Xs:
        fail(header.path, header.n_lines, "expected rows after @data, got the end of the file")
    name = name or headers[0].relation.partition(":")[0].strip()
    return Dataset(stack_emptying(Xs), stack_emptying(Ys), *_names(header, nominal), name)


def read_label_parents(xml: Path) -> dict[str, str | None]:
    """The labels of a Mulan XML file in its order, each with the label that encloses it, None at the top."""
    parents: dict[str, str | None] = {}
    enclosing: list[str | None] = []  # the open elements; None is the root

    def refuse(message: str) -> NoReturn:
        fail(str(xml), parser.CurrentLineNumber, message)

    def start(tag: str, given: dict[str, str]) -> None:
        tag, label = tag.rpartition(" ")[2], given.get("name")  # the tag without its namespace
        if not enclosing and tag != "labels":
            refuse(f"expected <labels>, got <{tag}>")
        if enclosing and (tag != "label" or not label):
            refuse(f'expected <label name="...">, got <{tag}>{"" if label else " without a name"}')
        if label in parents:
            refuse(f"expected each label once, got {label!r} again")
        if enclosing and label:
            parents[label] = enclosing[-1]
        enclosing.append(label if enclosing else None)

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: enclosing.pop()
    try:
        parser.Parse(xml.read_bytes(), True)
    except (expat.ExpatError, LookupError) as error:  # LookupError: declares an encoding that nobody knows
        refuse(f"expected well-formed XML, got {error}")
    if not parents:
        refuse("expected one label or more, got none")
    return parents
