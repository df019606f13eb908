"""URDF, the robot description of ROS, as records.

Nothing is computed and nothing is believed here: numbers are read as written, and what they are
worth is judged where a scene is made of them (``sameworld.worlds.explicit.urdf``).

Source: the URDF XML specification, http://wiki.ros.org/urdf/XML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

import numpy as np

from sameworld.core.errors import SceneError, StoreError, closest, listed
from sameworld.maths.inertia import rotated
from sameworld.store.files import read_bytes
from sameworld.store.urdf_actuators import actuators_of
from sameworld.store.urdf_meshes import MeshReader
from sameworld.store.urdf_robot import (
    JointKind,
    UrdfInertial,
    UrdfJoint,
    UrdfLimit,
    UrdfLink,
    UrdfMimic,
    UrdfRobot,
)
from sameworld.store.urdf_shapes import materials_of, shapes_of
from sameworld.store.urdf_tree import WORLD, ordered
from sameworld.store.urdf_xml import local, need, number, parse_robot_xml, pose_of, vector

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["parse_urdf", "read_urdf"]

_KNOWN = {"link", "joint", "material", "transmission", "ros2_control"}
_TEXT_LIMIT = 1 << 25
#: Limits of this size [rad or m] mean that there are none.
_ENDLESS = 1e4


def read_urdf(
    path: str | Path,
    *,
    roots: Sequence[str | Path] = (),
    packages: Mapping[str, str | Path] | None = None,
    drop_visuals: bool = False,
    limit: int = 1 << 30,
) -> UrdfRobot:
    """Read a URDF file with its meshes.

    Args:
        path: The file.
        roots: Folders, besides the file's own, that meshes and packages may be read from.
        packages: Folder of each package by name, where it cannot be found under the roots.
        drop_visuals: Leave out ``<visual>`` elements and their meshes.
        limit: Largest total size of the meshes [bytes].

    Raises:
        SceneError: The description is hostile, malformed or names files that cannot be used.
        StoreError: A file cannot be read.
    """
    path = Path(path)
    if not path.is_file():
        raise StoreError(f"There is no file '{path}'.")
    for root in roots:
        if not Path(root).is_dir():
            raise StoreError(f"The root '{root}' is no folder.")
    reader = MeshReader(
        folder=path.resolve().parent,
        roots=tuple(Path(root) for root in roots),
        packages={name: Path(folder) for name, folder in (packages or {}).items()},
        limit=limit,
    )
    content = read_bytes(path, limit=_TEXT_LIMIT)
    return parse_urdf(content, path.name, reader, drop_visuals=drop_visuals)


def parse_urdf(
    content: str | bytes,
    where: str = "robot.urdf",
    reader: MeshReader | None = None,
    *,
    drop_visuals: bool = False,
) -> UrdfRobot:
    """Turn the text of a URDF into records.

    Args:
        content: The text.
        where: Name of its source, for errors.
        reader: Gives access to meshes; without one a description with meshes is refused.
        drop_visuals: Leave out ``<visual>`` elements and their meshes.

    Raises:
        SceneError: The description is hostile, malformed, no tree, or names unusable files.
    """
    data = content.encode() if isinstance(content, str) else content
    root = parse_robot_xml(data, where)
    parsing = _Parsing(where=where, reader=reader, drop_visuals=drop_visuals)
    return parsing.robot(root)


@dataclass(kw_only=True)
class _Parsing:
    """One description being read; gathers notes."""

    where: str
    reader: MeshReader | None
    drop_visuals: bool
    notes: list[str] = field(default_factory=list[str])

    def robot(self, root: Element) -> UrdfRobot:
        colours = materials_of(root, self.where)
        links = [self._link(element, colours) for element in root.findall("link")]
        joints = [j for e in root.findall("joint") if (j := self._joint(e)) is not None]
        self._unique("link", (link.name for link in links))
        self._unique("joint", (joint.name for joint in joints))
        if WORLD in {joint.parent for joint in joints} - {link.name for link in links}:
            self.notes.append(f"The link '{WORLD}' is not defined; it is read as the world itself.")
        links, joints = ordered(links, joints, self.where)
        self._check_mimics(joints)
        names = {joint.name for joint in joints}
        actuators, remarks = actuators_of(root, names, self.where)
        self.notes += remarks
        self._note_ignored(root)
        return UrdfRobot(
            name=local(root.get("name", "")) or "robot",
            links=links,
            joints=joints,
            actuators=actuators,
            assets={} if self.reader is None else dict(self.reader.assets),
            notes=tuple(self.notes),
        )

    def _unique(self, kind: str, names: Iterable[str]) -> None:
        twice = sorted(name for name, count in Counter(names).items() if count > 1)
        if twice:
            raise SceneError(
                f"'{self.where}' has more than one {kind} named {listed(twice)} (in names '.', "
                "'+', ':' and spaces are read as '_'). Rename them."
            )

    def _name(self, element: Element) -> str:
        given = need(element, "name", f"'{self.where}'")
        name = local(given)
        if name != given:
            self.notes.append(f"{element.tag} '{given}' is called '{name}' in the scene.")
        return name

    # ---- links ----------------------------------------------------------------------------

    def _link(self, element: Element, colours: Mapping[str, tuple[float, ...]]) -> UrdfLink:
        name = self._name(element)
        where = f"link '{name}'"
        shapes, remarks = shapes_of(
            element, colours, self.reader, where, drop_visuals=self.drop_visuals
        )
        self.notes += remarks
        return UrdfLink(
            name=name,
            inertial=self._inertial(element, where),
            shapes=shapes,
            incomplete=self.drop_visuals and element.find("visual") is not None,
        )

    def _inertial(self, link: Element, where: str) -> UrdfInertial | None:
        element = link.find("inertial")
        if element is None:
            return None
        mass = number(element.find("mass"), "value", where)
        tensor = element.find("inertia")
        if mass is None and tensor is None:
            return None
        if tensor is None:
            com = pose_of(element, where).position
            return UrdfInertial(mass=mass or 0.0, com=com, inertia=np.zeros((3, 3)))
        if mass is None:
            raise SceneError(f"{where}: <inertial> has no <mass value='...'/>.")
        xx, yy, zz = (self._moment(tensor, key, where) for key in ("ixx", "iyy", "izz"))
        xy, xz, yz = (number(tensor, key, where) or 0.0 for key in ("ixy", "ixz", "iyz"))
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        pose = pose_of(element, where)
        turned = rotated(matrix, pose.quaternion)
        return UrdfInertial(mass=mass, com=pose.position, inertia=0.5 * (turned + turned.T))

    def _moment(self, tensor: Element, key: str, where: str) -> float:
        value = number(tensor, key, where)
        if value is None:
            raise SceneError(f"{where}: <inertia> has no {key}='...'.")
        return value

    # ---- joints ---------------------------------------------------------------------------

    def _joint(self, element: Element) -> UrdfJoint | None:
        name = self._name(element)
        where = f"joint '{name}'"
        kind = need(element, "type", where)
        if kind not in get_args(JointKind):
            raise SceneError(
                f"{where} has type '{kind}'; URDF has {listed(get_args(JointKind))}."
                f"{closest(kind, cast('tuple[str, ...]', get_args(JointKind)))}"
            )
        parent, child = (self._end(element, end, where) for end in ("parent", "child"))
        dynamics = element.find("dynamics")
        damping = number(dynamics, "damping", where) or 0.0
        friction = number(dynamics, "friction", where) or 0.0
        if damping < 0 or friction < 0:
            raise SceneError(
                f"{where}: damping {damping:g} and friction {friction:g} must not be negative."
            )
        for tag in ("safety_controller", "calibration"):
            if element.find(tag) is not None:
                self.notes.append(f"{where}: <{tag}> is left out; it is not physics.")
        return UrdfJoint(
            name=name,
            kind=cast("JointKind", kind),
            parent=parent,
            child=child,
            pose=pose_of(element, where),
            axis=self._axis(element, kind, where),
            limit=self._limit(element, kind, where),
            damping=damping,
            friction=friction,
            mimic=self._mimic(element, where),
        )

    def _end(self, element: Element, end: str, where: str) -> str:
        found = element.find(end)
        if found is None:
            raise SceneError(f"{where} has no <{end} link='...'/>.")
        return local(need(found, "link", where))

    def _axis(self, element: Element, kind: str, where: str) -> np.ndarray:
        axis = vector(element.find("axis"), "xyz", where, 3, (1.0, 0.0, 0.0))
        length = float(np.linalg.norm(axis))
        if kind in ("fixed", "floating"):
            return np.array([1.0, 0.0, 0.0])
        if length < 1e-9:
            raise SceneError(f"{where}: <axis xyz='0 0 0'> has no direction.")
        return axis / length

    def _limit(self, element: Element, kind: str, where: str) -> UrdfLimit:
        found = element.find("limit")
        if kind in ("fixed", "floating"):
            return UrdfLimit()
        lower, upper = number(found, "lower", where), number(found, "upper", where)
        ranged = kind in ("revolute", "prismatic")
        if ranged and found is None:
            raise SceneError(
                f"{where} is {kind} and has no <limit>. Give lower, upper, effort and velocity"
                + (", or make it 'continuous'." if kind == "revolute" else ".")
            )
        if ranged:
            lower, upper = self._range(lower or 0.0, upper or 0.0, where)
        return UrdfLimit(
            lower=lower if ranged else None,
            upper=upper if ranged else None,
            effort=self._positive(found, "effort", where),
            velocity=self._positive(found, "velocity", where),
        )

    def _range(self, lower: float, upper: float, where: str) -> tuple[float | None, float | None]:
        if lower > upper:
            raise SceneError(f"{where}: lower limit {lower:g} is above upper limit {upper:g}.")
        if max(abs(lower), abs(upper)) >= _ENDLESS:
            self.notes.append(f"{where}: the range {lower:g} to {upper:g} is read as none.")
            return None, None
        if lower == upper:
            self.notes.append(
                f"{where}: lower = upper = {lower:g} is read as no range; a joint that cannot move "
                "is 'fixed'."
            )
            return None, None
        return lower, upper

    def _positive(self, limit: Element | None, key: str, where: str) -> float | None:
        value = number(limit, key, where)
        if value is None or value > 0:
            return value
        if value < 0:
            raise SceneError(f"{where}: <limit {key}='{value:g}'> must not be negative.")
        self.notes.append(f"{where}: {key} = 0 is read as not given.")
        return None

    def _mimic(self, element: Element, where: str) -> UrdfMimic | None:
        found = element.find("mimic")
        if found is None:
            return None
        multiplier = number(found, "multiplier", where)
        return UrdfMimic(
            joint=local(need(found, "joint", where)),
            multiplier=1.0 if multiplier is None else multiplier,
            offset=number(found, "offset", where) or 0.0,
        )

    def _check_mimics(self, joints: Iterable[UrdfJoint]) -> None:
        followed = {j.name: j.mimic.joint for j in joints if j.mimic is not None}
        scalar = [j.name for j in joints if j.kind in ("revolute", "continuous", "prismatic")]
        for name, leader in followed.items():
            if leader not in scalar or name not in scalar:
                raise SceneError(
                    f"joint '{name}' mimics '{leader}'; both must be revolute, continuous or "
                    f"prismatic joints. There are {listed(scalar)}.{closest(leader, scalar)}"
                )
            seen = {name}
            while leader in followed:
                if leader in seen:
                    raise SceneError(f"joint '{name}' mimics itself through {listed(seen)}.")
                seen.add(leader)
                leader = followed[leader]
            if leader in seen:
                raise SceneError(f"joint '{name}' mimics itself.")

    def _note_ignored(self, root: Element) -> None:
        tags = (str(child.tag).replace("{urn:", "").replace("}", ":") for child in root)
        ignored = Counter(tag for tag in tags if tag not in _KNOWN)
        if ignored:
            told = ", ".join(f"<{tag}> ({count})" for tag, count in sorted(ignored.items()))
            self.notes.append(f"Left out, because they are no part of URDF: {told}.")
