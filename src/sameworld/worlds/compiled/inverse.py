"""Inverse dynamics of a compiled scene: joint torques from motion, and where bodies are.

Torques are linear in the ten numbers of every body's inertia (mass, first moment of mass, inertia
about the body's origin). The regressor holds the factors: what acts at a body's origin is linear
in them, and Jacobians carry it to the joints.

Source: W. Khalil, E. Dombre, "Modeling, Identification and Control of Robots" (2002), chapter 12.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.errors import SpecError, closest, listed
from sameworld.core.world import Mechanism
from sameworld.maths.inertia import inertial_vector, rotated
from sameworld.maths.rotations import matrix_to_quat, skew
from sameworld.worlds.compiled.engine import Data, Model, mj
from sameworld.worlds.compiled.models import Assignment

__all__ = [
    "body_poses",
    "check_bodies",
    "checked_motion",
    "inertial_vectors",
    "inverse_dynamics",
    "inverse_regressor",
    "inverse_rows",
    "mechanism",
]


def mechanism(model: Model) -> Mechanism:
    """Names of velocities, bodies that move and have mass, and torque channels."""
    bodies = [
        str(model.body(body).name)
        for body in range(1, model.nbody)
        if model.body_weldid[body] != 0 and model.body_mass[body] > 0
    ]
    dofs: list[str] = []
    for joint in range(model.njnt):
        name, kind = model.joint(joint).name, int(model.jnt_type[joint])
        if kind == int(mj.mjtJoint.mjJNT_FREE):
            body = model.body(int(model.jnt_bodyid[joint])).name
            dofs += [f"{body}.{part}.{axis}" for part in ("vel", "omega") for axis in "xyz"]
        elif kind == int(mj.mjtJoint.mjJNT_BALL):
            dofs += [f"{name}.omega.{axis}" for axis in "xyz"]
        else:
            dofs.append(name)
    return Mechanism(dofs=tuple(dofs), bodies=tuple(bodies), torques=_torque_channels(model))


def _torque_channels(model: Model) -> dict[str, tuple[str, float]]:
    """Channels of joint torque: sensors of actuator force first, else plain motors."""
    found: dict[str, tuple[str, float]] = {}
    for actuator in range(model.nactuator):
        joint = int(model.actuator_trnid[actuator, 0])
        if _is_motor(model, actuator):
            gain = float(model.actuator_gainprm[actuator, 0] * model.actuator_gear[actuator, 0])
            found[model.joint(joint).name] = (model.actuator(actuator).name, gain)
    for sensor in range(model.nsensor):
        if int(model.sensor_type[sensor]) == int(mj.mjtSensor.mjSENS_JOINTACTFRC):
            joint = int(model.sensor_objid[sensor])
            found[model.joint(joint).name] = (model.sensor(sensor).name, 1.0)
    return found


def _is_motor(model: Model, actuator: int) -> bool:
    """Whether the torque on one joint is a constant times the control, at once."""
    return (
        int(model.actuator_trntype[actuator]) == int(mj.mjtTrn.mjTRN_JOINT)
        and int(model.actuator_dyntype[actuator]) == int(mj.mjtDyn.mjDYN_NONE)
        and int(model.actuator_gaintype[actuator]) == int(mj.mjtGain.mjGAIN_FIXED)
        and int(model.actuator_biastype[actuator]) == int(mj.mjtBias.mjBIAS_NONE)
    )


def check_bodies(names: Mechanism, bodies: Sequence[str]) -> None:
    """Refuse bodies that do not move.

    Raises:
        SpecError: A name is none of ``mechanism.bodies``.
    """
    for body in bodies:
        if body not in names.bodies:
            raise SpecError(
                f"'{body}' is no moving body with mass. There are {listed(names.bodies)}."
                f"{closest(body, names.bodies)}"
            )


def checked_motion(model: Model, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """Motion as float64 arrays [N, nq], [N, nv], [N, nv].

    Raises:
        SpecError: Shapes do not fit the scene, or a value is not finite.
    """
    arrays = tuple(np.ascontiguousarray(x, dtype=np.float64) for x in (q, v, a))
    rows = len(arrays[0]) if arrays[0].ndim else 0
    wanted = ((rows, model.nq), (rows, model.nv), (rows, model.nv))
    if tuple(x.shape for x in arrays) != wanted:
        raise SpecError(
            f"Inverse dynamics needs positions [N, {model.nq}], velocities and accelerations "
            f"[N, {model.nv}]; got {[x.shape for x in arrays]}."
        )
    if not all(np.isfinite(x).all() for x in arrays):
        raise SpecError("Positions, velocities or accelerations hold NaN or infinite values.")
    return arrays[0], arrays[1], arrays[2]


def inverse_rows(models: Assignment, q: Array, v: Array, a: Array, *, passive: bool) -> Array:
    """Forces [N, nv] where each row, or all of them, has a model of its own; NaN if impossible."""
    shared = len(models.index) == 1
    forces = np.full(v.shape, np.nan)
    for k, edited in enumerate(models.models):
        rows = np.arange(len(q)) if shared else np.flatnonzero(models.index == k)
        if not edited.reason:
            forces[rows] = inverse_dynamics(
                edited.model, q[rows], v[rows], a[rows], passive=passive
            )
    return forces


def inverse_dynamics(model: Model, q: Array, v: Array, a: Array, *, passive: bool) -> Array:
    """Generalised forces [N, nv] that produce the motion.

    Args:
        model: The model.
        q: Positions [N, nq] in MuJoCo's order.
        v: Velocities [N, nv].
        a: Accelerations [N, nv].
        passive: Whether to add armature, damping, dry friction and springs of the joints.
    """
    data, forces = mj.MjData(model), np.empty((len(q), model.nv))
    for row in range(len(q)):
        _place(model, data, q[row], v[row], a[row])
        mj.mj_rne(model, data, 1, forces[row])
        if passive:
            mj.mj_passive(model, data)
            forces[row] -= data.qfrc_spring + data.qfrc_damper
    if passive:
        forces += np.asarray(model.dof_armature) * a
        forces += np.asarray(model.dof_frictionloss) * np.sign(v)
    return forces


def _place(model: Model, data: Data, q: Array, v: Array, a: Array) -> None:
    data.qpos[:], data.qvel[:], data.qacc[:] = q, v, a
    mj.mj_kinematics(model, data)
    mj.mj_comPos(model, data)
    mj.mj_comVel(model, data)


def inverse_regressor(model: Model, q: Array, v: Array, a: Array, bodies: Sequence[str]) -> Array:
    """Derivative of the forces by the inertial vectors of bodies, [N, nv, B, 10].

    Exact, not a difference: ``inverse_dynamics(passive=False)`` is the sum over all bodies of this
    times their inertial vectors. It does not depend on the inertia in the model.

    Args:
        model: The model.
        q: Positions [N, nq].
        v: Velocities [N, nv].
        a: Accelerations [N, nv].
        bodies: Names of the bodies.
    """
    data, ids = mj.MjData(model), [int(model.body(name).id) for name in bodies]
    shape = (len(q), len(ids), 3)
    jacobians = np.empty((2, len(q), len(ids), 3, model.nv))
    turns, motion = np.empty((*shape, 3)), np.empty((3, *shape))
    rates = np.empty((2, 3, model.nv))
    for row in range(len(q)):
        _place(model, data, q[row], v[row], a[row])
        for k, body in enumerate(ids):
            linear, angular = jacobians[0, row, k], jacobians[1, row, k]
            mj.mj_jacBody(model, data, linear, angular, body)
            mj.mj_jacDot(model, data, rates[0], rates[1], data.xpos[body], body)
            turns[row, k] = data.xmat[body].reshape(3, 3)
            motion[0, row, k] = linear @ a[row] + rates[0] @ v[row] - model.opt.gravity
            motion[1, row, k] = angular @ v[row]
            motion[2, row, k] = angular @ a[row] + rates[1] @ v[row]
    local = np.einsum("nbij,mnbi->mnbj", turns, motion)
    wrench = _wrench_factors(local[0], local[1], local[2])
    force = turns @ wrench[..., :3, :]
    torque = turns @ wrench[..., 3:, :]
    carried = np.swapaxes(jacobians[0], -1, -2) @ force + np.swapaxes(jacobians[1], -1, -2) @ torque
    return np.ascontiguousarray(np.moveaxis(carried, 1, 2))


def _wrench_factors(acceleration: Array, rate: Array, spin: Array) -> Array:
    """Force and torque about the origin by the inertial vector, body axes, [..., 6, 10].

    Args:
        acceleration: Of the body's origin, less gravity [..., 3] m/s^2.
        rate: Angular velocity [..., 3] rad/s.
        spin: Angular acceleration [..., 3] rad/s^2.
    """
    turning = skew(rate)
    factors = np.zeros((*rate.shape[:-1], 6, 10))
    factors[..., :3, 0] = acceleration
    factors[..., :3, 1:4] = skew(spin) + turning @ turning
    factors[..., 3:, 1:4] = -skew(acceleration)
    factors[..., 3:, 4:] = _times(spin) + turning @ _times(rate)
    return factors


def _times(vector: Array) -> Array:
    """Matrix [..., 3, 6] that maps (xx, yy, zz, xy, xz, yz) of a tensor to tensor @ vector."""
    x, y, z = np.moveaxis(vector, -1, 0)
    o = np.zeros_like(x)
    rows = [[x, o, o, y, z, o], [o, y, o, x, o, z], [o, o, z, o, x, y]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def inertial_vectors(model: Model, bodies: Sequence[str]) -> Array:
    """Mass, first moment and inertia about the origin of each body frame, [B, 10]."""
    ids = np.array([model.body(name).id for name in bodies], dtype=np.intp)
    mass, com = np.asarray(model.body_mass)[ids], np.asarray(model.body_ipos)[ids]
    moments: NDArray[np.float64] = np.asarray(model.body_inertia)[ids]
    inertia = rotated(moments[:, :, None] * np.eye(3), np.asarray(model.body_iquat)[ids])
    return inertial_vector(mass, com, inertia)


def body_poses(model: Model, q: Array) -> dict[str, tuple[Array, Array]]:
    """Positions [N, 3] m and quaternions [N, 4] wxyz of bodies and sites in the world frame.

    Args:
        model: The model.
        q: Positions [N, nq].

    Returns:
        Poses by ``body:NAME`` and ``site:NAME``.

    Raises:
        SpecError: Positions of the wrong shape, or not finite.
    """
    still = np.zeros((len(q), model.nv))
    data, q = mj.MjData(model), checked_motion(model, q, still, still)[0]
    places, turns = np.empty((len(q), model.nbody, 3)), np.empty((len(q), model.nbody, 4))
    spots, axes = np.empty((len(q), model.nsite, 3)), np.empty((len(q), model.nsite, 9))
    for row in range(len(q)):
        data.qpos[:] = q[row]
        mj.mj_kinematics(model, data)
        places[row], turns[row] = data.xpos, data.xquat
        spots[row], axes[row] = data.site_xpos, data.site_xmat
    faces = matrix_to_quat(axes.reshape(*axes.shape[:2], 3, 3))
    poses = {
        f"body:{model.body(k).name}": (places[:, k], turns[:, k]) for k in range(1, model.nbody)
    }
    return poses | {
        f"site:{model.site(k).name}": (spots[:, k], faces[:, k]) for k in range(model.nsite)
    }
