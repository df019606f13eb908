"""``Discrepancy``: how far a world's predictions are off, by channel and horizon.

No simulator is right. What remains after fitting is learned from residuals of predictions on
episodes, made under the same protocol (start from a few warm-up rows) that later predictions
use, and kept with the belief. Prediction intervals and ``trust`` come from here.

Source: distribution-free intervals from residual quantiles follow split conformal prediction,
J. Lei et al., "Distribution-free predictive inference for regression", JASA 113 (2018).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from sameworld.core.arrays import Array, finite_array
from sameworld.core.errors import BeliefError

__all__ = ["ChannelDiscrepancy", "Discrepancy"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelDiscrepancy:
    """Quantiles of absolute errors of one channel over the prediction horizon.

    Attributes:
        horizon: Seconds since the last warm-up row [K], increasing.
        levels: Probability levels [L], increasing, in (0, 1).
        quantiles: Quantiles of the absolute error of each component [K, L, D], in the channel's
            unit (rad in the body frame for quaternions), non-decreasing along L.
        magnitude: Quantiles of the error's Euclidean norm [K, L].
    """

    horizon: Array
    levels: Array
    quantiles: Array
    magnitude: Array

    def __post_init__(self) -> None:
        for name, ndim in (("horizon", 1), ("levels", 1), ("quantiles", 3), ("magnitude", 2)):
            checked = finite_array(
                getattr(self, name), f"Discrepancy {name}", error=BeliefError, ndim=ndim
            )
            object.__setattr__(self, name, checked)
        if self.quantiles.shape[:2] != (len(self.horizon), len(self.levels)):
            raise BeliefError(f"Discrepancy quantiles have shape {self.quantiles.shape}.")
        if self.magnitude.shape != self.quantiles.shape[:2]:
            raise BeliefError(f"Discrepancy magnitude has shape {self.magnitude.shape}.")

    def half_width(self, horizon: Array, level: float) -> Array:
        """Half width of a central interval at ``horizon`` [T] s, shape [T, D]."""
        by_level = _along_levels(self.levels, self.quantiles, level)
        columns = [
            np.interp(horizon, self.horizon, by_level[:, d]) for d in range(by_level.shape[1])
        ]
        return np.stack(columns, axis=-1)

    def within(self, horizon: Array, tolerance: float) -> Array:
        """Probability that the error's norm stays within ``tolerance`` at ``horizon`` [T] s."""
        at_knots = [self._share_within(row, tolerance) for row in self.magnitude]
        return np.interp(horizon, self.horizon, np.array(at_knots))

    def _share_within(self, row: Array, tolerance: float) -> float:
        top = float(row[-1])
        if tolerance < top:
            return float(np.interp(tolerance, [0.0, *row.tolist()], [0.0, *self.levels.tolist()]))
        tail = 1 - float(self.levels[-1])
        return 1 - tail * top / max(tolerance, 1e-300)


@dataclass(frozen=True, kw_only=True, eq=False)
class Discrepancy:
    """Errors of a world's predictions, one record per channel.

    Attributes:
        channels: Channel name to its error quantiles.
        episodes: Number of episodes behind the quantiles.
        warmup: Number of warm-up rows under which they were learned.
        noise: Measurement noise per channel [unit] by which warm-up rows were weighted.
    """

    channels: Mapping[str, ChannelDiscrepancy]
    episodes: int
    warmup: int
    noise: Mapping[str, float] = field(default_factory=dict[str, float])

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready mapping."""
        return {
            "episodes": self.episodes,
            "warmup": self.warmup,
            "noise": dict(self.noise),
            "channels": {
                name: {key: value.tolist() for key, value in vars(channel).items()}
                for name, channel in self.channels.items()
            },
        }

    @classmethod
    def from_json(cls, record: Any) -> Discrepancy:
        """Rebuild from ``to_json`` output.

        Raises:
            BeliefError: The record does not have the expected keys or shapes.
        """
        try:
            channels = {
                str(name): ChannelDiscrepancy(**fields)
                for name, fields in cast("dict[str, Any]", record["channels"]).items()
            }
            return cls(
                channels=channels,
                episodes=int(record["episodes"]),
                warmup=int(record["warmup"]),
                noise={str(k): float(v) for k, v in record.get("noise", {}).items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as cause:
            raise BeliefError(f"Discrepancy record is malformed: {cause!r}.") from cause


def _along_levels(levels: Array, quantiles: Array, level: float) -> Array:
    if not 0 < level <= levels[-1]:
        raise BeliefError(f"Level {level} is not in (0, {levels[-1]:.3g}].")
    upper = int(np.searchsorted(levels, level))
    lower = max(upper - 1, 0)
    span = levels[upper] - levels[lower]
    share = 1.0 if span == 0 else (level - levels[lower]) / span
    return (1 - share) * quantiles[:, lower] + share * quantiles[:, upper]
