"""Shards: blocks of Dask collections, or files; each becomes sums on a worker, and the sums meet in a fixed tree."""

import glob
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from csdpp.blas import one_blas_thread
from csdpp.calibration import Calibration
from csdpp.datasets import Block, stream
from csdpp.distributed._sums import STRIP, Pass, Sums, collect, total
from csdpp.errors import CsdppError, DataFormatError, InvalidInput, MissingData
from csdpp.targets import Targets

Array = NDArray[Any]
#: Sums that meet in one node of the tree.
FAN_IN = 8
#: Rows of a file that are in memory at a time.
FILE_ROWS = 8192


@dataclass(frozen=True)
class Shard:
    """A part of the rows: Delayed features and labels, or a file and the options of its reader."""

    name: str
    X: Any = None
    Y: Any = None
    path: str | None = None
    options: Any = None


@dataclass(frozen=True)
class Columns:
    """What all shards have in common: empty features and labels as the learner sees them."""

    X: Any  # (0, d)
    Y: Any  # (0, K)
    names: dict[str, tuple[str, ...]] | None = None  # of the columns of files


@dataclass(frozen=True)
class Reader:
    """Turns what a shard holds into features and boolean labels."""

    who: str
    d: int
    targets: Targets
    names: dict[str, tuple[str, ...]] | None = None

    def read(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """One block of rows."""
        if len(getattr(Y, "shape", ())) == 2 and Y.shape[1] != self.targets.K:
            raise InvalidInput(f"Y must have {self.targets.K} labels, as in the first shard, got {Y.shape[1]}")
        rows = self.targets.rows(Y)
        X = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=0, input_name="X")
        if X.shape[1] != self.d or X.shape[0] != rows.shape[0]:
            raise InvalidInput(f"X must be {(rows.shape[0], self.d)} beside Y {rows.shape}, got {X.shape}")
        return X, rows

    def read_file(self, shard: Shard) -> Iterator[tuple[Any, Any]]:
        """A file, some rows at a time."""
        for block in stream(shard.path, **shard.options, **(self.names or {})):  # type: ignore[arg-type]
            yield self.read(block.X, block.Y)


# ------------------------------------------------------------------------------------------------- finding


def find_shards(who: str, X: Any, Y: Any, options: dict[str, Any]) -> tuple[list[Shard], Columns]:
    """The shards of collections or files, in their order."""
    if isinstance(X, str | os.PathLike) or (isinstance(X, list | tuple) and X):
        return _files(who, X, Y, options)
    if options:
        raise InvalidInput(f"{who}: {next(iter(options))} is an option of files, got collections; leave it out")
    for name, collection in (("X", X), ("Y", Y)):
        if not hasattr(collection, "__dask_graph__") or not hasattr(collection, "to_delayed"):
            raise InvalidInput(
                f"{who}: {name} must be a Dask array or DataFrame, or paths of files, got {type(collection).__name__}; "
                "use dask.array.from_array"
            )
        if len(getattr(collection, "shape", (0, 0))) != 2:
            raise InvalidInput(f"{who}: {name} must have rows and columns, got {name} with {collection.ndim} dimension")
    X, Y = _in_line(who, X, Y)
    parts = list(zip(_blocks(X), _blocks(Y), strict=True))
    columns = Columns(_empty(X), _empty(Y))
    return [Shard(f"block {i} of {len(parts)}", x, y) for i, (x, y) in enumerate(parts)], columns


def _in_line(who: str, X: Any, Y: Any) -> tuple[Any, Any]:
    """Arrays cut alike, each block with all columns."""
    X, Y = (A.rechunk({1: -1}) if hasattr(A, "rechunk") and A.numblocks[1] > 1 else A for A in (X, Y))
    known = [A.chunks[0] for A in (X, Y) if hasattr(A, "chunks") and not np.isnan(A.chunks[0]).any()]
    if len(known) == 2 and known[0] != known[1]:
        if sum(known[0]) != sum(known[1]):
            raise InvalidInput(f"{who}: X and Y must have as many rows, got {sum(known[0])} and {sum(known[1])}")
        Y = Y.rechunk({0: known[0]})
    if len({A.npartitions for A in (X, Y)}) > 1:
        raise InvalidInput(
            f"{who}: X and Y must be cut into the same blocks, got {X.npartitions} and {Y.npartitions}; "
            "call compute_chunk_sizes() on arrays of unknown length, or repartition"
        )
    return X, Y


