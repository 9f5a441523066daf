"""The compiled reader of ARFF rows: it reads what the plain one reads, and leaves to that one what it refuses."""

import io

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse

from csdpp._kernels import text as kernel
from csdpp.datasets import arff, stream, svmlight, xmc
from csdpp.errors import DataFormatError

HEADER = """\
@relation 'toy: -C {labels}'
@attribute a {{0,1}}
@attribute x numeric
@attribute c {{red,0,green}}
@attribute f {flag}
@attribute z real
@data
"""


def one_value(text, kind=kernel.NUMBER):
    """What `dense_rows` makes of a single value: a number, None where it is odd, an error where it is none."""
    data = np.frombuffer(text.encode(), np.uint8)
    X, odd = np.full((1, 1), -7.0), np.zeros((1, 4), np.int64)
    places = np.zeros(1, np.int64)
    n, found = kernel.dense_rows(data, np.array([kind], np.int8), places, X, np.zeros((1, 0), np.uint8), odd)
    if found:
        assert (odd[0] == (0, 0, 0, len(data))).all()
    return "refused" if n != 1 else None if found else X[0, 0]


DECIMAL = st.from_regex(r"[+-]?[0-9]{0,9}(\.[0-9]{0,9})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)


@given(DECIMAL | st.floats().map(repr) | st.text("0123456789.eE+-?_ni", min_size=1, max_size=8))
@example("9007199254740993")
@example("9007199254740992e22")
@example("0.1")
@example("-0")
@example("1e23")
@example("4.9e-324")
def test_a_number_is_read_exactly_or_left_to_float(text):
    value = one_value(text)
    if text == "?":
        assert np.isnan(value)
    elif value == "refused":
        assert text == ""
    elif value is not None:
        assert "_" not in text
        assert value.tobytes() == np.float64(text).tobytes()  # the sign of zero included


def test_everyday_numbers_are_not_left_to_float():
    for text in ("0", "1", "-1", "+3", "0.646467", "-12.5e-3", "1E+05", "123456789012345", ".5", "5.", "1e22"):
        assert one_value(text) is not None
    for text in ("0", "1"):
        assert one_value(text, kernel.FLAG) == float(text)
    assert one_value("2", kernel.FLAG) is None
    assert one_value("01", kernel.FLAG) is None
    assert one_value("0", kernel.OTHER) is None


VALUES = ["0", "1", "2", "?", "red", "green", "-1.5", "0.1234567890123456789", "1e400", "nan", "1_0", "", " 1 ", "é"]


@st.composite
def rows(draw):
    """Rows that mostly fit, of one kind or mixed."""
    fitting = [["0", "1"], ["0", "3.5", "?", "1e-5"], ["red", "0", "green"], ["0", "1"], ["0", "-0.5", "nan"]]
    is_sparse = draw(st.booleans())
    lines = []
    for _ in range(draw(st.integers(1, 5))):
        values = [draw(st.sampled_from(choice)) for choice in fitting]
        if draw(st.integers(0, 5)) == 0:
            values[draw(st.integers(0, 4))] = draw(st.sampled_from(VALUES))
        if draw(st.integers(0, 9)) == 0:
            values = values[:-1]
        comma = draw(st.sampled_from([",", ",", " , ", ",,", "\t"]))
        if is_sparse:
            chosen = [(j, value) for j, value in enumerate(values) if draw(st.booleans())]
            if draw(st.integers(0, 5)) == 0:
                chosen = [*chosen[::-1], (draw(st.integers(-1, 6)), "1")]
            line = "{" + comma.join(f"{j} {value}" for j, value in chosen) + "}"
        else:
            line = comma.join(values)
        lines.append(line + draw(st.sampled_from(["", "", " ", "\n", " x", "}"])))
    return "\n".join(lines) + draw(st.sampled_from(["\n", ""]))


def outcome(text):
    """What comes out, in a form that can be compared; NaN as a text."""
    try:
        found = list(stream(io.StringIO(text), format="meka", block_rows=3))
    except DataFormatError as error:
        return str(error)
    arrays = [[A.toarray() if sparse.issparse(A) else A for A in (block.X, block.Y)] for block in found]
    stored = [(block.X.nnz, block.Y.nnz) if sparse.issparse(block.X) else None for block in found]
    return [[str(A.tolist()) for A in pair] for pair in arrays], stored


@given(rows(), st.sampled_from(["1", "-1"]), st.sampled_from(["{0,1}", "{1,0}", "{0}"]))
def test_both_readers_agree_in_what_they_read_and_in_what_they_say(text, labels, flag):
    text = HEADER.format(labels=labels, flag=flag) + text
    fast = outcome(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arff.PlainRows, "read", lambda *_: None)
        slow = outcome(text)
    assert fast == slow


HEADS = st.sampled_from(
    ["0", "2", "0,2", "2,0", "1,1", "", " ", "3", "x", "0,", ",0", "-1", "0 ", "1_0", "99999999999"]
)
PAIRS = st.sampled_from(
    [
        "0:1",
        "1:0.5",
        "2:-1e-3",
        "3:0",
        "1:0.12345678901234567890",
        "2:nan",
        "3:1e999",
        "4:1",
        "1:",
        ":1",
        "1",
        "2:1_0",
        "é:1",
    ]
)


@given(
    st.lists(st.builds(lambda head, pairs, end: f"{head} {' '.join(pairs)}{end}", HEADS, st.lists(PAIRS, max_size=3),
                       st.sampled_from(["", "", " ", " # c", "\t", "\r"])), min_size=1, max_size=4),
    st.booleans(),
)  # fmt: skip
@example(["0:1 1:2", " 1:1", "0,2", "2 3:7"], True)
@example(["0", "1 "], False)
def test_both_readers_of_entries_agree(lines, zero_based):
    text = "\n".join(lines)

    def result(format, header=""):
        options = {"n_features": 4, "n_labels": 3, "zero_based": zero_based} if format == "svmlight" else {}
        try:
            found = list(stream(io.StringIO(header + text), format=format, block_rows=3, **options))
        except DataFormatError as error:
            return str(error)
        assert not any(np.any(block.X.data == 0) for block in found)
        return [(block.X.toarray().tolist(), block.Y.toarray().tolist()) for block in found]

    for format, header in (("svmlight", ""), ("xmc", f"{len(lines)} 4 3\n")):
        fast = result(format, header)
        with pytest.MonkeyPatch.context() as patch:
            for module in (svmlight, xmc):
                patch.setattr(module, "read_plain", lambda *_: None)
            slow = result(format, header)
        assert fast == slow


def test_plain_entries_take_the_fast_way(monkeypatch, tmp_path):
    for module in (svmlight, xmc):
        monkeypatch.setattr(module, "read_entries", None)
    text = "0,2 0:1 3:0.12345678901234567890\n 1:2\n\n2\n1:-1e3 2:5\n"
    (block,) = stream(io.StringIO("5 4 3\n" + text), format="xmc")
    np.testing.assert_array_equal(block.X.toarray()[0], [1, 0, 0, 0.12345678901234567890])
    np.testing.assert_array_equal(block.Y.toarray(), [[1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]])
    (block,) = stream(io.StringIO(text), format="svmlight", zero_based=True, n_features=4, n_labels=3)
    assert len(block) == 4  # an empty line is no row there
    (tmp_path / "x").write_text("2 4\n0:1\n\n")
    (tmp_path / "y").write_text("2 3\n0:1 2:1\n\n")
    (block,) = stream(tmp_path / "x", format="xmc", label_path=tmp_path / "y")
    assert block.Y.toarray().tolist() == [[1, 0, 1], [0, 0, 0]]


def test_plain_rows_take_the_fast_way(monkeypatch):
    monkeypatch.setattr(arff, "_Block", None)  # the slow way would fail
    for body in ("0,1.5,red,1,2\n1,?,green,0,0.12345678901234567890\n", "{}\n{0 1,1 2.5,2 green}\n \n{ 3 1 , 4 -1 }"):
        text = HEADER.format(labels=1, flag="{0,1}") + body
        (block,) = stream(io.StringIO(text), format="meka")
        assert block.X.shape[1] == 4
