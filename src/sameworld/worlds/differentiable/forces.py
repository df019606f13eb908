"""Passive and actuator forces on the joints, and their derivatives by velocity.

Source: MuJoCo documentation, chapter Computation, sections "Passive forces" and "Actuation model".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.differentiable.kinematics import Leaves, Pose, point_axes
from sameworld.worlds.differentiable.spatial import arranged, multiplied, normalised, rotation_log
from sameworld.worlds.differentiable.structure import Bools, Index, Structure
from sameworld.worlds.differentiable.typed import asarray

__all__ = ["Actuation", "Actuators", "actuated", "actuators_of", "springs", "weightless"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Actuators:
    """What of actuators never changes.

    Attributes:
        count: Number of actuators.
        control: Control column of every actuator [na].
        qpos: Position column of the joint, 0 for tendons [na].
        dof: 1 at the dof of the joint, zeros for tendons [na, nv].
        tendon: Tendon, -1 for joints [na].
        bounded: Whether controls are clamped [na].
        limited: Whether forces are clamped [na].
        affine: Whether the gain depends on length and velocity [na].
        biased: Whether there is an affine bias [na].
        clipped: Dofs whose total actuator force is clamped.
    """

    count: int
    control: Index
    qpos: Index
    dof: NDArray[np.float64]
    tendon: Index
    bounded: Bools
    limited: Bools
    affine: Bools
    biased: Bools
    clipped: Index

    @property
    def uses_tendons(self) -> bool:
        """Whether some actuator pulls a tendon."""
        return bool((self.tendon >= 0).any())


class Actuation(NamedTuple):
    """What actuators do at an instant.

    Attributes:
        length: Lengths of the transmissions [na].
        velocity: Their velocities [na].
        force: Forces of actuators [na].
        moment: Moment arms [na, nv].
        joints: Forces on the joints [nv].
        slope: Derivative of the actuator forces by their velocity [na], 0 where they or the total
            on their joint are clamped.
    """

    length: jax.Array
    velocity: jax.Array
    force: jax.Array
    moment: jax.Array
    joints: jax.Array
    slope: jax.Array


def actuators_of(model: Model) -> Actuators:
    """Lay out the actuators; ``support`` has refused what is not offered."""
    pulls = model.actuator_trntype == int(mj.mjtTrn.mjTRN_TENDON)
    target = model.actuator_trnid[:, 0]
    joint = np.where(pulls, 0, target)
    dof = np.zeros((int(model.nactuator), int(model.nv)))
    for k in np.flatnonzero(~pulls).tolist():
        dof[k, int(model.jnt_dofadr[joint[k]])] = 1.0
    control = np.asarray(model.actuator_ctrladr, dtype=np.intp)
    clamps = not model.opt.disableflags & int(mj.mjtDisableBit.mjDSBL_CLAMPCTRL)
    bounded = np.asarray(model.actuator_ctrllimited, dtype=np.bool_)
    clipped = [int(model.jnt_dofadr[j]) for j in np.flatnonzero(model.jnt_actfrclimited)]
    return Actuators(
        count=int(model.nactuator),
        control=control,
        qpos=np.asarray(model.jnt_qposadr[joint] if model.njnt else joint, dtype=np.intp),
        dof=dof,
        tendon=np.where(pulls, target, -1).astype(np.intp),
        bounded=bounded[control] & clamps if len(control) else bounded,
        limited=np.asarray(model.actuator_forcelimited, dtype=np.bool_),
        affine=model.actuator_gaintype == int(mj.mjtGain.mjGAIN_AFFINE),
        biased=model.actuator_biastype == int(mj.mjtBias.mjBIAS_AFFINE),
        clipped=np.array(clipped, dtype=np.intp),
    )


def actuated(
    a: Actuators,
    leaves: Leaves,
    q: jax.Array,
    v: jax.Array,
    control: jax.Array,
    tendons: tuple[jax.Array, jax.Array] | None,
) -> Actuation:
    """Forces of actuators.

    Args:
        a: The actuators.
        leaves: Arrays of the model.
        q: Positions [nq].
        v: Velocities [nv].
        control: Controls [nu].
        tendons: Lengths and moment arms of tendons, if actuators pull any.
    """
    gear = leaves["actuator_gear"][:, 0]
    reach, arms = q[a.qpos], asarray(a.dof)
    if tendons is not None and a.uses_tendons:
        pulls, which = a.tendon >= 0, np.maximum(a.tendon, 0)
        reach = jnp.where(pulls, tendons[0][which], reach)
        arms = jnp.where(pulls[:, None], tendons[1][which], arms)
    length, moment = gear * reach, gear[:, None] * arms
    velocity = moment @ v
    span = leaves["actuator_ctrlrange"][a.control]
    given = control[a.control]
    given = jnp.where(a.bounded, jnp.clip(given, span[:, 0], span[:, 1]), given)
    gain, bias = leaves["actuator_gainprm"], leaves["actuator_biasprm"]
    strength = gain[:, 0] + jnp.where(a.affine, gain[:, 1] * length + gain[:, 2] * velocity, 0.0)
    offset = bias[:, 0] + bias[:, 1] * length + bias[:, 2] * velocity
    force = strength * given + jnp.where(a.biased, offset, 0.0)
    slope = jnp.where(a.affine, gain[:, 2] * given, 0.0) + jnp.where(a.biased, bias[:, 2], 0.0)
    low, high = leaves["actuator_forcerange"][:, 0], leaves["actuator_forcerange"][:, 1]
    clamped = a.limited & ((force <= low) | (force >= high))
    force = jnp.where(a.limited, jnp.clip(force, low, high), force)
    joints, held = _clipped(a, leaves, force @ moment)
    return Actuation(
        length=length,
        velocity=velocity,
        force=force,
        moment=moment,
        joints=joints,
        slope=jnp.where(clamped | held, 0.0, slope),
    )


def _clipped(a: Actuators, leaves: Leaves, joints: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Forces on the joints [nv] within their ranges, and whose joint is at an end of one [na].

    Actuators of tendons are not held by a joint.
    """
    if not len(a.clipped):
        return joints, asarray(False)
    low, high = (leaves["dof_actfrcrange"][a.clipped, k] for k in (0, 1))
    total = joints[a.clipped]
    full = jnp.where((total <= low) | (total >= high), 1.0, 0.0)
    held = jnp.matmul(a.dof[:, a.clipped], full) > 0
    return joints.at[a.clipped].set(jnp.clip(total, low, high)), held


