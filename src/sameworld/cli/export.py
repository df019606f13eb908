"""``sameworld export``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from sameworld.cli.console import Grid, say, say_grid, say_json
from sameworld.cli.sources import episodes_from
from sameworld.core.episode import Episode, Stream
from sameworld.store.episode_videos import episode_videos
from sameworld.store.lerobot import ChannelLoss, LossReport, slowest_rate, write_lerobot

__all__ = ["Export"]


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write episodes and their images as a dataset of another format, and say what that lost.

    Attributes:
        episodes: Episode store or zoo recording, e.g. ``cube_tosses:40``.
        out: Folder of the dataset, which must not exist or be empty.
        format: Format; ``lerobot`` is LeRobotDataset v3.0.
        fps: Rows a second; the rate of the slowest observation if not given.
        task: What was done, in words.
        robot: Kind of robot.
        codec: Encoder of videos.
        json: Print the loss report as JSON.
    """

    episodes: Annotated[Positional[str], arg(metavar="EPISODES")]
    out: Annotated[Positional[Path], arg(metavar="OUT")]
    format: Literal["lerobot"] = "lerobot"
    fps: int | None = None
    task: str = ""
    robot: str = ""
    codec: Literal["libx264", "libx265", "libsvtav1"] = "libx264"
    json: bool = False

    def run(self) -> int:
        """Write the dataset and print the loss report."""
        episodes = episodes_from(self.episodes)
        report = write_lerobot(
            episodes,
            self.out,
            fps=slowest_rate(episodes) if self.fps is None else self.fps,
            task=self.task,
            videos=_videos(self.episodes, episodes),
            video_folder=self.episodes,
            robot=self.robot,
            codec=self.codec,
        )
        if self.json:
            say_json(report.to_json())
            return 0
        say_grid(_grid(report))
        for sentence in report.dropped:
            say(sentence)
        say(f"Dataset: {self.out}")
        return 0


def _videos(source: str, episodes: tuple[Episode, ...]) -> dict[str, tuple[Stream, ...]]:
    if not Path(source).is_dir():
        return {}
    found = {e.id: episode_videos(source, e.id) for e in episodes}
    return {name: streams for name, streams in found.items() if streams}


def _grid(report: LossReport) -> Grid:
    title = f"{len(report.episodes)} episode(s), {report.rows} rows at {report.fps} a second"
    return Grid(
        title=title,
        header=("channel", "role", "rate", "became", "how", "largest error", "rms", "unit"),
        rows=tuple(_row(loss) for loss in report.channels),
        right=("rate", "largest error", "rms"),
    )


def _row(loss: ChannelLoss) -> tuple[str, ...]:
    if loss.method == "dropped":
        return (loss.name, loss.role, "", "", f"dropped: {loss.reason}", "", "", loss.unit)
    picture = loss.role == "image"
    return (
        loss.name,
        loss.role,
        f"{loss.rate:.4g}" if loss.rate else "once",
        loss.feature,
        loss.method,
        f"{loss.largest:.3g}",
        f"{loss.rms:.3g}",
        "s old" if picture else loss.unit,
    )
