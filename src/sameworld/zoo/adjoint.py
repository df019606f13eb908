"""Classical Runge-Kutta steps of one joint, transposed: costates carried back through the stages.

Source: W. W. Hager, "Runge-Kutta methods in optimal control and the transformed adjoint system",
Numerische Mathematik 87 (2000).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from sameworld.core.arrays import Array

__all__ = ["Costate", "Stages", "carried_back"]

#: Per stage: partial derivatives of the acceleration by position, velocity, and names.
Stages: TypeAlias = tuple[tuple[Array, Array, Mapping[str, Array]], ...]

#: Weight of each stage in the step, and of its slope in the next stage.
_WEIGHTS, _SHARES = (1 / 6, 1 / 3, 1 / 3, 1 / 6), (0.5, 0.5, 1.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Costate:
    """Derivatives of a weighted sum of later signals.

    Attributes:
        pos: By the position [B].
        vel: By the velocity [B].
        parameters: By each parameter met so far [B].
    """

    pos: Array
    vel: Array
    parameters: Mapping[str, Array]

    @classmethod
    def none(cls, batch: int) -> Costate:
        """Nothing later counts."""
        return cls(pos=np.zeros(batch), vel=np.zeros(batch), parameters={})

    def pulled(self, pos: Array, vel: Array) -> Costate:
        """With weights [B] on the signals of this tick."""
        return replace(self, pos=self.pos + pos, vel=self.vel + vel)


def carried_back(after: Costate, stages: Stages, step: float, effort: str) -> tuple[Costate, Array]:
    """Carry a costate over one step.

    Args:
        after: Costate at the end of the step.
        stages: Partial derivatives at its four stages.
        step: Its length [s].
        effort: Name of the effort among the partial derivatives.

    Returns:
        Costate at the beginning, and the derivative by the effort over the step [B].
    """
    pos, vel = after.pos, after.vel
    pull_pos, pull_vel = np.zeros_like(pos), np.zeros_like(vel)  # by the state of the stage after
    found = dict(after.parameters)
    for k in reversed(range(4)):
        by_pos, by_vel, by_name = stages[k]
        share = _SHARES[k] * step if k < 3 else 0.0
        rate_pos = _WEIGHTS[k] * step * after.pos + share * pull_pos
        rate_vel = _WEIGHTS[k] * step * after.vel + share * pull_vel
        for name, slope in by_name.items():
            found[name] = found.get(name, 0.0) + slope * rate_vel
        pull_pos, pull_vel = by_pos * rate_vel, rate_pos + by_vel * rate_vel
        pos, vel = pos + pull_pos, vel + pull_vel
    direct = found.pop(effort, np.zeros_like(pos))
    return Costate(pos=pos, vel=vel, parameters=found), direct
