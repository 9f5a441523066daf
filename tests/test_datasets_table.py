"""Tables: CSV and Parquet, whole and in blocks, frames; which columns are what; each way to break them."""

import io
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csdpp.datasets import blocks, csvfiles, from_frame, load, load_csv, load_parquet, stream
from csdpp.errors import DataFormatError, InvalidInput, InvalidParameter, MissingData

TOY = "x,is_a,z,is_b\n1,0,2.5,1\n-3,1,4e2,0\n"
X, Y = [[1, 2.5], [-3, 400]], [[0, 1], [1, 0]]


def read(text, **options):
    return list(stream(io.StringIO(text), format="csv", **options))


@pytest.fixture
def csv(tmp_path):
    """Write a text as a file and load it."""

    def load_text(text, ending="csv", **options):
        file = tmp_path / f"toy.{ending}"
        file.write_text(text)
        return load(file, **options)

    return load_text


@pytest.mark.parametrize(
    "text",
    [
        TOY,
        "\ufeff" + TOY,
        TOY.replace("\n", "\r\n").rstrip(),
        TOY.replace("\n", "\n\n"),
        TOY.replace("x,is_a", '"x", is_a').replace("1,0", '"1",false').replace("-3,1", "-3, True"),
        TOY.replace("-3,1", "-3.0,1.0"),
    ],
)
def test_rows(csv, text):
    ds = csv(text, label_prefix="is_")
    np.testing.assert_array_equal(ds.X, X)
    np.testing.assert_array_equal(ds.Y, Y)
    assert (ds.feature_names, ds.label_names, ds.name) == (("x", "z"), ("is_a", "is_b"), "toy")


def test_columns_by_name_by_prefix_and_of_no_use(csv):
    ds = csv(TOY, labels=["is_b", "is_a"])
    assert ds.label_names == ("is_b", "is_a")
    np.testing.assert_array_equal(ds.Y, np.array(Y)[:, ::-1])
    ds = csv(TOY, labels=["is_b"], label_prefix="is_a", features=["z"])
    assert (ds.feature_names, ds.label_names) == (("z",), ("is_b", "is_a"))
    np.testing.assert_array_equal(ds.X, [[2.5], [400]])
    ds = csv(TOY.replace("-3", "red"), label_prefix="is_", features=["z"])
    np.testing.assert_array_equal(ds.X, [[2.5], [400]])
    ds = csv(TOY, labels=["is_b"], id_column="is_a")
    assert ds.feature_names == ("x", "z")
    (block,) = read(TOY.replace("1,0,2", "1,a7,2"), labels=["is_b"], id_column="is_a")
    assert block.ids == ("a7", "1")


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ":"])
def test_other_delimiters(csv, delimiter):
    text = TOY.replace(",", delimiter)
    np.testing.assert_array_equal(csv(text, label_prefix="is_", delimiter=delimiter).X, X)
    if delimiter == "\t":
        np.testing.assert_array_equal(csv(text, "tsv", label_prefix="is_").X, X)
    with pytest.raises(InvalidParameter, match="csv: delimiter must be one character, got"):
        csv(text, label_prefix="is_", delimiter=delimiter + " ")


def test_what_is_missing_is_nan():
    text = "x,is_a\n,1\n ? ,0\nNA,0\nnan,\n2,NA\n"
    (block,) = read(text, labels=["is_a"])
    np.testing.assert_array_equal(block.X, [[np.nan]] * 4 + [[2]])
    np.testing.assert_array_equal(block.Y, [[1], [0], [0], [np.nan], [np.nan]])
    known, unknown = read(text, labels=["is_a"], block_rows=3)
    assert (known.Y.dtype, unknown.Y.dtype) == (np.uint8, np.float64)


