"""uvicorn around the application: limits on connections, a graceful stop, one line of JSON a log record."""

import asyncio
import json
import logging
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from threadpoolctl import threadpool_limits
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from csdpp.errors import InvalidParameter
from csdpp.service.app import make_app
from csdpp.service.learning import Learning
from csdpp.service.pipeline import Pipeline
from csdpp.service.rows import Answer, Batch, Names, pack_features
from csdpp.service.settings import Settings

log = logging.getLogger("csdpp.service")
_HEAD = 1 << 15  # bytes of the head of a request


class Lines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """As logging has it."""
        line: dict[str, Any] = {"at": round(record.created, 3), "level": record.levelname, "from": record.name}
        line |= record.msg if isinstance(record.msg, dict) else {"says": record.getMessage()}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _protocol(settings: Settings) -> type[HttpToolsProtocol]:
    """Uvicorn's protocol with limits on connections, and on the size of a request's head and the time for it."""

    class Limited(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        _head = 0
        _in_head = True

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            # asyncio sees to it only where it made the socket; without it every answer waits 40 ms for an ACK.
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if len(self.connections) > settings.max_connections:
                body = b'{"error": {"code": "busy", "message": "too many connections"}}'
                head = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
                kind = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
                transport.write(head + kind + body)
                transport.close()
                return
            self._expect_head()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._in_head:
                self._head += len(data)
            super().data_received(data)
            if self._in_head and self._head > _HEAD:
                self.transport.close()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._expect_head()

        def on_headers_complete(self) -> None:
            self._in_head = False
            if self._timer is not None:
                self._timer.cancel()
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            super().on_message_complete()
            self._in_head, self._head = True, 0

        def _expect_head(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._in_head, self._head = True, 0
            self._timer = self.loop.call_later(settings.head_seconds, self.transport.close)

    return Limited


class Server(uvicorn.Server):
    """Tells the pipeline to stop as soon as a signal comes, so that streams end."""

    pipeline: Pipeline

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGTERM or Ctrl-C: accept nothing more, finish what was accepted; a second one: at once."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told_to_stop)
        yield

    def _told_to_stop(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = self.pipeline.ending = True


def run(settings: Settings) -> int:
    """Serve until told to stop; the exit code."""
    _log_lines()
    listener = _listen(settings)
    with threadpool_limits(1):  # small products, and learning must give the same bits each time
        pipeline = Pipeline(settings)
        try:
            pipeline.open()
            _warm_up(settings)
            return asyncio.run(_serve(settings, pipeline, listener))
        finally:
            pipeline.close()
            listener.close()


def cut_log(settings: Settings, seq: int) -> int:
    """Drop the answers from ``seq`` on out of the log of a service that is not running, and say how many."""
    pipeline = Pipeline(settings)
    pipeline.attach()
    try:
        print(f"csdpp: {pipeline.store.cut(seq)} answers from {seq} on are dropped; their items wait for answers again")
    finally:
        pipeline.close()
    return 0


def _listen(settings: Settings) -> socket.socket:
    """The port, bound before anything else: who cannot have it says so at once."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        raise InvalidParameter(f"csdpp serve: cannot listen at {where} ({error.strerror}); take another port") from None


async def _serve(settings: Settings, pipeline: Pipeline, listener: socket.socket) -> int:
    server = make_server(settings, pipeline)
    pipeline.start(asyncio.get_running_loop())

    def end() -> None:
        server.should_exit = True

    pipeline.on_death = end
    announcing = asyncio.create_task(_announce(server, settings, listener))
    try:
        await server.serve(sockets=[listener])
    finally:
        announcing.cancel()
        await asyncio.to_thread(pipeline.stop)
    return 1 if pipeline.dead or not server.started else 0


def make_server(settings: Settings, pipeline: Pipeline) -> Server:
    """Uvicorn with the application, not yet serving."""
    config = uvicorn.Config(
        make_app(settings, pipeline),
        http=_protocol(settings),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=max(1, int(settings.head_seconds)),
        timeout_graceful_shutdown=max(1, int(settings.stop_seconds)),
    )
    server = Server(config)
    server.pipeline = pipeline
    return server


async def _announce(server: Server, settings: Settings, listener: socket.socket) -> None:
    """One line on stdout once it listens, with the port that it has."""
    while not server.started:
        await asyncio.sleep(0.01)
    port = listener.getsockname()[1]
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    print(f"csdpp: serving at http://{host}:{port}", flush=True)


def _warm_up(settings: Settings) -> None:
    """Learn and predict once aside: what has to be compiled is compiled before the first request."""
    start = time.perf_counter()
    names = Names(grow=True, max_features=4, max_labels=4, max_value=1.0)
    for name in ("a", "b", "c", "d"):
        names.add("feature", name)
        names.add("label", name)
    learning = Learning(settings.learner | {"n_components": 0.5}, names)
    x = [pack_features([i], [1.0]) for i in range(4)]
    learning.learn(Batch(1, 4, 4, x, [Answer([i], None) for i in range(4)]))
    learning.learn(Batch(5, 4, 4, x[:1], [Answer([0], None)]))
    log.info("warmed up in %.2f s", time.perf_counter() - start)


def _log_lines() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    for name in ("csdpp.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "csdpp.service" else logging.WARNING)
    sys.setswitchinterval(0.001)  # learning must not hold up answers for long
    threading.excepthook = lambda args: log.critical("a thread failed", exc_info=args.exc_value)
