"""A sphere against spheres, capsules, cylinders and boxes.

Source: MuJoCo, ``engine_collision_primitive.c`` and ``engine_collision_box.c`` (behaviour).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sameworld.worlds.differentiable.collide.contacts import Contacts, Shape, contacts
from sameworld.worlds.differentiable.collide.frame import MINVAL, frames, unit

__all__ = [
    "Touch",
    "ball_ball",
    "ball_box",
    "fallback_normal",
    "in_world",
    "one_slot",
    "sphere_box",
    "sphere_capsule",
    "sphere_cylinder",
    "sphere_sphere",
]


class Touch(NamedTuple):
    """Where two surfaces are nearest, before slots are filled: [...], [..., 3], [..., 3]."""

    distance: jax.Array
    point: jax.Array
    normal: jax.Array


def ball_ball(
    centre1: jax.Array,
    radius1: jax.Array,
    centre2: jax.Array,
    radius2: jax.Array | float,
    fallback: jax.Array,
) -> Touch:
    """Nearest points of balls with centres [..., 3]; ``fallback`` [3] is the normal of equal ones.

    The derivative of the distance is 0 where the centres coincide.
    """
    normal, length = unit(centre2 - centre1, fallback)
    distance = length - radius1 - radius2
    point = centre1 + normal * (radius1 + 0.5 * distance)[..., None]
    return Touch(distance, point, normal)


def ball_box(centre: jax.Array, radius: jax.Array, size: jax.Array) -> Touch:
    """Nearest points of balls at ``centre`` [..., 3] in a box's frame and the box itself.

    A centre inside the box leaves through the nearest face.
    """
    clamped = jnp.clip(centre, -size, size)
    outward, gap = unit(clamped - centre)
    inside = gap <= MINVAL
    depths = jnp.abs(jnp.stack([centre + size, size - centre], axis=-1))
    depths = depths.reshape(*centre.shape[:-1], 6)
    face = jnp.argmin(depths, axis=-1)
    depth = jnp.min(depths, axis=-1)
    inward = jax.nn.one_hot(face // 2, 3, dtype=centre.dtype)
    inward = inward * (1.0 - 2.0 * (face % 2))[..., None]
    normal = jnp.where(inside[..., None], inward, outward)
    distance = jnp.where(inside, -depth, gap) - radius
    point = centre + normal * (radius + 0.5 * distance)[..., None]
    return Touch(distance, point, normal)


def sphere_sphere(sphere1: Shape, sphere2: Shape, margin: jax.Array | float) -> Contacts:
    """Two spheres, 1 slot."""
    radius1, radius2 = sphere1.size[0], sphere2.size[0]
    normal = fallback_normal(sphere1, sphere2)
    return one_slot(ball_ball(sphere1.position, radius1, sphere2.position, radius2, normal), margin)


def sphere_capsule(sphere: Shape, capsule: Shape, margin: jax.Array | float) -> Contacts:
    """A sphere and the nearest ball of a capsule, 1 slot."""
    along = capsule.axis @ (sphere.position - capsule.position)
    along = jnp.clip(along, -capsule.size[1], capsule.size[1])
    nearest = capsule.position + along * capsule.axis
    normal = fallback_normal(sphere, capsule)
    touch = ball_ball(sphere.position, sphere.size[0], nearest, capsule.size[0], normal)
    return one_slot(touch, margin)


def sphere_cylinder(sphere: Shape, cylinder: Shape, margin: jax.Array | float) -> Contacts:
    """A sphere and a cylinder's round wall, flat disk or rim, 1 slot.

    A centre inside the cylinder leaves through the nearer of wall and disk.
    """
    radius, half, axis = cylinder.size[0], cylinder.size[1], cylinder.axis
    offset = sphere.position - cylinder.position
    along = axis @ offset
    radial, away = unit(offset - along * axis)
    beside, above = jnp.abs(along) < half, away < radius
    through_disk = half - jnp.abs(along) < radius - away
    disk = above & (~beside | through_disk)
    rim = ~beside & ~above
    side = jnp.where(along > 0.0, 1.0, -1.0)
    corner = cylinder.position + half * side * axis + radius * radial
    target = jnp.where(rim, corner, cylinder.position + along * axis)
    normal = fallback_normal(sphere, cylinder)
    touch = ball_ball(sphere.position, sphere.size[0], target, jnp.where(rim, 0.0, radius), normal)
    flat = _ball_disk(sphere, side * along - half, side * axis)
    return one_slot(
        Touch(*(jnp.where(disk, a, b) for a, b in zip(flat, touch, strict=True))), margin
    )


def sphere_box(sphere: Shape, box: Shape, margin: jax.Array | float) -> Contacts:
    """A sphere and a box, 1 slot."""
    centre = (sphere.position - box.position) @ box.rotation
    return one_slot(in_world(ball_box(centre, sphere.size[0], box.size), box), margin)


def fallback_normal(shape1: Shape, shape2: Shape) -> jax.Array:
    """Normal [3] of balls whose centres coincide: across both z axes, x if those are parallel."""
    return unit(jnp.cross(shape1.axis, shape2.axis))[0]


def in_world(touch: Touch, box: Shape) -> Touch:
    """Bring what was found in a box's frame into the world frame."""
    return Touch(
        touch.distance, touch.point @ box.rotation.T + box.position, touch.normal @ box.rotation.T
    )


def one_slot(touch: Touch, margin: jax.Array | float) -> Contacts:
    """The contact of one touch."""
    distance = touch.distance[None]
    return contacts(distance, touch.point[None], frames(touch.normal)[None], distance < margin)


def _ball_disk(sphere: Shape, height: jax.Array, outward: jax.Array) -> Touch:
    """A sphere whose centre is ``height`` above a disk that looks ``outward`` [3]."""
    distance = height - sphere.size[0]
    point = sphere.position - outward * (0.5 * distance + sphere.size[0])
    return Touch(distance, point, -outward)
