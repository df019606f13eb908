"""Links and joints as a tree, parents first."""

from __future__ import annotations

from collections.abc import Sequence

from sameworld.core.errors import SceneError, closest, listed
from sameworld.store.urdf_robot import UrdfJoint, UrdfLink

__all__ = ["WORLD", "ordered"]

#: A link of this name is the world itself.
WORLD = "world"
#: Longest chain of links; deeper XML is refused when a scene is read.
_LONGEST = 150


def ordered(
    links: Sequence[UrdfLink], joints: Sequence[UrdfJoint], where: str
) -> tuple[tuple[UrdfLink, ...], tuple[UrdfJoint, ...]]:
    """Sort links so that parents come before children, and joints by their child links.

    A joint may name the link ``world`` without defining it.

    Raises:
        SceneError: No link, unknown links, several roots, a link with two parents, or a circle.
    """
    if not links:
        raise SceneError(f"'{where}' has no <link>.")
    links = _with_world(links, joints)
    named = {link.name: link for link in links}
    above: dict[str, UrdfJoint] = {}
    below: dict[str, list[UrdfJoint]] = {name: [] for name in named}
    for joint in joints:
        for end in (joint.parent, joint.child):
            if end not in named:
                raise SceneError(
                    f"joint '{joint.name}' names the link '{end}', which does not exist. Links: "
                    f"{listed(named)}.{closest(end, named)}"
                )
        if joint.child in above:
            raise SceneError(
                f"link '{joint.child}' is the child of '{above[joint.child].name}' and of "
                f"'{joint.name}'. URDF is a tree: close loops by an <equality> in the MJCF."
            )
        if joint.child == WORLD:
            raise SceneError(
                f"link '{WORLD}' is the child of joint '{joint.name}'; it stands for the world and "
                "cannot move. Rename it."
            )
        above[joint.child] = joint
        below[joint.parent].append(joint)
    return _walked(named, above, below, where)


def _with_world(links: Sequence[UrdfLink], joints: Sequence[UrdfJoint]) -> Sequence[UrdfLink]:
    if any(link.name == WORLD for link in links):
        return links
    if any(joint.parent == WORLD for joint in joints):
        return (UrdfLink(name=WORLD), *links)
    return links


def _walked(
    named: dict[str, UrdfLink],
    above: dict[str, UrdfJoint],
    below: dict[str, list[UrdfJoint]],
    where: str,
) -> tuple[tuple[UrdfLink, ...], tuple[UrdfJoint, ...]]:
    roots = [name for name in named if name not in above]
    if len(roots) > 1:
        raise SceneError(
            f"'{where}' has {len(roots)} links without a joint above them: {listed(roots)}. A "
            "robot has one root; join the others by fixed joints or remove them."
        )
    order, joints = list[UrdfLink](), list[UrdfJoint]()
    stack, depth = roots[:1], dict.fromkeys(roots, 1)
    while stack:
        name = stack.pop()
        if depth[name] > _LONGEST:
            raise SceneError(f"'{where}' has a chain of more than {_LONGEST} links.")
        depth |= {joint.child: depth[name] + 1 for joint in below[name]}
        order.append(named[name])
        if name in above:
            joints.append(above[name])
        stack += [joint.child for joint in reversed(below[name])]
    lost = sorted(set(named) - {link.name for link in order})
    if lost:
        raise SceneError(f"'{where}': the links {listed(lost)} hang from each other in a circle.")
    return tuple(order), tuple(joints)
