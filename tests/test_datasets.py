"""Readers of data sets: each rule of the formats, each way to break it, and the real sets' known statistics."""

import contextlib
import gzip
from importlib.machinery import ModuleSpec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from csdpp.datasets import blocks, load_meka, load_mulan, load_named, load_river_yeast
from csdpp.errors import DataFormatError, InvalidParameter, MissingData

HEADER = """\
@relation 'a toy'
@attribute x numeric
@attribute c {red,'dark green',blue}
@attribute a {0,1}
@attribute b {0,1}
@data
"""
XML = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="b"></label><label name="a"></label></labels>'
MEKA = "@relation 'toy: -C 1'\n@attribute a {0,1}\n@attribute x real\n@data\n"


def dense(A):
    return A.toarray() if sparse.issparse(A) else A


def malformed(message):
    """Expect the error of a file that breaks its format; braces in the message are braces."""
    return pytest.raises(DataFormatError, match=message.replace("{", r"\{"))


@pytest.fixture
def mulan(tmp_path):
    """Write an ARFF and its XML, and load them."""

    def load(text, xml=XML, **kwargs):
        file = tmp_path / "toy.arff"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        file.with_suffix(".xml").write_text(xml)
        return load_mulan(file, **kwargs)

    return load


@pytest.fixture
def meka(tmp_path):
    """Write an ARFF and load it as MEKA's."""

    def load(text, **kwargs):
        file = tmp_path / "toy.arff"
        file.write_text(text)
        return load_meka(file, **kwargs)

    return load


@pytest.mark.parametrize(
    ("rows", "X", "Y"),
    [
        ("1,red,0,1\n", [[1, 0]], [[0, 1]]),
        ("1.5e-3,blue,0,1\n-2,'dark green',1,1", [[0.0015, 2], [-2, 1]], [[0, 1], [1, 1]]),
        (" 1 , red , 0 , 1 \n", [[1, 0]], [[0, 1]]),
        ("1\tred\t0\t1\n2,\tblue,\t1,\t0\n", [[1, 0], [2, 2]], [[0, 1], [1, 0]]),
        ("'1',\"red\",'0',1\n", [[1, 0]], [[0, 1]]),
        ("?,?,0,1\n3, ? ,0,1\n", [[np.nan, np.nan], [3, np.nan]], [[0, 1], [0, 1]]),
        ("NaN,red,0,1\n", [[np.nan, 0]], [[0, 1]]),
        ("% one_1\n\n1,red,0,1 % two, 'three\n   \n% {4\n2,red,0,0\n", [[1, 0], [2, 0]], [[0, 1], [0, 0]]),
        ("{0 1,1 blue,3 1}\n{}\n{ 2 1 }\n", [[1, 2], [0, 0], [0, 0]], [[0, 1], [0, 0], [1, 0]]),
        ("{3 1, 0 2.5 ,1 'dark green'}\n", [[2.5, 1]], [[0, 1]]),
        ("{0 ?,1 ?,2\t1} % comment\n", [[np.nan, np.nan]], [[1, 0]]),
        ("{0 0,1 red,2 0}\n", [[0, 0]], [[0, 0]]),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "BOM"])
def test_rows(mulan, rows, X, Y, line_end, mark):
    ds = mulan(mark + (HEADER + rows).replace("\n", line_end))
    assert (ds.feature_names, ds.label_names, ds.name) == (("x", "c"), ("a", "b"), "toy")
    assert sparse.issparse(ds.X) == sparse.issparse(ds.Y) == rows.lstrip().startswith("{")
    np.testing.assert_array_equal(dense(ds.X), X)
    np.testing.assert_array_equal(dense(ds.Y), Y)
    if sparse.issparse(ds.X):
        assert not np.any(ds.X.data == 0)  # nothing stored that is 0
        assert np.all(ds.Y.data == 1)


