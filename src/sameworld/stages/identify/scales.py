"""What residuals are divided by, and how much each row counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.residuals import Comparison
from sameworld.maths.robust import huber_weights, mad_scale
from sameworld.stages.identify.config import Weighting

__all__ = ["Profile", "Scales", "estimate_scales"]

_BINS = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile:
    """Residual standard deviation of a channel over the time since the window began.

    Attributes:
        horizon: Knots [K] s.
        std: Standard deviation at the knots [K], in the channel's unit.
    """

    horizon: Array
    std: Array

    def at(self, time: Array) -> Array:
        """Standard deviation at times [N] s."""
        return np.interp(time, self.horizon, self.std)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scales:
    """Weights of a least-squares problem.

    Attributes:
        noise: Measurement noise per channel [unit].
        profiles: Residual standard deviation per channel.
        robust: Window index to square-root row weights per channel; absent means ones.
    """

    noise: Mapping[str, float]
    profiles: Mapping[str, Profile]
    robust: Mapping[int, Mapping[str, Array]] = field(
        default_factory=dict[int, "Mapping[str, Array]"]
    )

    @classmethod
    def white(cls, noise: Mapping[str, float]) -> Scales:
        """Weights from the measurement noise alone."""
        profiles = {
            name: Profile(horizon=np.zeros(1), std=np.array([sigma]))
            for name, sigma in noise.items()
        }
        return cls(noise=noise, profiles=profiles)

    def at(self, window: int, part: Comparison) -> Array:
        """Divisors of a comparison's errors [N, 1]."""
        std = self.profiles[part.channel.name].at(part.time)
        weight = self.robust.get(window, {}).get(part.channel.name)
        return (std if weight is None else std / weight)[:, None]


def estimate_scales(
    noise: Mapping[str, float],
    parts: Sequence[Sequence[Comparison]],
    *,
    weighting: Weighting,
    huber: float,
) -> Scales:
    """Residual scales and robust weights from the residuals of all windows.

    Args:
        noise: Measurement noise per channel, a floor of every scale.
        parts: Comparisons per window.
        weighting: What the scale may depend on.
        huber: Threshold in standard deviations; 0 for no robust weights.
    """
    if weighting == "noise":
        profiles = dict(Scales.white(noise).profiles)
    else:
        profiles = {name: _profile(noise[name], name, parts, weighting) for name in noise}
    robust: dict[int, dict[str, Array]] = {}
    if huber > 0:
        for window, found in enumerate(parts):
            robust[window] = {
                p.channel.name: _row_weights(p, profiles[p.channel.name], huber) for p in found
            }
    return Scales(noise=noise, profiles=profiles, robust=robust)


def _row_weights(part: Comparison, profile: Profile, huber: float) -> Array:
    size = np.sqrt(np.mean(part.error**2, axis=1))
    norms = np.nan_to_num(size / profile.at(part.time), nan=1e6, posinf=1e6)
    return huber_weights(norms, huber)


def _profile(
    noise: float, name: str, parts: Sequence[Sequence[Comparison]], weighting: Weighting
) -> Profile:
    chosen = [p for found in parts for p in found if p.channel.name == name]
    time = np.concatenate([np.repeat(p.time, p.error.shape[1]) for p in chosen])
    error = np.concatenate([p.error.reshape(-1) for p in chosen])
    fine = np.isfinite(error)
    time, error = time[fine], error[fine]
    if weighting == "channel" or len(error) < 4 * _BINS:
        return Profile(horizon=np.zeros(1), std=np.array([max(mad_scale(error), noise)]))
    edges = np.quantile(time, np.linspace(0, 1, _BINS + 1))
    edges = np.unique(edges)
    place = np.clip(np.searchsorted(edges, time, side="right") - 1, 0, len(edges) - 2)
    centres = [float(np.mean(time[place == k])) for k in range(len(edges) - 1)]
    scales = [max(mad_scale(error[place == k]), noise) for k in range(len(edges) - 1)]
    return Profile(horizon=np.array(centres), std=np.array(scales))
