"""``predict``: what will be measured next, from a few warm-up rows, with honest intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Episode
from sameworld.core.errors import SpecError
from sameworld.core.prediction import ChannelPrediction, Prediction
from sameworld.core.residuals import scored_rows, shared_channels, warmed_up
from sameworld.core.rollout import rollout
from sameworld.core.signals import (
    check_episode,
    difference,
    held_actions,
    interpolate,
    ticks_for,
)
from sameworld.core.spec import ChannelSpec
from sameworld.core.starts import context_from, estimate_starts, session_values
from sameworld.core.values import Values
from sameworld.core.world import Rollout, World

__all__ = ["predict", "predict_all"]

_CHUNK = 64


def predict(
    world: World,
    episode: Episode,
    warmup: int,
    *,
    level: float = 0.9,
    noise: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Prediction:
    """Predict an episode open loop from its first ``warmup`` rows.

    The start (or context) comes from those rows only. The prediction begins after the last of them:
    where channels have clocks of their own, after the warm-up rows of the slowest.
    Intervals come from the belief's discrepancy, learned under the same protocol; a world whose
    errors were never measured gives intervals of zero width and says ``calibrated=False``.

    Args:
        world: Any world.
        episode: The episode, measured.
        warmup: Rows of each observation channel used to find the start; one is enough where every
            start is observed directly or has a prior.
        level: Probability of the central intervals.
        noise: Measurement noise per channel [unit], known from elsewhere, by which warm-up rows
            are weighted; by default what the discrepancy was learned with, else estimated from the
            warm-up rows.
        seed: Seed of stochastic worlds.

    Returns:
        Prediction at the measurement times after the warm-up.

    Raises:
        EpisodeError: The episode does not fit the world, or is too short.
    """
    return predict_all(world, [episode], warmup, level=level, noise=noise, seed=seed)[0]


def predict_all(
    world: World,
    episodes: Sequence[Episode],
    warmup: int,
    *,
    level: float = 0.9,
    noise: Mapping[str, float] | None = None,
    seed: int = 0,
) -> list[Prediction]:
    """Predict many episodes in batches; each result equals that of ``predict``."""
    if not 0 < level < 1:
        raise SpecError(f"level = {level} must be a probability in (0, 1), for example 0.9.")
    for episode in episodes:
        check_episode(world.spec, episode)
    known = world.parameters.discrepancy
    given = noise if noise is not None or known is None else known.noise
    order = sorted(range(len(episodes)), key=lambda i: episodes[i].end - episodes[i].begin)
    results: dict[int, Prediction] = {}
    for at in range(0, len(order), _CHUNK):
        chosen = order[at : at + _CHUNK]
        launch = _launch(world, [episodes[i] for i in chosen], warmup, given, seed)
        batch = _predict_batch(world, [episodes[i] for i in chosen], launch, warmup, level)
        results.update(zip(chosen, batch, strict=True))
    return [results[i] for i in range(len(episodes))]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Launch:
    """A simulated batch and the episode times at which its elements begin."""

    rollout: Rollout
    begin: Array
    starts: Values


def _launch(
    world: World,
    episodes: Sequence[Episode],
    warmup: int,
    noise: Mapping[str, float] | None,
    seed: int,
) -> _Launch:
    spec = world.spec
    parameters = session_values(world, episodes, Values.none())
    if spec.starts_from == "context":
        start, begin = context_from(spec, episodes, warmup)
        starts = Values.none(len(episodes))
    else:
        found = estimate_starts(world, episodes, warmup=warmup, noise=noise, seed=seed)
        start = starts = found.values
        begin = np.array([e.begin for e in episodes])
    longest = max(e.end - float(b) for e, b in zip(episodes, begin, strict=True))
    ticks = ticks_for(spec, longest)
    actions = np.stack(
        [held_actions(spec, e, float(b), ticks) for e, b in zip(episodes, begin, strict=True)]
    )
    result = rollout(world, start, actions, parameters=parameters, seed=seed)
    return _Launch(rollout=result, begin=begin, starts=starts)


def _predict_batch(
    world: World, episodes: Sequence[Episode], launch: _Launch, warmup: int, level: float
) -> list[Prediction]:
    discrepancy = world.parameters.discrepancy
    found: list[Prediction] = []
    for row, episode in enumerate(episodes):
        begin = float(launch.begin[row])
        shared = shared_channels(world.spec, episode)
        last = warmed_up(world.spec, episode, warmup)
        rows = scored_rows(world.spec, episode, warmup)
        channels: dict[str, ChannelPrediction] = {}
        for channel, measured in shared:
            kept = rows[channel.name]
            time, values = measured.time[kept], measured.values[kept]
            simulated = launch.rollout.signals[channel.name][row]
            predicted = interpolate(channel, world.spec.period, simulated, time - begin)
            half = _half_width(world, channel, time - last, level)
            channels[channel.name] = _channel(channel, time, values, predicted, half)
        covered = launch.rollout.time <= episode.end - begin + 1e-9
        found.append(
            Prediction(
                episode=episode.id,
                warmup=warmup,
                channels=channels,
                level=level,
                calibrated=discrepancy is not None,
                valid=bool(launch.rollout.valid[row][covered].all()),
                start=launch.starts.rows([row]),
                trust=_trust(world, launch.rollout, row, last - begin)[covered],
                trust_time=launch.rollout.time[covered] + begin,
            )
        )
    return found


def _channel(
    channel: ChannelSpec, time: Array, measured: Array, predicted: Array, half: Array
) -> ChannelPrediction:
    """Predicted samples [N, ...] with intervals of half widths [N, D] and errors."""
    if channel.manifold == "quaternion":
        low, high = -half, half
    else:
        shaped = half.reshape(len(time), *channel.shape)
        low, high = predicted - shaped, predicted + shaped
    error = difference(channel, predicted, measured)
    return ChannelPrediction(time=time, values=predicted, low=low, high=high, error=error)


def _half_width(world: World, channel: ChannelSpec, horizon: Array, level: float) -> Array:
    discrepancy = world.parameters.discrepancy
    if discrepancy is None or channel.name not in discrepancy.channels:
        return np.zeros((len(horizon), channel.tangent))
    return discrepancy.channels[channel.name].half_width(horizon, level)


def _trust(world: World, result: Rollout, row: int, warmup: float) -> Array:
    """Trust along the rollout, with horizons counted from the last warm-up row."""
    discrepancy = world.parameters.discrepancy
    horizon = np.maximum(result.time - warmup, 0.0)
    rows = [
        discrepancy.channels[c.name].within(horizon, c.tolerance)
        for c in world.spec.observations
        if discrepancy is not None and c.name in discrepancy.channels and np.isfinite(c.tolerance)
    ]
    if not rows:
        return np.full(len(horizon), np.nan)
    return np.where(result.valid[row], np.min(rows, axis=0), 0.0)
