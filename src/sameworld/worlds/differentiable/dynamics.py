"""Inertia matrix and bias forces by products with ancestor masks.

Source: R. Featherstone, "Rigid Body Dynamics Algorithms" (2008), chapters 5 and 6: recursive
Newton-Euler and composite rigid bodies, with recursions replaced by sums over masks. Spatial
quantities refer to a point of the tree that is held fixed at the instant; results do not depend on
the choice, so no derivative flows through it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.differentiable.kinematics import Leaves, Pose
from sameworld.worlds.differentiable.spatial import cross, transformed
from sameworld.worlds.differentiable.structure import Structure
from sameworld.worlds.differentiable.typed import asarray, custom_vmap, diagonal, eye, in_turn

__all__ = ["Inertias", "bias_force", "inertia_matrix", "inertias", "inverted", "solved"]


#: Batches of up to so many matrices with so many rows are inverted at once on CPUs.
_FEW, _SMALL = 8, 16


class Inertias(NamedTuple):
    """Inertia of bodies about their reference points, in the world frame.

    Attributes:
        mass: Masses [nbody] kg.
        moment: Mass times centre of mass [nbody, 3] kg m.
        rotational: Inertia [nbody, 3, 3] kg m^2.
        central: Inertia about the centre of mass [nbody, 3, 3] kg m^2.
    """

    mass: jax.Array
    moment: jax.Array
    rotational: jax.Array
    central: jax.Array


def inertias(leaves: Leaves, pose: Pose) -> Inertias:
    """Inertia of every body where it is.

    Besides arrays named as in ``mjModel`` this reads ``inertia``: moments about the centre of mass
    in the axes of the body [nbody, 3, 3], in place of ``body_inertia`` and ``body_iquat``.
    """
    mass = leaves["body_mass"]
    turned = jnp.sum(pose.rotation[:, :, :, None] * leaves["inertia"][:, None, :, :], axis=2)
    central = jnp.sum(turned[:, :, None, :] * pose.rotation[:, None, :, :], axis=-1)
    arm = pose.centre - pose.origin
    square = jnp.sum(arm * arm, axis=-1)[:, None, None] * np.eye(3)
    outer = arm[:, :, None] * arm[:, None, :]
    rotational = central + mass[:, None, None] * (square - outer)
    return Inertias(mass=mass, moment=mass[:, None] * arm, rotational=rotational, central=central)


def inertia_matrix(s: Structure, leaves: Leaves, pose: Pose, bodies: Inertias) -> jax.Array:
    """Joint-space inertia [nv, nv] with armature."""
    d = s.dofs
    beyond = asarray(d.moves.astype(np.float64)).T
    flat = jnp.concatenate(
        [bodies.rotational.reshape(-1, 9), bodies.moment, bodies.mass[:, None]], axis=1
    )
    composite = beyond @ flat
    rotational = composite[:, :9].reshape(-1, 3, 3)
    moment, mass = composite[:, 9:12], composite[:, 12:]
    torque = transformed(rotational, pose.angular) + cross(moment, pose.linear)
    force = mass * pose.linear + cross(pose.angular, moment)
    axes = jnp.concatenate([pose.angular, pose.linear], axis=1)
    lower = (jnp.concatenate([torque, force], axis=1) @ axes.T) * d.above
    twice = diagonal(lower)
    return lower + lower.T + jnp.diag(leaves["dof_armature"] - twice)


def bias_force(
    s: Structure, leaves: Leaves, pose: Pose, bodies: Inertias, v: jax.Array
) -> jax.Array:
    """Gravity, Coriolis and centrifugal forces [nv], as ``qfrc_bias``."""
    d = s.dofs
    before = asarray(d.before.astype(np.float64))
    angular, linear = pose.angular * v[:, None], pose.linear * v[:, None]
    ahead = before @ jnp.concatenate([angular, linear], axis=1)
    spin, speed = ahead[:, :3], ahead[:, 3:]
    turned = cross(spin, angular)
    shifted = cross(spin, linear) + cross(speed, angular)
    moves = asarray(d.moves.astype(np.float64))
    total = moves @ jnp.concatenate([angular, linear, turned, shifted], axis=1)
    w, u, alpha, acceleration = (total[:, 3 * k : 3 * k + 3] for k in range(4))
    if not s.is_disabled("GRAVITY"):
        acceleration = acceleration - leaves["opt.gravity"]
    torque = _turn(bodies, alpha, acceleration) + cross(w, _turn(bodies, w, u))
    momentum = _push(bodies, w, u)
    torque = torque + cross(u, momentum)
    force = _push(bodies, alpha, acceleration) + cross(w, momentum)
    wrench = moves.T @ jnp.concatenate([torque, force], axis=1)
    axes = jnp.concatenate([pose.angular, pose.linear], axis=1)
    return jnp.sum(wrench * axes, axis=1)


def _turn(bodies: Inertias, angular: jax.Array, linear: jax.Array) -> jax.Array:
    return transformed(bodies.rotational, angular) + cross(bodies.moment, linear)


def _push(bodies: Inertias, angular: jax.Array, linear: jax.Array) -> jax.Array:
    return bodies.mass[:, None] * linear + cross(angular, bodies.moment)


@jax.custom_jvp
def solved(matrix: jax.Array, right: jax.Array) -> jax.Array:
    """Solve with a symmetric positive definite matrix [nv, nv].

    Its derivative is that of the equation, ``dx = A^-1 (db - dA x)``: no factorisation is
    differentiated.
    """
    return inverted(matrix) @ right


@solved.defjvp
def _solved_jvp(
    primals: tuple[jax.Array, jax.Array], tangents: tuple[jax.Array, jax.Array]
) -> tuple[jax.Array, jax.Array]:
    inverse = inverted(primals[0])
    solution = inverse @ primals[1]
    return solution, inverse @ (tangents[1] - tangents[0] @ solution)


def inverted(matrix: jax.Array) -> jax.Array:
    """Inverse of a symmetric positive definite matrix, without derivative."""
    alone = _in_turn if jax.default_backend() == "cpu" else _inverse
    return alone(jax.lax.stop_gradient(matrix))


def _inverse(matrix: jax.Array) -> jax.Array:
    factor = jax.scipy.linalg.cho_factor(matrix, lower=True)
    return jax.scipy.linalg.cho_solve(factor, eye(len(matrix)))


@custom_vmap
def _in_turn(matrix: jax.Array) -> jax.Array:
    """Inverse, in a batch one after the other where there is much to do.

    Batched factorisations of jaxlib split large batches over the threads of the process and wait
    for them in one of these; two at once on a machine with two threads wait forever.
    """
    return _inverse(matrix)


@_in_turn.def_vmap
def _in_turn_batched(  # pyright: ignore[reportUnusedFunction]
    count: int, batched: object, matrices: jax.Array
) -> tuple[jax.Array, bool]:
    few = count <= _FEW and matrices.shape[-1] <= _SMALL
    found = jax.vmap(_inverse)(matrices) if few else in_turn(_inverse, matrices)
    return found, True
