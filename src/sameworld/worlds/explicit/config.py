"""``ExplicitConfig``: how the explicit world is built, nothing about the scene itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from sameworld.core.errors import SceneError
from sameworld.worlds.compiled.config import CompileConfig
from sameworld.worlds.compiled.models import Edits

__all__ = ["ExplicitConfig"]


@dataclass(frozen=True, kw_only=True)
class ExplicitConfig:
    """Options of the explicit world.

    Attributes:
        period: Control period [s], a whole multiple of the MJCF timestep. Default: the numeric
            ``control_period`` of the MJCF, else its timestep.
        threads: Threads of the batched rollout; 1 runs on the calling thread, 0 uses all cores.
        pairs: Contact pairs that get their own parameters: a largest count up to which all pairs
            that can collide are taken, or patterns such as ``cube+*``. Pairs that the scene's
            belief names are always taken.
        models: Edited models kept for reuse (least recently used go first); fewer where meshes
            make them large.
        memory: Rough limit on the buffers of one rollout call [bytes]; larger batches are split.
        edits: How parameters reach the model: ``fields`` edits a copy of the compiled model,
            ``recompile`` edits the MjSpec and compiles it again (the slow reference).
        guard: Folder that receives a replayable dump of the first element that fails.
    """

    period: float | None = None
    threads: int = 1
    pairs: int | tuple[str, ...] = 32
    models: int = 256
    memory: int = 64 * 2**20
    edits: Edits = "fields"
    guard: Path | None = None

    def __post_init__(self) -> None:
        self.compiling()
        if self.threads < 0:
            raise SceneError(f"threads is {self.threads}; use 1, a larger number, or 0 for all.")
        if self.models < 1 or self.memory < 2**16:
            raise SceneError("ExplicitConfig needs models >= 1 and memory >= 65536 bytes.")
        if self.edits not in get_args(Edits):
            raise SceneError(f"edits is '{self.edits}'; use 'fields' or 'recompile'.")

    def compiling(self) -> CompileConfig:
        """The options that decide how the scene is compiled."""
        return CompileConfig(period=self.period, pairs=self.pairs)
