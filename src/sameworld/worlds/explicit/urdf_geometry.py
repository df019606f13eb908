"""What the shapes of a link say: volume, hull, inertia if filled evenly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from sameworld.core.arrays import Array
from sameworld.core.errors import SceneError
from sameworld.maths.inertia import moved, rotated
from sameworld.maths.rotations import rotate
from sameworld.store.urdf_mjcf import geometry_mjcf
from sameworld.store.urdf_robot import UrdfInertial, UrdfLink, UrdfRobot
from sameworld.worlds.compiled.engine import Model, captured_warnings, mj

__all__ = ["LinkGeometry", "hull_solid", "link_geometries"]

_DENSITY = 1000.0
#: Volume of a flat hull in cubes of its size.
_FLAT = 1e-9
_CORNERS = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], dtype=float)


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkGeometry:
    """The shapes of one link, in its frame.

    Attributes:
        points: Points whose convex hull holds every shape [N, 3] m.
        volume: Sum of the volumes of the convex pieces that count as solid [m^3].
        com: Centre of those pieces [3] m.
        unit_inertia: Their inertia about it for one kilogram [3, 3] m^2.
        flat: Positions of the meshes without a volume among the link's shapes.
    """

    points: Array
    volume: float
    com: Array
    unit_inertia: Array
    flat: tuple[int, ...] = ()

    @property
    def low(self) -> Array:
        """Lowest corner of the bounding box [3] m."""
        return self.points.min(axis=0)

    @property
    def high(self) -> Array:
        """Highest corner of the bounding box [3] m."""
        return self.points.max(axis=0)

    @property
    def size(self) -> float:
        """Longest side of the bounding box [m]."""
        return _size(self.points)

    @cached_property
    def _planes(self) -> Array | None:
        try:
            return np.asarray(ConvexHull(self.points).equations, dtype=np.float64)
        except (QhullError, ValueError):
            return None  # flat: the bounding box stands in

    def beyond(self, point: Array) -> float:
        """Distance of a point [3] m from the inside of the hull [m]; negative inside.

        Exact beside a face, too small beside an edge or corner.
        """
        if self._planes is None:
            return float(np.maximum(self.low - point, point - self.high).max())
        return float((self._planes[:, :3] @ point + self._planes[:, 3]).max())

    def reach(self, point: Array, axes: Array) -> Array:
        """Largest distance of any shape from lines through a point along the axes' columns [m]."""
        arms = self.points - point
        along = arms @ axes
        square = np.sum(arms**2, axis=1)[:, None] - along**2
        return np.sqrt(np.maximum(square, 0.0).max(axis=0))

    def moments(self, mass: float) -> Array:
        """Principal moments [3] kg m^2 of the shapes filled evenly with a mass [kg]."""
        return np.asarray(mass * np.linalg.eigvalsh(self.unit_inertia), dtype=np.float64)

    def filled(self, mass: float) -> UrdfInertial:
        """Inertia of the shapes filled evenly with a mass [kg]."""
        return UrdfInertial(mass=mass, com=self.com, inertia=mass * self.unit_inertia)


def link_geometries(robot: UrdfRobot) -> dict[str, LinkGeometry]:
    """Geometry of every link that has shapes, by name.

    Raises:
        SceneError: MuJoCo cannot use a shape.
    """
    model = _compiled(robot)
    found: dict[str, LinkGeometry] = {}
    for link in robot.links:
        if link.shapes:
            found[link.name] = _geometry(model, model.body(f"link {link.name}").id, link)
    return found


def _compiled(robot: UrdfRobot) -> Model:
    with captured_warnings():
        try:
            text, assets = geometry_mjcf(robot), dict(robot.assets)
            return mj.MjSpec.from_string(text, assets=assets).compile()
        except ValueError as cause:
            told = " ".join(str(cause).split())
            raise SceneError(f"A shape of robot '{robot.name}' cannot be used: {told}") from cause


def _geometry(model: Model, body: int, link: UrdfLink) -> LinkGeometry:
    """Shapes of a body; meshes that count as solid do so by their hulls."""
    first = int(model.body_geomadr[body])
    points = [_points(model, first + k) for k in range(len(link.shapes))]
    inertia = rotated(np.diag(model.body_inertia[body]), np.array(model.body_iquat[body]))
    volume = float(model.body_mass[body]) / _DENSITY
    solids = [(volume, np.array(model.body_ipos[body]), inertia / _DENSITY)]
    touched = any(not shape.visual for shape in link.shapes)
    meshes = [k for k, shape in enumerate(link.shapes) if shape.kind == "mesh"]
    hulls = {k: hull_solid(points[k]) for k in meshes}
    solids += [hulls[k] for k in meshes if not (touched and link.shapes[k].visual)]
    volume, com, second = _joined(solids)
    return LinkGeometry(
        points=np.concatenate(points),
        volume=volume,
        com=com,
        unit_inertia=second / (volume or 1.0),
        flat=tuple(k for k, solid in hulls.items() if solid[0] <= _FLAT * _size(points[k]) ** 3),
    )


def hull_solid(points: Array) -> tuple[float, Array, Array]:
    """Volume [m^3], centre [3] m and inertia about it at unit density [3, 3] m^5 of a hull.

    Sums over the tetrahedra between an inner point and the faces; a flat set has no volume.

    Args:
        points: Points [N, 3] m.
    """
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return 0.0, points.mean(axis=0), np.zeros((3, 3))
    inner = points[hull.vertices].mean(axis=0)
    corners = points[hull.simplices] - inner
    volumes = np.abs(np.linalg.det(corners)) / 6
    volume = float(volumes.sum())
    sums = corners.sum(axis=1)
    first = (volumes[:, None] * sums).sum(axis=0) / 4
    outer = np.einsum("nki,nkj->nij", corners, corners) + sums[:, :, None] * sums[:, None, :]
    spread = (volumes[:, None, None] * outer).sum(axis=0) / 20
    centre = first / volume
    spread = spread - volume * np.outer(centre, centre)
    return volume, inner + centre, np.trace(spread) * np.eye(3) - spread


def _joined(solids: list[tuple[float, Array, Array]]) -> tuple[float, Array, Array]:
    """Volume, centre and inertia at unit density of several solids together."""
    volume = sum(part[0] for part in solids)
    if volume <= 0:
        return 0.0, solids[0][1], np.zeros((3, 3))
    weighed = [part[0] * part[1] for part in solids]
    centre = np.sum(weighed, axis=0) / volume
    parts = [moved(v, inertia, com - centre) for v, com, inertia in solids]
    return volume, centre, np.sum(parts, axis=0)


def _size(points: Array) -> float:
    """Longest side of the bounding box [m]."""
    return float((points.max(axis=0) - points.min(axis=0)).max())


def _points(model: Model, geom: int) -> Array:
    mesh = int(model.geom_dataid[geom])
    if mesh >= 0:
        first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
        local = np.array(model.mesh_vert[first : first + count], dtype=np.float64)
    else:
        box = np.array(model.geom_aabb[geom], dtype=np.float64)
        local = box[:3] + _CORNERS * box[3:]
    place = np.array(model.geom_pos[geom]), np.array(model.geom_quat[geom])
    return place[0] + rotate(place[1], local)
