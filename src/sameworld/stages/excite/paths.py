"""From coefficients to commands: the family of motions that a design chooses from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.errors import SpecError
from sameworld.core.rollout import rollout
from sameworld.core.signals import ticks_for
from sameworld.core.spec import Spec
from sameworld.core.values import Values
from sameworld.core.world import InverseWorld, World
from sameworld.stages.excite.config import ExciteConfig
from sameworld.stages.excite.limits import Box
from sameworld.stages.excite.movers import Driven, Mover, driven_by
from sameworld.stages.excite.shapes import Basis, basis

__all__ = ["Paths", "paths_of"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Paths:
    """The family of motions that coefficients [J, M] choose from.

    Attributes:
        world: The world.
        driven: What moves, J commands.
        basis: Shape functions at the ticks.
        start: The state of rest at home [1, S].
        rollouts: Trajectories simulated to find it.
    """

    world: World
    driven: Driven
    basis: Basis
    start: Values
    rollouts: int

    @property
    def movers(self) -> tuple[Mover, ...]:
        """Commands that move J."""
        return self.driven.movers

    @property
    def shape(self) -> tuple[int, int]:
        """Moving commands J and functions M."""
        return len(self.movers), self.basis.size

    @property
    def reach(self) -> Array:
        """Displacement that a coefficient of 1 makes [J, 1]."""
        return np.array([[m.reach] for m in self.movers])

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
            out[:, j] /= np.maximum((1 + 1e-9) * np.max(shares, axis=0), 1.0)[:, None]
        return out

    def commands(self, coefficients: Array) -> Array:
        """Commands [B, T, A] of coefficients [B, J, M]."""
        scaled = coefficients * self.reach
        actions = np.tile(self.driven.rest, (len(scaled), len(self.basis.values), 1))
        columns = [m.action for m in self.movers]
        path = np.einsum("bjm,tm->btj", scaled, self.basis.values)
        path = path + np.array([m.home for m in self.movers])
        if self.driven.means != "torque":
            actions[..., columns] = path
            return actions
        rate = np.einsum("bjm,tm->btj", scaled, self.basis.rates)
        curve = np.einsum("bjm,tm->btj", scaled, self.basis.curvatures)
        actions[..., columns] = self._torques(path, rate, curve)
        return actions

    def _torques(self, path: Array, rate: Array, curve: Array) -> Array:
        """Commands that the believed inverse dynamics asks for along joint paths [B, T, J]."""
        dofs = cast(InverseWorld, self.world).mechanism.dofs
        index = [dofs.index(m.dof) for m in self.movers]
        still = np.array([float(self.start.column(f"start:{d}.pos")[0]) for d in dofs])
        q = np.tile(still, (*path.shape[:2], 1))
        v, a = np.zeros_like(q), np.zeros_like(q)
        q[..., index], v[..., index], a[..., index] = path, rate, curve
        q_rows, v_rows, a_rows = (x.reshape(-1, len(dofs)) for x in (q, v, a))
        torque = cast(InverseWorld, self.world).inverse(q_rows, v_rows, a_rows, passive=True)
        torque = torque.reshape(q.shape)
        return torque[..., index] / np.array([m.factor for m in self.movers])


def paths_of(world: World, bounds: Sequence[Box], config: ExciteConfig) -> Paths:
    """The motions that a world's commands can make, from rest to rest.

    Raises:
        SpecError: The world starts from a context, or no command moves anything.
        RolloutError: Resting at home fails in simulation.
    """
    spec = world.spec
    if spec.starts_from != "start":
        raise SpecError("Motions are designed for worlds that start from named values.")
    driven = driven_by(world, bounds, config)
    ticks, torque = ticks_for(spec, config.duration), driven.means == "torque"
    middle = 0.5 if torque else 0.0  # a torque held over a tick acts like that of its middle
    times = spec.period * (np.arange(ticks, dtype=np.float64) + middle)
    start = _placed(spec, driven.movers)
    settling = ticks_for(spec, config.settle) if config.settle and not torque else 0
    return Paths(
        world=world,
        driven=driven,
        basis=basis(config.shape, config.terms, config.duration, times),
        start=_settled(world, start, driven.rest, settling) if settling else start,
        rollouts=driven.rollouts + bool(settling),
    )


def _placed(spec: Spec, movers: Sequence[Mover]) -> Values:
    """The default start with moving joints at home."""
    homes = {m.joint.start[0]: m.home for m in movers if m.joint is not None}
    return spec.start.mean.updated(Values.of(homes))


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
