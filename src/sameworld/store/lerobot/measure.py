"""What an export lost, measured on the files that were written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel, Episode, Recording, Stream
from sameworld.store.lerobot.films import latest_rows
from sameworld.store.lerobot.loss import ChannelLoss, LossReport
from sameworld.store.lerobot.plan import FEATURES, ExportPlan, PlannedChannel
from sameworld.store.lerobot.read import read_lerobot
from sameworld.store.lerobot.resample import median_rate, sample_errors

__all__ = ["measured_losses"]


def measured_losses(
    folder: Path,
    episodes: Sequence[Episode],
    plan: ExportPlan,
    times: Sequence[Array],
    videos: Mapping[str, Sequence[Stream]],
    fps: int,
) -> LossReport:
    """Read a dataset back and compare it with the episodes at their own stamps.

    Args:
        folder: The dataset.
        episodes: What was exported.
        plan: What of it was chosen.
        times: Times of the rows on the episodes' clocks [T] s.
        videos: Image streams by episode id.
        fps: Rows a second.
    """
    tallies = {c.name: _Tally(rows=0) for c in plan.channels}
    ages = {name: _Tally(rows=0) for name in plan.cameras}
    for episode, time, recording in zip(episodes, times, read_lerobot(folder), strict=True):
        for planned, rows in _channels(plan, recording, time):
            original = episode[planned.name]
            errors = sample_errors(original, rows, quaternion=planned.quaternion)
            tallies[planned.name].add(original.time, time, errors, original.role != "observation")
        for stream in videos.get(episode.id, ()):
            if stream.name in ages:
                age = time - stream.time[latest_rows(stream.time, time)]
                ages[stream.name].add(stream.time, time, age, False)
    losses = [tallies[c.name].loss(c) for c in plan.channels]
    pictures = [ages[name].picture_loss(name, feature) for name, feature in plan.cameras.items()]
    return LossReport(
        fps=fps,
        episodes=tuple(e.id for e in episodes),
        rows=sum(len(t) for t in times),
        channels=(*losses, *pictures, *plan.dropped),
        dropped=plan.lost,
    )


def _channels(
    plan: ExportPlan, recording: Recording, time: Array
) -> Iterator[tuple[PlannedChannel, Channel]]:
    """Channels as they stand in the dataset, on the episode's own clock."""
    for role, feature in FEATURES.items():
        first = 0
        for planned in plan.of(role):
            values = recording[feature].values.reshape(len(time), -1)
            part = values[:, first : first + planned.size].reshape(-1, *planned.shape)
            yield planned, Channel(name=planned.name, time=time, values=part, role=role)
            first += planned.size


@dataclass(kw_only=True)
class _Tally:
    """Numbers of one channel, all episodes together."""

    rows: int
    samples: int = 0
    cut: float = 0.0
    gap: float = 0.0
    largest: float = 0.0
    squares: float = 0.0
    compared: int = 0
    rates: list[float] = field(default_factory=list[float])

    def add(self, stamps: Array, rows: Array, errors: Array, held: bool) -> None:
        self.rows += len(rows)
        self.samples += len(stamps)
        self.cut += _span(stamps[0], rows[0]) if len(stamps) > 1 else 0.0
        if not held:
            self.cut += _span(rows[-1], stamps[-1])
            steps = np.diff(stamps[(stamps >= rows[0] - 1e-9) & (stamps <= rows[-1] + 1e-9)])
            usual = float(np.median(np.diff(stamps))) if len(stamps) > 1 else 0.0
            longest = float(steps.max(initial=0.0))
            self.gap = max(self.gap, longest if longest > 1.5 * usual else 0.0)
        self.largest = max(self.largest, float(errors.max(initial=0.0)))
        self.squares += float(np.sum(errors**2))
        self.compared += len(errors)
        self.rates.append(median_rate(stamps))

    @property
    def rate(self) -> float:
        return float(np.median(self.rates))

    @property
    def rms(self) -> float:
        return float(np.sqrt(self.squares / max(self.compared, 1)))

    def loss(self, planned: PlannedChannel) -> ChannelLoss:
        return ChannelLoss(
            name=planned.name,
            role=planned.role,
            unit=planned.unit,
            feature=FEATURES[planned.role],
            method="interpolated" if planned.role == "observation" else "held",
            rate=self.rate,
            samples=self.samples,
            rows=self.rows,
            cut=self.cut,
            gap=self.gap,
            largest=self.largest,
            rms=self.rms,
        )

    def picture_loss(self, name: str, feature: str) -> ChannelLoss:
        return ChannelLoss(
            name=name,
            role="image",
            feature=feature,
            method="latest frame",
            rate=self.rate,
            samples=self.samples,
            rows=self.rows,
            cut=self.cut,
            gap=self.gap,
            largest=self.largest,
            rms=self.rms,
            reason="coded again, with loss",
        )


def _span(begin: float, end: float) -> float:
    return float(end - begin) if end > begin + 1e-9 else 0.0
