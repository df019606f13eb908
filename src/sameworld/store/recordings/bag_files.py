"""ROS 1 bags (format 2.0), read from front to back: unindexed and cut-off ones give what they have.

Source: ROS wiki, Bags/Format/2.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from sameworld.core.errors import StoreError
from sameworld.store.recordings.decoders import Schema, make_topic
from sameworld.store.recordings.options import ReadOptions
from sameworld.store.recordings.packed import unpack
from sameworld.store.recordings.topics import Collector, Topic

__all__ = ["collect_bag"]

_MAGIC = b"#ROSBAG V2.0\n"
_LARGEST = 1 << 28
_HEADER = 1 << 20
_MESSAGE, _BAG, _INDEX, _CHUNK, _INFO, _CONNECTION = 2, 3, 4, 5, 6, 7


def collect_bag(path: Path, collector: Collector, options: ReadOptions) -> None:
    """Read the messages of a bag into a collector; what is lost goes into its notes.

    Raises:
        StoreError: Another version, encrypted, or too large for the limit.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
            if magic != _MAGIC:
                raise StoreError(
                    f"'{path}' begins with {magic!r}; only bags of version 2.0 are read. Convert "
                    "it with: rosbag fix"
                )
            _Scan(path=path, collector=collector, options=options).run(file, path.stat().st_size)
    except OSError as cause:
        raise StoreError(f"Cannot read '{path}': {cause}.") from cause


@dataclass(kw_only=True)
class _Scan:
    path: Path
    collector: Collector
    options: ReadOptions
    _topics: dict[int, Topic | None] = field(default_factory=dict[int, "Topic | None"])
    _orphans: int = 0
    _broken: int = 0

    def run(self, file: IO[bytes], size: int) -> None:
        at, ended = len(_MAGIC), False
        while not ended and at < size:
            header, length, at_data, why = _head(file, at, size)
            if header is None:
                self._cut(at, size, why)
                break
            left = size - at_data
            ended = length > left
            kind = _byte(header, b"op")
            if kind in (_CHUNK, _CONNECTION, _MESSAGE):
                self._record(file, kind, header, min(length, left), at, cut=ended)
            elif kind == _BAG:
                self._bag(header)
            if ended:
                self._cut(at, size, f"a record declares {length} bytes where {left} are left")
            at = at_data + length
            file.seek(min(at, size))
        self._finish()

    def _bag(self, header: Mapping[bytes, bytes]) -> None:
        if header.get(b"encryptor"):
            raise StoreError(f"'{self.path}' is encrypted and cannot be read.")
        if header.get(b"index_pos") == bytes(8):
            self.collector.notes.append(
                f"'{self.path.name}' has no index: the recorder did not close it. It was read from "
                "front to back."
            )

    def _record(
        self,
        file: IO[bytes],
        kind: int,
        header: Mapping[bytes, bytes],
        length: int,
        at: int,
        *,
        cut: bool,
    ) -> None:
        if length > _LARGEST:
            self.collector.notes.append(
                f"'{self.path.name}': a record of {length} bytes at byte {at} is larger than "
                f"{_LARGEST} and was left out."
            )
            return
        data = file.read(length)
        if kind == _CHUNK:
            self._chunk(header, data, at, cut=cut)
        elif not cut:
            self._small(kind, header, data)

    def _chunk(self, header: Mapping[bytes, bytes], data: bytes, at: int, *, cut: bool) -> None:
        kind = header.get(b"compression", b"none").decode("ascii", errors="replace")
        declared = int.from_bytes(header.get(b"size", b"")[:8], "little")
        if declared > _LARGEST:
            self.collector.notes.append(
                f"'{self.path.name}': the chunk at byte {at} declares {declared} bytes."
            )
            return
        found = unpack(data, kind, declared)
        if found.why and not cut:
            self.collector.notes.append(
                f"'{self.path.name}': the chunk at byte {at} is damaged: {found.why}."
            )
        used = 0
        for op, head, body, end in _records(found.data):
            self._small(op, head, body)
            used = end
        if used < len(found.data) and not cut and not found.why:
            self.collector.notes.append(
                f"'{self.path.name}': the chunk at byte {at} is damaged: its records end at byte "
                f"{used} of {len(found.data)}."
            )

    def _small(self, kind: int, header: Mapping[bytes, bytes], data: bytes) -> None:
        number = header.get(b"conn", b"")
        if len(number) != 4:
            self._broken += kind in (_MESSAGE, _CONNECTION)
            return
        connection = int.from_bytes(number, "little")
        if kind == _CONNECTION:
            if connection not in self._topics:
                self._topics[connection] = self._topic(header, data)
        elif kind == _MESSAGE:
            self._message(connection, header.get(b"time", b""), data)

    def _message(self, connection: int, time: bytes, data: bytes) -> None:
        if len(time) != 8:
            self._broken += 1
        elif connection not in self._topics:
            self._orphans += 1
        elif (topic := self._topics[connection]) is not None:
            seconds, nanoseconds = struct.unpack("<II", time)
            self.collector.add(topic, seconds * 1_000_000_000 + nanoseconds, data)

    def _topic(self, header: Mapping[bytes, bytes], data: bytes) -> Topic | None:
        fields = _fields(data) or {}
        name = _text(header.get(b"topic") or fields.get(b"topic", b""))
        if not self.collector.wants(name):
            return None
        schema = Schema(
            name=_text(fields.get(b"type", b"")),
            encoding="ros1msg",
            text=_text(fields.get(b"message_definition", b"")),
        )
        source = f"{self.path.name}:{name}"
        return make_topic(name, "ros1", schema, source, self.options.columns)

    def _cut(self, at: int, size: int, why: str) -> None:
        self.collector.notes.append(
            f"'{self.path.name}' was cut off or is damaged at byte {at}: {why}; {size - at} of "
            f"{size} bytes could not be used whole. {self.collector.messages} message(s) before "
            "that were read."
        )

    def _finish(self) -> None:
        name, notes = self.path.name, self.collector.notes
        if self._orphans:
            notes.append(f"'{name}': {self._orphans} message(s) belong to no declared topic.")
        if self._broken:
            notes.append(f"'{name}': {self._broken} record(s) are malformed and were left out.")


