"""Actuators into the text of a scene."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from sameworld.core.errors import SceneError, listed
from sameworld.core.scene import Scene
from sameworld.stages.actuate.result import Drive
from sameworld.worlds.compiled.mjcf import nested_files

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["edited_mjcf"]

_JOINT_FIELDS = ("armature", "damping", "frictionloss")


def edited_mjcf(
    scene: Scene,
    drives: Sequence[Drive],
    *,
    removed: Collection[str],
    compensated: Collection[str],
    tag: str,
) -> str:
    """Text of the scene with actuators added and removed.

    Args:
        scene: The scene.
        drives: What to add.
        removed: Names of actuators to remove.
        compensated: Bodies that get ``gravcomp="1"``.
        tag: Element of the added actuators: ``motor``, ``position`` or ``velocity``.

    Raises:
        SceneError: What is to be edited does not stand in the text itself (it is included,
            attached or replicated), or something else needs a removed actuator.
    """
    if nested_files(scene.mjcf, scene.assets):
        raise SceneError(
            f"Scene '{scene.name}' includes or attaches other files. Merge them first: "
            "replace(scene, mjcf=build(scene).mjcf())."
        )
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(scene.mjcf, parser=parser)
    _remove(root, removed, scene.name)
    elements = _named(root, "joint")
    for drive in drives:
        changes = {field: getattr(drive, field) for field in _JOINT_FIELDS}
        changes = {field: value for field, value in changes.items() if value is not None}
        if changes:
            _set(_found(elements, drive.joint, "joint", scene.name), changes)
    bodies = _named(root, "body")
    for body in compensated:
        _set(_found(bodies, body, "body", scene.name), {"gravcomp": 1.0})
    _forget_controls(root)
    actuator = root.find("actuator")
    actuator = ElementTree.SubElement(root, "actuator") if actuator is None else actuator
    for drive in drives:
        actuator.append(_actuator(drive, tag))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _named(root: Element, tag: str) -> dict[str, Element]:
    return {
        element.get("name", ""): element
        for world in root.findall("worldbody")
        for element in world.iter(tag)
        if element.get("name")
    }


def _found(elements: Mapping[str, Element], name: str, kind: str, scene: str) -> Element:
    if name not in elements:
        raise SceneError(
            f"Scene '{scene}': {kind} '{name}' has no element of that name in the MJCF text "
            "(it is unnamed, or made by replication). Give it a name there."
        )
    return elements[name]


def _set(element: Element, values: Mapping[str, float]) -> None:
    for key, value in values.items():
        element.set(key, _number(value))


def _remove(root: Element, removed: Collection[str], scene: str) -> None:
    if not removed:
        return
    lost = set(removed)
    for section in root.findall("actuator"):
        for element in list(section):
            if element.get("name", "") in lost:
                section.remove(element)
                lost.discard(element.get("name", ""))
    if lost:
        raise SceneError(
            f"Scene '{scene}': the actuators {listed(sorted(lost))} have no element of that "
            "name in the MJCF text. Give them names there."
        )
    users = [
        element.get("name") or str(element.tag)
        for section in root.findall("sensor")
        for element in section
        if element.get("actuator") in removed
    ]
    if users:
        raise SceneError(
            f"Scene '{scene}': the sensors {listed(users)} measure actuators that would be "
            "removed. Remove the sensors first."
        )


def _forget_controls(root: Element) -> None:
    """Keyframes keep positions; their controls no longer fit."""
    for key in root.iter("key"):
        for field in ("ctrl", "act"):
            key.attrib.pop(field, None)


def _actuator(drive: Drive, tag: str) -> Element:
    values: dict[str, str] = {"name": drive.actuator, "joint": drive.joint, "gear": "1"}
    if tag == "position":
        values["kp"] = _number(drive.kp)
    if tag in ("position", "velocity"):
        values["kv"] = _number(drive.kv)
    values |= _range("ctrl", (drive.low, drive.high))
    values |= _range("force", (-drive.force, drive.force))
    return ElementTree.Element(tag, values)


def _range(kind: str, ends: Iterable[float]) -> dict[str, str]:
    low, high = ends
    if math.isfinite(low) and math.isfinite(high):
        return {f"{kind}limited": "true", f"{kind}range": f"{_number(low)} {_number(high)}"}
    return {f"{kind}limited": "false"}


def _number(value: float) -> str:
    value = float(f"{value:.9g}")
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
