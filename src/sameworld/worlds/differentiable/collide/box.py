"""Two boxes: separating axes, then a clipped face or the nearest points of two edges.

The axis of largest separation among fifteen (three face normals of each box, nine cross products
of edges) is the normal. A face axis yields the corners of the other box's opposing face clipped by
the face's rectangle; an edge axis yields one contact between the two edges.

Source: MuJoCo, ``engine_collision_box.c`` (behaviour); S. Gottschalk, M. Lin and D. Manocha,
"OBBTree", SIGGRAPH 1996 (separating axes); Y. Liang and B. Barsky, "A new concept and method for
line clipping", ACM TOG 1984.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sameworld.worlds.differentiable.collide.contacts import Contacts, Shape, contacts, first
from sameworld.worlds.differentiable.collide.frame import MINVAL, frames, unit

__all__ = ["BOX_SLOTS", "box_box"]

BOX_SLOTS = 8
"""A rectangle clipped by a rectangle has at most eight corners."""

_FAR = 1e10
_SLACK = 1e-13  # of the summed half lengths: rounding allowed in the separation tests
_PARALLEL = 1e-16  # squared sine under which two edges make no axis
_EDGE_BIAS = 1e-6  # an edge axis must be better by this share
_SAME_AXIS, _SAME_DEPTH = 0.99, 0.05  # a face stands in for an edge axis that is nearly its normal
_AMBIGUOUS = 1e-9  # component of an edge axis under which both supporting corners are tried
_SAME_POINT = 1e-14  # squared distance of corners that are one, in squared half lengths
_EDGE_ON = 1e-9  # share by which a corner may lie outside of the other face

_CROSS = np.array([np.cross(np.eye(3), -axis) for axis in np.eye(3)])
"""``_CROSS[i] @ v`` is the cross product of axis i and v."""

_AXES = np.eye(3)
_AXES1, _AXES2 = np.repeat(_AXES, 3, axis=0), np.tile(_AXES, (3, 1))
"""Axes of the two boxes of the nine pairs of edges, one-hot [9, 3]."""

_ORDERS = np.array([np.roll(_AXES, -axis - 1, axis=0) for axis in range(3)])
"""``_ORDERS[i] @ v`` puts component i last and those that follow it first."""

_FIRST = np.arange(BOX_SLOTS) == 0
_CORNERS = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
_EARLIER = np.tri(12, k=-1, dtype=bool)
"""Whether the second of two candidates comes before the first [12, 12]."""


class _Pair(NamedTuple):
    """Two boxes seen from the first: offset of the second [3], its axes as columns, half sizes."""

    offset: jax.Array
    axes: jax.Array
    size1: jax.Array
    size2: jax.Array


class _Axis(NamedTuple):
    """The axis of largest separation.

    Attributes:
        separated: No contact: the boxes are apart along some axis.
        face: Best face, 0 to 2 of the first box, 3 to 5 of the second.
        by_edge: An edge axis is better.
        edge1: Axis of the first box of the best edge axis, one-hot [3].
        edge2: The same of the second box.
        edge: The best edge axis, a unit vector from the first box to the second [3].
    """

    separated: jax.Array
    face: jax.Array
    by_edge: jax.Array
    edge1: jax.Array
    edge2: jax.Array
    edge: jax.Array


class _Patch(NamedTuple):
    """Contacts in the first box's frame: distance [k], point [k, 3], present [k], normal [3]."""

    distance: jax.Array
    point: jax.Array
    present: jax.Array | NDArray[np.bool_]
    normal: jax.Array


def box_box(box1: Shape, box2: Shape, margin: jax.Array | float) -> Contacts:
    """Two boxes, 8 slots."""
    offset = (box2.position - box1.position) @ box1.rotation
    pair = _Pair(offset, box1.rotation.T @ box2.rotation, box1.size, box2.size)
    slack = margin + _SLACK * jnp.sum(box1.size + box2.size)
    axis = _separating(pair, slack)
    face, edge = _face_patch(pair, axis, margin), _edge_patch(pair, axis)
    patch = _Patch(*(jnp.where(axis.by_edge, a, b) for a, b in zip(edge, face, strict=True)))
    frame = jnp.broadcast_to(frames(box1.rotation @ patch.normal), (BOX_SLOTS, 3, 3))
    point = patch.point @ box1.rotation.T + box1.position
    present = (patch.distance < margin) & patch.present & ~axis.separated
    return contacts(patch.distance, point, frame, present)


