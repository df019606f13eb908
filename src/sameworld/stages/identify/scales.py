"""What residuals are divided by, and how much each row counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.residuals import Comparison
from sameworld.maths.robust import loss_curvature, loss_weights, mad_scale
from sameworld.stages.identify.config import IdentifyConfig, Weighting

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
        robust: Window index to square-root weights per channel [N, D]; absent means ones.
        curvature: Window index to loss curvature over weight per channel [N, D].
    """

    noise: Mapping[str, float]
    profiles: Mapping[str, Profile]
    robust: Mapping[int, Mapping[str, Array]] = field(
        default_factory=dict[int, "Mapping[str, Array]"]
    )
    curvature: Mapping[int, Mapping[str, Array]] = field(
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

    def plain(self) -> Scales:
        """The same scales with every row counting fully."""
        return Scales(noise=self.noise, profiles=self.profiles)

    def change(self, other: Scales) -> float:
        """Largest relative difference of the residual standard deviations."""
        ratios = [p.std / other.profiles[name].at(p.horizon) for name, p in self.profiles.items()]
        return float(np.max(np.abs(np.log(np.concatenate(ratios))), initial=0.0))

    def weighed(self, parts: Sequence[Sequence[Comparison]], config: IdentifyConfig) -> Scales:
        """The same scales with row weights and curvatures of the loss at these residuals."""
        robust: dict[int, dict[str, Array]] = {}
        curvature: dict[int, dict[str, Array]] = {}
        for window, found in enumerate(parts):
            scaled = {
                p.channel.name: np.nan_to_num(
                    p.error / self.profiles[p.channel.name].at(p.time)[:, None], nan=1e6
                )
                for p in found
            }
            robust[window] = {
                n: loss_weights(r, config.loss, config.threshold) for n, r in scaled.items()
            }
            curvature[window] = {
                n: loss_curvature(r, config.loss, config.threshold) for n, r in scaled.items()
            }
        return Scales(noise=self.noise, profiles=self.profiles, robust=robust, curvature=curvature)

    def at(self, window: int, part: Comparison) -> Array:
        """Divisors of a comparison's errors [N, D] or [N, 1]."""
        std = self.profiles[part.channel.name].at(part.time)[:, None]
        weight = self.robust.get(window, {}).get(part.channel.name)
        return std if weight is None else std / weight

    def curvature_at(self, window: int, part: Comparison) -> Array:
        """Loss curvature over weight of a comparison's errors [N, D]."""
        found = self.curvature.get(window, {}).get(part.channel.name)
        return np.ones_like(part.error) if found is None else found


def estimate_scales(
    noise: Mapping[str, float], parts: Sequence[Sequence[Comparison]], config: IdentifyConfig
) -> Scales:
    """Residual scales and robust weights from the residuals of all windows.

    Args:
        noise: Measurement noise per channel, a floor of every scale.
        parts: Comparisons per window.
        config: Weighting, loss and threshold.
    """
    if config.weighting == "noise":
        profiles = dict(Scales.white(noise).profiles)
    else:
        profiles = {name: _profile(noise[name], name, parts, config.weighting) for name in noise}
    return Scales(noise=noise, profiles=profiles).weighed(parts, config)


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