@pytest.mark.parametrize("characters", [1, 20, 1 << 20])
@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_blocks(monkeypatch, rows, characters):
    monkeypatch.setattr(blocks, "CHARACTERS", characters)
    lines = [f"{i},{i % 2},{i / 4},1" for i in range(7)]
    lines[4] = '"4",0,"1.0",1'
    found = read("x,is_a,z,is_b\n" + "\n".join(lines), label_prefix="is_", block_rows=rows)
    assert [block.first_row for block in found] == list(range(0, 7, rows))
    np.testing.assert_array_equal(np.vstack([block.X for block in found]), [[i, i / 4] for i in range(7)])
    np.testing.assert_array_equal(np.vstack([block.Y for block in found]), [[i % 2, 1] for i in range(7)])
    assert all(block.feature_names is found[0].feature_names for block in found)


def test_names_that_are_known_say_what_is_what():
    (block,) = read(TOY, label_names=["is_a", "is_b"], feature_names=["z", "x"])
    assert (block.feature_names, block.label_names) == (("z", "x"), ("is_a", "is_b"))
    np.testing.assert_array_equal(block.X, np.array(X)[:, ::-1])
    (block,) = read(TOY, labelled=False, feature_names=["z", "x"])
    assert block.Y is None
    np.testing.assert_array_equal(block.X, np.array(X)[:, ::-1])
    (block,) = read(TOY, labelled=False, label_prefix="is_")
    assert block.feature_names == ("x", "z")
    with pytest.raises(DataFormatError, match=r"<stream>, line 1: expected columns 'w', got 'x', 'is_a', 'z', 'is_b'"):
        read(TOY, labelled=False, feature_names=["w"])
    with pytest.raises(DataFormatError, match="expected each feature that is known beforehand, got none named 'w'"):
        read(TOY, label_prefix="is_", feature_names=["w"])


def test_a_quoted_value_may_span_lines_and_the_lines_are_counted():
    text = 'x,is_a,"a\nnote"\n1,0,"one\ntwo"\n2,1,three\nred,1,four\n'
    with pytest.raises(DataFormatError, match="<stream>, line 6: expected a finite number for column 'x', got 'red'"):
        read(text, labels=["is_a"], features=["x"])
    (block,) = read(text.replace("red", "3"), labels=["is_a"], features=["x"], id_column="a\nnote")
    assert block.ids == ("one\ntwo", "three", "four")


CSV_ERRORS = [
    ("", "line 1: expected a line with the names of the columns, got none"),
    ("x,is_a\n", "line 2: expected rows, got none"),
    ("x,x,is_a\n", "line 1: expected each column once, got 'x' twice"),
    ("is_a,is_b\n", "line 1: expected a column besides labels, got 'is_a', 'is_b'"),
    ("x,y\n1,2\n", "line 1: expected columns of labels that begin with 'is_', got 'x', 'y'"),
    ("x,is_a\n1,0\n1,0,1\n", "line 3: expected 2 values, one for each column, got 3"),
    ("x,is_a\n1\n", "line 2: expected 2 values, one for each column, got 1"),
    ("x,is_a\nred,0\n", "line 2: expected a finite number for column 'x', got 'red'"),
    ("x,is_a\n1,0\n\n1e999,0\n", "line 4: expected a finite number for column 'x', got '1e999'"),
    ("x,is_a\n1_0,0\n", "line 2: expected a finite number for column 'x', got '1_0'"),
    ("x,is_a\n1,2\n", "line 2: expected 0 or 1 for column 'is_a', got '2'"),
    ("x,is_a\n1,yes\n", "line 2: expected 0 or 1 for column 'is_a', got 'yes'"),
    ('x,is_a\n1,"0\n', "line 2: expected fields with ',' between them, got "),
    ('x,is_a\n"1"2,0\n', "line 2: expected fields with ',' between them, got "),
]


@pytest.mark.parametrize(("text", "message"), CSV_ERRORS, ids=range(len(CSV_ERRORS)))
def test_malformed_csv_is_located(csv, text, message):
    with pytest.raises(DataFormatError, match="toy.csv, " + message):
        csv(text, label_prefix="is_")


