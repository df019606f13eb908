"""``Prediction``: what a world says will be measured, with intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sameworld.core.arrays import Array
from sameworld.core.values import Values

__all__ = ["ChannelPrediction", "Prediction"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelPrediction:
    """Prediction of one channel at the times it was measured, after the warm-up rows.

    Attributes:
        time: Measurement times [N] s, on the episode's clock.
        values: Predicted samples [N, ...].
        low: Lower ends of the central intervals [N, ...]; equal to ``values`` if uncalibrated.
        high: Upper ends. For quaternions ``low`` and ``high`` are [N, 3] bounds on the rotation
            vector of ``predicted^-1 measured`` in rad.
        error: ``measured - predicted`` [N, D], tangent components for quaternions.
    """

    time: Array
    values: Array
    low: Array
    high: Array
    error: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Prediction:
    """Open-loop prediction of one episode from its warm-up rows.

    Attributes:
        episode: Episode id.
        warmup: Rows of each channel used to find the start; not predicted.
        channels: Channel name to prediction.
        level: Probability that the intervals aim at.
        calibrated: Whether intervals come from measured errors (``Belief.discrepancy``).
        valid: Whether the simulation stayed finite.
        start: Start values used (one element; empty for worlds that start from a context).
        trust: Probability that errors stay within the spec's tolerances, at ``trust_time``.
        trust_time: Times [M] s on the episode's clock.
    """

    episode: str
    warmup: int
    channels: Mapping[str, ChannelPrediction]
    level: float
    calibrated: bool
    valid: bool
    start: Values
    trust: Array
    trust_time: Array
