"""NPZ archives: members are measured before they are unpacked, pickles are never opened."""

from __future__ import annotations

import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from sameworld.core.episode import Recording
from sameworld.core.errors import StoreError, listed
from sameworld.store.recordings.npz_layout import recordings_from_arrays
from sameworld.store.recordings.options import ReadOptions

__all__ = ["read_npz_recordings"]

_MOST_MEMBERS = 10_000
_HEADER = 1 << 16
_LAST_CHARACTER = 0x10FFFF
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
    OSError,
    ValueError,
    EOFError,
    KeyError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
    SyntaxError,
    TypeError,
    RecursionError,
    MemoryError,
)


def read_npz_recordings(path: Path, options: ReadOptions) -> Iterator[Recording]:
    """Read one recording per piece and family of arrays.

    Raises:
        StoreError: Truncated, pickled, too large, sizes that are a lie, or no time.
    """
    arrays, notes = _arrays(path, options)
    yield from recordings_from_arrays(path, arrays, notes, options)


def _arrays(path: Path, options: ReadOptions) -> tuple[dict[str, NDArray[Any]], list[str]]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _demand_sane(path, members, options)
            return _members(path, archive, members)
    except _BROKEN as cause:
        raise StoreError(
            f"'{path}' is truncated or no usable .npz (its index stands at the end): "
            f"{str(cause)[:300]}."
        ) from cause


def _demand_sane(path: Path, members: list[zipfile.ZipInfo], options: ReadOptions) -> None:
    if len(members) > _MOST_MEMBERS:
        raise StoreError(f"'{path}' has {len(members)} members; at most {_MOST_MEMBERS} are read.")
    for member in members:
        name = member.filename
        if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/"):
            raise StoreError(
                f"'{path}' has a member named '{name}', which points outside the archive. "
                "It was not made by numpy; nothing was read."
            )
        if member.flag_bits & 1:
            raise StoreError(f"'{path}': member '{name}' is encrypted.")
    total = sum(member.file_size for member in members)
    if total > options.limit:
        packed = sum(member.compress_size for member in members)
        raise StoreError(
            f"'{path}' unpacks from {packed} to {total} bytes, more than the limit of "
            f"{options.limit}. If that is meant, raise the option limit."
        )
    names = [m.filename for m in members]
    if len(set(names)) < len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        raise StoreError(f"'{path}' has the member(s) {listed(twice)} more than once.")


def _members(
    path: Path, archive: zipfile.ZipFile, members: list[zipfile.ZipInfo]
) -> tuple[dict[str, NDArray[Any]], list[str]]:
    arrays: dict[str, NDArray[Any]] = {}
    foreign: list[str] = []
    for member in members:
        if not member.filename.endswith(".npy"):
            foreign.append(member.filename)
            continue
        with archive.open(member) as file:
            array = _array(path, file, member)
        arrays[member.filename.removesuffix(".npy")] = array
    if not arrays:
        raise StoreError(f"'{path}' is an archive of {listed(foreign)}, not of arrays.")
    notes = [f"Member(s) {listed(foreign)} are no arrays and were left out."] if foreign else []
    return arrays, notes


def _array(path: Path, file: IO[bytes], member: zipfile.ZipInfo) -> NDArray[Any]:
    """Check the header against the size of the member before anything is allocated."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, kind = np.lib.format.read_array_header_1_0(file, max_header_size=_HEADER)
    elif version == (2, 0):
        shape, _, kind = np.lib.format.read_array_header_2_0(file, max_header_size=_HEADER)
    else:
        raise StoreError(f"'{path}': '{member.filename}' has the array format {version}.")
    if kind.hasobject:
        raise StoreError(
            f"'{path}': '{member.filename}' is pickled Python objects, which are never opened. "
            "Save plain numbers: np.savez(..., name=np.asarray(x, dtype=float))."
        )
    size = math.prod(shape) * kind.itemsize
    if size > member.file_size or any(n < 0 for n in shape):
        raise StoreError(
            f"'{path}': '{member.filename}' declares shape {shape} of {kind} ({size} bytes), but "
            f"holds {member.file_size} bytes. It is damaged."
        )
    file.seek(0)
    array = np.lib.format.read_array(file, allow_pickle=False, max_header_size=_HEADER)
    if kind.kind == "U" and not _is_text(array):
        raise StoreError(f"'{path}': '{member.filename}' holds text that is none. It is damaged.")
    return array


def _is_text(array: NDArray[Any]) -> bool:
    """Whether every character exists; numpy does not look, Python stumbles over it."""
    if array.dtype.itemsize == 0 or array.size == 0:
        return True
    codes = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("=")).reshape(-1)
    return bool((codes.view(np.uint32) <= _LAST_CHARACTER).all())
