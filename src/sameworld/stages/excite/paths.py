"""From coefficients to commands: which joints move, from where, and how far they may."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from sameworld.core.address import match_names
from sameworld.core.arrays import Array
from sameworld.core.errors import SpecError, listed
from sameworld.core.rollout import rollout
from sameworld.core.signals import ticks_for
from sameworld.core.spec import ChannelSpec, Spec
from sameworld.core.values import Values
from sameworld.core.world import InverseWorld, World
from sameworld.stages.excite.config import ExciteConfig
from sameworld.stages.excite.limits import Box
from sameworld.stages.excite.shapes import Basis, basis

__all__ = ["Mover", "Paths", "paths_of"]

_POSITIONS, _TORQUES = ("rad", "m"), ("N m", "N")
_PROBE, _ANSWER = 0.05, 0.2


@dataclass(frozen=True, kw_only=True)
class Mover:
    """A joint that moves because a command tells it.

    Attributes:
        action: Column of the command.
        name: Name of the command.
        joint: Observation that shows the joint's position.
        home: Position at both ends [rad or m].
        low: Lowest position of the path.
        high: Highest position of the path.
        speed: Largest speed of the path.
        acceleration: Largest acceleration of the path.
        reach: Displacement that a coefficient of 1 makes.
        factor: Torque per command; 0 where the command is the position itself.
    """

    action: int
    name: str
    joint: ChannelSpec
    home: float
    low: float
    high: float
    speed: float
    acceleration: float
    reach: float
    factor: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Paths:
    """The family of motions that coefficients [J, M] choose from.

    Attributes:
        world: The world.
        movers: Joints that move J.
        basis: Shape functions at the ticks.
        rest: Commands of everything at home [A].
        start: The state of rest at home [1, S].
        rollouts: Trajectories simulated to find it.
    """

    world: World
    movers: tuple[Mover, ...]
    basis: Basis
    rest: Array
    start: Values
    rollouts: int

    @property
    def shape(self) -> tuple[int, int]:
        """Moving joints J and functions M."""
        return len(self.movers), self.basis.size

    @property
    def time(self) -> Array:
        """Times of the commands [T] s."""
        return self.world.spec.period * np.arange(len(self.basis.values), dtype=np.float64)

    def fitted(self, coefficients: Array) -> Array:
        """Coefficients [B, J, M] shrunk, joint by joint, so that paths keep to their bounds."""
        out = coefficients.copy()
        period = self.world.spec.period
        for j, mover in enumerate(self.movers):
            path = mover.reach * np.einsum("bm,tm->bt", coefficients[:, j], self.basis.values)
            rate = np.diff(path, axis=1) / period
            peaks = (
                (path.max(axis=1), mover.high - mover.home),
                (-path.min(axis=1), mover.home - mover.low),
                (np.abs(rate).max(axis=1), mover.speed),
                (np.abs(np.diff(rate, axis=1) / period).max(axis=1), mover.acceleration),
            )
            shares = [peak / max(room, 1e-12) for peak, room in peaks]
            out[:, j] /= np.maximum(np.max(shares, axis=0), 1.0)[:, None]
        return out

    def commands(self, coefficients: Array) -> Array:
        """Commands [B, T, A] of coefficients [B, J, M]."""
        reach = np.array([m.reach for m in self.movers])
        scaled = coefficients * reach[:, None]
        actions = np.tile(self.rest, (len(scaled), len(self.basis.values), 1))
        columns = [m.action for m in self.movers]
        path = np.einsum("bjm,tm->btj", scaled, self.basis.values)
        path = path + np.array([m.home for m in self.movers])
        if self.movers[0].factor == 0.0:
            actions[..., columns] = path
            return actions
        rate = np.einsum("bjm,tm->btj", scaled, self.basis.rates)
        curve = np.einsum("bjm,tm->btj", scaled, self.basis.curvatures)
        actions[..., columns] = self._torques(path, rate, curve)
        return actions

    def _torques(self, path: Array, rate: Array, curve: Array) -> Array:
        """Commands that the believed inverse dynamics asks for along joint paths [B, T, J]."""
        dofs = cast(InverseWorld, self.world).mechanism.dofs
        index = [dofs.index(_joint_name(m.joint)) for m in self.movers]
        still = np.array([float(self.start.column(f"start:{d}.pos")[0]) for d in dofs])
        q = np.tile(still, (*path.shape[:2], 1))
        v, a = np.zeros_like(q), np.zeros_like(q)
        q[..., index], v[..., index], a[..., index] = path, rate, curve
        q_rows, v_rows, a_rows = (x.reshape(-1, len(dofs)) for x in (q, v, a))
        torque = cast(InverseWorld, self.world).inverse(q_rows, v_rows, a_rows, passive=True)
        torque = torque.reshape(q.shape)
        return torque[..., index] / np.array([m.factor for m in self.movers])


def paths_of(world: World, bounds: Sequence[Box], config: ExciteConfig) -> Paths:
    """Find what moves, where it rests, and the room around it.

    Raises:
        SpecError: No command moves a joint, a home lies outside its bounds, or a joint has
            neither a range nor a speed limit.
    """
    spec = world.spec
    if spec.starts_from != "start":
        raise SpecError("Motions are designed for worlds that start from named values.")
    places = _columns(spec, config)
    torque = _is_torque(spec, config, places)
    rest = _resting(spec)
    joints = _by_torque(world, places) if torque else _by_answer(world, rest, places, config)
    if not joints:
        raise SpecError(
            f"None of the commands {listed(places)} moves the position of a joint that the world "
            "observes. Give the joints actuators (sameworld.actuate)."
        )
    found = [
        _mover(spec, bounds, name, places[name], joint, factor, config)
        for name, (joint, factor) in joints.items()
    ]
    ticks = ticks_for(spec, config.duration)
    times = spec.period * (np.arange(ticks, dtype=np.float64) + (0.5 if torque else 0.0))
    shape = basis(config.shape, config.terms, config.duration, times)
    start = _placed(spec, found)
    settling = 0
    if not torque:
        rest[[m.action for m in found]] = [m.home for m in found]
        settling = ticks_for(spec, config.settle) if config.settle else 0
        start = _settled(world, start, rest, settling) if settling else start
    return Paths(
        world=world,
        movers=tuple(found),
        basis=shape,
        rest=rest,
        start=start,
        rollouts=(0 if torque else 1 + len(places)) + bool(settling),
    )


def _columns(spec: Spec, config: ExciteConfig) -> dict[str, int]:
    """Scalar commands that may move, with their columns."""
    starts = np.cumsum([0, *(c.size for c in spec.actions)]).tolist()
    scalar = {
        c.name: at
        for c, at in zip(spec.actions, starts, strict=False)
        if c.shape == () and c.default is None and c.unit in (*_POSITIONS, *_TORQUES)
    }
    if config.actions:
        scalar = {name: scalar[name] for name in match_names(config.actions, scalar)}
    if not scalar:
        units = {c.name: c.unit for c in spec.actions}
        raise SpecError(
            f"No command is a joint position or a torque; the world takes {units}. Motions are "
            "designed for commands in rad, m, N m or N."
        )
    unknown = [name for name in config.home if name not in scalar]
    if unknown:
        raise SpecError(f"home names {listed(unknown)}; commands that move: {listed(scalar)}.")
    return scalar


def _is_torque(spec: Spec, config: ExciteConfig, places: dict[str, int]) -> bool:
    units = {c.unit in _TORQUES for c in spec.actions if c.name in places}
    if config.drive != "auto":
        return config.drive == "torque"
    if len(units) > 1:
        raise SpecError(
            f"Some of {listed(places)} are positions and some are torques. Choose with 'actions'."
        )
    return units.pop()


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
) -> dict[str, tuple[ChannelSpec, float]]:
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
    found: dict[str, tuple[ChannelSpec, float]] = {}
    for name, answer in zip(places, np.nan_to_num(answers), strict=True):
        if answer.max() > _ANSWER:
            found[name] = (seen[int(np.argmax(answer))], 0.0)
    return found


def _by_torque(world: World, places: dict[str, int]) -> dict[str, tuple[ChannelSpec, float]]:
    if "inverse" not in world.spec.capabilities:
        raise SpecError(
            "Commands are torques, and the world declares no 'inverse' that would turn joint "
            "paths into them. Give it a controller (sameworld.actuate, preset 'impedance')."
        )
    mechanism = cast(InverseWorld, world).mechanism
    seen = {_joint_name(c): c for c in _positions(world.spec)}
    if not set(mechanism.dofs) <= set(seen):
        raise SpecError(
            f"Torques along a path need hinges and slides only; there are {listed(mechanism.dofs)}."
        )
    driven = {channel: (joint, by) for joint, (channel, by) in mechanism.torques.items()}
    return {name: (seen[driven[name][0]], driven[name][1]) for name in places if name in driven}


def _joint_name(channel: ChannelSpec) -> str:
    return channel.start[0].removeprefix("start:").removesuffix(".pos")


def _mover(
    spec: Spec,
    bounds: Sequence[Box],
    name: str,
    column: int,
    joint: ChannelSpec,
    factor: float,
    config: ExciteConfig,
) -> Mover:
    related = [name] if factor == 0.0 else []
    own = [b for b in bounds if b.channel.name in (*related, joint.name)]
    rates = [b for b in bounds if b.action < 0 and b.channel.start == joint.rate and joint.rate]
    low, high = max(float(b.low[0]) for b in own), min(float(b.high[0]) for b in own)
    speed = min([b.speed for b in own] + [float(min(b.high[0], -b.low[0])) for b in rates])
    acceleration = min([b.acceleration for b in own] + [b.speed for b in rates])
    home = config.home.get(name)
    if home is None:
        home = float(np.clip(spec.start[joint.start[0]].value, low, high))
    if not low <= home <= high:
        raise SpecError(f"The home of '{name}', {home:.4g}, lies outside [{low:.4g}, {high:.4g}].")
    slow = config.duration / (2 * np.pi)
    rooms = [max(high - home, home - low), speed * slow, acceleration * slow**2]
    reach = rooms[0] if math.isfinite(rooms[0]) else min(rooms)
    if not math.isfinite(reach):
        raise SpecError(
            f"'{joint.name}' has neither a range nor a speed limit: how far may it move? Give "
            f"Limit(signal='{joint.name}', low=..., high=...) or a speed."
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


def _placed(spec: Spec, movers: Sequence[Mover]) -> Values:
    """The default start with moving joints at home."""
    return spec.start.mean.updated(Values.of({m.joint.start[0]: m.home for m in movers}))


def _settled(world: World, start: Values, rest: Array, ticks: int) -> Values:
    """What the world comes to after holding the home commands.

    Raises:
        RolloutError: The simulation fails at home already.
    """
    held = np.tile(rest, (1, ticks, 1))
    result = rollout(world, start, held, raise_on_failure=True)
    shown: dict[str, float] = {}
    for channel in world.spec.observations:
        if channel.start and channel.manifold == "linear":
            last = result.signals[channel.name][0, -1].reshape(-1).tolist()
            shown |= dict(zip(channel.start, last, strict=True))
    return start.updated(Values.of(shown))
