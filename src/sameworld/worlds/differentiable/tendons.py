"""Tendons: lengths, moment arms, passive forces, and rows of their limits and friction.

A fixed tendon is a weighted sum of joint positions; a spatial one runs straight from site to site,
over pulleys that divide the length of what follows.

Source: MuJoCo documentation, chapter XML reference, sections "tendon/fixed" and "tendon/spatial",
and chapter Computation, section "Passive forces".
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sameworld.core.errors import SceneError
from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.differentiable.kinematics import Leaves, Pose
from sameworld.worlds.differentiable.rows import Block
from sameworld.worlds.differentiable.spatial import cross, norm, normalised, transformed
from sameworld.worlds.differentiable.structure import Index, Structure
from sameworld.worlds.differentiable.typed import asarray

__all__ = [
    "TENDON_LEAVES",
    "Segments",
    "Tendons",
    "Terms",
    "friction_block",
    "limit_block",
    "shares",
    "tendon_damping",
    "tendon_motion",
    "tendon_weights",
    "tendons_of",
    "tension",
]

#: Arrays of ``mjModel`` that the functions here read.
TENDON_LEAVES = (
    "site_pos",
    "tendon_damping",
    "tendon_frictionloss",
    "tendon_invweight0",
    "tendon_lengthspring",
    "tendon_margin",
    "tendon_range",
    "tendon_solimp_fri",
    "tendon_solimp_lim",
    "tendon_solref_fri",
    "tendon_solref_lim",
    "tendon_stiffness",
    "wrap_prm",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Terms:
    """Joints of fixed tendons.

    Attributes:
        wrap: Entry of ``wrap_prm`` with the coefficient [n].
        qpos: Position column of the joint [n].
        adds: 1 where a term belongs to a tendon [nt, n].
        drives: 1 at the dof of the joint [n, nv].
    """

    wrap: Index
    qpos: Index
    adds: NDArray[np.float64]
    drives: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Segments:
    """Straight pieces of spatial tendons.

    Attributes:
        site: Sites at both ends [2, n].
        body: Bodies that carry them [2, n].
        pulley: Entry of ``wrap_prm`` with the divisor, -1 for none [n].
        adds: 1 where a piece belongs to a tendon [nt, n].
    """

    site: Index
    body: Index
    pulley: Index
    adds: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Tendons:
    """What of tendons never changes.

    Attributes:
        count: Number of tendons.
        terms: Joints of fixed tendons.
        segments: Pieces of spatial tendons.
        limited: Tendons with a limit, none if limits are disabled.
        rubbing: Tendons with friction, none if friction is disabled.
        heavy: Tendons that have armature, or an actuator that may give them some.
    """

    count: int
    terms: Terms
    segments: Segments
    limited: Index
    rubbing: Index
    heavy: Index

    @property
    def turns(self) -> bool:
        """Whether moment arms of some tendon with armature change."""
        return bool(self.segments.adds[self.heavy].any())


def tendons_of(model: Model, rubbing: Collection[int] = ()) -> Tendons:
    """Lay out the tendons of a compiled model.

    Args:
        model: The model.
        rubbing: Tendons that have dry friction besides those that have it in the model.

    Raises:
        SceneError: A tendon wraps around a geom, or has a property that is not offered.
    """
    for tendon in range(model.ntendon):
        _refuse(model, tendon)
    rubs = np.asarray(model.tendon_frictionloss > 0)
    rubs[list(rubbing)] = True
    limits, friction = (_is_enabled(model, flag) for flag in ("LIMIT", "FRICTIONLOSS"))
    return Tendons(
        count=int(model.ntendon),
        terms=_terms(model),
        segments=_segments(model),
        limited=np.flatnonzero(model.tendon_limited & limits),
        rubbing=np.flatnonzero(rubs & friction),
        heavy=np.flatnonzero(_may_be_heavy(model)),
    )


def _may_be_heavy(model: Model) -> NDArray[np.bool_]:
    """Tendons with armature, and those that actuators pull: their armature is a parameter."""
    heavy = np.asarray(model.tendon_armature != 0)
    pulled = model.actuator_trntype == int(mj.mjtTrn.mjTRN_TENDON)
    heavy[model.actuator_trnid[pulled, 0]] = True
    return heavy


def _is_enabled(model: Model, flag: str) -> bool:
    bits = (getattr(mj.mjtDisableBit, f"mjDSBL_{name}") for name in (flag, "CONSTRAINT"))
    return not any(int(model.opt.disableflags) & int(bit) for bit in bits)


def _refuse(model: Model, tendon: int) -> None:
    kinds = model.wrap_type[_wraps(model, tendon)]
    round_ = (int(mj.mjtWrap.mjWRAP_SPHERE), int(mj.mjtWrap.mjWRAP_CYLINDER))
    reasons = {
        "wraps around a geom; route it through sites on the surface of the geom, or use a fixed "
        "tendon": bool(np.isin(kinds, round_).any()),
        "has a polynomial stiffness; give one number": bool(
            np.any(model.tendon_stiffnesspoly[tendon])
        ),
        "has a polynomial damping; give one number": bool(np.any(model.tendon_dampingpoly[tendon])),
        "has a spring that yields; leave the yield out": bool(model.tendon_springyield[tendon])
        or bool(model.tendon_plasticadr[tendon] >= 0),
        "limits its actuator force; use forcerange on the actuators": bool(
            model.tendon_actfrclimited[tendon]
        ),
    }
    for reason, given in reasons.items():
        if given:
            raise SceneError(
                f"Tendon '{model.tendon(tendon).name or tendon}' {reason}. "
                "The differentiable world does not offer it; the explicit world does."
            )


def _wraps(model: Model, tendon: int) -> Index:
    """Entries of the path of a tendon."""
    first = int(model.tendon_adr[tendon])
    return np.arange(first, first + int(model.tendon_num[tendon]))


def _terms(model: Model) -> Terms:
    joints = model.wrap_type == int(mj.mjtWrap.mjWRAP_JOINT)
    wrap = np.flatnonzero(joints)
    joint = model.wrap_objid[wrap]
    drives = np.zeros((len(wrap), int(model.nv)))
    drives[np.arange(len(wrap)), model.jnt_dofadr[joint]] = 1.0
    return Terms(
        wrap=wrap,
        qpos=np.asarray(model.jnt_qposadr[joint], dtype=np.intp),
        adds=_adds(model, [int(np.searchsorted(model.tendon_adr, k, "right")) - 1 for k in wrap]),
        drives=drives,
    )


def _segments(model: Model) -> Segments:
    site: list[tuple[int, int]] = []
    pulley: list[int] = []
    owner: list[int] = []
    for tendon in range(model.ntendon):
        last, over = -1, -1
        for k in _wraps(model, tendon).tolist():
            kind = int(model.wrap_type[k])
            if kind == int(mj.mjtWrap.mjWRAP_PULLEY):
                last, over = -1, k
            if kind != int(mj.mjtWrap.mjWRAP_SITE):
                continue
            here = int(model.wrap_objid[k])
            if last >= 0:
                site.append((last, here))
                pulley.append(over)
                owner.append(tendon)
            last = here
    ends = np.array(site, dtype=np.intp).reshape(-1, 2).T
    body = model.site_bodyid[ends] if site else ends
    return Segments(
        site=ends,
        body=np.asarray(body, dtype=np.intp),
        pulley=np.array(pulley, dtype=np.intp),
        adds=_adds(model, owner),
    )


def _adds(model: Model, owner: list[int]) -> NDArray[np.float64]:
    adds = np.zeros((int(model.ntendon), len(owner)))
    adds[owner, np.arange(len(owner))] = 1.0
    return adds


def tendon_motion(
    t: Tendons, s: Structure, leaves: Leaves, pose: Pose, q: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Lengths and moment arms.

    Args:
        t: The tendons.
        s: The structure.
        leaves: Arrays of the model.
        pose: Kinematics at ``q``.
        q: Positions [nq].

    Returns:
        Lengths [nt] (m, or joint units times coefficient) and their derivatives by velocity
        [nt, nv]. A piece of length zero points along the first axis, as in MuJoCo, and has no
        derivatives.
    """
    length, jacobian = jax.lax.full((t.count,), 0.0), jax.lax.full((t.count, s.nv), 0.0)
    if t.terms.wrap.size:
        weighted = leaves["wrap_prm"][t.terms.wrap] * t.terms.adds
        length = length + jnp.matmul(weighted, q[t.terms.qpos])
        jacobian = jacobian + jnp.matmul(weighted, t.terms.drives)
    if t.segments.pulley.size:
        pieces, arms = _pieces(t.segments, s, leaves, pose)
        share = shares(t.segments, leaves)
        length = length + share @ pieces
        jacobian = jacobian + share @ arms
    return length, jacobian


