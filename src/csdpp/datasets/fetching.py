"""Sets of the paper over the network into a cache: resumed, verified, and there whole or not at all.

`fetch` gathers the files in a hidden folder beside their place, tests checksums and statistics, and moves them to
their place in one step. Whoever reads meanwhile finds either nothing or all of it; of several who fetch the same set
one works and the others wait.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

from csdpp.datasets._archive import unpack
from csdpp.datasets._download import NotThere, Told, discard, download
from csdpp.datasets.mulan import load_mulan
from csdpp.datasets.registry import Entry, FilePath, cache_folder, entry, folders
from csdpp.errors import DataFormatError, FetchError, InvalidParameter
from csdpp.progress import ProgressBar


def fetch(
    name: str,
    *,
    root: FilePath | None = None,
    mirror: FilePath | None = None,
    force: bool = False,
    progress: bool | None = None,
    timeout: float = 30.0,
) -> Path:
    """A set of the paper on this machine: the folder with its files, which are downloaded if need be.

    Parameters
    ----------
    name : one of `REGISTRY`
    root : path, default: the user's cache
        Where the folder of the set is made. Where none is given, a set that lies below CSDPP_DATA is left there.
    mirror : address or path, optional
        Where to take the files from instead of the addresses in the registry: a server or a folder that has
        `NAME/FILE` for each file, or the archive under its name.
    force : bool
        Fetch even what is there.
    progress : bool, optional
        A progress bar on stderr; by default if that is a terminal.
    timeout : float
        Seconds without a byte after which an attempt has failed. What has come is kept; the next attempt, or the next
        call, goes on from there.

    Raises
    ------
    FetchError
        Where the set cannot be had: with the addresses, what they said, and what to do.

    Notes
    -----
    SHA-256 is tested where it is known; rows, features, labels and cardinality always.

    Examples
    --------
    >>> import tempfile
    >>> fetch("scene", root=tempfile.mkdtemp(), mirror="no such folder")
    Traceback (most recent call last):
    ...
    csdpp.errors.FetchError: fetch: scene could not be had: no such folder/scene/scene-train.arff must be a file, ...
    """
    known = entry(name, "fetch")
    if not timeout > 0:
        raise InvalidParameter(f"fetch: timeout must be positive, got {timeout!r}; say how many seconds")
    if not force:
        for place in folders(root)[: 1 if root is not None else -1]:
            if known.files_in(place / known.name) is not None and root is None:
                return place / known.name
    place = Path(root) if root is not None else cache_folder()
    folder = place / known.name
    place.mkdir(parents=True, exist_ok=True)
    with _alone(place / f".{known.name}.lock"):
        if not force and _is_sound(known, folder):
            return folder  # perhaps by another process, while we waited
        gathered = place / f".{known.name}.part"
        gathered.mkdir(exist_ok=True)
        _gather(known, gathered, mirror, progress, timeout)
        _move(gathered, folder)
    return folder


def _is_sound(known: Entry, folder: Path) -> bool:
    """Whether the files are there and are those that were verified."""
    found = known.files_in(folder)
    return found is not None and all(_agrees(known, path) for path in (*found[0], found[1]))


def _agrees(known: Entry, path: Path) -> bool:
    """Whether the checksum, where it is known, is that of the file."""
    wanted = {name.lower(): digest for name, digest in known.sha256.items()}.get(path.name.lower())
    return wanted is None or _digest(path) == wanted


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# ---- getting the files


def _gather(known: Entry, folder: Path, mirror: FilePath | None, progress: bool | None, timeout: float) -> None:
    """All files of the set in the folder, verified; nothing else is left there."""
    ways = _ways(known, mirror)
    failures: list[str] = []
    for address, names in ways:
        try:
            for name in names or [_file_name(address)]:
                target = folder / name
                if not (names and target.exists() and _agrees(known, target)):
                    _get(f"{address}{quote(name)}" if names else address, target, known, progress, timeout)
            if not names:
                wanted = {*known.files, *known.split}
                unpack(folder / _file_name(address), wanted, folder)
            _verify(known, folder)
        except FetchError as error:
            failures.append(str(error).removeprefix("fetch: "))
        else:
            return
    raise FetchError(
        f"fetch: {known.name} could not be had: {' | '.join(failures)} (set CSDPP_DATA to a folder that has "
        f"{known.name}/ with {', '.join(known.files)}, or pass a mirror)"
    )


def _ways(known: Entry, mirror: FilePath | None) -> list[tuple[str, tuple[str, ...]]]:
    """Addresses in the order in which they are tried: of a folder, with the files in it; or of an archive."""
    lists = [known.files, *([(*known.split, known.xml)] if known.split else [])]
    archive = _file_name(known.archive)
    if mirror is None:
        return [*([(known.plain, known.files)] if known.plain else []), (known.archive, ())]
    base = os.fspath(mirror).rstrip("/")
    return [*((f"{base}/{known.name}/", names) for names in lists), (f"{base}/{archive}", ())]


def _file_name(address: str) -> str:
    """What the archive at the address is called: `.../name.rar/download` is name.rar."""
    return unquote(address.removesuffix("/download").rpartition("/")[2])


def _get(address: str, target: Path, known: Entry, progress: bool | None, timeout: float) -> None:
    """One file, from a server or from a folder; a wrong checksum is tried again from the start."""
    part = target.with_name(target.name + ".part")
    for again in (True, False):
        resumed = part.exists()
        if "://" in address:
            if not address.startswith(("http://", "https://")):
                raise FetchError(f"fetch: addresses must begin with http:// or https://, got {address}; use another")
            with _shown(target.name, progress) as told:
                download(address, part, timeout=timeout, told=told)
        else:
            source = Path(unquote(address))
            if not source.is_file():
                raise NotThere(f"fetch: {source} must be a file, got none; use another mirror")
            shutil.copyfile(source, part)
        os.replace(part, target)
        if _agrees(known, target):
            break
        digest = _digest(target)
        target.unlink()
        if not (again and resumed):
            wanted = next(d for n, d in known.sha256.items() if n.lower() == target.name.lower())
            raise FetchError(
                f"fetch: {address} must have the SHA-256 {wanted}, got {digest}; its bytes are not those that were "
                "verified: use a mirror"
            )
    discard(part)  # its note


@contextmanager
def _shown(name: str, progress: bool | None) -> Iterator[Told]:
    """A progress bar as soon as the size is known."""
    bar: ProgressBar | None = None

    def told(done: int, total: int | None) -> None:
        nonlocal bar
        if bar is None:
            bar = ProgressBar(None if total is None else max(1, total // 1000), progress, unit=f"kB of {name}")
            bar.__enter__()
        bar.update(done // 1000 if total is None else min(done // 1000, max(1, total // 1000)), "", 0.0)

    try:
        yield told
    finally:
        if bar is not None:
            bar.__exit__()


# ---- what is gathered


def _verify(known: Entry, folder: Path) -> None:
    """Refuse files that are not the set: other checksums, other statistics, no such format."""
    found = known.files_in(folder)
    if found is None:
        there = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise FetchError(f"fetch: {known.name} must come with {', '.join(known.files)}, got {there}; use a mirror")
    arff, xml = found
    for path in (*arff, xml):
        if not _agrees(known, path):
            digest = _digest(path)
            path.unlink()
            raise FetchError(f"fetch: {path.name} must have the SHA-256 that was verified, got {digest}; use a mirror")
    try:
        got = load_mulan(arff, xml, corrections=known.corrections).statistics()
    except DataFormatError as error:
        _forget(arff, xml)
        raise FetchError(f"fetch: {known.name} must be a set in Mulan's format, got: {error}") from None
    wanted = known.statistics
    if got[:3] != wanted[:3] or abs(got.cardinality - wanted.cardinality) > 1e-3:
        _forget(arff, xml)
        raise FetchError(f"fetch: {known.name} must have {_in_words(wanted)}, got {_in_words(got)}; use a mirror")
    for path in folder.iterdir():
        if path not in (*arff, xml):
            path.unlink()


def _forget(arff: list[Path], xml: Path) -> None:
    for path in (*arff, xml):
        path.unlink()


def _in_words(statistics: tuple[float, ...]) -> str:
    N, d, K, cardinality = statistics[:4]
    return f"{N} rows, {d} features, {K} labels and {cardinality:.3f} labels a row"


def _move(gathered: Path, folder: Path) -> None:
    """The files to their place, in one step where nothing is there yet."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
    if not folder.exists():
        os.replace(gathered, folder)
        return
    for path in gathered.iterdir():
        os.replace(path, folder / path.name)
    gathered.rmdir()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time; the system gives the lock back when its holder dies."""
    with path.open("a+b") as file:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
