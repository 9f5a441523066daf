"""What every request passes before the application sees it: tokens, limits, content types, time; and what is logged.

Plain ASGI. A refusal is one JSON object and one line of the audit log, never a stack trace.
"""

import asyncio
import json
import logging
import time
from typing import Any

from csdpp.service.rows import Refused
from csdpp.service.settings import Settings
from csdpp.service.telemetry import Telemetry
from csdpp.service.tokens import Token, find

log = logging.getLogger("csdpp.service")
audit = logging.getLogger("csdpp.service.audit")
JSON, NDJSON = "application/json", "application/x-ndjson"
#: Of each path its methods, each with the scope that it needs: "" is any token, None is none.
ROUTES: dict[str, dict[str, str | None]] = {
    "/": {"GET": None},
    "/healthz": {"GET": None},
    "/readyz": {"GET": None},
    "/openapi.json": {"GET": None},
    "/metrics": {"GET": ""},
    "/v1/model": {"GET": ""},
    "/v1/metrics": {"GET": ""},
    "/v1/events": {"GET": ""},
    "/v1/items": {"GET": ""},
    "/v1/items/{id}": {"GET": ""},
    "/v1/predict": {"POST": "predict"},
    "/v1/feedback": {"POST": "learn"},
    "/v1/learn": {"POST": "learn"},
    "/v1/checkpoint": {"POST": "admin"},
}
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
#: How much more time an NDJSON request has.
_BULK = 20
_CLOSED = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'")


class _Cut(Exception):
    """The client went away amid its request."""


class Guard:
    """Middleware around the application."""

    def __init__(self, app: Any, settings: Settings, telemetry: Telemetry) -> None:
        self.app, self.settings, self.telemetry = app, settings, telemetry
        self.active = 0
        self._known: dict[str, Token] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let a request in, or not."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        call = _Call(self, scope, receive, send)
        self.active += 1
        try:
            await call.run()
        finally:
            self.active -= 1

    def token_of(self, headers: dict[bytes, bytes]) -> Token | None:
        """Whose token a request carries."""
        kind, _, secret = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        return find(self.settings.tokens, secret.strip()) if kind.lower() == "bearer" and secret else None


