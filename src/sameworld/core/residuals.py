"""Noise-weighted residuals of one simulated element against one episode, with derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array, Signals
from sameworld.core.episode import Channel, Episode
from sameworld.core.signals import difference, difference_jacobian, interpolate, lerp
from sameworld.core.spec import ChannelSpec, Spec

__all__ = ["Comparison", "compare", "scored_rows", "shared_channels", "warmed_up"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Errors of one channel at its measurement times.

    Attributes:
        channel: What was compared.
        time: Measurement times since the start of the simulation [N] s.
        error: ``measured - simulated`` [N, D] in the channel's unit (rad for quaternions).
        jacobian: Derivative of ``error`` with respect to the named inputs [N, D, M]; M may be 0.
        rate: Time derivative of the simulated signal [N, D] in unit per second; empty unless
            asked for.
    """

    channel: ChannelSpec
    time: Array
    error: Array
    jacobian: Array
    rate: Array

    def weighted(self, scale: float | Array) -> tuple[Array, Array]:
        """Residuals [N*D] and Jacobian [N*D, M] divided by ``scale`` (scalar, [N, 1] or [N, D])."""
        scale = np.broadcast_to(np.asarray(scale, dtype=np.float64), self.error.shape)
        residual = (self.error / scale).reshape(-1)
        columns = self.jacobian.shape[-1]
        return residual, (self.jacobian / scale[..., None]).reshape(len(residual), columns)


def shared_channels(spec: Spec, episode: Episode) -> tuple[tuple[ChannelSpec, Channel], ...]:
    """Observation channels that both the world and the episode have, in the world's order."""
    return tuple((c, episode[c.name]) for c in spec.observations if c.name in episode)


def warmed_up(spec: Spec, episode: Episode, warmup: int) -> float:
    """Episode time of the last warm-up row of any channel [s]; what comes later may be scored.

    Channels have clocks of their own: a slow channel's ``warmup`` rows reach far into a fast one's
    record, and the start that they gave has seen all of it.
    """
    shared = shared_channels(spec, episode)
    return max((float(m.time[min(warmup, len(m)) - 1]) for _, m in shared), default=-np.inf)


def scored_rows(spec: Spec, episode: Episode, warmup: int) -> dict[str, slice]:
    """Rows of each shared channel after all warm-up rows; every row for a warm-up of 0."""
    last = warmed_up(spec, episode, warmup) if warmup else -np.inf
    return {
        channel.name: slice(int(np.searchsorted(measured.time, last + 1e-9, side="right")), None)
        for channel, measured in shared_channels(spec, episode)
    }


def compare(
    spec: Spec,
    episode: Episode,
    signals: Signals,
    derivatives: Mapping[str, Array] | None = None,
    *,
    begin: float | None = None,
    rows: slice | Mapping[str, slice] = slice(None),
    rates: bool = False,
) -> list[Comparison]:
    """Bring one simulated element to the measurement times and subtract.

    Args:
        spec: The world's spec.
        episode: What was measured.
        signals: Simulated channels of the element [T+1, ...] on control ticks.
        derivatives: Their tangent derivatives [T+1, D, M], if wanted.
        begin: Episode time at which the simulation starts [s]; the episode's begin by default.
        rows: Which rows of each channel to compare; by channel if a mapping.
        rates: Whether to compute time derivatives of the simulated signals.

    Returns:
        One comparison per shared channel, in the world's order.
    """
    begin = episode.begin if begin is None else begin
    found: list[Comparison] = []
    for channel, measured in shared_channels(spec, episode):
        kept = rows if isinstance(rows, slice) else rows[channel.name]
        at = measured.time[kept] - begin
        simulated = signals[channel.name]
        error = difference(
            channel, interpolate(channel, spec.period, simulated, at), measured.values[kept]
        )
        jacobian = np.zeros((*error.shape, 0))
        if derivatives is not None:
            tangent = lerp(spec.period, derivatives[channel.name], at)
            jacobian = difference_jacobian(channel, error, tangent)
        rate = _rate(channel, spec.period, simulated, at) if rates else np.zeros((0, 0))
        found.append(
            Comparison(channel=channel, time=at, error=error, jacobian=jacobian, rate=rate)
        )
    return found


def _rate(channel: ChannelSpec, period: float, simulated: Array, at: Array) -> Array:
    slope = difference(channel, simulated[:-1], simulated[1:]) / period
    index = np.clip(np.floor(at / period + 1e-9).astype(int), 0, len(slope) - 1)
    return slope[index]