def test_an_open_quotation_mark_does_not_swallow_the_file(monkeypatch):
    monkeypatch.setattr(blocks, "CHARACTERS", 50)
    with pytest.raises(DataFormatError, match="line 2: expected fields"):
        read('x,is_a\n1,"0\n' + "1,0\n" * 100, labels=["is_a"])


def test_what_cannot_be_meant_is_refused(csv, tmp_path):
    for options, message in (
        ({}, "load_csv: the columns of labels must be named, got neither; pass labels="),
        ({"labels": "is_a"}, "load_csv: labels must be a list of columns, got 'is_a'"),
        ({"labels": ["is_a"], "features": "x"}, "load_csv: features must be a list of columns"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            csv(TOY, **options)
    with pytest.raises(
        DataFormatError, match="line 1: expected each column as one thing, feature, label or id, got 'x'"
    ):
        csv(TOY, labels=["is_a"], features=["x"], id_column="x")
    with pytest.raises(InvalidInput, match=r"load_csv: labels in .*toy.csv must all be known, got missing ones"):
        csv(TOY.replace("-3,1", "-3,"), label_prefix="is_")
    (tmp_path / "other.csv").write_text("w,is_a\n1,0\n")
    (tmp_path / "toy.csv").write_text("x,is_a\n1,0\n")
    with pytest.raises(DataFormatError, match=r"other.csv: expected the columns of .*toy.csv, got others"):
        load_csv([tmp_path / "toy.csv", tmp_path / "other.csv"], labels=["is_a"])
    with pytest.raises(MissingData, match=r"gone.csv: expected a file"):
        load_csv(tmp_path / "gone.csv", labels=["is_a"])


def test_plain_rows_take_the_fast_way(csv, monkeypatch):
    monkeypatch.setattr(csvfiles._Csv, "_numbers", None)
    np.testing.assert_array_equal(csv(TOY, label_prefix="is_").X, X)
    np.testing.assert_array_equal(csv(TOY.replace(",", ";"), label_prefix="is_", delimiter=";").X, X)
    (block,) = read(TOY, labelled=False, features=["z"])
    np.testing.assert_array_equal(block.X, [[2.5], [400]])


CELLS = st.sampled_from(
    ["0", "1", "1.0", "2.5", "-1e-3", "", "?", "nan", "1e400", "red", '"1"', "0,1", "{1", " 1", "é", "1_0"]
)
LINES = st.lists(CELLS, min_size=1, max_size=4).map(",".join)


def outcome(text):
    try:
        return [
            (str(block.X.tolist()), str(block.Y.tolist())) for block in read(text, label_prefix="is_", block_rows=2)
        ]
    except DataFormatError as error:
        return str(error)


@given(st.lists(LINES | st.just("1,0,2,1"), min_size=1, max_size=6).map("\n".join))
def test_both_readers_agree_in_what_they_read_and_in_what_they_say(rows):
    text = "x,is_a,z,is_b\n" + rows
    fast = outcome(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csvfiles.PlainRows, "read", lambda *_: None)
        slow = outcome(text)
    assert fast == slow


# ---- Parquet and frames


@pytest.fixture
def parquet(tmp_path):
    """Write columns as a Parquet file."""
    polars = pytest.importorskip("polars")

    def write(**columns):
        polars.DataFrame(columns).write_parquet(tmp_path / "toy.parquet", row_group_size=3)
        return tmp_path / "toy.parquet"

    return write


def test_parquet_whole_and_in_blocks(parquet):
    pytest.importorskip("pyarrow")
    n = 10
    file = parquet(
        key=[f"k{i}" for i in range(n)],
        x=list(range(n)),
        z=[None if i == 3 else i / 4 for i in range(n)],
        is_a=[i % 2 == 0 for i in range(n)],
        is_b=[i % 3 == 0 for i in range(n)],
    )
    ds = load(file, label_prefix="is_", features=["x", "z"])
    np.testing.assert_array_equal(ds.X[:, 0], range(n))
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(ds.X[:, 1])), [3])
    np.testing.assert_array_equal(ds.Y[:, 0], [1, 0] * 5)
    for rows in (1, 4, 100):
        found = list(stream(file, label_prefix="is_", id_column="key", block_rows=rows))
        assert [len(block) for block in found] == [min(rows, n - i) for i in range(0, n, rows)]
        np.testing.assert_array_equal(np.vstack([block.X for block in found]), ds.X)
        np.testing.assert_array_equal(np.vstack([block.Y for block in found]), ds.Y)
        assert sum((block.ids for block in found), ()) == tuple(f"k{i}" for i in range(n))
    (block,) = stream(file, labelled=False, feature_names=["z", "x"])
    np.testing.assert_array_equal(block.X, ds.X[:, ::-1])


