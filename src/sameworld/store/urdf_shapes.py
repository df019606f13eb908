"""``<visual>``, ``<collision>`` and ``<material>`` of a robot description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from sameworld.core.errors import SceneError, listed
from sameworld.store.urdf_meshes import MeshReader
from sameworld.store.urdf_robot import ShapeKind, UrdfShape
from sameworld.store.urdf_xml import need, pose_of, vector

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["materials_of", "shapes_of"]

#: Attributes that give the size of each shape, with their counts.
_SIZES: dict[str, tuple[tuple[str, int], ...]] = {
    "box": (("size", 3),),
    "cylinder": (("radius", 1), ("length", 1)),
    "capsule": (("radius", 1), ("length", 1)),
    "sphere": (("radius", 1),),
}


def materials_of(root: Element, where: str) -> dict[str, tuple[float, ...]]:
    """Colours [4] by the name of the material, wherever it is defined."""
    found: dict[str, tuple[float, ...]] = {}
    for material in root.iter("material"):
        colour = _colour(material, f"'{where}'")
        if colour is not None and material.get("name"):
            found.setdefault(material.get("name", ""), colour)
    return found


def shapes_of(
    link: Element,
    colours: Mapping[str, tuple[float, ...]],
    reader: MeshReader | None,
    where: str,
    *,
    drop_visuals: bool,
) -> tuple[tuple[UrdfShape, ...], tuple[str, ...]]:
    """Shapes of a link, and remarks on what was left out.

    Raises:
        SceneError: A shape is malformed or of unusable size, or a mesh cannot be used.
    """
    shapes: list[UrdfShape] = []
    for element in link:
        if element.tag not in ("visual", "collision"):
            continue
        if element.tag == "visual" and drop_visuals:
            continue
        shapes.append(_shape(element, colours, reader, f"{where}, <{element.tag}>"))
    textured = any(m.find("texture") is not None for m in link.iter("material"))
    remarks = (f"{where}: textures are left out.",) if textured else ()
    return tuple(shapes), remarks


def _shape(
    element: Element,
    colours: Mapping[str, tuple[float, ...]],
    reader: MeshReader | None,
    where: str,
) -> UrdfShape:
    geometry = element.find("geometry")
    inner = [] if geometry is None else list(geometry)
    if len(inner) != 1 or inner[0].tag not in (*_SIZES, "mesh"):
        raise SceneError(
            f"{where}: <geometry> must hold one of {listed((*_SIZES, 'mesh'))}, it holds "
            f"{listed(child.tag for child in inner)}."
        )
    shape = inner[0]
    mesh = ""
    if shape.tag == "mesh":
        mesh = _mesh(need(shape, "filename", where), reader, where)
    material = element.find("material")
    colour = None
    if material is not None:
        colour = _colour(material, where) or colours.get(material.get("name", ""))
    return UrdfShape(
        kind=cast("ShapeKind", shape.tag),
        size=_size(shape, where),
        pose=pose_of(element, where),
        visual=element.tag == "visual",
        mesh=mesh,
        rgba=cast("tuple[float, float, float, float] | None", colour),
    )


def _mesh(uri: str, reader: MeshReader | None, where: str) -> str:
    if reader is None:
        raise SceneError(f"{where} names the mesh '{uri:.80}', but no folder was given to read.")
    return reader.read(uri, where)


def _size(shape: Element, where: str) -> tuple[float, ...]:
    if shape.tag == "mesh":
        scale = tuple(float(v) for v in vector(shape, "scale", where, 3, (1.0, 1.0, 1.0)))
        if 0.0 in scale:
            raise SceneError(f"{where}: <mesh scale='{shape.get('scale')}'> has a zero.")
        return scale
    sizes: list[float] = []
    for key, count in _SIZES[shape.tag]:
        need(shape, key, where)
        sizes += [float(v) for v in vector(shape, key, where, count)]
    if min(sizes) <= 0:
        raise SceneError(f"{where}: <{shape.tag}> has size {sizes} m; it must be positive.")
    return tuple(sizes)


def _colour(material: Element, where: str) -> tuple[float, ...] | None:
    found = material.find("color")
    if found is None:
        return None
    values = vector(found, "rgba", where, 4, (0.5, 0.5, 0.5, 1.0))
    return tuple(min(1.0, max(0.0, float(v))) for v in values)
