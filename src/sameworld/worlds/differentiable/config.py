"""``DifferentiableConfig``: how the differentiable world is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from sameworld.core.errors import SceneError
from sameworld.worlds.compiled.config import CompileConfig
from sameworld.worlds.differentiable.solve import Effort

__all__ = ["Batching", "DifferentiableConfig"]

Batching = Literal["auto", "loop", "vector"]


@dataclass(frozen=True, kw_only=True)
class DifferentiableConfig:
    """Options of the differentiable world.

    Attributes:
        period: Control period [s], a whole multiple of the MJCF timestep. Default: the numeric
            ``control_period`` of the MJCF, else its timestep.
        pairs: Contact pairs that get their own parameters: a largest count up to which all pairs
            that can collide are taken, or patterns such as ``cube+*``.
        ignore: Patterns such as ``link*+link*`` of pairs of geoms that never touch here. Every
            pair costs time at every step, and some shapes cannot be differentiated.
        tolerance: Newton decrement of the constraint solver, relative to the energy of the
            accelerations, at which it stops.
        iterations: Most Newton steps.
        batching: ``loop`` runs elements one after the other, best on CPUs; ``vector`` all at once,
            best on accelerators; ``auto`` decides by the device.
        threads: Threads that share the elements of a batch (``loop`` only).
    """

    period: float | None = None
    pairs: int | tuple[str, ...] = 32
    ignore: tuple[str, ...] = ()
    tolerance: float = 1e-10
    iterations: int = 30
    batching: Batching = "auto"
    threads: int = 1

    def __post_init__(self) -> None:
        self.compiling()
        if not 0 < self.tolerance < 1e-2:
            raise SceneError(f"tolerance is {self.tolerance}; it must lie in (0, 0.01).")
        if self.iterations < 1:
            raise SceneError(f"iterations is {self.iterations}; it must be at least 1.")
        if self.batching not in get_args(Batching):
            raise SceneError(f"batching is '{self.batching}'; use one of {get_args(Batching)}.")
        if self.threads < 1:
            raise SceneError(f"threads is {self.threads}; it must be at least 1.")

    def compiling(self) -> CompileConfig:
        """The options that decide how the scene is compiled."""
        return CompileConfig(period=self.period, pairs=self.pairs)

    def effort(self) -> Effort:
        """How hard the constraint solver tries."""
        return Effort(tolerance=self.tolerance, iterations=self.iterations)
