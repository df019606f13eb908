"""A plane against everything: the points of the other geom that lie nearest to the plane.

A plane's half space is solid below; its normal is the z axis of the geom.

Source: MuJoCo, ``engine_collision_primitive.c`` (behaviour).
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.differentiable.collide.contacts import Contacts, Shape, contacts, first
from sameworld.worlds.differentiable.collide.frame import frames, unit

__all__ = ["plane_box", "plane_capsule", "plane_cylinder", "plane_sphere", "points_on_plane"]

BOX_CORNERS = np.array([[x, y, z] for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)], float)
"""Signs of a box's corners [8, 3], x fastest."""


def plane_sphere(plane: Shape, sphere: Shape, margin: jax.Array | float) -> Contacts:
    """The lowest point of a sphere, 1 slot."""
    return _balls(plane, sphere.position[None], sphere.size[0], margin)


def plane_capsule(plane: Shape, capsule: Shape, margin: jax.Array | float) -> Contacts:
    """The lowest points of a capsule's two ends, 2 slots; tangents along the capsule."""
    half = capsule.axis * capsule.size[1]
    ends = capsule.position + jnp.stack([half, -half])
    return _balls(plane, ends, capsule.size[0], margin, capsule.axis)


def plane_box(plane: Shape, box: Shape, margin: jax.Array | float) -> Contacts:
    """At most four corners of a box that lie below its centre, 4 slots."""
    corners = (box.size * BOX_CORNERS) @ box.rotation.T
    rise = corners @ plane.axis
    height = rise + (box.position - plane.position) @ plane.axis
    chosen, eligible = first((height <= margin) & (rise <= 0.0), 4)
    return points_on_plane(
        plane, (corners + box.position)[chosen], height[chosen], margin, eligible
    )


def plane_cylinder(plane: Shape, cylinder: Shape, margin: jax.Array | float) -> Contacts:
    """Four points of a cylinder, 4 slots.

    The lowest rim point, the one above it on the other disk, and two that make an equilateral
    triangle with the lowest on its disk.
    """
    normal, radius = plane.axis, cylinder.size[0]
    along = normal @ cylinder.axis
    down = cylinder.axis * jnp.where(along > 0.0, -1.0, 1.0)
    lowest, _ = unit(down * (normal @ down) - normal, cylinder.rotation[:, 0])
    aside, _ = unit(jnp.cross(lowest, down))
    rim = radius * jnp.stack(
        [
            lowest,
            lowest,
            aside * (math.sqrt(3.0) / 2.0) - lowest * 0.5,
            -aside * (math.sqrt(3.0) / 2.0) - lowest * 0.5,
        ]
    )
    disk = down * cylinder.size[1] * np.array([[1.0], [-1.0], [1.0], [1.0]])
    points = cylinder.position + rim + disk
    return points_on_plane(plane, points, (points - plane.position) @ normal, margin)


def _balls(
    plane: Shape,
    centres: jax.Array,
    radius: jax.Array,
    margin: jax.Array | float,
    tangent: jax.Array | None = None,
) -> Contacts:
    """Spheres of one radius at ``centres`` [k, 3]."""
    height = (centres - plane.position) @ plane.axis - radius
    return points_on_plane(plane, centres - radius * plane.axis, height, margin, tangent=tangent)


def points_on_plane(
    plane: Shape,
    points: jax.Array,
    height: jax.Array,
    margin: jax.Array | float,
    eligible: jax.Array | None = None,
    tangent: jax.Array | None = None,
) -> Contacts:
    """Contacts of surface points [k, 3] at ``height`` [k] above the plane, if ``eligible``."""
    present = height < margin if eligible is None else eligible & (height < margin)
    frame = jnp.broadcast_to(frames(plane.axis, tangent), (len(points), 3, 3))
    middle = points - 0.5 * height[:, None] * plane.axis
    return contacts(height, middle, frame, present)
