"""Compressed blocks unpacked within a limit, as far as they go."""

from __future__ import annotations

import bz2
import io
from dataclasses import dataclass
from typing import IO

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
    """Unpack a block whose declared sizes are not believed.

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
        with unpacking(io.BytesIO(data), kind) as stream:
            while piece := stream.read(_PIECE):
                size += len(piece)
                if size > limit:
                    return Unpacked(data=b"", why=f"it unpacks to more than {limit} bytes")
                pieces.append(piece)
    except Exception as cause:  # every library has errors of its own
        why = f"it cannot be unpacked ({str(cause)[:120] or type(cause).__name__})"
        return Unpacked(data=b"".join(pieces), why=why)
    return Unpacked(data=b"".join(pieces))


def unpacking(file: IO[bytes], kind: str) -> IO[bytes]:
    """A stream of the unpacked bytes of a packed file."""
    if kind == "zstd":
        import zstandard

        # One window larger than any usual writer takes; a larger one is refused, not allocated.
        decompressor = zstandard.ZstdDecompressor(max_window_size=1 << 27)
        return decompressor.stream_reader(file, read_across_frames=True)
    if kind == "lz4":
        import lz4.frame

        return lz4.frame.open(file, "rb")
    return bz2.open(file, "rb")
