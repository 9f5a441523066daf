"""Damaged and random files of every format: a data set or a DataFormatError comes out, never another exception."""

import contextlib
import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from csdpp.datasets import load, stream
from csdpp.errors import DataFormatError, InvalidInput

ARFF = """@relation 'toy: -C -2'\n@attribute x numeric\n@attribute 'c d' {red,'dark green'}\n
@attribute a {0,1}\n@attribute b {1,0}\n@data\n%s"""
XML = '<?xml version="1.0"?>\n<labels xmlns="urn:l">\n<label name="a"><label name="b"></label></label></labels>\n'
TABLE = {"label_prefix": "is_"}
SVM = {"n_features": 4, "n_labels": 3}

#: Format, files (the first is the source, others are options), options.
SEEDS = {
    "meka, dense": ("meka", {"": ARFF % "1.5,red,0,1\n?,'dark green',1,1\n"}, {}),
    "meka, sparse": ("meka", {"": ARFF % "{0 1.5,3 0}\n{}\n{1 'dark green'}\n"}, {"nominal": "onehot"}),
    "mulan": ("mulan", {"": ARFF % "1.5,red,0,1\n", "xml": XML}, {}),
    "svmlight": ("svmlight", {"": "# c\n0,2 1:0.5 4:2\n 2:1.5\n\n1 3:1e-3\n"}, SVM),
    "xmc 1": ("xmc", {"": "3 4 3\n0,2 0:0.5 3:2\n 1:1.5\n\n"}, {}),
    "xmc 2": ("xmc", {"": "2 4\n0:0.5 3:2\n1:1\n", "label_path": "2 3\n0:1 2:1\n\n"}, {}),
    "jsonl": ("jsonl", {"": '{"x": {"p": 1, "q": null}, "y": ["a"]}\n{"id": 3, "x": {}, "y": {"a": false}}\n'}, {}),
    "csv": ("csv", {"": 'x,"z z",is_a,is_b\n1,2.5,0,1\n"3",,1,0\n'}, TABLE),
}
SNIPPETS = [
    b"",
    b"\0",
    b"\xff",
    b"\xc3",
    b"\r",
    b"\n",
    b",",
    b":",
    b" ",
    b"{",
    b"}",
    b"'",
    b'"',
    b"?",
    b"-1",
    b"1e999",
    b"nan",
]
MORE = [
    b"99999",
    b"0",
    b"@data",
    b"%",
    b"#",
    b"<label>",
    b"\xef\xbb\xbf",
    b"[",
    b"null",
    b"1_0",
    b"\\",
    b"\t",
    b"\x0b",
    b"\xe2\x80\xa8",
]


@st.composite
def damaged(draw, text):
    """The bytes with a few places cut out, doubled or replaced; or random bytes."""
    data = text.encode()
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=60))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.sampled_from([0, 1, 1, 2, 5, 20, 10_000])))
        middle = draw(st.sampled_from([*SNIPPETS, *MORE]) | st.just(data[start:end][::-1]))
        data = data[:start] + middle + data[end:]
    return data


@pytest.mark.parametrize("name", SEEDS)
@given(data=st.data())
@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
def test_damaged_text(tmp_path_factory, name, data):
    format, files, options = SEEDS[name]
    folder = tmp_path_factory.getbasetemp()
    paths = {part: folder / f"fuzz-{format}{part}" for part in files}
    for part, text in files.items():
        paths[part].write_bytes(data.draw(damaged(text)))
    options = options | {part: path for part, path in paths.items() if part}
    # Labels that are not known are no error of the format: only `load` has no place for them.
    expected = InvalidInput if format in ("jsonl", "csv") else DataFormatError
    with contextlib.suppress(expected):
        check(load(paths[""], format=format, **options))
    with contextlib.suppress(DataFormatError):
        for block in stream(paths[""], format=format, block_rows=2, **options):
            check(block)
    with contextlib.suppress(DataFormatError):
        text = paths[""].read_bytes().decode("utf-8", "replace")
        list(stream(io.StringIO(text), format=format, labelled=False, **options))


def check(found):
    """Whatever came out keeps the contract."""
    X, Y = (A.toarray() if sparse.issparse(A) else A for A in (found.X, found.Y))
    assert X.shape == (len(Y), len(found.feature_names))
    assert Y.shape == (len(X), len(found.label_names))
    assert len(X) > 0
    assert not np.isinf(X).any()
    assert np.isin(Y[~np.isnan(Y.astype(float))], (0, 1)).all()


@given(data=st.data())
@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_damaged_parquet(tmp_path_factory, data):
    pytest.importorskip("pyarrow")
    polars = pytest.importorskip("polars")
    buffer = io.BytesIO()
    polars.DataFrame({"x": [1.0, None, 3.0], "is_a": [True, False, True]}).write_parquet(buffer)
    original = buffer.getvalue()
    start = data.draw(st.integers(0, len(original)))
    end = min(len(original), start + data.draw(st.integers(0, 8)))
    file = tmp_path_factory.getbasetemp() / "fuzz.parquet"
    file.write_bytes(original[:start] + data.draw(st.binary(max_size=8)) + original[end:])
    with contextlib.suppress(InvalidInput):
        check(load(file, **TABLE))
    with contextlib.suppress(DataFormatError):
        list(stream(file, block_rows=2, **TABLE))
