"""Scenes as folders: ``scene.xml`` opens in any MuJoCo viewer as it is.

Layout: ``scene.xml`` and its assets where the XML leads to them, ``components.json``,
``belief.json``, ``cameras.json``, ``appearance/``, ``history.jsonl``, and ``scene.json`` with the
name and the list of files. A folder that another tool wrote needs ``scene.xml`` alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from sameworld.core.belief import Belief
from sameworld.core.errors import BeliefError, SameworldError, SceneError, StoreError, listed
from sameworld.core.scene import HistoryLine, Scene
from sameworld.store.files import parse_json, plain_json
from sameworld.store.mjcf_files import FolderReader, Gathered, asset_names, gather, parse_mjcf
from sameworld.store.scene_records import (
    cameras_from,
    cameras_record,
    components_from,
    components_record,
    history_from,
    history_text,
)
from sameworld.store.trees import replace_tree

__all__ = ["load_scene", "save_scene"]

_XML = "scene.xml"
_INDEX = "scene.json"
_FIXED = (_XML, _INDEX, "components.json", "belief.json", "cameras.json", "history.jsonl")
_SCHEMA = 1


def save_scene(scene: Scene, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write a scene as a folder; ``load_scene`` gives back the same scene.

    The folder appears as a whole or not at all.

    Args:
        scene: The scene.
        folder: A folder that does not exist or is empty.
        overwrite: Replace a scene folder that holds nothing but what this function wrote.

    Raises:
        StoreError: The folder holds something else, or cannot be written.
        SceneError: The MJCF is not XML, or names files that are not among the assets.
    """
    folder = Path(folder).absolute()
    _demand_free(folder, overwrite)
    places = _asset_places(scene)
    shown = {name: f"appearance/{name}" for name in scene.appearance}
    files = {place: scene.assets[name] for name, place in places.items()}
    files |= {place: scene.appearance[name] for name, place in shown.items()}
    index: dict[str, Any] = {"schema": _SCHEMA, "name": scene.name}
    index |= {"assets": places, "appearance": shown, "not_run_by_a_bare_viewer": _unseen(scene)}
    records = {
        _INDEX: index,
        "components.json": components_record(scene.components),
        "belief.json": scene.belief.to_json(),
        "cameras.json": cameras_record(scene.cameras),
    }
    files |= {name: _json_bytes(record) for name, record in records.items()}
    files["history.jsonl"] = history_text(scene.history).encode()
    files[_XML] = _utf8(scene.mjcf)
    replace_tree(folder, files)


def load_scene(path: str | Path, *, limit: int = 1 << 30) -> Scene:
    """Read a scene folder, or a bare MJCF file with the includes and assets beside it.

    Args:
        path: Folder with a ``scene.xml``, or an XML file. Includes of a bare file are merged.
        limit: Largest total size of all files read [bytes].

    Returns:
        The scene; it needs the disk no longer.

    Raises:
        StoreError: Something is missing, too large or malformed; names the file.
        SceneError: The XML is not MJCF, or names a file outside its folder.
        BeliefError: ``belief.json`` is inconsistent.
    """
    path = Path(path)
    try:
        if path.is_dir():
            return _load_folder(path.resolve(), limit)
        if path.name == _XML and (path.parent / _INDEX).is_file():
            return _load_folder(path.parent.resolve(), limit)
        if not path.is_file():
            raise StoreError(f"'{path}' is neither a scene folder nor an MJCF file.")
        return _load_bare(path, limit)
    except (OSError, ValueError) as cause:
        raise StoreError(f"Cannot read '{path}': {cause}.") from cause


def _load_bare(path: Path, limit: int) -> Scene:
    found = gather(FolderReader(root=path.resolve().parent, limit=limit), path.resolve().name)
    digest = hashlib.sha256(found.source.encode()).hexdigest()
    line = HistoryLine(
        stage="load", summary=f"Read from the MJCF file '{path.name}'.", inputs={path.name: digest}
    )
    return Scene(
        name=found.model or path.stem, mjcf=found.merged, assets=found.assets, history=(line,)
    )


def _load_folder(folder: Path, limit: int) -> Scene:
    reader = FolderReader(root=folder, limit=limit)
    if not (folder / _XML).is_file():
        raise StoreError(f"'{folder}' is no scene folder: it has no '{_XML}'.")
    found = gather(reader, _XML)
    index = _index(_optional(reader, _INDEX), folder)
    assets = _assets(reader, index, found)
    shown = index["appearance"] if index else {n: n for n in _walk(folder, "appearance")}
    components, cameras = _optional(reader, "components.json"), _optional(reader, "cameras.json")
    return Scene(
        name=index["name"] if index else found.model or folder.name,
        mjcf=found.source if index else found.merged,
        assets=assets,
        components=() if components is None else components_from(components, "components.json"),
        cameras=() if cameras is None else cameras_from(cameras, "cameras.json"),
        appearance={
            name if index else name.partition("/")[2]: reader.read(place, f"'{folder}'")
            for name, place in shown.items()
        },
        belief=_belief(reader),
        history=_history(reader),
    )


