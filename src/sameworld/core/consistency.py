"""``consistency``: do observed transitions still fit what the world predicts?

``trust`` says how good a prediction will be if reality stays as it was; it cannot see that the
floor got wet. This test can: it restarts the world along an episode, window by window, and asks
how surprising each window's error is under the world's own discrepancy.

Source: p-values are turned into e-values by the calibrator ``e = p^(-1/2) / 2`` and multiplied, so
that the test may be looked at after every window; V. Vovk, R. Wang, "E-values: calibration,
combination and applications", Annals of Statistics 49 (2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Episode
from sameworld.core.errors import EpisodeError, SpecError
from sameworld.core.predict import predict_all
from sameworld.core.prediction import Prediction
from sameworld.core.residuals import shared_channels, warmed_up
from sameworld.core.world import World

__all__ = ["Consistency", "consistency"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Consistency:
    """How well an episode fits a world, window by window.

    Attributes:
        time: Episode time at which each window ends [W] s.
        p_values: Probability of an error as large as the window's, Bonferroni over channels [W].
        evidence: Running product of e-values against the world [W].
        level: Level of the alarm.
    """

    time: Array
    p_values: Array
    evidence: Array
    level: float

    @property
    def consistent(self) -> bool:
        """Whether the evidence never reached ``1 / level``."""
        return bool((self.evidence < 1 / self.level).all())

    @property
    def alarm(self) -> float | None:
        """Time at which the evidence first reached ``1 / level`` [s], ``None`` if never."""
        reached = np.flatnonzero(self.evidence >= 1 / self.level)
        return float(self.time[reached[0]]) if len(reached) else None


def consistency(
    world: World, episode: Episode, *, horizon: int = 20, level: float = 0.01, seed: int = 0
) -> Consistency:
    """Test whether an episode's transitions still fit a world.

    Args:
        world: A world whose belief carries a discrepancy (``identify`` leaves one).
        episode: What was observed.
        horizon: Rows predicted per window after its warm-up rows.
        level: Probability of a false alarm anywhere in the episode.
        seed: Seed of stochastic worlds.

    Raises:
        SpecError: The world's errors were never measured.
        EpisodeError: The episode is shorter than one window.
    """
    discrepancy = world.parameters.discrepancy
    if discrepancy is None:
        raise SpecError(
            "Consistency needs a world whose errors were measured. Fit it with 'identify' first."
        )
    warmup = discrepancy.warmup
    pieces = _windows(world, episode, warmup + horizon)
    predictions = predict_all(world, pieces, warmup, seed=seed)
    p_values = np.array([_p_value(world, p, e) for p, e in zip(predictions, pieces, strict=True)])
    return Consistency(
        time=np.array([piece.end for piece in pieces]),
        p_values=p_values,
        evidence=cast("Array", np.cumprod(0.5 / np.sqrt(p_values))),
        level=level,
    )


def _windows(world: World, episode: Episode, rows: int) -> list[Episode]:
    clock = shared_channels(world.spec, episode)[0][1].time
    if len(clock) < rows:
        raise EpisodeError(
            f"Episode '{episode.id}' has {len(clock)} rows, one window needs {rows}. Use a shorter "
            "horizon."
        )
    begins = range(0, len(clock) - rows + 1, rows)
    return [
        episode.window(float(clock[b]), float(clock[b + rows - 1]), id=f"{episode.id}@{b}")
        for b in begins
    ]


def _p_value(world: World, prediction: Prediction, piece: Episode) -> float:
    """Smallest p-value over channels at the window's last row, times the number of channels."""
    discrepancy = world.parameters.discrepancy
    found: list[float] = []
    for name, channel in prediction.channels.items():
        if discrepancy is None or name not in discrepancy.channels or not len(channel.time):
            continue
        last = warmed_up(world.spec, piece, prediction.warmup)
        size = float(np.sqrt(np.sum(channel.error[-1] ** 2)))
        reached = np.array([channel.time[-1] - last])
        found.append(1 - float(discrepancy.channels[name].within(reached, size)[0]))
    return float(np.clip(min(found, default=1.0) * max(len(found), 1), 1e-6, 1.0))