def test_header_keywords_types_names_and_comments(meka):
    ds = meka(
        "% comment\n\n@RELATION 'it\\'s: -C -2'% after\n  @Attribute  'it\\'s, {odd}%'\tREAL\n"
        '@attribute "a \\"b\\"" Integer\n@ATTRIBUTE don\'t{x,\'y z\',"?"}\n@attribute \'\\u00e9\\t\\\\\' numeric\n'
        "@attribute l1 { 1 , 0 }\n@attribute l2 numeric\n@DATA % here\n1,2,x,3,0,1\n1,2,'?',3,0,1\n"
    )
    assert ds.feature_names == ("it's, {odd}%", 'a "b"', "don't", "é\t\\")
    assert ds.label_names == ("l1", "l2")
    np.testing.assert_array_equal(ds.X, [[1, 2, 0, 3], [1, 2, np.nan, 3]])  # ? is missing even where it is declared
    np.testing.assert_array_equal(ds.Y, [[0, 1], [0, 1]])


@pytest.mark.parametrize("rows", ["0,0,1,1\n1,1,0,0\n", "{0 0,2 1,3 1}\n{1 1,3 0}\n"], ids=["dense", "sparse"])
def test_a_flag_is_its_value_in_whatever_order_declared_and_omitted_it_is_the_first(meka, rows):
    declared = ("x {1,0}", "z {0,1}", "a {0,1}", "b {1,0}")
    ds = meka("@relation 'r: -C -2'\n" + "".join(f"@attribute {a}\n" for a in declared) + "@data\n" + rows)
    np.testing.assert_array_equal(dense(ds.X), [[0, 0], [1, 1]])
    np.testing.assert_array_equal(dense(ds.Y), [[1, 1], [0, 0]])


@pytest.mark.parametrize("rows", ["7,x2,1,0\n8,?,0,1\n9,x1,0,0\n", "{0 7,1 x2,2 1}\n{0 8,1 ?,3 1}\n{0 9}\n"])
def test_onehot_gives_a_feature_for_each_declared_value(meka, rows):
    declared = ("n real", "c {x1,x2,x3}", "f {0,1}", "a {0,1}")
    text = "@relation 'r: -C -1'\n" + "".join(f"@attribute {a}\n" for a in declared) + "@data\n" + rows
    ds = meka(text, nominal="onehot")
    assert ds.feature_names == ("n", "c=x1", "c=x2", "c=x3", "f")
    np.testing.assert_array_equal(dense(ds.X), [[7, 0, 1, 0, 1], [8, *[np.nan] * 3, 0], [9, 1, 0, 0, 0]])
    np.testing.assert_array_equal(dense(ds.Y), [[0], [1], [0]])


def test_other_encodings_are_read_when_named_and_located_when_not(mulan):
    text = HEADER.replace("blue", "gr\xfcn") + "3,gr\xfcn,1,1\n"
    for encoding in ("latin-1", "utf-16", "UTF8"):
        assert mulan(text.encode(encoding), encoding=encoding).X[0, 1] == 2
    with malformed("toy.arff, line 3: expected text in utf-8, got other bytes; pass encoding="):
        mulan(text.encode("latin-1"))


