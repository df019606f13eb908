"""Channels with clocks of their own, brought to one rate and compared with what they were."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel
from sameworld.core.errors import StoreError
from sameworld.core.manifolds import continuous, normalised
from sameworld.maths.rotations import angle_between, slerp

__all__ = ["at_times", "is_quaternion", "median_rate", "row_times", "sample_errors"]

_UNIT = 1e-3


def row_times(
    episode: str, channels: Iterable[Channel], pictures: Iterable[Array], fps: int
) -> Array:
    """Times of rows inside the span that everything was measured in, [T] s.

    Rows begin when the last signal has begun and end when the first observation or camera ends;
    actions and exogenous inputs are held until then.

    Args:
        episode: Id, for errors.
        channels: Channels that get rows.
        pictures: Stamps of the cameras [N] s.
        fps: Rows a second.

    Raises:
        StoreError: There is no such span.
    """
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    for channel in channels:
        first[channel.name] = float(channel.time[0])
        if channel.role == "observation":
            last[channel.name] = float(channel.time[-1])
    for number, stamps in enumerate(pictures):
        first[f"camera {number}"], last[f"camera {number}"] = float(stamps[0]), float(stamps[-1])
    latest, earliest = max(first, key=lambda n: first[n]), min(last, key=lambda n: last[n])
    begin, end = first[latest], last[earliest]
    if end < begin:
        raise StoreError(
            f"Episode '{episode}': '{earliest}' ends at {end:.6g} s, before '{latest}' begins at "
            f"{begin:.6g} s. Leave one of them out."
        )
    rows = int(np.floor((end - begin) * fps + 1e-6)) + 1
    return begin + np.arange(rows) / fps


def is_quaternion(channel: Channel) -> bool:
    """Whether the samples are unit quaternions [T, 4]."""
    if channel.values.shape[1:] != (4,):
        return False
    norms = np.linalg.norm(channel.values, axis=1)
    return bool(np.all(np.abs(norms - 1) < _UNIT))


def at_times(channel: Channel, times: Array, *, quaternion: bool = False) -> Array:
    """Samples at ``times`` [T] s: observations interpolated, all else held, [T, ...].

    Args:
        channel: The channel.
        times: Times inside its span [s].
        quaternion: Interpolate along the shortest rotation.
    """
    if channel.role != "observation":
        return channel.held(times)
    place = np.interp(times, channel.time, np.arange(len(channel), dtype=np.float64))
    before = np.minimum(place.astype(np.int64), len(channel) - 1)
    after = np.minimum(before + 1, len(channel) - 1)
    share = place - before
    if quaternion:
        q = continuous(normalised(channel.values))
        return slerp(q[before], q[after], share)
    share = share.reshape(-1, *[1] * (channel.values.ndim - 1))
    return (1 - share) * channel.values[before] + share * channel.values[after]


def sample_errors(original: Channel, rows: Channel, *, quaternion: bool = False) -> Array:
    """Errors of ``rows`` at the original stamps that they span, [N] in the channel's unit.

    The largest component counts; for quaternions the angle [rad].
    """
    inside = (original.time >= rows.time[0] - 1e-9) & (original.time <= rows.time[-1] + 1e-9)
    if not inside.any():
        return np.zeros(0)
    truth = original.values[inside]
    found = at_times(rows, original.time[inside], quaternion=quaternion)
    if quaternion:
        return np.abs(angle_between(normalised(truth), found))
    return np.abs(found - truth).reshape(len(truth), -1).max(axis=1, initial=0.0)


def median_rate(time: Array) -> float:
    """Median rate of stamps [1/s]; 0 for fewer than two."""
    return float(1 / np.median(np.diff(time))) if len(time) > 1 else 0.0
