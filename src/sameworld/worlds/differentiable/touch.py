"""Contacts of a scene: candidate pairs of geoms, their colliders, and the rows they make.

Source: MuJoCo documentation, chapter Computation, section "Contact": pyramids of friction as
edges ``normal +- mu tangent``, elliptic cones as normal and friction rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.compiled.contacts import colliding_pairs
from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.differentiable.collide import (
    ABSENT,
    FUNCTIONS,
    Contacts,
    Hull,
    Shape,
    hulls_of,
)
from sameworld.worlds.differentiable.kinematics import Leaves, Pose, point_axes
from sameworld.worlds.differentiable.rows import Block, Reference, referenced
from sameworld.worlds.differentiable.spatial import matrix_of, transformed
from sameworld.worlds.differentiable.structure import Index, Structure, is_disabled
from sameworld.worlds.differentiable.typed import zeros

__all__ = [
    "Cones",
    "Kind",
    "Pairs",
    "Touching",
    "candidates",
    "cone_rows",
    "pairs_of",
    "pyramid_rows",
    "touching",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind:
    """Pairs of the same two shapes.

    Attributes:
        shapes: Their geom types, the lower one first.
        first: Geoms of the first shape [p].
        second: Geoms of the second shape [p].
        hulls: Hulls of the second shapes with a leading axis [p], if they are meshes.
    """

    shapes: tuple[int, int]
    first: Index
    second: Index
    hulls: Hull | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """Pairs of geoms that may touch; contacts come in fixed slots, kind by kind.

    Attributes:
        kinds: The pairs, grouped by shape.
        pair: Pair of every contact [C]: row of the ``contact_*`` leaves.
        bodies: Bodies of every contact [2, C].
        dimension: ``condim`` of every contact [C].
        explicit: ``<pair>`` element of every pair, -1 for pairs found dynamically [P].
        geoms: Geoms of every pair, in the order of the model [P, 2].
    """

    kinds: tuple[Kind, ...]
    pair: Index
    bodies: Index
    dimension: Index
    explicit: Index
    geoms: Index

    def of_dimension(self, dimension: int) -> Index:
        """Contacts of a dimension."""
        return np.flatnonzero(self.dimension == dimension)


class Touching(NamedTuple):
    """Contacts at an instant.

    Attributes:
        distance: [C] m, ``ABSENT`` where there is none.
        frame: Normal and tangents as rows [C, 3, 3].
        linear: Relative velocity of the bodies in the frame, per unit velocity [C, 3, nv].
        angular: Relative angular velocity in the frame, per unit velocity [C, 3, nv].
    """

    distance: jax.Array
    frame: jax.Array
    linear: jax.Array
    angular: jax.Array


def candidates(model: Model) -> list[tuple[int, int, int]]:
    """Every pair that MuJoCo checks: two geoms and the ``<pair>`` element, -1 for none."""
    if is_disabled(int(model.opt.disableflags), "CONTACT"):
        return []
    explicit = zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True)
    pairs = [(a, b, k) for k, (a, b) in enumerate(explicit)]
    return pairs + [(a, b, -1) for a, b in colliding_pairs(model)]


def pairs_of(model: Model, chosen: list[tuple[int, int, int]]) -> Pairs:
    """Lay out pairs.

    Args:
        model: The compiled model.
        chosen: Two geoms and ``<pair>`` element each; shapes must be among ``FUNCTIONS``.
    """
    kinds: list[Kind] = []
    pair: list[int] = []
    bodies: list[tuple[int, int]] = []
    dimension: list[int] = []
    by_shape: dict[tuple[int, int], list[int]] = {}
    for k, (a, b, _) in enumerate(chosen):
        low, high = sorted((int(model.geom_type[a]), int(model.geom_type[b])))
        by_shape.setdefault((low, high), []).append(k)
    for shapes, members in sorted(by_shape.items()):
        ordered = [_ordered(model, *chosen[k][:2]) for k in members]
        first, second = (np.array(side, dtype=np.intp) for side in zip(*ordered, strict=True))
        kinds.append(Kind(shapes=shapes, first=first, second=second, hulls=_hulls(model, second)))
        slots = FUNCTIONS[shapes][1]
        for k, (a, b) in zip(members, ordered, strict=True):
            pair += [k] * slots
            bodies += [(int(model.geom_bodyid[a]), int(model.geom_bodyid[b]))] * slots
            dimension += [_dimension(model, *chosen[k])] * slots
    return Pairs(
        kinds=tuple(kinds),
        pair=np.array(pair, dtype=np.intp),
        bodies=np.array(bodies, dtype=np.intp).reshape(-1, 2).T,
        dimension=np.array(dimension, dtype=np.intp),
        explicit=np.array([k for _, _, k in chosen], dtype=np.intp),
        geoms=np.array([pair[:2] for pair in chosen], dtype=np.intp).reshape(-1, 2),
    )


def _ordered(model: Model, a: int, b: int) -> tuple[int, int]:
    return (a, b) if model.geom_type[a] <= model.geom_type[b] else (b, a)


def _dimension(model: Model, a: int, b: int, explicit: int) -> int:
    if explicit >= 0:
        return int(model.pair_dim[explicit])
    ranks = int(model.geom_priority[a]), int(model.geom_priority[b])
    if ranks[0] != ranks[1]:
        return int(model.geom_condim[a if ranks[0] > ranks[1] else b])
    return int(max(model.geom_condim[a], model.geom_condim[b]))


def _hulls(model: Model, geoms: Index) -> Hull | None:
    """Hulls of geoms of one type, if that is a mesh."""
    if int(model.geom_type[geoms[0]]) != int(mj.mjtGeom.mjGEOM_MESH):
        return None
    return hulls_of(model, geoms.tolist())


# ---- at an instant -----------------------------------------------------------------------------


def touching(s: Structure, pairs: Pairs, leaves: Leaves, pose: Pose, owner: Index) -> Touching:
    """Find the contacts.

    Args:
        s: The structure.
        pairs: Pairs that may touch.
        leaves: Arrays of the model.
        pose: Where bodies are.
        owner: Body of every geom [ngeom].
    """
    found = [_collided(kind, pairs, leaves, pose, owner) for kind in pairs.kinds]
    distance, point, frame = (jnp.concatenate(parts) for parts in zip(*found, strict=True))
    moves = s.dofs.moves.astype(np.float64)
    sign = (moves[pairs.bodies[1]] - moves[pairs.bodies[0]])[:, :, None]
    linear, angular = point_axes(pose, point) * sign, pose.angular * sign
    return Touching(
        distance=distance,
        frame=frame,
        linear=jnp.matmul(frame, jnp.swapaxes(linear, 1, 2)),
        angular=jnp.matmul(frame, jnp.swapaxes(angular, 1, 2)),
    )


def _collided(kind: Kind, pairs: Pairs, leaves: Leaves, pose: Pose, owner: Index) -> Contacts:
    function, _ = FUNCTIONS[kind.shapes]
    first, second = (
        _shape(kind.first, leaves, pose, owner),
        _shape(kind.second, leaves, pose, owner),
    )
    if kind.hulls is not None:
        second = second._replace(**kind.hulls._asdict())
    members = _members(kind, pairs)
    found = jax.vmap(function)(first, second, leaves["contact_margin"][members])
    return Contacts(
        distance=found.distance.reshape(-1),
        point=found.point.reshape(-1, 3),
        frame=found.frame.reshape(-1, 3, 3),
    )


def _members(kind: Kind, pairs: Pairs) -> Index:
    """Rows of the ``contact_*`` leaves of the pairs of a kind."""
    keys = {frozenset(p): k for k, p in enumerate(pairs.geoms.tolist())}
    both = zip(kind.first.tolist(), kind.second.tolist(), strict=True)
    return np.array([keys[frozenset(pair)] for pair in both], dtype=np.intp)


def _shape(geoms: Index, leaves: Leaves, pose: Pose, owner: Index) -> Shape:
    body = owner[geoms]
    turned = pose.rotation[body]
    own = matrix_of(leaves["geom_quat"][geoms])
    return Shape(
        position=pose.position[body] + transformed(turned, leaves["geom_pos"][geoms]),
        rotation=jnp.sum(turned[:, :, :, None] * own[:, None, :, :], axis=2),
        size=leaves["geom_size"][geoms],
        vertices=None,
    )


class Cones(NamedTuple):
    """Rows of elliptic contacts of one dimension d.

    Attributes:
        rows: [k d] rows, contact by contact.
        friction: Coefficients [k, d - 1].
        regular: Coefficient of the regular cone [k].
    """

    rows: Reference
    friction: jax.Array
    regular: jax.Array


def _block(
    s: Structure,
    pairs: Pairs,
    leaves: Leaves,
    at: Touching,
    chosen: Index,
    jacobian: jax.Array,
    weight: jax.Array,
) -> Block:
    """Rows [k m] of contacts, m each, from Jacobians [k, m, nv] and weights [k]."""
    repeats = jacobian.shape[1]
    pair = pairs.pair[chosen]

    def each(values: jax.Array) -> jax.Array:
        return jnp.repeat(values, repeats, axis=0, total_repeat_length=len(chosen) * repeats)

    margin = leaves["contact_margin"][pair]
    distance = at.distance[chosen]
    present = distance < margin
    distance = jnp.where(distance >= ABSENT, margin, distance)
    return Block(
        jacobian=jacobian.reshape(-1, s.nv),
        position=each(distance),
        margin=each(margin),
        weight=each(weight),
        solref=each(leaves["contact_solref"][pair]),
        solimp=each(leaves["contact_solimp"][pair]),
        depth=each(distance - margin),
        drift=zeros(len(chosen) * repeats),
        present=each(present),
    )


def _translational(pairs: Pairs, leaves: Leaves, chosen: Index) -> jax.Array:
    weights = leaves["body_invweight0"][:, 0]
    return weights[pairs.bodies[0, chosen]] + weights[pairs.bodies[1, chosen]]


def _friction(pairs: Pairs, leaves: Leaves, chosen: Index, dimension: int) -> jax.Array:
    return jnp.maximum(leaves["contact_friction"][pairs.pair[chosen], : dimension - 1], 1e-5)


def _sideways(at: Touching, chosen: Index, dimension: int) -> jax.Array:
    """Sliding, spinning and rolling velocities [k, dimension - 1, nv]."""
    parts = [at.linear[chosen, 1:3], at.angular[chosen]]
    return jnp.concatenate(parts, axis=1)[:, : dimension - 1]


def pyramid_rows(
    s: Structure, pairs: Pairs, leaves: Leaves, at: Touching, velocity: jax.Array, dimension: int
) -> Reference:
    """Rows of frictionless contacts (dimension 1), or edges of friction pyramids."""
    chosen = pairs.of_dimension(dimension)
    normal = at.linear[chosen, :1]
    weight = _translational(pairs, leaves, chosen)
    safe = not s.is_disabled("REFSAFE")
    if dimension == 1:
        block = _block(s, pairs, leaves, at, chosen, normal, weight)
        return referenced(block, velocity, s.timestep, safe=safe)
    friction = _friction(pairs, leaves, chosen, dimension)
    tilted = friction[:, :, None] * _sideways(at, chosen, dimension)
    edges = jnp.stack([normal + tilted, normal - tilted], axis=2)
    edges = edges.reshape(len(chosen), 2 * (dimension - 1), s.nv)
    first = friction[:, 0]
    block = _block(s, pairs, leaves, at, chosen, edges, weight * (1 + first**2))
    rows = referenced(block, velocity, s.timestep, safe=safe)
    scale = jnp.repeat(2 * first**2 / s.impratio, edges.shape[1])
    return rows._replace(regularisation=jnp.maximum(scale * rows.regularisation, 1e-15))


def cone_rows(
    s: Structure, pairs: Pairs, leaves: Leaves, at: Touching, velocity: jax.Array, dimension: int
) -> Cones:
    """Rows of elliptic contacts of a dimension above 1."""
    chosen = pairs.of_dimension(dimension)
    friction = _friction(pairs, leaves, chosen, dimension)
    normal, sideways = at.linear[chosen, :1], _sideways(at, chosen, dimension)
    weight = _translational(pairs, leaves, chosen)
    safe = not s.is_disabled("REFSAFE")
    upright = _block(s, pairs, leaves, at, chosen, normal, weight)
    tangent = _block(s, pairs, leaves, at, chosen, sideways, weight)
    first = referenced(upright, velocity, s.timestep, safe=safe)
    other = referenced(tangent, velocity, s.timestep, safe=safe, spring=False)
    share = friction[:, :1] ** 2 / friction**2 / s.impratio
    sliding = first.regularisation[:, None] * share
    count = len(chosen)

    def stacked(a: jax.Array, b: jax.Array) -> jax.Array:
        parts = [a.reshape(count, 1, *a.shape[1:]), b.reshape(count, dimension - 1, *b.shape[1:])]
        return jnp.concatenate(parts, axis=1).reshape(count * dimension, *a.shape[1:])

    rows = Reference(
        jacobian=stacked(first.jacobian, other.jacobian),
        acceleration=stacked(first.acceleration, other.acceleration),
        regularisation=stacked(first.regularisation, jnp.maximum(sliding, 1e-15).reshape(-1)),
        present=stacked(first.present, other.present),
    )
    regular = friction[:, 0] / np.sqrt(s.impratio)
    return Cones(rows=rows, friction=friction, regular=regular)
