"""Files out of archives: zip and tar by Python, RAR by a program that is installed."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Collection
from pathlib import Path

from csdpp.errors import FetchError

#: Programs that unpack RAR, and their arguments before archive and folder.
_UNRAR = {
    "bsdtar": ("-x", "-f", "{archive}", "-C", "{folder}"),
    "unrar": ("x", "-o+", "-inul", "{archive}", "{folder}/"),
    "7z": ("x", "-y", "-o{folder}", "{archive}"),
    "7zz": ("x", "-y", "-o{folder}", "{archive}"),
    "unar": ("-quiet", "-output-directory", "{folder}", "{archive}"),
}


def unpack(archive: Path, wanted: Collection[str], folder: Path) -> None:
    """Put the files of these names, whatever their case and wherever in the archive, into the folder.

    Names in the archive are compared, never used as paths.
    """
    spelled = {name.lower(): name for name in wanted}
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                for info in packed.infolist():
                    if name := spelled.get(_base(info.filename)):
                        with packed.open(info) as source, (folder / name).open("wb") as target:
                            shutil.copyfileobj(source, target)
        elif tarfile.is_tarfile(archive):
            with tarfile.open(archive) as packed:
                for member in packed:
                    content = packed.extractfile(member) if member.isreg() else None
                    if content is not None and (name := spelled.get(_base(member.name))):
                        with content, (folder / name).open("wb") as target:
                            shutil.copyfileobj(content, target)
        else:
            _unrar(archive, spelled, folder)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, NotImplementedError, RuntimeError) as error:
        raise FetchError(f"fetch: {archive.name} must be a sound archive, got {error}; fetch it again") from None


def _base(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2].lower()


def _unrar(archive: Path, spelled: dict[str, str], folder: Path) -> None:
    """By the first program that is there."""
    with archive.open("rb") as file:
        start = file.read(16)
    if not start.startswith(b"Rar!"):
        raise FetchError(
            f"fetch: {archive.name} must be a zip, tar or RAR archive, got a file that begins {start!r}; "
            "the address may have moved: use a mirror"
        )
    program = next(filter(shutil.which, _UNRAR), None)
    if program is None:
        raise FetchError(
            f"fetch: to unpack {archive.name} takes one of {', '.join(_UNRAR)}, got none of them; install one "
            "(the archive is kept), or use a mirror that has the files unpacked"
        )
    with tempfile.TemporaryDirectory(dir=folder) as inner:
        arguments = [text.format(archive=archive, folder=inner) for text in _UNRAR[program]]
        done = subprocess.run([program, *arguments], capture_output=True, check=False)
        if done.returncode:
            raise FetchError(f"fetch: {program} must unpack {archive.name}, got exit code {done.returncode}")
        for path in Path(inner).rglob("*"):
            name = spelled.get(path.name.lower())
            if name and path.is_file() and not path.is_symlink():
                shutil.copyfile(path, folder / name)
