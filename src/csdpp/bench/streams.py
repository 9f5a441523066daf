"""What the learners are measured on: four generated sizes, and the real sets that can be had."""

import os
from dataclasses import dataclass, replace

from csdpp.datasets import Dataset, load_named, load_river_yeast, make_stream
from csdpp.errors import InvalidParameter

REAL = ("yeast", "scene", "emotions", "cal500", "enron", "corel5k")


@dataclass(frozen=True)
class Size:
    """A generated stream: rows, features (without the constant one that learners add), labels, code size."""

    n: int
    d: int
    K: int
    M: int
    rank: int
    cardinality: float
    density: float = 1.0


#: The sizes of yeast, mediamill, delicious and EURLex-4K, with low-rank labels.
SIZES = {
    "S1": Size(20_000, 103, 14, 2, 5, 4.2),
    "S2": Size(20_000, 120, 101, 11, 10, 4.4),
    "S3": Size(5_000, 500, 983, 10, 10, 19.0),
    "S4": Size(4_000, 5_000, 3_993, 25, 25, 5.3, 0.05),
}
NAMES = (*SIZES, *REAL)


def load(name: str, data: str | os.PathLike[str] | None, seed: int, rows: int | None = None) -> Dataset:
    """A stream by its name: generated, or a real set with its features in [0, 1] and its rows in random order.

    Parameters
    ----------
    name : one of `NAMES`
    data : folder of the real sets; without it CSDPP_DATA, and yeast comes from river's wheel
    seed : of the generator, or of the order of the rows
    rows : only the first ones
    """
    if name not in NAMES:
        raise InvalidParameter(f"bench: sets must be among {', '.join(NAMES)}, got {name!r}; choose from these")
    if name in SIZES:
        size = SIZES[name]
        stream = make_stream(
            size.n if rows is None else min(rows, size.n),
            size.d,
            size.K,
            rank=size.rank,
            cardinality=size.cardinality,
            density=size.density,
            random_state=seed,
        )
        return replace(stream, name=name)
    root = data or os.environ.get("CSDPP_DATA")
    found = load_river_yeast() if name == "yeast" and not root else load_named(name, root)
    stream = found.scaled().permuted(seed)
    return replace(stream, X=stream.X[:rows], Y=stream.Y[:rows])


def code_size(name: str) -> int | None:
    """M of a generated stream; None for a real one, where the grid has shares."""
    return SIZES[name].M if name in SIZES else None
