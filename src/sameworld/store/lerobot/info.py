"""``meta/info.json``: what a LeRobot dataset says of itself, checked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from string import Formatter
from typing import Any

from sameworld.core.errors import StoreError, closest, listed
from sameworld.store.files import read_json

__all__ = ["INDEX_COLUMNS", "LerobotFeature", "LerobotInfo", "lerobot_info"]

#: Columns every dataset has besides its features.
INDEX_COLUMNS = ("timestamp", "frame_index", "episode_index", "index", "task_index")

_VERSION = re.compile(r"v?(2\.0|2\.1|3\.0)")
_SPEC = re.compile(r"(0?[1-9]?d?)?")
_OLD_DATA = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
_NEW_DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_FIELDS = {
    True: ("chunk_index", "file_index", "video_key"),
    False: ("episode_chunk", "episode_index", "video_key"),
}
_FPS_LIMIT = 1e6
_FEATURES = 10_000


@dataclass(frozen=True, kw_only=True)
class LerobotFeature:
    """A column of a dataset, or a camera.

    Attributes:
        name: Key, e.g. ``observation.state``.
        dtype: ``float32``, ``int64``, ``bool``, ``string``, ``image``, ``video``, ...
        shape: Shape of one sample; LeRobot writes scalars as ``(1,)``.
        labels: Names of the components as the dataset gives them, flattened; empty if none.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    labels: tuple[str, ...] = ()

    @property
    def is_camera(self) -> bool:
        """Whether it holds pictures."""
        return self.dtype in ("video", "image")


@dataclass(frozen=True, kw_only=True)
class LerobotInfo:
    """What ``meta/info.json`` says.

    Attributes:
        version: ``3.0``, ``2.1`` or ``2.0``.
        fps: Rows a second.
        features: Columns and cameras, without the index columns.
        episodes: Number of episodes it claims; ``None`` if it does not say.
        frames: Number of rows it claims; ``None`` if it does not say.
        tasks: Number of tasks it claims; ``None`` if it does not say.
        robot: Kind of robot, empty if unknown.
        chunks_size: Episodes (2.x) or files (3.0) in a folder.
        data_path: Template of the data files.
        video_path: Template of the video files; empty if there are none.
    """

    version: str
    fps: float
    features: tuple[LerobotFeature, ...]
    episodes: int | None
    frames: int | None
    tasks: int | None
    robot: str
    chunks_size: int
    data_path: str
    video_path: str

    @property
    def is_new(self) -> bool:
        """Whether one file holds several episodes (version 3.0)."""
        return self.version == "3.0"

    def data_file(self, place: Mapping[str, int]) -> str:
        """File of rows, relative to the dataset, for the indices of a template."""
        return _filled(self.data_path, place, "data_path")

    def video_file(self, key: str, place: Mapping[str, int]) -> str:
        """File of a camera, relative to the dataset, for the indices of a template."""
        return _filled(self.video_path, {**place, "video_key": key}, "video_path")


def lerobot_info(folder: str | Path) -> LerobotInfo:
    """Read what a LeRobot dataset (versions 2.0, 2.1, 3.0) says of itself.

    Args:
        folder: Folder with ``meta/info.json``.

    Raises:
        StoreError: No dataset, another version, impossible rates, shapes or path templates.
    """
    path = Path(folder) / "meta" / "info.json"
    if not path.is_file():
        raise StoreError(f"'{folder}' is no LeRobot dataset: it has no 'meta/info.json'.")
    record = read_json(path, limit=1 << 26)
    if not isinstance(record, dict):
        raise StoreError(f"'{path}' must hold a JSON object, got {type(record).__name__}.")
    version = _version(record, path)
    new = version == "3.0"
    info = LerobotInfo(
        version=version,
        fps=_fps(record, path),
        features=_features(record, path),
        episodes=_count(record, "total_episodes", path),
        frames=_count(record, "total_frames", path),
        tasks=_count(record, "total_tasks", path),
        robot=record["robot_type"] if isinstance(record.get("robot_type"), str) else "",
        chunks_size=_count(record, "chunks_size", path) or 1000,
        data_path=_template(record, "data_path", new, path) or (_NEW_DATA if new else _OLD_DATA),
        video_path=_template(record, "video_path", new, path),
    )
    return info


