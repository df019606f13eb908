"""Robot records as MuJoCo XML that keeps every name.

Links that do not move stay bodies (MuJoCo's own reader merges them into their parents), so that
addresses, cameras and attachments find them again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike

from sameworld.maths.rotations import quat_to_matrix
from sameworld.store.urdf_robot import UrdfInertial, UrdfJoint, UrdfLink, UrdfRobot, UrdfShape
from sameworld.store.urdf_tree import WORLD

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["geometry_mjcf", "robot_mjcf", "static_links", "welded_groups"]

_VISUAL_GROUP, _COLLISION_GROUP = "2", "3"


def robot_mjcf(
    robot: UrdfRobot,
    *,
    floating: bool = False,
    timestep: float = 0.002,
    integrator: str = "implicitfast",
    inertials: Mapping[str, UrdfInertial | None] | None = None,
    excluded: Sequence[tuple[str, str]] = (),
) -> str:
    """MuJoCo XML of a robot.

    Args:
        robot: The robot.
        floating: Whether the root link moves freely.
        timestep: Engine step [s].
        integrator: Integrator of the engine, as MJCF names it.
        inertials: Inertias that replace those of some links, by name; ``None`` leaves one out.
        excluded: Further pairs of links that never touch, besides neighbours.
    """
    writer = _Writer(robot=robot, floating=floating, inertials=inertials or {})
    return writer.text(timestep, integrator, excluded)


def geometry_mjcf(robot: UrdfRobot) -> str:
    """MuJoCo XML in which every link is a body of its own at the origin, weighed by its shapes.

    Points and inertias of the geometry are read off its compiled model; geoms stand in the order
    of the shapes. Collision shapes count where a link has some, else visual ones; the density is
    1000 kg/m^3. Meshes touch and weigh nothing, for they may be open or flat.
    """
    root = ElementTree.Element("mujoco", model=robot.name)
    ElementTree.SubElement(root, "compiler", angle="radian", inertiafromgeom="true")
    writer = _Writer(robot=robot, floating=False, inertials={})
    asset = ElementTree.SubElement(root, "asset")
    writer.meshes(asset)
    for mesh in asset:
        mesh.set("inertia", "shell")
    world = ElementTree.SubElement(root, "worldbody")
    for link in robot.links:
        body = ElementTree.SubElement(world, "body", name=f"link {link.name}")
        solid = any(not shape.visual for shape in link.shapes)
        for shape in link.shapes:
            geom = writer.geom(body, shape)
            geom.attrib |= {"contype": "0", "conaffinity": "0"}
            hollow = shape.kind == "mesh" or (shape.visual and solid)
            geom.set(*(("mass", "0") if hollow else ("density", "1000")))
    return _text(root)


def static_links(robot: UrdfRobot, *, floating: bool = False) -> frozenset[str]:
    """Links that cannot move: the root and what hangs from it by fixed joints."""
    return frozenset(welded_groups(robot, floating=floating)[0])


def welded_groups(robot: UrdfRobot, *, floating: bool = False) -> tuple[tuple[str, ...], ...]:
    """Links that move as one, the world's own group (empty if the robot floats) first."""
    groups: dict[str, list[str]] = {}
    home: dict[str, str] = {}
    for link in robot.links:
        joint = robot.joint_above(link.name)
        fixed = joint is not None and joint.kind == "fixed"
        home[link.name] = home[joint.parent] if joint is not None and fixed else link.name
        groups.setdefault(home[link.name], []).append(link.name)
    first, *others = (tuple(group) for group in groups.values())
    return ((), first, *others) if floating and robot.root.name != WORLD else (first, *others)


