"""Predictions for Dask collections: a lazy collection out, a block at a time, whatever their length."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from csdpp.datasets import stream
from csdpp.distributed._shards import FILE_ROWS, list_files
from csdpp.errors import InvalidInput


def predict(model: Any, X: Any, **options: Any) -> Any:
    """Labels of all rows, lazily: nothing is computed until the result is asked for.

    Parameters
    ----------
    model : fitted learner
    X : Dask array or DataFrame, or paths of files as in `fit`
    **options
        Of `csdpp.datasets.stream`, for files.

    Returns
    -------
    A Dask array (n, K) for an array or files, in the dtype of Y; a Dask DataFrame with the labels as columns for a
    DataFrame. Blocks are those of X: memory is that of a block and its predictions.

    Examples
    --------
    >>> import dask.array
    >>> from csdpp import CSDPP
    >>> from csdpp.datasets import make_stream
    >>> stream = make_stream(400, 20, 10, rank=3, random_state=0)
    >>> model = CSDPP(3).fit(stream.X, stream.Y)
    >>> labels = predict(model, dask.array.from_array(stream.X, chunks=(100, -1)))
    >>> labels
    dask.array<..., shape=(400, 10), dtype=uint8, chunksize=(100, 10), chunktype=numpy.ndarray>
    >>> bool((labels.compute() == model.predict(stream.X)).all())
    True
    """
    return _answers("predict", model, X, options)


def decision_function(model: Any, X: Any, **options: Any) -> Any:
    """Scores of all rows, lazily; as `predict`."""
    return _answers("decision_function", model, X, options)


def _answers(method: str, model: Any, X: Any, options: dict[str, Any]) -> Any:
    import dask.array as da
    from dask import delayed

    check_is_fitted(model)
    if model._targets.kind != "multilabel":
        raise InvalidInput(f"distributed.{method}: model must have learned 0/1 indicators, got one column of classes")
    shared = delayed(model, traverse=False)
    labels = method == "predict"
    dtype, K = model._targets.dtype if labels else np.dtype(np.float64), len(model.classes_)
    if hasattr(X, "map_partitions") and hasattr(X, "columns"):
        import pandas as pd

        meta = pd.DataFrame(np.empty((0, K), dtype), columns=model.classes_)
        return X.map_partitions(_frame, shared, method, meta=meta)
    meta = (
        sparse.csr_matrix((0, K), dtype=dtype) if labels and model._targets.sparse_output else np.empty((0, K), dtype)
    )
    if hasattr(X, "map_blocks"):
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        return X.map_blocks(_array, shared, method, chunks=(X.chunks[0], (K,)), dtype=dtype, meta=meta)
    if isinstance(X, str | list | tuple) or hasattr(X, "__fspath__"):
        parts = [delayed(_file)(shared, method, path, options) for path in list_files(f"distributed.{method}", X)]
        arrays = [da.from_delayed(part, (np.nan, K), dtype, meta=meta) for part in parts]
        return da.concatenate(arrays, allow_unknown_chunksizes=True)
    raise InvalidInput(
        f"distributed.{method}: X must be a Dask array or DataFrame, or paths of files, got {type(X).__name__}; "
        f"use model.{method}"
    )


def _array(X: Any, model: Any, method: str) -> Any:
    return getattr(model, method)(X)


def _frame(X: Any, model: Any, method: str) -> Any:
    import pandas as pd

    answers = getattr(model, method)(X)
    dense = answers.toarray() if sparse.issparse(answers) else answers
    return pd.DataFrame(dense, index=X.index, columns=model.classes_)


def _file(model: Any, method: str, path: str, options: dict[str, Any]) -> Any:
    """The answers for the rows of a file, which is read some rows at a time."""
    blocks = stream(path, **{"block_rows": FILE_ROWS, "labelled": False, **options})
    answers = [getattr(model, method)(block.X) for block in blocks]
    if not answers:
        return getattr(model, method)(np.zeros((1, model.n_features_in_)))[:0]  # no rows, in the type of others
    return sparse.vstack(answers, format="csr") if sparse.issparse(answers[0]) else np.vstack(answers)
