"""ARFF files: the header's attributes, and the rows as numbers.

A file is read in stretches of about a megabyte of text. Whole columns of a stretch (dense rows) or all its entries
(sparse rows) are converted at once; only where that fails are values looked at one by one, to find the line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, TextIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from csdpp._kernels import text as text_kernel
from csdpp.datasets._types import Attribute, Header, Nominal, fail, few, one_hot
from csdpp.datasets.blocks import stretches

# A quotation mark counts only where a value or name can begin: in don't it is a letter.
_QUOTED = re.compile(r"""(?<![^\s,{])(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")""")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_HIDDEN = re.compile("\0([0-9]+)\0")


def _hide(line: str, quoted: list[str]) -> str:
    """The line with a placeholder for each quoted text, so that no comma, blank, brace or % in it counts.

    Appends the texts to `quoted`, escapes resolved; the placeholder is their number between two NULs.
    """

    def hide(match: re.Match[str]) -> str:
        quoted.append(_ESCAPE.sub(resolve, match[match.lastindex or 0]))
        return f"\0{len(quoted) - 1}\0"

    def resolve(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else _ESCAPED.get(match[2], match[2])

    return _QUOTED.sub(hide, line.replace("\0", "\ufffd"))


def _show(text: str, quoted: list[str]) -> str:
    """A text with what its placeholders stand for; a placeholder alone becomes the plain value."""
    return _HIDDEN.sub(lambda match: quoted[int(match[1])], text) if quoted else text


def read_header(lines: Iterable[str], path: str) -> Header:
    """Read up to and including @data; the rows can then be read on from there. No labels are chosen yet."""
    relation, relation_line, number = "", 1, 1
    attributes: dict[str, Attribute] = {}
    for number, raw in enumerate(lines, 1):
        quoted: list[str] = []
        words = _hide(raw, quoted).partition("%")[0].split(None, 1)
        if not words:
            continue
        keyword, rest = words[0].lower(), "".join(words[1:]).strip()
        if keyword == "@relation":
            relation, relation_line = _show(rest, quoted), number
        elif keyword == "@attribute":
            attribute = _attribute(rest, quoted, path, number)
            if attribute.name in attributes:
                fail(path, number, f"expected each attribute once, got {attribute.name!r} again")
            attributes[attribute.name] = attribute
        elif keyword != "@data":
            got = few([_show(words[0], quoted)])
            fail(path, number, f"expected @relation, @attribute or @data, got {got}")
        elif rest or not attributes:
            fail(path, number, "expected @data alone in a line below the attributes, got it elsewhere")
        else:
            break
    else:
        fail(path, number, "expected @data, got the end of the file")
    return Header(path, relation, relation_line, number, tuple(attributes.values()), [])


_ATTRIBUTE = re.compile(r"(?P<name>[^\s{}]+)(?P<kind>\s*\{.*\}|\s[^{}]+)")


def _attribute(text: str, quoted: list[str], path: str, line: int) -> Attribute:
    """`name type` as an Attribute."""

    def refuse(wanted: str, got: str) -> NoReturn:
        fail(path, line, f"expected {wanted}, got {few([_show(got, quoted)])}")

    match = _ATTRIBUTE.fullmatch(text)
    if not match:
        refuse("@attribute, a name and a type", text)
    name, kind, values = match["name"], match["kind"].strip(), None
    if kind[:1] == "{":
        values = tuple(value.strip() for value in kind[1:-1].split(","))
    elif kind.lower() not in ("numeric", "real", "integer"):
        refuse("numeric, real, integer or {value, ...}", kind)
    for word in (name, *(values or ())):
        plain = word and word[0] not in "'\"" and "\0" not in word and len(word.split()) == 1
        if not plain and not _HIDDEN.fullmatch(word):
            refuse("names and values, quoted where they hold blanks", word)
    values = values and tuple(_show(value, quoted) for value in values)
    if values and len(set(values)) < len(values):
        refuse("each declared value once", kind)
    return Attribute(_show(name, quoted), values, line)


class _Block:
    """The rows in a stretch of lines: without comments, quoted texts hidden, the line of each row kept."""

    def __init__(self, lines: list[str], first: int, header: Header) -> None:
        text = "".join(lines)
        self.header = header
        self.quoted: list[str] = []
        if "'" in text or '"' in text:
            lines = [_hide(line, self.quoted) for line in lines]
        if "%" in text:
            lines = [line.partition("%")[0] for line in lines]
        lines = [line.strip() for line in lines]
        self.rows = [line for line in lines if line]
        self.numbers = [first + i for i, line in enumerate(lines) if line]
        number = _number if "_" in text else float
        self.convert = [number if a.values is None else a.codes.__getitem__ for a in header.attributes]

    def refuse(self, row: int, wanted: str, got: str | int) -> NoReturn:
        got = few([_show(got, self.quoted)]) if isinstance(got, str) else got
        fail(self.header.path, self.numbers[row], f"expected {wanted}, got {got}")

    def texts(self, fields: Iterable[str]) -> list[str]:
        """Fields as they are to be converted: without blanks around them, a quoted one as its text."""
        texts = list(map(str.strip, fields))
        if self.quoted:  # only a field that is one placeholder and nothing else: 'a'b is no value
            texts = [_show(text, self.quoted) if _HIDDEN.fullmatch(text) else text for text in texts]
        return texts

    def value(self, row: int, j: int, text: str) -> float:
        """One value the slow way, with an error that says where and what."""
        if text == "?":
            return np.nan
        try:
            return self.convert[j](text)
        except (KeyError, ValueError):
            attribute = self.header.attributes[j]
            wanted = "a number" if attribute.values is None else f"one of {few(attribute.values)}"
            self.refuse(row, f"{wanted} for attribute {attribute.name!r}", text)

    def entry(self, row: int, entry: list[str]) -> tuple[int, float]:
        """One `index value` the slow way."""
        if len(entry) != 2 or not entry[0].isdecimal():
            self.refuse(row, "'index value'", " ".join(entry))
        m = len(self.header.attributes)
        if len(entry[0]) > 9 or int(entry[0]) >= m:
            self.refuse(row, f"an attribute's index, 0 to {m - 1}", entry[0])
        return int(entry[0]), self.value(row, int(entry[0]), *self.texts(entry[1:]))

    def require(self, good: Callable[[Any], Any], matrix: Any, places: list[int], wanted: str) -> None:
        """Refuse the first stored entry for which `good` does not hold; `places` are the attributes'."""
        is_sparse = sparse.issparse(matrix)
        bad = np.flatnonzero(~good(matrix.data if is_sparse else matrix))
        if bad.size:
            entries = matrix.tocoo().coords if is_sparse else np.indices(matrix.shape).reshape(2, -1)
            row, k = (int(along[bad[0]]) for along in entries)
            value, name = matrix[row, k], self.header.attributes[places[k]].name
            self.refuse(row, f"{wanted} {name!r}", "?" if np.isnan(value) else f"{value:g}")


def _number(text: str) -> float:
    """float(), which reads 1_000 as a number where ARFF does not."""
    if "_" in text:
        raise ValueError(text)
    return float(text)


def read_blocks(lines: TextIO, header: Header, nominal: Nominal, rows: int = sys.maxsize) -> Iterator[tuple[Any, Any]]:
    """Features and labels of the rows that follow, in stretches of at most `rows` rows."""
    for attribute in (header.attributes[j] for j in header.labels):
        if attribute.values is not None and not attribute.is_flag:
            wanted = f"label {attribute.name!r} declared {{0,1}}"
            fail(header.path, attribute.line, f"expected {wanted}, got {few(attribute.values)}")
    if not header.features:
        fail(header.path, header.n_lines, "expected a feature besides the labels, got labels only")
    every, parse = list(range(len(header.attributes))), None
    plain = PlainRows(header.attributes, header.features, header.labels)
    widths = [len(header.attributes[j].columns(nominal)) for j in header.features]
    for first, stretch in stretches(lines, header.n_lines + 1, rows, _is_row):
        text = "".join(stretch)
        is_sparse = text.lstrip()[:1] == "{" if parse is None else parse is _sparse_rows
        if (fast := plain.read(text, is_sparse)) is not None:
            X, Y = fast
            if not X.shape[0]:
                continue
        else:
            block = _Block(stretch, first, header)
            if not block.rows:
                continue
            parse = parse or (_sparse_rows if block.rows[0][0] == "{" else _dense_rows)
            values: Any = parse(block)
            block.require(lambda x: ~np.isinf(x), values, every, "a finite number for attribute")
            X, Y = values[:, header.features], values[:, header.labels]
            block.require(lambda y: (y == 0) | (y == 1), Y, header.labels, "0 or 1, never missing, for label")
        parse = _sparse_rows if sparse.issparse(X) else _dense_rows
        if nominal == "onehot":
            X = one_hot(X, widths)
        if sparse.issparse(X):
            X.eliminate_zeros()
            Y.eliminate_zeros()
        yield X, Y.astype(np.uint8, copy=False)


class PlainRows:
    """The fast way for text without quotation marks, comments and tabs, of whole rows and plain values.

    `features` and `labels` are places among the attributes, in the order of the columns of X and Y.
    """

    def __init__(self, attributes: Sequence[Attribute], features: list[int], labels: list[int]) -> None:
        self.attributes, self.d, self.K = attributes, len(features), len(labels)
        self.places = np.empty(self.d + self.K, np.int64)
        self.places[features] = np.arange(self.d)
        self.places[labels] = -1 - np.arange(self.K)
        kinds = [
            text_kernel.NUMBER if a.values is None else text_kernel.FLAG if len(a.values) == 2 and a.is_flag
            else text_kernel.OTHER
            for a in self.attributes
        ]  # fmt: skip
        self.kinds = np.array(kinds, np.int8)
        # In sparse rows a declared {1,0} or {1} makes 1 what is omitted: not for the fast way.
        self.omits_zero = all(a.values is None or a.codes[a.values[0]] == 0 for a in self.attributes)

    def read(self, text: str, is_sparse: bool) -> tuple[Any, Any] | None:
        """Features and labels, or None where the text has to be read the slow way."""
        if any(mark in text for mark in "'\"%\t\r\0") or (is_sparse and not self.omits_zero):
            return None
        raw = text.encode()
        data = np.frombuffer(raw, np.uint8)
        commas, n = text.count(","), text.count("\n") + 1
        odd = np.empty((min(commas + n, data.size // 4 + 4), 4), np.int64)
        if is_sparse:
            xs = np.empty(commas + n, np.int64), np.empty(commas + n), np.zeros(n + 1, np.int64)
            ys = np.empty(commas + n, np.int64), np.zeros(n + 1, np.int64)
            n, found = text_kernel.sparse_rows(data, self.kinds, self.places, xs, ys, odd)
            values, x_end, y_end = xs[1], int(xs[2][n]), int(ys[1][n])
        else:
            X, Y = np.empty((n, self.d)), np.empty((n, self.K), np.uint8)
            n, found = text_kernel.dense_rows(data, self.kinds, self.places, X, Y, odd)
        if n < 0:
            return None
        for row, j, start, end in odd[:found].tolist():
            attribute, value = self.attributes[j], raw[start:end].decode()
            try:
                number = _number(value) if attribute.values is None else attribute.codes[value]
            except (KeyError, ValueError):
                return None
            if np.isinf(number):
                return None
            if is_sparse:
                values[row] = number
            elif self.places[j] >= 0:
                X[row, self.places[j]] = number
            elif number in (0.0, 1.0):
                Y[row, -1 - self.places[j]] = number
            else:
                return None
        if not is_sparse:
            return X[:n], Y[:n]
        ones = np.ones(y_end, np.uint8)
        return (
            sparse.csr_array((values[:x_end], xs[0][:x_end], xs[2][: n + 1]), (n, self.d)),
            sparse.csr_array((ones, ys[0][:y_end], ys[1][: n + 1]), (n, self.K)),
        )


def _is_row(line: str) -> bool:
    """Whether it is neither blank nor a comment alone."""
    return not line.isspace() and not line.lstrip().startswith("%")


def _dense_rows(block: _Block) -> NDArray[np.float64]:
    """Rows `value, value, ...` as numbers, column by column."""
    m = len(block.header.attributes)
    # A tab separates as a comma does.
    rows = [re.sub(r"\s*[,\t]\s*", ",", line) if "\t" in line else line for line in block.rows]
    for row, line in enumerate(rows):
        if line[0] == "{":
            block.refuse(row, "values without braces, as in the first row", "a sparse row")
        if line.count(",") != m - 1:
            block.refuse(row, f"{m} values, one for each attribute", line.count(",") + 1)
    texts = block.texts(",".join(rows).split(","))
    values = np.empty((len(rows), m))
    for j in range(m):
        try:
            values[:, j] = list(map(block.convert[j], texts[j::m]))
        except (KeyError, ValueError):
            values[:, j] = [block.value(row, j, text) for row, text in enumerate(texts[j::m])]
    return values


def _sparse_rows(block: _Block) -> sparse.csr_array:
    """Rows `{index value, index value, ...}` as numbers."""
    for row, line in enumerate(block.rows):
        if line[0] != "{" or line[-1] != "}":
            block.refuse(row, "a sparse row, {index value, ...}", line)
    bodies = [line[1:-1].strip() for line in block.rows]
    lengths = [body.count(",") + 1 if body else 0 for body in bodies]
    rows = np.repeat(np.arange(len(bodies)), lengths)
    # Flat: a small list for each entry would cost more, in garbage collection, than all the rest.
    tokens = ",".join(filter(None, bodies)).replace(",", " , ").split()
    keys, texts, commas = tokens[0::3], tokens[1::3], tokens[2::3]
    try:
        if len(keys) != len(rows) or len(texts) != len(rows) or set(commas) - {","}:
            raise ValueError
        if not all(map(str.isdecimal, keys)):  # int() would take -1 and 1_0
            raise ValueError
        columns = list(map(int, keys))
        values = [block.convert[j](text) for j, text in zip(columns, block.texts(texts), strict=True)]
    except (IndexError, KeyError, ValueError):
        entries = [entry.split(None, 1) for body in bodies if body for entry in body.split(",")]
        pairs = [block.entry(int(row), entry) for row, entry in zip(rows, entries, strict=True)]
        columns, values = [j for j, _ in pairs], [value for _, value in pairs]
    attributes = block.header.attributes
    # What an omitted entry stands for: 0, or the first declared value (not 0 for a flag declared {1,0}).
    # Stored is the difference, so that adding this row to all puts it where nothing is stored.
    omitted = np.array([a.codes[a.values[0]] if a.values else 0.0 for a in attributes])
    data = np.array(values, np.float64) - omitted[np.array(columns, np.intp)]
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    matrix = sparse.csr_array((data, columns, indptr), (len(bodies), len(attributes)))
    matrix.sort_indices()
    twice = np.flatnonzero((np.diff(rows) == 0) & (np.diff(matrix.indices) == 0))
    if twice.size:
        block.refuse(int(rows[twice[0]]), "each index once", f"{matrix.indices[twice[0]]} again")
    if omitted.any():
        matrix = matrix + sparse.csr_array(np.ones((len(bodies), 1))) @ sparse.csr_array(omitted[None])
    return matrix
