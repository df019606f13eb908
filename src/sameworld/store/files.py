"""Whole files or none: atomic writes, strict JSON, arrays without pickles, hashes.

A file is written beside its final place, flushed to the disk and renamed, so that a reader (or a
process killed at any moment) finds the old content or the new one, never a part.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import secrets
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sameworld.core.errors import StoreError

__all__ = [
    "hash_arrays",
    "hash_file",
    "npz_bytes",
    "parse_json",
    "plain_json",
    "read_bytes",
    "read_json",
    "read_npz",
    "read_text",
    "replacing",
    "sync_folder",
    "write_bytes",
    "write_json",
    "write_npz",
    "write_text",
]

#: Largest JSON or text file read, unless told otherwise [bytes].
TEXT_LIMIT = 1 << 28
_CHUNK = 1 << 20
#: What zipfile, zlib and numpy raise on damaged archives and array headers.
_BROKEN_NPZ = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    TypeError,
    RuntimeError,
    OverflowError,
    SyntaxError,
    MemoryError,
    tokenize.TokenError,
    zlib.error,
)


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of ``path`` only if the block ends well.

    Folders on the way are made. On an error nothing is left behind.

    Raises:
        StoreError: The file cannot be written.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
        try:
            with temporary.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except (OSError, ValueError) as cause:
        raise StoreError(f"Cannot write '{path}': {cause}.") from cause


def sync_folder(folder: Path) -> None:
    """Make renames inside a folder survive a power cut."""
    with suppress(OSError):  # some systems cannot open or sync a folder; the rename stands
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write bytes atomically."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: str | Path, text: str) -> None:
    """Write UTF-8 text atomically, line ends as given."""
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as cause:
        raise StoreError(f"Cannot write '{path}': text is not valid Unicode ({cause}).") from cause
    write_bytes(path, content)


def write_json(path: str | Path, record: Any, *, nan: Literal["error", "null"] = "error") -> None:
    """Write strict JSON atomically.

    Args:
        path: File.
        record: Mappings with string keys, sequences, numbers, text, ``None``; numpy numbers and
            arrays become plain ones.
        nan: What NaN and infinities become, which JSON does not have: an error, or ``null``.

    Raises:
        StoreError: A value has no JSON form; the message names its place.
    """
    plain = plain_json(record, nan=nan)
    write_text(path, json.dumps(plain, indent=1, ensure_ascii=True, allow_nan=False) + "\n")


def plain_json(record: Any, *, nan: Literal["error", "null"] = "error") -> Any:
    """What ``write_json`` writes: plain mappings, lists, numbers, text.

    Raises:
        StoreError: A value has no JSON form; the message names its place.
    """
    return _plain(record, "$", nan)


def _plain(value: Any, place: str, nan: str) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (float, np.floating)):
        if math.isfinite(value):
            return float(value)
        if nan == "null":
            return None
        raise StoreError(f"JSON has no {float(value)} (at {place}). Use None, or nan='null'.")
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist(), place, nan)
    if isinstance(value, Mapping):
        odd = [key for key in value if not isinstance(key, str)]
        if odd:
            raise StoreError(f"JSON keys are text, got {odd[0]!r} at {place}.")
        return {key: _plain(item, f"{place}.{key}", nan) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{place}[{i}]", nan) for i, item in enumerate(value)]
    raise StoreError(f"JSON has no form for {type(value).__name__} (at {place}).")


def read_bytes(path: str | Path, *, limit: int = TEXT_LIMIT) -> bytes:
    """Read a whole regular file.

    Args:
        path: File.
        limit: Largest size read [bytes].

    Raises:
        StoreError: Missing, not a regular file, too large, or unreadable.
    """
    path = Path(path)
    try:
        if not path.is_file():
            state = "is not a regular file" if path.exists() else "does not exist"
            raise StoreError(f"'{path}' {state}.")
        size = path.stat().st_size
        if size > limit:
            raise StoreError(f"'{path}' has {size} bytes, more than the limit of {limit}.")
        return path.read_bytes()
    except (OSError, ValueError) as cause:
        raise StoreError(f"Cannot read '{path}': {cause}.") from cause


def read_text(path: str | Path, *, limit: int = TEXT_LIMIT) -> str:
    """Read a UTF-8 text file.

    Raises:
        StoreError: As ``read_bytes``, or the content is not UTF-8.
    """
    try:
        return read_bytes(path, limit=limit).decode("utf-8")
    except UnicodeDecodeError as cause:
        raise StoreError(f"'{path}' is not UTF-8 text ({cause.reason}).") from cause


def read_json(path: str | Path, *, limit: int = TEXT_LIMIT) -> Any:
    """Read strict JSON: no NaN or Infinity, no key twice.

    Raises:
        StoreError: The file is missing or its content is not strict JSON; says where.
    """
    return parse_json(read_text(path, limit=limit), str(path))


def parse_json(text: str, where: str) -> Any:
    """Parse strict JSON; ``where`` names the source in errors.

    Raises:
        StoreError: The text is not strict JSON.
    """

    def constant(token: str) -> Any:
        raise StoreError(f"'{where}' holds {token}, which JSON does not have. Write null instead.")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise StoreError(f"'{where}' gives the key {twice!r} twice in one object.")
        return record

    try:
        return json.loads(text, parse_constant=constant, object_pairs_hook=unique)
    except json.JSONDecodeError as cause:
        raise StoreError(
            f"'{where}' is not JSON: {cause.msg} at line {cause.lineno}, column {cause.colno}."
        ) from cause
    except (RecursionError, ValueError) as cause:
        raise StoreError(f"'{where}' is not usable JSON: {cause}.") from cause


def npz_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays as an uncompressed ``.npz``; the same arrays give the same bytes.

    Raises:
        StoreError: An array holds Python objects, or a name cannot name a file in the archive.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name, array in arrays.items():
            array = np.asanyarray(array)
            if array.dtype.hasobject:
                raise StoreError(f"Array '{name}' holds Python objects; only numbers and text.")
            if not name or "\0" in name or name.startswith("/"):
                raise StoreError(f"{name!r} cannot name an array.")
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return buffer.getvalue()


def write_npz(path: str | Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays atomically as ``.npz``, without pickles."""
    write_bytes(path, npz_bytes(arrays))


def read_npz(path: str | Path, *, limit: int = 1 << 34) -> dict[str, NDArray[Any]]:
    """Read named arrays; pickled ones are refused.

    Raises:
        StoreError: Missing, truncated, no ``.npz``, or an array is pickled.
    """
    content = read_bytes(path, limit=limit)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            declared = sum(member.file_size for member in archive.infolist())
        if declared > limit:
            raise StoreError(f"'{path}' unpacks to {declared} bytes, more than {limit}.")
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except _BROKEN_NPZ as cause:
        raise StoreError(f"'{path}' is not a usable .npz: {cause}.") from cause
    except zipfile.BadZipFile as cause:
        raise StoreError(f"'{path}' is truncated or not an .npz: {cause}.") from cause


def hash_file(path: str | Path) -> str:
    """Hex sha256 of a file's content.

    Raises:
        StoreError: The file cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with Path(path).open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except (OSError, ValueError) as cause:
        raise StoreError(f"Cannot read '{path}': {cause}.") from cause
    return digest.hexdigest()


def hash_arrays(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Hex sha256 over names, types, shapes and contents; the order of names does not matter."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        head = json.dumps([name, array.dtype.str, list(np.shape(arrays[name]))])
        digest.update(f"{len(head)}:{head}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