def _version(record: Mapping[str, Any], path: Path) -> str:
    given = record.get("codebase_version")
    match = _VERSION.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise StoreError(
            f"'{path}' has codebase_version {given!r:.60}; versions 2.0, 2.1 and 3.0 are read. "
            "Convert the dataset with LeRobot's own converter."
        )
    return match.group(1)


def _fps(record: Mapping[str, Any], path: Path) -> float:
    fps: Any = record.get("fps")
    number = isinstance(fps, int | float) and not isinstance(fps, bool)
    if not number or not math.isfinite(fps) or not 0 < fps <= _FPS_LIMIT:
        raise StoreError(
            f"'{path}' has fps = {fps!r:.60}; it must be a positive number of rows a second."
        )
    return float(fps)


def _count(record: Mapping[str, Any], key: str, path: Path) -> int | None:
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 48:
        raise StoreError(f"'{path}' has {key} = {value!r:.60}; it must be a count.")
    return value


def _features(record: Mapping[str, Any], path: Path) -> tuple[LerobotFeature, ...]:
    given = record.get("features")
    if not isinstance(given, dict) or not given or len(given) > _FEATURES:
        raise StoreError(f"'{path}' must map names to dtypes and shapes under 'features'.")
    return tuple(
        _feature(name, row, path) for name, row in given.items() if name not in INDEX_COLUMNS
    )


def _feature(name: str, row: Any, path: Path) -> LerobotFeature:
    if not isinstance(row, dict) or not isinstance(row.get("dtype"), str):
        raise StoreError(f"'{path}': feature '{name}' has no dtype, got {row!r:.80}.")
    shape: Any = row.get("shape")
    good = isinstance(shape, list) and len(shape) <= 8
    if not good or not all(type(n) is int and 0 <= n < 1 << 31 for n in shape):
        raise StoreError(f"'{path}': feature '{name}' has the shape {shape!r:.80}.")
    return LerobotFeature(
        name=name,
        dtype=row["dtype"],
        shape=tuple(shape),
        labels=tuple(_flat_names(row.get("names"))),
    )


def _flat_names(names: Any) -> list[str]:
    """Names as they occur: a list, ``{"motors": [...]}``, ``{"x": 0, "y": 1}``, or nothing."""
    if isinstance(names, str):
        return [names]
    if isinstance(names, list):
        return [text for part in names for text in _flat_names(part)]
    if isinstance(names, dict):
        if names and all(type(value) is int for value in names.values()):
            return [str(name) for name in sorted(names, key=lambda key: names[key])]
        return [text for part in names.values() for text in _flat_names(part)]
    return []


def _template(record: Mapping[str, Any], key: str, new: bool, path: Path) -> str:
    """A path template, if it leads only to files inside the dataset."""
    text = record.get(key)
    if text is None:
        return ""
    if not isinstance(text, str) or len(text) > 1000:
        raise StoreError(f"'{path}' has {key} = {text!r:.80}; it must be a path template.")
    try:
        parts = list(Formatter().parse(text))
    except ValueError as cause:
        raise StoreError(f"'{path}': {key} {text!r:.200} is no template: {cause}.") from cause
    for _, name, spec, conversion in parts:
        if name is None:
            continue
        if name not in _FIELDS[new]:
            raise StoreError(
                f"'{path}': {key} {text!r:.200} asks for '{name}'; a template has "
                f"{listed(_FIELDS[new])}.{closest(name, _FIELDS[new])}"
            )
        if conversion or _SPEC.fullmatch(spec or "") is None:
            raise StoreError(f"'{path}': {key} {text!r:.200} formats '{name}' in an odd way.")
    _demand_inside(text, key)
    return text


def _filled(template: str, place: Mapping[str, int | str], key: str) -> str:
    try:
        text = template.format(**place)
    except (KeyError, ValueError, IndexError) as cause:
        raise StoreError(f"{key} {template!r:.200} cannot be filled: {cause}.") from cause
    _demand_inside(text, key)
    return text


def _demand_inside(text: str, key: str) -> None:
    parts = PurePosixPath(text).parts
    if not parts or text.startswith("/") or ".." in parts or any(c in text for c in "\\\0"):
        raise StoreError(f"{key} leads to {text!r:.200}, which is outside the dataset.")
    if re.match(r"[A-Za-z]:", text):
        raise StoreError(f"{key} leads to {text!r:.200}, which is outside the dataset.")