@dataclass(kw_only=True)
class _Writer:
    """Writes one robot."""

    robot: UrdfRobot
    floating: bool
    inertials: Mapping[str, UrdfInertial | None]
    _mesh_names: dict[tuple[str, tuple[float, ...], bool], str] = field(
        default_factory=dict[tuple[str, tuple[float, ...], bool], str]
    )

    def text(self, timestep: float, integrator: str, excluded: Sequence[tuple[str, str]]) -> str:
        root = ElementTree.Element("mujoco", model=self.robot.name)
        ElementTree.SubElement(root, "compiler", angle="radian")
        ElementTree.SubElement(root, "option", timestep=_numbers([timestep]), integrator=integrator)
        self._defaults(root)
        self._custom(root)
        if self.robot.assets:
            self.meshes(ElementTree.SubElement(root, "asset"))
        bodies: dict[str, Element] = {}
        world = ElementTree.SubElement(root, "worldbody")
        for link in self.robot.links:
            joint = self.robot.joint_above(link.name)
            parent = world if joint is None else bodies[joint.parent]
            bodies[link.name] = self._body(parent, link, joint, top=parent is world)
        self._exclusions(root, excluded)
        self._equalities(root)
        return _text(root)

    def _defaults(self, root: Element) -> None:
        if not any(shape.visual for link in self.robot.links for shape in link.shapes):
            return
        outer = ElementTree.SubElement(root, "default")
        inner = ElementTree.SubElement(outer, "default", {"class": "visual"})
        off = {"contype": "0", "conaffinity": "0", "group": _VISUAL_GROUP, "mass": "0"}
        ElementTree.SubElement(inner, "geom", off)

    def _custom(self, root: Element) -> None:
        """What MJCF has no place for: speed limits, and which joints are driven how."""
        custom = ElementTree.SubElement(root, "custom")
        for joint in self.robot.joints:
            if joint.limit.velocity is not None:
                name, data = f"velocity_limit:{joint.name}", _numbers([joint.limit.velocity])
                ElementTree.SubElement(custom, "numeric", name=name, data=data)
        for actuator in self.robot.actuators:
            data = f"{actuator.name} {actuator.interface}".strip()
            ElementTree.SubElement(custom, "text", name=f"driven:{actuator.joint}", data=data)
        if not len(custom):
            root.remove(custom)

    # ---- shapes ---------------------------------------------------------------------------

    def meshes(self, asset: Element) -> None:
        """Add a mesh per file, scale and use."""
        for link in self.robot.links:
            for shape in link.shapes:
                key = (shape.mesh, shape.size, shape.visual)
                if shape.kind == "mesh" and key not in self._mesh_names:
                    self._mesh_names[key] = self._mesh(asset, shape)

    def _mesh(self, asset: Element, shape: UrdfShape) -> str:
        name = PurePosixPath(shape.mesh).stem + ("_visual" if shape.visual else "")
        taken, base, count = set(self._mesh_names.values()), name, 1
        while name in taken:
            count += 1
            name = f"{base}_{count}"
        element = ElementTree.SubElement(asset, "mesh", name=name, file=shape.mesh)
        if shape.size != (1.0, 1.0, 1.0):
            element.set("scale", _numbers(shape.size))
        element.set("inertia", "shell" if shape.visual else "convex")
        return name

    def geom(self, body: Element, shape: UrdfShape) -> Element:
        """Add a geom at the shape's pose."""
        geom = ElementTree.SubElement(body, "geom", type=shape.kind)
        if shape.kind == "mesh":
            geom.set("mesh", self._mesh_names[shape.mesh, shape.size, shape.visual])
        else:
            geom.set("size", _numbers(_half_sizes(shape)))
        _place(geom, shape.pose.position, shape.pose.quaternion)
        return geom

    # ---- bodies ---------------------------------------------------------------------------

    def _body(
        self, parent: Element, link: UrdfLink, joint: UrdfJoint | None, *, top: bool
    ) -> Element:
        if joint is None and link.name == WORLD:
            self._geoms(parent, link, None)
            return parent
        body = ElementTree.SubElement(parent, "body", name=link.name)
        if joint is not None:
            _place(body, joint.pose.position, joint.pose.quaternion)
            self._joints(body, joint, top=parent.tag == "worldbody")
        elif self.floating and top:
            ElementTree.SubElement(body, "freejoint", name=f"{link.name}_free")
        inertial = self.inertials.get(link.name, link.inertial)
        if inertial is not None:
            element = ElementTree.SubElement(body, "inertial", pos=_numbers(inertial.com))
            matrix = inertial.inertia
            full = [matrix[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
            element.set("mass", _numbers([inertial.mass]))
            element.set("fullinertia", _numbers(full))
        self._geoms(body, link, inertial)
        return body

    def _geoms(self, body: Element, link: UrdfLink, inertial: UrdfInertial | None) -> None:
        both = any(shape.visual for shape in link.shapes)
        count = {True: 0, False: 0}
        for shape in link.shapes:
            geom = self.geom(body, shape)
            geom.set(
                "name",
                f"{link.name}_{'visual' if shape.visual else 'collision'}{count[shape.visual]}",
            )
            count[shape.visual] += 1
            if shape.visual:
                geom.set("class", "visual")
            elif both:
                geom.set("group", _COLLISION_GROUP)
            if not shape.visual and inertial is None:
                geom.set("mass", "0")
            if shape.rgba is not None:
                geom.set("rgba", _numbers(shape.rgba))

    def _joints(self, body: Element, joint: UrdfJoint, *, top: bool) -> None:
        if joint.kind == "fixed":
            return
        if joint.kind == "floating":
            self._floating(body, joint, top=top)
        elif joint.kind == "planar":
            x, y = _across(joint.axis)
            for suffix, axis in (("x", x), ("y", y)):
                self._dof(body, joint, f"{joint.name}_{suffix}", "slide", axis)
            self._dof(body, joint, f"{joint.name}_angle", "hinge", joint.axis)
        else:
            kind = "slide" if joint.kind == "prismatic" else "hinge"
            element = self._dof(body, joint, joint.name, kind, joint.axis)
            limit = joint.limit
            if limit.lower is not None and limit.upper is not None:
                element.set("range", _numbers([limit.lower, limit.upper]))
            if limit.effort is not None:
                element.set("actuatorfrcrange", _numbers([-limit.effort, limit.effort]))

    def _floating(self, body: Element, joint: UrdfJoint, *, top: bool) -> None:
        if top:
            ElementTree.SubElement(body, "freejoint", name=joint.name)
            return
        for suffix, axis in zip("xyz", np.eye(3), strict=True):
            self._dof(body, joint, f"{joint.name}_{suffix}", "slide", axis)
        self._dof(body, joint, f"{joint.name}_ball", "ball", None)

    def _dof(
        self, body: Element, joint: UrdfJoint, name: str, kind: str, axis: ArrayLike | None
    ) -> Element:
        element = ElementTree.SubElement(body, "joint", name=name, type=kind)
        if axis is not None:
            element.set("axis", _numbers(axis))
        if joint.damping:
            element.set("damping", _numbers([joint.damping]))
        if joint.friction:
            element.set("frictionloss", _numbers([joint.friction]))
        return element

    # ---- contact and equality ---------------------------------------------------------------

    def _exclusions(self, root: Element, further: Sequence[tuple[str, str]]) -> None:
        """Neighbours never touch; MuJoCo's own rule spares those of links that cannot move."""
        touching = {
            link.name for link in self.robot.links if any(not s.visual for s in link.shapes)
        } - {WORLD}
        static, *groups = welded_groups(self.robot, floating=self.floating)
        pairs = [
            (still, name)
            for group in groups
            if self._hangs_from(group[0], static)
            for still in static
            for name in group
            if still in touching and name in touching
        ]
        pairs += [pair for pair in further if pair not in pairs]
        if not pairs:
            return
        contact = ElementTree.SubElement(root, "contact")
        for first, second in pairs:
            ElementTree.SubElement(contact, "exclude", body1=first, body2=second)

    def _hangs_from(self, link: str, static: Collection[str]) -> bool:
        joint = self.robot.joint_above(link)
        return joint is not None and joint.kind != "floating" and joint.parent in static

    def _equalities(self, root: Element) -> None:
        followers = [joint for joint in self.robot.joints if joint.mimic is not None]
        if not followers:
            return
        equality = ElementTree.SubElement(root, "equality")
        for joint in followers:
            assert joint.mimic is not None
            ElementTree.SubElement(
                equality,
                "joint",
                name=f"{joint.name}_mimics_{joint.mimic.joint}",
                joint1=joint.name,
                joint2=joint.mimic.joint,
                polycoef=_numbers([joint.mimic.offset, joint.mimic.multiplier, 0, 0, 0]),
            )


def _half_sizes(shape: UrdfShape) -> tuple[float, ...]:
    if shape.kind == "box":
        return tuple(0.5 * extent for extent in shape.size)
    if shape.kind == "sphere":
        return shape.size
    radius, length = shape.size
    return (radius, 0.5 * length)


def _across(axis: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Two directions that make a right-handed frame with the axis of a planar joint."""
    z = np.asarray(axis, dtype=np.float64)
    nearest = np.eye(3)[int(np.argmin(np.abs(z)))]
    y = np.cross(z, nearest)
    y /= np.linalg.norm(y)
    return np.cross(y, z), y


def _place(element: Element, position: ArrayLike, quaternion: ArrayLike) -> None:
    quat = np.asarray(quaternion, dtype=np.float64)
    if np.any(np.asarray(position)):
        element.set("pos", _numbers(position))
    if not np.allclose(quat_to_matrix(quat), np.eye(3), rtol=0, atol=1e-15):
        element.set("quat", _numbers(quat))


def _numbers(values: ArrayLike) -> str:
    """Shortest text that gives the same numbers back."""
    plain = (float(value) + 0.0 for value in np.asarray(values, dtype=np.float64).ravel())
    return " ".join(repr(int(v)) if v.is_integer() and abs(v) < 1e15 else repr(v) for v in plain)


def _text(root: Element) -> str:
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"
