"""What an export lost: every channel by name, with the largest error measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from sameworld.core.errors import StoreError, closest, listed

__all__ = ["ChannelLoss", "LossReport", "Method"]

Method = Literal["interpolated", "held", "latest frame", "dropped"]


@dataclass(frozen=True, kw_only=True)
class ChannelLoss:
    """What happened to a channel or a camera.

    Attributes:
        name: Channel or camera.
        role: Its role; ``image`` for a camera.
        unit: Its unit, which the format does not keep; empty if it had none.
        feature: Feature it went into; empty if it was dropped.
        method: How it came to the common rate.
        rate: Median rate of its samples [1/s]; 0 if an episode has a single sample.
        samples: Samples it had, all episodes together.
        rows: Rows it has now, all episodes together.
        cut: Time at the ends that has no rows, all episodes together [s].
        gap: Longest time between two samples that rows were interpolated over [s].
        largest: Largest error at the original stamps, read back from the files [unit; rad for
            quaternions]. For a camera the largest age of a picture [s].
        rms: Root mean square of those errors.
        reason: Why it was dropped, or what to know of it.
    """

    name: str
    role: str
    unit: str = ""
    feature: str = ""
    method: Method = "dropped"
    rate: float = 0.0
    samples: int = 0
    rows: int = 0
    cut: float = 0.0
    gap: float = 0.0
    largest: float = 0.0
    rms: float = 0.0
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class LossReport:
    """What an export to one common rate lost.

    Attributes:
        fps: Rows a second.
        episodes: Ids in the order of their new indices.
        rows: Number of rows written.
        channels: Every channel and camera of every episode.
        dropped: What the format has no place for, one sentence each.
    """

    fps: int
    episodes: tuple[str, ...]
    rows: int
    channels: tuple[ChannelLoss, ...]
    dropped: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ChannelLoss:
        for channel in self.channels:
            if channel.name == name:
                return channel
        names = [c.name for c in self.channels]
        raise StoreError(
            f"The report has no channel '{name}'. It has {listed(names)}.{closest(name, names)}"
        )

    def to_json(self) -> dict[str, Any]:
        """JSON-ready record."""
        return {"schema": 1, **asdict(self)}

    def text(self) -> str:
        """The report in words, one line per channel."""
        head = f"{len(self.episodes)} episode(s), {self.rows} rows at {self.fps} a second."
        lines = [_sentence(channel, self.fps) for channel in self.channels]
        return "\n".join([head, *lines, *self.dropped]) + "\n"


def _sentence(loss: ChannelLoss, fps: int) -> str:
    what = f"{loss.name} ({loss.role})"
    if loss.method == "dropped":
        return f"{what}: dropped, {loss.reason}."
    came = f"{loss.rate:.4g} Hz" if loss.rate else "a single sample"
    unit = f" {loss.unit}" if loss.unit else ""
    error = f"error at most {loss.largest:.3g}{unit}, rms {loss.rms:.3g}{unit}"
    if loss.method == "latest frame":
        error = f"pictures at most {loss.largest:.3g} s old"
    parts = [f"{what}: {came} to {fps} Hz, {loss.method}, as {loss.feature}", error]
    if loss.cut > 0:
        parts.append(f"{loss.cut:.3g} s cut at the ends")
    if loss.gap > 0:
        parts.append(f"longest gap {loss.gap:.3g} s")
    if loss.reason:
        parts.append(loss.reason)
    return "; ".join(parts) + "."
