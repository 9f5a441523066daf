"""The file that models are kept in: a JSON header and raw arrays under one checksum, written whole or not at all.

    magic (8 bytes) | length of the header (8) | SHA-256 of all that follows (32) | header | arrays

Numbers are little-endian, every array begins at a multiple of 64 bytes. The header's "arrays" tells the type, shape
and memory order of each. Nothing in a file is ever run, and nothing larger than the file is allocated for it.
"""

import hashlib
import json
import os
import re
import secrets
import stat
import struct
from collections.abc import Iterable, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from csdpp.errors import DataFormatError, MissingData

Array = NDArray[Any]
Path_ = str | os.PathLike[str]

MAGIC = b"csdpp\r\n\x1a"  # a transfer as text would change it
_PREFIX = struct.Struct("<8sQ32s")
_ALIGN = 64
_NUMBERS = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"}
_STRINGS = re.compile(r"<U[0-9]{1,7}")
_LAST_CHARACTER = 0x10FFFF


def pack(header: dict[str, Any], arrays: Sequence[Array]) -> list[bytes | memoryview]:
    """The bytes of a file, in pieces: no copy is made of contiguous arrays."""
    described: list[dict[str, Any]] = []
    pieces: list[Any] = []  # bytes, and views of arrays
    for array in arrays:
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        turned = array.flags.f_contiguous and not array.flags.c_contiguous
        described.append({"dtype": array.dtype.str, "shape": list(array.shape), "order": "F" if turned else "C"})
        flat = np.ascontiguousarray(array.T if turned else array).reshape(-1)
        pieces += [flat.view(np.uint8).data, _padding(flat.nbytes)]
    text = json.dumps(header | {"arrays": described}, allow_nan=False).encode()
    text += b" " * (-(_PREFIX.size + len(text)) % _ALIGN)
    digest = hashlib.sha256(text)
    for piece in pieces:
        digest.update(piece)
    return [_PREFIX.pack(MAGIC, len(text), digest.digest()), text, *pieces]


def unpack(data: bytes, name: str) -> tuple[dict[str, Any], list[Array]]:
    """Header and arrays of the bytes of a file called ``name``; DataFormatError where they are none."""
    header, start = _header(data, name)
    view = memoryview(data)
    arrays = []
    for dtype, shape, order in _described(header, name):
        size = dtype.itemsize * prod(shape)
        if size > len(data) - start:
            raise DataFormatError(f"{name}: the arrays must lie within the file, one of shape {shape} does not")
        flat = np.frombuffer(view[start : start + size], dtype).copy()
        if dtype.kind == "U" and size and flat.view(np.uint32).max() > _LAST_CHARACTER:
            raise DataFormatError(f"{name}: strings must be Unicode, and are not")
        arrays.append(flat.reshape(shape[::-1]).T if order == "F" else flat.reshape(shape))
        start += size + len(_padding(size))
    if start != len(data):
        raise DataFormatError(f"{name}: the arrays must fill the file, {len(data) - start} bytes are left over")
    return header, arrays


def _header(data: bytes, name: str) -> tuple[dict[str, Any], int]:
    """The header, its checksum tested, and where the arrays begin."""
    if data[: len(MAGIC)] != MAGIC:
        raise DataFormatError(f"{name}: must be a model saved by csdpp, and does not begin like one")
    if len(data) < _PREFIX.size:
        raise DataFormatError(f"{name}: is cut short after {len(data)} bytes; save the model again")
    _, length, checksum = _PREFIX.unpack_from(data)
    start = _PREFIX.size + length
    if start > len(data):
        raise DataFormatError(f"{name}: is cut short after {len(data)} bytes; save the model again")
    if hashlib.sha256(memoryview(data)[_PREFIX.size :]).digest() != checksum:
        raise DataFormatError(f"{name}: the checksum differs, the file is damaged or cut short; save the model again")
    try:
        header = json.loads(data[_PREFIX.size : start])
    except (ValueError, RecursionError):
        raise DataFormatError(f"{name}: the header must be JSON, and is not") from None
    if not isinstance(header, dict):
        raise DataFormatError(f"{name}: the header must be a JSON object, got {type(header).__name__}")
    return header, start


def _described(header: dict[str, Any], name: str) -> Iterable[tuple[np.dtype[Any], tuple[int, ...], str]]:
    described = header.get("arrays")
    for entry in described if isinstance(described, list) else [None]:
        match entry:
            case {"dtype": str(dtype), "shape": list(shape), "order": "C" | "F" as order}:
                if (dtype in _NUMBERS or _STRINGS.fullmatch(dtype)) and len(shape) <= 8 and all(map(_is_size, shape)):
                    yield np.dtype(dtype), tuple(shape), order
                    continue
        raise DataFormatError(f"{name}: the header must tell type and shape of each array, got {entry!r:.80}")


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def can_hold(array: Array) -> bool:
    """Whether a file can hold such an array as raw bytes."""
    dtype = array.dtype.newbyteorder("<").str
    return dtype in _NUMBERS or _STRINGS.fullmatch(dtype) is not None


def _padding(size: int) -> bytes:
    return bytes(-size % _ALIGN)


def read_file(path: Path_) -> bytes:
    """All bytes of a regular file."""
    try:
        with open(path, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise DataFormatError(f"{os.fspath(path)}: must be a file, and is none")
            return file.read()
    except FileNotFoundError:
        raise MissingData(f"{os.fspath(path)}: there is no such file; name one that `save` wrote") from None
    except IsADirectoryError:
        raise DataFormatError(f"{os.fspath(path)}: must be a file, and is a folder") from None


def write_file(path: Path_, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file whole: whoever looks, and whatever is killed when, finds the old file or the new one.

    The bytes go into a new file beside it and on to the disk, then it takes the name. A process that is killed
    may leave its ``.name.….tmp`` behind.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """The new name, too, must outlive a power cut. Where folders cannot be opened (Windows) the system sees to it."""
    with suppress(PermissionError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
