"""rosbag2 folders: files named by ``metadata.yaml``, or those that lie there if it is missing."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from sameworld.core.errors import SameworldError, StoreError, listed
from sameworld.store.files import read_text
from sameworld.store.recordings.formats import detect_format
from sameworld.store.recordings.mcap_files import collect_mcap
from sameworld.store.recordings.options import ReadOptions
from sameworld.store.recordings.packed import unpacking
from sameworld.store.recordings.sqlite_files import collect_db3
from sameworld.store.recordings.topics import Collector

__all__ = ["collect_folder", "collect_part"]

_YAML = 1 << 19
_PARTS = (".db3", ".mcap", ".db3.zstd", ".mcap.zstd")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, kw_only=True)
class _Bag:
    """What ``metadata.yaml`` says."""

    files: tuple[Path, ...]
    packed_messages: bool = False
    count: int = -1


def collect_folder(folder: Path, collector: Collector, options: ReadOptions) -> None:
    """Read all files of a bag into a collector, in their order.

    Raises:
        StoreError: ``metadata.yaml`` is unusable or leads elsewhere, or no file is readable.
    """
    bag = _bag(folder, collector)
    failed: list[str] = []
    for path in bag.files:
        if not path.exists():
            failed.append(f"'{path.name}' is missing, although metadata.yaml names it.")
            continue
        if not path.resolve().is_relative_to(folder.resolve()):
            raise StoreError(f"'{path}' is a link that leaves the folder. Copy the file into it.")
        try:
            collect_part(path, collector, options, packed_messages=bag.packed_messages)
        except SameworldError as cause:
            if len(bag.files) == 1:
                raise
            failed.append(f"{cause}")
    if len(failed) == len(bag.files):
        raise StoreError(f"No file of the bag '{folder}' can be read. {' '.join(failed)}")
    collector.notes.extend(failed)
    if bag.count > collector.messages and not options.topics:
        collector.notes.append(
            f"metadata.yaml counts {bag.count} messages, {collector.messages} were found."
        )


def collect_part(
    path: Path, collector: Collector, options: ReadOptions, *, packed_messages: bool = False
) -> None:
    """Read one ``.mcap`` or ``.db3`` file, packed or not, into a collector.

    Raises:
        StoreError: It is neither, or unusable.
    """
    found = detect_format(path)
    collector.notes.extend(found.notes)
    if found.format == "mcap":
        collect_mcap(path, collector, options, packed=found.packed)
    elif found.format == "db3" and found.packed:
        with tempfile.TemporaryDirectory() as place:
            whole = Path(place) / path.stem
            _unpack_file(path, whole, options.limit)
            collect_db3(whole, collector, options, packed_messages=packed_messages)
    elif found.format == "db3":
        collect_db3(path, collector, options, packed_messages=packed_messages)
    else:
        raise StoreError(f"'{path}' is {found.format}, not a part of a rosbag2 recording.")


def _unpack_file(path: Path, target: Path, limit: int) -> None:
    size = 0
    try:
        with (
            path.open("rb") as packed,
            unpacking(packed) as source,
            target.open("wb") as out,
        ):
            while piece := source.read(1 << 20):
                size += len(piece)
                if size > limit:
                    raise StoreError(f"'{path}' unpacks to more than the limit of {limit} bytes.")
                out.write(piece)
    except SameworldError:
        raise
    except Exception as cause:  # every packer has errors of its own
        raise StoreError(f"'{path}' cannot be unpacked: {cause}.") from cause


def _bag(folder: Path, collector: Collector) -> _Bag:
    file = folder / "metadata.yaml"
    if not file.is_file():
        parts = [p for p in sorted(folder.iterdir(), key=_natural) if p.name.endswith(_PARTS)]
        collector.notes.append(
            f"'{folder.name}' has no metadata.yaml; {len(parts)} file(s) were read in the order of "
            "their names."
        )
        return _Bag(files=tuple(parts))
    return _from_metadata(folder, file, _yaml(file))


def _natural(path: Path) -> list[tuple[int, str]]:
    parts = _DIGITS.split(path.name), [*_DIGITS.findall(path.name), "0"]
    return [(int(number[:18]), text) for text, number in zip(*parts, strict=True)]


def _yaml(file: Path) -> Any:
    import yaml

    try:  # the fast parser, where the wheel has it
        from yaml import CSafeLoader as Loader
    except ImportError:
        from yaml import SafeLoader as Loader
    text = read_text(file, limit=_YAML)
    if "&" in text and text.count("*") > 20:
        raise StoreError(
            f"'{file}' is full of aliases, which no recorder writes. Nothing was read."
        )
    try:
        return yaml.load(text, Loader=Loader)
    except Exception as cause:  # the parser raises whatever malformed text makes of it
        raise StoreError(f"'{file}' is no usable YAML: {str(cause)[:200]}.") from cause


def _from_metadata(folder: Path, file: Path, record: Any) -> _Bag:
    info = record.get("rosbag2_bagfile_information") if isinstance(record, dict) else None
    if not isinstance(info, dict):
        raise StoreError(f"'{file}' lacks 'rosbag2_bagfile_information'; it is no bag's metadata.")
    names = info.get("relative_file_paths")
    if not (isinstance(names, list) and names and all(isinstance(n, str) for n in names)):
        raise StoreError(f"'{file}' names no files (relative_file_paths: {names!r:.100}).")
    files = tuple(_inside(folder, file, name) for name in _unique(file, names))
    mode = str(info.get("compression_mode") or "none").lower()
    kind = str(info.get("compression_format") or "")
    if mode not in ("none", "") and kind != "zstd":
        raise StoreError(f"'{file}': compression '{kind}' is not supported (known: zstd).")
    count = info.get("message_count")
    return _Bag(
        files=files,
        packed_messages=mode == "message",
        count=count if isinstance(count, int) else -1,
    )


def _unique(file: Path, names: Sequence[str]) -> Sequence[str]:
    if len(set(names)) < len(names) or len(names) > 10_000:
        twice = sorted({n for n in names if names.count(n) > 1}) if len(names) <= 10_000 else []
        raise StoreError(f"'{file}' names {len(names)} files, some twice: {listed(twice)}.")
    return names


def _inside(folder: Path, file: Path, name: str) -> Path:
    """A named file; older recorders wrote the folder's own name before it."""
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or "\0" in name or ":" in name:
        raise StoreError(
            f"'{file}' names the file '{name}', which lies outside the folder. Nothing was read."
        )
    whole = folder / parts
    return whole if whole.exists() else folder / parts.name
