"""The gate every MJCF text passes before MuJoCo sees it.

A scene may come from a stranger. Nothing in it may read the disk, load a library or exhaust the
memory of the machine that compiles it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import fromstring

from sameworld.core.errors import SceneError, closest, listed

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["checked_mjcf", "nested_files"]

_LARGEST_TEXT = 64 * 2**20
_LARGEST_COUNT = 100_000
_LARGEST_ARENA = 4 * 2**30
_LARGEST_SIZE = 10_000_000
_SUFFIXES = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50, "E": 2**60}
#: Elements whose file is MJCF itself and is checked in turn.
_NESTED = ("include", "model")


def checked_mjcf(text: str, assets: Mapping[str, bytes]) -> str:
    """Return the MJCF text unchanged if it is safe to compile.

    Args:
        text: MuJoCo XML.
        assets: The only files it may use, by relative name.

    Raises:
        SceneError: Entity declarations, malformed XML, a foreign root, plugins, a file that is
            absolute, leaves the scene or is not among the assets, nested includes in a circle, or
            sizes that would exhaust memory.
    """
    nested_files(text, assets)
    return text


def nested_files(text: str, assets: Mapping[str, bytes]) -> frozenset[str]:
    """Check the MJCF text like ``checked_mjcf`` and name the assets that are MJCF themselves."""
    return frozenset(_check_document(text, assets, "the MJCF", ()))


def _check_document(
    text: str, assets: Mapping[str, bytes], what: str, chain: tuple[str, ...]
) -> set[str]:
    root = _parsed(text, what)
    nested: set[str] = set()
    if root.tag != "mujoco" and not chain:  # the root of an included file may have any name
        raise SceneError(
            f"{what} has root <{root.tag}>; a scene is MuJoCo XML with root <mujoco>. Convert "
            "URDF first: scene_from_urdf(read_urdf('robot.urdf'))."
        )
    folders = _folders(root)
    for element in root.iter():
        _check_element(element, what)
        for attribute, file in element.attrib.items():
            if not attribute.startswith("file") or not file:
                continue
            name = _resolved(file, folders.get(element.tag, ""), assets, what, element.tag)
            if element.tag in _NESTED:
                nested |= {name, *_check_nested(name, assets, chain)}
    _check_counts(root, 1, what)
    return nested


def _parsed(text: str, what: str) -> Element:
    if len(text) > _LARGEST_TEXT:
        raise SceneError(f"{what} has {len(text)} characters; the limit is {_LARGEST_TEXT}.")
    try:
        return fromstring(text, forbid_dtd=True)
    except DefusedXmlException as cause:
        raise SceneError(
            f"{what} declares a DOCTYPE or entities, which MJCF never needs; remove them."
        ) from cause
    except ParseError as cause:
        raise SceneError(f"{what} is not well-formed XML: {cause}.") from cause
    except (ValueError, RecursionError) as cause:
        raise SceneError(f"{what} cannot be parsed: {cause}.") from cause


def _folders(root: Element) -> dict[str, str]:
    """Folder that the compiler options put before the files of each kind of element."""
    folders: dict[str, str] = {}
    for compiler in root.iter("compiler"):
        common = compiler.get("assetdir", "")
        meshes = compiler.get("meshdir", common)
        textures = compiler.get("texturedir", common)
        folders |= {"mesh": meshes, "skin": meshes, "hfield": meshes, "flexcomp": meshes}
        folders["texture"] = textures
        for option, value in compiler.attrib.items():
            if option.endswith("dir") and value:
                _check_inside(value, f"compiler {option}")
    return folders


def _check_element(element: Element, what: str) -> None:
    if element.tag in ("extension", "plugin"):
        raise SceneError(
            f"{what} uses <{element.tag}>: engine plugins load shared libraries and are not "
            "allowed in a scene. Remove it, or express it as a component."
        )
    for name, value in element.attrib.items():
        if name != "name" and any(part.lower().lstrip("+-") == "nan" for part in value.split()):
            raise SceneError(f"{what}: <{element.tag} {name}='{value:.80}'> holds NaN.")


def _check_inside(path: str, what: str) -> None:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or ":" in path:
        raise SceneError(
            f"{what} '{path}' leaves the scene. Use a relative name without '..' that is a key "
            "of Scene.assets."
        )


def _resolved(file: str, folder: str, assets: Mapping[str, bytes], what: str, tag: str) -> str:
    """Name of the asset that a file attribute means.

    MuJoCo looks for the full name first and for the bare file name otherwise.
    """
    _check_inside(file, f"{what}: <{tag}> file")
    full = str(PurePosixPath(folder) / file)
    bare = PurePosixPath(file).name
    for name in (full, file, bare):
        if name in assets:
            return name
    by_bare = [name for name in assets if PurePosixPath(name).name == bare]
    if by_bare:
        return by_bare[0]
    raise SceneError(
        f"{what}: <{tag}> uses file '{full}', which is not among the assets "
        f"{listed(sorted(assets))}.{closest(full, assets)}"
    )


def _check_nested(name: str, assets: Mapping[str, bytes], chain: tuple[str, ...]) -> set[str]:
    if name in chain:
        raise SceneError(f"Includes run in a circle: {' -> '.join((*chain, name))}.")
    try:
        text = assets[name].decode()
    except UnicodeDecodeError as cause:
        raise SceneError(f"Included asset '{name}' is not UTF-8 text.") from cause
    return _check_document(text, assets, f"asset '{name}'", (*chain, name))


def _check_counts(element: Element, copies: int, what: str) -> None:
    """Refuse what would expand to an absurd number of elements or bytes."""
    stack = [(element, copies)]
    while stack:
        node, factor = stack.pop()
        if node.tag in ("replicate", "composite", "flexcomp"):
            factor *= max(1, math.prod(_integers(node.get("count", "1"))))
        if factor > _LARGEST_COUNT:
            raise SceneError(
                f"{what}: <{node.tag}> expands to {factor} copies; the limit is {_LARGEST_COUNT}."
            )
        if node.tag == "size":
            _check_sizes(node, what)
        stack.extend((child, factor) for child in node)


def _check_sizes(node: Element, what: str) -> None:
    for name, value in node.attrib.items():
        limit = _LARGEST_ARENA if name == "memory" else _LARGEST_SIZE
        scale = _SUFFIXES.get(value[-1:].upper(), 1) if name == "memory" else 1
        sizes = _integers(value.rstrip("KMGTPEkmgtpe"))
        if any(size * scale > limit for size in sizes):
            raise SceneError(f"{what}: <size {name}='{value}'> exceeds the limit {limit}.")


def _integers(text: str) -> list[int]:
    try:
        return [int(float(part)) for part in text.split()]
    except (ValueError, OverflowError):
        return []  # MuJoCo reports what is not a number
