"""``RunFolder`` and ``Checkpoint``: what a run leaves behind, and how long work resumes."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from sameworld.core.errors import SameworldWarning, StoreError
from sameworld.store.files import (
    hash_file,
    npz_bytes,
    plain_json,
    read_json,
    read_npz,
    write_bytes,
    write_json,
    write_text,
)

__all__ = ["Checkpoint", "RunFolder", "StoreWarning", "versions"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_SCHEMA = 1
_PACKAGES = ("sameworld", "numpy", "scipy", "mujoco", "pyarrow", "av", "jax", "equinox", "optax")


class StoreWarning(SameworldWarning):
    """Something on the disk was ignored because it is incomplete or foreign."""


def versions() -> dict[str, str]:
    """Versions of Python, the platform and every package that can change a number."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Arrays and a JSON record that are stored together or not at all.

    ``NAME.json`` points at ``NAME-HASH.npz`` and carries both hashes; it is replaced after the
    arrays are safe, so a process killed at any moment leaves the previous checkpoint.

    Attributes:
        folder: Folder the files stand in.
        name: Name of the checkpoint; letters, digits, ``_ . -``.
    """

    folder: Path
    name: str

    def __post_init__(self) -> None:
        _check_name(self.name)

    @property
    def path(self) -> Path:
        """The JSON file."""
        return self.folder / f"{self.name}.json"

    def save(self, arrays: Mapping[str, NDArray[Any]], state: Mapping[str, Any]) -> None:
        """Replace the checkpoint.

        Raises:
            StoreError: Objects among the arrays, NaN in ``state``, or a disk error.
        """
        content = npz_bytes(arrays)
        sha256 = hashlib.sha256(content).hexdigest()
        write_bytes(self._arrays_path(sha256), content)
        record = {"schema": _SCHEMA, "arrays": sha256, "state": plain_json(state)}
        write_json(self.path, {**record, "digest": _digest(record)})
        for stale in self.folder.glob(f"{self.name}-*.npz"):
            if stale != self._arrays_path(sha256) and self._is_mine(stale):
                stale.unlink(missing_ok=True)

    def load(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """Arrays and record, or ``None`` if there is no checkpoint.

        A damaged or foreign checkpoint is ignored with a ``StoreWarning``.
        """
        if not self.path.exists():
            return None
        try:
            return self._checked()
        except StoreError as cause:
            warnings.warn(
                f"Checkpoint '{self.path}' is ignored: {cause} Work starts afresh.",
                StoreWarning,
                stacklevel=2,
            )
            return None

    def _checked(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        record = read_json(self.path)
        if not isinstance(record, dict) or record.get("schema") != _SCHEMA:
            raise StoreError("it is not a checkpoint of this version.")
        digest, sha256 = record.pop("digest", None), record.get("arrays")
        if digest != _digest(record) or not re.fullmatch("[0-9a-f]{64}", str(sha256)):
            raise StoreError("its content does not match its hash.")
        arrays = self._arrays_path(str(sha256))
        if hash_file(arrays) != sha256:
            raise StoreError(f"'{arrays.name}' does not match its hash.")
        return read_npz(arrays), record["state"]

    def _arrays_path(self, sha256: str) -> Path:
        return self.folder / f"{self.name}-{sha256[:16]}.npz"

    def _is_mine(self, path: Path) -> bool:
        return re.fullmatch("[0-9a-f]{16}", path.stem.removeprefix(f"{self.name}-")) is not None


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """A run's folder: ``config.json``, ``versions.json``, ``metrics.json``, ``report.html``.

    Attributes:
        path: The folder.
    """

    path: Path

    @classmethod
    def create(cls, path: str | Path) -> RunFolder:
        """Make the folder, or reopen one that already holds a run, and note the versions.

        Raises:
            StoreError: The folder holds something else; nothing is touched.
        """
        path = Path(path)
        if path.exists() and not path.is_dir():
            raise StoreError(f"'{path}' is a file; name a folder for the run.")
        if path.is_dir() and any(path.iterdir()) and not (path / "versions.json").is_file():
            raise StoreError(
                f"'{path}' is not empty and holds no run (no versions.json). Choose another folder."
            )
        run = cls(path=path)
        write_json(path / "versions.json", versions())
        return run

    def file(self, name: str) -> Path:
        """Path of a file directly in the folder.

        Raises:
            StoreError: The name leaves the folder or has odd characters.
        """
        return self.path / _check_name(name)

    def save_config(self, config: Mapping[str, Any]) -> None:
        """Write ``config.json``; NaN is an error."""
        write_json(self.path / "config.json", config)

    def save_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Write ``metrics.json``; NaN and infinities become null."""
        write_json(self.path / "metrics.json", metrics, nan="null")

    def save_report(self, html: str) -> None:
        """Write ``report.html``."""
        write_text(self.path / "report.html", html)

    def read(self, name: str) -> Any:
        """Read a JSON file of the run, e.g. ``metrics.json``."""
        return read_json(self.file(name))

    def checkpoint(self, name: str) -> Checkpoint:
        """The checkpoint of that name, stored under ``checkpoints/``."""
        return Checkpoint(folder=self.path / "checkpoints", name=name)


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise StoreError(
            f"{name!r} cannot name a file of a run: use up to 100 letters, digits, '_', '.', '-'."
        )
    return name


def _digest(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
