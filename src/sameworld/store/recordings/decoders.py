"""Which decoder a topic takes, by the encoding of its messages and of its schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sameworld.store.recordings.definitions import (
    Definitions,
    known_definitions,
    normal_name,
    parse_definitions,
)
from sameworld.store.recordings.flatten import MessageError, Sample, flatten
from sameworld.store.recordings.topics import Decode, Topic
from sameworld.store.recordings.wire import Wire, decode_message

__all__ = ["Schema", "make_topic"]

_IMAGES = frozenset({"Image", "CompressedImage", "RawImage", "CompressedVideo"})
_CDR = {"ros2msg": "msg", "ros2idl": "idl", "omgidl": "idl"}


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What a recording says of the messages of a topic.

    Attributes:
        name: Type name.
        encoding: Language of the definition: ``ros1msg``, ``ros2msg``, ``ros2idl``, ``jsonschema``.
        text: The definition; empty if the recording holds none.
    """

    name: str
    encoding: str
    text: str


def make_topic(name: str, message: str, schema: Schema, source: str, most: int) -> Topic:
    """Find the decoder of a topic; a topic without one says why.

    Args:
        name: Topic name.
        message: Encoding of its messages: ``cdr``, ``ros1``, ``json``, ...
        schema: Its schema.
        source: Where it stands.
        most: Most numbers of one field.
    """
    images = schema.name.replace("::", "/").replace(".", "/").rpartition("/")[2] in _IMAGES
    try:
        decode = _decoder(message, schema, most, images)
    except MessageError as cause:
        if not images:
            return Topic(name=name, schema=schema.name, source=source, decode=None, why=str(cause))
        decode = _counted
    return Topic(name=name, schema=schema.name, source=source, decode=decode, images=images)


def _decoder(message: str, schema: Schema, most: int, images: bool) -> Decode:
    if message == "json":
        return _counted if images else _Json(most=most)
    if message in ("cdr", "ros1"):
        definitions = _definitions(message, schema)
        return _Binary(
            name=normal_name(schema.name),
            wire="cdr" if message == "cdr" else "ros1",
            definitions=definitions,
            most=most,
            images=images,
        )
    raise MessageError(
        f"messages of type '{schema.name}' in the encoding '{message}' are not supported (known: "
        "cdr, ros1, json); convert the topic to JSON or ROS messages"
    )


def _definitions(message: str, schema: Schema) -> Definitions:
    if not schema.text:
        if message == "cdr":
            return known_definitions(schema.name)
        raise MessageError(f"the recording holds no definition of '{schema.name}'")
    language = "msg" if message == "ros1" else _CDR.get(schema.encoding)
    if language is None:
        raise MessageError(f"a definition in the language '{schema.encoding}' is not supported")
    return parse_definitions(schema.text, schema.name, "idl" if language == "idl" else "msg")


def _counted(data: bytes) -> Sample:
    """A picture: one frame, nothing of it decoded."""
    return Sample(groups={"": (["frame"], [0.0])})


@dataclass(frozen=True, kw_only=True)
class _Json:
    most: int

    def __call__(self, data: bytes) -> Sample:
        try:
            tree = json.loads(data)
        except (ValueError, RecursionError) as cause:
            raise MessageError(f"it is no JSON ({str(cause)[:80]})") from cause
        return flatten(tree, self.most)


@dataclass(frozen=True, kw_only=True)
class _Binary:
    name: str
    wire: Wire
    definitions: Definitions
    most: int
    images: bool

    def __call__(self, data: bytes) -> Sample:
        tree: Mapping[str, Any] = decode_message(
            data, self.name, self.definitions, self.wire, self.most, self.images
        )
        if self.images:
            return Sample(stamp=flatten(tree, self.most).stamp, groups=_counted(data).groups)
        return flatten(tree, self.most)
