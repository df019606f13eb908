"""Which files an MJCF text names, and how to read them all without leaving a folder.

MuJoCo joins ``meshdir`` or ``texturedir`` of ``<compiler>`` with the ``file`` of an element; an
included text may also name files relative to itself. Nothing outside the folder of the main XML
file is opened, whatever the XML asks for.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import ParseError, fromstring

from sameworld.core.errors import SceneError, StoreError
from sameworld.store.files import read_bytes

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["FolderReader", "Gathered", "asset_names", "gather", "parse_mjcf"]

_DEPTH = 200
_INCLUDE_DEPTH = 20


@dataclass(kw_only=True)
class FolderReader:
    """Reads regular files inside one folder, within a budget of bytes.

    Attributes:
        root: The folder, resolved.
        limit: Largest total size [bytes].
        spent: Bytes read so far.
    """

    root: Path
    limit: int
    spent: int = 0

    def read(self, name: str, asked_by: str) -> bytes:
        """Content of a file; ``asked_by`` names the asker in errors.

        Raises:
            SceneError: The name is not plain and relative, leaves the folder, or names nothing.
            StoreError: The budget is spent, or the disk fails.
        """
        path = self._inside(name, asked_by)
        if not path.is_file():
            raise SceneError(
                f"{asked_by} names the file '{name}', which is not in '{self.root}'. Copy it there."
            )
        size = path.stat().st_size
        if self.spent + size > self.limit:
            raise StoreError(
                f"{asked_by} names '{name}' of {size} bytes; with it more than the limit of "
                f"{self.limit} bytes would be read. Raise 'limit' if that is right."
            )
        self.spent += size
        return read_bytes(path, limit=self.limit)

    def holds(self, name: str, asked_by: str) -> bool:
        """Whether the name leads to a regular file in the folder."""
        return self._inside(name, asked_by).is_file()

    def _inside(self, name: str, asked_by: str) -> Path:
        if name.startswith("/") or any(c in name for c in "\\:\0"):
            raise SceneError(
                f"{asked_by} names the file {name!r}. Only relative names with '/' are read; copy "
                "the file beside the XML and name it, for example, 'assets/cube.stl'."
            )
        try:
            path = (self.root / name).resolve()
            path.exists()
        except (OSError, RuntimeError, ValueError) as cause:
            raise SceneError(
                f"{asked_by} names {name[:80]!r}, which is unusable: {cause}."
            ) from None
        if not path.is_relative_to(self.root):
            raise SceneError(
                f"{asked_by} names the file '{name}', which leaves the folder '{self.root}' (by "
                "'..' or a link). Nothing outside is read; copy the file into the folder."
            )
        return path


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """An MJCF file with everything it needs.

    Attributes:
        source: The text as written.
        merged: The text with includes merged in; ``source`` if there were none.
        assets: Contents by the name that the merged text leads to.
        includes: Contents of included files by name.
        model: Name of the model, empty if it has none.
    """

    source: str
    merged: str
    assets: Mapping[str, bytes]
    includes: Mapping[str, bytes]
    model: str


def gather(reader: FolderReader, name: str) -> Gathered:
    """Read an MJCF file with everything it includes and names.

    Args:
        reader: Gives access to the folder.
        name: Name of the XML file in that folder.

    Raises:
        SceneError: Not MJCF, entities or a document type in it, or a file outside the folder.
        StoreError: A file cannot be read, or all are larger than the limit.
    """
    content = reader.read(name, "The scene")
    root = parse_mjcf(content, name)
    source = content.decode("utf-8-sig")
    merger = _Merger(reader=reader)
    merger.merge(root, PurePosixPath(), name, 0)
    assets: dict[str, bytes] = {}
    _collect(root, reader, name, merger.homes, assets)
    merged = ElementTree.tostring(root, encoding="unicode") if merger.includes else source
    return Gathered(
        source=source,
        merged=merged,
        assets=assets,
        includes=merger.includes,
        model=root.get("model", ""),
    )


def parse_mjcf(content: bytes, where: str) -> Element:
    """Parse bytes as MJCF, refusing document types, entities and absurd nesting.

    Raises:
        SceneError: Not the well-formed XML of a ``<mujoco>`` document.
    """
    if not content.strip(b"\xef\xbb\xbf \t\r\n"):
        raise SceneError(f"'{where}' is empty; it must hold MuJoCo XML.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as cause:
        raise SceneError(
            f"'{where}' is not text (compiled .mjb files and archives are not read); it must hold "
            "MuJoCo XML."
        ) from cause
    try:
        root = fromstring(text, forbid_dtd=True)
    except DefusedXmlException as cause:
        raise SceneError(
            f"'{where}' declares a document type or entities ({type(cause).__name__}), which MJCF "
            "never needs. Remove the <!DOCTYPE ...> part."
        ) from cause
    except (ParseError, ValueError) as cause:
        raise SceneError(f"'{where}' is not well-formed XML: {cause}.") from cause
    if _deeper_than(root, _DEPTH):
        raise SceneError(f"'{where}' nests elements more than {_DEPTH} deep.")
    if root.tag not in ("mujoco", "mujocoinclude"):
        urdf = " It is a robot description: read it by read_urdf." if root.tag == "robot" else ""
        raise SceneError(
            f"'{where}' begins with <{root.tag}>; MuJoCo XML begins with <mujoco>.{urdf}"
        )
    return root


def asset_names(root: Element) -> tuple[str, ...]:
    """Names of the files that a text leads to, not counting those its includes name."""
    folders = _Folders.of(root)
    names = [folders.join(e, value) for e, _, value in _file_attributes(root)]
    names += [posixpath.normpath(e.get("file", "")) for e in root.iter("include")]
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, kw_only=True)
class _Folders:
    mesh: str
    texture: str
    strip: bool

    @classmethod
    def of(cls, root: Element) -> _Folders:
        found: dict[str, str] = {}
        for compiler in root.iter("compiler"):
            found |= compiler.attrib
        both = found.get("assetdir", "")
        return cls(
            mesh=found.get("meshdir", both),
            texture=found.get("texturedir", both),
            strip=found.get("strippath") == "true",
        )

    def join(self, element: Element, value: str, home: str = "") -> str:
        """The name that ``value`` leads to, ``home`` being the folder of an included text."""
        folder = {"texture": self.texture, "model": ""}.get(element.tag, self.mesh)
        value = value.replace("\\", "/").rpartition("/")[2] if self.strip else value
        if value.startswith("/"):
            return value
        return posixpath.normpath(posixpath.join(folder, home, value))


def _file_attributes(root: Element) -> Iterator[tuple[Element, str, str]]:
    for element in root.iter():
        if element.tag != "include":
            for key, value in element.attrib.items():
                if value and (key == "file" or (element.tag == "texture" and key[:4] == "file")):
                    yield element, key, value


@dataclass(kw_only=True)
class _Merger:
    """Replaces every ``<include>`` by the children of the file's root."""

    reader: FolderReader
    includes: dict[str, bytes] = field(default_factory=dict[str, bytes])
    homes: dict[Element, str] = field(default_factory=dict["Element", str])

    def merge(self, parent: Element, home: PurePosixPath, origin: str, depth: int) -> None:
        if depth > _INCLUDE_DEPTH:
            raise SceneError(f"'{origin}' is included more than {_INCLUDE_DEPTH} files deep.")
        for child in list(parent):
            if child.tag != "include":
                self.homes[child] = "" if home == PurePosixPath() else str(home)
                self.merge(child, home, origin, depth)
                continue
            name = self._find(child.get("file", ""), home, origin)
            piece = parse_mjcf(self.includes[name], name)
            self.merge(piece, PurePosixPath(name).parent, name, depth + 1)
            place = list(parent).index(child)
            parent[place : place + 1] = list(piece)

    def _find(self, value: str, home: PurePosixPath, origin: str) -> str:
        asked_by = f"An <include> in '{origin}'"
        near, far = posixpath.normpath(str(home / value)), posixpath.normpath(value)
        name = near if self.reader.holds(near, asked_by) else far
        if name in self.includes:
            raise SceneError(f"{asked_by} includes '{name}' a second time, or in a circle.")
        self.includes[name] = self.reader.read(name, asked_by)
        return name


