"""Components in a traced engine step: what laws do to controls, friction and velocities.

The laws are those of ``sameworld.worlds.components``, called with JAX arrays for one element of a
batch; rules and order are those of the explicit world. Everything is a pure function, to be used
inside ``scan``, ``vmap`` and derivatives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.core.arrays import Array, BoolArray
from sameworld.worlds.compiled.attach import Group, Index
from sameworld.worlds.components.law import Effect, Motion

__all__ = ["Drive", "Plant", "Seen", "acted", "begun"]

#: A step of the engine inside a tick: a number, or one that is traced.
Substep: TypeAlias = "int | jax.Array"


class Seen(NamedTuple):
    """What laws see of the engine at the beginning of a step.

    Attributes:
        position: Joint positions [nq].
        velocity: Joint velocities [nv].
        load: Minus the bias forces of the engine step before [nv].
        drive: Actuator forces on the joints in the engine step before [nv].
    """

    position: jax.Array
    velocity: jax.Array
    load: jax.Array
    drive: jax.Array


class Plant(NamedTuple):
    """What laws need to know of the model's own numbers.

    Attributes:
        masses: Mass and moment of inertia about z of every body [nbody, 2].
        gain: Gain of every actuator [nu].
        gear: Gear of every actuator [nu].
        low: Smallest force of every actuator, -inf without a limit [nu].
        high: Largest force, inf without a limit [nu].
        friction: Coulomb friction of the joints [nv].
        damping: Viscous damping of the joints [nv].
    """

    masses: jax.Array
    gain: jax.Array
    gear: jax.Array
    low: jax.Array
    high: jax.Array
    friction: jax.Array
    damping: jax.Array


class Drive(NamedTuple):
    """What the engine gets from actions and components in one step.

    Attributes:
        control: Controls [nu].
        friction: Coulomb friction of the joints, the model's own included [nv].
        damping: Viscous damping of the joints, the model's own included [nv].
        applied: Forces on the joints beside those of actuators [nv].
        imposed: Velocities to begin the step with [nv]; the present ones where no law says others.
        prescribed: Where a law says so, the same in every step [nv].
        drive: Actuator forces on the joints; of components in this step, else as seen [nv].
        memory: What laws remember afterwards [M].
    """

    control: jax.Array
    friction: jax.Array
    damping: jax.Array
    applied: jax.Array
    imposed: jax.Array
    prescribed: BoolArray
    drive: jax.Array
    memory: jax.Array


def begun(groups: Sequence[Group], starts: jax.Array, values: jax.Array, seen: Seen) -> jax.Array:
    """Memory [M] of the laws at the start.

    Args:
        groups: The components, by law.
        starts: Start values [S].
        values: Parameters [P].
        seen: Motion and load at the start.
    """
    found: list[jax.Array] = []
    for group in groups:
        nothing = np.zeros((len(group.names), 0))
        motion = _motion(group, seen, nothing, {}, substep=0, mass=np.zeros((0, 2)))
        begin = _columns(starts, group.starts)
        found.append(_row(group.law.begin(_columns(values, group.fields), begin, motion)))
    return _memory(groups, found)


def acted(
    groups: Sequence[Group],
    values: jax.Array,
    seen: Seen,
    action: jax.Array,
    memory: jax.Array,
    substep: Substep,
    plant: Plant,
) -> Drive:
    """Evaluate every law for the engine step that begins now.

    Controllers act first, then cars, then friction, each seeing what those before it drive.

    Args:
        groups: The components, by law, in the order in which they act.
        values: Parameters [P].
        seen: What laws see.
        action: Actions, actuators first, then actions and inputs of components [A].
        memory: What laws remember [M].
        substep: Engine steps since the control tick began.
        plant: The model's own numbers.
    """
    nv = seen.velocity.shape[0]
    drive = Drive(
        control=action[: plant.gain.shape[0]],
        friction=plant.friction,
        damping=plant.damping,
        applied=cast("jax.Array", np.zeros(nv)),
        imposed=seen.velocity,
        prescribed=np.zeros(nv, dtype=np.bool_),
        drive=seen.drive,
        memory=memory,
    )
    kept: list[jax.Array] = []
    for group in groups:
        effect = _effect(
            group, values, seen._replace(drive=drive.drive), action, memory, substep, plant
        )
        kept.append(_row(effect.memory))
        drive = _applied(group, effect, drive, plant)
    return drive._replace(memory=_memory(groups, kept))


# ---- one law -----------------------------------------------------------------------------------


def _effect(
    group: Group,
    values: jax.Array,
    seen: Seen,
    action: jax.Array,
    memory: jax.Array,
    substep: Substep,
    plant: Plant,
) -> Effect:
    inputs = _columns(action, group.inputs)
    mass = plant.masses[group.bodies]
    motion = _motion(group, seen, action[group.commands], inputs, substep=substep, mass=mass)
    kept = _one(memory[group.memory].reshape(len(group.names), -1))
    return group.law.act(_columns(values, group.fields), kept, motion)


def _motion(
    group: Group,
    seen: Seen,
    command: jax.Array | Array,
    inputs: Mapping[str, Array],
    *,
    substep: Substep,
    mass: jax.Array | Array,
) -> Motion:
    """What a group sees: its joints and bodies, with a batch axis of one."""
    joint = group.dof if group.dof.ndim == 1 else group.dof[:, 0]
    return Motion(
        position=_one(seen.position[group.qpos]),
        velocity=_one(seen.velocity[group.dof]),
        load=_one(seen.load[joint]),
        drive=_one(seen.drive[joint]),
        command=_one(command),
        inputs=inputs,
        substep=cast("int", substep),
        mass=_one(mass),
    )


def _applied(group: Group, effect: Effect, drive: Drive, plant: Plant) -> Drive:
    """Add what a group does to what the engine gets."""
    at = group.dof
    if effect.force is not None and group.law.target == "actuator":
        force, own = _row(effect.force), group.actuators
        limited = jnp.clip(plant.gain[own] * force, plant.low[own], plant.high[own])
        drive = drive._replace(
            control=_put(drive.control, group.commands[:, 0], force),
            drive=_put(drive.drive, at, plant.gear[own] * limited),
        )
    elif effect.force is not None:
        drive = drive._replace(applied=_added(drive.applied, at, effect.force))
    if effect.friction is not None:
        drive = drive._replace(friction=_added(drive.friction, at, effect.friction))
    if effect.damping is not None:
        drive = drive._replace(damping=_added(drive.damping, at, effect.damping))
    if effect.velocity is not None:
        drive = drive._replace(
            imposed=_put(drive.imposed, at, _row(effect.velocity)),
            prescribed=drive.prescribed | _written(at, drive.prescribed.shape[0]),
        )
    return drive


# ---- rows and columns --------------------------------------------------------------------------


def _one(array: jax.Array | Array) -> Array:
    """With a batch axis of one, typed as laws want it: they use what both kinds of array share."""
    return cast("Array", array[None])


def _row(array: Array) -> jax.Array:
    """All entries of a law's result, one after the other."""
    return cast("jax.Array", array.reshape(-1))