def springs(s: Structure, leaves: Leaves, q: jax.Array) -> jax.Array:
    """Forces of joint springs [nv]."""
    joint, qpos, dof = s.scalars
    rest = leaves["qpos_spring"]
    parts = [(dof, -leaves["jnt_stiffness"][joint] * (q - rest)[qpos])]
    qpos, dof = s.turns
    if len(qpos):
        columns = qpos[:, None] + np.arange(4)
        back = normalised(rest[columns]) * np.array([1.0, -1.0, -1.0, -1.0])
        turn = rotation_log(multiplied(back, normalised(q[columns])))
        stiffness = leaves["jnt_stiffness"][s.dofs.joint[dof]]
        parts.append((dof[:, None] + np.arange(3), -stiffness[:, None] * turn))
    qpos, dof = s.shifts
    if len(qpos):
        columns = qpos[:, None] + np.arange(3)
        stiffness = leaves["jnt_stiffness"][s.dofs.joint[dof]]
        pull = -stiffness[:, None] * (q - rest)[columns]
        parts.append((dof[:, None] + np.arange(3), pull))
    return arranged(s.nv, parts)


def weightless(s: Structure, leaves: Leaves, pose: Pose, bodies: Index) -> jax.Array:
    """Forces [nv] that carry the weight of bodies with gravity compensation."""
    lift = -(leaves["body_mass"] * leaves["body_gravcomp"])[bodies, None] * leaves["opt.gravity"]
    arms = point_axes(pose, pose.centre[bodies]) * s.dofs.moves[bodies][:, :, None]
    return jnp.sum(arms * lift[:, None, :], axis=(0, 2))