def _collect(
    root: Element,
    reader: FolderReader,
    origin: str,
    homes: Mapping[Element, str],
    assets: dict[str, bytes],
    base: str = "",
) -> None:
    folders = _Folders.of(root)
    for element, key, value in list(_file_attributes(root)):
        asked_by = f"<{element.tag} {key}=...> in '{origin}'"
        home = homes.get(element, "")
        name = posixpath.normpath(posixpath.join(base, folders.join(element, value, home)))
        if home and not reader.holds(name, asked_by):
            name = posixpath.normpath(posixpath.join(base, folders.join(element, value)))
        elif home and not folders.strip:
            element.set(key, f"{home}/{value}")
        if name in assets:
            continue
        assets[name] = reader.read(name, asked_by)
        if element.tag == "model":
            _collect_submodel(name, reader, assets)


def _collect_submodel(name: str, reader: FolderReader, assets: dict[str, bytes]) -> None:
    root = parse_mjcf(assets[name], name)
    if next(root.iter("include"), None) is not None:
        raise SceneError(f"'{name}' is attached as a model and has an <include>. Merge it first.")
    _collect(root, reader, name, {}, assets, base=posixpath.dirname(name))


def _deeper_than(root: Element, limit: int) -> bool:
    level = [root]
    for _ in range(limit):
        level = [child for element in level for child in element]
    return bool(level)