def test_malformed_parquet_is_located(parquet):
    pytest.importorskip("pyarrow")
    file = parquet(x=[1.0, float("inf")], is_a=[0, 1])
    with pytest.raises(DataFormatError, match=r"toy.parquet, row 1: expected a finite number for column 'x', got inf"):
        load_parquet(file, labels=["is_a"])
    file = parquet(x=[1.0] * 5, is_a=[0, 1, 0, 1, 2])
    with pytest.raises(DataFormatError, match=r"toy.parquet, row 4: expected 0 or 1 for column 'is_a', got 2"):
        list(stream(file, labels=["is_a"], block_rows=2))
    file = parquet(x=["red"], is_a=[0])
    with pytest.raises(DataFormatError, match=r"toy.parquet: expected numbers in column 'x', got .*string"):
        load_parquet(file, labels=["is_a"])
    with pytest.raises(DataFormatError, match=r"toy.parquet: expected columns 'w', got 'x', 'is_a'"):
        load_parquet(file, labels=["w"])
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(DataFormatError, match=r"toy.parquet: expected a Parquet file, got"):
        load_parquet(file, labels=["is_a"])
    with pytest.raises(MissingData, match=r"gone.parquet: expected a file"):
        load_parquet(file.with_name("gone.parquet"), labels=["is_a"])
    with pytest.raises(InvalidParameter, match="stream: Parquet must come from a file, got '<stream>'"):
        next(stream(io.StringIO(), format="parquet", labels=["is_a"]))


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"parquet: needs pyarrow, not installed here; pip install 'csdpp\[frames\]'"):
        load_parquet(tmp_path / "toy.parquet", labels=["a"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    columns = {"x": [1, None, 3], "flag": [True, False, None], "is_a": [1, 0, 1], "is_b": [True, False, True]}
    ds = from_frame(frames.DataFrame(columns), label_prefix="is_")
    np.testing.assert_array_equal(ds.X, [[1, 1], [np.nan, 0], [3, np.nan]])
    np.testing.assert_array_equal(ds.Y, [[1, 1], [0, 0], [1, 1]])
    for wrong, message in (
        ({"x": ["red"], "is_a": [1]}, "from_frame: expected numbers in column 'x', got 'red'"),
        ({"x": [1], "is_a": [2]}, "from_frame: expected 0 or 1 for column 'is_a' in row 0, got 2"),
        ({"x": [1.0], "is_a": [None]}, "from_frame: expected labels that are all known, got missing ones"),
        ({"x": [1.0]}, "from_frame: expected columns of labels that begin with 'is_', got 'x'"),
    ):
        with pytest.raises(InvalidInput, match=message):
            from_frame(frames.DataFrame(wrong), label_prefix="is_")
    with pytest.raises(InvalidInput, match="from_frame: expected a frame of pandas or polars, got list"):
        from_frame([[1]], labels=["a"])
