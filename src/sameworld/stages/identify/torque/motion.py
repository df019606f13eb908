"""From episodes to motion: one clock, no noise above the cut-off, no delay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel, Episode
from sameworld.core.errors import EpisodeError, closest, listed
from sameworld.core.world import InverseWorld
from sameworld.maths.filtering import low_passed, rate_of_change
from sameworld.stages.identify.torque.config import TorqueConfig

__all__ = ["Motion", "read_motion", "torque_channels"]

#: Filtered samples per period of the cut-off frequency that a fit looks at.
_SAMPLES = 20
_SHORTEST = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Motion:
    """Filtered motion and torque of one stretch of time on a regular clock.

    Attributes:
        episode: Id of the episode.
        period: Time between rows [s].
        time: Time of the rows [N] s, on the episode's clock.
        q: Positions [N, V] rad or m.
        v: Velocities [N, V].
        a: Accelerations [N, V].
        torque: Measured joint torques [N, V] N m or N.
        noise: Standard deviation of what the low-pass took from each torque [V].
    """

    episode: str
    period: float
    time: Array
    q: Array
    v: Array
    a: Array
    torque: Array
    noise: Array

    def __len__(self) -> int:
        return len(self.time)

    def rows(self, rows: slice) -> Motion:
        """Keep a range of rows, or every n-th."""
        step = 1 if rows.step is None else int(rows.step)
        kept = {name: getattr(self, name)[rows] for name in ("time", "q", "v", "a", "torque")}
        return replace(self, period=self.period * step, **kept)

    def sparse(self, cutoff: float) -> Motion:
        """Rows enough for signals below the cut-off [Hz]."""
        return self.rows(slice(None, None, max(1, int(1 / (_SAMPLES * cutoff * self.period)))))


def torque_channels(
    world: InverseWorld, episode: Episode, config: TorqueConfig
) -> Mapping[str, tuple[str, float]]:
    """Channel and factor of the torque of every joint.

    Raises:
        EpisodeError: A joint has no torque channel, or the episode lacks it.
    """
    names = world.mechanism
    found: dict[str, tuple[str, float]] = {}
    for number, joint in enumerate(names.dofs, start=1):
        if config.torque:
            found[joint] = config.torque.format(joint=joint, number=number), 1.0
        elif joint in names.torques:
            found[joint] = names.torques[joint]
        else:
            raise EpisodeError(
                f"The scene says of no channel that it is the torque of joint '{joint}': it has "
                "neither a jointactuatorfrc sensor nor a plain motor there. Name the channels, for "
                "example torque='tau{number}'."
            )
    have = [channel.name for channel in episode.channels]
    lacking = [channel for channel, _ in found.values() if channel not in episode]
    if lacking:
        raise EpisodeError(
            f"Episode '{episode.id}' has no torque channel {listed(lacking)}. It has "
            f"{listed(have)}.{closest(lacking[0], have)} Torques are needed here; without them use "
            "identify(), which simulates."
        )
    return found


def read_motion(world: InverseWorld, episode: Episode, config: TorqueConfig) -> Motion:
    """Filtered motion of an episode, its ends cut off.

    All channels are brought to one regular clock by interpolation (actions by holding them),
    passed through the same zero-phase low-pass and differentiated.

    Args:
        world: World whose joints give the columns; all hinges or slides.
        episode: Episode with ``J.pos``, perhaps ``J.vel``, and a torque channel per joint.
        config: Options.

    Raises:
        EpisodeError: A channel is missing, or the episode too short or too slowly sampled.
    """
    torques = torque_channels(world, episode, config)
    joints = world.mechanism.dofs
    positions = [_channel(episode, f"{joint}.pos") for joint in joints]
    measured = config.velocity == "measured" and all(f"{j}.vel" in episode for j in joints)
    rates = [episode[f"{j}.vel"] for j in joints] if measured else []
    forces = [episode[torques[joint][0]] for joint in joints]
    period, clock = _clock(episode.id, [*positions, *rates, *forces], config)
    q = low_passed(_sampled(positions, clock), period, config.cutoff)
    raw = _sampled(forces, clock) * np.array([torques[joint][1] for joint in joints])
    torque = low_passed(raw, period, config.cutoff)
    v = (
        low_passed(_sampled(rates, clock), period, config.cutoff)
        if measured
        else rate_of_change(q, period)
    )
    cut = round(config.trim / period)
    whole = Motion(
        episode=episode.id,
        period=period,
        time=clock,
        q=q,
        v=v,
        a=rate_of_change(v, period),
        torque=torque,
        noise=np.std(raw - torque, axis=0),
    )
    return whole.rows(slice(cut, len(clock) - cut))


def _channel(episode: Episode, name: str) -> Channel:
    if name not in episode:
        have = [channel.name for channel in episode.channels]
        raise EpisodeError(
            f"Episode '{episode.id}' has no channel '{name}'. It has {listed(have)}. Every joint "
            "must be a hinge or slide with a measured position."
        )
    return episode[name]


def _clock(episode: str, channels: list[Channel], config: TorqueConfig) -> tuple[float, Array]:
    """The common clock, as fast as the median sample of the first channel."""
    period = float(np.median(np.diff(channels[0].time)))
    if 2 * config.cutoff * period >= 0.9:
        raise EpisodeError(
            f"Episode '{episode}' has {1 / period:.4g} samples per second, too few for a cut-off "
            f"of {config.cutoff} Hz. Lower 'cutoff'."
        )
    begin, end = max(c.time[0] for c in channels), min(c.time[-1] for c in channels)
    if end - begin < 2 * config.trim + max(_SHORTEST * period, 2 / config.cutoff):
        raise EpisodeError(
            f"Episode '{episode}' has all channels for {end - begin:.4g} s only; "
            f"{2 * config.trim:.4g} s of it would be cut off. Record longer or lower 'trim'."
        )
    return period, begin + period * np.arange(int((end - begin) / period) + 1, dtype=np.float64)


def _sampled(channels: list[Channel], clock: Array) -> Array:
    columns = [
        np.interp(clock, c.time, c.values) if c.role == "observation" else c.held(clock)
        for c in channels
    ]
    return np.stack(columns, axis=1)