def _blocks(A: Any) -> list[Any]:
    """Delayed blocks. Of arrays not optimised one by one: what X and Y share is then made once."""
    if hasattr(A, "chunks"):
        return list(A.to_delayed(optimize_graph=False).ravel())
    return list(A.to_delayed())


def _empty(A: Any) -> Any:
    """No rows, and the columns and type of A."""
    if hasattr(A, "columns"):
        return A._meta
    meta, dtype = getattr(A, "_meta", None), A.dtype if A.dtype is not None else np.float64
    if sparse.issparse(meta):
        return sparse.csr_matrix((0, A.shape[1]), dtype=dtype)
    return np.empty((0, A.shape[1]), dtype)


def list_files(who: str, source: Any) -> list[str]:
    """Files of a folder, of a pattern or of a list, sorted within a folder or pattern; never none."""
    found: list[str] = []
    for one in [source] if isinstance(source, str | os.PathLike) else source:
        path = Path(one)
        if path.is_dir():
            names = sorted(path.iterdir())
            found += [str(name) for name in names if name.is_file() and name.name[0] not in "._"]
        elif path.exists():
            found.append(str(path))
        else:
            matches = sorted(glob.glob(str(path), recursive=True))
            if not matches:
                raise MissingData(f"{who}: expected files, got {str(path)!r}, which matches none; check the path")
            found += matches
    if not found:
        raise MissingData(f"{who}: expected files, got {str(source)!r}, which holds none; check the path")
    return found


def _files(who: str, X: Any, Y: Any, options: dict[str, Any]) -> tuple[list[Shard], Columns]:
    """A shard a file; Y, if any, are the files of labels (XMC of two files)."""
    paths = list_files(who, X)
    labels = [None] * len(paths) if Y is None else list_files(who, Y)
    if len(labels) != len(paths):
        raise InvalidInput(f"{who}: X and Y must be as many files, got {len(paths)} and {len(labels)}")
    options = {"block_rows": FILE_ROWS, **options}
    given = [options if one is None else {**options, "label_path": one} for one in labels]
    first = next(filter(None, (_first_row(who, path, one) for path, one in zip(paths, given, strict=True))), None)
    if first is None or first.Y is None:
        raise InvalidInput(f"{who}: expected rows with labels in {paths[0]}, got none")
    names = {"feature_names": first.feature_names, "label_names": first.label_names}
    shards = [Shard(path, path=path, options=one) for path, one in zip(paths, given, strict=True)]
    empty = sparse.csr_matrix if sparse.issparse(first.Y) else np.asarray
    return shards, Columns(first.X[:0], empty(first.Y[:0]), names)


def _first_row(who: str, path: str, options: dict[str, Any]) -> Block | None:
    """The first row of a file, which tells what columns there are."""
    try:
        return next(iter(stream(path, **{**options, "block_rows": 1})), None)
    except DataFormatError as error:
        raise InvalidInput(f"{who}: shard {path} cannot be used: {error}") from None


# ------------------------------------------------------------------------------------------------- summing


def _collect(job: Pass, reader: Reader, shard: Shard, X: Any = None, Y: Any = None) -> Sums:
    """The sums of a shard; what is wrong with it, in one sentence that names it. Runs on a worker."""
    try:
        blocks = iter([reader.read(X, Y)]) if shard.path is None else reader.read_file(shard)
        with one_blas_thread():
            return collect(job, blocks, reader.d, reader.targets.K)
    except (CsdppError, OSError, ValueError) as error:
        said = " ".join(str(error).split())
        raise InvalidInput(f"{reader.who}: shard {shard.name} cannot be used: {said:.1000}") from None