def _head(file: IO[bytes], at: int, size: int) -> tuple[dict[bytes, bytes] | None, int, int, str]:
    """Header of a record, length of its data, where they begin; or why there is none."""
    raw = file.read(4)
    length = int.from_bytes(raw, "little")
    if len(raw) < 4 or length > size - at - 8:
        return (
            None,
            0,
            0,
            f"a header declares {length} bytes where {max(size - at - 4, 0)} are left",
        )
    if length > _HEADER:
        return None, 0, 0, f"a header declares {length} bytes"
    header = _fields(file.read(length))
    raw = file.read(4)
    if header is None or b"op" not in header or len(raw) < 4:
        return None, 0, 0, "what follows is no record"
    return header, int.from_bytes(raw, "little"), at + 8 + length, ""


def _records(data: bytes) -> Iterator[tuple[int, dict[bytes, bytes], bytes, int]]:
    """Records inside a chunk, up to the first that does not fit: kind, header, data, end."""
    at = 0
    while at + 4 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        begin = at + 4 + length
        if begin + 4 > len(data):
            return
        header = _fields(data[at + 4 : begin])
        (size,) = struct.unpack_from("<I", data, begin)
        at = begin + 4 + size
        if header is None or at > len(data):
            return
        yield _byte(header, b"op"), header, data[begin + 4 : at], at


def _fields(data: bytes) -> dict[bytes, bytes] | None:
    """``name=value`` fields, each with its length before it; ``None`` if they do not fit."""
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        if at + 4 > len(data):
            return None
        (length,) = struct.unpack_from("<I", data, at)
        at += 4
        if length > len(data) - at:
            return None
        name, mark, value = data[at : at + length].partition(b"=")
        if not mark:
            return None
        found[name] = value
        at += length
    return found


def _byte(header: Mapping[bytes, bytes], name: bytes) -> int:
    value = header.get(name, b"")
    return value[0] if len(value) == 1 else -1


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")
