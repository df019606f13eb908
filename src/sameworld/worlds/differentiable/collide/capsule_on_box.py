"""A capsule and a box: the nearest ball of the capsule, and a second one where it lies along.

The nearest place on the capsule's segment is one of its ends above a face (or inside the box), or
the place nearest to one of the twelve edges. The second place lies on the segment as far from the
first as it stays beside the box. Both are then collided as balls.

Source: MuJoCo, ``engine_collision_box.c`` (behaviour).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.differentiable.collide.capsule import nearest_places
from sameworld.worlds.differentiable.collide.contacts import Contacts, Shape, contacts
from sameworld.worlds.differentiable.collide.frame import MINVAL, frames
from sameworld.worlds.differentiable.collide.sphere import ball_box, in_world

__all__ = ["capsule_box"]

_FAR = 1e10  # a place on the segment that is never reached
_NOWHERE = 4.0  # the step to a second place where there is none; real ones are at most 2

_ENDS = np.array([-1.0, 1.0])
_AXES = np.repeat(np.eye(3), 4, axis=0)
"""Directions of the twelve edges [12, 3]."""

_MIDDLES = np.array(
    [
        np.insert([first, second], axis, 0.0)
        for axis in range(3)
        for second in (-1.0, 1.0)
        for first in (-1.0, 1.0)
    ]
)
"""Middles of the twelve edges in half lengths of the box [12, 3]."""


class _Segment(NamedTuple):
    """The capsule's segment in the box's frame: middle [3], half axis [3], unit axis [3], half."""

    middle: jax.Array
    half: jax.Array
    axis: jax.Array
    length: jax.Array


class _End(NamedTuple):
    """The nearer end of the segment: -1 or 1, axes it is outside of [3], squared distance [m^2]."""

    place: jax.Array
    outside: jax.Array
    squared: jax.Array


class _Edge(NamedTuple):
    """The place on the segment that is nearest to an edge of the box, and where on the edge.

    Attributes:
        place: On the segment, in half lengths from its middle, in [-1, 1].
        along: On the edge, in half lengths of the box, in [-1, 1].
        edge: One-hot direction of the edge [3].
        side: The end of the edge that counts as nearest, -1 or 1; 0 between the ends.
        corner: Signs of that end, or of the lower end where it lies between them [3].
        squared: Squared distance to the box [m^2].
    """

    place: jax.Array
    along: jax.Array
    edge: jax.Array
    side: jax.Array
    corner: jax.Array
    squared: jax.Array


def capsule_box(capsule: Shape, box: Shape, margin: jax.Array | float) -> Contacts:
    """A capsule and a box, 2 slots."""
    axis = capsule.axis @ box.rotation
    middle = (capsule.position - box.position) @ box.rotation
    segment = _Segment(middle, axis * capsule.size[1], axis, capsule.size[1])
    end = _nearest_end(segment, box.size)
    edge = _nearest_edge(segment, box.size)
    by_edge = edge.squared < end.squared - MINVAL
    place = jnp.where(by_edge, edge.place, end.place)
    step = jnp.where(
        by_edge,
        jnp.where(
            edge.side != 0.0,
            _step_from_corner(segment, box.size, edge),
            _step_from_edge(segment, box.size, edge),
        ),
        _step_from_face(segment, box.size, end),
    )
    second = jnp.abs(step) < _NOWHERE
    places = jnp.stack([place, place + jnp.where(second, step, 0.0)])
    balls = segment.middle + places[:, None] * segment.half
    touch = in_world(ball_box(balls, capsule.size[0], box.size), box)
    reach = margin + 2.0 * (capsule.size[0] + capsule.size[1] + jnp.sum(box.size))
    found = jnp.minimum(edge.squared, end.squared) < reach
    present = (touch.distance < margin) & found & jnp.stack([found, second])
    return contacts(touch.distance, touch.point, frames(touch.normal), present)


def _nearest_end(segment: _Segment, size: jax.Array) -> _End:
    """The end nearest to the box of those above a face or inside it."""
    ends = segment.middle + _ENDS[:, None] * segment.half
    excess = ends - jnp.clip(ends, -size, size)
    outside = excess != 0.0
    squared = jnp.sum(excess * excess, axis=-1)
    squared = jnp.where(jnp.sum(outside, axis=-1) > 1, _FAR, squared)
    best = jnp.argmin(squared)
    place = jnp.where(best == 0, -1.0, 1.0)
    return _End(place, outside[best], squared[best])


def _nearest_edge(segment: _Segment, size: jax.Array) -> _Edge:
    """The edge nearest to the segment, the first of those that tie."""
    half_edge = size @ _AXES.T
    offset = size * _MIDDLES - segment.middle
    ma, mc = half_edge * half_edge, segment.length * segment.length
    mb = -half_edge * (segment.half @ _AXES.T)
    u, v = -half_edge * jnp.sum(offset * _AXES, axis=-1), offset @ segment.half
    determinant = ma * mc - mb * mb
    parallel = jnp.abs(determinant) < MINVAL
    along, place = nearest_places(ma, mb, mc, u, v, jnp.where(parallel, 1.0, determinant))
    gap = offset + (along * half_edge)[:, None] * _AXES - place[:, None] * segment.half
    squared = jnp.where(parallel, _FAR, jnp.sum(gap * gap, axis=-1))
    best = jnp.argmax(squared <= jnp.min(squared) + MINVAL)
    edge, middle = jnp.take(_AXES, best, axis=0), jnp.take(_MIDDLES, best, axis=0)
    side = _side(along, (mc * u - mb * v) / jnp.where(parallel, 1.0, determinant))[best]
    corner = middle + edge * jnp.where(side > 0.0, 1.0, -1.0)
    return _Edge(place[best], along[best], edge, side, corner, squared[best])


def _side(along: jax.Array, free: jax.Array) -> jax.Array:
    """End of the edge that counts as nearest, 0 between the ends.

    MuJoCo keeps the end that the line through the segment runs past (``free``), also where the
    segment is too short to reach it and the nearest place is between the ends.
    """
    ran_past = jnp.where(jnp.abs(free) > 1.0, jnp.sign(free), 0.0)
    return jnp.where(jnp.abs(along) == 1.0, along, ran_past)


def _step_from_corner(segment: _Segment, size: jax.Array, nearest: _Edge) -> jax.Array:
    """From a corner along one of its edges or one of its faces.

    There is no second place where the segment points at the corner. Otherwise its direction
    differs in sign from the corner in one axis, or in two: the odd axis is the edge, and the other
    two span the face.
    """
    differs = (segment.half > 0.0) != (nearest.corner > 0.0)
    one, two = jnp.sum(differs) == 1, jnp.sum(differs) == 2
    odd = jnp.where(one, differs, ~differs)
    sense = jnp.where(one, 1.0, -1.0)
    crossing = _lengths(2.0 * size, segment.half)
    by_edge = jnp.minimum(1.0 - sense * nearest.place, jnp.min(jnp.where(odd, crossing, _FAR)))
    by_face = jnp.minimum(1.0 + sense * nearest.place, jnp.min(jnp.where(odd, _FAR, crossing)))
    steep = jnp.sum(jnp.where(odd, segment.axis, 0.0) ** 2) > 0.5
    return jnp.where(one | two, sense * jnp.where(steep, by_edge, -by_face), _NOWHERE)


def _step_from_edge(segment: _Segment, size: jax.Array, nearest: _Edge) -> jax.Array:
    """From inside an edge, across the face that the segment is less inclined to.

    There is no second place where the segment leaves both faces or enters both.
    """
    along = nearest.edge > 0.0
    differs = ((segment.half > 0.0) != (nearest.corner > 0.0)) & ~along
    slopes = jnp.where(along, -1.0, jnp.abs(segment.axis))
    across = np.arange(3) == _last_largest(slopes, along)
    forward = jnp.any(differs & across)
    sense = jnp.where(forward, 1.0, -1.0)
    upward = jnp.any((segment.half > 0.0) & along)
    left = 1.0 - jnp.where(upward == forward, 1.0, -1.0) * nearest.along
    limits = _lengths(jnp.where(along, size * left, 2.0 * size), segment.half)
    limit = jnp.min(jnp.where(along | across, limits, _FAR))
    step = sense * jnp.minimum(1.0 - sense * nearest.place, limit)
    return jnp.where(jnp.sum(differs) == 1, step, _NOWHERE)


def _step_from_face(segment: _Segment, size: jax.Array, nearest: _End) -> jax.Array:
    """From an end above a face to where the segment leaves the face; none from inside the box."""
    outside, place = nearest.outside, nearest.place
    end = segment.middle + place * segment.half
    inward = -place * segment.half
    limits = jnp.stack([_signed(size - end, inward), _signed(-size - end, inward)])
    limits = jnp.where((limits > 0.0) & ~outside, limits, _FAR)
    return jnp.where(jnp.any(outside), -place * jnp.minimum(2.0, jnp.min(limits)), _NOWHERE)


def _last_largest(slopes: jax.Array, along: jax.Array) -> jax.Array:
    """The axis of the larger slope; on a tie the one that follows second after the edge's axis."""
    edge = jnp.argmax(along)
    first, second = (edge + 1) % 3, (edge + 2) % 3
    return jnp.where(slopes[first] > slopes[second], first, second)


def _lengths(distance: jax.Array, half: jax.Array) -> jax.Array:
    """Steps [3] that move the segment's point by ``distance`` along each axis."""
    return _signed(distance, jnp.abs(half))


def _signed(distance: jax.Array, half: jax.Array) -> jax.Array:
    """``distance / half`` [3], far away where the segment does not move along the axis."""
    return jnp.where(half == 0.0, _FAR, distance / jnp.where(half == 0.0, 1.0, half))
