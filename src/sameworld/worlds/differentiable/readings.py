"""What sensors read at an instant, as ``mjData.sensordata``.

Accelerations contain gravity, as an accelerometer's do; noise is never added.

Source: MuJoCo documentation, chapter XML reference, section "sensor".
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sameworld.worlds.differentiable.kinematics import Leaves, Pose, orientations
from sameworld.worlds.differentiable.motion import Motion, carried, motion_of
from sameworld.worlds.differentiable.sensors import Group, Sensors
from sameworld.worlds.differentiable.spatial import (
    cross,
    matrix_of,
    multiplied,
    normalised,
    transformed,
)
from sameworld.worlds.differentiable.structure import Structure

__all__ = ["READERS", "SENSOR_LEAVES", "Sensible", "Views", "sensed"]

#: Arrays of ``mjModel`` that ``sensed`` reads, beside those of ``orientations``.
SENSOR_LEAVES = (
    "body_ipos",
    "body_iquat",
    "body_mass",
    "geom_pos",
    "geom_quat",
    "opt.gravity",
    "site_pos",
    "site_quat",
)


class Sensible(NamedTuple):
    """What sensors can see of an instant.

    Attributes:
        time: Time [s].
        q: Positions [nq].
        v: Velocities [nv].
        acceleration: Accelerations [nv].
        pose: Kinematics at ``q``.
        tendon_length: [nt] m.
        tendon_velocity: [nt] m/s.
        actuator_length: [na].
        actuator_velocity: [na].
        actuator_force: [na].
        joint_force: Forces of actuators on the joints [nv].
    """

    time: jax.Array
    q: jax.Array
    v: jax.Array
    acceleration: jax.Array
    pose: Pose
    tendon_length: jax.Array
    tendon_velocity: jax.Array
    actuator_length: jax.Array
    actuator_velocity: jax.Array
    actuator_force: jax.Array
    joint_force: jax.Array


def sensed(c: Sensors, s: Structure, leaves: Leaves, at: Sensible) -> jax.Array:
    """Values of all sensors [nsensordata], with their cutoffs.

    A quaternion has the sign that composition along the tree gives it.

    Args:
        c: The sensors.
        s: The structure.
        leaves: Arrays of the model.
        at: The instant.
    """
    if not c.groups:
        return jax.lax.full((c.size,), 0.0)
    views = Views(c, s, leaves, at)
    values = [READERS[group.kind](group, views).reshape(-1) for group in c.groups]
    ordered = jnp.concatenate(values)[c.order]
    return jnp.clip(ordered, c.low, c.high) if np.isfinite(c.high).any() else ordered


class Views:
    """Places and motions of the frames that sensors mention, computed when first asked for."""

    def __init__(self, c: Sensors, s: Structure, leaves: Leaves, at: Sensible) -> None:
        self.sensors = c
        self.at = at
        self._s = s
        self._leaves = leaves

    @cached_property
    def position(self) -> jax.Array:
        """Origins [n, 3] m."""
        frames, leaves, pose = self.sensors.frames, self._leaves, self.at.pose
        local = jnp.concatenate(
            [
                np.zeros((frames.bodies, 3)),
                leaves["body_ipos"][frames.inertial],
                leaves["geom_pos"][frames.geoms],
                leaves["site_pos"][frames.sites],
            ]
        )
        return pose.position[frames.body] + transformed(pose.rotation[frames.body], local)

    @cached_property
    def _local(self) -> jax.Array:
        """Orientations relative to the bodies [n, 4]."""
        frames, leaves = self.sensors.frames, self._leaves
        return jnp.concatenate(
            [
                np.tile(_UNIT, (frames.bodies, 1)),
                leaves["body_iquat"][frames.inertial],
                leaves["geom_quat"][frames.geoms],
                leaves["site_quat"][frames.sites],
            ]
        )

    @cached_property
    def rotation(self) -> jax.Array:
        """Frame-to-world matrices [n, 3, 3]."""
        bodies = self.at.pose.rotation[self.sensors.frames.body]
        return jnp.matmul(bodies, matrix_of(self._local))

    @cached_property
    def quaternion(self) -> jax.Array:
        """Orientations in the world [n, 4]."""
        bodies = orientations(self._s, self._leaves, self.at.q)
        return multiplied(bodies[self.sensors.frames.body], self._local)

    @cached_property
    def motion(self) -> Motion:
        """How bodies move, gravity taken for an acceleration of the world upwards."""
        at = self.at
        motion = motion_of(self._s, at.pose, at.v, at.acceleration)
        if not self.sensors.gravity:
            return motion
        return motion._replace(pushing=motion.pushing - self._leaves["opt.gravity"])

    @cached_property
    def carried(self) -> tuple[jax.Array, jax.Array]:
        """Velocities [n, 3] m/s and accelerations [n, 3] m/s^2 of the origins."""
        return carried(self.at.pose, self.motion, self.sensors.frames.body, self.position)

    @cached_property
    def spin(self) -> jax.Array:
        """Angular velocities [n, 3] rad/s."""
        return self.motion.angular[self.sensors.frames.body]

    @cached_property
    def turning(self) -> jax.Array:
        """Angular accelerations [n, 3] rad/s^2."""
        return self.motion.turning[self.sensors.frames.body]

    @cached_property
    def shares(self) -> jax.Array:
        """Share of every body in the mass of every subtree [nbody, nbody]."""
        masses = self._leaves["body_mass"] * self.sensors.under
        return masses / jnp.maximum(jnp.sum(masses, axis=1, keepdims=True), _LIGHT)

    @cached_property
    def centres(self) -> jax.Array:
        """Centres of mass of subtrees [nbody, 3] m; of one without mass, that of its body."""
        heavy = jnp.matmul(self.sensors.under, self._leaves["body_mass"]) > _LIGHT
        own = self.at.pose.centre
        return jnp.where(heavy[:, None], jnp.matmul(self.shares, own), own)

    @cached_property
    def drifts(self) -> jax.Array:
        """Velocities of the centres of mass of subtrees [nbody, 3] m/s."""
        pose, every = self.at.pose, np.arange(self._s.nbody)
        velocity, _ = carried(pose, self.motion, every, pose.centre)
        return jnp.matmul(self.shares, velocity)


_UNIT: NDArray[np.float64] = np.array([1.0, 0.0, 0.0, 0.0])
_CONJUGATE: NDArray[np.float64] = np.array([1.0, -1.0, -1.0, -1.0])
_LIGHT = 1e-15


def _local_to(frame: np.ndarray, views: Views, vectors: jax.Array) -> jax.Array:
    """World vectors [n, 3] in the axes of frames [n]."""
    return transformed(jnp.swapaxes(views.rotation[frame], -1, -2), vectors)


def _frame_pos(g: Group, views: Views) -> jax.Array:
    gap = views.position[g.object] - views.position[g.reference]
    return _local_to(g.reference, views, gap)


def _frame_quat(g: Group, views: Views) -> jax.Array:
    back = views.quaternion[g.reference] * _CONJUGATE
    return multiplied(back, views.quaternion[g.object])


def _frame_axis(axis: int) -> Reader:
    def read(g: Group, views: Views) -> jax.Array:
        return _local_to(g.reference, views, views.rotation[g.object][:, :, axis])

    return read


def _frame_velocity(g: Group, views: Views) -> jax.Array:
    velocity, _ = views.carried
    lever = views.position[g.object] - views.position[g.reference]
    relative = velocity[g.object] - velocity[g.reference]
    return _local_to(g.reference, views, relative - cross(views.spin[g.reference], lever))


def _frame_spin(g: Group, views: Views) -> jax.Array:
    return _local_to(g.reference, views, views.spin[g.object] - views.spin[g.reference])


def _ball_quat(g: Group, views: Views) -> jax.Array:
    return normalised(views.at.q[g.qpos[:, None] + np.arange(4)])


Reader = Callable[[Group, Views], jax.Array]

#: What sensors of a type read [n, size].
READERS: dict[str, Reader] = {
    "ACCELEROMETER": lambda g, w: _local_to(g.object, w, w.carried[1][g.object]),
    "ACTUATORFRC": lambda g, w: w.at.actuator_force[g.object],
    "ACTUATORPOS": lambda g, w: w.at.actuator_length[g.object],
    "ACTUATORVEL": lambda g, w: w.at.actuator_velocity[g.object],
    "BALLANGVEL": lambda g, w: w.at.v[g.dof[:, None] + np.arange(3)],
    "BALLQUAT": _ball_quat,
    "CLOCK": lambda g, w: jnp.broadcast_to(w.at.time, (len(g.object),)),
    "FRAMEANGACC": lambda g, w: w.turning[g.object],
    "FRAMEANGVEL": _frame_spin,
    "FRAMELINACC": lambda g, w: w.carried[1][g.object],
    "FRAMELINVEL": _frame_velocity,
    "FRAMEPOS": _frame_pos,
    "FRAMEQUAT": _frame_quat,
    "FRAMEXAXIS": _frame_axis(0),
    "FRAMEYAXIS": _frame_axis(1),
    "FRAMEZAXIS": _frame_axis(2),
    "GYRO": lambda g, w: _local_to(g.object, w, w.spin[g.object]),
    "JOINTACTFRC": lambda g, w: w.at.joint_force[g.dof],
    "JOINTPOS": lambda g, w: w.at.q[g.qpos],
    "JOINTVEL": lambda g, w: w.at.v[g.dof],
    "MAGNETOMETER": lambda g, w: _local_to(
        g.object, w, jnp.broadcast_to(w.sensors.magnetic, (len(g.object), 3))
    ),
    "SUBTREECOM": lambda g, w: w.centres[g.object],
    "SUBTREELINVEL": lambda g, w: w.drifts[g.object],
    "TENDONPOS": lambda g, w: w.at.tendon_length[g.object],
    "TENDONVEL": lambda g, w: w.at.tendon_velocity[g.object],
    "VELOCIMETER": lambda g, w: _local_to(g.object, w, w.carried[0][g.object]),
}
