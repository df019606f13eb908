"""Rows of equality constraints: connect, weld, coupled joints, coupled tendons.

Source: MuJoCo documentation, chapter XML reference, section "equality", and chapter Computation,
section "Equality". Residuals of connect and weld are subtracted their velocity product (the time
derivative of the Jacobian times velocity), those of coupled joints and tendons are not.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sameworld.core.errors import SceneError
from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.differentiable.kinematics import Leaves, Pose, point_axes
from sameworld.worlds.differentiable.motion import Motion, carried, motion_of
from sameworld.worlds.differentiable.rows import Block, joined
from sameworld.worlds.differentiable.spatial import (
    cross,
    multiplied,
    norm,
    quaternion_of,
    transformed,
)
from sameworld.worlds.differentiable.structure import Bools, Index, Structure

__all__ = [
    "EQUALITY_LEAVES",
    "Couplings",
    "Equalities",
    "Joins",
    "equalities_of",
    "equality_block",
    "reference_data",
]

#: Arrays of ``mjModel`` that ``equality_block`` reads.
EQUALITY_LEAVES = (
    "body_invweight0",
    "dof_invweight0",
    "eq_data",
    "eq_solimp",
    "eq_solref",
    "qpos0",
    "site_pos",
    "site_quat",
    "tendon_invweight0",
    "tendon_length0",
)


#: Column of ``eq_data`` that marks a weld without a relative pose.
_RELATIVE_POSE_FOLLOWS = 11


@dataclass(frozen=True, kw_only=True, eq=False)
class Joins:
    """Constraints between two bodies.

    Attributes:
        id: Constraint [n].
        welds: Whether they fix the orientation too; one answer for all.
        sites: Whether the objects are sites; else bodies with anchors [n].
        site: The sites, 0 for bodies [2, n].
        body: The bodies [2, n].
        follows: Whether anchors follow from where bodies are at the reference configuration [n].
    """

    id: Index
    welds: bool
    sites: Bools
    site: Index
    body: Index
    follows: Bools


@dataclass(frozen=True, kw_only=True, eq=False)
class Couplings:
    """Constraints between two scalars, or of one.

    Attributes:
        id: Constraint [n].
        tendons: Whether the scalars are tendon lengths; else joint positions.
        place: Tendons, or position columns of the joints [2, n].
        dof: Tendons, or dofs of the joints [2, n].
        paired: Whether there is a second scalar [n].
    """

    id: Index
    tendons: bool
    place: Index
    dof: Index
    paired: Bools


@dataclass(frozen=True, kw_only=True, eq=False)
class Equalities:
    """What of equality constraints never changes.

    Attributes:
        joins: Connects, then welds.
        couplings: Of joints, then of tendons.
        row: Constraint of every row [n], in the order of ``equality_block``.
    """

    joins: tuple[Joins, Joins]
    couplings: tuple[Couplings, Couplings]
    row: Index


def equalities_of(model: Model) -> Equalities:
    """Lay out the equality constraints of a compiled model that are active at the start.

    Raises:
        SceneError: A constraint is of a kind that is not offered.
    """
    active = _active(model)
    kinds = mj.mjtEq
    offered = [kinds.mjEQ_CONNECT, kinds.mjEQ_WELD, kinds.mjEQ_JOINT, kinds.mjEQ_TENDON]
    for which in active.tolist():
        if int(model.eq_type[which]) not in map(int, offered):
            name = model.equality(which).name or which
            kind = kinds(int(model.eq_type[which])).name.removeprefix("mjEQ_").lower()
            raise SceneError(
                f"Equality constraint '{name}' is of kind '{kind}'. The differentiable world "
                "offers connect, weld, joint and tendon; make it one of these, or use the explicit "
                "world."
            )
    ids = [active[model.eq_type[active] == int(kind)] for kind in offered]
    rows = [np.repeat(which, size) for which, size in zip(ids, (3, 6, 1, 1), strict=True)]
    return Equalities(
        joins=(_joins(model, ids[0], welds=False), _joins(model, ids[1], welds=True)),
        couplings=(
            _couplings(model, ids[2], tendons=False),
            _couplings(model, ids[3], tendons=True),
        ),
        row=np.concatenate(rows),
    )


def _active(model: Model) -> Index:
    bits = int(mj.mjtDisableBit.mjDSBL_EQUALITY) | int(mj.mjtDisableBit.mjDSBL_CONSTRAINT)
    if int(model.opt.disableflags) & bits:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(model.eq_active0)


def _joins(model: Model, ids: Index, *, welds: bool) -> Joins:
    objects = np.stack([model.eq_obj1id[ids], model.eq_obj2id[ids]]).astype(np.intp)
    sites = model.eq_objtype[ids] == int(mj.mjtObj.mjOBJ_SITE)
    site = np.where(sites, objects, 0)
    body = np.where(sites, model.site_bodyid[site], objects) if sites.any() else objects
    return Joins(
        id=ids,
        welds=welds,
        sites=sites,
        site=site,
        body=body.astype(np.intp),
        follows=~sites & (model.eq_data[ids, _RELATIVE_POSE_FOLLOWS] > 0) if welds else ~sites,
    )


def _couplings(model: Model, ids: Index, *, tendons: bool) -> Couplings:
    objects = np.stack([model.eq_obj1id[ids], model.eq_obj2id[ids]]).astype(np.intp)
    paired = objects[1] >= 0
    objects = np.maximum(objects, 0)
    alike = tendons or not len(ids)
    return Couplings(
        id=ids,
        tendons=tendons,
        place=objects if alike else model.jnt_qposadr[objects].astype(np.intp),
        dof=objects if alike else model.jnt_dofadr[objects].astype(np.intp),
        paired=paired,
    )


def reference_data(e: Equalities, leaves: Leaves, pose: Pose) -> jax.Array:
    """Anchors and relative poses as the compiler derives them, the leaf ``eq_data`` [neq, 12].

    A connect is given an anchor on one body, and a weld without a relative pose nothing: what they
    hold together is what coincides at the reference configuration.

    Args:
        e: The constraints.
        leaves: Arrays of the model.
        pose: Kinematics at ``qpos0``.
    """
    data = leaves["eq_data"]
    for joins in e.joins:
        which, bodies = joins.id[joins.follows], joins.body[:, joins.follows]
        if not which.size:
            continue
        given, derived = bodies[::-1] if joins.welds else bodies
        point = transformed(pose.rotation[given], data[which, :3]) + pose.position[given]
        back = jnp.swapaxes(pose.rotation[derived], -1, -2)
        data = data.at[which, 3:6].set(transformed(back, point - pose.position[derived]))
        if joins.welds:
            turn = quaternion_of(jnp.matmul(back, pose.rotation[given]))
            data = data.at[which, 6:10].set(turn)
    return data


def equality_block(
    e: Equalities,
    s: Structure,
    leaves: Leaves,
    pose: Pose,
    q: jax.Array,
    v: jax.Array,
    length: jax.Array,
    jacobian: jax.Array,
) -> Block:
    """Rows of the active equality constraints: connects, welds, joints, tendons.

    The three rows of a weld's orientation may all have the sign opposite to MuJoCo's (a rotation
    has two quaternions), which is the same constraint.

    Args:
        e: The constraints.
        s: The structure.
        leaves: Arrays of the model.
        pose: Kinematics at ``q``.
        q: Positions [nq].
        v: Joint velocities [nv].
        length: Tendon lengths [nt].
        jacobian: Moment arms of tendons [nt, nv].
    """
    blocks: list[Block] = []
    motion = motion_of(s, pose, v) if any(j.id.size for j in e.joins) else None
    for joins in e.joins:
        if motion is not None and joins.id.size:
            blocks.append(_join_rows(joins, s, leaves, pose, motion))
    for couplings in e.couplings:
        if couplings.id.size:
            blocks.append(_coupling_rows(couplings, s, leaves, q, (length, jacobian)))
    return joined(blocks) if blocks else _none(s.nv)


def _none(nv: int) -> Block:
    """No rows at all."""
    empty = jax.lax.full((0,), 0.0)
    rows, pairs, fives = (jax.lax.full((0, n), 0.0) for n in (nv, 2, 5))
    return Block(rows, empty, empty, empty, pairs, fives, empty, empty, jnp.greater(empty, 0))


def _join_rows(joins: Joins, s: Structure, leaves: Leaves, pose: Pose, motion: Motion) -> Block:
    """Rows of connects [3 n], or of welds [6 n]."""
    ends = _ends(joins, leaves, pose)
    motions = [carried(pose, motion, joins.body[k], ends[k]) for k in (0, 1)]
    position = ends[0] - ends[1]
    axes = [_moving(s, pose, joins.body[k], point_axes(pose, ends[k])) for k in (0, 1)]
    parts = [(position, axes[0] - axes[1], motions[0][1] - motions[1][1])]
    if joins.welds:
        parts.append(_orientation(joins, s, leaves, pose, motion))
    residual, rows, drift = (jnp.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    count, size = residual.shape
    weights = leaves["body_invweight0"][joins.body[0]] + leaves["body_invweight0"][joins.body[1]]
    flat = residual.reshape(-1)
    return Block(
        jacobian=rows.reshape(count * size, s.nv),
        position=flat,
        margin=jax.lax.full_like(flat, 0.0),
        weight=jnp.repeat(weights[:, : size // 3], 3, axis=1).reshape(-1),
        solref=jnp.repeat(leaves["eq_solref"][joins.id], size, axis=0),
        solimp=jnp.repeat(leaves["eq_solimp"][joins.id], size, axis=0),
        depth=jnp.repeat(norm(residual), size),
        drift=drift.reshape(-1),
        present=jax.lax.full(flat.shape, True),
    )


def _ends(joins: Joins, leaves: Leaves, pose: Pose) -> jax.Array:
    """Points that are to coincide [2, n, 3] m."""
    anchors = leaves["eq_data"][joins.id, :6].reshape(-1, 2, 3).transpose(1, 0, 2)
    local = anchors[::-1] if joins.welds else anchors
    if joins.sites.any():
        local = jnp.where(joins.sites[None, :, None], leaves["site_pos"][joins.site], local)
    return pose.position[joins.body] + transformed(pose.rotation[joins.body], local)


def _moving(s: Structure, pose: Pose, body: Index, axes: jax.Array) -> jax.Array:
    """Rows [n, 3, nv] of axes [n, nv, 3], of the dofs that move a body [n]."""
    return jnp.where(s.dofs.moves[body][:, None, :], jnp.swapaxes(axes, -1, -2), 0.0)


def _orientation(
    joins: Joins, s: Structure, leaves: Leaves, pose: Pose, motion: Motion
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Residuals [n, 3], rows [n, 3, nv] and velocity products [n, 3] of orientations.

    The residual is the vector part of ``p``, the quaternion of the first frame seen from the
    second, whose rate is ``(0, a) p / 2`` for a relative angular velocity ``a`` seen from there.
    """
    first, second = joins.body
    back = jnp.swapaxes(pose.rotation[second], -1, -2)
    ahead, behind = _local_frames(joins, leaves)
    p = multiplied(quaternion_of(jnp.matmul(back, pose.rotation[first])), ahead)
    scale = leaves["eq_data"][joins.id, 10][:, None]

    sign = s.dofs.moves[first].astype(np.float64) - s.dofs.moves[second]
    axes = transformed(back[:, None], pose.angular * sign[:, :, None])
    rows = multiplied(behind[:, None], multiplied(_pure(axes), p[:, None]))[..., 1:]

    spin = motion.angular[first] - motion.angular[second]
    bend = motion.turning[first] - motion.turning[second] - cross(motion.angular[second], spin)
    spin, bend = transformed(back, spin), transformed(back, bend)
    square = jnp.sum(spin * spin, axis=1, keepdims=True)
    drift = multiplied(behind, multiplied(_pure(bend), p) - 0.5 * square * p)[..., 1:]

    residual = scale * multiplied(behind, p)[..., 1:]
    rows = 0.5 * scale[:, :, None] * jnp.swapaxes(rows, 1, 2)
    return residual, rows, 0.5 * scale * drift