def _separating(pair: _Pair, slack: jax.Array) -> _Axis:
    """Find the axis; on near ties a face is preferred to an edge, as it yields more contacts."""
    across = jnp.abs(pair.axes)
    faces = jnp.concatenate(
        [
            jnp.abs(pair.offset) - pair.size1 - across @ pair.size2,
            jnp.abs(pair.offset @ pair.axes) - pair.size2 - pair.size1 @ across,
        ]
    )
    face = jnp.argmax(faces)
    crossed = jnp.moveaxis(jnp.matmul(_CROSS, pair.axes), 2, 1).reshape(9, 3)
    exists = jnp.sum(crossed * crossed, axis=-1) >= _PARALLEL
    normals, _ = unit(jnp.where(exists[:, None], crossed, _AXES[0]))
    reach = jnp.abs(normals) @ pair.size1 + jnp.abs(normals @ pair.axes) @ pair.size2
    edges = jnp.where(exists, jnp.abs(normals @ pair.offset) - reach, -_FAR)
    most = jnp.max(edges)
    best = jnp.argmax(edges >= most - _EDGE_BIAS * jnp.abs(most))
    normal, edge, depth = normals[best], edges[best], faces[face]
    sides = jnp.concatenate([normal, normal @ pair.axes])
    stands_in = (jnp.abs(sides[face]) > _SAME_AXIS) & (
        edge < depth + _SAME_DEPTH * jnp.abs(depth) + MINVAL
    )
    better = edge - _EDGE_BIAS * jnp.abs(edge) > depth
    return _Axis(
        jnp.maximum(depth, most) > slack,
        face,
        better & ~stands_in,
        jnp.take(_AXES1, best, axis=0, mode="clip"),
        jnp.take(_AXES2, best, axis=0, mode="clip"),
        normal * jnp.where(normal @ pair.offset < 0.0, -1.0, 1.0),
    )


def _edge_patch(pair: _Pair, axis: _Axis) -> _Patch:
    """The nearest points of the two edges that support the edge axis, in the first slot.

    Where a component of the axis vanishes two parallel edges support it: all are tried and the
    nearest pair is kept.
    """
    corners1 = _supports(axis.edge, pair.size1, axis.edge1)
    corners2 = _supports(-(axis.edge @ pair.axes), pair.size2, axis.edge2)
    start1 = corners1[np.array([0, 0, 1, 1])]
    start2 = corners2[np.array([0, 1, 0, 1])] @ pair.axes.T + pair.offset
    half1, half2 = pair.size1 @ axis.edge1, pair.size2 @ axis.edge2
    along2 = pair.axes @ axis.edge2
    gap = start2 - start1
    gap1, gap2, cosine = gap @ axis.edge1, gap @ along2, along2 @ axis.edge1
    squared = 1.0 - cosine * cosine
    meeting = (gap1 - cosine * gap2) / jnp.where(squared < MINVAL, 1.0, squared)
    meeting = jnp.clip(jnp.where(squared < MINVAL, 0.0, meeting), -half1, half1)
    at2 = jnp.clip(cosine * meeting - gap2, -half2, half2)
    at1 = jnp.clip(gap1 + cosine * at2, -half1, half1)
    points1 = start1 + at1[:, None] * axis.edge1
    points2 = start2 + at2[:, None] * along2
    best = jnp.argmin(jnp.sum((points2 - points1) ** 2, axis=-1))
    point1, point2 = points1[best], points2[best]
    distance = jnp.broadcast_to((point2 - point1) @ axis.edge, BOX_SLOTS)
    middle = jnp.broadcast_to(0.5 * (point1 + point2), (BOX_SLOTS, 3))
    return _Patch(distance, middle, _FIRST, axis.edge)


def _supports(direction: jax.Array, size: jax.Array, edge: jax.Array) -> jax.Array:
    """Middles of the edges that reach farthest along ``direction``, maybe twice the same [2, 3]."""
    middle = jnp.where(direction >= 0.0, size, -size) * (1.0 - edge)
    vanishes = jnp.abs(direction) < _AMBIGUOUS
    return jnp.stack([middle, jnp.where(vanishes, -middle, middle)])


