"""Messages as trees of mappings, lists and numbers, brought to named groups of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["BYTES", "DEPTH", "MessageError", "Sample", "Skipped", "flatten"]

#: Deepest nesting followed.
DEPTH = 32
_NAMES = ("name", "names", "joint_names")
_KEYS = ("child_frame_id", "name", "joint_name", "id")
_SECONDS = ("sec", "secs", "seconds")
_NANOS = ("nanosec", "nsec", "nsecs", "nanos", "nanoseconds")
_STAMPED = ("header", "timestamp", "stamp")


class MessageError(ValueError):
    """A message that cannot be decoded; the reader counts it and goes on."""


@dataclass(frozen=True)
class Skipped:
    """Stands for numbers that were not decoded: bytes, or an array that is too long."""

    count: int
    what: str


BYTES: Final = "bytes"


@dataclass(kw_only=True)
class Sample:
    """Numbers of one message.

    Attributes:
        stamp: Stamp in its header [ns], if it has one.
        groups: Labels and numbers by path of the field they stand in.
        skipped: Fields left out, with the reason.
    """

    stamp: int | None = None
    groups: dict[str, tuple[list[str], list[float]]] = field(
        default_factory=dict[str, tuple[list[str], list[float]]]
    )
    skipped: dict[str, str] = field(default_factory=dict[str, str])

    def add(self, path: str, label: str, value: float) -> None:
        """Append one number to a group."""
        labels, values = self.groups.setdefault(path, ([], []))
        labels.append(label)
        values.append(value)


def flatten(tree: Any, most: int) -> Sample:
    """Bring a decoded message to groups of numbers.

    Numbers standing side by side form a group called by the path of the field around them; lists of
    numbers form groups of their own, labelled by a list of as many names beside or above them
    (``name`` of a joint state), else by position. Quaternions come in the order w, x, y, z.
    Structs in lists are told apart by their frame or name, not by their place.

    Args:
        tree: Mappings, lists, numbers, texts.
        most: Largest number of columns of one group.

    Raises:
        MessageError: Nested too deeply, or a number no float can hold.
    """
    sample = Sample(stamp=_stamp(tree))
    try:
        _walk(tree, "", (), sample, 0)
    except (OverflowError, RecursionError) as cause:
        raise MessageError(str(cause)) from cause
    for path, (labels, _) in list(sample.groups.items()):
        if len(labels) > most:
            del sample.groups[path]
            sample.skipped[path] = f"it holds {len(labels)} numbers a message (most: {most})"
    return sample


def _walk(node: Any, path: str, names: Sequence[str], sample: Sample, depth: int) -> None:
    if depth > DEPTH:
        raise MessageError(f"it is nested more than {DEPTH} levels deep")
    if isinstance(node, Mapping):
        _mapping(node, path, _names_in(node) or names, sample, depth)
    elif isinstance(node, (list, tuple)):
        _sequence(node, path, names, sample, depth)
    elif isinstance(node, (int, float)):
        sample.add("", path or "value", float(node))


def _mapping(
    node: Mapping[str, Any], path: str, names: Sequence[str], sample: Sample, depth: int
) -> None:
    keys = ("w", "x", "y", "z") if set(node) == {"w", "x", "y", "z"} else tuple(node)
    for key in keys:
        value = node[key]
        inner = f"{path}.{key}" if path else key
        if isinstance(value, (bool, int, float)):
            sample.add(path, key, float(value))
        elif isinstance(value, Skipped):
            sample.skipped[inner] = _reason(value)
        elif isinstance(value, Mapping):
            seconds = _seconds(value)
            if seconds is None:
                if key != "header":
                    _walk(value, inner, names, sample, depth + 1)
            elif key not in _STAMPED:
                sample.add(path, key, seconds * 1e-9)
        elif isinstance(value, (list, tuple)):
            _walk(value, inner, names, sample, depth + 1)


def _sequence(
    node: Sequence[Any], path: str, names: Sequence[str], sample: Sample, depth: int
) -> None:
    if not node:
        return
    if all(isinstance(v, (bool, int, float)) or v is None for v in node):
        labels = names if len(names) == len(node) else [str(i) for i in range(len(node))]
        numbers = [float("nan") if v is None else float(v) for v in node]
        taken = sample.groups.setdefault(path, ([], []))
        taken[0].extend(labels)
        taken[1].extend(numbers)
        return
    keys = [_key(item) for item in node]
    distinct = len(set(keys)) == len(keys) and "" not in keys
    for index, item in enumerate(node):
        label = keys[index] if distinct else str(index)
        if isinstance(item, (bool, int, float)):
            sample.add(path, label, float(item))
        else:
            _walk(item, f"{path}[{label}]", names, sample, depth + 1)


def _reason(skipped: Skipped) -> str:
    return f"it holds {skipped.count} {skipped.what} a message"


def _names_in(node: Mapping[str, Any]) -> Sequence[str]:
    for key in _NAMES:
        given = node.get(key)
        if isinstance(given, (list, tuple)) and given and all(isinstance(n, str) for n in given):
            return given if len(set(given)) == len(given) else ()
    return ()


def _key(item: Any) -> str:
    if isinstance(item, Mapping):
        for key in _KEYS:
            if isinstance(item.get(key), str):
                return item[key]
    return ""


def _stamp(tree: Any) -> int | None:
    """Stamp of a message [ns]: of its header, else of its first element's header."""
    if not isinstance(tree, Mapping):
        return None
    header = tree.get("header")
    places = [header.get("stamp")] if isinstance(header, Mapping) else []
    places += [tree.get("timestamp"), tree.get("stamp")]
    for place in places:
        found = _seconds(place) if isinstance(place, Mapping) else None
        if found is not None:
            return found
    if len(tree) == 1:
        (only,) = tree.values()
        if isinstance(only, (list, tuple)) and only:
            return _stamp(only[0])
    return None


def _seconds(node: Mapping[str, Any]) -> int | None:
    """Nanoseconds of a mapping that is a time or duration."""
    if len(node) != 2:
        return None
    whole = next((node[k] for k in _SECONDS if k in node), None)
    part = next((node[k] for k in _NANOS if k in node), None)
    if isinstance(whole, int) and isinstance(part, int):
        return whole * 1_000_000_000 + part
    return None
