"""The parts of a scene that are lists of records: components, cameras, history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sameworld.core.errors import SceneError, StoreError, closest
from sameworld.core.records import Camera
from sameworld.core.scene import Component, HistoryLine
from sameworld.store.files import parse_json, plain_json

__all__ = [
    "cameras_from",
    "cameras_record",
    "components_from",
    "components_record",
    "history_from",
    "history_text",
    "records_of",
]

_SCHEMA = 1


def components_record(components: Sequence[Component]) -> dict[str, Any]:
    """JSON-ready record of components."""
    rows = [{**vars(c), "settings": dict(c.settings)} for c in components]
    return {"schema": _SCHEMA, "components": rows}


def components_from(record: Any, where: str) -> tuple[Component, ...]:
    """Components of a record.

    Raises:
        StoreError: Another schema, unknown or missing keys, or values of another type.
    """
    components = tuple(
        _built(Component, row, where) for row in records_of(record, "components", where)
    )
    for c in components:
        words = (c.name, c.type, c.target)
        if not all(isinstance(word, str) for word in words) or not isinstance(c.settings, dict):
            raise StoreError(f"'{where}': component {c.name!r} has values of the wrong type.")
    return components


def cameras_record(cameras: Sequence[Camera]) -> dict[str, Any]:
    """JSON-ready record of cameras."""
    return {"schema": _SCHEMA, "cameras": [vars(camera) for camera in cameras]}


def cameras_from(record: Any, where: str) -> tuple[Camera, ...]:
    """Cameras of a record.

    Raises:
        StoreError: Another schema, unknown or missing keys.
        SceneError: A camera is impossible.
    """
    return tuple(_built(Camera, row, where) for row in records_of(record, "cameras", where))


def history_text(history: Sequence[HistoryLine]) -> str:
    """One JSON object per line, oldest first."""
    lines = [json.dumps(plain_json(line.to_json()), allow_nan=False) for line in history]
    return "".join(f"{line}\n" for line in lines)


def history_from(text: str, where: str) -> tuple[HistoryLine, ...]:
    """History lines of a text.

    Raises:
        StoreError: A line is not JSON.
        SceneError: A line is no history line.
    """
    found: list[HistoryLine] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            found.append(HistoryLine.from_json(parse_json(line, f"{where}, line {number}")))
    return tuple(found)


def records_of(record: Any, key: str, where: str) -> list[Any]:
    """The list under ``key`` of a record with a schema.

    Raises:
        StoreError: Another schema, unknown keys, or no list.
    """
    if not isinstance(record, dict) or not isinstance(record.get(key), list):
        raise StoreError(f"'{where}' must hold a JSON object with a list '{key}'.")
    if record.get("schema") != _SCHEMA:
        raise StoreError(
            f"'{where}' has schema {record.get('schema')!r}; this version reads {_SCHEMA}."
        )
    unknown = sorted(set(record) - {"schema", key})
    if unknown:
        raise StoreError(
            f"'{where}' has the unknown key '{unknown[0]}'.{closest(unknown[0], [key])}"
        )
    return record[key]


def _built(kind: type[Any], row: Any, where: str) -> Any:
    if not isinstance(row, dict):
        raise StoreError(f"'{where}': a {kind.__name__.lower()} must be an object, got {row!r}.")
    try:
        return kind(**row)
    except TypeError as cause:
        raise StoreError(f"'{where}': {kind.__name__.lower()} record: {cause}.") from cause
    except SceneError as cause:
        raise SceneError(f"'{where}': {cause}") from cause
