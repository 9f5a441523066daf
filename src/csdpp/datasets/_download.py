"""One file over HTTP: an interrupted transfer goes on where it stopped, as long as the file there is still the same.

The bytes gather in `part`; beside it `part.json` keeps what the server called that version of the file (ETag or
Last-Modified). Without such a name, or where the server sends another version, the transfer begins anew.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from csdpp.errors import FetchError

CHUNK = 1 << 16
ATTEMPTS = 5  # that may fail one after the other without a byte; each byte gives hope anew
PAUSE = 0.5  # seconds before the second attempt, twice as long before each further one
_PASSING = {408, 425, 429, 500, 502, 503, 504}
_NETWORK = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)

#: What is told of a transfer: bytes that are there, and of how many (None if nobody knows).
Told = Callable[[int, int | None], object]


class NotThere(FetchError):
    """The server says that there is no such file."""


class _Passing(Exception):
    """What may be otherwise at the next attempt."""


def download(url: str, part: Path, *, timeout: float, told: Told = lambda done, total: None) -> None:
    """The whole file at `url` in `part`, whatever of it is there already.

    Raises
    ------
    FetchError
        After `ATTEMPTS` in a row that brought nothing, or at once where a further attempt would not help; what has
        come stays in `part`. `NotThere` where the server says so.
    """
    failed = 0
    while True:
        before = _size(part)
        try:
            return _attempt(url, part, timeout, told)
        except _Passing as error:
            after = _size(part)
            failed = 0 if after > before else failed + 1
            if failed >= ATTEMPTS:
                raise FetchError(
                    f"fetch: {url} must give a file, got {error}, {failed} times in a row; try again later "
                    f"(what has come, {after:,} bytes, is kept), or use another mirror"
                ) from None
            time.sleep(PAUSE * 2**failed if failed else 0)


def discard(part: Path) -> None:
    """Forget what has come of a file."""
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)


def _attempt(url: str, part: Path, timeout: float, told: Told) -> None:
    have, version = _size(part), _known_version(part, url)
    request = urllib.request.Request(url, headers={"User-Agent": "csdpp", "Accept-Encoding": "identity"})
    if have and version:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", version)
    else:
        have = 0
    with _answer(request, url, part, timeout) as response:
        start, total = _extent(response)
        if response.status == 206 and start != have:
            discard(part)
            raise _Passing(f"bytes from {start} on, where those from {have} on were asked for")
        if response.status == 200:  # all of it: it was asked for, the server knows no ranges, or the file changed
            have = 0
        version = response.headers.get("ETag") or response.headers.get("Last-Modified")
        if not have:
            discard(part)
            if version and not version.startswith("W/"):
                _note(part).write_text(json.dumps({"url": url, "version": version}))
        with part.open("ab") as file:
            told(have, total)
            while piece := _read(response):
                file.write(piece)
                have += len(piece)
                told(have, total)
    if total is not None and have > total:
        discard(part)
        raise _Passing(f"{have:,} bytes where {total:,} were announced")
    if total is not None and have < total:
        raise _Passing(f"the end after {have:,} of {total:,} bytes")


def _answer(request: urllib.request.Request, url: str, part: Path, timeout: float) -> Any:
    """The server's answer; refusals as errors, those that may pass as `_Passing`."""
    try:
        return urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        error.close()
        said = f"{error.code} {error.reason}"
        if error.code == 416:  # there is less than what we have: another file
            discard(part)
            raise _Passing(said) from None
        if error.code in _PASSING:
            raise _Passing(said) from None
        kind = NotThere if error.code in (404, 410) else FetchError
        raise kind(f"fetch: {url} must give a file, got {said}; use a mirror, or put the files there by hand") from None
    except _NETWORK as error:
        raise _Passing(_said(error, timeout)) from None


def _read(response: Any) -> bytes:
    """The next bytes, as soon as there are some."""
    try:
        piece: bytes = response.read1(CHUNK)
        return piece
    except _NETWORK as error:
        raise _Passing(_said(error, response.timeout if hasattr(response, "timeout") else None)) from None


def _said(error: BaseException, timeout: float | None) -> str:
    reason = getattr(error, "reason", error)
    if isinstance(reason, TimeoutError):
        return "no answer in time" if timeout is None else f"no answer for {timeout:g} seconds"
    return str(reason) or type(reason).__name__


def _extent(response: Any) -> tuple[int, int | None]:
    """Where the bytes of an answer begin in the file, and how many the whole file has."""
    with suppress(ValueError, TypeError, AttributeError):  # headers that are not there, or say something else
        if response.status == 206:
            span, _, total = response.headers["Content-Range"].removeprefix("bytes ").partition("/")
            return int(span.partition("-")[0]), None if total == "*" else int(total)
        return 0, int(response.headers["Content-Length"])
    return 0, None


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _note(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _known_version(part: Path, url: str) -> str | None:
    """What the server called the file of which we have the beginning."""
    with suppress(OSError, ValueError, AttributeError):
        note = json.loads(_note(part).read_text())
        if note.get("url") == url:
            return str(note["version"]) if note.get("version") else None
    return None