def shares(segments: Segments, leaves: Leaves) -> jax.Array:
    """What pieces count in the lengths of tendons [nt, n], after the pulleys."""
    over = segments.pulley
    divisor = jnp.where(over >= 0, leaves["wrap_prm"][np.maximum(over, 0)], 1.0)
    return asarray(segments.adds) / divisor


def _pieces(
    segments: Segments, s: Structure, leaves: Leaves, pose: Pose
) -> tuple[jax.Array, jax.Array]:
    """Lengths [n] of pieces and their derivatives by velocity [n, nv], before the pulleys.

    A dof that moves both ends alike changes no length, so every dof counts at one end only.
    """
    body = segments.body
    ends = pose.position[body] + transformed(pose.rotation[body], leaves["site_pos"][segments.site])
    gap = ends[1] - ends[0]
    length = norm(gap)
    first, second = s.dofs.moves[body[0]], s.dofs.moves[body[1]]
    at = jnp.where(second[:, :, None], ends[1][:, None, :], ends[0][:, None, :])
    velocity = pose.linear + cross(pose.angular, at - pose.reference)
    closing = jnp.sum(velocity * normalised(gap)[:, None, :], axis=-1)
    arms = closing * (second.astype(np.float64) - first.astype(np.float64))
    return length, arms