@pytest.mark.parametrize("block", [1, 10, 1 << 20])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_blocks_neither_change_the_result_nor_the_line_of_an_error(mulan, monkeypatch, block, is_sparse):
    monkeypatch.setattr(blocks, "CHARACTERS", block)
    rows = [f"{{0 {i},3 1}}" if is_sparse else f"{i},red,0,1" for i in range(1, 30)]
    rows.insert(5, "\n% comment\n")
    ds = mulan(HEADER + "\n".join(rows))
    np.testing.assert_array_equal(dense(ds.X), [[i, 0] for i in range(1, 30)])
    np.testing.assert_array_equal(dense(ds.Y), [[0, 1]] * 29)
    rows[20] = rows[20].replace(" 1}", " 2}").replace(",1", ",2")
    with malformed("toy.arff, line 29: expected one of '0', '1' for attribute 'b', got '2'"):
        mulan(HEADER + "\n".join(rows))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("1,red,0,1\n2,red,0\n", "line 8: expected 4 values, one for each attribute, got 3"),
        ("1,red,0,1,\n", "line 7: expected 4 values, one for each attribute, got 5"),
        ("\n% c\nred,red,0,1\n", "line 9: expected a number for attribute 'x', got 'red'"),
        ("\0000\0,'red',0,1\n", "line 7: expected a number for attribute 'x', got '\ufffd0\ufffd'"),
        ("1_000,red,0,1\n", "line 7: expected a number for attribute 'x', got '1_000'"),
        ("1e999,red,0,1\n", "line 7: expected a finite number for attribute 'x', got 'inf'"),
        ("1,Blue,0,1\n", "line 7: expected one of 'red', 'dark green', 'blue' for attribute 'c', got 'Blue'"),
        ("1,dark green,0,1\n'2'2,red,0,1\n", "line 8: expected a number for attribute 'x', got '22'"),
        ("1,'red,0,1\n", "line 7: expected one of .* for attribute 'c', got \"'red\""),
        ("1,red,0,2\n", "line 7: expected one of '0', '1' for attribute 'b', got '2'"),
        ("1,red,0,1\n1,red,0,?\n", "line 8: expected 0 or 1, never missing, for label 'b', got '\\?'"),
        ("1,red,0,1,{5}\n", "line 7: expected 4 values"),
        ("1,red,0,1\n{0 1}\n", "line 8: expected values without braces, as in the first row, got 'a sparse row'"),
        ("{0 1}\n1,red,0,1\n", "line 8: expected a sparse row, {index value, ...}, got '1,red,0,1'"),
        ("{0 1\n", "line 7: expected a sparse row, {index value, ...}, got '{0 1'"),
        ("{0 1},{5}\n", "line 7: expected a number for attribute 'x', got '1}'"),
        ("{0}\n", "line 7: expected 'index value', got '0'"),
        ("{0 1,}\n", "line 7: expected 'index value', got ''"),
        ("{}\n{0 1 2}\n", "line 8: expected a number for attribute 'x', got '1 2'"),
        ("{x 1}\n", "line 7: expected 'index value', got 'x 1'"),
        ("{-1 1}\n", "line 7: expected 'index value', got '-1 1'"),
        ("{0 1}\n{1 red,4 1}\n", "line 8: expected an attribute's index, 0 to 3, got '4'"),
        pytest.param("{" + 5000 * "9" + " 1}\n", "line 7: expected an attribute's index, 0 to 3, got '99", id="huge"),
        ("{0 1}\n{3 1,0 2,3 1}\n", "line 8: expected each index once, got '3 again'"),
        ("{0 inf}\n", "line 7: expected a finite number for attribute 'x', got 'inf'"),
        ("{0 1}\n{3 ?}\n", "line 8: expected 0 or 1, never missing, for label 'b', got '\\?'"),
        ("% only\n\n", "line 6: expected rows after @data, got the end of the file"),
    ],
)
def test_malformed_rows_are_located(mulan, rows, message):
    with malformed(message) as error:
        mulan(HEADER + rows)
    assert "toy.arff, line" in str(error.value)
    assert "\0" not in str(error.value)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("", "line 1: expected @data, got the end of the file"),
        ("@relation 'r: -C 1'\n@attribute a {0,1}\n", "line 2: expected @data, got the end of the file"),
        ("@relation 'r: -C 1'\n@data\n", "line 2: expected @data alone in a line below the attributes"),
        (MEKA.replace("@data", "@data 1,2"), "line 4: expected @data alone in a line below"),
        ("1,2\n", "line 1: expected @relation, @attribute or @data, got '1,2'"),
        (MEKA.replace("@attribute x", "@attribut x"), "line 3: expected @relation, .* got '@attribut'"),
        (MEKA.replace("x real", "'x y'"), "line 3: expected @attribute, a name and a type, got 'x y'"),
        (MEKA.replace("x real", ""), "line 3: expected @attribute, a name and a type, got ''"),
        (MEKA.replace("x real", "x {a,b"), "line 3: expected @attribute, a name and a type, got 'x {a,b'"),
        (MEKA.replace("x real", "x string"), "line 3: expected numeric, real, integer or {value, ...}, got 'string'"),
        (MEKA.replace("x real", "x date 'yy MM'"), "line 3: expected numeric, real, .* got 'date yy MM'"),
        (MEKA.replace("x real", "x {}"), "line 3: expected names and values, .* got ''"),
        (MEKA.replace("x real", "x {a,,b}"), "line 3: expected names and values, .* got ''"),
        (MEKA.replace("x real", "x {a b}"), "line 3: expected .* values, quoted where they hold blanks, got 'a b'"),
        (MEKA.replace("x real", "x {'a,b}"), 'line 3: expected names and values, .* got "\'a"'),
        (MEKA.replace("x real", "x {'a'b}"), "line 3: expected names and values, .* got 'ab'"),
        (MEKA.replace("x real", "'x y real"), "line 3: expected numeric, .* got 'y real'"),
        (MEKA.replace("x real", "x {a,b,'a'}"), "line 3: expected each declared value once, got '{a,b,a}'"),
        (MEKA.replace("x real", "a real"), "line 3: expected each attribute once, got 'a' again"),
        (MEKA.replace("{0,1}", "{no,yes}"), "line 2: expected label 'a' declared {0,1}, got 'no', 'yes'"),
        (MEKA.replace(": -C 1", ""), "line 1: expected @relation 'name: -C K', got 'toy'"),
        (MEKA.replace("-C 1", "-C one"), "line 1: expected @relation 'name: -C K', got 'toy: -C one'"),
        (MEKA.replace("-C 1", "-C 0"), "line 1: expected -C with 1 to 1 of the 2 attributes as labels, got 0"),
        (MEKA.replace("-C 1", "-C -3"), "line 1: expected -C with 1 to 1 of the 2 attributes as labels, got -3"),
        (MEKA.replace("{0,1}", "numeric") + "0,1\n0.5,1\n", "line 6: expected 0 or 1, .* for label 'a', got '0.5'"),
    ],
)
def test_malformed_headers_are_located(meka, header, message):
    with malformed("toy.arff, " + message):
        meka(header)