def _columns(row: jax.Array, columns: Mapping[str, Index]) -> dict[str, Array]:
    """Entries of a row [N] by field, [1, n] each."""
    return {name: _one(row[each]) for name, each in columns.items()}


def _memory(groups: Sequence[Group], parts: Sequence[jax.Array]) -> jax.Array:
    """Law memories in the order of the scene's components, one after the other."""
    order = sorted(range(len(groups)), key=lambda k: groups[k].memory.start)
    return jnp.concatenate([np.zeros(0), *(parts[k] for k in order)])


def _written(columns: Index, size: int) -> BoolArray:
    return np.isin(np.arange(size), columns)


def _spread(columns: Index, new: jax.Array, size: int) -> jax.Array:
    """A row [N] with new entries [n] in some columns, no two in one, and anything elsewhere."""
    source = np.zeros(size, dtype=np.intp)
    source[columns.reshape(-1)] = np.arange(columns.size)
    return new[source]


def _put(row: jax.Array, columns: Index, new: jax.Array) -> jax.Array:
    size = row.shape[0]
    return jnp.where(_written(columns, size), _spread(columns, new, size), row)


def _added(row: jax.Array, columns: Index, new: Array) -> jax.Array:
    size = row.shape[0]
    return row + jnp.where(_written(columns, size), _spread(columns, _row(new), size), 0.0)
