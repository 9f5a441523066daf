"""A learner behind HTTP: items come in, tags go out, answers come back later and are learned at once (docs/service.md).

Two threads stand behind the event loop. The store thread writes what comes in to an SQLite log, many requests in one
commit; the learner thread learns from the log in its order and publishes a copy of what predicting needs. Requests
are answered from the copy published last, and acknowledged once the log holds them.

    request -> app -> pipeline -> store (commit) -> learning (model, tally) -> published copy -> prediction

The model is a snapshot and what the log holds since: the log tells which rows were learned together, so that a
restart learns them again to the same bits.
"""

from typing import Any

__all__ = ["serve", "Client", "AsyncClient"]


def serve(**settings: Any) -> int:
    """Serve until SIGTERM or Ctrl-C; returns the exit code. ``settings`` are those of `csdpp serve --show-config`."""
    from csdpp.service.server import run
    from csdpp.service.settings import Settings

    return run(Settings.of(settings))


def __getattr__(name: str) -> Any:
    """The clients, imported when they are asked for: they need httpx."""
    if name in ("Client", "AsyncClient"):
        from csdpp.service import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