@given(st.text("{},'\"%?01. \n\t\\ax-\0_é", max_size=40), st.text("{},'\" %01ax\\", max_size=9))
def test_whatever_the_text_is_nothing_but_a_format_error_comes_out(tmp_path_factory, rows, attribute):
    file = tmp_path_factory.getbasetemp() / "fuzz.arff"
    for text in (HEADER + rows, MEKA + rows, MEKA.replace("x real", attribute) + rows, rows):
        file.write_text(text.replace("a toy", "r: -C -1"), encoding="utf-8")
        with contextlib.suppress(DataFormatError):
            assert load_meka(file).X.shape[0] > 0


def test_labels_are_matched_by_name_and_keep_the_order_of_the_arff(mulan):
    text = HEADER.replace("@attribute c", "@attribute z {0,1}\n@attribute c") + "1,1,red,0,1\n"
    ds = mulan(text, '<labels><label name="z"/><label name="b"/><label name="a"/></labels>')
    assert (ds.label_names, ds.feature_names) == (("z", "a", "b"), ("x", "c"))
    np.testing.assert_array_equal(ds.Y, [[1, 0, 1]])
    assert ds.label_parents is None


def test_nested_labels_are_a_hierarchy(mulan):
    xml = """<?xml version="1.0" encoding="utf-8"?>
        <labels xmlns="http://mulan.sourceforge.net/labels"> <!-- a tree -->
          <label name="b"><label name="a"></label></label>
        </labels>"""
    assert mulan(HEADER + "1,red,0,1\n", xml).label_parents == ("b", None)


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        ("", "toy.xml, line 1: expected well-formed XML, got no element found"),
        ('<labels>\n<label name="a">\n</labels>', "toy.xml, line 3: expected well-formed XML, got mismatched tag"),
        ('<?xml version="1.0" encoding="nobody-knows"?><labels/>', "toy.xml, line 1: expected well-formed XML"),
        ('<label name="a"/>', "toy.xml, line 1: expected <labels>, got <label>"),
        ('<labels>\n<tag name="a"/></labels>', 'toy.xml, line 2: expected <label name="...">, got <tag>'),
        ("<labels>\n\n<label/></labels>", 'toy.xml, line 3: expected <label name="...">, got <label> without a name'),
        (
            '<labels><label name="a"/>\n<label name="a"/></labels>',
            "toy.xml, line 2: expected each label once, got 'a' a",
        ),
        ("<labels></labels>", "toy.xml, line 1: expected one label or more, got none"),
        (XML.replace('"b"', '"A"'), "toy.arff: expected an attribute for each label .* got none for 'A'; check"),
        (
            XML.replace('"b"', '"c"'),
            "toy.arff, line 3: expected label 'c' declared {0,1}, got 'red', 'dark green', 'bl",
        ),
    ],
)
def test_malformed_label_files_are_located(mulan, xml, message):
    with malformed(message):
        mulan(HEADER + "1,red,0,1\n", xml)


