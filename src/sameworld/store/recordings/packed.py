"""Compressed blocks unpacked within a limit, as far as they go."""

from __future__ import annotations

import bz2
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

__all__ = ["Unpacked", "unpack", "unpacking"]

_PIECE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Unpacked:
    """What came out of a block.

    Attributes:
        data: The bytes, as many as could be had.
        why: Why they may be incomplete; empty if they are complete.
    """

    data: bytes
    why: str = ""


def unpack(data: bytes, kind: str, limit: int) -> Unpacked:
    """Unpack a block, which need not be whole.

    Args:
        data: Packed bytes, possibly cut off.
        kind: ``zstd``, ``lz4``, ``bz2``, or ``none`` and empty for no compression.
        limit: Most bytes that may come out.
    """
    if kind in ("", "none"):
        return Unpacked(data=data)
    if kind not in ("zstd", "lz4", "bz2"):
        return Unpacked(data=b"", why=f"its compression '{kind[:20]}' is unknown")
    pieces: list[bytes] = []
    size = 0
    try:
        for piece in _zstd(data) if kind == "zstd" else _framed(data, kind):
            size += len(piece)
            if size > limit:
                return Unpacked(data=b"", why=f"it unpacks to more than {limit} bytes")
            pieces.append(piece)
    except Exception as cause:  # every library has errors of its own
        why = f"it cannot be unpacked ({str(cause)[:120] or type(cause).__name__})"
        return Unpacked(data=b"".join(pieces), why=why)
    return Unpacked(data=b"".join(pieces))


def unpacking(file: IO[bytes]) -> IO[bytes]:
    """A stream of the unpacked bytes of a file packed with zstd."""
    import zstandard

    # Larger windows than any usual writer takes are refused, not allocated.
    decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    return decompressor.stream_reader(file, read_across_frames=True)


def _zstd(data: bytes) -> Iterator[bytes]:
    with unpacking(io.BytesIO(data)) as stream:
        while piece := stream.read(_PIECE):
            yield piece


def _framed(data: bytes, kind: str) -> Iterator[bytes]:
    """lz4 and bz2, frame after frame; ends where the bytes end."""
    while data:
        unpacker = _unpacker(kind)
        given = data
        while not unpacker.eof:
            yield unpacker.decompress(given, max_length=_PIECE)
            if unpacker.needs_input and not unpacker.eof:
                return
            given = b""
        data = unpacker.unused_data or b""


def _unpacker(kind: str) -> Any:
    if kind == "bz2":
        return bz2.BZ2Decompressor()
    import lz4.frame

    return lz4.frame.LZ4FrameDecompressor()
