"""The formats of the extreme classification collections: whole and in blocks, and each way to break them."""

import io

import numpy as np
import pytest

from csdpp.datasets import blocks, load, load_xmc, stream
from csdpp.errors import DataFormatError, InvalidParameter

V1 = "4 5 3\n0,2 0:0.5 4:2\n 1:1.5\n\n1\t3:1e-3 0:0\n"
V2_X = "4 5\n0:0.5 4:2\n1:1.5\n\n3:1e-3 0:0\n"
V2_Y = "4 3\n0:1 2:1\n\n\n1:1.0\n"
X = [[0.5, 0, 0, 0, 2], [0, 1.5, 0, 0, 0], [0] * 5, [0, 0, 0, 0.001, 0]]
Y = [[1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 0]]


@pytest.fixture
def files(tmp_path):
    """Write texts as files; their paths."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.txt").write_text(text)
        return [tmp_path / f"{name}.txt" for name in texts]

    return write


def check(ds):
    np.testing.assert_array_equal(ds.X.toarray(), X)
    np.testing.assert_array_equal(ds.Y.toarray(), Y)
    assert ds.feature_names == ("x0", "x1", "x2", "x3", "x4")
    assert ds.label_names == ("y0", "y1", "y2")
    assert ds.X.nnz == 4  # a zero is not stored


@pytest.mark.parametrize("end", ["", "\n", "\n \n\n"])
@pytest.mark.parametrize("characters", [1, 1 << 20])
def test_both_versions_give_the_same(files, monkeypatch, end, characters):
    monkeypatch.setattr(blocks, "CHARACTERS", characters)
    one, x, y = files(one=V1 + end, x=V2_X + end, y=V2_Y + end)
    check(load_xmc(one))
    check(load_xmc(x, y))
    check(load(str(one), format="xmc"))
    check(load(x, format="xmc", label_path=y))
    assert load_xmc([one, one], name="twice").X.shape == (8, 5)
    assert load_xmc([x, x], [y, y]).Y.shape == (8, 3)


@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_in_blocks(files, rows):
    one, x, y = files(one=V1, x=V2_X, y=V2_Y)
    for source, options in ((one, {}), (io.StringIO(V1), {}), (x, {"label_path": y})):
        found = list(stream(source, format="xmc", block_rows=rows, **options))
        assert [block.first_row for block in found] == list(range(0, 4, rows))
        np.testing.assert_array_equal(np.vstack([block.X.toarray() for block in found]), X)
        np.testing.assert_array_equal(np.vstack([block.Y.toarray() for block in found]), Y)
        assert all(block.Y.dtype == np.uint8 for block in found)
    for source in (one, x):
        (block,) = stream(source, format="xmc", labelled=False)
        assert block.Y is None
        np.testing.assert_array_equal(block.X.toarray(), X)
    (block,) = stream(one, format="xmc", feature_names=["p", "q"], label_names=["a"])
    assert block.feature_names == ("p", "q", "x2", "x3", "x4")
    assert block.label_names == ("a", "y1", "y2")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected 'rows features labels' in whole numbers, got ''"),
        (
            "1 2\n0:1\n",
            "line 1: expected 'rows features labels' .*, got '1 2'; are labels in a file of their own\\? pass",
        ),
        ("1 2 x\n", "line 1: expected 'rows features labels' in whole numbers, got '1 2 x'"),
        ("0 2 3\n", "line 1: expected rows, and 1 to 16777216 columns, got '0 2 3'"),
        ("1 99999999 3\n", "line 1: expected rows, and 1 to 16777216 columns"),
        ("3 2 3\n0 1:1\n 0:1\n", "line 3: expected 3 rows, as the first line says, got 2"),
        ("1 2 3\n0 1:1\n\n 0:1\n", "line 4: expected 1 rows, as the first line says, got more"),
        ("2 2 3\n0 1:1\n0 2:1\n", "line 3: expected a feature from 0 to 1, got '2'"),
        ("2 2 3\n0 1:1\n3 1:1\n", "line 3: expected a label from 0 to 2, got '3'"),
        ("1 2 3\n0,0 1:1\n", "line 2: expected each label once in a row, got '0 again'"),
        ("1 2 3\n0 1:1 1:2\n", "line 2: expected each feature once in a row, got '1 again'"),
        ("1 2 3\n0 1:one\n", "line 2: expected a number for feature 1, got 'one'"),
        ("1 2 3\n0 1:inf\n", "line 2: expected a finite number for feature 1, got 'inf'"),
        ("1 2 3\n0 1\n", "line 2: expected index:value, got '1'"),
        ("1 2 3\na 1:1\n", "line 2: expected labels as whole numbers with commas between them, got 'a'"),
    ],
)
def test_malformed_lines_are_located(files, text, message):
    (one,) = files(one=text)
    with pytest.raises(DataFormatError, match="one.txt, " + message):
        load_xmc(one)


def test_two_files_must_fit_each_other(files):
    x, y, short, few, odd, far, v1 = files(
        x=V2_X, y=V2_Y, short="3 3\n\n\n\n", few="4 3\n\n\n", odd="4 3\n0:0.5\n\n\n\n", far="4 3\n\n5:1\n\n\n", v1=V1
    )
    for labels, message in (
        (short, r"short.txt, line 1: expected 4 rows, as in .*x.txt, got 3"),
        (few, r"few.txt, line 3: expected 4 rows, as the first line says, got fewer"),
        (odd, r"odd.txt, line 2: expected 1 for label 0, got '0.5'"),
        (far, r"far.txt, line 3: expected a label from 0 to 2, got '5'"),
        (v1, r"v1.txt, line 1: expected 'rows columns' in whole numbers, got '4 5 3'"),
    ):
        with pytest.raises(DataFormatError, match=message):
            load_xmc(x, labels)
    y.write_text(V2_Y + "0:1\n")
    with pytest.raises(DataFormatError, match=r"y.txt, line 6: expected 4 rows, as the first line says, got more"):
        load_xmc(x, y)
    with pytest.raises(DataFormatError, match=r"v1.txt, line 1: expected 'rows columns' in whole numbers"):
        load_xmc(v1, y)
    with pytest.raises(InvalidParameter, match="load_xmc: label_path must name a file for each of path, got 1 for 2"):
        load_xmc([x, x], y)
    other = x.with_name("other.txt")
    other.write_text("1 6 3\n\n")
    with pytest.raises(
        DataFormatError, match=r"other.txt, line 1: expected as many features and labels as in the first"
    ):
        load_xmc([v1, other])


def test_bytes_that_are_no_text_are_found_in_the_file_where_they_are(files):
    x, y = files(x=V2_X, y=V2_Y)
    x.write_bytes(b"4 5\n0:0.5\n\n\xff\n\n")
    with pytest.raises(DataFormatError, match=r"x.txt, line 4: expected text in utf-8"):
        load_xmc(x, y)


def test_the_labels_of_eurlex(data_dir, tmp_path):
    labels = data_dir / "eurlex_labels" / "tst_X_Y.txt"
    if not labels.exists():
        pytest.skip(f"needs {labels}")
    (tmp_path / "x.txt").write_text("3809 2\n" + "0:1\n" * 3809)
    ds = load_xmc(tmp_path / "x.txt", labels)
    assert ds.statistics()[:4] == pytest.approx((3809, 2, 3993, 5.3), abs=0.05)
