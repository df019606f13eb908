"""Tables of a LeRobot dataset: which episodes there are, where they stand, what was done."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sameworld.core.errors import StoreError
from sameworld.store.files import parse_json, read_text
from sameworld.store.lerobot.info import LerobotInfo
from sameworld.store.lerobot.tables import column_names, read_table

__all__ = ["EpisodeEntry", "VideoPlace", "read_entries", "read_tasks"]

_TEXT = 1 << 30


@dataclass(frozen=True, kw_only=True)
class VideoPlace:
    """Where the images of one camera of one episode stand.

    Attributes:
        file: Video file, relative to the dataset.
        begin: Time in the file at which the episode begins [s].
    """

    file: str
    begin: float = 0.0


@dataclass(frozen=True, kw_only=True)
class EpisodeEntry:
    """What the tables say of an episode.

    Attributes:
        index: Episode index.
        length: Rows it claims; ``None`` if it does not say.
        tasks: What was done, in words.
        data_file: File of rows, relative to the dataset.
        videos: Place of each camera.
    """

    index: int
    length: int | None
    tasks: tuple[str, ...]
    data_file: str
    videos: Mapping[str, VideoPlace] = field(default_factory=dict[str, VideoPlace])


def read_entries(folder: Path, info: LerobotInfo, *, limit: int) -> dict[int, EpisodeEntry]:
    """Entries by episode index, in order.

    Raises:
        StoreError: No table, damage, an index twice, or values that cannot be.
    """
    found: dict[int, EpisodeEntry] = {}
    rows = _new_rows(folder, info, limit) if info.is_new else _old_rows(folder)
    for row, where in rows:
        entry = _new_entry(row, info, where) if info.is_new else _old_entry(row, info, where)
        if entry.index in found:
            raise StoreError(f"'{where}' lists episode {entry.index} a second time.")
        found[entry.index] = entry
    return dict(sorted(found.items()))


def read_tasks(folder: Path, *, limit: int) -> dict[int, str] | None:
    """Texts by task index; ``None`` if the dataset has no table of tasks.

    Raises:
        StoreError: The table is damaged.
    """
    table, lines = folder / "meta" / "tasks.parquet", folder / "meta" / "tasks.jsonl"
    if table.is_file():
        return dict(_task(row, str(table)) for row in _task_rows(table, limit))
    if lines.is_file():
        return dict(_task(row, where) for row, where in _json_lines(lines))
    return None


def _task_rows(path: Path, limit: int) -> Iterator[Mapping[str, Any]]:
    """Rows of ``tasks.parquet``, whose text stands in a column named by nobody in particular."""
    names = column_names(path)
    texts = [name for name in names if name != "task_index"]
    if "task_index" not in names or not texts:
        raise StoreError(f"'{path}' has no columns of task texts and 'task_index'.")
    text = "task" if "task" in texts else texts[-1]
    for row in read_table(path, ["task_index", text], limit=limit).to_pylist():
        yield {"task_index": row["task_index"], "task": row[text]}


def _task(row: Mapping[str, Any], where: str) -> tuple[int, str]:
    number, text = row.get("task_index"), row.get("task")
    if type(number) is not int or not isinstance(text, str):
        raise StoreError(f"'{where}' has the row {dict(row)!r:.120}; a task has an index and text.")
    return number, text


def _new_rows(
    folder: Path, info: LerobotInfo, limit: int
) -> Iterator[tuple[Mapping[str, Any], str]]:
    paths = sorted((folder / "meta" / "episodes").glob("*/*.parquet"))
    if not paths:
        raise StoreError(
            f"'{folder / 'meta' / 'episodes'}' holds no table of episodes "
            "(chunk-*/file-*.parquet). Without it nobody knows where an episode stands."
        )
    wanted = ["episode_index", "length", "tasks", "data/chunk_index", "data/file_index"]
    for feature in info.features:
        fields = ("chunk_index", "file_index", "from_timestamp")
        wanted += [f"videos/{feature.name}/{f}" for f in fields if feature.dtype == "video"]
    for path in paths:
        for row in read_table(path, wanted, limit=limit).to_pylist():
            yield row, str(path)


def _new_entry(row: Mapping[str, Any], info: LerobotInfo, where: str) -> EpisodeEntry:
    index = _count(row, "episode_index", where)
    place = _place(row, "data", where)
    videos: dict[str, VideoPlace] = {}
    for name in [f.name for f in info.features if f.dtype == "video"]:
        if info.video_path and row.get(f"videos/{name}/file_index") is not None:
            file = info.video_file(name, _place(row, f"videos/{name}", where))
            begin = row.get(f"videos/{name}/from_timestamp")
            if not isinstance(begin, float) or not math.isfinite(begin) or begin < 0:
                raise StoreError(f"'{where}': episode {index} begins at {begin!r} in '{file}'.")
            videos[name] = VideoPlace(file=file, begin=begin)
    return EpisodeEntry(
        index=index,
        length=_optional_count(row, "length", where),
        tasks=_texts(row.get("tasks")),
        data_file=info.data_file(place),
        videos=videos,
    )


def _place(row: Mapping[str, Any], prefix: str, where: str) -> dict[str, int]:
    names = ("chunk_index", "file_index")
    return {name: _count(row, f"{prefix}/{name}", where) for name in names}


def _old_rows(folder: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    return _json_lines(folder / "meta" / "episodes.jsonl")


def _old_entry(row: Mapping[str, Any], info: LerobotInfo, where: str) -> EpisodeEntry:
    index = _count(row, "episode_index", where)
    place = {"episode_index": index, "episode_chunk": index // info.chunks_size}
    cameras = [f.name for f in info.features if f.dtype == "video"] if info.video_path else []
    return EpisodeEntry(
        index=index,
        length=_optional_count(row, "length", where),
        tasks=_texts(row.get("tasks")),
        data_file=info.data_file(place),
        videos={name: VideoPlace(file=info.video_file(name, place)) for name in cameras},
    )


def _json_lines(path: Path) -> Iterator[tuple[Mapping[str, Any], str]]:
    for number, text in enumerate(read_text(path, limit=_TEXT).split("\n"), start=1):
        if text.strip():
            where = f"{path}, line {number}"
            row = parse_json(text, where)
            if not isinstance(row, dict):
                raise StoreError(f"'{where}' must hold a JSON object, got {row!r:.80}.")
            yield row, where


def _texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(t for t in value if isinstance(t, str)) if isinstance(value, list) else ()


def _count(row: Mapping[str, Any], key: str, where: str) -> int:
    value = row.get(key)
    if type(value) is not int or not 0 <= value < 1 << 48:
        raise StoreError(f"'{where}' has {key} = {value!r:.60}; it must be a count.")
    return value


def _optional_count(row: Mapping[str, Any], key: str, where: str) -> int | None:
    return None if row.get(key) is None else _count(row, key, where)
