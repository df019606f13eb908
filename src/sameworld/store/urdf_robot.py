"""What a robot description says, as records: links, joints, geometry, inertia."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from sameworld.core.arrays import Array

__all__ = [
    "JointKind",
    "ShapeKind",
    "UrdfActuator",
    "UrdfInertial",
    "UrdfJoint",
    "UrdfLimit",
    "UrdfLink",
    "UrdfMimic",
    "UrdfPose",
    "UrdfRobot",
    "UrdfShape",
]

JointKind = Literal["revolute", "continuous", "prismatic", "fixed", "floating", "planar"]
ShapeKind = Literal["box", "cylinder", "sphere", "capsule", "mesh"]


@dataclass(frozen=True, kw_only=True, eq=False)
class UrdfPose:
    """A pose in the parent's frame.

    Attributes:
        position: Position [3] m.
        quaternion: Orientation wxyz [4].
    """

    position: Array
    quaternion: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class UrdfShape:
    """One ``<visual>`` or ``<collision>``.

    Attributes:
        kind: Shape.
        size: Full extents of a box [3] m; radius and length of a cylinder or capsule [2] m; radius
            of a sphere [1] m; scale factors of a mesh [3].
        pose: Pose in the link frame.
        visual: Whether it is only to be seen.
        mesh: Name of the mesh among the robot's assets, empty for other shapes.
        rgba: Colour, ``None`` if none is given.
    """

    kind: ShapeKind
    size: tuple[float, ...]
    pose: UrdfPose
    visual: bool
    mesh: str = ""
    rgba: tuple[float, float, float, float] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class UrdfInertial:
    """``<inertial>`` as written, right or wrong.

    Attributes:
        mass: Mass [kg].
        com: Centre of mass in the link frame [3] m.
        inertia: Inertia about it, axes of the link frame [3, 3] kg m^2.
    """

    mass: float
    com: Array
    inertia: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class UrdfLink:
    """A link.

    Attributes:
        name: Name in the scene.
        inertial: Its inertia, ``None`` if it has none.
        shapes: Its visuals and collisions.
        incomplete: Whether visuals were left out, so that the shapes may not be all of it.
    """

    name: str
    inertial: UrdfInertial | None = None
    shapes: tuple[UrdfShape, ...] = ()
    incomplete: bool = False


@dataclass(frozen=True, kw_only=True)
class UrdfLimit:
    """``<limit>``: radians or metres, newton metres or newtons.

    Attributes:
        lower: Lower end of the range, ``None`` without a range.
        upper: Upper end of the range, ``None`` without a range.
        effort: Largest force, ``None`` if none is given.
        velocity: Largest speed, ``None`` if none is given.
    """

    lower: float | None = None
    upper: float | None = None
    effort: float | None = None
    velocity: float | None = None


@dataclass(frozen=True, kw_only=True)
class UrdfMimic:
    """``<mimic>``: position = multiplier * position of ``joint`` + offset."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class UrdfJoint:
    """A joint.

    Attributes:
        name: Name in the scene.
        kind: Type.
        parent: Parent link.
        child: Child link.
        pose: Pose of the child in the parent's frame at position 0.
        axis: Unit axis in the child's frame [3].
        limit: Limits.
        damping: Viscous friction [N m s/rad or N s/m].
        friction: Coulomb friction [N m or N].
        mimic: What it follows, if anything.
    """

    name: str
    kind: JointKind
    parent: str
    child: str
    pose: UrdfPose
    axis: Array
    limit: UrdfLimit = UrdfLimit()
    damping: float = 0.0
    friction: float = 0.0
    mimic: UrdfMimic | None = None


@dataclass(frozen=True, kw_only=True)
class UrdfActuator:
    """What ``<transmission>`` or ``<ros2_control>`` says of a joint.

    Attributes:
        joint: Joint it moves.
        name: Name of the actuator; the joint's if none is given.
        interface: ``position``, ``velocity``, ``effort`` or empty.
        reduction: Mechanical reduction.
    """

    joint: str
    name: str
    interface: str = ""
    reduction: float = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class UrdfRobot:
    """A robot description.

    Attributes:
        name: Robot name.
        links: Links, parents before children; the first is the root.
        joints: Joints, in the order of their child links.
        actuators: Actuators by the joints they move.
        assets: Mesh files by the names that shapes use.
        notes: What was left out or changed on reading, one sentence each.
    """

    name: str
    links: tuple[UrdfLink, ...]
    joints: tuple[UrdfJoint, ...] = ()
    actuators: tuple[UrdfActuator, ...] = ()
    assets: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    notes: tuple[str, ...] = ()

    @property
    def root(self) -> UrdfLink:
        """The link that no joint moves."""
        return self.links[0]

    def joint_above(self, link: str) -> UrdfJoint | None:
        """The joint whose child the link is; ``None`` for the root."""
        return self._above.get(link)

    @cached_property
    def _above(self) -> dict[str, UrdfJoint]:
        return {joint.child: joint for joint in self.joints}
