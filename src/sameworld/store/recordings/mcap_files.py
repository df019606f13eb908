"""MCAP, read from front to back: no index is needed, and a cut-off file gives what it has.

Source: the MCAP format specification, mcap.dev/spec.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from sameworld.core.errors import StoreError
from sameworld.store.recordings.decoders import Schema, make_topic
from sameworld.store.recordings.options import ReadOptions
from sameworld.store.recordings.packed import unpack, unpacking
from sameworld.store.recordings.topics import Collector, Topic

__all__ = ["collect_mcap"]

_MAGIC = b"\x89MCAP0\r\n"
_HEAD = 9
#: Largest chunk, packed or unpacked, and largest message [bytes].
_LARGEST = 1 << 28
#: Largest summary looked into [bytes].
_SUMMARY = 1 << 26
_FOOTER_SIZE = 20
_CHUNK, _SCHEMA, _CHANNEL, _MESSAGE = 6, 3, 4, 5
_DATA_END, _FOOTER, _ATTACHMENT = 15, 2, 9
_SKIP = frozenset({1, 7, 8, 10, 11, 12, 13, 14, _ATTACHMENT})


def collect_mcap(path: Path, collector: Collector, options: ReadOptions, *, packed: bool) -> None:
    """Read the messages of a file into a collector; what is lost goes into its notes.

    Args:
        path: The file.
        collector: Takes the messages.
        options: Topics and limits.
        packed: Whether the file as a whole is packed with zstd.

    Raises:
        StoreError: It is no MCAP file, or too large for the limit.
    """
    try:
        with ExitStack() as stack:
            file: IO[bytes] = stack.enter_context(path.open("rb"))
            size = None if packed else path.stat().st_size
            if packed:
                file = stack.enter_context(unpacking(file))
            _Scan(path=path, collector=collector, options=options).run(file, size)
    except OSError as cause:
        raise StoreError(f"Cannot read '{path}': {cause}.") from cause


@dataclass(kw_only=True)
class _Scan:
    path: Path
    collector: Collector
    options: ReadOptions
    _schemas: dict[int, Any] = field(default_factory=dict[int, Any])
    _topics: dict[int, Topic | None] = field(default_factory=dict[int, "Topic | None"])
    _orphans: int = 0
    _broken: int = 0
    _attachments: int = 0

    def run(self, file: IO[bytes], size: int | None) -> None:
        if size is not None:
            self._know_topics(file, size)
        if _read(file, len(_MAGIC)) != _MAGIC:
            raise StoreError(f"'{self.path}' does not begin like an MCAP file.")
        at = len(_MAGIC)
        while True:
            head = _read(file, _HEAD)
            if len(head) < _HEAD:
                self._cut(at, size, "it ends without a footer")
                break
            opcode, length = struct.unpack("<BQ", head)
            if opcode in (_DATA_END, _FOOTER):
                break
            if opcode == 0:
                self._cut(at, size, "what follows is no record")
                break
            left = None if size is None else size - at - _HEAD
            if not self._record(file, opcode, length, left, at, size):
                break
            at += _HEAD + length
        self._finish()

    def _know_topics(self, file: IO[bytes], size: int) -> None:
        """Take the topics from the summary: the chunk that declares them may be damaged."""
        foot = _HEAD + _FOOTER_SIZE + len(_MAGIC)
        if size < foot + len(_MAGIC):
            return  # too short for one
        file.seek(size - foot)
        tail = _read(file, foot)
        opcode, length = struct.unpack_from("<BQ", tail)
        begin = int.from_bytes(tail[_HEAD : _HEAD + 8], "little")
        sound = tail.endswith(_MAGIC) and opcode == _FOOTER and length == _FOOTER_SIZE
        if sound and len(_MAGIC) < begin < size - foot and size - foot - begin <= _SUMMARY:
            file.seek(begin)
            for kind, body in _records(_read(file, size - foot - begin)):
                if kind in (_SCHEMA, _CHANNEL):
                    self._small(kind, body)
        file.seek(0)

    def _record(
        self, file: IO[bytes], opcode: int, length: int, left: int | None, at: int, size: int | None
    ) -> bool:
        """Handle one record at the top level; false if the file ends inside it."""
        if left is not None and length > left:
            if opcode == _CHUNK:
                self._chunk(_read(file, min(left, _LARGEST)), at, cut=True)
            self._cut(at, size, f"a record declares {length} bytes where {left} are left")
            return False
        if opcode in _SKIP or opcode > _DATA_END or length > _LARGEST:
            return self._skip(file, opcode, length, at, size)
        body = _read(file, length)
        if len(body) < length:
            if opcode == _CHUNK:
                self._chunk(body, at, cut=True)
            self._cut(at, size, f"a record declares {length} bytes where {len(body)} are left")
            return False
        if opcode == _CHUNK:
            self._chunk(body, at, cut=False)
        else:
            self._small(opcode, body)
        return True

    def _skip(self, file: IO[bytes], opcode: int, length: int, at: int, size: int | None) -> bool:
        self._attachments += opcode == _ATTACHMENT
        if opcode in (_CHUNK, _MESSAGE):
            self.collector.notes.append(
                f"'{self.path.name}': a record of {length} bytes at byte {at} is larger than "
                f"{_LARGEST} and was left out."
            )
        if size is not None:
            file.seek(length, io.SEEK_CUR)
            return True
        while length > 0:
            piece = _read(file, min(length, 1 << 20))
            if not piece:
                self._cut(at, size, "it ends inside a record")
                return False
            length -= len(piece)
        return True

    def _chunk(self, body: bytes, at: int, *, cut: bool) -> None:
        from mcap.records import Chunk

        chunk = _parsed(Chunk.read, body)
        if chunk is None:
            self._broken += not cut
            return
        if chunk.uncompressed_size > _LARGEST:
            self._lost_chunk(chunk, at, f"it declares {chunk.uncompressed_size} bytes")
            return
        found = unpack(chunk.data, chunk.compression, chunk.uncompressed_size)
        crc = chunk.uncompressed_crc
        if not cut and not found.why and crc and zlib.crc32(found.data) != crc:
            self._lost_chunk(chunk, at, "its checksum is wrong; its messages were left out")
            return
        if found.why and not cut:
            self._lost_chunk(chunk, at, found.why)
        used = 0
        for opcode, record in _records(found.data):
            self._small(opcode, record)
            used += _HEAD + len(record)
        if cut:
            self._lost_end(chunk)
        elif used < len(found.data) and not found.why:
            self._lost_chunk(chunk, at, f"its records end at byte {used} of {len(found.data)}")

    def _lost_end(self, chunk: Any) -> None:
        span = max(chunk.message_end_time - self.collector.latest, 0) * 1e-9
        if span < 1e9:
            self.collector.notes.append(
                f"'{self.path.name}': the last chunk, cut off, reached {span:.3f} s further than "
                "the last message read."
            )

    def _lost_chunk(self, chunk: Any, at: int, why: str) -> None:
        span = max(chunk.message_end_time - chunk.message_start_time, 0) * 1e-9
        self.collector.notes.append(
            f"'{self.path.name}': the chunk at byte {at} ({span:.3f} s of messages) is damaged: "
            f"{why}."
        )

    def _small(self, opcode: int, body: bytes) -> None:
        from mcap.records import Channel
        from mcap.records import Schema as McapSchema

        if opcode == _MESSAGE:
            self._message(body)
        elif opcode == _SCHEMA:
            schema = _parsed(McapSchema.read, body)
            self._broken += schema is None
            if schema is not None:
                self._schemas[schema.id] = schema
        elif opcode == _CHANNEL:
            channel = _parsed(Channel.read, body)
            self._broken += channel is None
            if channel is not None and channel.id not in self._topics:
                self._topics[channel.id] = self._topic(channel)

    def _topic(self, channel: Any) -> Topic | None:
        if not self.collector.wants(channel.topic):
            return None
        schema = self._schemas.get(channel.schema_id)
        known = Schema(name="", encoding="", text="")
        if schema is not None:
            text = schema.data.decode("utf-8", errors="replace")
            known = Schema(name=schema.name, encoding=schema.encoding, text=text)
        source = f"{self.path.name}:{channel.topic}"
        message = channel.message_encoding
        return make_topic(channel.topic, message, known, source, self.options.columns)

    def _message(self, body: bytes) -> None:
        if len(body) < 22:
            self._broken += 1
            return
        channel, _, logged, _ = struct.unpack_from("<HIQQ", body)
        if channel not in self._topics:
            self._orphans += 1
            return
        topic = self._topics[channel]
        if topic is not None:
            self.collector.add(topic, logged, body[22:])

    def _cut(self, at: int, size: int | None, why: str) -> None:
        lost = "" if size is None else f"; {size - at} of {size} bytes could not be used whole"
        self.collector.notes.append(
            f"'{self.path.name}' was cut off or is damaged at byte {at}: {why}{lost}. "
            f"{self.collector.messages} message(s) before that were read."
        )

    def _finish(self) -> None:
        name, notes = self.path.name, self.collector.notes
        if self._orphans:
            notes.append(f"'{name}': {self._orphans} message(s) belong to no declared topic.")
        if self._broken:
            notes.append(f"'{name}': {self._broken} record(s) are malformed and were left out.")
        if self._attachments:
            notes.append(f"'{name}': {self._attachments} attachment(s) were left out.")


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Records inside a chunk, up to the first that does not fit."""
    at = 0
    while at + _HEAD <= len(data):
        opcode, length = struct.unpack_from("<BQ", data, at)
        at += _HEAD
        if opcode == 0 or length > len(data) - at:
            return
        yield opcode, data[at : at + length]
        at += length


def _read(file: IO[bytes], size: int) -> bytes:
    """As many bytes as there are, asked for in pieces: a declared size allocates nothing."""
    pieces: list[bytes] = []
    while size > 0:
        try:
            piece = file.read(min(size, 1 << 20))
        except Exception:  # a packed file that ends early; every library has errors of its own
            break
        if not piece:
            break
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _parsed(read: Any, body: bytes) -> Any | None:
    """A record of the mcap library, or ``None`` if its fields do not fit into its bytes."""
    from mcap.data_stream import ReadDataStream
    from mcap.exceptions import McapError

    try:
        return read(ReadDataStream(io.BytesIO(body)))
    except (McapError, struct.error, ValueError, OverflowError, EOFError):
        return None