def sum_shards(job: Pass, reader: Reader, shards: list[Shard]) -> Any:
    """A Delayed `Sums` over all shards: leaves in the order of the shards, `FAN_IN` of them a node."""
    from dask import delayed

    shared = delayed((job, reader), traverse=False)
    nodes = [
        delayed(_leaf)(shared, Shard(shard.name, path=shard.path, options=shard.options), shard.X, shard.Y)
        for shard in shards
    ]
    while len(nodes) > 1:
        nodes = [delayed(total)(nodes[i : i + FAN_IN]) for i in range(0, len(nodes), FAN_IN)]
    return nodes[0]


def _leaf(shared: tuple[Pass, Reader], shard: Shard, X: Any, Y: Any) -> Sums:
    return _collect(*shared, shard, X, Y)


def tally(engine: Any, reader: Reader, shards: list[Shard]) -> Any:
    """A Delayed `Calibration` of the engine by the rows of the last shard, in their order."""
    from dask import delayed

    last = shards[-1]
    plain = Shard(last.name, path=last.path, options=last.options)
    return delayed(_tally)(delayed((engine, reader), traverse=False), plain, last.X, last.Y)


def _tally(shared: tuple[Any, Reader], shard: Shard, X: Any, Y: Any) -> Any:
    engine, reader = shared
    calibration = Calibration(engine.K)
    for features, labels in iter([reader.read(X, Y)]) if shard.path is None else reader.read_file(shard):
        size = max(64, STRIP // max(engine.K, features.shape[1]))
        for start in range(0, features.shape[0], size):
            X_strip, truth = features[start : start + size], labels[start : start + size]
            truth = truth.toarray() if sparse.issparse(truth) else truth
            calibration.add(engine.scores(X_strip.astype(engine.dtype)), truth, 1.0)
    return calibration


def nodes_of_tree(leaves: int) -> int:
    """How many sums are moved in a pass over so many shards, the last one to the client."""
    nodes = leaves
    while leaves > 1:
        leaves = -(-leaves // FAN_IN)
        nodes += leaves
    return nodes


def compute(what: Any, client: Any) -> Any:
    """The value of a Delayed, on the client's cluster, or by Dask's own choice where there is none."""
    import dask

    # A model in a pass goes to the scheduler once, with the graph: it can be had again whichever worker is lost.
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
        if client is not None:
            future = client.compute(what)
            try:
                return future.result()
            finally:
                future.release()  # or what has failed would stay so when it is asked for again
        with one_blas_thread():  # once, around all tasks of this process
            return dask.compute(what)[0]


def blame(who: str, shards: list[Shard], run: Callable[[Shard], Any], client: Any, error: Exception) -> Exception:
    """An error that none of our tasks saw, with the name of the first shard that gives one alone."""
    from distributed import CancelledError, KilledWorker

    if isinstance(error, CancelledError) or getattr(client, "status", "running") != "running":
        return error
    lost = isinstance(error, KilledWorker)
    # Dask suspects all tasks that were due on a worker that died, so the one it names need not be the one.
    for shard in shards if not lost or _come_back(client) else ():
        try:
            run(shard)
        except KilledWorker as found:
            return InvalidInput(
                f"{who}: shard {shard.name} cannot be used: the worker died in each of {found.allowed_failures + 1} "
                "tries; see the workers' logs, and if they ran out of memory cut smaller shards"
            )
        except CsdppError as found:
            return found
        except Exception as found:
            said = " ".join(str(found).split())
            return InvalidInput(f"{who}: shard {shard.name} cannot be made: {type(found).__name__}: {said:.1000}")
    if lost:
        return InvalidInput(
            f"{who}: workers died in each of {error.allowed_failures + 1} tries, of which shard is not known; see "  # type: ignore[attr-defined]
            "their logs, and if they ran out of memory cut smaller shards or give each fewer threads"
        )
    return error


def _come_back(client: Any) -> bool:
    """Whether workers that die are started again, so that shards may be tried one by one."""
    from distributed import default_client

    workers = (client or default_client()).scheduler_info()["workers"]
    return all(worker.get("nanny") for worker in workers.values())