def test_a_set_of_labels_only_is_refused(mulan):
    with malformed("line 3: expected a feature besides the labels, got labels only"):
        mulan("@attribute a {0,1}\n@attribute b {0,1}\n@data\n0,1\n")


@pytest.mark.parametrize(
    ("relation", "name", "labels"),
    [
        ("'toy: -C 2'", "toy", ("p", "q")),
        ("'toy: -C -2'", "toy", ("r", "s")),
        ("'toy set : -split-percentage 66 -C 1 -x'", "toy set", ("p",)),
        ("toy:  -C 3", "toy", ("p", "q", "r")),
    ],
)
def test_meka_counts_labels_from_either_end(meka, relation, name, labels):
    attributes = "".join(f"@attribute {a} {{0,1}}\n" for a in "pqrs")
    ds = meka(f"@relation {relation}\n{attributes}@data\n1,0,1,1\n")
    assert (ds.name, ds.label_names) == (name, labels)
    values = dict(zip(ds.feature_names + ds.label_names, [*ds.X[0], *ds.Y[0]], strict=True))
    assert values == {"p": 1, "q": 0, "r": 1, "s": 1}


def test_files_are_joined_in_the_order_given(tmp_path):
    for name, rows in ("one", "1,red,0,1\n"), ("two", "2,blue,1,0\n"), ("sparse", "{0 3,3 1}\n"):
        (tmp_path / f"{name}.arff").write_text(HEADER.replace("toy", name) + rows)
    xml = tmp_path / "labels.xml"
    xml.write_text(XML)
    paths = [str(tmp_path / "two.arff"), tmp_path / "one.arff"]
    ds = load_mulan(paths, xml)
    np.testing.assert_array_equal(ds.X, [[2, 2], [1, 0]])
    np.testing.assert_array_equal(ds.Y, [[1, 0], [0, 1]])
    assert ds.name == "two"
    mixed = load_mulan([*paths, tmp_path / "sparse.arff"], xml, name="mixed")
    np.testing.assert_array_equal(mixed.X.toarray(), [[2, 2], [1, 0], [3, 0]])
    np.testing.assert_array_equal(mixed.Y.toarray(), [[1, 0], [0, 1], [0, 1]])
    assert mixed.name == "mixed"
    (tmp_path / "other.arff").write_text(HEADER.replace("blue", "green") + "1,red,0,1\n")
    with malformed("other.arff: expected the attributes and labels of .*two.arff, got others"):
        load_mulan([*paths, tmp_path / "other.arff"], xml)


