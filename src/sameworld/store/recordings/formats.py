"""What a file or folder is, by its first bytes; its name is only compared with that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sameworld.core.errors import StoreError, listed

__all__ = ["Format", "Found", "detect_format", "recording_paths"]

Format = Literal[
    "csv", "npz", "parquet", "mcap", "bag", "db3", "rosbag2", "lerobot", "episodes", "folder"
]

_HEAD = 1 << 16
_MAGIC: tuple[tuple[bytes, Format], ...] = (
    (b"\x89MCAP0\r\n", "mcap"),
    (b"#ROSBAG V", "bag"),
    (b"SQLite format 3\0", "db3"),
    (b"PK\x03\x04", "npz"),
    (b"PK\x05\x06", "npz"),
    (b"PAR1", "parquet"),
)
_SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".dat": "csv",
    ".npz": "npz",
    ".parquet": "parquet",
    ".mcap": "mcap",
    ".bag": "bag",
    ".db3": "db3",
}
_FOREIGN: tuple[tuple[bytes, str], ...] = (
    (b"\x89HDF\r\n\x1a\n", "HDF5: export its arrays as .npz"),
    (b"\x1f\x8b", "gzip: unpack it first"),
    (b"BZh", "bzip2: unpack it first"),
    (b"\xfd7zXZ\0", "xz: unpack it first"),
    (b"\x93NUMPY", "one bare array: save it together with its time as .npz"),
    (b"\x80\x04", "a Python pickle, which is never opened: save arrays as .npz"),
    (b"\x80\x05", "a Python pickle, which is never opened: save arrays as .npz"),
    (b"MATLAB 5.0", "a MATLAB file: save its arrays as .npz or .csv"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
)
_PART = re.compile(r"^(?:(.+?)(?:_\d+)?\.db3|(.+)_\d+\.mcap)(?:\.zstd)?$")
_ZSTD = b"\x28\xb5\x2f\xfd"
_READABLE = ".csv, .npz, .parquet, .mcap, .bag, .db3, or a rosbag2 or LeRobot folder"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What lies at a path.

    Attributes:
        path: The path.
        format: What its content is.
        packed: Whether the whole file is compressed with zstd.
        notes: Where name and content disagree.
    """

    path: Path
    format: Format
    packed: bool = False
    notes: tuple[str, ...] = ()


def detect_format(path: str | Path) -> Found:
    """Say what a recording is, by content.

    Args:
        path: File or folder.

    Raises:
        StoreError: Missing, empty, or nothing that can be read; says what was found instead.
    """
    path = Path(path)
    try:
        if path.is_dir():
            return _folder(path)
        if not path.exists():
            raise StoreError(f"'{path}' does not exist.")
        if not path.is_file():
            raise StoreError(f"'{path}' is no regular file.")
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except (OSError, ValueError) as cause:
        raise StoreError(f"Cannot read '{path}': {cause}.") from cause
    return _file(path, head)


def _folder(path: Path) -> Found:
    if (path / "episodes.jsonl").is_file():
        return Found(path=path, format="episodes")
    if (path / "meta" / "info.json").is_file():
        return Found(path=path, format="lerobot")
    names = sorted(p.name for p in path.iterdir())
    if "metadata.yaml" in names or _is_bare_bag(names):
        return Found(path=path, format="rosbag2")
    if recording_paths(path):
        return Found(path=path, format="folder")
    raise StoreError(
        f"Folder '{path}' holds {listed(names, 6)} and no recording. Readable: {_READABLE}."
    )


def _is_bare_bag(names: list[str]) -> bool:
    """Whether files are the numbered parts of one bag that lost its ``metadata.yaml``."""
    parts = [match for name in names if (match := _PART.match(name))]
    return bool(parts) and len({match.groups() for match in parts}) == 1


def recording_paths(folder: Path) -> tuple[Path, ...]:
    """Files and bag folders inside a folder that look like recordings by name, sorted."""
    found: list[Path] = []
    for path in sorted(folder.iterdir()):
        bag = path.is_dir() and (path / "metadata.yaml").is_file()
        suffixes = {s.lower() for s in path.suffixes[-2:]}
        if bag or (not path.is_dir() and suffixes & set(_SUFFIXES) - {".txt", ".dat"}):
            found.append(path)
    return tuple(p for p in found if not p.name.startswith("."))


def _file(path: Path, head: bytes) -> Found:
    if not head:
        raise StoreError(f"'{path}' is empty (0 bytes): nothing was recorded, or it was cut off.")
    suffixes = [s.lower() for s in path.suffixes]
    if head.startswith(_ZSTD):
        inner = [_SUFFIXES[s] for s in suffixes[-2:] if s in _SUFFIXES]
        if inner and inner[0] in ("mcap", "db3"):
            return Found(path=path, format=inner[0], packed=True)
        raise StoreError(f"'{path}' is compressed with zstd and not named .mcap.zstd: unpack it.")
    claimed = _SUFFIXES.get(suffixes[-1]) if suffixes else None
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            return Found(path=path, format=kind, notes=_disagreement(path, claimed, kind))
    for magic, words in _FOREIGN:
        if head.startswith(magic):
            raise StoreError(f"'{path}' is {words}. Readable: {_READABLE}.")
    if claimed == "csv":
        return Found(path=path, format="csv")
    start = head[:8].hex(" ")
    if claimed:
        raise StoreError(
            f"'{path}' is named like {claimed} but begins with the bytes {start}, which no "
            f"{claimed} file does. It is damaged, or something else."
        )
    raise StoreError(f"'{path}' begins with the bytes {start}: unknown. Readable: {_READABLE}.")


def _disagreement(path: Path, claimed: Format | None, found: Format) -> tuple[str, ...]:
    if claimed in (None, found):
        return ()
    return (f"'{path.name}' is named like {claimed}, its content is {found}; read as {found}.",)
