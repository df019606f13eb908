"""Contacts of one pair of geoms as MuJoCo finds them, in JAX and differentiable."""

from __future__ import annotations

from collections.abc import Callable

import jax

from sameworld.worlds.differentiable.collide.box import BOX_SLOTS, box_box
from sameworld.worlds.differentiable.collide.capsule import capsule_capsule
from sameworld.worlds.differentiable.collide.capsule_on_box import capsule_box
from sameworld.worlds.differentiable.collide.contacts import ABSENT, Contacts, Shape
from sameworld.worlds.differentiable.collide.mesh import MESH_SLOTS, Hull, hulls_of, plane_mesh
from sameworld.worlds.differentiable.collide.plane import (
    plane_box,
    plane_capsule,
    plane_cylinder,
    plane_sphere,
)
from sameworld.worlds.differentiable.collide.sphere import (
    sphere_box,
    sphere_capsule,
    sphere_cylinder,
    sphere_sphere,
)

__all__ = ["ABSENT", "FUNCTIONS", "Collider", "Contacts", "Hull", "Shape", "hulls_of"]

Collider = Callable[[Shape, Shape, jax.Array | float], Contacts]
"""Contacts of two shapes within a margin [m]."""

_PLANE, _SPHERE, _CAPSULE, _CYLINDER, _BOX, _MESH = 0, 2, 3, 5, 6, 7

FUNCTIONS: dict[tuple[int, int], tuple[Collider, int]] = {
    (_PLANE, _SPHERE): (plane_sphere, 1),
    (_PLANE, _CAPSULE): (plane_capsule, 2),
    (_PLANE, _CYLINDER): (plane_cylinder, 4),
    (_PLANE, _BOX): (plane_box, 4),
    (_PLANE, _MESH): (plane_mesh, MESH_SLOTS),
    (_SPHERE, _SPHERE): (sphere_sphere, 1),
    (_SPHERE, _CAPSULE): (sphere_capsule, 1),
    (_SPHERE, _CYLINDER): (sphere_cylinder, 1),
    (_SPHERE, _BOX): (sphere_box, 1),
    (_CAPSULE, _CAPSULE): (capsule_capsule, 2),
    (_CAPSULE, _BOX): (capsule_box, 2),
    (_BOX, _BOX): (box_box, BOX_SLOTS),
}
"""Collider and slots by the two geom types (``mujoco.mjtGeom``), the lower one first."""
