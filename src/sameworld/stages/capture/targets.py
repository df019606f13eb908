"""What a world wants to be told: joints with their signals, actions, other sensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Role
from sameworld.core.spec import ChannelSpec, Spec
from sameworld.core.values import Values
from sameworld.core.world import InverseWorld, World

__all__ = [
    "Inverse",
    "Joint",
    "Kind",
    "Target",
    "driven_joints",
    "forces_of",
    "inverse_of",
    "joints_of",
    "targets_of",
]

#: Torques [N, n] of the joints for positions, velocities and accelerations [N, n].
Inverse = Callable[[Array, Array, Array], Array]

Kind = Literal["position", "velocity", "torque", "command", "other"]


@dataclass(frozen=True, kw_only=True)
class Joint:
    """A joint with one degree of freedom.

    Attributes:
        name: Joint name.
        number: Place among such joints, from 0.
        q: Place of its position among the position components of all joints.
        v: Place of its velocity.
        unit: Unit of its position, ``rad`` or ``m``.
        low: Lower limit [unit].
        high: Upper limit [unit].
        rest: Position by default [unit].
    """

    name: str
    number: int
    q: int
    v: int
    unit: str
    low: float
    high: float
    rest: float


@dataclass(frozen=True, kw_only=True)
class Target:
    """One component of a channel that a column may be.

    Attributes:
        channel: Channel name.
        component: Flat component.
        kind: What it is.
        joint: Number of the joint it belongs to, -1 if none or unknown.
        unit: SI unit.
        low: Lower bound [unit].
        high: Upper bound [unit].
        role: Role of the channel.
        size: Components of the channel.
    """

    channel: str
    component: int
    kind: Kind
    joint: int
    unit: str
    low: float
    high: float
    role: Role
    size: int


def joints_of(spec: Spec) -> tuple[Joint, ...]:
    """Joints with one degree of freedom, in the order of the world's state."""
    joints: list[Joint] = []
    q = v = 0
    seen: set[str] = set()
    for channel in spec.observations:
        if not channel.rate or not channel.start or channel.start[0] in seen:
            continue
        seen.update(channel.start)
        if channel.shape == () and channel.name == _joint(channel) + ".pos":
            joints.append(
                Joint(
                    name=_joint(channel),
                    number=len(joints),
                    q=q,
                    v=v,
                    unit=channel.unit,
                    low=channel.low,
                    high=channel.high,
                    rest=spec.start[channel.start[0]].value,
                )
            )
        q += channel.size
        v += channel.tangent
    return tuple(joints)


def _joint(channel: ChannelSpec) -> str:
    return channel.start[0].removeprefix("start:").removesuffix(".pos")


def targets_of(world: World) -> tuple[Target, ...]:
    """Targets of a world.

    Joints without a force signal of their own get ``J.torque`` (``J.force`` if they slide): worlds
    ignore it, identification from torques reads it.
    """
    spec = world.spec
    joints = {j.name: j for j in joints_of(spec)}
    known = forces_of(world)
    forces = {
        channel: joints[name].number for name, (channel, _) in known.items() if name in joints
    }
    found: list[Target] = []
    for channel in spec.observations:
        kind, joint = _observed(channel, joints)
        if channel.name in forces:
            kind, joint = "torque", forces[channel.name]
        found += _components(channel, kind, joint, "observation")
    for channel, joint in zip(spec.actions, driven_joints(world), strict=True):
        role: Role = "action" if channel.default is None else "exogenous"
        kind = "torque" if channel.name in forces else "command"
        found += _components(channel, kind if role == "action" else "other", joint, role)
    forced = {t.joint for t in found if t.kind == "torque"}
    for joint in joints.values():
        if joint.number not in forced:
            found.append(_torque(joint))
    return tuple(found)


def inverse_of(world: World, joints: Sequence[Joint], *, passive: bool = False) -> Inverse | None:
    """Inverse dynamics of the joints with everything else at rest; ``None`` if undeclared.

    Args:
        world: The world.
        joints: Its joints.
        passive: Whether to count rotor inertia and friction of the scene.
    """
    if "inverse" not in world.spec.capabilities or not joints:
        return None
    able = cast(InverseWorld, world)
    rest, size = _rest(world)
    q_places, v_places = [j.q for j in joints], [j.v for j in joints]

    def torques(q: Array, v: Array, a: Array) -> Array:
        whole = np.repeat(rest[None], len(q), axis=0)
        whole[:, q_places] = q
        rates, bends = np.zeros((2, len(q), size))
        rates[:, v_places], bends[:, v_places] = v, a
        return able.inverse(whole, rates, bends, passive=passive)[:, v_places]

    return torques


