"""What armature of tendons does to the joints: inertia, and forces as moment arms change.

Armature resists acceleration of a tendon's length; that of actuators on the tendon counts with the
square of their gear.

With the moment arms J and the armature a, the joints see the inertia ``J' a J`` and the bias
``J' a dJ/dt v``.

Source: MuJoCo documentation, chapter XML reference, "armature" of tendons and actuators.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from sameworld.worlds.differentiable.kinematics import Leaves, Pose
from sameworld.worlds.differentiable.motion import carried, motion_of
from sameworld.worlds.differentiable.spatial import norm, normalised, transformed
from sameworld.worlds.differentiable.structure import Structure
from sameworld.worlds.differentiable.tendons import Segments, Tendons, shares

__all__ = ["tendon_bias", "tendon_inertia"]


def tendon_inertia(t: Tendons, s: Structure, leaves: Leaves, arms: jax.Array) -> jax.Array:
    """Inertia [nv, nv] that armature of tendons adds.

    As in MuJoCo, a tendon couples only dofs of which one moves the other: between two trees it adds
    to the diagonal alone.

    Args:
        t: The tendons.
        s: The structure.
        leaves: Arrays of the model.
        arms: Moment arms [nt, nv].
    """
    heavy = arms[t.heavy]
    added = (heavy.T * leaves["tendon_armature"][t.heavy]) @ heavy
    return jnp.where(s.dofs.coupled, added, 0.0)


def tendon_bias(
    t: Tendons, s: Structure, leaves: Leaves, pose: Pose, v: jax.Array, arms: jax.Array
) -> jax.Array:
    """Bias forces [nv] of tendons with armature whose moment arms change.

    Args:
        t: The tendons.
        s: The structure.
        leaves: Arrays of the model.
        pose: Where everything is.
        v: Joint velocities [nv].
        arms: Moment arms [nt, nv].
    """
    closing = shares(t.segments, leaves) @ _drift(t.segments, s, leaves, pose, v)
    return (leaves["tendon_armature"] * closing)[t.heavy] @ arms[t.heavy]


def _drift(segments: Segments, s: Structure, leaves: Leaves, pose: Pose, v: jax.Array) -> jax.Array:
    """Second derivatives of the lengths of pieces [n] while velocities last."""
    body = segments.body
    ends = pose.position[body] + transformed(pose.rotation[body], leaves["site_pos"][segments.site])
    velocity, acceleration = carried(pose, motion_of(s, pose, v), body, ends)
    gap, rate = ends[1] - ends[0], velocity[1] - velocity[0]
    length, along = norm(gap), normalised(gap)
    closing = jnp.sum(along * rate, axis=-1)
    apart = length > 0
    turning = (jnp.sum(rate * rate, axis=-1) - closing**2) / jnp.where(apart, length, 1.0)
    straight = jnp.sum(along * (acceleration[1] - acceleration[0]), axis=-1)
    return straight + jnp.where(apart, turning, 0.0)
