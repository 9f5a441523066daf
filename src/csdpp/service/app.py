"""The HTTP application: what each path does. `csdpp.service.guard` has let the request in before it comes here."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from csdpp import __version__
from csdpp.service import openapi
from csdpp.service.bulk import Bulk
from csdpp.service.dashboard import PAGE, POLICY
from csdpp.service.guard import JSON, NDJSON, Guard, refusal_body, refusal_headers
from csdpp.service.pipeline import Pipeline
from csdpp.service.rows import Refused, Row
from csdpp.service.schemas import BODIES, parse
from csdpp.service.settings import Settings
from csdpp.service.store import Job, Written
from csdpp.service.telemetry import Exposition, Telemetry

#: Multiplications of a prediction from which on it leaves the event loop.
_LARGE = 20_000_000
#: Bytes of a JSON body from which on it is bulk, and waits its turn.
_BULK = 1 << 15


class Service:
    """The answers, over a pipeline."""

    def __init__(self, settings: Settings, pipeline: Pipeline) -> None:
        self.settings, self.pipeline = settings, pipeline
        self.telemetry = Telemetry()
        self.exposition = Exposition(self.telemetry, pipeline)
        self.small = 0  # requests of a few items so far
        self._gate = asyncio.Semaphore(1)

    # ---- predict, learn, feedback

    async def answer(self, path: str, receive: Any, *, ndjson: bool) -> tuple[bytes, bytes]:
        """Body and type of the answer to one or many items as JSON, or to lines of NDJSON."""
        if ndjson:
            return await Bulk(self, path).answer(receive), NDJSON.encode()
        data = await whole_body(receive)
        if len(data) < _BULK:
            self.small += 1
            return await self._answer(path, data), JSON.encode()
        async with self.turn():
            return await self._answer(path, data), JSON.encode()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Bulk is worked on one request at a time, and no more than half of the time while small requests come."""
        await self._gate.acquire()
        start, before, loop = time.perf_counter(), self.small, asyncio.get_running_loop()
        try:
            yield
        finally:
            pause = time.perf_counter() - start if self.small > before else 0.0
            loop.call_later(pause, self._gate.release)

    async def _answer(self, path: str, data: bytes) -> bytes:
        body = parse(BODIES[path][0], data)
        items = getattr(body, "items", None) or [body]
        if len(items) > self.settings.max_items:
            raise Refused(
                413, "too_many_items", f"a request may have {self.settings.max_items} items, got {len(items)}"
            )
        if path == "/v1/predict":
            results = await self.predict(items, body.scores, body.keep)
        else:
            results = await self.learn(path, items)
            _raise_first(results)
        if not hasattr(body, "items"):
            return _text(results[0])
        return _text({"items": results, "version": max(result["version"] for result in results)})

    async def predict(
        self, items: Sequence[Any], scores: bool = True, keep: bool = True, each: bool = False
    ) -> list[Any]:
        """Predictions by the version published last; those of items to be kept are told once these are stored.

        ``scores`` and ``keep`` are for items that do not say it themselves.
        """
        published, names = self.pipeline.published, self.pipeline.names
        results: list[Any] = []
        X = np.zeros((len(items), published.d))
        for row, item in zip(X, items, strict=True):
            try:
                names.fill(row, item.features)
                results.append({"id": item.id or new_id()})
            except Refused as refused:
                if not each:
                    raise
                results.append(refused)
        if X.size * published.K > _LARGE:
            values = await asyncio.to_thread(published.scores, X)
        else:
            values = published.scores(X)
        labels = names.label_list
        said = [[place for place, score in enumerate(row) if score >= 0.0] for row in values.tolist()]
        kept = [
            i
            for i, (item, result) in enumerate(zip(items, results, strict=True))
            if isinstance(result, dict) and getattr(item, "keep", keep)
        ]
        rows = [Row(results[i]["id"], items[i].features, said=said[i], version=published.version) for i in kept]
        if rows:
            written, _ = await self.pipeline.submit(Job("keep", rows, each))
            for i, outcome in zip(kept, written.results, strict=True):
                if isinstance(outcome, Refused):
                    results[i] = outcome
            if not each:
                _raise_first(results)
        for item, result, places, row in zip(items, results, said, values.tolist(), strict=True):
            if isinstance(result, dict):
                result["labels"] = [labels[place] for place in places]
                told = getattr(item, "scores", scores)
                result["scores"] = dict(zip(labels, row, strict=False)) if told else None
                result["version"] = published.version
        return results

    async def learn(self, path: str, items: Sequence[Any], each: bool = False) -> list[Any]:
        """What became of answers, one by one."""
        kind = path.rpartition("/")[2]
        rows = [Row(item.id or new_id(), getattr(item, "features", None), item.labels) for item in items]
        written, version = await self.pipeline.submit(Job(kind, rows, each))
        return _told(rows, written, version)

    # ---- facts

    def item(self, id_: str) -> Response:
        """What is known of an item."""
        found = self.pipeline.store.read_item(id_)
        if found is None:
            raise Refused(404, "unknown_item", f"there is no item {id_[:200]!r}; old ones are not kept for ever")
        return _json(found)

    def newest(self, limit: str) -> Response:
        """The items that came last."""
        if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit[:9]) <= 100:
            raise Refused(422, "invalid", f"limit must be a whole number from 1 to 100, got {limit[:80]!r}")
        return _json({"items": self.pipeline.store.newest(int(limit))})

    def model(self) -> dict[str, Any]:
        """What is served."""
        pipeline = self.pipeline
        return {
            "version": pipeline.published.version,
            "parameters": self.settings.learner,
            "features": pipeline.names.feature_list,
            "labels": pipeline.names.label_list,
            "grow": self.settings.grow,
            "learner": "CSDPP" if pipeline.learning.model is None else " ".join(repr(pipeline.learning.model).split()),
            "csdpp": __version__,
            "snapshot": pipeline.snapshot,
        }

    def metrics(self, *, labels: bool = True, curve: bool = True) -> dict[str, Any]:
        """How well and how fast it does."""
        pipeline = self.pipeline
        tally = pipeline.learning.tally
        facts = tally.facts() | {
            "version": pipeline.published.version,
            "waiting": pipeline.waiting,
            "refused_by_model": pipeline.learning.failed,
            "rows_per_second": round(pipeline.rows_per_second(), 1),
            "trouble": pipeline.trouble,
            "sizes": {"labels": len(pipeline.names.label_list), "features": len(pipeline.names.feature_list)},
            **self.telemetry.facts(),
        }
        if curve:
            facts["curve"] = tally.curve
        if labels:
            facts["labels"] = tally.labels(pipeline.names.label_list)
        return facts

    async def events(self) -> AsyncIterator[bytes]:
        """The dashboard's figures, once a second: server-sent events."""
        turn = 0
        while not self.pipeline.ending:
            facts = self.metrics(labels=turn % 3 == 0, curve=turn % 3 == 0)
            facts["items"] = self.pipeline.store.newest(20)
            yield b"data: " + json.dumps(facts).encode() + b"\n\n"
            turn += 1
            for _ in range(4):
                if not self.pipeline.ending:
                    await asyncio.sleep(0.25)

    def ready(self) -> Response:
        """Whether answers can be learned now."""
        if self.pipeline.trouble:
            raise Refused(503, "not_ready", self.pipeline.trouble, retry=5)
        return _json({"status": "ready"})


