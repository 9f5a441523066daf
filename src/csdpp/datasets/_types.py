"""What all readers share: the shape in which they hand over data, declared columns, errors with a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from csdpp.errors import DataFormatError, InvalidInput

Nominal = Literal["index", "onehot"]


class Statistics(NamedTuple):
    """Size of a data set: rows, features, labels; mean labels per row; that mean as a share of K."""

    N: int
    d: int
    K: int
    cardinality: float
    density: float


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Features, labels and their names.

    Parameters
    ----------
    X : float64 array or CSR array, shape (n, d)
        NaN where a feature is missing.
    Y : uint8 array or CSR array, shape (n, K)
        1 where a label is relevant, 0 elsewhere.
    feature_names, label_names : sequence of str, of length d and K
    name : str
    label_parents : sequence of (str or None), of length K, optional
        Where the labels form a hierarchy: the label above each, None at the top. None for a flat list.

    Examples
    --------
    >>> import numpy as np
    >>> ds = Dataset(
    ...     np.array([[1.0, 4], [2, 4], [3, 4]]),
    ...     np.array([[0, 1], [1, 1], [0, 0]]),
    ...     ("a", "b"),
    ...     ("u", "v"),
    ...     "toy",
    ... )
    >>> ds
    Dataset('toy', N=3, d=2, K=2, cardinality=1.000)
    >>> X, Y = ds.X, ds.Y
    >>> ds.scaled().X.tolist()
    [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0]]
    """

    X: NDArray[np.float64] | sparse.csr_array
    Y: NDArray[np.uint8] | sparse.csr_array
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    name: str
    label_parents: tuple[str | None, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse parts that do not fit each other; bring the others to the stated types."""
        stored: Any = self.Y.data if sparse.issparse(self.Y) else np.asarray(self.Y)
        if ((stored != 0) & (stored != 1)).any():
            raise InvalidInput("Dataset: Y must hold 0 and 1 only, got other values; put 1 for a relevant label")
        parents = self.label_names if self.label_parents is None else self.label_parents
        (n, d), (rows, K) = np.shape(self.X), np.shape(self.Y)
        if (rows, len(self.feature_names), len(self.label_names), len(parents)) != (n, d, K, K):
            raise InvalidInput(
                f"Dataset: X, Y and the names must fit each other, got X {(n, d)}, Y {(rows, K)}, "
                f"{len(self.feature_names)} feature names, {len(self.label_names)} label names and "
                f"{len(parents)} label parents; give each row of X a row of Y and each column a name"
            )
        for part, dtype in (("X", np.float64), ("Y", np.uint8)):
            value: Any = getattr(self, part)
            convert = sparse.csr_array if sparse.issparse(value) else np.asarray
            object.__setattr__(self, part, convert(value, dtype=dtype))
        for part in ("feature_names", "label_names", "label_parents"):
            if (names := getattr(self, part)) is not None:
                object.__setattr__(self, part, tuple(names))

    def __repr__(self) -> str:
        N, d, K, cardinality, _ = self.statistics()
        kind = ", sparse" if sparse.issparse(self.X) else ""
        return f"Dataset({self.name!r}, N={N}, d={d}, K={K}, cardinality={cardinality:.3f}{kind})"

    def statistics(self) -> Statistics:
        """N, d, K, mean labels per row (cardinality) and that as a share of K (density)."""
        (n, d), K = self.X.shape, self.Y.shape[1]
        # A sum of bytes over a long sparse column would wrap at 256, so the accumulator is named.
        cardinality = float(self.Y.sum(dtype=np.int64)) / n if n else 0.0
        return Statistics(n, d, K, cardinality, cardinality / K if K else 0.0)

    def scaled(self) -> Dataset:
        """The set with each feature scaled to [0, 1] over all rows, as the paper's figures want it.

        (x − min) / (max − min) for each column; a constant column becomes 0, a missing value stays missing.
        Uses every row, so it is for repeating experiments, not for a stream whose end is unknown. CSR stays
        CSR: omitted entries count as 0, and a column whose minimum is not 0 is stored in full, as its zeros
        move. O(nd), or O(non-zeros) for CSR.
        """
        scale = _scaled_sparse if sparse.issparse(self.X) else _scaled_dense
        return replace(self, X=scale(self.X))

    def permuted(self, seed: int | np.random.Generator | None) -> Dataset:
        """The set with its rows in a random order; the same seed gives the same order."""
        order = np.random.default_rng(seed).permutation(self.X.shape[0])
        return replace(self, X=self.X[order], Y=self.Y[order])


def _scaled_dense(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """(x − min) / (max − min) by column; fmin and fmax pass over NaN."""
    if not len(X):
        return X
    low = np.fmin.reduce(X, axis=0)
    span = np.fmax.reduce(X, axis=0) - low
    scaled: NDArray[np.float64] = (X - low) / np.where(span > 0, span, 1.0)
    return scaled


def _scaled_sparse(X: sparse.csr_array) -> sparse.csr_array:
    """The same for CSR, bit for bit; only columns with a minimum other than 0 lose their sparsity."""
    if not X.shape[0]:
        return X
    low, high = X.nanmin(axis=0).toarray().ravel(), X.nanmax(axis=0).toarray().ravel()
    span = np.where(high > low, high - low, 1.0)
    shifted = np.flatnonzero(low)  # columns where 0 does not stay 0
    scaled = X.copy()
    scaled.data /= span[X.indices]
    scaled.data[np.isin(X.indices, shifted)] = 0.0
    full = sparse.csr_array((X[:, shifted].toarray() - low[shifted]) / span[shifted])
    # One row of `place` for each full column: its place among the d.
    place = sparse.csr_array((np.ones(shifted.size), (np.arange(shifted.size), shifted)), (shifted.size, X.shape[1]))
    return scaled + full @ place  # a sum of CSR arrays stores no zeros


def stack_emptying(blocks: list[Any]) -> Any:
    """Blocks of rows as one matrix; empties the list.

    Dense blocks are freed one by one as they are copied, so that memory never holds everything twice.
    """
    if len(blocks) == 1:
        return blocks.pop()
    if any(map(sparse.issparse, blocks)):
        return sparse.vstack([sparse.csr_array(block) for block in blocks], format="csr")
    whole = np.empty((sum(map(len, blocks)), blocks[0].shape[1]), blocks[0].dtype)
    row = 0
    while blocks:
        block = blocks.pop(0)
        whole[row : row + len(block)] = block
        row += len(block)
    return whole


def one_hot(codes: Any, widths: list[int]) -> Any:
    """Columns of codes 0, 1, ... spread over as many 0/1 columns as `widths` says; 1 leaves one as it is.

    A missing code (NaN) is missing in all of its columns.
    """
    parts: list[Any] = []
    start = 0
    for j in [*np.flatnonzero(np.array(widths) > 1), len(widths)]:
        parts.append(codes[:, start:j])
        if j < len(widths):
            code = codes[:, [j]].toarray() if sparse.issparse(codes) else codes[:, [j]]
            parts.append(np.where(np.isnan(code), np.nan, code == np.arange(widths[j])))
        start = j + 1
    if sparse.issparse(codes):
        return sparse.hstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.hstack(parts)


@lru_cache(maxsize=64)
def _is_flag(values: tuple[str, ...]) -> bool:
    return set(values) <= {"0", "1"}


@lru_cache(maxsize=64)  # a thousand attributes are usually declared alike
def _codes(values: tuple[str, ...], is_flag: bool) -> Mapping[str, float]:
    return {value: float(value if is_flag else i) for i, value in enumerate(values)} | {"?": np.nan}


@dataclass(frozen=True)
class Attribute:
    """A declared column: a number (`values` is None), or a nominal with its declared values."""

    name: str
    values: tuple[str, ...] | None
    line: int = field(compare=False)

    @property
    def is_flag(self) -> bool:
        """Whether it is declared {0,1}, in any order, or as one of the two."""
        return self.values is not None and _is_flag(self.values)

    @cached_property
    def codes(self) -> Mapping[str, float]:
        """A number for each value of a nominal: a flag's own value, else the place; NaN for a missing one."""
        return _codes(self.values or (), self.is_flag)

    def columns(self, nominal: Nominal) -> list[str]:
        """Names of the features it becomes."""
        if self.values is None or self.is_flag or nominal == "index":
            return [self.name]
        return [f"{self.name}={value}" for value in self.values]


@dataclass(frozen=True)
class Header:
    """What stands above the rows, how many lines that takes, and which attributes are labels."""

    path: str = field(compare=False)
    relation: str = field(compare=False)
    relation_line: int = field(compare=False)
    n_lines: int = field(compare=False)
    attributes: tuple[Attribute, ...]
    labels: list[int]

    @cached_property
    def features(self) -> list[int]:
        """Positions of the attributes that are no labels."""
        return sorted(set(range(len(self.attributes))) - set(self.labels))


def few(texts: Iterable[str]) -> str:
    """The first of what may be many texts, each of which may be long."""
    shown = [repr(text if len(text) <= 40 else text[:40] + "…") for text in texts]
    return ", ".join(shown[:5]) + (f" and {len(shown) - 5} more" if len(shown) > 5 else "")


def fail(path: str, line: int, message: str) -> NoReturn:
    """Say what was expected and what came, and where."""
    raise DataFormatError(f"{path}, line {line}: {message}")
