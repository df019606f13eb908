"""A mesh's convex hull on a plane: corners of the face that looks at the plane.

Source: measured on MuJoCo 4.0.0 (``mjc_PlaneConvex``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sameworld.core import SceneError
from sameworld.core.arrays import Array
from sameworld.worlds.compiled.engine import Model
from sameworld.worlds.differentiable.collide.contacts import Contacts, Shape
from sameworld.worlds.differentiable.collide.plane import points_on_plane

__all__ = ["MESH_SLOTS", "Hull", "hulls_of", "plane_mesh"]

MESH_SLOTS = 4
"""Contacts of a mesh on a plane."""

_Indices = NDArray[np.intp]


class Hull(NamedTuple):
    """What a plane needs to know of a mesh, in the geom frame; goes into ``Shape`` by name.

    Attributes:
        vertices: Vertices of the convex hull [m], [n, 3].
        normals: Outward normals of the faces at each vertex, [n, m, 3]; zero where there are fewer.
        corners: For each of those faces, at most four of its vertices: those that touch the plane
            if this one is lowest, [n, m, 4] indices, -1 where there are fewer.
    """

    vertices: Array
    normals: Array
    corners: NDArray[np.intp]


def hulls_of(model: Model, geoms: Sequence[int]) -> Hull:
    """Read the convex hulls of mesh geoms, with a leading axis of geoms.

    Hulls with fewer vertices than the largest repeat their last one; the repeats touch nothing.

    Args:
        model: Compiled model.
        geoms: Indices of geoms of type mesh.

    Raises:
        SceneError: A mesh has no convex hull.
    """
    hulls = [_hull(model, int(model.geom_dataid[geom])) for geom in geoms]
    size = np.max([hull.corners.shape for hull in hulls], axis=0)
    more = [size - hull.corners.shape for hull in hulls]
    both = list(zip(hulls, more, strict=True))
    return Hull(
        np.stack([np.pad(h.vertices, ((0, m[0]), (0, 0)), mode="edge") for h, m in both]),
        np.stack([np.pad(h.normals, ((0, m[0]), (0, m[1]), (0, 0))) for h, m in both]),
        np.stack(
            [np.pad(h.corners, ((0, m[0]), (0, m[1]), (0, 0)), constant_values=-1) for h, m in both]
        ),
    )


def plane_mesh(plane: Shape, mesh: Shape, margin: jax.Array | float) -> Contacts:
    """At most four corners of a hull's face, 4 slots.

    The face is the one at the lowest vertex that looks at the plane most directly. Corners above
    the centre of the geom are left out.

    Raises:
        SceneError: The shape lacks the vertices, normals and corners of its hull.
    """
    if mesh.vertices is None or mesh.normals is None or mesh.corners is None:
        raise SceneError("A mesh on a plane needs vertices, normals and corners; see 'hulls_of'.")
    arms = mesh.vertices @ mesh.rotation.T
    rise = arms @ plane.axis
    lowest = jnp.argmin(rise)
    face = jnp.argmin(jnp.take(mesh.normals, lowest, axis=0) @ (mesh.rotation.T @ plane.axis))
    corners = jnp.take(jnp.take(mesh.corners, lowest, axis=0), face, axis=0)
    exists, chosen = corners >= 0, jnp.maximum(corners, 0)
    points = jnp.take(arms, chosen, axis=0) + mesh.position
    height = (points - plane.position) @ plane.axis
    return points_on_plane(plane, points, height, margin, exists & (jnp.take(rise, chosen) <= 0.0))


def _hull(model: Model, mesh: int) -> Hull:
    """The hull of one mesh."""
    start, count = int(model.mesh_polyadr[mesh]), int(model.mesh_polynum[mesh])
    if count == 0:
        raise SceneError(
            f"Mesh '{model.mesh(mesh).name}' has no convex hull to collide with. Use it for "
            "looks only, and a box, a capsule or another mesh to collide."
        )
    base = int(model.mesh_vertadr[mesh])
    points = np.asarray(model.mesh_vert, np.float64)[base : base + int(model.mesh_vertnum[mesh])]
    loops: list[_Indices] = []
    for face in range(start, start + count):
        first = int(model.mesh_polyvertadr[face])
        last = first + int(model.mesh_polyvertnum[face])
        loops.append(np.asarray(model.mesh_polyvert, np.intp)[first:last])
    used = np.unique(np.concatenate(loops))
    normals = np.asarray(model.mesh_polynormal, np.float64)[start : start + count]
    return _tabled(points[used], [np.searchsorted(used, loop) for loop in loops], normals)


def _tabled(points: Array, loops: list[_Indices], normals: Array) -> Hull:
    """Sort faces by vertex, and choose their corners for every vertex that may be lowest."""
    at: list[list[tuple[Array, _Indices]]] = [[] for _ in points]
    for loop, normal in zip(loops, normals, strict=True):
        for turn, vertex in enumerate(loop):
            at[int(vertex)].append((normal, _corners(points, np.roll(loop, -turn))))
    most = max(len(faces) for faces in at)
    hull = Hull(points, np.zeros((len(points), most, 3)), np.full((len(points), most, 4), -1))
    for vertex, faces in enumerate(at):
        for place, (normal, corners) in enumerate(faces):
            hull.normals[vertex, place] = normal
            hull.corners[vertex, place, : len(corners)] = corners
    return hull


def _corners(points: Array, loop: _Indices) -> _Indices:
    """At most four of a face's vertices, its first among them, that span a large area.

    From the first four on, the last is moved along the face as long as the area grows, and after
    each of its moves the third, then the second.
    """
    places = [0, 1, 2, 3]

    def grows(which: int) -> bool:
        moved = [*places[:which], places[which] + 1, *places[which + 1 :]]
        if moved[which] == len(loop):
            return False
        if _area(points[loop[moved]]) <= _area(points[loop[places]]):
            return False
        places[which] += 1
        return True

    if len(loop) <= 4:
        return loop
    while grows(3):
        while grows(2):
            pass
        while grows(1):
            pass
    return loop[places]


def _area(corners: Array) -> float:
    """Twice the area of a plane quadrilateral [4, 3]."""
    return float(np.linalg.norm(np.cross(corners[2] - corners[0], corners[3] - corners[1])))
