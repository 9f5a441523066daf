"""Predictions for a stream, block by block, as text."""

from __future__ import annotations

import json
import os
import secrets
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from csdpp.datasets import Block, stream
from csdpp.errors import InvalidInput, InvalidParameter
from csdpp.progress import ProgressBar
from csdpp.streaming._learning import as_features
from csdpp.streaming._state import known_names, restore

FilePath = str | os.PathLike[str]
BLOCK_ROWS = 5000
OUTPUTS = ("jsonl", "csv", "svmlight")


def predict(
    path: FilePath,
    source: Any,
    output: Any = "-",
    *,
    output_format: str | None = None,
    scores: bool = False,
    top: int | None = None,
    block_rows: int = BLOCK_ROWS,
    fill: float | None = None,
    progress: bool | None = None,
    given: Mapping[str, Any] | None = None,
    **options: Any,
) -> int:
    """Predict a stream by the learner in a file; the number of rows.

    Parameters
    ----------
    path : path
        The model's file.
    source : as in `csdpp.datasets.stream`
        Labels in it are passed over; features that the learner does not know have no say.
    output : path, open text stream, or "-" for standard output
        A file is there when all is written, and not before.
    output_format : {"jsonl", "csv", "svmlight"}, default: by the ending of the output, else "jsonl"
        An object with "labels" (and "id" where rows have one) for each row; a column of 0 and 1 for each label; or the
        places of labels, `1,5`.
    scores : bool
        Also the score of each label (a label is predicted where its score is at least 0); instead of 0 and 1 in CSV.
    top : int, optional
        The so many labels of the highest scores, the highest first, instead of those that are predicted.
    block_rows : int
        Rows that are read and predicted at a time. With 1, each answer comes as soon as its row.
    fill, progress, given, options : as in `train`
    """
    state = restore(Path(path), dict(given or {}))
    if not state.model.__sklearn_is_fitted__():
        raise InvalidInput(f"predict: {path} must hold a model that has learned, got one that has not; train it first")
    d = int(state.model.n_features_in_)
    names = known_names(state, source, options)["feature_names"]
    write = _writer(_output_format(output, output_format), state.labels, scores, top)
    blocks = stream(source, block_rows=block_rows, labelled=False, feature_names=names, **options)
    rows = 0
    with _opened(output) as file, ProgressBar(None, progress) as bar:
        file.write(write.head())
        for block in blocks:
            if len(block.feature_names) < d or (not names and len(block.feature_names) != d):
                raise InvalidInput(
                    f"predict: rows must have the {d} features of the learner, got {len(block.feature_names)}; "
                    "give the same columns in the same order"
                )
            X = as_features(block.X[:, :d], fill)
            try:
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
                    file.write(write.block(state.model, X, block))
            except InvalidInput as error:
                last = block.first_row + len(block) - 1
                where = f"rows {block.first_row} to {last} (from 0)"
                raise InvalidInput(f"predict: {where} cannot be predicted: {error}") from None
            file.flush()
            rows += len(block)
            bar.update(rows, "", 0.0)
    return rows


def _output_format(output: Any, asked: str | None) -> str:
    if asked is not None and asked not in OUTPUTS:
        raise InvalidParameter(f"predict: output_format must be one of {', '.join(OUTPUTS)}, got {asked!r}; choose one")
    ending = Path(output).suffix.lower() if isinstance(output, str | os.PathLike) else ""
    return asked or {".csv": "csv", ".svm": "svmlight", ".svmlight": "svmlight"}.get(ending, "jsonl")


@contextmanager
def _opened(output: Any) -> Iterator[TextIO]:
    """Where the answers go. A file takes its name when it is complete."""
    if not isinstance(output, str | os.PathLike) or output == "-":
        yield sys.stdout if isinstance(output, str) else output
        return
    target = Path(output)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with beside.open("x", encoding="utf-8", newline="\n") as file:
            yield file
        os.replace(beside, target)
    except FileNotFoundError:
        raise InvalidInput(f"predict: the folder of {target} must be there, and is not; make it") from None
    finally:
        with suppress(OSError):
            beside.unlink(missing_ok=True)


# ---- writing