def tension(s: Structure, leaves: Leaves, length: jax.Array, velocity: jax.Array) -> jax.Array:
    """Passive force along tendons [nt] N, positive where it lengthens them.

    The spring is slack between the two lengths of ``tendon_lengthspring``; with the lower one at
    zero it is a cable that only pulls.

    Args:
        s: The structure.
        leaves: Arrays of the model.
        length: Lengths [nt].
        velocity: Their velocities [nt].
    """
    lower, upper = leaves["tendon_lengthspring"][:, 0], leaves["tendon_lengthspring"][:, 1]
    stretch = jnp.maximum(length - upper, 0.0) - jnp.maximum(lower - length, 0.0)
    force = -tendon_damping(s, leaves) * velocity
    return force if s.is_disabled("SPRING") else force - leaves["tendon_stiffness"] * stretch


def tendon_damping(s: Structure, leaves: Leaves) -> jax.Array:
    """Damping of tendons [nt] N s/m: minus the derivative of ``tension`` by velocity."""
    damping = leaves["tendon_damping"]
    return 0.0 * damping if s.is_disabled("DAMPER") else damping


def tendon_weights(jacobian: jax.Array, inverse: jax.Array) -> jax.Array:
    """Inverse inertia that tendons see [nt], the leaf ``tendon_invweight0``.

    Args:
        jacobian: Moment arms at the reference configuration [nt, nv].
        inverse: Inverse of the inertia matrix there [nv, nv].
    """
    return jnp.sum((jacobian @ inverse) * jacobian, axis=1)


def limit_block(t: Tendons, leaves: Leaves, length: jax.Array, jacobian: jax.Array) -> Block:
    """Rows of tendon limits: all lower ones, then all upper ones [2 n].

    Args:
        t: The tendons.
        leaves: Arrays of the model.
        length: Lengths [nt].
        jacobian: Moment arms [nt, nv].
    """
    which = np.concatenate([t.limited, t.limited])
    sign = np.repeat([1.0, -1.0], len(t.limited))
    bounds = leaves["tendon_range"][t.limited].T.reshape(-1)
    position = (length[which] - bounds) * sign
    margin = leaves["tendon_margin"][which]
    return Block(
        jacobian=jacobian[which] * sign[:, None],
        position=position,
        margin=margin,
        weight=leaves["tendon_invweight0"][which],
        solref=leaves["tendon_solref_lim"][which],
        solimp=leaves["tendon_solimp_lim"][which],
        depth=position - margin,
        drift=jax.lax.full((len(which),), 0.0),
        present=jnp.less(position, margin),
    )


def friction_block(t: Tendons, leaves: Leaves, jacobian: jax.Array) -> tuple[Block, jax.Array]:
    """Rows of dry friction of tendons, and the most that each can resist [n] N.

    Args:
        t: The tendons.
        leaves: Arrays of the model.
        jacobian: Moment arms [nt, nv].
    """
    loss = leaves["tendon_frictionloss"][t.rubbing]
    zero = jax.lax.full((len(t.rubbing),), 0.0)
    block = Block(
        jacobian=jacobian[t.rubbing],
        position=zero,
        margin=zero,
        weight=leaves["tendon_invweight0"][t.rubbing],
        solref=leaves["tendon_solref_fri"][t.rubbing],
        solimp=leaves["tendon_solimp_fri"][t.rubbing],
        depth=zero,
        drift=zero,
        present=jax.lax.full((len(t.rubbing),), True),
    )
    return block, loss