def _assets(
    reader: FolderReader, index: dict[str, Any] | None, found: Gathered
) -> dict[str, bytes]:
    """Listed files, then what the XML names besides (edited by hand, or by another tool)."""
    if index is None:
        extra = [n for n in _walk(reader.root, "assets") if n not in found.assets]
        return {**found.assets, **{n: reader.read(n, "The scene folder") for n in extra}}
    named = {**found.includes, **found.assets}
    assets = {
        name: named[place] if place in named else reader.read(place, f"'{_INDEX}'")
        for name, place in index["assets"].items()
    }
    placed = set(index["assets"].values())
    return assets | {name: named[name] for name in named if name not in placed}


def _walk(folder: Path, inside: str) -> Iterator[str]:
    for path in sorted((folder / inside).rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix()


def _optional(reader: FolderReader, name: str) -> Any:
    if not reader.holds(name, "The scene folder"):
        return None
    return parse_json(_text(reader, name), str(reader.root / name))


def _text(reader: FolderReader, name: str) -> str:
    try:
        return reader.read(name, "The scene folder").decode("utf-8")
    except UnicodeDecodeError as cause:
        raise StoreError(f"'{reader.root / name}' is not UTF-8 text.") from cause


def _belief(reader: FolderReader) -> Belief:
    record = _optional(reader, "belief.json")
    try:
        return Belief() if record is None else Belief.from_json(record)
    except SameworldError as cause:
        raise BeliefError(f"'{reader.root / 'belief.json'}': {cause}") from cause


def _history(reader: FolderReader) -> tuple[HistoryLine, ...]:
    if not reader.holds("history.jsonl", "The scene folder"):
        return ()
    return history_from(_text(reader, "history.jsonl"), str(reader.root / "history.jsonl"))


def _index(record: Any, folder: Path) -> dict[str, Any] | None:
    if record is None:
        return None
    where = folder / _INDEX
    if not isinstance(record, dict) or record.get("schema") != _SCHEMA:
        raise StoreError(f"'{where}' is no scene index of schema {_SCHEMA}.")
    for key in ("assets", "appearance"):
        table = record.get(key)
        if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
            raise StoreError(f"'{where}' must map names to files under '{key}'.")
    if not isinstance(record.get("name"), str):
        raise StoreError(f"'{where}' must give the scene a 'name'.")
    return record


def _asset_places(scene: Scene) -> dict[str, str]:
    """Where each asset must stand so that a bare viewer finds it.

    MuJoCo finds an asset in memory by its base name alone; on the disk the name must be exact.
    """
    root = parse_mjcf(_utf8(scene.mjcf), f"MJCF of scene '{scene.name}'")
    places = {name: name for name in scene.assets}
    for named in asset_names(root):
        if named in places.values():
            continue
        base = PurePosixPath(named).name
        same = [n for n in scene.assets if PurePosixPath(n).name == base and places[n] == n]
        if not same:
            raise SceneError(
                f"Scene '{scene.name}' names the file '{named}', which is not among its assets "
                f"{listed(scene.assets)}. Add it to 'assets'."
            )
        places[same[0]] = named
    for name, place in places.items():
        _demand_plain(name, place, scene.name)
    return places


def _demand_plain(name: str, place: str, scene: str) -> None:
    parts = PurePosixPath(place).parts
    if ".." in parts or place.startswith("/") or any(c in place for c in "\\:\0"):
        raise SceneError(f"Scene '{scene}': asset {place!r} would leave the scene folder.")
    if place.casefold() in _FIXED or parts[0].casefold() == "appearance":
        raise StoreError(
            f"Scene '{scene}': asset '{name}' has the name of another part of the scene folder. "
            f"Rename it to 'assets/{PurePosixPath(name).name}'."
        )


def _demand_free(folder: Path, overwrite: bool) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise StoreError(f"'{folder}' is a file or a link; name a folder for the scene.")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    if not (folder / _INDEX).is_file():
        raise StoreError(f"'{folder}' is not empty and is no scene folder. Choose another one.")
    if not overwrite:
        raise StoreError(f"'{folder}' already holds a scene. Use overwrite=True to replace it.")
    reader = FolderReader(root=folder.resolve(), limit=1 << 30)
    index = _index(_optional(reader, _INDEX), folder) or {}
    known = {*_FIXED, *index.get("assets", {}).values(), *index.get("appearance", {}).values()}
    foreign = [n for n in _walk(folder, ".") if n not in known]
    if foreign:
        raise StoreError(
            f"'{folder}' holds files that no scene of it lists: {listed(foreign)}. They would be "
            "lost; move them or choose another folder."
        )


def _unseen(scene: Scene) -> list[str]:
    return [f"{c.type} '{c.name}' acting on {c.target}" for c in scene.components]


def _json_bytes(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(plain_json(record), indent=1, allow_nan=False) + "\n").encode()


def _utf8(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as cause:
        raise SceneError(f"The MJCF is not valid Unicode: {cause}.") from cause
