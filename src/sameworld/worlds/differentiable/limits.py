"""Rows of joint limits and of dry friction in joints.

Source: MuJoCo documentation, chapter Computation, sections "Limits" and "Friction loss".
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.differentiable.kinematics import Leaves
from sameworld.worlds.differentiable.rows import Block, joined
from sameworld.worlds.differentiable.spatial import norm, normalised, rotation_log
from sameworld.worlds.differentiable.structure import Index, Structure, is_disabled
from sameworld.worlds.differentiable.typed import asarray, full, zeros

__all__ = ["Limits", "joint_friction", "joint_limits", "limits_of"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Limits:
    """Limited joints.

    Attributes:
        scalar: Hinges and slides: joint, position column, dof [n] each.
        ball: Balls: joint, first position column, first dof [m] each.
    """

    scalar: tuple[Index, Index, Index]
    ball: tuple[Index, Index, Index]

    @property
    def rows(self) -> int:
        """Rows they make."""
        return 2 * len(self.scalar[0]) + len(self.ball[0])


def limits_of(model: Model) -> Limits:
    """Lay out the limited joints; none where limits are disabled."""
    on = not is_disabled(int(model.opt.disableflags), "LIMIT")
    ball = model.jnt_type == int(mj.mjtJoint.mjJNT_BALL)
    limited = np.asarray(model.jnt_limited, dtype=np.bool_) & on

    def places(which: Index) -> tuple[Index, Index, Index]:
        qpos, dof = model.jnt_qposadr[which], model.jnt_dofadr[which]
        return which, qpos.astype(np.intp), dof.astype(np.intp)

    return Limits(
        scalar=places(np.flatnonzero(limited & ~ball)), ball=places(np.flatnonzero(limited & ball))
    )


def joint_limits(s: Structure, limits: Limits, leaves: Leaves, q: jax.Array) -> Block:
    """Rows of both sides of every scalar joint, then one per ball joint."""
    blocks: list[Block] = []
    joint, qpos, dof = limits.scalar
    if len(joint):
        unit = np.eye(s.nv)[dof]
        bounds = leaves["jnt_range"][joint]
        lower, upper = q[qpos] - bounds[:, 0], bounds[:, 1] - q[qpos]
        blocks += [
            _rows(leaves, joint, dof, asarray(unit), lower),
            _rows(leaves, joint, dof, asarray(-unit), upper),
        ]
    joint, qpos, dof = limits.ball
    if len(joint):
        turn = rotation_log(normalised(q[qpos[:, None] + np.arange(4)]))
        places = np.eye(s.nv)[dof[:, None] + np.arange(3)]
        jacobian = -jnp.sum(normalised(turn)[:, :, None] * places, axis=1)
        room = jnp.max(leaves["jnt_range"][joint], axis=1) - norm(turn)
        blocks.append(_rows(leaves, joint, dof, jacobian, room))
    return joined(blocks)


def _rows(
    leaves: Leaves, joint: Index, dof: Index, jacobian: jax.Array, position: jax.Array
) -> Block:
    margin = leaves["jnt_margin"][joint]
    return Block(
        jacobian=jacobian,
        position=position,
        margin=margin,
        weight=leaves["dof_invweight0"][dof],
        solref=leaves["jnt_solref"][joint],
        solimp=leaves["jnt_solimp"][joint],
        depth=position - margin,
        drift=zeros(len(joint)),
        present=position < margin,
    )


def joint_friction(s: Structure, leaves: Leaves, dofs: Index) -> Block:
    """Rows of dry friction on dofs [n]; one whose limit is 0 has no force but a derivative."""
    zero = zeros(len(dofs))
    return Block(
        jacobian=asarray(np.eye(s.nv)[dofs]),
        position=zero,
        margin=zero,
        weight=leaves["dof_invweight0"][dofs],
        solref=leaves["dof_solref"][dofs],
        solimp=leaves["dof_solimp"][dofs],
        depth=zero,
        drift=zero,
        present=full(len(dofs), True),
    )
