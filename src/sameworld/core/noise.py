"""Measurement noise from the data alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel, Episode
from sameworld.core.manifolds import compose, inverse, normalised, quat_log
from sameworld.core.spec import ChannelSpec, Spec

__all__ = ["channel_noise", "noise_levels", "third_differences"]

_MAD = 0.6744897501960817
_FLOOR = {"m": 1e-6, "rad": 1e-6}


def channel_noise(spec: ChannelSpec, channel: Channel) -> float:
    """Standard deviation of the white noise on a channel [unit; rad for quaternions].

    Third divided differences remove whatever is locally quadratic, also where stamps are uneven;
    their median absolute value is not disturbed by a few impacts. Motion that is not locally
    quadratic counts as noise, so the estimate errs upwards. A channel with a stated ``noise``
    keeps it.

    Source: the differencing estimator of T. Gasser, L. Sroka, C. Jennen-Steinmetz, "Residual
    variance and residual pattern in nonlinear regression", Biometrika 73 (1986).
    """
    if channel.noise is not None:
        return channel.noise
    samples = _flat(spec, channel)
    if len(samples) < 5:
        return _floor(spec, samples)
    sigma = float(np.median(np.abs(third_differences(spec, channel)))) / _MAD
    return max(sigma, _floor(spec, samples))


def third_differences(spec: ChannelSpec, channel: Channel) -> Array:
    """Third divided differences [T-3, D] of a channel, scaled like its noise [unit or rad]."""
    return _third(channel.time, _flat(spec, channel))


def _third(time: Array, samples: Array) -> Array:
    """Third divided differences [T-3, D], scaled so that white noise keeps its deviation."""
    count = len(time) - 3
    local = np.stack([time[k : count + k] for k in range(4)], axis=1)
    local = (local - local[:, :1]) / (local[:, 3:] - local[:, :1])
    weights = 1 / np.prod(local[:, :, None] - local[:, None, :] + np.eye(4), axis=2)
    weights = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    return np.einsum("tk,tkd->td", weights, np.stack([samples[k : count + k] for k in range(4)], 1))


def _flat(spec: ChannelSpec, channel: Channel) -> Array:
    if spec.manifold == "quaternion":
        q = normalised(channel.values)
        turns = quat_log(compose(inverse(q[:-1]), q[1:]))
        return np.concatenate([np.zeros((1, 3)), np.cumsum(turns, axis=0)])
    return channel.values.reshape(len(channel), -1)


def _floor(spec: ChannelSpec, samples: Array) -> float:
    spread = float(np.max(np.ptp(samples, axis=0), initial=0.0))
    return max(1e-6 * spread, _FLOOR.get(spec.unit, 1e-9))


def noise_levels(spec: Spec, episodes: Sequence[Episode]) -> dict[str, float]:
    """Noise of every shared observation channel, the median over episodes."""
    levels: dict[str, float] = {}
    for channel in spec.observations:
        found = [channel_noise(channel, e[channel.name]) for e in episodes if channel.name in e]
        if found:
            levels[channel.name] = float(np.median(found))
    return levels
