"""What a motion keeps to: bounds of commands and simulated signals, and the room left."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.errors import SpecError, closest, listed
from sameworld.core.spec import ChannelSpec, Spec
from sameworld.core.world import Rollout
from sameworld.stages.excite.config import Limit
from sameworld.stages.excite.result import Bound, Margin

__all__ = ["Box", "boxes", "margins", "violations"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Box:
    """All bounds of one signal.

    Attributes:
        channel: The signal.
        action: Index of its first component among the actions; -1 for an observation.
        low: Lower bounds [D].
        high: Upper bounds [D].
        speed: Largest rate.
        acceleration: Largest second derivative.
    """

    channel: ChannelSpec
    action: int
    low: Array
    high: Array
    speed: float
    acceleration: float

    def of_joint(self, joint: ChannelSpec | None) -> bool:
        """Whether the signal is the position or the velocity of a joint."""
        if joint is None or self.action >= 0 or not self.channel.start:
            return False
        return self.channel.start in (joint.start, joint.rate)

    def samples(self, result: Rollout) -> Array:
        """The signal of a rollout [B, T, D]."""
        if self.action >= 0:
            return result.actions[..., self.action : self.action + self.channel.size]
        values = result.signals[self.channel.name]
        return values.reshape(*values.shape[:2], -1)

    def reached(
        self, result: Rollout, period: float
    ) -> Iterator[tuple[Bound, float, float, Array]]:
        """Kind, limit, scale and signed room [B] of every finite bound."""
        samples = self.samples(result)
        span = np.where(np.isfinite(self.high - self.low), self.high - self.low, 1.0)
        span = np.maximum(span, 1e-9)
        for axis in range(self.channel.size):
            low, high, scale = float(self.low[axis]), float(self.high[axis]), float(span[axis])
            if math.isfinite(low):
                yield "low", low, scale, samples[..., axis].min(axis=1) - low
            if math.isfinite(high):
                yield "high", high, scale, high - samples[..., axis].max(axis=1)
        rates = np.diff(samples, axis=1) / period
        turns: tuple[tuple[Bound, float, Array], ...] = (
            ("speed", self.speed, rates),
            ("acceleration", self.acceleration, np.diff(rates, axis=1) / period),
        )
        for kind, most, moved in turns:
            if math.isfinite(most):
                peak = np.abs(moved).max(axis=(1, 2), initial=0.0)
                yield kind, most, most, most - peak


def boxes(spec: Spec, limits: Sequence[Limit]) -> tuple[Box, ...]:
    """Bounds that the spec declares, narrowed by the given limits.

    Raises:
        SpecError: A limit matches nothing, has another number of components, or leaves nothing.
    """
    names = [c.name for c in (*spec.actions, *spec.observations)]
    for limit in limits:
        if not any(fnmatchcase(name, limit.signal) for name in names):
            raise SpecError(
                f"No signal matches the limit '{limit.signal}'. There are {listed(names)}."
                f"{closest(limit.signal, names)}"
            )
    found: list[Box] = []
    at = 0
    for channel in spec.actions:
        found.append(_box(channel, at, limits))
        at += channel.size
    found += [_box(channel, -1, limits) for channel in spec.observations]
    return tuple(found)


def _box(channel: ChannelSpec, action: int, limits: Sequence[Limit]) -> Box:
    low, high = np.full(channel.size, channel.low), np.full(channel.size, channel.high)
    speed = acceleration = math.inf
    for limit in limits:
        if not fnmatchcase(channel.name, limit.signal):
            continue
        if channel.manifold == "quaternion":
            raise SpecError(f"'{channel.name}' is a quaternion and cannot be limited.")
        low = np.maximum(low, _components(limit.low, channel))
        high = np.minimum(high, _components(limit.high, channel))
        speed, acceleration = min(speed, limit.speed), min(acceleration, limit.acceleration)
    if (low > high).any():
        raise SpecError(f"The limits of '{channel.name}' leave no room: low {low}, high {high}.")
    return Box(
        channel=channel, action=action, low=low, high=high, speed=speed, acceleration=acceleration
    )


def _components(bound: float | tuple[float, ...], channel: ChannelSpec) -> Array:
    array = np.atleast_1d(np.asarray(bound, dtype=np.float64))
    if array.size not in (1, channel.size):
        raise SpecError(
            f"'{channel.name}' has {channel.size} components, its limit {array.size} numbers."
        )
    return np.broadcast_to(array, channel.size)


def violations(spec: Spec, bounds: Sequence[Box], result: Rollout) -> Array:
    """How far each motion [B] passes its bounds, summed, each relative to its range."""
    total = np.zeros(result.batch)
    with np.errstate(invalid="ignore"):
        for box in bounds:
            for _, _, scale, room in box.reached(result, spec.period):
                total += np.maximum(-np.nan_to_num(room, nan=-np.inf), 0.0) / scale
    return np.where(result.valid[:, -1], total, np.inf)


def margins(spec: Spec, bounds: Sequence[Box], result: Rollout) -> tuple[Margin, ...]:
    """Room left to every finite bound, the least over the batch and the components."""
    found: list[Margin] = []
    for box in bounds:
        least: dict[Bound, Margin] = {}
        for kind, limit, scale, room in box.reached(result, spec.period):
            left = float(room.min())
            margin = Margin(
                signal=box.channel.name, bound=kind, limit=limit, left=left, share=left / scale
            )
            if kind not in least or margin.share < least[kind].share:
                least[kind] = margin
        found += least.values()
    return tuple(found)