def test_what_the_loaders_need_is_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"load_mulan: expected the label names in .*toy.xml, got no such file"):
        load_mulan(tmp_path / "toy.arff")
    with pytest.raises(FileNotFoundError, match=r"toy.arff"):
        load_meka(tmp_path / "toy.arff")
    with pytest.raises(InvalidParameter, match="load_meka: nominal must be 'index' or 'onehot', got 'dummy'"):
        load_meka(tmp_path / "toy.arff", nominal="dummy")
    with pytest.raises(InvalidParameter, match="load_mulan: path must name one file or more, got an empty list"):
        load_mulan([])


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
ODD = st.sampled_from(["'", '"', "\\", "%", "{", "}", ",", " ", "a'b", "\\'", "\n", "\r", "\t", "0", "1", "é", ""])
NAMES = TEXT | ODD
NUMBERS = st.just(0.0) | st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def tables(draw):
    """Attributes (name, None or values) with columns of numbers, texts or None for missing; the first are labels."""
    n, n_labels = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    names = draw(st.lists(NAMES, min_size=n_labels + 1, max_size=n_labels + 3, unique=True))
    table = []
    for j, name in enumerate(names):
        values = draw(st.none() | st.lists(NAMES.filter(lambda v: v != "?"), min_size=1, max_size=3, unique=True))
        if j < n_labels:
            values = draw(st.permutations(["0", "1"]))
        cell = NUMBERS if values is None else st.sampled_from(values)
        table.append((name, values, draw(st.lists(cell if j < n_labels else cell | st.none(), min_size=n, max_size=n))))
    return table, n_labels


def quote(draw, text):
    """In quotes of either kind, or bare where ARFF allows that."""
    if text and text.isascii() and text.isalnum() and draw(st.booleans()):
        return text
    for plain, escaped in ("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("'", "\\'"), ('"', '\\"'):
        text = text.replace(plain, escaped)
    return draw(st.sampled_from(["'{}'", '"{}"'])).replace("{}", text)


def written(draw, table, n_labels, is_sparse):
    """The table as an ARFF file of MEKA's kind."""
    lines = [f"@relation 'r: -C {n_labels}'"]
    for name, values, _ in table:
        kind = "numeric" if values is None else "{" + ",".join(quote(draw, value) for value in values) + "}"
        lines.append(f"@attribute {quote(draw, name)} {kind}")
    lines.append("@data")
    for i in range(len(table[0][2])):
        cells = []
        for j, (_, values, column) in enumerate(table):
            value = column[i]
            text = "?" if value is None else repr(value) if values is None else quote(draw, value)
            omitted = value == (0.0 if values is None else values[0]) and draw(st.booleans())
            if not (is_sparse and omitted):
                cells.append(f"{j} {text}" if is_sparse else text)
        lines.append("{" + ", ".join(cells) + "}" if is_sparse else ",".join(cells))
    return "\n".join(lines) + "\n"


def code(values, value):
    if value is None or values is None:
        return np.nan if value is None else value
    return int(value) if set(values) <= {"0", "1"} else values.index(value)


@given(tables(), st.booleans(), st.data())
def test_what_is_written_is_read_back(tmp_path_factory, made, is_sparse, data):
    table, n_labels = made
    file = tmp_path_factory.getbasetemp() / "roundtrip.arff"
    file.write_text(written(data.draw, table, n_labels, is_sparse), encoding="utf-8", newline="")
    ds = load_meka(file)
    wanted = np.array([[code(values, value) for value in column] for _, values, column in table]).T
    assert ds.label_names + ds.feature_names == tuple(name for name, _, _ in table)
    np.testing.assert_array_equal(dense(ds.Y), wanted[:, :n_labels])
    np.testing.assert_array_equal(dense(ds.X), wanted[:, n_labels:])


KNOWN = {
    "cal500": (502, 68, 174, 26.044),
    "corel5k": (5000, 499, 374, 3.522),
    "emotions": (593, 72, 6, 1.869),
    "enron": (1702, 1001, 53, 3.378),
    "scene": (2407, 294, 6, 1.074),
    "yeast": (2417, 103, 14, 4.237),
}


@pytest.mark.parametrize("name", KNOWN)
def test_shared_sets_have_their_known_statistics(data_dir, name):
    ds = load_named(name, data_dir)
    assert ds.name == name
    assert ds.statistics()[:4] == pytest.approx(KNOWN[name], abs=1e-3)
    assert sparse.issparse(ds.X) == (name in ("corel5k", "enron"))
    scaled = ds.scaled().X
    assert (scaled.min(), scaled.max()) == (0, 1)


def test_yeast_is_the_one_of_river_and_scene_begins_with_the_training_file(data_dir, monkeypatch):
    monkeypatch.setenv("CSDPP_DATA", str(data_dir))
    a, b = load_river_yeast(), load_named("Yeast")
    assert (a.feature_names, a.label_names, a.name) == (b.feature_names, b.label_names, b.name)
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.Y, b.Y)
    train = load_mulan(data_dir / "scene" / "scene-train.arff", data_dir / "scene" / "scene.xml")
    np.testing.assert_array_equal(load_named("scene").X[:1211], train.X)


