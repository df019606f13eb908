"""The errors that the whole page speaks of: of episodes the fit never saw, before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.spec import ChannelSpec
from sameworld.maths.intervals import Interval, median_change
from sameworld.report.data import ReportData

__all__ = ["ChannelScore", "Scores", "scores"]

#: Episodes below which no interval of a change is given.
_FEWEST = 5


@dataclass(frozen=True, kw_only=True)
class ChannelScore:
    """Typical error of one channel: the median over episodes of the time-mean error norm.

    Attributes:
        name: Channel name.
        unit: Unit of the error (rad for quaternions).
        before: Error of the world as given [unit].
        after: Error of the fitted world [unit].
        change: Relative change with its 90 % interval, episodes resampled in pairs; ``None`` where
            an error is not finite or the world as given makes none.
    """

    name: str
    unit: str
    before: float
    after: float
    change: Interval | None

    @property
    def direction(self) -> int:
        """-1 clearly better, +1 clearly worse, 0 no clear change."""
        if self.change is None:
            return 0
        return int(self.change.low > 0) - int(self.change.high < 0)


@dataclass(frozen=True, kw_only=True)
class Scores:
    """Errors on episodes that were not fitted.

    Attributes:
        source: ``test`` for episodes kept from fit and gate alike, ``gate`` for those that a first
            fit did not see, ``none`` if nothing was held back.
        episodes: Number of episodes.
        channels: One row per channel.
    """

    source: Literal["test", "gate", "none"]
    episodes: int
    channels: tuple[ChannelScore, ...]


def scores(data: ReportData) -> Scores:
    """Errors per channel from the test episodes if there are any, else from the gate's."""
    found = tuple(
        _score(spec, *pair, data.result.seed)
        for spec in data.channels
        if (pair := _errors(data, spec)) is not None
    )
    gate = data.result.holdout
    if data.held_out:
        return Scores(source="test", episodes=len(data.held_out), channels=found)
    if gate is not None and found:
        return Scores(source="gate", episodes=len(gate.episodes), channels=found)
    return Scores(source="none", episodes=0, channels=())


def _errors(data: ReportData, spec: ChannelSpec) -> tuple[Array, Array] | None:
    """Time-mean error norms of one channel per episode, before and after."""
    pairs = [p for h in data.held_out if (p := h.channels(spec.name)) is not None]
    if pairs:
        means = np.array([[np.linalg.norm(c.error, axis=-1).mean() for c in p] for p in pairs])
        return means[:, 0], means[:, 1]
    gate = data.result.holdout
    if data.held_out or gate is None or spec.name not in gate.before:
        return None
    return np.array(gate.before[spec.name]), np.array(gate.after[spec.name])


def _score(spec: ChannelSpec, before: Array, after: Array, seed: int) -> ChannelScore:
    usable = np.isfinite(before).all() and np.isfinite(after).all() and (before > 0).all()
    usable = usable and len(before) >= _FEWEST  # a bootstrap of fewer claims certainty
    return ChannelScore(
        name=spec.name,
        unit="rad" if spec.manifold == "quaternion" else spec.unit,
        before=float(np.median(before)),
        after=float(np.median(after)),
        change=median_change(before, after, seed=seed) if usable else None,
    )
