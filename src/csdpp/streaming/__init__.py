r"""Learning from files and pipes, and predicting in them: what `csdpp train`, `update` and `predict` call.

A stream is read in blocks and never held whole. The model is a file that is written whole every so many rows, with the
place in the stream beside it: a process that was stopped or killed goes on from there, and what it makes in the end is,
to the bit, what it would have made uninterrupted.

>>> import io, pathlib, tempfile
>>> from csdpp import streaming
>>> path = pathlib.Path(tempfile.mkdtemp()) / "tags.csdpp"
>>> lines = '{"x": {"a": 1}, "y": ["u"]}\n{"x": {"b": 2}, "y": ["v"]}\n' * 50
>>> streaming.train(io.StringIO(lines), path, format="jsonl", learner="OnlineBinaryRelevance").rows
100
>>> out = io.StringIO()
>>> streaming.predict(path, io.StringIO('{"id": 7, "x": {"b": 2}}'), out, format="jsonl")
1
>>> out.getvalue()
'{"id": "7", "labels": ["v"]}\n'
"""

from csdpp.streaming._learning import Report, train, update
from csdpp.streaming._predicting import predict
from csdpp.streaming._state import describe

__all__ = ["Report", "train", "update", "predict", "describe"]
