"""Velocities and accelerations of bodies and of points fixed to them.

Source: R. Featherstone, "Rigid Body Dynamics Algorithms" (2008), chapter 2: spatial velocity and
acceleration, with recursions replaced by products with ancestor masks.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.differentiable.kinematics import Pose
from sameworld.worlds.differentiable.spatial import cross
from sameworld.worlds.differentiable.structure import Index, Structure

__all__ = ["Motion", "carried", "motion_of"]


class Motion(NamedTuple):
    """How bodies move, in the world frame; linear parts are those of ``Pose.origin``.

    Attributes:
        angular: Angular velocities [nbody, 3] rad/s.
        linear: Linear velocities [nbody, 3] m/s.
        turning: Angular accelerations [nbody, 3] rad/s^2.
        pushing: Linear parts of spatial accelerations [nbody, 3] m/s^2.
    """

    angular: jax.Array
    linear: jax.Array
    turning: jax.Array
    pushing: jax.Array


def motion_of(
    s: Structure, pose: Pose, v: jax.Array, acceleration: jax.Array | None = None
) -> Motion:
    """Motion of bodies.

    Args:
        s: The structure.
        pose: Where everything is.
        v: Joint velocities [nv].
        acceleration: Joint accelerations [nv]; without them, the accelerations are those that
            velocity alone causes.
    """
    angular, linear = pose.angular * v[:, None], pose.linear * v[:, None]
    own = jnp.concatenate([angular, linear], axis=1)
    ahead = jnp.matmul(s.dofs.before.astype(np.float64), own)
    spin, speed = ahead[:, :3], ahead[:, 3:]
    turned = cross(spin, angular)
    shifted = cross(spin, linear) + cross(speed, angular)
    if acceleration is not None:
        turned = turned + pose.angular * acceleration[:, None]
        shifted = shifted + pose.linear * acceleration[:, None]
    moves = s.dofs.moves.astype(np.float64)
    total = jnp.matmul(moves, jnp.concatenate([angular, linear, turned, shifted], axis=1))
    return Motion(*(total[:, 3 * k : 3 * k + 3] for k in range(4)))


def carried(
    pose: Pose, motion: Motion, body: Index, points: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Velocities [n, 3] m/s and accelerations [n, 3] m/s^2 of points fixed to bodies.

    Args:
        pose: Where everything is.
        motion: How bodies move.
        body: Body of every point [n].
        points: The points [n, 3] m, in the world frame.
    """
    lever = points - pose.origin[body]
    spin = motion.angular[body]
    velocity = motion.linear[body] + cross(spin, lever)
    straight = motion.pushing[body] + cross(motion.turning[body], lever)
    return velocity, straight + cross(spin, velocity)
