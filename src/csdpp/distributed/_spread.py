"""Runs of experiments on a cluster: one call a run, its outcome as it comes."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

from csdpp.errors import InvalidInput

_Item = TypeVar("_Item")
_Outcome = TypeVar("_Outcome")
#: Seconds that a scheduler has to answer.
_TIMEOUT = 20
#: Seconds to close in.
_CLOSING = 10


def spread(where: Any = "local") -> Callable[[Callable[[_Item], _Outcome], Sequence[_Item]], Iterable[_Outcome]]:
    """A way to call a function for many items on a cluster, for `csdpp.experiments`: outcomes in any order.

    Parameters
    ----------
    where : address of a scheduler, "local" or distributed.Client
        "local" starts a process for each core of this machine, and ends them with the last outcome.

    Notes
    -----
    The workers need csdpp with the extras of experiments, and the same data folders. What a lost worker was at is done
    again elsewhere.

    Examples
    --------
    >>> from distributed import Client
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0", set_as_default=False) as client:
    ...     sorted(spread(client)(abs, [-3, 2, -1]))
    [1, 2, 3]
    """

    def over(function: Callable[[_Item], _Outcome], items: Sequence[_Item]) -> Iterator[_Outcome]:
        if not items:
            return
        import dask
        from distributed import as_completed

        with ExitStack() as stack:
            client = _connected(where) if isinstance(where, str) else where
            if isinstance(where, str):
                stack.callback(_close, client)
            # The function may hold the data: sent once, and there again if the worker that has it is lost.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
                shared = client.submit(_same, function, pure=False)
            futures = client.map(_call, items, function=shared, pure=False)
            for future in as_completed(futures, loop=client.loop):
                yield future.result()
                future.release()

    return over


def _same(function: Any) -> Any:
    return function


def _call(item: Any, function: Any) -> Any:
    return function(item)


def _close(client: Any) -> None:
    """The client and the workers it started; those that Ctrl-C has ended do not answer, and are not waited for."""
    with suppress(TimeoutError, asyncio.TimeoutError):
        client.close(timeout=_CLOSING)


def _connected(where: str) -> Any:
    """A client of its own."""
    try:
        from distributed import Client
    except ImportError:
        raise ImportError("csdpp.distributed needs Dask; install it with: pip install csdpp[dask]") from None
    if where == "local":
        return Client(threads_per_worker=1, dashboard_address=":0", set_as_default=False)
    try:
        return Client(where, timeout=_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        said = (str(error).splitlines() or [""])[0]
        raise InvalidInput(
            f"dask: expected a scheduler at {where!r}, got no answer ({said:.100}); give its address, such as "
            "tcp://host:8786, or none for the cores of this machine"
        ) from None