def _rest(world: World) -> tuple[Array, int]:
    """Default positions of all joints, and the number of their velocities."""
    signals = world.observe(world.reset(Values.none(1)))
    parts: list[Array] = []
    size, seen = 0, set[str]()
    for channel in world.spec.observations:
        if channel.rate and channel.start and channel.start[0] not in seen:
            seen.update(channel.start)
            parts.append(signals[channel.name][0].reshape(-1))
            size += channel.tangent
    return np.concatenate(parts), size


def forces_of(world: World) -> Mapping[str, tuple[str, float]]:
    """Joint to the channel of its torque or force and the factor from one to the other."""
    if "inverse" not in world.spec.capabilities:
        return {}
    return cast(InverseWorld, world).mechanism.torques


def driven_joints(world: World) -> tuple[int, ...]:
    """For each action the number of the joint that it pushes most, -1 if none.

    Light joints are dragged along faster than the joint that is driven, so accelerations are
    turned into forces where the world can do that.
    """
    spec, joints = world.spec, joints_of(world.spec)
    if not spec.actions or not joints:
        return (-1,) * len(spec.actions)
    pushes = _pushes(world, joints)
    best = np.where(pushes.max(axis=1) > 1e-9, pushes.argmax(axis=1), -1)
    first = np.cumsum([0, *(c.size for c in spec.actions)])[:-1]
    return tuple(best[first].tolist())


def _pushes(world: World, joints: Sequence[Joint]) -> Array:
    """Size of what each action, from one end of its range to the other, does to joints [A, n].

    From end to end, because servos far from their goal saturate.
    """
    ends = [np.repeat([_ends(c)], c.size, axis=0) for c in world.spec.actions]
    low, high = np.concatenate(ends).T
    middle = 0.5 * (low + high)
    actions = np.vstack([middle + np.diag(low - middle), middle + np.diag(high - middle)])
    pose = np.repeat([[_inside(j) for j in joints]], len(actions), axis=0)
    names = tuple(f"start:{j.name}.pos" for j in joints)
    state = world.step(world.reset(Values(names=names, array=pose)), actions)
    signals = world.observe(state)
    speeds = np.stack([signals[f"{j.name}.vel"] for j in joints], axis=1)
    change = speeds[len(middle) :] - speeds[: len(middle)]
    inverse = inverse_of(world, joints, passive=True)
    if inverse is not None:
        pose, still = pose[: len(change)], np.zeros_like(change)
        change = inverse(pose, still, change) - inverse(pose, still, still)
    return np.abs(change)


def _inside(joint: Joint) -> float:
    """A position near the default that is clear of the limits."""
    if not math.isfinite(joint.high - joint.low):
        return joint.rest
    margin = 0.2 * (joint.high - joint.low)
    return min(max(joint.rest, joint.low + margin), joint.high - margin)


def _ends(channel: ChannelSpec) -> tuple[float, float]:
    bounded = math.isfinite(channel.low) and math.isfinite(channel.high)
    return (channel.low, channel.high) if bounded else (-1e-2, 1e-2)


def _observed(channel: ChannelSpec, joints: dict[str, Joint]) -> tuple[Kind, int]:
    name, dot, part = channel.name.rpartition(".")
    if dot and name in joints and channel.shape == ():
        kinds: dict[str, Kind] = {"pos": "position", "vel": "velocity"}
        return kinds.get(part, "other"), joints[name].number
    return "other", -1


def _components(channel: ChannelSpec, kind: Kind, joint: int, role: Role) -> list[Target]:
    return [
        Target(
            channel=channel.name,
            component=k,
            kind=kind,
            joint=joint,
            unit=channel.unit,
            low=channel.low,
            high=channel.high,
            role=role,
            size=channel.size,
        )
        for k in range(channel.size)
    ]


def _torque(joint: Joint) -> Target:
    turns = joint.unit == "rad"
    return Target(
        channel=f"{joint.name}.{'torque' if turns else 'force'}",
        component=0,
        kind="torque",
        joint=joint.number,
        unit="N m" if turns else "N",
        low=-math.inf,
        high=math.inf,
        role="observation",
        size=1,
    )
