"""``open_recordings``: one call for every format."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sameworld.core.episode import Recording
from sameworld.core.errors import SameworldError, SameworldWarning, StoreError
from sameworld.store.recordings.bag_files import collect_bag
from sameworld.store.recordings.bag_folders import collect_folder, collect_part
from sameworld.store.recordings.csv_files import read_csv_table
from sameworld.store.recordings.formats import Found, detect_format, recording_paths
from sameworld.store.recordings.npz_files import read_npz_recordings
from sameworld.store.recordings.options import ReadOptions
from sameworld.store.recordings.parquet_files import read_parquet_table
from sameworld.store.recordings.tables import recording_from_table
from sameworld.store.recordings.topics import Collector

__all__ = ["open_recordings"]

_DEFAULT = ReadOptions()


def open_recordings(path: str | Path, *, options: ReadOptions = _DEFAULT) -> Iterator[Recording]:
    """Read recordings of any known format, one at a time.

    CSV, NPZ, Parquet, MCAP, ROS 1 bags, rosbag2 files and folders, LeRobot datasets, and folders of
    such files; a file of a folder that cannot be read is left out with a warning. The format is
    found by content. Stamps and samples come as they were recorded; what a reader lost or assumed
    stands in ``Recording.notes``.

    Args:
        path: File or folder.
        options: Time column, stamps, topics, limits.

    Returns:
        An iterator; the format is checked at once, the content as it is read.

    Raises:
        StoreError: Nothing readable, damaged beyond use, or larger than the limits.
        EpisodeError: The streams are no recording.
    """
    return _opened(detect_format(path), options)


def _opened(found: Found, options: ReadOptions) -> Iterator[Recording]:
    path = found.path
    match found.format:
        case "csv":
            yield _noted(recording_from_table(read_csv_table(path, options), options), found)
        case "parquet":
            yield _noted(recording_from_table(read_parquet_table(path, options), options), found)
        case "npz":
            for recording in read_npz_recordings(path, options):
                yield _noted(recording, found)
        case "mcap" | "db3" | "bag" | "rosbag2":
            yield _messages(found, options)
        case "lerobot":
            from sameworld.store.lerobot import read_lerobot

            yield from read_lerobot(path)
        case "folder":
            yield from _folder(path, options)
        case "episodes":
            raise StoreError(
                f"'{path}' is an episode store already, not a recording. It needs no import; "
                "load_episodes reads it."
            )


def _noted(recording: Recording, found: Found) -> Recording:
    if not found.notes:
        return recording
    return replace(recording, notes=(*found.notes, *recording.notes))


def _messages(found: Found, options: ReadOptions) -> Recording:
    collector = Collector(f"'{found.path}'", options)
    if found.format == "bag":
        collector.notes.extend(found.notes)
        collect_bag(found.path, collector, options)
    elif found.format == "rosbag2":
        collect_folder(found.path, collector, options)
    else:
        collect_part(found.path, collector, options)
    return collector.recording(found.path.name.split(".")[0] or found.path.name)


def _folder(folder: Path, options: ReadOptions) -> Iterator[Recording]:
    """Recordings of every readable file of a folder, in the order of their names."""
    count = 0
    failed: list[str] = []
    for path in recording_paths(folder):
        try:
            if not path.resolve().is_relative_to(folder.resolve()):
                raise StoreError(f"'{path}' is a link that leaves the folder. Copy the file.")
            for recording in open_recordings(path, options=options):
                count += 1
                yield recording
        except SameworldError as cause:
            failed.append(str(cause))
            warnings.warn(f"Left out: {cause}", SameworldWarning, stacklevel=2)
    if not count:
        raise StoreError(f"No file in '{folder}' can be read. {' '.join(failed)[:1000]}")
