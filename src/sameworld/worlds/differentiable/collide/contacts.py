"""What a collider is given and what it finds, with a fixed number of slots per pair of geoms."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

__all__ = ["ABSENT", "Contacts", "Shape", "contacts", "first"]

ABSENT = 1e10
"""Distance in an empty slot [m]: above every margin, and constant."""


class Shape(NamedTuple):
    """One geom where it is now.

    Attributes:
        position: Centre in the world frame [m], [3].
        rotation: Columns are the geom's axes in the world frame, [3, 3].
        size: MuJoCo's sizes [m], [3]: sphere (radius), capsule and cylinder (radius, half length),
            box (half lengths); a plane's are not looked at.
        vertices: Vertices of a mesh's convex hull in the geom frame [m], [n, 3].
        normals: Of the faces at each vertex, [n, m, 3]; see ``Hull``.
        corners: Of those faces, [n, m, 4] indices; see ``Hull``.
    """

    position: jax.Array
    rotation: jax.Array
    size: jax.Array
    vertices: jax.Array | None = None
    normals: jax.Array | None = None
    corners: jax.Array | None = None

    @property
    def axis(self) -> jax.Array:
        """The geom's z axis in the world frame [3]: plane normal, capsule and cylinder axis."""
        return self.rotation[:, 2]


class Contacts(NamedTuple):
    """Contacts of one pair in k slots; empty slots are at ``ABSENT`` and otherwise finite.

    Attributes:
        distance: Gap along the normal, negative in penetration [m], [k].
        point: Midway between the two surfaces, world frame [m], [k, 3].
        frame: Rows are the normal from the first geom to the second and two tangents, [k, 3, 3].
    """

    distance: jax.Array
    point: jax.Array
    frame: jax.Array


def contacts(
    distance: jax.Array, point: jax.Array, frame: jax.Array, present: jax.Array
) -> Contacts:
    """Fill slots, and empty those that are not ``present`` [k]."""
    return Contacts(jnp.where(present, distance, ABSENT), point, frame)


def first(eligible: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """Indices [count] of the first eligible candidates of [n], and which indices are eligible."""
    chosen = jnp.argsort(~eligible, stable=True)[:count]
    return chosen, eligible[chosen]
