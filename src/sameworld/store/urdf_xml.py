"""The text of a robot description into elements and numbers, with errors that name the place."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

from sameworld.core.errors import SceneError
from sameworld.maths.rotations import rpy_to_quat
from sameworld.store.urdf_robot import UrdfPose

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["local", "need", "number", "parse_robot_xml", "pose_of", "vector"]

_LARGEST = 16 * 2**20
_DEPTH = 30
_HUGE = 1e20
_MOST_PREFIXES = 20
_PREFIX = re.compile(rb"[<\s/]([A-Za-z_][\w-]*):[A-Za-z_]")
_ROOT = re.compile(rb"<robot(?=[\s>])")
_MOST_ELEMENTS = 200_000
_XACRO = (
    "is a xacro template, not a robot description. Expand it first: 'xacro {0} > robot.urdf' "
    "(pip install xacro), then read robot.urdf."
)


def parse_robot_xml(content: bytes, where: str) -> Element:
    """Parse bytes as a robot description, refusing what could harm.

    Args:
        content: The file.
        where: Its name, for errors.

    Raises:
        SceneError: No text, document types or entities, not well-formed, absurdly large or deep,
            a xacro template, or another kind of document.
    """
    if len(content) > _LARGEST:
        raise SceneError(f"'{where}' has {len(content)} bytes; the limit is {_LARGEST}.")
    if not content.strip(b"\xef\xbb\xbf \t\r\n"):
        raise SceneError(f"'{where}' is empty; it must hold a URDF <robot>.")
    if where.endswith(".xacro"):
        raise SceneError(f"'{where}' " + _XACRO.format(where))
    try:
        root = fromstring(_declared(content), forbid_dtd=True)
    except DefusedXmlException as cause:
        raise SceneError(
            f"'{where}' declares a document type or entities ({type(cause).__name__}), which URDF "
            "never needs. Remove the <!DOCTYPE ...> part."
        ) from cause
    except (ParseError, ValueError, LookupError, RecursionError) as cause:
        raise SceneError(f"'{where}' is not well-formed XML: {cause}.") from cause
    _check_size(root, where)
    if root.tag != "robot":
        raise SceneError(f"'{where}' begins with <{root.tag}>; a URDF begins with <robot>.")
    if any("xacro" in element.tag for element in root.iter()):
        raise SceneError(f"'{where}' " + _XACRO.format(where))
    _check_expanded(root, where)
    return root


def _declared(content: bytes) -> bytes:
    """The text with prefixes declared that other tools write without doing so (``drake:``)."""
    used = set(_PREFIX.findall(content)) - {b"xml", b"xmlns"}
    lacking = sorted(p for p in used if b"xmlns:" + p not in content)
    start = _ROOT.search(content)
    if start is None or not lacking or len(lacking) > _MOST_PREFIXES:
        return content
    names = b"".join(b' xmlns:%s="urn:%s"' % (p, p) for p in lacking)
    return content[: start.end()] + names + content[start.end() :]


def _check_size(root: Element, where: str) -> None:
    level, depth, count = [root], 0, 1
    while level:
        depth += 1
        if depth > _DEPTH:
            raise SceneError(f"'{where}' nests elements more than {_DEPTH} deep.")
        level = [child for element in level for child in element]
        count += len(level)
        if count > _MOST_ELEMENTS:
            raise SceneError(f"'{where}' has more than {_MOST_ELEMENTS} elements.")


def _check_expanded(root: Element, where: str) -> None:
    for element in root.iter():
        for key, value in element.attrib.items():
            if "${" in value or "$(" in value:
                raise SceneError(
                    f"'{where}': <{element.tag} {key}='{value:.60}'> holds a placeholder: it "
                    + _XACRO.format(where)
                )


def local(text: str) -> str:
    """A name usable in addresses, which hold no ``.``, ``+``, ``:`` or spaces."""
    return "_".join(text.split()).translate(str.maketrans({".": "_", "+": "_", ":": "_"}))


def need(element: Element, key: str, where: str) -> str:
    """An attribute that must be there and not empty.

    Raises:
        SceneError: It is missing.
    """
    value = element.get(key, "").strip()
    if not value:
        raise SceneError(f"{where}: <{element.tag}> has no {key}='...'.")
    return value


def number(element: Element | None, key: str, where: str) -> float | None:
    """A finite number, or ``None`` where the element or attribute is missing.

    Raises:
        SceneError: It is no finite number.
    """
    if element is None or key not in element.attrib:
        return None
    return float(vector(element, key, where, 1)[0])


def vector(
    element: Element | None, key: str, where: str, size: int, default: tuple[float, ...] = ()
) -> np.ndarray:
    """Finite numbers [size]; ``default`` where the element or attribute is missing.

    Raises:
        SceneError: Wrong count, or not finite.
    """
    if element is None or key not in element.attrib:
        return np.array(default, dtype=np.float64)
    text = element.attrib[key]
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        raise SceneError(f"{where}: <{element.tag} {key}='{text:.60}'> is not numeric.") from None
    if len(values) != size:
        raise SceneError(
            f"{where}: <{element.tag} {key}='{text:.60}'> holds {len(values)} numbers, not {size}."
        )
    if not all(math.isfinite(value) for value in values):
        raise SceneError(f"{where}: <{element.tag} {key}='{text:.60}'> is not finite.")
    if any(abs(value) > _HUGE for value in values):
        raise SceneError(f"{where}: <{element.tag} {key}='{text:.60}'> is absurdly large.")
    return np.array(values)


def pose_of(parent: Element, where: str) -> UrdfPose:
    """``<origin xyz rpy>`` of an element; the identity if it has none."""
    origin = parent.find("origin")
    zero = (0.0, 0.0, 0.0)
    return UrdfPose(
        position=vector(origin, "xyz", where, 3, zero),
        quaternion=rpy_to_quat(vector(origin, "rpy", where, 3, zero)),
    )
