"""``ResidualConfig``: which joints get a network, how large it is and how it is trained."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from sameworld.core.errors import SpecError

__all__ = ["Input", "ResidualConfig"]

Input = Literal["position", "velocity", "control"]


@dataclass(frozen=True, kw_only=True)
class ResidualConfig:
    """Options of a residual.

    Attributes:
        joints: Patterns of the hinges and slides that the network sees and pushes.
        inputs: What it sees: positions of these joints (sine and cosine of a hinge without
            limits), their velocities, controls of all actuators.
        width: Units per hidden layer.
        depth: Hidden layers.
        bound: Largest force on a joint [N or N m]; by default what accelerates the joint's inertia
            at the reference configuration by ``reach``.
        reach: See ``bound`` [m/s^2 or rad/s^2].
        window: Length of the pieces it is trained on [s].
        warmup: First rows of every piece, which give its start and are not scored.
        validation: Share of the episodes that decide when to stop; with fewer than five episodes
            the last pieces of each are taken.
        batch: Pieces per step of the optimiser.
        steps: Most steps.
        check: Steps between two looks at the validation pieces.
        patience: Looks without progress after which training stops.
        rate: Learning rate of Adam, which falls to zero along a cosine.
        decay: Weight decay per step, relative to the learning rate.
    """

    joints: tuple[str, ...] = ("*",)
    inputs: tuple[Input, ...] = ("position", "velocity", "control")
    width: int = 16
    depth: int = 2
    bound: float | None = None
    reach: float = 30.0
    window: float = 1.0
    warmup: int = 10
    validation: float = 0.2
    batch: int = 16
    steps: int = 300
    check: int = 20
    patience: int = 5
    rate: float = 3e-3
    decay: float = 1e-3

    def __post_init__(self) -> None:
        unknown = [name for name in self.inputs if name not in get_args(Input)]
        if unknown or not self.inputs:
            raise SpecError(f"inputs are {self.inputs}; use some of {get_args(Input)}.")
        for name in ("width", "depth", "warmup", "batch", "steps", "check", "patience"):
            if getattr(self, name) < 1:
                raise SpecError(f"{name} is {getattr(self, name)}; it must be at least 1.")
        for name in ("reach", "window", "rate"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise SpecError(f"{name} is {getattr(self, name)}; it must be positive.")
        if self.bound is not None and not (math.isfinite(self.bound) and self.bound > 0):
            raise SpecError(f"bound is {self.bound}; it must be positive.")
        if not 0 < self.validation < 1:
            raise SpecError(f"validation is {self.validation}; it must lie in (0, 1).")
        if not self.decay >= 0:
            raise SpecError(f"decay is {self.decay}; it must not be negative.")
