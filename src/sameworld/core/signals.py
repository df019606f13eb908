"""Between control ticks and measurement times: interpolation, errors, held actions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel, Episode
from sameworld.core.errors import EpisodeError, SameworldWarning, listed
from sameworld.core.manifolds import compose, inverse, inverse_left_jacobian, quat_exp, quat_log
from sameworld.core.spec import ChannelSpec, Spec
from sameworld.core.units import suspicion

__all__ = [
    "check_episode",
    "difference",
    "difference_jacobian",
    "held_actions",
    "interpolate",
    "lerp",
    "pull_difference",
    "pull_lerp",
    "ticks_for",
]


def lerp(period: float, values: Array, at: Array) -> Array:
    """Linear interpolation of values [T+1, ...] given every ``period`` s at times ``at`` [N] s."""
    index, share = _knots(period, len(values), at)
    if share.max(initial=0.0) < 1e-9:  # measured on the ticks
        return values[index]
    share = share.reshape(-1, *[1] * (values.ndim - 1))
    after = np.minimum(index + 1, len(values) - 1)
    return (1 - share) * values[index] + share * values[after]


def pull_lerp(period: float, rows: int, weights: Array, at: Array) -> Array:
    """Transpose of ``lerp``: weights [N, ...] at times ``at`` [N] s, on ticks [rows, ...]."""
    index, share = _knots(period, rows, at)
    share = share.reshape(-1, *[1] * (weights.ndim - 1))
    found = np.zeros((rows, *weights.shape[1:]))
    np.add.at(found, index, (1 - share) * weights)
    np.add.at(found, np.minimum(index + 1, rows - 1), share * weights)
    return found


def _knots(period: float, rows: int, at: Array) -> tuple[np.ndarray, Array]:
    place = np.asarray(at) / period
    index = np.clip(np.floor(place + 1e-9).astype(int), 0, max(rows - 1, 0))
    share = np.clip(place - index, 0.0, 1.0)
    share[(share < 1e-9) | (index >= rows - 1)] = 0.0
    return index, share


def interpolate(channel: ChannelSpec, period: float, values: Array, at: Array) -> Array:
    """Simulated samples [T+1, ...] on control ticks, brought to measurement times ``at`` [N] s.

    Linear, or along the shortest rotation for quaternions. Data are never moved to a grid: the
    simulation comes to the measurement.
    """
    if channel.manifold != "quaternion":
        return lerp(period, values, at)
    index, share = _knots(period, len(values), at)
    first = values[index]
    if share.max(initial=0.0) < 1e-9:  # measured on the ticks
        return first
    second = values[np.minimum(index + 1, len(values) - 1)]
    turn = quat_log(compose(inverse(first), second))
    return compose(first, quat_exp(share[:, None] * turn))


def difference(channel: ChannelSpec, predicted: Array, measured: Array) -> Array:
    """Error ``measured - predicted``, flattened to [..., D].

    For quaternions it is the rotation vector of ``predicted^-1 measured`` [rad, body frame].
    """
    if channel.manifold == "quaternion":
        return quat_log(compose(inverse(predicted), measured))
    axes = len(channel.shape)
    error = measured - predicted
    return error.reshape(*error.shape[: error.ndim - axes], channel.size)


def difference_jacobian(channel: ChannelSpec, error: Array, tangent: Array) -> Array:
    """Derivative of ``difference`` given the derivative of the prediction.

    Args:
        channel: The channel.
        error: ``difference`` at the point [..., D].
        tangent: Tangent derivative of the prediction [..., D, N].

    Returns:
        Derivative of the error [..., D, N].
    """
    if channel.manifold != "quaternion":
        return -tangent
    return -inverse_left_jacobian(error) @ tangent


def pull_difference(channel: ChannelSpec, error: Array, weights: Array) -> Array:
    """Transpose of ``difference_jacobian``: weights of errors [..., D] as those of the tangents."""
    if channel.manifold != "quaternion":
        return -weights
    return -(np.swapaxes(inverse_left_jacobian(error), -1, -2) @ weights[..., None])[..., 0]


def ticks_for(spec: Spec, duration: float) -> int:
    """Control ticks needed to cover ``duration`` seconds."""
    return max(int(np.ceil(duration / spec.period - 1e-6)), 1)


def held_actions(spec: Spec, episode: Episode, begin: float, ticks: int) -> Array:
    """Actions on control ticks [T, A]: the mean of the zero-order hold over each tick.

    Where commands are stamped on the ticks that is the command itself; where they are not, a
    change in the middle of a tick acts from there on, not from the next tick.

    Raises:
        EpisodeError: An action channel of the spec is missing or has another shape.
    """
    times = begin + spec.period * np.arange(ticks, dtype=np.float64)
    columns: list[Array] = []
    for action in spec.actions:
        if action.default is not None and action.name not in episode:
            columns.append(np.full((ticks, action.size), action.default))
            continue
        _check_action(spec, action, episode)
        held = episode[action.name].averaged(times, spec.period)
        if held.shape[1:] != action.shape:
            raise EpisodeError(
                f"Action channel '{action.name}' of episode '{episode.id}' has samples of shape "
                f"{held.shape[1:]}, the world needs {action.shape}."
            )
        columns.append(held.reshape(ticks, action.size))
    return np.concatenate(columns, axis=1) if columns else np.zeros((ticks, 0))


def check_episode(spec: Spec, episode: Episode, *, names: Sequence[str] | None = None) -> None:
    """Verify that an episode can be compared with a world.

    Channels the world does not offer are allowed and ignored unless named; shared ones must agree
    in shape and unit, hold plausible magnitudes for their unit, and unit-length quaternions.

    Raises:
        EpisodeError: Nothing is shared, or a shared channel does not fit; says what to do.
    """
    offered = {c.name: c for c in (*spec.observations, *spec.actions)}
    observed = [c for c in episode.observations if c.name in offered]
    if names is not None:
        for name in names:
            _ = episode[name], spec.observation(name)
    if not observed:
        raise EpisodeError(
            f"Episode '{episode.id}' observes {listed(c.name for c in episode.observations)}, the "
            f"world offers {listed(c.name for c in spec.observations)}: nothing in common. "
            "Rename the channels to the world's names."
        )
    for channel in observed:
        if len(channel) < 2:
            raise EpisodeError(
                f"Episode '{episode.id}': channel '{channel.name}' has {len(channel)} sample(s); "
                "a trajectory needs at least 2."
            )
    for channel in episode.channels:
        if channel.name in offered:
            _check_channel(offered[channel.name], channel, episode.id)
    for action in spec.actions:
        _check_action(spec, action, episode)


def _check_action(spec: Spec, action: ChannelSpec, episode: Episode) -> None:
    """An action channel must be there and must have been sent while the episode ran."""
    if action.name not in episode:
        if action.default is not None:
            return
        have = [c.name for c in episode.channels if c.role != "observation"]
        raise EpisodeError(
            f"Episode '{episode.id}' lacks the action channel '{action.name}'. It has actions "
            f"{listed(have)}; the world needs {listed(c.name for c in spec.actions)}."
        )
    sent = episode[action.name]
    if len(sent) > 1 and (sent.time[-1] < episode.begin or sent.time[0] > episode.end):
        raise EpisodeError(
            f"Action channel '{action.name}' of episode '{episode.id}' runs from "
            f"{sent.time[0]:.6g} to {sent.time[-1]:.6g} s, the observations from "
            f"{episode.begin:.6g} to {episode.end:.6g} s: no overlap. Bring both onto one clock."
        )
    beyond = (sent.values < action.low) | (sent.values > action.high)
    if beyond.any():
        warnings.warn(
            f"{int(beyond.sum())} of {beyond.size} commands on '{action.name}' of episode "
            f"'{episode.id}' lie outside [{action.low:.4g}, {action.high:.4g}] {action.unit} and "
            "are limited. Check their unit and scale.",
            SameworldWarning,
            stacklevel=3,
        )


def _check_channel(spec: ChannelSpec, channel: Channel, episode: str) -> None:
    what = f"Channel '{channel.name}' of episode '{episode}'"
    if channel.values.shape[1:] != spec.shape:
        raise EpisodeError(
            f"{what} has samples of shape {channel.values.shape[1:]}, the world has {spec.shape}."
        )
    if channel.unit and spec.unit and channel.unit != spec.unit:
        raise EpisodeError(
            f"{what} is in '{channel.unit}', the world in '{spec.unit}'. Convert it first."
        )
    if spec.manifold == "quaternion":
        norms = np.linalg.norm(channel.values, axis=-1)
        if np.abs(norms - 1).max() > 1e-2:
            raise EpisodeError(
                f"{what} holds quaternions of length {norms.min():.3g} to {norms.max():.3g}; "
                "they must be unit quaternions, scalar first (wxyz)."
            )
        return
    doubt = suspicion(channel.values, spec.unit, spec.low, spec.high)
    if doubt:
        raise EpisodeError(
            f"{what}: {doubt}. Convert the channel to '{spec.unit}' first. If the recording is "
            "right, look at the limits of the scene: MJCF reads ranges as degrees unless it says "
            '<compiler angle="radian"/>.'
        )