class _Call:
    """One request on its way."""

    def __init__(self, guard: Guard, scope: Any, receive: Any, send: Any) -> None:
        self.guard, self.scope, self._receive, self._send = guard, scope, receive, send
        self.settings = guard.settings
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.start = time.perf_counter()
        self.route = "other"
        self.who = "-"
        self.status = 0
        self.taken, self.whole = 0, False
        self.most = self.settings.max_body

    async def run(self) -> None:
        """Check, pass on, and answer for what fails."""
        seconds = None
        try:
            self.check()
            seconds = self.seconds
            async with asyncio.timeout(seconds):
                await self.guard.app(self.scope, self.receive, self.send)
        except Refused as refused:
            await self.refuse(refused)
        except TimeoutError:
            status, code = (503, "too_slow") if self.whole else (408, "slow_body")
            message = f"not done within {seconds} s; with the same ids it can be sent again"
            await self.refuse(Refused(status, code, message, retry=1))
        except _Cut:
            self.status = self.status or 499
        except Exception:
            log.exception("bug in %s %s", self.scope["method"], self.route)
            await self.refuse(Refused(500, "bug", "this should not happen; the log of the service says more"))
        self.guard.telemetry.add(self.route, self.status, time.perf_counter() - self.start)

    @property
    def seconds(self) -> float | None:
        """Time for the request as a whole; the parts of an NDJSON request have theirs besides."""
        if self.route == "/v1/events":
            return None
        return self.settings.request_seconds * (_BULK if self.scope.get("csdpp.ndjson") else 1)

    # ---- checks, cheapest first

    def check(self) -> None:
        """Raise `Refused` for what may not in."""
        path, method = self.scope["path"], self.scope["method"]
        route = "/v1/items/{id}" if path.startswith("/v1/items/") else path
        if self.guard.active > self.settings.max_requests:
            raise Refused(503, "busy", "too many requests at a time", retry=1)
        self._check_host()
        methods = ROUTES.get(route)
        if methods is None:
            raise Refused(404, "no_such_path", "there is nothing here; /openapi.json tells what there is")
        self.route = route
        if method not in methods:
            raise Refused(405, "no_such_method", f"{route} answers {', '.join(methods)}")
        self._check_token(methods[method])
        if method == "POST":
            self._check_body(route)
        else:
            self.most = 0

    def _check_host(self) -> None:
        """Without tokens only pages of this machine may ask: another name in Host is a rebound one."""
        if self.settings.tokens or not self.settings.local:
            return
        host = self.headers.get(b"host", b"").decode("latin-1")
        name = host.partition("]")[0].lstrip("[") if host.startswith("[") else host.partition(":")[0]
        if not (name.startswith("127.") or name in ("localhost", "::1", self.settings.host)):
            raise Refused(421, "wrong_host", "without tokens, Host must be this machine")

    def _check_token(self, needed: str | None) -> None:
        if needed is None or not self.settings.tokens:
            return
        token = self.guard.token_of(self.headers)
        if token is None:
            raise Refused(401, "no_token", "send Authorization: Bearer with a token of this service")
        self.who = token.name
        if needed and needed not in token.scopes:
            raise Refused(403, "no_scope", f"this token lacks the scope {needed}")

    def _check_body(self, route: str) -> None:
        kind, _, parameters = self.headers.get(b"content-type", b"").decode("latin-1").lower().partition(";")
        kind, parameters = kind.strip(), parameters.replace(" ", "").replace('"', "")
        self.scope["csdpp.ndjson"] = kind == NDJSON
        if route == "/v1/checkpoint":
            self.most = 0
            return
        if kind not in (JSON, NDJSON) or parameters not in ("", "charset=utf-8"):
            raise Refused(415, "wrong_type", f"Content-Type must be {JSON} or {NDJSON}, in UTF-8")
        if self.headers.get(b"content-encoding", b"identity") != b"identity":
            raise Refused(415, "encoded", "the body must come without Content-Encoding")
        if kind == NDJSON:
            self.most = self.settings.max_bulk_body
        length = self.headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self.most:
            raise self._too_large()

    def _too_large(self) -> Refused:
        return Refused(413, "too_large", f"the body must be at most {self.most} bytes")

    # ---- what comes and what goes

    async def receive(self) -> Any:
        """Of the body no more than allowed."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            if not self.whole:
                raise _Cut
            return message
        self.taken += len(message.get("body", b""))
        self.whole = not message.get("more_body", False)
        if self.taken > self.most:
            raise self._too_large()
        return message

    async def send(self, message: Any) -> None:
        """With the headers that every answer has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            names = {name for name, _ in message["headers"]}
            message["headers"] = [*message["headers"], *_HEADERS]
            if _CLOSED[0] not in names:
                message["headers"].append(_CLOSED)
            if self.status >= 400:
                self._note(message["headers"])
        await self._send(message)

    async def refuse(self, refused: Refused) -> None:
        """Answer with what is wrong, if no answer has begun."""
        if self.status:
            log.warning("an answer of %s broke off: %s", self.route, refused.message)
            return
        headers = [*refusal_headers(refused)]
        if not self.whole and self.scope["method"] not in ("GET", "HEAD"):
            headers.append((b"connection", b"close"))  # the rest of the body is not read
        if refused.status == 405:
            headers.append((b"allow", ", ".join(ROUTES[self.route]).encode()))
        if refused.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        body = refusal_body(refused)
        headers.append((b"content-length", str(len(body)).encode()))
        await self.send({"type": "http.response.start", "status": refused.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    def _note(self, headers: list[tuple[bytes, bytes]]) -> None:
        """A line of the audit log: JSON, so that nothing in it can look like a second line."""
        code = dict(headers).get(b"x-error-code", b"").decode()
        self.guard.telemetry.refused[code] += 1
        client = self.scope.get("client") or ("-", 0)
        line = {
            "client": client[0],
            "who": self.who,
            "method": self.scope["method"],
            "path": self.scope["path"][:200],
            "status": self.status,
            "code": code,
        }
        audit.warning(line)


def refusal_headers(refused: Refused) -> list[tuple[bytes, bytes]]:
    """Of an answer that refuses."""
    headers = [(b"content-type", JSON.encode()), (b"x-error-code", refused.code.encode())]
    if refused.retry is not None:
        headers.append((b"retry-after", str(refused.retry).encode()))
    return headers


def refusal_body(refused: Refused) -> bytes:
    """Of an answer that refuses."""
    return json.dumps({"error": {"code": refused.code, "message": refused.message}}).encode("ascii", "replace")
