"""What a prequential run measured: figures, curves, a table, files."""

import csv
import io
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from csdpp.errors import InvalidInput, InvalidParameter

Array = NDArray[Any]
_KIND = "csdpp.PrequentialResult"


@dataclass(frozen=True, eq=False, repr=False)
class PrequentialResult:
    """What `prequential` measured. ``print(result)`` shows the figures as a table.

    Attributes
    ----------
    model : str
        The learner, as it prints itself.
    n_rows : int
        Rows predicted and learned.
    seconds : float
        Spent in the learner, predicting and learning.
    rows_per_second : float
        Without the first few rows, which may have had to wait for the compiler.
    averages : dict of name -> float
        The average of each cost over all rows, and of the terms of the bound; NaN if there was no row.
    checkpoints : array (c,)
        Numbers of rows t, rising.
    curves : dict of name -> array (c,)
        The averages over the first t rows.
    scores : dict of name -> float
        "precision", "recall" and "f1", each with "_samples", "_micro" and "_macro", and "subset_accuracy", in
        scikit-learn's sense with ``zero_division=0``. (The paper's micro- and macro-F1 are the reverse.)
    per_label : dict of name -> array (K,)
        "label", "support", "tp", "fp", "fn", "tn", "precision", "recall", "f1".
    losses : dict of name -> array (n_rows,)
        What `averages` averages, if it was asked for; else empty.
    """

    model: str
    n_rows: int
    seconds: float
    rows_per_second: float
    averages: dict[str, float]
    checkpoints: NDArray[np.int64]
    curves: dict[str, Array]
    scores: dict[str, float]
    per_label: dict[str, Array]
    losses: dict[str, Array] = field(default_factory=dict)

    def table(self) -> str:
        """Averages and scores in a few lines of text."""
        K = len(self.per_label["label"])
        width = max(len(name) for name in [*self.averages, "subset accuracy"])
        kinds = ("samples", "micro", "macro")
        lines = [
            f"{self.n_rows:,} rows, {K:,} labels, {self.seconds:.2f} s ({self.rows_per_second:,.0f} rows/s)",
            "",
            "average over rows",
            *(f"{name.replace('_', ' '):<{width}}  {value:7.4f}" for name, value in self.averages.items()),
            "",
            f"{'':<{width}}" + "".join(f"  {kind:>7}" for kind in kinds),
        ]
        for name in ("precision", "recall", "f1"):
            values = (self.scores[f"{name}_{kind}"] for kind in kinds)
            lines.append(f"{name:<{width}}" + "".join(f"  {value:7.4f}" for value in values))
        lines.append(f"{'subset accuracy':<{width}}  {self.scores['subset_accuracy']:7.4f}")
        return "\n".join(lines)

    __str__ = table

    def __repr__(self) -> str:
        figures = "".join(f", {name}={value:.4f}" for name, value in self.averages.items())
        return f"PrequentialResult({self.n_rows} rows{figures})"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings, lists and dicts, fit for JSON; NaN becomes None."""
        return {"kind": _KIND} | {name: _plain(value) for name, value in vars(self).items()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything as ``.json``, or the curves as ``.csv``; the file appears whole or not at all."""
        path = Path(path)
        if path.suffix == ".json":
            _write_atomically(path, json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False) + "\n")
        elif path.suffix == ".csv":
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(["t", *self.curves])
            columns = [self.checkpoints, *self.curves.values()]
            writer.writerows(zip(*(column.tolist() for column in columns), strict=True))
            _write_atomically(path, text.getvalue())
        else:
            raise InvalidParameter(
                f"PrequentialResult: path must end in .json (everything) or .csv (the curves), got {path.name!r}"
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote as ``.json``."""
        try:
            state = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError:
            state = None
        if not isinstance(state, dict) or state.pop("kind", None) != _KIND:
            raise InvalidInput(f"PrequentialResult: {path} must be a .json file written by save, and is not")
        for name in ("averages", "scores"):
            state[name] = {k: np.nan if value is None else value for k, value in state[name].items()}
        for name in ("curves", "losses"):
            state[name] = {k: np.array(values, np.float64) for k, values in state[name].items()}
        state["per_label"] = {k: np.array(values) for k, values in state["per_label"].items()}
        state["checkpoints"] = np.array(state["checkpoints"], np.int64)
        return cls(**state)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray):
        return [_plain(entry) for entry in value.tolist()]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, int | float) else str(value)


def _write_atomically(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        draft.write_text(text, encoding="utf-8", newline="")
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
