"""``CompileConfig``: how a scene is compiled, nothing about the engine that runs it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sameworld.core.errors import SceneError

__all__ = ["CompileConfig"]


@dataclass(frozen=True, kw_only=True)
class CompileConfig:
    """Options of compiling.

    Attributes:
        period: Control period [s], a whole multiple of the MJCF timestep. Default: the numeric
            ``control_period`` of the MJCF, else its timestep.
        pairs: Contact pairs that get their own parameters: a largest count up to which all pairs
            that can collide are taken, or patterns such as ``cube+*``. Pairs that the scene's
            belief names are always taken.
    """

    period: float | None = None
    pairs: int | tuple[str, ...] = 32

    def __post_init__(self) -> None:
        if self.period is not None and not (math.isfinite(self.period) and self.period > 0):
            raise SceneError(f"Control period is {self.period} s; it must be positive.")
        if isinstance(self.pairs, int) and self.pairs < 0:
            raise SceneError(f"pairs is {self.pairs}; use a count >= 0 or patterns like 'cube+*'.")
