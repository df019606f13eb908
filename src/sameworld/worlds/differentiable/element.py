"""One element through time: placed at its start, simulated, observed. Pure JAX functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.compiled.layout import HUGE
from sameworld.worlds.compiled.tables import Tables
from sameworld.worlds.differentiable.instant import Inputs, accelerated, smoothed
from sameworld.worlds.differentiable.kinematics import Leaves
from sameworld.worlds.differentiable.laws import Plant, Seen, begun
from sameworld.worlds.differentiable.parameters import Writer
from sameworld.worlds.differentiable.readings import Sensible, sensed
from sameworld.worlds.differentiable.sensors import Sensors
from sameworld.worlds.differentiable.spatial import rotation_exp
from sameworld.worlds.differentiable.step import Carried, Carry, Push, completed, plant_of, stepped
from sameworld.worlds.differentiable.system import System
from sameworld.worlds.differentiable.typed import (
    arange,
    asarray,
    checkpoint,
    fori_loop,
    zeros,
)

__all__ = ["Element", "Kept", "Residual", "Row", "Trace", "Traced"]

_A = TypeVar("_A")


class Kept(NamedTuple, Generic[_A]):
    """What is kept of one control tick, or of many with a leading axis.

    Attributes:
        q: Positions [nq].
        v: Velocities [nv].
        memory: What components remember [M].
        control: Controls [nu].
        fine: Whether the state is finite and not huge.
        converged: Whether the solver has converged in all steps so far.
    """

    q: _A
    v: _A
    memory: _A
    control: _A
    fine: _A
    converged: _A


class Traced(NamedTuple, Generic[_A]):
    """A simulated element.

    Attributes:
        end: State after the last tick.
        rows: The start and every tick [T+1, ...].
    """

    end: Carried[_A]
    rows: Kept[_A]


#: As programs see them.
Row: TypeAlias = Kept[jax.Array]
Trace: TypeAlias = Traced[jax.Array]


class Residual(Protocol):
    """Forces that the analytic model lacks. Its ``repr`` says everything about its programs."""

    @property
    def size(self) -> int:
        """Weights that it takes."""
        ...

    def force(self, weights: jax.Array, carry: Carry) -> jax.Array:
        """Forces on the joints [nv] for weights [size]."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Element:
    """Functions of one element of a batch.

    Attributes:
        tables: The compiled scene.
        system: Its static layout.
        writer: Parameter values into leaves.
        sensors: Its sensors.
        substeps: Engine steps per control tick.
        residual: Forces that the analytic model lacks; its weights follow the parameters in every
            array of values: [P + size].
        fixed: Whether derivatives see the weights only, not the parameters.
    """

    tables: Tables
    system: System
    writer: Writer
    sensors: Sensors
    substeps: int
    residual: Residual | None = None
    fixed: bool = False

    def numbers(self, values: jax.Array) -> tuple[dict[str, jax.Array], Plant]:
        """Completed leaves for parameters [P], and what laws need of them."""
        leaves = completed(self.system, self.writer, self._known(values))
        return leaves, plant_of(self.system, leaves)

    def _known(self, values: jax.Array) -> jax.Array:
        return jax.lax.stop_gradient(values) if self.fixed else values

    def _push(self, values: jax.Array) -> Push | None:
        """What the residual does, given its weights behind the parameters."""
        residual = self.residual
        if residual is None:
            return None
        weights = values[values.shape[0] - residual.size :]
        return lambda carry: residual.force(weights, carry)

    # ---- start ---------------------------------------------------------------------------

    def placed(self, values: jax.Array, starts: jax.Array) -> Carry:
        """State at a start.

        Args:
            values: Parameters [P].
            starts: Start values [S].
        """
        s, home = self.system.structure, self.tables.home
        row = jnp.concatenate([asarray(home.qpos), zeros(s.nv)])
        places = np.array(self.tables.starts.linear_places, dtype=np.intp)
        columns = np.array(self.tables.starts.linear_columns, dtype=np.intp)
        row = row.at[places].set(starts[columns])
        for column, place in self.tables.starts.rotations:
            row = row.at[place : place + 4].set(rotation_exp(starts[column : column + 3]))
        zero = zeros(s.nv)
        carry = Carry(
            q=row[: s.nq],
            v=row[s.nq :],
            warm=zero,
            load=zero,
            drive=zero,
            memory=zeros(0),
            control=asarray(home.ctrl),
            converged=asarray(True),
        )
        return self._begun(values, starts, carry) if self.system.groups else carry

    def _begun(self, values: jax.Array, starts: jax.Array, carry: Carry) -> Carry:
        leaves, _ = self.numbers(values)
        load = -smoothed(self.system, leaves, carry.q, carry.v, self._still(leaves, carry)).bias
        seen = Seen(carry.q, carry.v, load, carry.drive)
        memory = begun(self.system.groups, starts, self._known(values), seen)
        return carry._replace(load=load, memory=memory)

    def _still(self, leaves: Leaves, carry: Carry) -> Inputs:
        """What acts while the last controls last, without components."""
        return Inputs(
            control=carry.control,
            friction=leaves["dof_frictionloss"],
            damping=leaves["dof_damping"],
            applied=zeros(self.system.structure.nv),
        )

    # ---- time ----------------------------------------------------------------------------

    def simulated(
        self, values: jax.Array, carry: Carry, actions: jax.Array, ticks: jax.Array
    ) -> Trace:
        """Simulate; the number of ticks is not part of the program.

        Args:
            values: Parameters [P].
            carry: State at the start.
            actions: Actions [T, A].
            ticks: Ticks to simulate, at most T; later rows are not filled.
        """
        leaves, plant = self.numbers(values)

        def advanced(step: jax.Array, now: tuple[Carry, jax.Array]) -> tuple[Carry, jax.Array]:
            tick, substep = step // self.substeps, step % self.substeps
            end = self._stepped(leaves, plant, values, now[0], actions[tick], substep)
            return end, now[1].at[tick + 1].set(_flat(end))

        first = _flat(carry)
        rows = zeros((actions.shape[0] + 1, len(first))).at[0].set(first)
        end, rows = fori_loop(0, ticks * self.substeps, advanced, (carry, rows))
        return Trace(end, self._unpacked(rows, carry))

    def _unpacked(self, rows: jax.Array, like: Carry) -> Row:
        """Rows [T+1, ...] from flat ones [T+1, n]."""
        sizes = [a.shape[0] for a in (like.q, like.v, like.memory, like.control)]
        ends = np.cumsum(sizes).tolist()
        q, v, memory, control, converged = jnp.split(rows, ends, axis=1)
        moving = rows[:, : ends[1]]
        fine = jnp.all(jnp.isfinite(moving) & (jnp.abs(moving) < HUGE), axis=1)
        return Row(q, v, memory, control, fine, converged[:, 0] > 0.5)

    def scanned(
        self, values: jax.Array, carry: Carry, actions: jax.Array, ticks: jax.Array
    ) -> Trace:
        """As ``simulated``, but differentiable in reverse; later rows are those of the end.

        Only the state is kept between steps; everything else is computed again on the way back.
        Later ticks are computed, too: a branch around them would keep far more than the state.
        """
        leaves, plant = self.numbers(values)

        def once(substep: jax.Array, now: tuple[Carry, jax.Array]) -> Carry:
            return self._stepped(leaves, plant, values, now[0], now[1], substep)

        def advanced(now: Carry, action: jax.Array) -> Carry:
            kept = checkpoint(once)
            if self.substeps == 1:
                return kept(asarray(0), (now, action))

            def substep(state: Carry, k: jax.Array) -> tuple[Carry, None]:
                return kept(k, (state, action)), None

            return jax.lax.scan(substep, now, arange(self.substeps))[0]

        def tick(now: Carry, given: tuple[jax.Array, jax.Array]) -> tuple[Carry, jax.Array]:
            end = _chosen(given[0] < ticks, advanced(now, given[1]), now)
            return end, _flat(end)

        end, rows = jax.lax.scan(tick, carry, (arange(len(actions)), actions))
        rows = jnp.concatenate([_flat(carry)[None], rows])
        return Trace(end, self._unpacked(rows, carry))

    def _stepped(
        self,
        leaves: Leaves,
        plant: Plant,
        values: jax.Array,
        carry: Carry,
        action: jax.Array,
        substep: jax.Array,
    ) -> Carry:
        which = 0 if self.substeps == 1 else substep
        known, push = self._known(values), self._push(values)
        return stepped(self.system, leaves, plant, known, carry, action, which, push)

    # ---- observations --------------------------------------------------------------------

    def sensed(self, values: jax.Array, rows: Row, time: jax.Array) -> jax.Array:
        """Sensor values [T, ns] of rows [T, ...]."""
        if not self.sensors.groups:
            return zeros((len(rows.q), self.sensors.size))
        leaves, _ = self.numbers(values)

        def read(row: Row, at: jax.Array) -> jax.Array:
            return self._read(leaves, row, at, self._push(values))

        return jax.vmap(read)(rows, time)

    def _read(
        self, leaves: dict[str, jax.Array], row: Row, time: jax.Array, push: Push | None
    ) -> jax.Array:
        m = self.system
        still = zeros(m.structure.nv)
        carry = Carry(row.q, row.v, still, still, still, row.memory, row.control, row.converged)
        given = self._still(leaves, carry)
        if push is not None:
            given = given._replace(applied=push(carry))
        at = smoothed(m, leaves, row.q, row.v, given)
        solution = accelerated(m, leaves, at, row.q, row.v, given.friction, carry.warm)
        return sensed(
            self.sensors,
            m.structure,
            leaves,
            Sensible(
                time=time,
                q=row.q,
                v=row.v,
                acceleration=solution.acceleration,
                pose=at.pose,
                tendon_length=at.length,
                tendon_velocity=at.arms @ row.v,
                actuator_length=at.actuation.length,
                actuator_velocity=at.actuation.velocity,
                actuator_force=at.actuation.force,
                joint_force=at.actuation.joints,
            ),
        )

    def signals(self, rows: Row, sensordata: jax.Array) -> dict[str, jax.Array]:
        """True signals by channel [..., *shape]."""
        sources = {"qpos": rows.q, "qvel": rows.v, "sensordata": sensordata, "memory": rows.memory}
        found: dict[str, jax.Array] = {}
        for signal in self.tables.observed:
            array, first = sources[signal.source], signal.first
            if signal.spec.shape == ():
                found[signal.spec.name] = array[..., first]
            else:
                found[signal.spec.name] = array[..., first : first + signal.spec.size]
        return found


def _flat(carry: Carry) -> jax.Array:
    """What is kept of a state, in one array: one write per tick."""
    converged = jnp.where(carry.converged, 1.0, 0.0)[None]
    return jnp.concatenate([carry.q, carry.v, carry.memory, carry.control, converged])


def _chosen(first: jax.Array, one: Carry, other: Carry) -> Carry:
    """One state if ``first``, else the other."""
    return Carried(*(jnp.where(first, a, b) for a, b in zip(one, other, strict=True)))
