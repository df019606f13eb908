"""LeRobot datasets to recordings, without LeRobot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.episode import Recording, Stream
from sameworld.core.errors import StoreError, listed
from sameworld.store.lerobot.clock import row_clock
from sameworld.store.lerobot.info import LerobotFeature, LerobotInfo, lerobot_info
from sameworld.store.lerobot.meta import EpisodeEntry, VideoPlace, read_entries, read_tasks
from sameworld.store.lerobot.tables import RowFiles, samples
from sameworld.store.videos import VideoFile, open_video

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_lerobot"]


def read_lerobot(
    folder: str | Path, episodes: Iterable[int] | None = None, *, limit: int = 1 << 32
) -> Iterator[Recording]:
    """Read a LeRobot dataset (3.0, 2.1, 2.0), one recording per episode, one at a time.

    Numbers become streams with the labels the dataset names; cameras become streams of frame
    numbers in their video file (``stream_frames`` decodes them). Stamps restart with each episode.
    What is wrong but can be mended is mended and said in ``notes``.

    Args:
        folder: The dataset.
        episodes: Episode indices wanted, in this order; all if ``None``.
        limit: Largest memory for one table or row group [bytes].

    Returns:
        Recordings ``episode_000000``, ...

    Raises:
        StoreError: No dataset, an unknown episode, or damage that cannot be mended; names the file.
    """
    folder = Path(folder)
    info = lerobot_info(folder)
    entries = read_entries(folder, info, limit=limit)
    wanted = list(entries) if episodes is None else [int(e) for e in episodes]
    for index in wanted:
        if index not in entries:
            raise StoreError(
                f"'{folder}' has no episode {index}. It has {listed(map(str, entries))}."
            )
    tasks = read_tasks(folder, limit=limit)
    shared = _notes_on_dataset(folder, info, entries, tasks)
    return _recordings(folder, info, [entries[i] for i in wanted], tasks or {}, shared, limit)


def _recordings(
    folder: Path,
    info: LerobotInfo,
    entries: list[EpisodeEntry],
    tasks: Mapping[int, str],
    shared: tuple[str, ...],
    limit: int,
) -> Iterator[Recording]:
    films = _Films(folder=folder)
    skipped = frozenset(f.name for f in info.features if f.is_camera or f.dtype == "string")
    with RowFiles(folder=folder, limit=limit, skipped=skipped) as files:
        for entry in entries:
            table, numbers = files.rows(entry.data_file, entry.index)
            yield _Reader(
                info=info,
                entry=entry,
                table=table,
                columns=files.names(entry.data_file),
                numbers=numbers,
                films=films,
            ).recording(tasks, shared)


@dataclass(kw_only=True)
class _Films:
    """What the latest video file of each camera holds."""

    folder: Path
    _latest: dict[str, tuple[str, VideoFile]] = field(
        default_factory=dict[str, "tuple[str, VideoFile]"]
    )

    def film(self, camera: str, file: str) -> VideoFile:
        if camera not in self._latest or self._latest[camera][0] != file:
            self._latest[camera] = (file, open_video(self.folder / file))
        return self._latest[camera][1]


@dataclass(kw_only=True)
class _Reader:
    """One episode on its way to a recording; collects notes."""

    info: LerobotInfo
    entry: EpisodeEntry
    table: pa.Table
    columns: tuple[str, ...]
    numbers: NDArray[np.int64]
    films: _Films
    notes: list[str] = field(default_factory=list[str])

    def recording(self, tasks: Mapping[int, str], shared: tuple[str, ...]) -> Recording:
        entry = self.entry
        if entry.length is not None and entry.length != len(self.numbers):
            self.notes.append(
                f"the tables claim {entry.length} rows, '{entry.data_file}' holds "
                f"{len(self.numbers)}; these were read"
            )
        time, doubts = row_clock(self._optional("timestamp"), self._frames(), self.info.fps)
        self.notes += doubts
        streams = [self._stream(feature, time) for feature in self.info.features]
        return Recording(
            id=f"episode_{entry.index:06d}",
            streams=tuple(s for s in streams if s is not None),
            task=self._task(tasks),
            notes=tuple(f"{text[:1].upper()}{text[1:]}." for text in (*shared, *self.notes)),
        )

    # ---- columns -----------------------------------------------------------------------------

    def _optional(self, name: str) -> NDArray[Any] | None:
        if name not in self.table.column_names:
            return None
        values = samples(self.table.column(name))
        return None if values is None else values.reshape(len(values), -1)[:, 0]

    def _frames(self) -> Array:
        """Frame numbers within the episode [T]; counted if the column cannot be."""
        rows = np.arange(len(self.numbers), dtype=np.float64)
        frames = self._optional("frame_index")
        if frames is None:
            self.notes.append("there is no usable column 'frame_index'; rows were counted")
            return rows
        if not np.isfinite(frames).all() or (np.diff(frames) <= 0).any():
            self.notes.append("the column 'frame_index' does not increase; rows were counted")
            return rows
        return frames - frames[0]

    def _task(self, tasks: Mapping[int, str]) -> str:
        indices = self._optional("task_index")
        if indices is None or not tasks:
            return "; ".join(self.entry.tasks)
        named = [int(i) for i in dict.fromkeys(indices.tolist()) if i == i]
        unknown = [i for i in named if i not in tasks]
        if unknown:
            self.notes.append(f"the task_index {unknown[0]} is not in the table of tasks")
        texts = [tasks[i] for i in named if i in tasks]
        if len(texts) > 1:
            self.notes.append(f"the episode has {len(texts)} tasks, one after the other")
        return "; ".join(texts or self.entry.tasks)

    def _stream(self, feature: LerobotFeature, time: Array) -> Stream | None:
        if feature.dtype == "video":
            return self._film_stream(feature, time)
        if feature.name not in self.columns:
            return self._lost(feature.name, f"'{self.entry.data_file}' has no such column")
        if feature.dtype == "string":
            return self._lost(feature.name, "it holds text, which streams do not")
        if feature.dtype == "image":
            return self._picture_stream(feature, time)
        values = samples(self.table.column(feature.name))
        if values is None:
            kind = self.table.schema.field(feature.name).type
            return self._lost(feature.name, f"{kind} is no array of numbers of one shape")
        return self._numbers(feature, time, values)

    def _numbers(self, feature: LerobotFeature, time: Array, values: NDArray[Any]) -> Stream:
        if len(feature.labels) == 1 and values.ndim == 1:
            values = values[:, None]  # so that the name is kept
        shape = values.shape[1:]
        said = () if feature.shape == (1,) and shape == () else feature.shape
        if shape != said:
            self.notes.append(
                f"feature '{feature.name}' claims the shape {feature.shape}, its samples have "
                f"{shape}"
            )
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            bad = int(np.sum(~np.isfinite(values)))
            self.notes.append(f"feature '{feature.name}' holds {bad} null, NaN or infinite numbers")
        labels = feature.labels if shape == (len(feature.labels),) else ()
        if feature.labels and not labels and shape != () and len(feature.labels) > 1:
            self.notes.append(
                f"feature '{feature.name}' has {len(feature.labels)} names for samples of shape "
                f"{shape}; they were dropped"
            )
        return Stream(
            name=feature.name,
            time=time,
            values=values,
            clock="episode",
            source=self.entry.data_file,
            labels=labels,
        )

    # ---- cameras -----------------------------------------------------------------------------

    def _picture_stream(self, feature: LerobotFeature, time: Array) -> Stream:
        """Pictures inside the Parquet file: their row numbers."""
        return Stream(
            name=feature.name,
            time=time,
            values=self.numbers,
            clock="episode",
            source=self.entry.data_file,
            kind="images",
        )

    def _film_stream(self, feature: LerobotFeature, time: Array) -> Stream | None:
        place = self.entry.videos.get(feature.name)
        if place is None:
            return self._lost(feature.name, "the tables do not say which video file holds it")
        try:
            film = self.films.film(feature.name, place.file)
        except StoreError as cause:
            return self._lost(feature.name, str(cause).rstrip("."))
        self._check_size(feature, film)
        return self._placed(feature, place, film, time)

    def _placed(
        self, feature: LerobotFeature, place: VideoPlace, film: VideoFile, time: Array
    ) -> Stream | None:
        numbers = film.numbers_at(place.begin + time)
        gap = np.abs(film.time[numbers] - (place.begin + time))
        near = gap <= 0.5 / self.info.fps + 1e-6
        if not near.any():
            return self._lost(feature.name, f"'{place.file}' has no frame at the episode's times")
        if not near.all():
            self.notes.append(
                f"'{feature.name}': {int(np.sum(~near))} of {len(time)} rows have no frame in "
                f"'{place.file}' ({len(film)} frames); those rows were left out"
            )
        elif float(gap.max()) > 1e-3:
            self.notes.append(
                f"'{feature.name}': frames of '{place.file}' are up to {gap.max():.3g} s away from "
                "the rows' stamps"
            )
        return Stream(
            name=feature.name,
            time=time[near],
            values=numbers[near],
            clock="episode",
            source=place.file,
            kind="images",
        )

    def _check_size(self, feature: LerobotFeature, film: VideoFile) -> None:
        sides = sorted((film.height, film.width))
        if len(feature.shape) == 3 and not set(sides) <= set(feature.shape):
            self.notes.append(
                f"camera '{feature.name}' claims the shape {feature.shape}, '{film.path.name}' has "
                f"{film.height}x{film.width} pixels"
            )

    def _lost(self, name: str, why: str) -> None:
        self.notes.append(f"'{name}' was left out: {why}")


def _notes_on_dataset(
    folder: Path,
    info: LerobotInfo,
    entries: Mapping[int, EpisodeEntry],
    tasks: Mapping[int, str] | None,
) -> tuple[str, ...]:
    notes: list[str] = []
    if tasks is None:
        notes.append("the dataset has no table of tasks; texts come from the table of episodes")
    lengths = [e.length for e in entries.values()]
    rows = sum(n for n in lengths if n is not None)
    if info.episodes is not None and info.episodes != len(entries):
        notes.append(
            f"the file info.json claims {info.episodes} episodes, the tables list {len(entries)}"
        )
    if info.frames is not None and None not in lengths and info.frames != rows:
        notes.append(f"the file info.json claims {info.frames} rows, the tables list {rows}")
    if list(entries) != list(range(len(entries))):
        last = max(entries, default=0)
        notes.append(f"episode indices have holes: {len(entries)} episodes up to index {last}")
    if not info.video_path and any(f.dtype == "video" for f in info.features):
        notes.append("the file info.json has cameras but no video_path; they were left out")
    return tuple(notes)
