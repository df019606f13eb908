"""Lines of ``episodes.jsonl``: everything about an episode but its samples."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sameworld.core.belief import Belief
from sameworld.core.episode import Episode, EpisodeSource, Role
from sameworld.core.errors import EpisodeError, SameworldError, StoreError, closest
from sameworld.store.channel_files import Place

__all__ = ["ChannelLine", "IndexLine", "line_from", "line_record"]

_SCHEMA = 1
_FILE = re.compile(r"channels/[0-9]{4,9}-[a-z0-9-]{1,60}\.parquet")
_KEYS = (
    "schema",
    "id",
    "source",
    "scene",
    "session_id",
    "start",
    "session",
    "channels",
)
_CHANNEL_KEYS = ("name", "unit", "role", "noise", "shape", "file", "begin", "rows")


@dataclass(frozen=True, kw_only=True)
class ChannelLine:
    """What the index says of one channel; see ``Channel``."""

    name: str
    unit: str
    role: Role
    noise: float | None
    shape: tuple[int, ...]
    place: Place


@dataclass(frozen=True, kw_only=True, eq=False)
class IndexLine:
    """What the index says of one episode; see ``Episode``."""

    id: str
    source: EpisodeSource
    scene: str
    session_id: str
    start: Belief
    session: Belief
    channels: tuple[ChannelLine, ...]


def line_record(episode: Episode, places: Sequence[Place]) -> dict[str, Any]:
    """JSON-ready line of an episode."""
    channels = [
        {
            "name": channel.name,
            "unit": channel.unit,
            "role": channel.role,
            "noise": channel.noise,
            "shape": list(channel.values.shape[1:]),
            **vars(place),
        }
        for channel, place in zip(episode.channels, places, strict=True)
    ]
    return {
        "schema": _SCHEMA,
        "id": episode.id,
        "source": episode.source,
        "scene": episode.scene,
        "session_id": episode.session_id,
        "start": episode.start.to_json(),
        "session": episode.session.to_json(),
        "channels": channels,
    }


def line_from(record: Any, where: str) -> IndexLine:
    """Check a line and give it types.

    Raises:
        StoreError: Another schema, unknown or missing keys, wrong types, a file elsewhere.
        EpisodeError: A belief in it is inconsistent.
    """
    fields = _fields(record, _KEYS, where)
    if fields["schema"] != _SCHEMA:
        raise StoreError(
            f"'{where}' has schema {fields['schema']!r}; this version reads {_SCHEMA}."
        )
    for key in ("id", "source", "scene", "session_id"):
        _demand(isinstance(fields[key], str), key, fields[key], where)
    _demand(isinstance(fields["channels"], list), "channels", fields["channels"], where)
    return IndexLine(
        id=fields["id"],
        source=fields["source"],
        scene=fields["scene"],
        session_id=fields["session_id"],
        start=_belief(fields["start"], where),
        session=_belief(fields["session"], where),
        channels=tuple(_channel(row, where) for row in fields["channels"]),
    )


def _channel(record: Any, where: str) -> ChannelLine:
    row = _fields(record, _CHANNEL_KEYS, where)
    for key in ("name", "unit", "role"):
        _demand(isinstance(row[key], str), key, row[key], where)
    noise, shape, file = row["noise"], row["shape"], row["file"]
    number = isinstance(noise, (int, float)) and not isinstance(noise, bool)
    _demand(noise is None or number, "noise", noise, where)
    _demand(isinstance(shape, list) and all(map(_is_count, shape)), "shape", shape, where)
    _demand(isinstance(file, str) and _FILE.fullmatch(file) is not None, "file", file, where)
    _demand(_is_count(row["begin"]), "begin", row["begin"], where)
    _demand(_is_count(row["rows"]) and row["rows"] > 0, "rows", row["rows"], where)
    return ChannelLine(
        name=row["name"],
        unit=row["unit"],
        role=row["role"],
        noise=noise,
        shape=tuple(shape),
        place=Place(file=file, begin=row["begin"], rows=row["rows"]),
    )


def _fields(record: Any, keys: tuple[str, ...], where: str) -> dict[str, Any]:
    if not isinstance(record, dict):
        raise StoreError(f"'{where}' must hold a JSON object, got {type(record).__name__}.")
    unknown, missing = sorted(set(record) - set(keys)), [k for k in keys if k not in record]
    if unknown:
        raise StoreError(
            f"'{where}' has the unknown key '{unknown[0]}'.{closest(unknown[0], keys)}"
        )
    if missing:
        raise StoreError(f"'{where}' lacks the key '{missing[0]}'.")
    return record


def _belief(record: Any, where: str) -> Belief:
    try:
        return Belief.from_json(record)
    except SameworldError as cause:
        raise EpisodeError(f"'{where}': {cause}") from cause


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40


def _demand(fine: bool, key: str, value: Any, where: str) -> None:
    if not fine:
        raise StoreError(
            f"'{where}' has {key} = {value!r:.120}, which an episode store never writes."
        )