def new_id() -> str:
    """For an item that came without one."""
    return secrets.token_hex(12)


def _told(rows: Sequence[Row], written: Written, version: int) -> list[Any]:
    return [
        result
        if isinstance(result, Refused)
        else {"id": row.id, "seq": result, "version": version, "repeated": place in written.repeated}
        for place, (row, result) in enumerate(zip(rows, written.results, strict=True))
    ]


def _raise_first(results: Sequence[Any]) -> None:
    for result in results:
        if isinstance(result, Refused):
            raise result


def _text(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _json(content: Any) -> Response:
    return Response(_text(content), media_type=JSON)


def make_app(settings: Settings, pipeline: Pipeline) -> Any:
    """The application behind its guard."""
    service = Service(settings, pipeline)
    app = FastAPI(title="csdpp", version=__version__, docs_url=None, redoc_url=None, redirect_slashes=False)
    openapi.describe(app)
    _add_routes(app, service)

    @app.exception_handler(Refused)
    async def refuse(_: Request, refused: Any) -> Response:
        headers = {name.decode(): value.decode() for name, value in refusal_headers(refused)}
        return Response(refusal_body(refused), refused.status, headers)

    @app.exception_handler(HTTPException)
    async def unknown(_: Request, error: Any) -> Response:
        return await refuse(_, Refused(error.status_code, "no_such_path", "there is nothing here"))

    return Guard(Direct(app, service), settings, service.telemetry)


class Direct:
    """The three paths that carry the load go to the service past FastAPI, which describes them: a third of the time."""

    def __init__(self, app: FastAPI, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request; `Refused` is the guard's."""
        if scope["type"] != "http" or scope["path"] not in BODIES:
            await self.app(scope, receive, send)
            return
        body, kind = await self.service.answer(scope["path"], receive, ndjson=scope["csdpp.ndjson"])
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def whole_body(receive: Any) -> bytes:
    """All of a body."""
    message = await receive()
    if not message.get("more_body"):
        return bytes(message["body"])
    parts = [message["body"]]
    while message.get("more_body"):
        message = await receive()
        parts.append(message["body"])
    return b"".join(parts)


def _add_routes(app: FastAPI, service: Service) -> None:
    for path in BODIES:

        @app.post(path, **openapi.ROUTES[path])
        async def answer() -> None:
            """For the description: `Direct` answers."""

    @app.get("/v1/items/{id}", **openapi.ROUTES["/v1/items/{id}"])
    async def item(id: str) -> Response:
        return service.item(id)

    @app.get("/v1/items", **openapi.ROUTES["/v1/items"])
    async def newest(request: Request) -> Response:
        return service.newest(request.query_params.get("limit", "20"))

    @app.get("/v1/model", **openapi.ROUTES["/v1/model"])
    async def model() -> Response:
        return _json(service.model())

    @app.get("/v1/metrics", **openapi.ROUTES["/v1/metrics"])
    async def metrics() -> Response:
        return _json(service.metrics())

    @app.get("/v1/events", **openapi.ROUTES["/v1/events"])
    async def events() -> Response:
        return StreamingResponse(service.events(), media_type="text/event-stream")

    @app.get("/metrics", **openapi.ROUTES["/metrics"])
    async def prometheus() -> Response:
        return Response(service.exposition.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.post("/v1/checkpoint", **openapi.ROUTES["/v1/checkpoint"])
    async def checkpoint() -> Response:
        done = await service.pipeline.checkpoint()
        return _json({"seq": done["kept"], "bytes": done["bytes"], "at": done["at"]})

    @app.get("/healthz", **openapi.ROUTES["/healthz"])
    async def health() -> Response:
        return _json({"status": "alive"})

    @app.get("/readyz", **openapi.ROUTES["/readyz"])
    async def ready() -> Response:
        return service.ready()

    @app.get("/", **openapi.ROUTES["/"])
    async def dashboard() -> Response:
        return Response(PAGE, media_type="text/html", headers={"content-security-policy": POLICY})
