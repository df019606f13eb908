"""Traced programs on disk: a second process neither traces nor compiles them again.

JAX's own cache keeps what the compiler made of a program, but a program must be traced before it
can be looked up there, which takes a quarter of the time. So the program itself is kept, too, as
StableHLO, under a hash of everything it depends on: the compiled scene, the options, the shapes,
the source of this package and the versions of the libraries.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from sameworld.core.errors import StoreError
from sameworld.store.files import read_bytes, write_bytes
from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.differentiable.element import Kept, Traced
from sameworld.worlds.differentiable.step import Carried
from sameworld.worlds.differentiable.tangents import Direction
from sameworld.worlds.differentiable.typed import export, jit

__all__ = ["Shelf", "fingerprint"]

_LARGEST = 1 << 28
_log = logging.getLogger(__name__)
for _kind in (Carried, Kept, Traced, Direction):
    export.register_namedtuple_serialization(_kind, serialized_name=f"sameworld.{_kind.__name__}")


def fingerprint(model: Model, parts: Iterable[object]) -> str:
    """Hash of a compiled model and of whatever else a program depends on.

    Args:
        model: The model.
        parts: Things whose ``repr`` says everything about them.
    """
    digest = hashlib.sha256(_surroundings().encode())
    buffer = np.zeros(int(mj.mj_sizeModel(model)), dtype=np.uint8)
    mj.mj_saveModel(model, None, buffer)
    digest.update(buffer.tobytes())
    for part in parts:
        digest.update(repr(part).encode())
    return digest.hexdigest()


@cache
def _surroundings() -> str:
    """Source of the worlds, versions of the libraries, and the device."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(file.read_bytes())
    libraries = [
        f"{name} {version(name)}" for name in ("jax", "jaxlib", "equinox", "numpy", "mujoco")
    ]
    return " ".join([digest.hexdigest(), *libraries, jax.default_backend()])


class Shelf:
    """Programs of one scene on disk.

    Args:
        folder: Where they are, ``None`` to keep nothing.
        scene: Fingerprint of the scene.
    """

    def __init__(self, folder: Path | None, scene: str) -> None:
        self._folder = folder
        self._scene = scene

    def program(
        self, name: str, key: object, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> Callable[..., Any]:
        """The program of a function, from disk if it is there; a new one is announced.

        Args:
            name: What the program does, for the announcement.
            key: What it depends on besides the scene; its ``repr`` must say everything.
            function: The function, traced if the program is not there.
            arguments: Arguments of the shapes it will be called with.
        """
        if self._folder is None:
            _log.info("Compiling '%s'", name)
            return function
        digest = hashlib.sha256(f"{self._scene} {key!r}".encode()).hexdigest()
        path = self._folder / f"{digest}.stablehlo"
        found = _read(path)
        if found is None:
            _log.info("Compiling '%s'; it is kept for the next time", name)
            found = export.export(jit(function))(*arguments)
            _keep(path, found)
        return found.call


def _read(path: Path) -> Any | None:
    """A kept program; ``None`` if there is none that can be read."""
    if not path.exists():
        return None
    try:
        return export.deserialize(bytearray(read_bytes(path, limit=_LARGEST)))
    except Exception:  # damaged or foreign: it is made anew and replaced
        return None


def _keep(path: Path, program: Any) -> None:
    """Write a program; a disk that is full or not ours costs time, not the result."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, bytes(program.serialize()))
    except (OSError, StoreError):
        return
