"""Mesh files of a robot description, read from inside given folders only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from sameworld.core.errors import SceneError, StoreError, listed
from sameworld.store.files import read_bytes

__all__ = ["FORMATS", "MeshReader"]

#: Formats that MuJoCo reads.
FORMATS = (".stl", ".obj", ".msh")
_MOST_FOLDERS = 20_000


@dataclass(kw_only=True)
class MeshReader:
    """Finds and reads mesh files; each file once.

    Attributes:
        folder: Folder of the description; relative names start here.
        roots: Folders besides it in which files may lie, and where packages are looked for.
        packages: Folder of each package by name; found under the roots if not given.
        limit: Largest total size [bytes].
        assets: Contents so far, by the names given out.
    """

    folder: Path
    roots: tuple[Path, ...] = ()
    packages: Mapping[str, Path] = field(default_factory=dict[str, Path])
    limit: int = 1 << 30
    assets: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _names: dict[Path, str] = field(default_factory=dict[Path, str])

    def __post_init__(self) -> None:
        self.folder = self.folder.resolve()
        self.roots = tuple(root.resolve() for root in self.roots)
        self.packages = {name: path.resolve() for name, path in self.packages.items()}

    def read(self, uri: str, asked_by: str) -> str:
        """Read the file behind ``filename="..."`` and return its name among the assets.

        Raises:
            SceneError: The name leaves the folders, leads to no file, or has a format that MuJoCo
                does not read.
            StoreError: The file is unreadable or all are larger than the limit.
        """
        path = self._find(uri, asked_by)
        if path in self._names:
            return self._names[path]
        spent = sum(len(data) for data in self.assets.values())
        size = path.stat().st_size
        if spent + size > self.limit:
            raise StoreError(
                f"{asked_by} names '{uri}' of {size} bytes; with it more than the limit of "
                f"{self.limit} bytes would be read. Raise 'limit' if that is right."
            )
        name = self._fresh(path)
        self.assets[name] = read_bytes(path, limit=self.limit)
        self._names[path] = name
        return name

    def _fresh(self, path: Path) -> str:
        stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in path.stem)
        suffix = path.suffix.lower()
        name, count = f"assets/{stem}{suffix}", 1
        while name in self.assets:
            count += 1
            name = f"assets/{stem}_{count}{suffix}"
        return name

    # ---- finding --------------------------------------------------------------------------

    def _find(self, uri: str, asked_by: str) -> Path:
        places = self._places(uri, asked_by)
        suffix = PurePosixPath(unquote(uri)).suffix.lower()
        for place in places:
            path = self._inside(place, uri, asked_by)
            if path.is_file():
                if suffix not in FORMATS:
                    raise SceneError(_wrong_format(uri, suffix, asked_by))
                return path
        raise SceneError(
            f"{asked_by} names the mesh '{uri}', which is not there. Looked for it at "
            f"{listed((str(p) for p in places), 4)}. Copy it there, or name the folder that holds "
            "it (or its package) as a root."
        )

    def _places(self, uri: str, asked_by: str) -> list[Path]:
        scheme, colon, rest = uri.partition("://")
        if colon and scheme in ("package", "model"):
            return self._in_package(unquote(rest), uri, asked_by)
        if colon and scheme != "file":
            raise SceneError(
                f"{asked_by} names the mesh '{uri:.80}'. Nothing is fetched over '{scheme}://'; "
                "copy the file beside the description and name it relatively."
            )
        name = unquote(rest) if colon else uri
        if not name or any(c in name for c in "\\\0") or name[1:2] == ":":
            raise SceneError(
                f"{asked_by} names the mesh {uri[:80]!r}. Use a relative name with '/', or "
                "package://NAME/PATH."
            )
        return [base / name for base in (self.folder, *self.roots)]

    def _in_package(self, rest: str, uri: str, asked_by: str) -> list[Path]:
        package, _, inside = rest.partition("/")
        if not package or package in (".", "..") or not inside or any(c in rest for c in "\\\0"):
            raise SceneError(f"{asked_by} names {uri[:80]!r}; it must be package://NAME/PATH.")
        if package in self.packages:
            return [self.packages[package] / inside]
        homes: list[Path] = []
        for root in (self.folder, *self.folder.parents[:3], *self.roots):
            if root.name == package:
                homes.append(root)
            if root in self.roots or root == self.folder:
                homes += [root / package, *_folders_named(root, package)]
        return [home / inside for home in dict.fromkeys(homes)] or [self.folder / rest]

    def _inside(self, place: Path, uri: str, asked_by: str) -> Path:
        try:
            path = place.resolve()
            path.exists()
        except (OSError, RuntimeError, ValueError) as cause:
            raise SceneError(
                f"{asked_by} names {uri[:80]!r}, which is unusable: {cause}."
            ) from None
        allowed = [self.folder, *self.roots, *self.packages.values()]
        if uri.startswith(("package://", "model://")):
            name = uri.partition("://")[2].partition("/")[0]
            allowed += [p for p in self.folder.parents[:3] if p.name == name]
        if not any(path.is_relative_to(root) for root in allowed):
            raise SceneError(
                f"{asked_by} names the mesh '{uri:.80}', which leaves the folders that may be read "
                f"({listed((str(root) for root in allowed), 4)}). Name its folder as a root if "
                "that is right."
            )
        return path


def _folders_named(root: Path, name: str) -> list[Path]:
    """Folders of that name below a root, nearest first, without searching for ever."""
    found: list[Path] = []
    level, seen = [root], 0
    while level and seen < _MOST_FOLDERS and not found:
        below: list[Path] = []
        for folder in level:
            try:
                inner = [p for p in folder.iterdir() if p.is_dir() and not p.is_symlink()]
            except OSError:
                continue
            seen += len(inner)
            below += inner
        found = sorted(p for p in below if p.name == name)
        level = [p for p in below if not p.name.startswith(".")]
    return found


def _wrong_format(uri: str, suffix: str, asked_by: str) -> str:
    name = PurePosixPath(uri).name
    advice = (
        f"Convert it (for example: python -c \"import trimesh; trimesh.load('{name}', "
        f"force='mesh').export('{PurePosixPath(name).stem}.obj')\") and name the new file, or "
        "leave visual meshes out (--drop-visuals)."
    )
    return (
        f"{asked_by} names the mesh '{uri}': MuJoCo reads {', '.join(FORMATS)}, not "
        f"'{suffix or '(no suffix)'}'. {advice}"
    )
