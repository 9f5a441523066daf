"""Data sets in ARFF: Mulan's, whose labels an XML file names, and MEKA's, whose labels the relation's name counts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from csdpp.datasets._text import opened
from csdpp.datasets._types import Dataset, Header, Nominal, fail, few, stack_emptying
from csdpp.datasets.arff import read_blocks, read_header
from csdpp.errors import DataFormatError, InvalidParameter, MissingData

FilePath = str | os.PathLike[str]
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

    def labels_of(header: Header) -> list[int]:
        place = {attribute.name: j for j, attribute in enumerate(header.attributes)}
        if unknown := [label for label in parents if label not in place]:
            raise DataFormatError(
                f"{header.path}: expected an attribute for each label of {xml}, "
                f"got none for {few(unknown)}; check that the two files belong together"
            )
        return sorted(place[label] for label in parents)

    data = _load(paths, labels_of, nominal, name or paths[0].stem, encoding)
    if any(parents.values()):
        data = replace(data, label_parents=tuple(parents[label] for label in data.label_names))
    return data


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
    paths = [Path(arff)] if isinstance(arff, str | os.PathLike) else [Path(path) for path in arff]
    if not paths:
        raise InvalidParameter(f"{who}: arff must name one file or more, got an empty list; pass a path")
    return paths


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
    features = [column for j in header.features for column in header.attributes[j].columns(nominal)]
    labels = [header.attributes[j].name for j in header.labels]
    name = name or headers[0].relation.partition(":")[0].strip()
    return Dataset(stack_emptying(Xs), stack_emptying(Ys), tuple(features), tuple(labels), name)


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
