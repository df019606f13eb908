"""What a one-joint world calls its signals, and where it starts."""

from __future__ import annotations

from dataclasses import dataclass

from sameworld.core.belief import Belief
from sameworld.core.parameters import Parameter

__all__ = ["JointSpec", "start_belief"]


@dataclass(frozen=True, kw_only=True)
class JointSpec:
    """Names, units and limits of a one-joint world.

    Attributes:
        joint: Joint name; signals are ``joint.pos`` and ``joint.vel``.
        motor: Action name.
        unit: Unit of the position, ``m`` or ``rad``.
        effort: Unit of the action, ``N`` or ``N m``.
        limit: Largest action magnitude [effort].
        tolerance: Position error up to which a prediction counts as good [unit]; ten times as
            much per second for the velocity.
    """

    joint: str
    motor: str
    unit: str
    effort: str
    limit: float
    tolerance: float


def start_belief(names: JointSpec) -> Belief:
    """Belief over the start of a joint: at rest at zero, spread 0.5."""
    fields = (("pos", names.unit), ("vel", f"{names.unit}/s"))
    return Belief(
        parameters=tuple(
            Parameter(
                name=f"start:{names.joint}.{part}", value=0.0, unit=unit, std=0.5, scope="episode"
            )
            for part, unit in fields
        )
    )
