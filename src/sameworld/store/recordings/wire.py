"""ROS messages decoded by their definition: CDR (ROS 2) and the ROS 1 wire format.

Lengths are checked against the bytes that are there before anything is made of them, long arrays
and bytes are skipped over, and the number of values of one message is bounded.

Source: OMG, DDS-XTypes 1.3, section 7.4 (CDR); ROS wiki, msg (serialisation).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Literal

from sameworld.store.recordings.definitions import Definitions, FieldType
from sameworld.store.recordings.flatten import BYTES, DEPTH, MessageError, Skipped

__all__ = ["Wire", "decode_message"]

Wire = Literal["cdr", "ros1"]

_MOST_VALUES = 200_000
_CODES = {
    "bool": ("?", 1),
    "byte": ("B", 1),
    "char": ("B", 1),
    "int8": ("b", 1),
    "uint8": ("B", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "uint64": ("Q", 8),
    "float32": ("f", 4),
    "float64": ("d", 8),
}
_OCTETS = frozenset({"byte", "char", "uint8"})
_LONGEST_TEXT = 4096


def decode_message(
    data: bytes,
    name: str,
    definitions: Definitions,
    wire: Wire,
    most: int,
    first_only: bool = False,
) -> dict[str, Any]:
    """Decode one message to mappings, lists, numbers and texts.

    Args:
        data: The serialised message.
        name: Its type.
        definitions: That type and everything in it.
        wire: How it is serialised.
        most: Longest array of numbers that is unpacked.
        first_only: Stop after the first field (the header of pictures).

    Raises:
        MessageError: The bytes do not fit the definition.
    """
    reader = _reader(data, wire, definitions, most)
    try:
        return reader.struct(name, 0, first_only)
    except struct.error as cause:
        raise MessageError("it ends before its last field") from cause


def _reader(data: bytes, wire: Wire, definitions: Definitions, most: int) -> _Reader:
    if wire == "ros1":
        return _Reader(data=data, base=0, order="<", align=1, definitions=definitions, most=most)
    if len(data) < 4:
        raise MessageError("it has no CDR header")
    kind = data[0] << 8 | data[1]
    if kind not in (0, 1, 6, 7):  # plain CDR and plain CDR2, big and little endian
        raise MessageError(f"its CDR representation 0x{kind:04x} is not supported")
    order, align = "<" if kind & 1 else ">", 8 if kind < 2 else 4
    return _Reader(data=data, base=4, order=order, align=align, definitions=definitions, most=most)


@dataclass(kw_only=True)
class _Reader:
    data: bytes
    base: int
    order: str
    align: int
    definitions: Definitions
    most: int
    _at: int = 0
    _values: int = 0

    def __post_init__(self) -> None:
        self._at = self.base

    def struct(self, name: str, depth: int, first_only: bool = False) -> dict[str, Any]:
        """A struct as a mapping."""
        if depth > DEPTH:
            raise MessageError(f"it is nested more than {DEPTH} levels deep")
        fields = self.definitions.fields(name)
        if not fields and self.align > 1:
            self._at += 1  # CDR gives empty structs one byte
        found: dict[str, Any] = {}
        for key, kind in fields[:1] if first_only else fields:
            found[key] = self._field(kind, depth)
        return found

    def _field(self, kind: FieldType, depth: int) -> Any:
        self._count(1)
        if kind.holder == "one":
            return self._one(kind, depth)
        count = kind.size if kind.holder == "array" else self._number("I", 4)
        if kind.base in _CODES:
            return self._numbers(kind.base, count)
        if count > max(self.most, 1) and kind.struct:
            raise MessageError(f"it holds a list of {count} structs (most: {self.most})")
        if not kind.struct and count > len(self.data):
            raise MessageError(f"it declares {count} texts in {len(self.data)} bytes")
        self._count(count)
        return [self._one(kind, depth) for _ in range(count)]

    def _one(self, kind: FieldType, depth: int) -> Any:
        if kind.struct:
            return self.struct(kind.struct, depth + 1)
        if kind.base in _CODES:
            return self._number(*_CODES[kind.base])
        if kind.base == "string":
            return self._text(1)
        if kind.base == "wstring":
            return self._text(2)
        raise MessageError(f"the primitive '{kind.base}' is not supported")

    def _number(self, code: str, size: int) -> Any:
        self._pad(size)
        (value,) = struct.unpack_from(f"{self.order}{code}", self.data, self._at)
        self._at += size
        return value

    def _numbers(self, base: str, count: int) -> Any:
        code, size = _CODES[base]
        if count:
            self._pad(size)
        end = self._at + count * size
        if end > len(self.data):
            raise MessageError(
                f"it declares an array of {count} {base} in {len(self.data) - self._at} bytes"
            )
        begin, self._at = self._at, end
        if base in _OCTETS and count:
            return Skipped(count, BYTES)
        if count > self.most:
            return Skipped(count, f"numbers (most: {self.most})")
        self._count(count)
        return struct.unpack_from(f"{self.order}{count}{code}", self.data, begin)

    def _text(self, width: int) -> str:
        length = self._number("I", 4)
        end = self._at + length * width
        if end > len(self.data):
            raise MessageError(f"it declares a text of {length} bytes at its end")
        raw = self.data[self._at : min(end, self._at + _LONGEST_TEXT)]
        self._at = end
        return raw.decode("utf-8" if width == 1 else "utf-16-le", errors="replace").rstrip("\0")

    def _pad(self, size: int) -> None:
        step = min(size, self.align)
        self._at += -(self._at - self.base) % step

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > _MOST_VALUES:
            raise MessageError(f"it holds more than {_MOST_VALUES} values")
