"""``Checkpoint``: where long work leaves what it already knows, so that it can resume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

__all__ = ["Checkpoint"]


class Checkpoint(Protocol):
    """Named sets of arrays that survive a kill.

    Work is cut into phases that are deterministic given what came before; a finished phase is
    saved and skipped next time, so a resumed run gives the same answer as an undisturbed one.
    """

    def load(self, name: str) -> Mapping[str, NDArray[Any]] | None:
        """Arrays saved under a name, or ``None`` if there are none."""
        ...

    def save(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Save arrays atomically under a name."""
        ...
