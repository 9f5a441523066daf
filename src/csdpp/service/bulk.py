"""NDJSON: as many lines as one likes in a request, worked on while they come, each answered by a line of its own.

What is wrong with a line does not touch the others. When the queue is full the reading waits, and with it the client.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from csdpp.service.rows import Refused
from csdpp.service.schemas import BODIES, parse

#: Lines that are stored and learned together.
LINES = 256


class Bulk:
    """One NDJSON request."""

    def __init__(self, service: Any, path: str) -> None:
        self.service, self.path = service, path
        self.adapter = BODIES[path][1]
        self.out: list[bytes] = []

    async def answer(self, receive: Any) -> bytes:
        """The lines' answers, in their order."""
        lines = self._lines(receive)
        while chunk := await self._chunk(lines):
            async with self.service.turn():
                results = await self._work(chunk)
            self.out.append(b"".join(map(_line, results)))
        return b"".join(self.out)

    async def _chunk(self, lines: AsyncIterator[bytes]) -> list[Any]:
        """The next lines, parsed: items, or why they are none."""
        chunk: list[Any] = []
        limit = min(LINES, self.service.settings.max_items)
        async with asyncio.timeout(self.service.settings.request_seconds):
            async for line in lines:
                try:
                    chunk.append(parse(self.adapter, line))
                except Refused as refused:
                    chunk.append(refused)
                if len(chunk) == limit:
                    break
        return chunk

    async def _lines(self, receive: Any) -> AsyncIterator[bytes]:
        """Lines that are not blank; of their length the limit for a JSON body holds."""
        most, rest = self.service.settings.max_body, bytearray()
        more = True
        while more:
            message = await receive()
            more = message.get("more_body", False)
            *whole, tail = message["body"].split(b"\n")
            if whole:
                rest += whole[0]
                for line in (bytes(rest), *whole[1:]):
                    if line.strip():
                        yield line
                rest = bytearray(tail)
            else:
                rest += tail
            if len(rest) > most:
                raise Refused(413, "too_large", f"a line must be at most {most} bytes")
        if rest.strip():
            yield bytes(rest)

    async def _work(self, chunk: list[Any]) -> list[Any]:
        items = [item for item in chunk if not isinstance(item, Refused)]
        async with asyncio.timeout(self.service.settings.request_seconds):
            done = iter(await self._patiently(items) if items else [])
        return [item if isinstance(item, Refused) else next(done) for item in chunk]

    async def _patiently(self, items: list[Any]) -> list[Any]:
        while True:
            try:
                if self.path == "/v1/predict":
                    return list(await self.service.predict(items, each=True))
                return list(await self.service.learn(self.path, items, each=True))
            except Refused as refused:
                if refused.status != 429:
                    raise
            await asyncio.sleep(0.02)


def _line(result: Any) -> bytes:
    if isinstance(result, Refused):
        result = {"error": {"code": result.code, "message": result.message}, "status": result.status}
    return json.dumps(result, separators=(",", ":")).encode() + b"\n"
