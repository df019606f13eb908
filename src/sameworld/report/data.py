"""``ReportData``: everything one report shows, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.episode import Episode
from sameworld.core.errors import SpecError, listed
from sameworld.core.prediction import ChannelPrediction, Prediction
from sameworld.core.scene import Scene
from sameworld.core.spec import ChannelSpec
from sameworld.stages.identify.result import IdentifyResult

__all__ = ["FilmRow", "HeldOut", "ReportData"]


@dataclass(frozen=True, kw_only=True, eq=False)
class FilmRow:
    """One row of the film strip.

    Attributes:
        label: What is seen, e.g. ``recorded`` or ``simulated, fitted``.
        time: Time of each image [N] s.
        images: Images [N, H, W, 3], 8 bit.
    """

    label: str
    time: Array
    images: NDArray[np.uint8]

    def __post_init__(self) -> None:
        shape = self.images.shape
        if self.images.ndim != 4 or shape[3] != 3 or len(self.time) != shape[0]:
            raise SpecError(
                f"Film row '{self.label}' has images of shape {shape} and {len(self.time)} times; "
                "give 8-bit images [N, H, W, 3] and N times."
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOut:
    """One held-out episode with its predictions.

    Attributes:
        episode: What was measured.
        before: Prediction of the world as given.
        after: Prediction of the fitted world.
    """

    episode: Episode
    before: Prediction
    after: Prediction

    def __post_init__(self) -> None:
        ids = {self.episode.id, self.before.episode, self.after.episode}
        if len(ids) > 1:
            raise SpecError(f"Held-out episode and its predictions disagree: {listed(sorted(ids))}")

    def channels(self, name: str) -> tuple[ChannelPrediction, ChannelPrediction] | None:
        """Predictions of a channel before and after, ``None`` where it was not observed."""
        if name not in self.before.channels or name not in self.after.channels:
            return None
        return self.before.channels[name], self.after.channels[name]

    def horizon(self, name: str, prediction: ChannelPrediction) -> Array:
        """Seconds since the last warm-up row, at the predicted times [N]."""
        clock = self.episode[name].time
        last = min(max(self.after.warmup - 1, 0), len(clock) - 1)
        return prediction.time - clock[last]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportData:
    """What a report of an identification is made of.

    Attributes:
        title: Title of the report.
        scene: The calibrated scene.
        result: What identification found out.
        channels: Channels of the world, in the order of display.
        held_out: Held-out episodes with predictions before and after.
        film: Rows of images, all shown at the same scale.
        provenance: What was run: hashes, seeds, versions, command, times.
        files: Files to use again, name (``scene``, ``belief``, ...) to path relative to the page.
    """

    title: str
    scene: Scene
    result: IdentifyResult
    channels: tuple[ChannelSpec, ...]
    held_out: tuple[HeldOut, ...] = ()
    film: tuple[FilmRow, ...] = ()
    provenance: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def shown(self) -> tuple[ChannelSpec, ...]:
        """Channels that some held-out episode observes and both worlds predict."""
        return tuple(
            c for c in self.channels if any(h.channels(c.name) is not None for h in self.held_out)
        )

    @property
    def calibrated(self) -> bool:
        """Whether the fitted world's intervals come from measured errors."""
        return bool(self.held_out) and all(h.after.calibrated for h in self.held_out)
