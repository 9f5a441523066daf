"""Rows in blocks: the contract of csdpp.datasets.blocks, for every format, from files, open streams and pipes."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from csdpp.datasets import blocks, load, load_jsonl, make_stand_in, stream
from csdpp.errors import DataFormatError, InvalidInput, InvalidParameter, MissingData

SVM = "# two columns\n0,2 1:0.5 4:2 # c\n\n 2:1.5\n \n1\t3:1e-3\n2:7\n"
SVM_SIZES = {"n_features": 4, "n_labels": 3}
SVM_X = [[0.5, 0, 0, 2], [0, 1.5, 0, 0], [0, 0, 0, 0], [0, 0, 0.001, 0], [0, 7, 0, 0]]
SVM_Y = [[1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0]]
MEKA = "@relation 'toy: -C 1'\n@attribute a {0,1}\n@attribute x real\n@attribute z real\n@data\n"


def dense(A):
    return A.toarray() if sparse.issparse(A) else A


def jsonl(*rows):
    return io.StringIO("".join(json.dumps(row) + "\n" for row in rows))


def read(source, format="jsonl", **options):
    return list(stream(source, format=format, **options))


# ---- the contract


def example(format):
    """A text, its options, and its X and Y."""
    if format == "svmlight":
        return SVM, SVM_SIZES, SVM_X, SVM_Y
    X, Y = [[i, 0.5 * i] for i in range(7)], [[i % 2] for i in range(7)]
    if format == "meka":
        rows = [f"{y},{a},{b}\n" for (a, b), (y,) in zip(X, Y, strict=True)]
        return MEKA + "% no row\n" + "\n".join(rows), {}, X, Y
    rows = [{"x": {"x": a, "z": b}, "y": {"a": bool(y)}} for (a, b), (y,) in zip(X, Y, strict=True)]
    return "\n \n".join(map(json.dumps, rows)), {}, X, Y


@pytest.mark.parametrize("characters", [1, 30, 1 << 20])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize("format", ["svmlight", "meka", "jsonl"])
def test_blocks_have_the_rows_asked_for_in_order_whatever_is_parsed_at_once(monkeypatch, format, rows, characters):
    monkeypatch.setattr(blocks, "CHARACTERS", characters)
    text, options, X, Y = example(format)
    found = read(io.StringIO(text), format, block_rows=rows, **options)
    assert [len(block) for block in found[:-1]] == [rows] * (len(found) - 1)
    assert [block.first_row for block in found] == list(range(0, len(X), rows))
    np.testing.assert_array_equal(np.vstack([dense(block.X) for block in found]), X)
    np.testing.assert_array_equal(np.vstack([dense(block.Y) for block in found]), Y)
    for block in found:
        assert block.X.dtype == np.float64
        assert block.Y.dtype == np.uint8
        assert block.feature_names is found[0].feature_names
        assert block.label_names is found[0].label_names
        assert (len(block.feature_names), len(block.label_names)) == (block.X.shape[1], block.Y.shape[1])
        assert block.ids is None


@pytest.mark.parametrize("format", ["svmlight", "meka", "jsonl"])
def test_rows_can_be_skipped_and_labels_passed_over(format):
    text, options, X, Y = example(format)
    for skip in range(len(X) + 1):
        found = read(io.StringIO(text), format, block_rows=2, skip_rows=skip, **options)
        assert sum(map(len, found)) == len(X) - skip
        if found:
            assert found[0].first_row == skip
            np.testing.assert_array_equal(np.vstack([dense(block.X) for block in found]), X[skip:])
            np.testing.assert_array_equal(np.vstack([dense(block.Y) for block in found]), Y[skip:])
    options = {name: value for name, value in options.items() if name != "n_labels"}
    (block,) = read(io.StringIO(text), format, labelled=False, **options)
    assert block.Y is None
    assert block.label_names == ()
    np.testing.assert_array_equal(dense(block.X), X)


def test_known_names_come_first():
    (block,) = read(io.StringIO(MEKA + "1,2,3\n"), "meka", feature_names=["z"], label_names=("a",))
    assert (block.feature_names, block.X.tolist(), block.Y.tolist()) == (("z", "x"), [[3, 2]], [[1]])
    with pytest.raises(DataFormatError, match=r"expected each feature that is known .* got none named 'w'; check"):
        read(io.StringIO(MEKA + "1,2,3\n"), "meka", feature_names=["w", "z"])
    with pytest.raises(DataFormatError, match=r"expected each label that is known .* got none named 'w'; check"):
        read(io.StringIO(MEKA + "1,2,3\n"), "meka", label_names=["w"])
    (block,) = read(jsonl({"x": {"a": 1}, "y": ["u"]}), feature_names=["z", "a"], label_names=["v"])
    assert (block.feature_names, block.label_names) == (("z", "a"), ("v", "u"))
    np.testing.assert_array_equal(block.X.toarray(), [[0, 1]])
    np.testing.assert_array_equal(block.Y.toarray(), [[0, 1]])
    (block,) = read(io.StringIO("0 2:3\n"), "svmlight", feature_names=["p", "q"], label_names=["u", "v"])
    assert (block.feature_names, block.label_names, block.X.toarray().tolist()) == (("p", "q"), ("u", "v"), [[0, 3]])


def test_from_a_file_by_its_ending_and_several_in_turn(tmp_path):
    (tmp_path / "a.svm").write_text(SVM)
    (tmp_path / "b.jsonl").write_text('\ufeff{"x": [1, 2], "y": []}\n', encoding="utf-8")
    (tmp_path / "c.arff").write_text(MEKA + "1,2,3\n0,1,1\n")
    assert [len(block) for block in stream(tmp_path / "a.svm", **SVM_SIZES)] == [5]
    (block,) = stream(tmp_path / "b.jsonl")
    assert block.feature_names == ("x0", "x1")
    found = list(stream([tmp_path / "c.arff", str(tmp_path / "c.arff")], block_rows=3))
    assert [(block.first_row, len(block)) for block in found] == [(0, 2), (2, 2)]
    (tmp_path / "c.xml").write_text('<labels><label name="x"/></labels>')
    (tmp_path / "c.arff").write_text(MEKA.replace("x real", "x {0,1}") + "1,1,3\n")
    assert next(stream(tmp_path / "c.arff")).label_names == ("x",)
    (tmp_path / "toy.txt").write_text("")
    with pytest.raises(InvalidParameter, match=r"stream: format must be given .*, got 'toy.txt'; pass format="):
        stream(tmp_path / "toy.txt")
    with pytest.raises(MissingData, match=r"stream: expected a file, or one of .*, got '.*gone.svm'"):
        stream(tmp_path / "gone.svm")


def test_yeast_streams_from_rivers_wheel_where_no_files_are_there(monkeypatch, tmp_path):
    pytest.importorskip("river")
    monkeypatch.delenv("CSDPP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert sum(map(len, stream("yeast", skip_rows=417))) == 2000
    with pytest.raises(MissingData, match="csdpp datasets fetch scene"):
        stream("scene")


def test_what_a_reader_does_not_know_is_refused():
    message = "stream: jsonl has the options encoding, got 'labels'; leave it out"
    with pytest.raises(InvalidParameter, match=message):
        stream(io.StringIO(""), format="jsonl", labels=["a"])
    with pytest.raises(InvalidParameter, match=r"load: csv has the options delimiter, .*, got 'n_features'"):
        load(__file__, format="csv", n_features=3)


def test_sets_and_stand_ins_by_name(data_dir):
    found = list(stream("scene", root=data_dir, block_rows=1000))
    assert [(block.first_row, len(block)) for block in found] == [(0, 1000), (1000, 211), (1211, 1000), (2211, 196)]
    whole = load("scene", root=data_dir)
    np.testing.assert_array_equal(np.vstack([block.X for block in found]), whole.X)
    np.testing.assert_array_equal(np.vstack([block.Y for block in found]), whole.Y)
    stand_in = make_stand_in("mediamill-like", n=30)
    found = list(stream("Mediamill-like", n=30, block_rows=20))
    np.testing.assert_array_equal(np.vstack([block.X for block in found]), stand_in.X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block_rows": 0}, "stream: block_rows must be a whole number from 1, got 0"),
        ({"block_rows": True}, "stream: block_rows must be"),
        ({"skip_rows": -1}, "stream: skip_rows must be a whole number from 0, got -1"),
        ({"feature_names": ["a", "a"]}, "stream: feature_names must differ from each other, got one twice"),
        ({"format": "excel"}, "stream: format must be one of mulan, .*, got 'excel'"),
        ({"format": None}, "stream: format must be given where the ending does not tell, got '<stream>'"),
    ],
)
def test_parameters_that_cannot_be_used_are_refused_at_once(options, message):
    with pytest.raises(InvalidParameter, match=message):
        stream(io.StringIO(""), **{"format": "jsonl", **options})


def test_a_row_comes_out_of_a_pipe_as_soon_as_its_line_is_there():
    code = "from csdpp.datasets import stream\nfor b in stream('-', format='jsonl', block_rows=1): print(b, flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        for i in range(3):
            process.stdin.write(json.dumps({"x": {f"f{i}": 1}, "y": ["é"]}) + "\n")
            assert process.stdout.readline() == f"Block(rows {i} to {i}, d={i + 1}, K=1)\n"
        process.stdin.close()
        assert process.stdout.read() == ""
    assert process.returncode == 0


def test_other_bytes_on_standard_input_are_a_format_error():
    code = "from csdpp.datasets import stream\nlist(stream('-', format='jsonl'))"
    done = subprocess.run([sys.executable, "-c", code], input=b'{"x": \xff}', capture_output=True, check=False)
    assert b"DataFormatError: <stdin>, line 1: expected text in utf-8 from here on, got other bytes" in done.stderr


def test_blocks_before_a_malformed_line_are_given():
    found = stream(jsonl({"x": {}, "y": []}, {"x": {}, "y": []}, {"x": 3, "y": []}), format="jsonl", block_rows=2)
    assert len(next(found)) == 2
    with pytest.raises(DataFormatError, match="<stream>, line 3: expected an object or a list"):
        next(found)


# ---- JSON lines


def test_new_names_are_new_columns():
    rows = [
        {"x": {"a": 1}, "y": ["u"], "id": "first"},
        {"x": {"b": 2, "a": 0}, "y": []},
        {"id": 7, "x": {"c": None, "b": True}, "y": ["v", "u"]},
    ]
    one, two = read(jsonl(*rows), block_rows=2)
    assert (one.feature_names, one.label_names, one.ids) == (("a", "b"), ("u",), ("first", None))
    assert (two.feature_names, two.label_names, two.ids) == (("a", "b", "c"), ("u", "v"), ("7",))
    np.testing.assert_array_equal(one.X.toarray(), [[1, 0], [0, 2]])
    np.testing.assert_array_equal(one.Y.toarray(), [[1], [0]])
    np.testing.assert_array_equal(two.X.toarray(), [[0, 1, np.nan]])
    np.testing.assert_array_equal(two.Y.toarray(), [[1, 1]])
    assert not np.any(one.X.data == 0)


def test_labels_in_an_object_are_what_is_known_and_in_a_list_all_that_is_relevant():
    rows = [
        {"x": {}, "y": {"u": True, "v": None}},
        {"x": {}, "y": ["w"]},
        {"x": {}, "y": {"u": False, "v": True, "w": False}},
    ]
    (block,) = read(jsonl(*rows))
    np.testing.assert_array_equal(block.Y, [[1, np.nan, np.nan], [0, 0, 1], [0, 1, 0]])
    assert block.Y.dtype == np.float64
    *_, known = read(jsonl(*rows), block_rows=2)
    assert sparse.issparse(known.Y)
    assert known.Y.dtype == np.uint8


JSON_ERRORS = [
    ("{", 'expected a JSON object with "x" and "y", got'),
    ('{"x": {"a": NaN}, "y": []}', "expected a JSON object"),
    ("[" * 100_000, "expected a JSON object"),
    ("3", "expected a JSON object with \"x\", got '3'"),
    ('{"y": []}', 'expected a JSON object with "x"'),
    ('{"x": {}, "y": [], "w": 1}', 'expected "x", "y" and "id" only, got \'w\''),
    ('{"x": {}}', 'expected labels under "y"'),
    ('{"x": "a", "y": []}', 'expected an object or a list under "x"'),
    ('{"x": [1], "y": []}', 'expected an object under "x", as in the first row'),
    ('{"x": {"a": "red"}, "y": []}', "expected a finite number for feature 'a', got 'red'"),
    ('{"x": {"a": 1e999}, "y": []}', "expected a finite number for feature 'a'"),
    ('{"x": {"a": 1' + 400 * "0" + '}, "y": []}', "expected a finite number for feature 'a'"),
    ('{"x": {}, "y": "u"}', 'expected a list or an object under "y"'),
    ('{"x": {}, "y": [1, 0]}', r'expected names of labels \(texts\) under "y", got \'1\''),
    ('{"x": {}, "y": ["u", "u"]}', "expected each label once"),
    ('{"x": {}, "y": {"u": 1}}', "expected true, false or null for label 'u', got '1'"),
    ('{"x": {}, "y": [], "id": 1.5}', "expected an id that is a text or a whole number, got '1.5'"),
]


@pytest.mark.parametrize(("line", "message"), JSON_ERRORS, ids=range(len(JSON_ERRORS)))
def test_malformed_json_is_located(line, message):
    with pytest.raises(DataFormatError, match="<stream>, line 3: " + message):
        read(io.StringIO('{"x": {}, "y": []}\n\n' + line + "\n"))


def test_features_by_place():
    (block,) = read(jsonl({"x": [1, None], "y": []}, {"x": [True, 2.5], "y": []}))
    assert block.feature_names == ("x0", "x1")
    np.testing.assert_array_equal(block.X, [[1, np.nan], [1, 2.5]])
    (block,) = read(jsonl({"x": [1, 2]}), labelled=False, feature_names=["p", "q"])
    assert block.feature_names == ("p", "q")
    with pytest.raises(DataFormatError, match="line 2: expected 2 features, got 1"):
        read(jsonl({"x": [1, 2], "y": []}, {"x": [1], "y": []}))
    with pytest.raises(DataFormatError, match='line 2: expected a list under "x", as in the first row'):
        read(jsonl({"x": [1, 2], "y": []}, {"x": {}, "y": []}))


def test_a_file_of_json_lines_is_a_data_set_where_all_labels_are_known(tmp_path):
    file = tmp_path / "toy.jsonl"
    file.write_text('{"x": {"a": 1}, "y": ["u"]}\n{"x": {"b": 2}, "y": {"u": false}}\n')
    ds = load(file)
    assert (ds.name, ds.feature_names, ds.label_names) == ("toy", ("a", "b"), ("u",))
    np.testing.assert_array_equal(ds.X.toarray(), [[1, 0], [0, 2]])
    file.write_text('{"x": {"a": 1}, "y": ["u"]}\n{"x": {"b": 2}, "y": {}}\n')
    with pytest.raises(InvalidInput, match=r"load_jsonl: labels in .* must all be known, got unknown ones"):
        load(file)
    file.write_text("\n")
    with pytest.raises(DataFormatError, match=r"toy.jsonl, line 1: expected rows, got none"):
        load(file)
    with pytest.raises(InvalidParameter, match="load_jsonl: path must name one file, got 2"):
        load_jsonl([file, file])


NAMES = st.text(st.characters(codec="utf-8"), max_size=4)
VALUES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.fixed_dictionaries(
    {"x": st.dictionaries(NAMES, VALUES, max_size=4), "y": st.lists(NAMES, unique=True, max_size=3)},
    optional={"id": NAMES},
)


@given(st.lists(ROWS, min_size=1, max_size=8), st.integers(1, 9))
def test_json_that_is_written_is_read_back(rows, block_rows):
    i = 0
    for block in read(jsonl(*rows), block_rows=block_rows):
        X, Y = block.X.toarray(), block.Y.toarray()
        for j in range(len(block)):
            row = rows[i + j]
            x = {name: float("nan" if value is None else value) for name, value in row["x"].items()}
            wanted = [x.get(name, 0.0) for name in block.feature_names]
            np.testing.assert_array_equal(X[j], wanted)
            assert [name for name, y in zip(block.label_names, Y[j], strict=True) if y] == sorted(
                row["y"], key=block.label_names.index
            )
            assert (block.ids and block.ids[j]) == row.get("id")
        i += len(block)
    assert i == len(rows)
