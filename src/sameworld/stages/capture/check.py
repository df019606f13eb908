"""``check_mapping``: does a mapping, perhaps edited by hand, agree with the data and the scene?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sameworld.core.episode import Episode, Recording, Stream
from sameworld.core.errors import EpisodeError
from sameworld.core.mapping import SignalMapping
from sameworld.core.world import World
from sameworld.stages.capture.apply import apply_mapping
from sameworld.stages.capture.arm import Arm, Assignment, Motion
from sameworld.stages.capture.columns import Table, tabulate
from sameworld.stages.capture.config import CaptureConfig
from sameworld.stages.capture.pairs import lagged_fit
from sameworld.stages.capture.targets import Joint, forces_of, inverse_of, joints_of

__all__ = ["MappingCheck", "check_mapping"]

Subject = Literal["limits", "velocity", "torque"]


@dataclass(frozen=True, kw_only=True)
class MappingCheck:
    """One thing that was checked.

    Attributes:
        channel: Channel it is about.
        subject: ``limits`` of the joint, ``velocity`` against the derivative of the position, or
            ``torque`` against inverse dynamics.
        passed: Whether it is as it should be.
        value: Distance beyond the limits [rad or m], gain of the velocity, or R^2 of the torque.
        text: One sentence.
    """

    channel: str
    subject: Subject
    passed: bool
    value: float
    text: str


def check_mapping(
    world: World,
    data: Sequence[Recording] | Sequence[Episode],
    mapping: SignalMapping | None = None,
    *,
    config: CaptureConfig | None = None,
) -> tuple[MappingCheck, ...]:
    """Check that mapped signals fit together and fit the scene.

    Args:
        world: World of the scene.
        data: Recordings, or episodes that were made by a mapping.
        mapping: The mapping; needed for recordings.
        config: Options.

    Returns:
        One record per check; also of those that passed.

    Raises:
        EpisodeError: Recordings without a mapping, or a mapping that cannot be applied.
    """
    config = config or CaptureConfig()
    episodes = [_episode(world, item, mapping) for item in data]
    joints = joints_of(world.spec)
    moving = [j for j in joints if all(f"{j.name}.pos" in e for e in episodes)]
    if not moving or not episodes:
        return ()
    forces = {j.name: (f"{j.name}.torque", 1.0) for j in joints} | dict(forces_of(world))
    found = [_limits(joint, episodes) for joint in moving]
    table = tabulate([_raw(e) for e in episodes[: config.recordings]], config)
    places = {c.name: k for k, c in enumerate(table.columns)}
    for joint in moving:
        if f"{joint.name}.vel" in places:
            found.append(_velocity(joint, table, places))
    if len(moving) == len(joints):
        found += _torques(world, joints, table, places, forces, config)
    return tuple(found)


def _episode(world: World, item: Recording | Episode, mapping: SignalMapping | None) -> Episode:
    if isinstance(item, Episode):
        return item
    if mapping is None:
        raise EpisodeError("Recordings are checked with a mapping; give one, or give episodes.")
    return apply_mapping(world, item, mapping)


def _raw(episode: Episode) -> Recording:
    """Scalar channels of an episode as streams."""
    streams = [
        Stream(name=c.name, time=c.time, values=c.values, unit=c.unit)
        for c in episode.channels
        if c.values.ndim == 1 and len(c) >= 10
    ]
    return Recording(id=episode.id, streams=tuple(streams))


def _limits(joint: Joint, episodes: Sequence[Episode]) -> MappingCheck:
    values = np.concatenate([e[f"{joint.name}.pos"].values for e in episodes])
    low, high = float(values.min()), float(values.max())
    beyond = max(joint.low - low, high - joint.high, 0.0)
    slack = 0.05 * (joint.high - joint.low) if math.isfinite(joint.high - joint.low) else 0.1
    return MappingCheck(
        channel=f"{joint.name}.pos",
        subject="limits",
        passed=beyond <= slack,
        value=beyond,
        text=f"{joint.name} moves from {low:.3g} to {high:.3g} {joint.unit}, its limits are "
        f"{joint.low:.3g} and {joint.high:.3g}.",
    )


def _velocity(joint: Joint, table: Table, places: dict[str, int]) -> MappingCheck:
    position, velocity = places[f"{joint.name}.pos"], places[f"{joint.name}.vel"]
    rate, bend = table.rates[:, position], table.bends[:, position]
    gain, lag = lagged_fit(table, rate, bend, table.values[:, velocity])
    still = table.columns[position].still or table.columns[velocity].still
    step = table.columns[velocity].step
    passed = still or (abs(gain - 1) < 0.1 and abs(lag) < 0.75 * step + 0.01)
    return MappingCheck(
        channel=f"{joint.name}.vel",
        subject="velocity",
        passed=passed,
        value=gain,
        text=f"The velocity of {joint.name} is {gain:.3f} times the derivative of its position, "
        f"{1e3 * lag:.1f} ms late.",
    )


def _torques(
    world: World,
    joints: tuple[Joint, ...],
    table: Table,
    places: dict[str, int],
    forces: dict[str, tuple[str, float]],
    config: CaptureConfig,
) -> list[MappingCheck]:
    """Torques of every joint against the scene; all joints must be known for that."""
    inverse = inverse_of(world, joints)
    held = [j for j in joints if forces[j.name][0] in places]
    if inverse is None or not held or not config.torques:
        return []
    rows = np.linspace(0, len(table.values) - 1, config.poses).astype(np.intp)
    own = [places[f"{j.name}.pos"] for j in joints]
    factors = np.array([forces[j.name][1] for j in held])
    measured = table.values[rows][:, [places[forces[j.name][0]] for j in held]] * factors
    arm = Arm(
        joints=joints,
        motion=Motion(
            positions=table.values[rows][:, own],
            rates=table.rates[rows][:, own],
            bends=table.bends[rows][:, own],
        ),
        torques=measured,
        inverse=inverse,
        prior=np.zeros((len(joints), len(joints))),
    )
    straight = Assignment(
        order=np.arange(len(joints), dtype=np.intp),
        scales=np.ones(len(joints)),
        offsets=np.zeros(len(joints)),
    )
    given = arm.explain(straight)
    found: list[MappingCheck] = []
    for place, k in enumerate(map(int, given.torque)):
        joint: Joint = held[k]
        fit = float(given.fit[place])
        right = joints[int(given.joint[place])] is joint and int(given.sign[place]) > 0
        found.append(
            MappingCheck(
                channel=forces[joint.name][0],
                subject="torque",
                passed=right and fit > 0.5,
                value=fit if right else 0.0,
                text=f"{100 * fit:.0f} % of this torque is that of "
                f"{joints[int(given.joint[place])].name}"
                f"{'' if int(given.sign[place]) > 0 else ' with the sign flipped'}.",
            )
        )
    return found
