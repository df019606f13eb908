"""Synthetic recordings of known truth for the tests of identification."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sameworld.core import Channel, Episode, Values, World, rollout
from sameworld.stages.identify import IdentifyConfig

MASS, DAMPING, GRAVITY = "body:bob.mass", "joint:pivot.damping", "option:gravity.z"
CART = ("body:cart.mass", "joint:rail.damping")
PENDULUM_NOISE = {"pivot.pos": 0.003, "pivot.vel": 0.03}
CART_NOISE = {"rail.pos": 0.002, "rail.vel": 0.02}


def quick(*free: str, **options: object) -> IdentifyConfig:
    """Options that make small smooth problems fast; anything may be overridden."""
    base = IdentifyConfig(
        free=free,
        window=np.inf,
        starts="joint",
        weighting="noise",
        loss="linear",
        rounds=1,
        search="none",
        holdout=0.0,
        prior=False,
    )
    return replace(base, **options)


def random_starts(world: World, count: int, seed: int, spread: float = 0.6) -> Values:
    """Starts [E, S] of a one-joint world."""
    rng = np.random.default_rng(seed)
    names = world.spec.start.names
    return Values(names=names, array=rng.normal(0, spread, (count, len(names))))


def smooth_actions(
    world: World, count: int, ticks: int, seed: int, size: float = 1.0
) -> np.ndarray:
    """Actions [E, T, 1] that change every fifth tick; ``size`` 0 gives passive motion."""
    rng = np.random.default_rng(seed)
    knots = rng.uniform(-size, size, (count, -(-ticks // 5), world.spec.action_size))
    return np.repeat(knots, 5, axis=1)[:, :ticks]


def record(
    world: World,
    count: int,
    *,
    truth: Mapping[str, float] | None = None,
    noise: Mapping[str, float] | None = None,
    ticks: int = 60,
    size: float = 1.0,
    spread: float = 0.6,
    every: Mapping[str, int] | None = None,
    jitter: float = 0.0,
    late: float = 0.0,
    seed: int = 0,
) -> list[Episode]:
    """Record episodes of a world that behaves by ``truth``.

    Args:
        world: Who plays reality.
        count: Episodes E.
        truth: Parameter values.
        noise: White noise per channel; channels that are absent are not recorded.
        ticks: Control ticks per episode.
        size: Size of random actions.
        spread: Spread of random starts.
        every: Keep every n-th sample of a channel.
        jitter: Random shift of sampling times, as a share of the period.
        late: Sampling steps by which stamps lag the samples.
        seed: Seed of starts, actions and noise.
    """
    rng = np.random.default_rng([seed, 7])
    noise = noise or {c.name: 1e-3 for c in world.spec.observations}
    actions = smooth_actions(world, count, ticks, seed, size)
    parameters = Values.of(truth) if truth else None
    result = rollout(
        world, random_starts(world, count, seed, spread), actions, parameters=parameters
    )
    period = world.spec.period
    episodes = []
    for i in range(count):
        channels = []
        for name, sigma in noise.items():
            at = result.time[:: (every or {}).get(name, 1)].copy()
            at[1:-1] += jitter * period * rng.uniform(-1, 1, len(at) - 2)
            exact = np.interp(at, result.time, result.signals[name][i])
            values = exact + sigma * rng.normal(size=len(at))
            channels.append(Channel(name=name, time=at + late * period, values=values))
        motor = world.spec.actions[0].name
        channels.append(
            Channel(name=motor, time=result.time[:-1], values=actions[i, :, 0], role="action")
        )
        episodes.append(Episode(id=f"e{i}", channels=tuple(channels)))
    return episodes
