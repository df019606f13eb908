"""One engine step: components, forces, constraints, integration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.differentiable.derived import inverse_of, inverse_weights, with_actuators
from sameworld.worlds.differentiable.dynamics import inertias
from sameworld.worlds.differentiable.equality import reference_data
from sameworld.worlds.differentiable.instant import (
    Inputs,
    Smooth,
    accelerated,
    joint_inertia,
    smoothed,
)
from sameworld.worlds.differentiable.integrate import displaced, integrated_acceleration
from sameworld.worlds.differentiable.kinematics import Leaves, posed
from sameworld.worlds.differentiable.laws import Plant, Seen, Substep, acted
from sameworld.worlds.differentiable.parameters import Writer
from sameworld.worlds.differentiable.system import System
from sameworld.worlds.differentiable.tendons import tendon_motion, tendon_weights
from sameworld.worlds.differentiable.typed import zeros

__all__ = [
    "Carried",
    "Carry",
    "Push",
    "completed",
    "derived",
    "inputs_of",
    "plant_of",
    "stepped",
]

_A = TypeVar("_A")


class Carried(NamedTuple, Generic[_A]):
    """State of one element between engine steps, in arrays of JAX or of numpy.

    With numpy there is a leading axis, the batch.

    Attributes:
        q: Positions [nq].
        v: Velocities [nv].
        warm: Accelerations of the step before, where the solver starts [nv].
        load: Minus the bias forces of the step before [nv].
        drive: Actuator forces on the joints of the step before [nv].
        memory: What components remember [M].
        control: Controls of the step before [nu].
        converged: Whether the solver has converged in all steps so far.
    """

    q: _A
    v: _A
    warm: _A
    load: _A
    drive: _A
    memory: _A
    control: _A
    converged: _A


#: As programs see it.
Carry: TypeAlias = Carried[jax.Array]
#: Further forces on the joints [nv] from the state, with the controls of the step that begins.
Push: TypeAlias = Callable[[Carry], jax.Array]


def completed(m: System, writer: Writer, values: jax.Array) -> dict[str, jax.Array]:
    """Leaves for parameter values [P], with everything that MuJoCo's compiler derives."""
    leaves = writer.leaves(values)
    return leaves | derived(m, leaves)


def derived(m: System, leaves: Leaves) -> dict[str, jax.Array]:
    """What actuators add and, if there are constraints, inverse weights and what anchors follow."""
    found = dict(leaves) | with_actuators(m.actuators, leaves)
    if not m.is_constrained:
        return found
    s, q = m.structure, found["qpos0"]
    pose = posed(s, found, q)
    length, arms = tendon_motion(m.tendons, s, found, pose, q)
    inverse = inverse_of(joint_inertia(m, found, pose, inertias(found, pose), arms))
    found |= inverse_weights(s, found, pose, inverse)
    if m.tendons.count:
        found["tendon_length0"] = length
        found["tendon_invweight0"] = tendon_weights(arms, inverse)
    if m.equalities.row.size:
        found["eq_data"] = reference_data(m.equalities, found, pose)
    return found


def plant_of(m: System, leaves: Leaves) -> Plant:
    """What laws need to know of the model."""
    low, high = leaves["actuator_forcerange"][:, 0], leaves["actuator_forcerange"][:, 1]
    limited = m.actuators.limited
    return Plant(
        masses=jnp.stack([leaves["body_mass"], leaves["inertia"][:, 2, 2]], axis=1),
        gain=leaves["actuator_gainprm"][:, 0],
        gear=leaves["actuator_gear"][:, 0],
        low=jnp.where(limited, low, -np.inf),
        high=jnp.where(limited, high, np.inf),
        friction=leaves["dof_frictionloss"],
        damping=leaves["dof_damping"],
    )


def inputs_of(
    m: System,
    leaves: Leaves,
    plant: Plant,
    values: jax.Array,
    carry: Carry,
    action: jax.Array,
    substep: Substep,
) -> tuple[Carry, Inputs]:
    """What laws make of the state and the action; velocities that they impose are in the carry."""
    if not m.groups:
        given = Inputs(
            control=action[: m.structure.nu],
            friction=leaves["dof_frictionloss"],
            damping=leaves["dof_damping"],
            applied=zeros(m.structure.nv),
        )
        return carry._replace(control=given.control), given
    seen = Seen(carry.q, carry.v, carry.load, carry.drive)
    drive = acted(m.groups, values, seen, action, carry.memory, substep, plant)
    given = Inputs(drive.control, drive.friction, drive.damping, drive.applied)
    carry = carry._replace(v=drive.imposed, memory=drive.memory, control=drive.control)
    return carry, given


def stepped(
    m: System,
    leaves: Leaves,
    plant: Plant,
    values: jax.Array,
    carry: Carry,
    action: jax.Array,
    substep: Substep,
    push: Push | None = None,
) -> Carry:
    """Advance by one engine step.

    Args:
        m: The system.
        leaves: Completed arrays of the model.
        plant: The model's own numbers, for laws.
        values: Parameters [P], for laws.
        carry: The state.
        action: Actions [A].
        substep: Engine steps since the control tick began.
        push: What else pushes the joints, if anything does.
    """
    carry, given = inputs_of(m, leaves, plant, values, carry, action, substep)
    if push is not None:
        given = given._replace(applied=given.applied + push(carry))
    at = smoothed(m, leaves, carry.q, carry.v, given)
    if not m.is_constrained:
        return _advanced(m, leaves, carry, given, at, at.force)
    solution = accelerated(m, leaves, at, carry.q, carry.v, given.friction, carry.warm)
    carry = carry._replace(
        warm=jax.lax.stop_gradient(solution.acceleration),
        converged=carry.converged & solution.converged,
    )
    return _advanced(m, leaves, carry, given, at, at.mass @ solution.acceleration)


def _advanced(
    m: System, leaves: Leaves, carry: Carry, given: Inputs, at: Smooth, force: jax.Array
) -> Carry:
    """Integrate under all forces [nv]; what laws see late is kept if there are laws."""
    s = m.structure
    v = carry.v + s.timestep * integrated_acceleration(s, leaves, at, carry.v, given, force)
    carry = carry._replace(q=displaced(s, carry.q, v, s.timestep), v=v)
    if not m.groups:
        return carry
    drive = at.actuation.joints if m.actuators.count else carry.drive
    return carry._replace(load=-at.bias, drive=drive)