def _face_patch(pair: _Pair, axis: _Axis, margin: jax.Array | float) -> _Patch:
    """The opposing face of the other box, clipped by the rectangle of the best face.

    Coordinates are (x, y) in the face and z above it; ``order`` brings them to the front.
    """
    of_first = axis.face < 3
    size = jnp.where(of_first, pair.size1, pair.size2)
    other_size = jnp.where(of_first, pair.size2, pair.size1)
    other_axes = jnp.where(of_first, pair.axes, pair.axes.T)
    offset = jnp.where(of_first, pair.offset, -(pair.offset @ pair.axes))
    order = jnp.take(_ORDERS, axis.face % 3, axis=0, mode="clip")
    half, centre, aligned = order @ size, order @ offset, order @ other_axes
    opposing = jnp.argmax(jnp.abs(aligned[2]))
    others = jnp.take(_ORDERS, opposing, axis=0, mode="clip")
    sense = jnp.where(centre[2] >= 0.0, 1.0, -1.0)
    up = jnp.stack([1.0, 1.0, sense])
    spans = (aligned @ others.T) * (others @ other_size) * up[:, None]
    towards = jnp.where(spans[2, 2] > 0.0, -1.0, 1.0)
    centre = centre * up + towards * spans[:, 2] - half * _AXES[2]
    candidates, found = _clipped(centre, spans[:, 0], spans[:, 1], half[:2])
    chosen, present = first(found & (candidates[:, 2] <= margin), BOX_SLOTS)
    corner = candidates[chosen]
    height = sense * (half[2] + 0.5 * corner[:, 2])
    local = jnp.concatenate([corner[:, :2], height[:, None]], axis=-1) @ order
    to_first = jnp.where(of_first, _AXES, pair.axes)
    origin = jnp.where(of_first, 0.0, pair.offset)
    outward = to_first @ order[2] * sense * jnp.where(of_first, 1.0, -1.0)
    return _Patch(corner[:, 2], local @ to_first.T + origin, present, outward)


def _clipped(
    centre: jax.Array, span1: jax.Array, span2: jax.Array, half: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Corners of a parallelogram clipped by the rectangle [-half, half].

    These are the ends of its four edges as far as they run over the rectangle, and the corners of
    the rectangle that it covers; heights (z) are carried along.

    Returns:
        Candidates [12, 3], and which of them are corners and equal to no earlier one [12].
    """
    starts = centre + _CORNERS[:, :1] * span1 + _CORNERS[:, 1:] * span2
    edges = jnp.roll(starts, -1, axis=0) - starts
    enter, leave = _inside_times(starts[:, :2], edges[:, :2], half)
    ends = starts + jnp.stack([enter, leave])[:, :, None] * edges
    places = _CORNERS * half - centre[:2]
    area = span1[0] * span2[1] - span1[1] * span2[0]
    along1 = (places[:, 0] * span2[1] - places[:, 1] * span2[0]) / area
    along2 = (places[:, 1] * span1[0] - places[:, 0] * span1[1]) / area
    covered = jnp.maximum(jnp.abs(along1), jnp.abs(along2)) <= 1.0 + _EDGE_ON
    corners = centre + along1[:, None] * span1 + along2[:, None] * span2
    candidates = jnp.concatenate([ends.reshape(8, 3), corners])
    exists = jnp.concatenate([jnp.tile(enter <= leave, 2), covered])
    apart = candidates[:, None, :2] - candidates[None, :, :2]
    same = jnp.sum(apart * apart, axis=-1) < _SAME_POINT * jnp.sum(half * half)
    repeated = jnp.any(same & exists[None, :] & _EARLIER, axis=-1)
    return candidates, exists & ~repeated


def _inside_times(
    starts: jax.Array, edges: jax.Array, half: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """When points ``starts + t edges``, t in [0, 1], enter the rectangle and when they leave it.

    An edge that misses the rectangle leaves before it enters.
    """
    still = edges == 0.0
    speed = jnp.where(still, 1.0, edges)
    one, other = (-half - starts) / speed, (half - starts) / speed
    outside = jnp.where(jnp.abs(starts) <= half, -_FAR, _FAR)
    enter = jnp.where(still, outside, jnp.minimum(one, other))
    leave = jnp.where(still, -outside, jnp.maximum(one, other))
    return jnp.maximum(0.0, jnp.max(enter, axis=-1)), jnp.minimum(1.0, jnp.min(leave, axis=-1))