def _pure(vector: jax.Array) -> jax.Array:
    """Quaternions [..., 4] with the vector part given and no real part."""
    return jnp.concatenate([0.0 * vector[..., :1], vector], axis=-1)


def _local_frames(joins: Joins, leaves: Leaves) -> tuple[jax.Array, jax.Array]:
    """Frame on the first body, and inverse of the frame on the second, as quaternions [n, 4]."""
    relative = leaves["eq_data"][joins.id, 6:10]
    if not joins.sites.any():
        return relative, jnp.broadcast_to(_UNIT, relative.shape)
    sites, chosen = leaves["site_quat"][joins.site], joins.sites[:, None]
    return jnp.where(chosen, sites[0], relative), jnp.where(chosen, sites[1] * _CONJUGATE, _UNIT)


_UNIT: NDArray[np.float64] = np.array([1.0, 0.0, 0.0, 0.0])
_CONJUGATE: NDArray[np.float64] = np.array([1.0, -1.0, -1.0, -1.0])


def _coupling_rows(
    couplings: Couplings,
    s: Structure,
    leaves: Leaves,
    q: jax.Array,
    tendons: tuple[jax.Array, jax.Array],
) -> Block:
    """Rows of coupled joints or tendons [n]: one scalar is a polynomial of degree 4 of another."""
    place, dof, paired = couplings.place, couplings.dof, couplings.paired
    if couplings.tendons:
        value = tendons[0][place] - leaves["tendon_length0"][place]
        arms, weights = tendons[1][dof], leaves["tendon_invweight0"][dof]
    else:
        value = q[place] - leaves["qpos0"][place]
        columns = dof[:, :, None] == np.arange(s.nv)
        arms = jnp.where(columns, 1.0, 0.0)
        weights = leaves["dof_invweight0"][dof]
    data = leaves["eq_data"][couplings.id]
    x = jnp.where(paired, value[1], 0.0)
    c0, c1, c2, c3, c4 = (data[:, k] for k in range(5))
    wanted = c0 + x * (c1 + x * (c2 + x * (c3 + x * c4)))
    slope = jnp.where(paired, c1 + x * (2 * c2 + x * (3 * c3 + x * 4 * c4)), 0.0)
    position = value[0] - wanted
    zero = jax.lax.full_like(position, 0.0)
    return Block(
        jacobian=arms[0] - slope[:, None] * arms[1],
        position=position,
        margin=zero,
        weight=weights[0] + jnp.where(paired, weights[1], 0.0),
        solref=leaves["eq_solref"][couplings.id],
        solimp=leaves["eq_solimp"][couplings.id],
        depth=position,
        drift=zero,
        present=jax.lax.full(position.shape, True),
    )
