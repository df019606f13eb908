"""Forward kinematics and motion axes.

Transforms of links are composed by pointer doubling: after k rounds every link knows its place
relative to its 2^k-th ancestor, so that a chain of n links takes log2(n) rounds of array
operations. Everything further down is a product with ancestor masks. No loop over bodies, and no
unrolled one, is left (an unrolled one ran 100 times slower).

Source: R. Featherstone, "Rigid Body Dynamics Algorithms" (2008), chapters 2 and 4; pointer doubling
as in W. D. Hillis, G. L. Steele, "Data parallel algorithms", CACM 29 (1986).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.compiled.engine import mj
from sameworld.worlds.differentiable.spatial import (
    cross,
    matrix_of,
    multiplied,
    normalised,
    transformed,
)
from sameworld.worlds.differentiable.structure import Structure
from sameworld.worlds.differentiable.typed import asarray, optimization_barrier

__all__ = ["Leaves", "Pose", "orientations", "point_axes", "posed"]

#: Differentiable arrays of a model, by the names of ``mjModel``.
Leaves: TypeAlias = Mapping[str, jax.Array]

#: Selects the position in a rotation with a position beside it [3, 4].
_LAST = np.array([0.0, 0.0, 0.0, 1.0])
_HINGE, _SLIDE = int(mj.mjtJoint.mjJNT_HINGE), int(mj.mjtJoint.mjJNT_SLIDE)
_BALL, _FREE = int(mj.mjtJoint.mjJNT_BALL), int(mj.mjtJoint.mjJNT_FREE)


class Pose(NamedTuple):
    """Where everything is, in the world frame.

    Attributes:
        position: Origins of bodies [nbody, 3] m.
        rotation: Body-to-world matrices [nbody, 3, 3].
        centre: Centres of mass of bodies [nbody, 3] m.
        axis: Axis of every dof [nv, 3], a unit vector.
        angular: Angular velocity per unit velocity of every dof [nv, 3].
        linear: Linear velocity, at the dof's reference point, per unit velocity [nv, 3].
        reference: Reference point of every dof [nv, 3] m: the origin of its tree's root body.
        origin: Reference point of every body [nbody, 3] m.
    """

    position: jax.Array
    rotation: jax.Array
    centre: jax.Array
    axis: jax.Array
    angular: jax.Array
    linear: jax.Array
    reference: jax.Array
    origin: jax.Array


def posed(s: Structure, leaves: Leaves, q: jax.Array) -> Pose:
    """Kinematics of a configuration.

    Args:
        s: The structure.
        leaves: Arrays of the model.
        q: Positions [nq].
    """
    shift, turn = _local(s, leaves, q)
    position, rotation = _composed(s, shift, matrix_of(turn))
    d = s.dofs
    own = transformed(rotation[d.link], _local_axes(s, leaves))
    anchors = position[d.anchor] + transformed(rotation[d.anchor], leaves["jnt_pos"][d.joint])
    reference = jax.lax.stop_gradient(position[d.root])
    turns = asarray(d.turns)[:, None]
    bodies, turned = position[s.links.of_body], rotation[s.links.of_body]
    return Pose(
        position=bodies,
        rotation=turned,
        centre=bodies + transformed(turned, leaves["body_ipos"]),
        axis=own,
        angular=jnp.where(turns, own, 0.0),
        linear=jnp.where(turns, cross(own, reference - anchors), own),
        reference=reference,
        origin=jax.lax.stop_gradient(position[s.root]),
    )


def orientations(s: Structure, leaves: Leaves, q: jax.Array) -> jax.Array:
    """Unit quaternions of bodies [nbody, 4], with the sign that composition along the tree gives.

    ``Pose.rotation`` says the same but for that sign, which a sensor of orientation reports.

    Args:
        s: The structure.
        leaves: Arrays of the model.
        q: Positions [nq].
    """
    _, turn = _local(s, leaves, q)
    for ancestor in s.links.jumps:
        turn = optimization_barrier(multiplied(turn[ancestor], turn))
    return normalised(turn[s.links.of_body])


def _local_axes(s: Structure, leaves: Leaves) -> jax.Array:
    d = s.dofs
    if not d.scalar.any():
        return asarray(d.local)
    return jnp.where(asarray(d.scalar)[:, None], leaves["jnt_axis"][d.joint], d.local)


def _local(s: Structure, leaves: Leaves, q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Transform of every link relative to its parent link: position [L, 3], quaternion [L, 4]."""
    links, kind = s.links, s.links.kind
    turn = jnp.where(asarray(links.first)[:, None], leaves["body_quat"][links.body], _UNIT)
    shift = jnp.where(asarray(links.first)[:, None], leaves["body_pos"][links.body], 0.0)
    if s.nq == 0:
        return shift, turn
    joint = np.maximum(links.joint, 0)
    axis, anchor = leaves["jnt_axis"][joint], leaves["jnt_pos"][joint]
    moved_by = (q - leaves["qpos0"])[links.qpos]
    angle = jnp.where(kind == _HINGE, moved_by, 0.0)[:, None]
    own = jnp.concatenate([jnp.cos(angle / 2), jnp.sin(angle / 2) * axis], axis=-1)
    own, turn, shift = _with_quaternions(s, q, own, turn, shift)
    step = jnp.where((kind == _SLIDE)[:, None], moved_by[:, None] * axis, 0.0)
    hangs = asarray((kind == _HINGE) | (kind == _BALL))[:, None]
    arm = jnp.where(hangs, anchor, 0.0)
    step = step + arm - transformed(matrix_of(own), arm)
    fixed = matrix_of(turn)
    return shift + transformed(fixed, step), multiplied(turn, own)


_UNIT = np.array([1.0, 0.0, 0.0, 0.0])


def _with_quaternions(
    s: Structure, q: jax.Array, own: jax.Array, turn: jax.Array, shift: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Own rotations of ball and free links; fixed offsets that free joints replace."""
    kind, qpos = s.links.kind, s.links.qpos
    free, ball = kind == _FREE, kind == _BALL
    if not (free.any() or ball.any()):
        return own, turn, shift
    first = qpos + np.where(free, 3, 0)
    columns = np.where((free | ball)[:, None], first[:, None] + np.arange(4), 0)
    own = jnp.where((free | ball)[:, None], normalised(q[columns]), own)
    places = np.where(free[:, None], qpos[:, None] + np.arange(3), 0)
    turn = jnp.where(free[:, None], _UNIT, turn)
    return own, turn, jnp.where(free[:, None], q[places], shift)


def _composed(
    s: Structure, position: jax.Array, rotation: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """World transforms of links from those relative to the parent."""
    place = jnp.concatenate([rotation, position[:, :, None]], axis=2)
    for ancestor in s.links.jumps:
        above = place[ancestor]
        turned = jnp.sum(above[:, :, :3, None] * place[:, None, :, :], axis=2)
        place = optimization_barrier(turned + above * _LAST)
    return place[:, :, 3], place[:, :, :3]


def point_axes(pose: Pose, points: jax.Array) -> jax.Array:
    """Velocity of world points [..., 3] per unit velocity of every dof [..., nv, 3].

    Whether a dof moves the body that carries the point is for the caller to mask.
    """
    lever = points[..., None, :] - pose.reference
    return pose.linear + cross(jnp.broadcast_to(pose.angular, lever.shape), lever)