class _Writer:
    """Text of a head and of blocks."""

    def __init__(self, labels: Sequence[str], scores: bool, top: int | None) -> None:
        self.labels, self.scores, self.top = labels, scores, top
        self.quoted = [json.dumps(name, ensure_ascii=False) for name in labels]

    def head(self) -> str:
        return ""

    def chosen(self, model: Any, X: Any) -> tuple[list[list[int]], NDArray[Any] | None]:
        """The labels of each row, and the scores where they are wanted."""
        if self.top is not None:
            S = _scores(model, X)
            k = min(self.top, S.shape[1])
            best = np.argpartition(-S, k - 1, axis=1)[:, :k]
            order = np.argsort(-np.take_along_axis(S, best, axis=1), axis=1, kind="stable")
            return np.take_along_axis(best, order, axis=1).tolist(), S
        scores = _scores(model, X) if self.scores else None
        positive = _positive(model, X) if scores is None else scores >= 0
        rows, columns = np.nonzero(positive)
        ends = np.cumsum(np.bincount(rows, minlength=len(positive))).tolist()
        flat = columns.tolist()
        return [flat[start:end] for start, end in zip([0, *ends], ends, strict=False)], scores

    def block(self, model: Any, X: Any, block: Block) -> str:
        raise NotImplementedError


class _JsonLines(_Writer):
    def block(self, model: Any, X: Any, block: Block) -> str:
        chosen, S = self.chosen(model, X)
        ids = block.ids or (None,) * len(block)
        quoted, lines = self.quoted, []
        for i, (row, name) in enumerate(zip(chosen, ids, strict=True)):
            start = "{" if name is None else '{"id": ' + json.dumps(name, ensure_ascii=False) + ", "
            line = f'{start}"labels": [{", ".join([quoted[k] for k in row])}]'
            if S is not None:
                shown = row if self.top is not None else range(S.shape[1])
                line += ', "scores": {' + ", ".join(f"{quoted[k]}: {S[i, k]:.6g}" for k in shown) + "}"
            lines.append(line + "}\n")
        return "".join(lines)


class _Csv(_Writer):
    ids: bool | None = None

    def head(self) -> str:
        return ""  # it depends on the first block whether there are ids

    def block(self, model: Any, X: Any, block: Block) -> str:
        text = ""
        if self.ids is None:
            self.ids = block.ids is not None
            text = ",".join([*(["id"] if self.ids else []), *map(_csv_field, self.labels)]) + "\n"
        if self.scores:
            rows = [",".join(f"{score:.6g}" for score in row) + "\n" for row in _scores(model, X).tolist()]
        else:
            digits = np.full((len(block), 2 * len(self.labels)), ord(","), np.uint8)
            digits[:, ::2] = _positive(model, X) + np.uint8(ord("0"))
            digits[:, -1] = ord("\n")
            whole = digits.tobytes().decode("ascii")
            if not self.ids:
                return text + whole
            rows = whole.splitlines(keepends=True)
        if self.ids:
            ids = block.ids or ("",) * len(rows)
            rows = [f"{_csv_field(name or '')},{row}" for name, row in zip(ids, rows, strict=True)]
        return text + "".join(rows)


class _Svmlight(_Writer):
    def block(self, model: Any, X: Any, block: Block) -> str:
        chosen, S = self.chosen(model, X)
        if S is None or not self.scores:
            return "".join(",".join(map(str, row)) + "\n" for row in chosen)
        shown = chosen if self.top is not None else [range(S.shape[1])] * len(chosen)
        return "".join(
            ",".join(map(str, row)) + " " + " ".join(f"{k}:{S[i, k]:.6g}" for k in shown[i]) + "\n"
            for i, row in enumerate(chosen)
        )


def _writer(format: str, labels: Sequence[str], scores: bool, top: int | None) -> _Writer:
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise InvalidParameter(f"predict: top must be a whole number from 1, got {top!r}; say how many labels")
    if top is not None and format == "csv":
        raise InvalidParameter("predict: top needs an output of jsonl or svmlight, got csv; choose one of these")
    return {"jsonl": _JsonLines, "csv": _Csv, "svmlight": _Svmlight}[format](labels, scores, top)


def _csv_field(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\n\r') else text


def _scores(model: Any, X: Any) -> NDArray[Any]:
    S = np.asarray(model.decision_function(X))
    return S[:, None] if S.ndim == 1 else S


def _positive(model: Any, X: Any) -> NDArray[np.bool_]:
    Y = model.predict(X)
    Y = Y.toarray() if sparse.issparse(Y) else np.asarray(Y)
    return Y.astype(np.bool_)
