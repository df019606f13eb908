"""Whole folders or none: a folder is written beside its final place and renamed."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from sameworld.core.errors import StoreError
from sameworld.store.files import sync_folder

__all__ = ["replace_tree"]


def replace_tree(folder: Path, files: Mapping[str, bytes]) -> None:
    """Make ``folder`` hold exactly ``files``; an existing one is replaced as a whole.

    A killed writer leaves the old folder, or (between two renames) the old one under a hidden name
    beside it; never a mixture.

    Args:
        folder: Final place.
        files: Contents by relative name with ``/``.

    Raises:
        StoreError: The disk refuses; the old folder is still there.
    """
    mark = secrets.token_hex(6)
    fresh = folder.with_name(f".{folder.name[:80]}.{mark}.tmp")
    old = folder.with_name(f".{folder.name[:80]}.{mark}.old")
    try:
        fresh.mkdir(parents=True)
        try:
            for name, content in files.items():
                _write_new(fresh / name, content)
            _swap(fresh, folder, old)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
        sync_folder(folder.parent)
        shutil.rmtree(old, ignore_errors=True)
    except (OSError, ValueError) as cause:
        raise StoreError(f"Cannot write '{folder}': {cause}.") from cause


def _write_new(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _swap(fresh: Path, folder: Path, old: Path) -> None:
    if folder.exists():
        folder.rename(old)
    try:
        fresh.rename(folder)
    except OSError:
        if old.exists():
            old.rename(folder)
        raise
