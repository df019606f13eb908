"""Where one optimisation ended."""

from __future__ import annotations

from dataclasses import dataclass

from sameworld.core.arrays import Array

__all__ = ["Optimum"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Optimum:
    """Where one optimisation ended.

    Attributes:
        u: Coordinates [P], followed by those of sessions.
        starts: Starts of all windows [W, S_all].
        cost: Half the sum of squared residuals, prior included.
        history: Cost at each Jacobian.
        simulations: Simulated trajectories spent.
        message: The optimiser's closing message.
    """

    u: Array
    starts: Array
    cost: float
    history: tuple[float, ...]
    simulations: int
    message: str