def test_yeast_of_river_is_what_river_gives():
    datasets = pytest.importorskip("river.datasets")
    ds = load_river_yeast()
    for i, (x, y) in zip(range(20), datasets.Yeast(), strict=False):
        assert dict(zip(ds.feature_names, ds.X[i], strict=True)) == x
        assert dict(zip(ds.label_names, ds.Y[i].astype(bool), strict=True)) == y


def test_without_river_or_with_another_file_the_error_says_what_to_do(tmp_path, monkeypatch):
    def river(spec):
        monkeypatch.setattr("csdpp.datasets.bundled.find_spec", lambda name: spec)

    river(None)
    with pytest.raises(ModuleNotFoundError, match=r"needs the package river, got none; pip install csdpp\[river\]"):
        load_river_yeast()
    river(ModuleSpec("river", None, origin=str(tmp_path / "__init__.py")))
    with pytest.raises(FileNotFoundError, match=r"yeast.csv.gz, got a river without it; pip install --upgrade"):
        load_river_yeast()
    (tmp_path / "datasets").mkdir()
    with gzip.open(tmp_path / "datasets" / "yeast.csv.gz", "wt") as file:
        file.write("Att1,Class1\n0.5,1\n")
    with malformed("yeast.csv.gz: expected 2417 rows of 103 features and 14 labels"):
        load_river_yeast()


def test_load_named_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.delenv("CSDPP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(InvalidParameter, match=r"load_named: name must be one of cal500, .*, got 'flowers'"):
        load_named("flowers")
    with pytest.raises(
        MissingData, match=r"load_named: expected 'scene' \(scene-train.arff, .*\) in .*cache.*scene, got"
    ):
        load_named("scene")
    with pytest.raises(MissingData, match=r"load_named: expected 'yeast' .* in .*yeast, got no such files; set CSDPP_"):
        load_named("yeast", tmp_path)


def test_yeast_comes_from_river_where_no_files_are_there_and_none_were_asked_for(tmp_path, monkeypatch):
    monkeypatch.delenv("CSDPP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert load_named("Yeast").X.shape == (2417, 103)
    monkeypatch.setattr("csdpp.datasets.bundled.find_spec", lambda name: None)
    with pytest.raises(MissingData, match="csdpp datasets fetch yeast"):
        load_named("yeast")
