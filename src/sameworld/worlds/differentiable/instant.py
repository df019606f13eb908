"""One instant: forces without constraints, then accelerations under constraints."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sameworld.worlds.differentiable.cost import Problem
from sameworld.worlds.differentiable.dynamics import (
    Inertias,
    bias_force,
    inertia_matrix,
    inertias,
    solved,
)
from sameworld.worlds.differentiable.equality import equality_block
from sameworld.worlds.differentiable.forces import Actuation, actuated, springs, weightless
from sameworld.worlds.differentiable.kinematics import Leaves, Pose, posed
from sameworld.worlds.differentiable.limits import joint_friction, joint_limits
from sameworld.worlds.differentiable.rows import Reference, referenced
from sameworld.worlds.differentiable.solve import Solution, minimised
from sameworld.worlds.differentiable.system import System
from sameworld.worlds.differentiable.tendon_inertia import tendon_bias, tendon_inertia
from sameworld.worlds.differentiable.tendons import (
    friction_block,
    limit_block,
    tendon_damping,
    tendon_motion,
    tension,
)
from sameworld.worlds.differentiable.touch import cone_rows, pyramid_rows, touching
from sameworld.worlds.differentiable.typed import asarray, optimization_barrier, zeros

__all__ = ["Inputs", "Smooth", "accelerated", "joint_inertia", "smoothed"]


class Inputs(NamedTuple):
    """What acts from outside at an instant.

    Attributes:
        control: Controls [nu].
        friction: Dry friction of dofs [nv].
        damping: Damping of dofs [nv].
        applied: Further forces on the joints [nv].
    """

    control: jax.Array
    friction: jax.Array
    damping: jax.Array
    applied: jax.Array


class Smooth(NamedTuple):
    """An instant without constraints.

    Attributes:
        pose: Where everything is.
        bodies: Inertia of bodies.
        mass: Inertia matrix [nv, nv].
        bias: Bias forces [nv].
        actuation: What actuators do.
        length: Lengths of tendons [nt].
        arms: Moment arms of tendons [nt, nv].
        force: All forces but those of constraints [nv].
        slope: Derivative of the forces by velocity that implicit integration uses [nv, nv].
    """

    pose: Pose
    bodies: Inertias
    mass: jax.Array
    bias: jax.Array
    actuation: Actuation
    length: jax.Array
    arms: jax.Array
    force: jax.Array
    slope: jax.Array


def smoothed(m: System, leaves: Leaves, q: jax.Array, v: jax.Array, given: Inputs) -> Smooth:
    """Forces and inertia at positions [nq] and velocities [nv]."""
    s = m.structure
    pose = posed(s, leaves, q)
    bodies = inertias(leaves, pose)
    length, arms = tendon_motion(m.tendons, s, leaves, pose, q)
    mass = joint_inertia(m, leaves, pose, bodies, arms)
    bias = bias_force(s, leaves, pose, bodies, v)
    if m.tendons.turns:
        bias = bias + tendon_bias(m.tendons, s, leaves, pose, v, arms)
    pulled = (length, arms) if m.tendons.count else None
    actuation = actuated(m.actuators, leaves, q, v, given.control, pulled)
    damping = given.damping if not s.is_disabled("DAMPER") else zeros(s.nv)
    force = given.applied - bias - damping * v
    slope = -jnp.diag(damping)
    if not s.is_disabled("SPRING"):
        force = force + springs(s, leaves, q)
    passive = not (s.is_disabled("SPRING") and s.is_disabled("DAMPER"))
    if len(m.floating) and passive and not s.is_disabled("GRAVITY"):
        force = force + weightless(s, leaves, pose, m.floating)
    if m.tendons.count:
        force = force + tension(s, leaves, length, arms @ v) @ arms
        slope = slope - (arms.T * tendon_damping(s, leaves)) @ arms
    if m.actuators.count and not s.is_disabled("ACTUATION"):
        force = force + actuation.joints
        slope = slope + (actuation.moment.T * actuation.slope) @ actuation.moment
    found = Smooth(pose, bodies, mass, bias, actuation, length, arms, force, slope)
    # XLA on CPUs would otherwise compute the chain again for every use of it.
    return optimization_barrier(found)


def joint_inertia(
    m: System, leaves: Leaves, pose: Pose, bodies: Inertias, arms: jax.Array
) -> jax.Array:
    """Inertia matrix [nv, nv] with armature of joints and tendons.

    Args:
        m: The system.
        leaves: Arrays of the model.
        pose: Where everything is.
        bodies: Inertia of bodies there.
        arms: Moment arms of tendons there [nt, nv].
    """
    mass = inertia_matrix(m.structure, leaves, pose, bodies)
    if not len(m.tendons.heavy):
        return mass
    return mass + tendon_inertia(m.tendons, m.structure, leaves, arms)


def accelerated(
    m: System,
    leaves: Leaves,
    at: Smooth,
    q: jax.Array,
    v: jax.Array,
    friction: jax.Array,
    warm: jax.Array,
) -> Solution:
    """Accelerations under constraints.

    Args:
        m: The system.
        leaves: Arrays of the model.
        at: The instant without constraints.
        q: Positions [nq].
        v: Velocities [nv].
        friction: Dry friction of dofs [nv].
        warm: A guess of the accelerations [nv].
    """
    if not m.is_constrained:
        return Solution(solved(at.mass, at.force), asarray(0), asarray(True))
    return minimised(m.layout, _problem(m, leaves, at, q, v, friction), warm, m.effort)


def _problem(
    m: System, leaves: Leaves, at: Smooth, q: jax.Array, v: jax.Array, friction: jax.Array
) -> Problem:
    s, layout = m.structure, m.layout
    rows, limits = list[Reference](), list[jax.Array]()
    safe = not s.is_disabled("REFSAFE")
    if layout.equalities:
        block = equality_block(m.equalities, s, leaves, at.pose, q, v, at.length, at.arms)
        rows.append(referenced(block, v, s.timestep, safe=safe))
    if len(m.rubbing):
        limits.append(friction[m.rubbing])
        block = joint_friction(s, leaves, m.rubbing)
        rows.append(referenced(block, v, s.timestep, safe=safe, spring=False))
    if len(m.tendons.rubbing):
        block, limit = friction_block(m.tendons, leaves, at.arms)
        limits.append(limit)
        rows.append(referenced(block, v, s.timestep, safe=safe, spring=False))
    if m.limits.rows:
        rows.append(referenced(joint_limits(s, m.limits, leaves, q), v, s.timestep, safe=safe))
    if len(m.tendons.limited):
        block = limit_block(m.tendons, leaves, at.length, at.arms)
        rows.append(referenced(block, v, s.timestep, safe=safe))
    frictions, regulars = list[jax.Array](), list[jax.Array]()
    if len(m.pairs.pair):
        touch = touching(s, m.pairs, leaves, at.pose, m.owner)
        for dimension in sorted(set(m.pairs.dimension.tolist())):
            if dimension > 1 and s.elliptic:
                cones = cone_rows(s, m.pairs, leaves, touch, v, dimension)
                rows.append(cones.rows)
                frictions.append(cones.friction)
                regulars.append(cones.regular)
            else:
                rows.append(pyramid_rows(s, m.pairs, leaves, touch, v, dimension))
    every = Reference(*(jnp.concatenate(parts) for parts in zip(*rows, strict=True)))
    return Problem(
        mass=at.mass,
        smooth=at.force,
        jacobian=every.jacobian,
        reference=jnp.where(every.present, every.acceleration, 0.0),
        stiffness=jnp.where(every.present, 1 / every.regularisation, 0.0),
        limit=jnp.concatenate(limits) if limits else zeros(0),
        friction=tuple(frictions),
        regular=tuple(regulars),
    )
