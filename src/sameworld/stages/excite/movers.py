"""Which commands move which joints, and the room that each has.

What a command means is read from its unit. Which joint follows a position command is asked of the
world: the one that comes to rest elsewhere when that command does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import numpy as np

from sameworld.core.address import match_names
from sameworld.core.arrays import Array
from sameworld.core.errors import SpecError, listed
from sameworld.core.rollout import rollout
from sameworld.core.signals import ticks_for
from sameworld.core.spec import ChannelSpec, Spec
from sameworld.core.world import InverseWorld, World
from sameworld.stages.excite.config import ExciteConfig
from sameworld.stages.excite.limits import Box

__all__ = ["Driven", "Means", "Mover", "driven_by", "joint_name"]

Means: TypeAlias = Literal["position", "torque", "command"]

_POSITIONS, _TORQUES = ("rad", "m"), ("N m", "N")
_PROBE, _ANSWER = 0.05, 0.2


@dataclass(frozen=True, kw_only=True)
class Mover:
    """A command that moves, and the joint that it moves.

    Attributes:
        action: Column of the command.
        name: Name of the command.
        joint: Observation that shows the joint's position; ``None`` where only the command is
            shaped.
        home: Value of the path at both ends.
        low: Lowest position of the path.
        high: Highest position of the path.
        speed: Largest speed of the path.
        acceleration: Largest acceleration of the path.
        reach: Displacement that a coefficient of 1 makes.
        factor: Torque per command where the path is a joint's and commands are torques, else 1.
    """

    action: int
    name: str
    joint: ChannelSpec | None
    home: float
    low: float
    high: float
    speed: float
    acceleration: float
    reach: float
    factor: float

    @property
    def dof(self) -> str:
        """Name of the joint."""
        return "" if self.joint is None else joint_name(self.joint)


@dataclass(frozen=True, kw_only=True, eq=False)
class Driven:
    """All commands that move.

    Attributes:
        means: What they mean.
        movers: The commands that move J.
        rest: Commands of everything at home [A]; torques of joints are not known here.
        rollouts: Trajectories simulated to find out.
    """

    means: Means
    movers: tuple[Mover, ...]
    rest: Array
    rollouts: int


def driven_by(world: World, bounds: Sequence[Box], config: ExciteConfig) -> Driven:
    """Find what moves, where it rests, and the room around it.

    Raises:
        SpecError: No command moves a joint, a home lies outside its bounds, or there is neither a
            range nor a speed limit.
    """
    spec = world.spec
    means, places = _meaning(spec, config)
    rest = _resting(spec)
    joints: dict[str, tuple[ChannelSpec | None, float]] = dict.fromkeys(places, (None, 1.0))
    if means == "position":
        joints = _by_answer(world, rest, places, config)
    elif means == "torque":
        joints = _by_torque(world, places)
    if not joints:
        raise SpecError(
            f"None of the commands {listed(places)} moves the position of a joint that the world "
            "observes. Give the joints actuators (sameworld.actuate), or drive='command'."
        )
    found = tuple(
        _mover(spec, bounds, name, places[name], joint, factor, means, config)
        for name, (joint, factor) in joints.items()
    )
    if means != "torque":
        rest[[m.action for m in found]] = [m.home for m in found]
    spent = 1 + len(places) if means == "position" else 0
    return Driven(means=means, movers=found, rest=rest, rollouts=spent)


def _meaning(spec: Spec, config: ExciteConfig) -> tuple[Means, dict[str, int]]:
    """What commands mean, and the columns of those that may move."""
    starts = np.cumsum([0, *(c.size for c in spec.actions)]).tolist()
    scalar = {
        c.name: (c, at)
        for c, at in zip(spec.actions, starts, strict=False)
        if c.shape == () and c.default is None
    }
    if config.actions:
        scalar = {name: scalar[name] for name in match_names(config.actions, scalar)}
    means = config.drive
    if means == "auto":
        means = _by_unit([c for c, _ in scalar.values()])
    found = {n: at for n, (c, at) in scalar.items() if means != "position" or c.unit in _POSITIONS}
    if not found:
        raise SpecError(
            f"No command is a {means}; the world takes "
            f"{listed(f'{c.name} [{c.unit}]' for c in spec.actions)}."
        )
    unknown = [name for name in config.home if name not in found]
    if unknown:
        raise SpecError(f"home names {listed(unknown)}; commands that move: {listed(found)}.")
    return means, found


def _by_unit(channels: Sequence[ChannelSpec]) -> Means:
    units = {c.unit for c in channels}
    positions, torques = units & set(_POSITIONS), units & set(_TORQUES)
    if positions and torques:
        raise SpecError(
            f"Some of {listed(c.name for c in channels)} are positions and some are torques. "
            "Choose with 'actions' or 'drive'."
        )
    if not (positions or torques):
        raise SpecError(
            f"Commands {listed(f'{c.name} [{c.unit}]' for c in channels)} are neither joint "
            "positions (rad, m) nor torques (N m, N). Use drive='command' to shape them as "
            "they are."
        )
    return "position" if positions else "torque"


def _resting(spec: Spec) -> Array:
    """Every command at its default, else at zero or the nearest value allowed."""
    parts = [
        np.full(c.size, np.clip(0.0, c.low, c.high) if c.default is None else c.default)
        for c in spec.actions
    ]
    return np.concatenate(parts)


def _positions(spec: Spec) -> list[ChannelSpec]:
    return [c for c in spec.observations if c.shape == () and c.unit in _POSITIONS and c.start]


def _by_answer(
    world: World, rest: Array, places: dict[str, int], config: ExciteConfig
) -> dict[str, tuple[ChannelSpec | None, float]]:
    """The joint that comes to rest elsewhere when one command does, for each command."""
    spec, seen = world.spec, _positions(world.spec)
    if not seen:
        return {}
    ticks = ticks_for(spec, max(config.settle, 1.0))
    held = np.tile(rest, (1 + len(places), ticks, 1))
    steps: list[float] = []
    for row, (name, column) in enumerate(places.items(), start=1):
        channel = next(c for c in spec.actions if c.name == name)
        room = channel.high - float(rest[column])
        steps.append(_PROBE if room > _PROBE else -_PROBE)
        held[row, :, column] += steps[-1]
    result = rollout(world, spec.start.mean, held)
    last = np.stack([result.signals[c.name][:, -1] for c in seen], axis=1)
    answers = np.abs(last[1:] - last[:1]) / np.abs(steps)[:, None]
    found: dict[str, tuple[ChannelSpec | None, float]] = {}
    for name, answer in zip(places, np.nan_to_num(answers), strict=True):
        if answer.max() > _ANSWER:
            found[name] = (seen[int(np.argmax(answer))], 1.0)
    return found


def _by_torque(world: World, places: dict[str, int]) -> dict[str, tuple[ChannelSpec | None, float]]:
    if "inverse" not in world.spec.capabilities:
        raise SpecError(
            "Commands are torques, and the world declares no 'inverse' that would turn joint "
            "paths into them. Give the arm a controller (sameworld.actuate), or shape the torques "
            "themselves by drive='command'."
        )
    mechanism = cast(InverseWorld, world).mechanism
    seen = {joint_name(c): c for c in _positions(world.spec)}
    if not set(mechanism.dofs) <= set(seen):
        raise SpecError(
            f"Torques along a path need hinges and slides only; there are {listed(mechanism.dofs)}."
        )
    driven = {channel: (joint, by) for joint, (channel, by) in mechanism.torques.items()}
    return {name: (seen[driven[name][0]], driven[name][1]) for name in places if name in driven}


def joint_name(channel: ChannelSpec) -> str:
    """Name of the joint whose position a channel shows."""
    """Name of the joint whose position a channel shows."""
    return channel.start[0].removeprefix("start:").removesuffix(".pos")


def _mover(
    spec: Spec,
    bounds: Sequence[Box],
    name: str,
    column: int,
    joint: ChannelSpec | None,
    factor: float,
    means: Means,
    config: ExciteConfig,
) -> Mover:
    shown = () if joint is None else joint.start
    own = [b for b in bounds if b.action == column and means != "torque"]
    own += [b for b in bounds if b.action < 0 and shown and b.channel.start == shown]
    rates = [b for b in bounds if joint and joint.rate and b.channel.start == joint.rate]
    low, high = max(float(b.low[0]) for b in own), min(float(b.high[0]) for b in own)
    speed = min([b.speed for b in own] + [float(min(b.high[0], -b.low[0])) for b in rates])
    acceleration = min([b.acceleration for b in own] + [b.speed for b in rates])
    home = config.home.get(name)
    if home is None:
        home = float(np.clip(spec.start[shown[0]].value if shown else 0.0, low, high))
    if not low <= home <= high:
        raise SpecError(f"The home of '{name}', {home:.4g}, lies outside [{low:.4g}, {high:.4g}].")
    slow = config.duration / (2 * np.pi)
    rooms = [max(high - home, home - low), speed * slow, acceleration * slow**2]
    reach = rooms[0] if math.isfinite(rooms[0]) else min(rooms)
    if not math.isfinite(reach):
        raise SpecError(
            f"'{name}' has neither a range nor a speed limit: how far may it move? Give "
            f"Limit(signal='{name if joint is None else joint.name}', low=..., high=...)."
        )
    return Mover(
        action=column,
        name=name,
        joint=joint,
        home=home,
        low=low,
        high=high,
        speed=speed,
        acceleration=acceleration,
        reach=reach,
        factor=factor,
    )
