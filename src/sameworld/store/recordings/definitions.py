"""Message definitions (``.msg`` and IDL text) parsed into field lists; no code is generated."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from sameworld.store.recordings.flatten import MessageError

__all__ = ["Definitions", "FieldType", "known_definitions", "normal_name", "parse_definitions"]

Holder = Literal["one", "array", "sequence"]

_LONGEST = 1 << 18
_LINE = re.compile(r"^={3,}[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class FieldType:
    """Type of a field.

    Attributes:
        base: Name of a primitive; empty for a struct.
        struct: Name of a struct; empty for a primitive.
        holder: Whether there is one, a fixed number, or a counted number of them.
        size: The fixed number.
    """

    base: str = ""
    struct: str = ""
    holder: Holder = "one"
    size: int = 0


Fields = tuple[tuple[str, FieldType], ...]


@dataclass(frozen=True, kw_only=True)
class Definitions:
    """Structs by name, e.g. ``sensor_msgs/msg/JointState``.

    Attributes:
        structs: Fields of each struct.
    """

    structs: dict[str, Fields] = field(default_factory=dict[str, Fields])

    def fields(self, name: str) -> Fields:
        """Fields of a struct.

        Raises:
            MessageError: It is not defined.
        """
        found = self.structs.get(name, _BUILT_IN.get(name))
        if found is None:
            raise MessageError(f"the type '{name}' is not defined")
        return found


_BUILT_IN: dict[str, Fields] = {
    f"builtin_interfaces/msg/{name}": (
        ("sec", FieldType(base="int32")),
        ("nanosec", FieldType(base="uint32")),
    )
    for name in ("Time", "Duration")
}


def parse_definitions(text: str, name: str, language: Literal["msg", "idl"]) -> Definitions:
    """Parse the definition of a message and of everything it contains.

    Args:
        text: The definition, nested ones included.
        name: Type name, e.g. ``sensor_msgs/msg/JointState`` or ``sensor_msgs/JointState``.
        language: What the text is written in.

    Raises:
        MessageError: The text is no such definition.
    """
    from rosbags.typesys import get_types_from_idl, get_types_from_msg
    from rosbags.typesys.msg import MSGParser

    if len(text) > _LONGEST:
        raise MessageError(f"its definition has {len(text)} characters")
    plain = text.replace("\r\n", "\n")
    try:
        if language == "idl":
            parsed = {
                k: v for part in _idl_parts(plain) for k, v in get_types_from_idl(part).items()
            }
        else:
            parsed = get_types_from_msg(_LINE.sub(MSGParser.Separator, plain), normal_name(name))
    except Exception as cause:  # the parser raises whatever a malformed text makes of it
        raise MessageError(f"its definition cannot be parsed ({type(cause).__name__})") from cause
    return Definitions(structs={key: _fields(value[1]) for key, value in parsed.items()})


def known_definitions(name: str) -> Definitions:
    """Definitions of the messages that ROS 2 ships, for bags that hold none.

    Raises:
        MessageError: It is none of them.
    """
    from rosbags.typesys.stores.ros2_humble import FIELDDEFS

    found = Definitions(structs={key: _fields(value[1]) for key, value in FIELDDEFS.items()})
    if normal_name(name) not in found.structs:
        raise MessageError(
            f"the recording holds no definition of '{name}', and it is no common ROS 2 message"
        )
    return found


def normal_name(name: str) -> str:
    """``pkg/Type`` as ``pkg/msg/Type``."""
    parts = name.replace("::", "/").split("/")
    return f"{parts[0]}/msg/{parts[1]}" if len(parts) == 2 else "/".join(parts)


def _idl_parts(text: str) -> list[str]:
    """The files of an IDL schema, without the lines that stand between them."""
    plain = re.sub(r"^(IDL: .*|#include .*)$", "", text, flags=re.MULTILINE)
    return [part for part in _LINE.split(plain) if part.strip()]


def _fields(given: Any) -> Fields:
    return tuple((str(name), _type(kind)) for name, kind in given)


def _type(kind: Any) -> FieldType:
    from rosbags.interfaces import Nodetype

    node, inner = kind
    if node == Nodetype.BASE:
        return FieldType(base=inner[0])
    if node == Nodetype.NAME:
        return FieldType(struct=inner)
    part, size = inner
    base = part[1][0] if part[0] == Nodetype.BASE else ""
    struct = "" if base else part[1]
    fixed = node == Nodetype.ARRAY
    return FieldType(
        base=base, struct=struct, holder="array" if fixed else "sequence", size=size if fixed else 0
    )
