"""Clients of the service: `Client` waits, `AsyncClient` is awaited; both retry what is safe to be sent again.

Every item gets its id here, so that a request whose answer was lost can be repeated: what the log holds already is
not learned twice.
"""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx

from csdpp.errors import CsdppError

Features = Mapping[str, float] | Sequence[float]
Labels = Sequence[str] | Mapping[str, bool]
_AGAIN = (429, 503)
_CHUNK = 500  # lines of an NDJSON request


class ServiceError(CsdppError):
    """A refusal of the service: its status, its code and what it says."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"csdpp service: {message} ({status} {code})")
        self.status, self.code, self.message = status, code, message


@dataclass(frozen=True)
class Prediction:
    """What the model says of an item, and its version."""

    id: str
    labels: list[str]
    scores: dict[str, float] | None
    version: int


@dataclass(frozen=True)
class Learned:
    """An answer that is stored and learned: its place in the log, a version that has it, whether it came before."""

    id: str
    seq: int
    version: int
    repeated: bool


@dataclass
class _Options:
    """What both clients are made with."""

    url: str
    token: str | None = None
    timeout: float = 35.0
    retries: int = 5
    headers: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.headers = {} if self.token is None else {"authorization": f"Bearer {self.token}"}

    def pause(self, attempt: int, answer: httpx.Response | None) -> float | None:
        """Seconds until the next attempt; None: there is none."""
        if attempt >= self.retries or (answer is not None and answer.status_code not in _AGAIN):
            return None
        try:
            return min(30.0, float((answer.headers if answer is not None else {}).get("retry-after", 2**attempt / 5)))
        except ValueError:
            return 1.0


def _checked(answer: httpx.Response) -> Any:
    """The JSON of a good answer."""
    if answer.status_code == 200:
        return answer.json()
    try:
        error = answer.json()["error"]
        raise ServiceError(answer.status_code, str(error["code"]), str(error["message"]))
    except (ValueError, LookupError, TypeError):
        raise ServiceError(answer.status_code, "unknown", answer.text[:200]) from None


def _item(features: Features, id: str | None) -> dict[str, Any]:
    plain = dict(features) if isinstance(features, Mapping) else [float(value) for value in features]
    return {"id": id or secrets.token_hex(12), "features": plain}


def _labels(labels: Labels) -> Any:
    return dict(labels) if isinstance(labels, Mapping) else list(labels)


def _many(items: Iterable[Features]) -> dict[str, Any]:
    return {"items": [_item(features, None) for features in items]}


def _pairs(items: Iterable[tuple[Features, Labels]]) -> Iterator[dict[str, Any]]:
    for features, labels in items:
        yield _item(features, None) | {"labels": _labels(labels)}


def _chunks(lines: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    chunk: list[str] = []
    for line in lines:
        chunk.append(json.dumps(line))
        if len(chunk) == _CHUNK:
            yield "\n".join(chunk).encode()
            chunk = []
    if chunk:
        yield "\n".join(chunk).encode()


def _lines(text: str) -> Iterator[Learned | ServiceError]:
    for line in map(json.loads, text.splitlines()):
        if "error" in line:
            yield ServiceError(line["status"], line["error"]["code"], line["error"]["message"])
        else:
            yield Learned(**line)


_NDJSON = {"content-type": "application/x-ndjson"}
_JSON = {"content-type": "application/json"}


class Client:
    """The service, one call at a time.

    Parameters
    ----------
    url : such as "http://127.0.0.1:8000"
    token : bearer token, where the service asks for one
    timeout : seconds for an answer
    retries : of requests that were refused for now (429, 503) or whose answer was lost

    Examples
    --------
    >>> with Client("http://127.0.0.1:8000") as client:  # doctest: +SKIP
    ...     said = client.predict({"red": 0.7})
    ...     client.feedback(said.id, ["apple"])
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 35.0, retries: int = 5) -> None:
        self._options = _Options(url, token, timeout, retries)
        self._http = httpx.Client(base_url=url, headers=self._options.headers, timeout=timeout, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def _send(self, method: str, path: str, content: bytes | None = None, headers: Any = None) -> httpx.Response:
        attempt = 0
        while True:
            answer = error = None
            try:
                answer = self._http.request(method, path, content=content, headers=headers)
                if answer.status_code not in _AGAIN:
                    return answer
            except httpx.TransportError as failed:
                error = failed
            pause = self._options.pause(attempt, answer)
            if pause is None:
                if answer is not None:
                    return answer
                raise ServiceError(0, "no_answer", f"{self._options.url} does not answer: {error}") from error
            time.sleep(pause)
            attempt += 1

    def _post(self, path: str, body: Any) -> Any:
        return _checked(self._send("POST", path, json.dumps(body).encode(), _JSON))

    def predict(
        self, features: Features, *, id: str | None = None, scores: bool = True, keep: bool = True
    ) -> Prediction:
        """The labels of an item, which is kept for feedback unless told otherwise."""
        return Prediction(**self._post("/v1/predict", _item(features, id) | {"scores": scores, "keep": keep}))

    def predict_many(self, items: Iterable[Features], *, scores: bool = True, keep: bool = True) -> list[Prediction]:
        """The labels of several items."""
        answer = self._post("/v1/predict", _many(items) | {"scores": scores, "keep": keep})
        return [Prediction(**one) for one in answer["items"]]

    def feedback(self, id: str, labels: Labels) -> Learned:
        """Learn the answer to an item: the labels that hold, or which of some hold."""
        return Learned(**self._post("/v1/feedback", {"id": id, "labels": _labels(labels)}))

    def learn(self, features: Features, labels: Labels, *, id: str | None = None) -> Learned:
        """Learn an item with its labels."""
        return Learned(**self._post("/v1/learn", _item(features, id) | {"labels": _labels(labels)}))

    def learn_many(self, items: Iterable[tuple[Features, Labels]]) -> Iterator[Learned | ServiceError]:
        """Learn any number of items with their labels, as NDJSON; what is refused comes back as an error."""
        for chunk in _chunks(_pairs(items)):
            answer = self._send("POST", "/v1/learn", chunk, _NDJSON)
            if answer.status_code != 200:
                _checked(answer)
            yield from _lines(answer.text)

    def item(self, id: str) -> dict[str, Any]:
        """What the service knows of an item."""
        return dict(_checked(self._send("GET", f"/v1/items/{_quoted(id)}")))

    def model(self) -> dict[str, Any]:
        """What is served."""
        return dict(_checked(self._send("GET", "/v1/model")))

    def metrics(self) -> dict[str, Any]:
        """How well and how fast it does."""
        return dict(_checked(self._send("GET", "/v1/metrics")))

    def checkpoint(self) -> dict[str, Any]:
        """Take a snapshot."""
        return dict(_checked(self._send("POST", "/v1/checkpoint")))


class AsyncClient:
    """The service, for asyncio: the calls of `Client`, awaited."""

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 35.0, retries: int = 5) -> None:
        self._options = _Options(url, token, timeout, retries)
        self._http = httpx.AsyncClient(base_url=url, headers=self._options.headers, timeout=timeout, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def _send(self, method: str, path: str, content: bytes | None = None, headers: Any = None) -> httpx.Response:
        attempt = 0
        while True:
            answer = error = None
            try:
                answer = await self._http.request(method, path, content=content, headers=headers)
                if answer.status_code not in _AGAIN:
                    return answer
            except httpx.TransportError as failed:
                error = failed
            pause = self._options.pause(attempt, answer)
            if pause is None:
                if answer is not None:
                    return answer
                raise ServiceError(0, "no_answer", f"{self._options.url} does not answer: {error}") from error
            await asyncio.sleep(pause)
            attempt += 1

    async def _post(self, path: str, body: Any) -> Any:
        return _checked(await self._send("POST", path, json.dumps(body).encode(), _JSON))

    async def predict(
        self, features: Features, *, id: str | None = None, scores: bool = True, keep: bool = True
    ) -> Prediction:
        """See `Client.predict`."""
        return Prediction(**await self._post("/v1/predict", _item(features, id) | {"scores": scores, "keep": keep}))

    async def predict_many(
        self, items: Iterable[Features], *, scores: bool = True, keep: bool = True
    ) -> list[Prediction]:
        """See `Client.predict_many`."""
        answer = await self._post("/v1/predict", _many(items) | {"scores": scores, "keep": keep})
        return [Prediction(**one) for one in answer["items"]]

    async def feedback(self, id: str, labels: Labels) -> Learned:
        """See `Client.feedback`."""
        return Learned(**await self._post("/v1/feedback", {"id": id, "labels": _labels(labels)}))

    async def learn(self, features: Features, labels: Labels, *, id: str | None = None) -> Learned:
        """See `Client.learn`."""
        return Learned(**await self._post("/v1/learn", _item(features, id) | {"labels": _labels(labels)}))

    async def learn_many(self, items: Iterable[tuple[Features, Labels]]) -> AsyncIterator[Learned | ServiceError]:
        """See `Client.learn_many`."""
        for chunk in _chunks(_pairs(items)):
            answer = await self._send("POST", "/v1/learn", chunk, _NDJSON)
            if answer.status_code != 200:
                _checked(answer)
            for line in _lines(answer.text):
                yield line

    async def item(self, id: str) -> dict[str, Any]:
        """See `Client.item`."""
        return dict(_checked(await self._send("GET", f"/v1/items/{_quoted(id)}")))

    async def model(self) -> dict[str, Any]:
        """See `Client.model`."""
        return dict(_checked(await self._send("GET", "/v1/model")))

    async def metrics(self) -> dict[str, Any]:
        """See `Client.metrics`."""
        return dict(_checked(await self._send("GET", "/v1/metrics")))

    async def checkpoint(self) -> dict[str, Any]:
        """See `Client.checkpoint`."""
        return dict(_checked(await self._send("POST", "/v1/checkpoint")))


def _quoted(id: str) -> str:
    from urllib.parse import quote

    return quote(id, safe="")
