"""Episodes to a LeRobot dataset (version 3.0), with a report of what that lost."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.episode import Episode, Stream
from sameworld.core.errors import EpisodeError, StoreError, listed
from sameworld.store.files import sync_folder, write_json, write_text
from sameworld.store.lerobot.dataset_files import DataFiles, episode_row, info_record, write_tables
from sameworld.store.lerobot.films import write_film
from sameworld.store.lerobot.loss import LossReport
from sameworld.store.lerobot.measure import measured_losses
from sameworld.store.lerobot.plan import FEATURES, ExportPlan, export_plan
from sameworld.store.lerobot.resample import at_times, median_rate, row_times
from sameworld.store.lerobot.stats import Stats, merged_stats, row_stats
from sameworld.store.video_encoding import Codec

__all__ = ["slowest_rate", "write_lerobot"]


def write_lerobot(
    episodes: Sequence[Episode],
    folder: str | Path,
    *,
    fps: int,
    task: str | Mapping[str, str] = "",
    videos: Mapping[str, Sequence[Stream]] | None = None,
    video_folder: str | Path = ".",
    robot: str = "",
    codec: Codec = "libx264",
) -> LossReport:
    """Write episodes as a LeRobot dataset, one common rate for everything.

    Observations are interpolated, actions and exogenous inputs held, cameras give their latest
    frame. Rows exist only where everything was measured. The dataset is written beside its place,
    read back, compared with the episodes at their own stamps, and moved: it appears as a whole.

    Args:
        episodes: Episodes; channels that not all of them have are dropped.
        folder: A folder that does not exist or is empty.
        fps: Rows a second.
        task: What was done, in words; or a text by episode id.
        videos: Image streams by episode id.
        video_folder: Folder that the sources of ``videos`` are relative to.
        robot: Kind of robot.
        codec: Encoder of the videos.

    Returns:
        What was resampled and dropped, with measured errors; also ``meta/loss_report.json`` and
        ``meta/loss_report.txt``.

    Raises:
        EpisodeError: No episode, an id twice, or texts or images for others.
        StoreError: The folder is not empty, episodes have nothing in common, or the disk refuses.

    Source: format description of LeRobotDataset v3.0, https://huggingface.co/docs/lerobot.
    """
    folder, videos = Path(folder).absolute(), videos or {}
    if isinstance(fps, bool) or not isinstance(fps, int) or not 1 <= fps <= 100_000:
        raise StoreError(f"fps is {fps!r}; LeRobot datasets have a whole number of rows a second.")
    _demand_free(folder)
    plan, texts = export_plan(episodes, videos), _texts(task, episodes)
    fresh = folder.with_name(f".{folder.name[:80]}.{secrets.token_hex(6)}.tmp")
    export = _Export(
        folder=fresh,
        plan=plan,
        fps=fps,
        videos=videos,
        video_folder=Path(video_folder),
        robot=robot,
        codec=codec,
    )
    try:
        fresh.mkdir(parents=True)
        times = export.write(episodes, texts)
        report = measured_losses(fresh, episodes, plan, times, videos, fps)
        write_json(fresh / "meta" / "loss_report.json", report.to_json())
        write_text(fresh / "meta" / "loss_report.txt", report.text())
        _sync_tree(fresh)
        if folder.is_dir():
            folder.rmdir()
        fresh.rename(folder)
        sync_folder(folder.parent)
    except OSError as cause:
        raise StoreError(f"Cannot write '{folder}': {cause}.") from cause
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return report


def slowest_rate(episodes: Sequence[Episode]) -> int:
    """Whole rate at which no observation has rows much denser than its samples [1/s].

    The median rate of the slowest observation channel, rounded, at least 1.
    """
    rates = [median_rate(c.time) for e in episodes for c in e.observations]
    return max(round(min(rates, default=1.0)), 1)


@dataclass(kw_only=True)
class _Export:
    """A dataset being written."""

    folder: Path
    plan: ExportPlan
    fps: int
    videos: Mapping[str, Sequence[Stream]]
    video_folder: Path
    robot: str
    codec: Codec
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict[str, "tuple[int, int]"])

    def write(self, episodes: Sequence[Episode], texts: Sequence[str]) -> list[Array]:
        """Write everything; returns the times of the rows by episode, on its own clock."""
        tasks = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        times: list[Array] = []
        rows: list[dict[str, object]] = []
        stats: list[dict[str, Stats]] = []
        with DataFiles(folder=self.folder, plan=self.plan) as files:
            for number, episode in enumerate(episodes):
                time = self._times(episode)
                columns = self._columns(number, time, episode, tasks[texts[number]], files.rows)
                place = files.append(columns)
                counted = {name: row_stats(values) for name, values in columns.items()}
                counted |= self._films(number, episode, time)
                rows.append(
                    episode_row(
                        number, texts[number], len(time), place, counted, self.plan, self.fps
                    )
                )
                times.append(time)
                stats.append(counted)
        total = {name: merged_stats([s[name] for s in stats]) for name in stats[0]}
        info = info_record(
            self.plan, self.fps, self.robot, self.sizes, self.codec, len(rows), files.rows, tasks
        )
        write_tables(self.folder, info, rows, total, tasks)
        return times

    def _times(self, episode: Episode) -> Array:
        channels = [episode[c.name] for c in self.plan.channels]
        pictures = [s.time for s in self._streams(episode)]
        return row_times(episode.id, channels, pictures, self.fps)

    def _streams(self, episode: Episode) -> list[Stream]:
        given = {s.name: s for s in self.videos.get(episode.id, ())}
        return [given[name] for name in self.plan.cameras]

    def _columns(
        self, number: int, time: Array, episode: Episode, task: int, first: int
    ) -> dict[str, NDArray[np.generic]]:
        count = len(time)
        found: dict[str, NDArray[np.generic]] = {}
        for role, feature in FEATURES.items():
            parts = [
                at_times(episode[c.name], time, quaternion=c.quaternion).reshape(count, -1)
                for c in self.plan.of(role)
            ]
            if parts:
                found[feature] = np.concatenate(parts, axis=1).astype(np.float32)
        steps = np.arange(count)
        return found | {
            "timestamp": (steps / self.fps).astype(np.float32),
            "frame_index": steps,
            "episode_index": np.full(count, number),
            "index": first + steps,
            "task_index": np.full(count, task),
        }

    def _films(self, number: int, episode: Episode, time: Array) -> dict[str, Stats]:
        found: dict[str, Stats] = {}
        for stream in self._streams(episode):
            feature = self.plan.cameras[stream.name]
            place = f"chunk-{number // 1000:03d}/file-{number % 1000:03d}.mp4"
            size, counted = write_film(
                self.folder / "videos" / feature / place,
                self.video_folder,
                stream,
                time,
                fps=self.fps,
                codec=self.codec,
            )
            if self.sizes.setdefault(feature, size) != size:
                raise StoreError(
                    f"Camera '{stream.name}' has {size[0]}x{size[1]} pixels in episode "
                    f"'{episode.id}', {self.sizes[feature]} before. Export them apart."
                )
            found[feature] = counted
        return found


def _texts(task: str | Mapping[str, str], episodes: Sequence[Episode]) -> list[str]:
    if isinstance(task, str):
        return [task] * len(episodes)
    ids = [e.id for e in episodes]
    strangers = sorted(set(task) - set(ids))
    if strangers:
        raise EpisodeError(f"Tasks are given for {listed(strangers)}, which are not exported.")
    return [task.get(name, "") for name in ids]


def _demand_free(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise StoreError(f"'{folder}' is a file or a link; name a folder for the dataset.")
    if folder.is_dir() and any(folder.iterdir()):
        raise StoreError(f"'{folder}' is not empty. Choose another folder for the dataset.")


def _sync_tree(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:
                os.fsync(file.fileno())
        else:
            sync_folder(path)
    sync_folder(folder)
