"""One row of the corpus of bad recordings, and the tools to spoil files."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sameworld.core import SameworldError
from sameworld.core.errors import StoreError


@dataclass(frozen=True, kw_only=True)
class BadRecording:
    """A bad recording.

    Attributes:
        name: What is wrong, in words.
        make: Writes it into an empty folder and returns its path.
        words: Phrase of the error, or of a note if something is kept (regular expression).
        kept: Fewest and most samples of the first stream that must be recovered; ``None`` if the
            recording must be refused.
        error: Class of the error.
        options: Fields of ``ReadOptions``.
    """

    name: str
    make: Callable[[Path], Path]
    words: str
    kept: tuple[int, int] | None = None
    error: type[SameworldError] = StoreError
    options: dict = field(default_factory=dict)


def bytes_in(name, content):
    """A file of given content."""

    def make(folder):
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def cut(make, share):
    """A file cut off after a share of its bytes."""

    def spoiled(folder):
        path = make(folder)
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])
        return path

    return spoiled


def edited(make, edit):
    """A file whose bytes went through ``edit``."""

    def spoiled(folder):
        path = make(folder)
        path.write_bytes(edit(path.read_bytes()))
        return path

    return spoiled


def record(opcode, body, length=None):
    """An MCAP record, with a length that may lie."""
    return struct.pack("<BQ", opcode, len(body) if length is None else length) + body


def mcap_records(content):
    """Opcode and body of every record of an MCAP file."""
    at, found = 8, []
    while at + 9 <= len(content) - 8:
        opcode, length = struct.unpack_from("<BQ", content, at)
        found.append((opcode, content[at + 9 : at + 9 + length]))
        at += 9 + length
    return found


def mcap_of(records):
    """An MCAP file of records."""
    magic = b"\x89MCAP0\r\n"
    return magic + b"".join(record(op, body) for op, body in records) + magic


def chunk_parts(body):
    """Times, sizes, compression and data of a chunk."""
    begin, end, size, crc, length = struct.unpack_from("<QQQII", body)
    kind = body[32 : 32 + length].decode()
    return begin, end, size, crc, kind, body[40 + length :]


def chunk_body(begin, end, size, crc, kind, data):
    """The body of a chunk."""
    head = struct.pack("<QQQII", begin, end, size, crc, len(kind)) + kind.encode()
    return head + struct.pack("<Q", len(data)) + data


def chunks_edited(edit, only=None):
    """An edit of every chunk of an MCAP file, or of the ``only``-th."""

    def change(content):
        number, result = -1, []
        for opcode, body in mcap_records(content):
            if opcode == 6:
                number += 1
                if only in (None, number):
                    body = chunk_body(*edit(*chunk_parts(body)))
            result.append((opcode, body))
        return mcap_of(result)

    return change
