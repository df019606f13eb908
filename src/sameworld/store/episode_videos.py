"""Images of stored episodes: MP4 files beside the channels, each frame with its own stamp.

Layout: ``videos/NNNN-name.mp4``, ``videos/NNNN-name.parquet`` with the column ``time`` [s] (the
stamps of the frames, exact), and ``videos.jsonl`` with one line per video. A video appears as a
whole: its line is added last, so a killed writer leaves the store as it was.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sameworld.core.arrays import Array, finite_array
from sameworld.core.episode import Stream
from sameworld.core.errors import EpisodeError, StoreError, closest, listed
from sameworld.store.episodes import episode_ids
from sameworld.store.files import parse_json, read_text, replacing, write_text
from sameworld.store.slugs import slug
from sameworld.store.video_encoding import Codec, encode_video

__all__ = ["episode_videos", "save_video"]

_INDEX = "videos.jsonl"
_FOLDER = "videos"
_SCHEMA = 1
_FILE = re.compile(r"videos/[0-9]{4,9}-[a-z0-9-]{1,60}\.mp4")
_KEYS = ("schema", "episode", "name", "file", "frames")


def save_video(
    folder: str | Path,
    episode: str,
    name: str,
    images: Iterable[NDArray[np.uint8]],
    time: ArrayLike,
    *,
    codec: Codec = "libx264",
) -> Stream:
    """Keep the images of one camera beside a stored episode.

    The coding is lossy; the stamps are kept exactly.

    Args:
        folder: Episode store.
        episode: Id of a stored episode.
        name: Name of the camera, unique within the episode.
        images: Images [H, W, 3] RGB of one size, taken one at a time.
        time: Stamps [N] s on the episode's clock, increasing by at least a microsecond.
        codec: Encoder.

    Returns:
        The stream, as ``episode_videos`` gives it back.

    Raises:
        EpisodeError: There is no such episode, or it has images of that name.
        StoreError: Images and stamps do not fit, or the folder cannot be written.
    """
    folder = Path(folder)
    known = episode_ids(folder)
    if episode not in known:
        raise EpisodeError(
            f"'{folder}' has no episode '{episode}'. Save the episode before its images."
            f"{closest(episode, known)}"
        )
    if any(row["name"] == name for row in _rows(folder) if row["episode"] == episode):
        raise EpisodeError(f"Episode '{episode}' already has images '{name}'.")
    stamps = finite_array(time, f"Images '{name}' time", error=EpisodeError, ndim=1)
    file = f"{_FOLDER}/{_next_number(folder):04d}-{slug(name)}.mp4"
    _write_film(folder / file, images, stamps, codec)
    _write_stamps((folder / file).with_suffix(".parquet"), stamps)
    row = {"schema": _SCHEMA, "episode": episode, "name": name, "file": file, "frames": len(stamps)}
    text = read_text(folder / _INDEX) if (folder / _INDEX).is_file() else ""
    write_text(folder / _INDEX, f"{text}{json.dumps(row)}\n")
    return _stream(name, file, stamps)


def episode_videos(folder: str | Path, episode: str) -> tuple[Stream, ...]:
    """Images of a stored episode as streams; ``stream_frames`` decodes them.

    Args:
        folder: Episode store.
        episode: Id of a stored episode.

    Returns:
        Streams of kind ``images``; ``source`` is the file relative to the store, ``time`` the
        exact stamps on the episode's clock [s].

    Raises:
        StoreError: The index or the stamps are damaged; names the file.
    """
    folder = Path(folder)
    return tuple(
        _stream(row["name"], row["file"], _read_stamps(folder, row))
        for row in _rows(folder)
        if row["episode"] == episode
    )


def _stream(name: str, file: str, stamps: Array) -> Stream:
    numbers = np.arange(len(stamps))
    return Stream(
        name=name, time=stamps, values=numbers, clock="episode", source=file, kind="images"
    )


def _write_film(
    path: Path, images: Iterable[NDArray[np.uint8]], stamps: Array, codec: Codec
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        encode_video(fresh, images, stamps, codec=codec)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _write_stamps(path: Path, stamps: Array) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with replacing(path) as file:
        pq.write_table(pa.table({"time": pa.array(stamps)}), file, compression="zstd")


def _read_stamps(folder: Path, row: dict[str, Any]) -> Array:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = (folder / row["file"]).with_suffix(".parquet")
    try:
        with pq.ParquetFile(path) as file:
            rows, names = file.metadata.num_rows, file.schema_arrow.names
            if rows != row["frames"] or names != ["time"]:
                raise StoreError(
                    f"'{path}' has {rows} rows and the columns {listed(names)}; the index wants "
                    f"{row['frames']} stamps 'time'."
                )
            column = file.read().column("time").combine_chunks()
    except (pa.ArrowException, OSError, ValueError) as cause:
        raise StoreError(f"'{path}' is damaged or missing: {cause}.") from cause
    if column.type != pa.float64() or column.null_count:
        raise StoreError(f"'{path}': column 'time' is {column.type}, not doubles without nulls.")
    return column.to_numpy()


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    if not (folder / _INDEX).is_file():
        return
    for number, text in enumerate(read_text(folder / _INDEX).split("\n"), start=1):
        if text.strip():
            where = f"{folder / _INDEX}, line {number}"
            yield _checked(parse_json(text, where), where)


def _checked(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict) or sorted(row) != sorted(_KEYS):
        raise StoreError(f"'{where}' must be an object with the keys {listed(_KEYS)}.")
    if row["schema"] != _SCHEMA:
        raise StoreError(f"'{where}' has schema {row['schema']!r}; this version reads {_SCHEMA}.")
    fine = {
        "episode": isinstance(row["episode"], str),
        "name": isinstance(row["name"], str),
        "file": isinstance(row["file"], str) and _FILE.fullmatch(row["file"]) is not None,
        "frames": type(row["frames"]) is int and 0 < row["frames"] < 1 << 40,
    }
    for key, good in fine.items():
        if not good:
            raise StoreError(
                f"'{where}' has {key} = {row[key]!r:.120}, which an episode store never writes."
            )
    return row


def _next_number(folder: Path) -> int:
    used = [p.name.partition("-")[0] for p in (folder / _FOLDER).glob("*-*.*")]
    return 1 + max((int(n) for n in used if n.isdecimal()), default=-1)
