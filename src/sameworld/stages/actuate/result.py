"""What ``actuate`` did and what it assumed."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sameworld.stages.actuate.config import Preset

__all__ = ["ActuateResult", "Drive"]


@dataclass(frozen=True, kw_only=True)
class Drive:
    """One actuator that was added.

    Attributes:
        actuator: Its name.
        joint: The joint it acts on.
        linear: Whether the joint is a slide; units are then N, m instead of N m, rad.
        kp: Stiffness, 0 where the preset has none.
        kv: Damping, 0 where the preset has none.
        force: Largest force, ``inf`` without a limit.
        low: Lowest command, ``-inf`` without a limit.
        high: Highest command, ``inf`` without a limit.
        inertia: Inertia that the joint moves at the home pose, with what follows it.
        inertia_low: Least of it over the poses looked at.
        inertia_high: Most of it over the poses looked at.
        gravity: Largest force that gravity asks for over the poses looked at.
        armature: Armature written into the joint, ``None`` where it was left alone.
        damping: Damping written into the joint, ``None`` where it was left alone.
        frictionloss: Coulomb friction written into the joint, ``None`` where it was left alone.
    """

    actuator: str
    joint: str
    linear: bool
    kp: float
    kv: float
    force: float
    low: float
    high: float
    inertia: float
    inertia_low: float
    inertia_high: float
    gravity: float
    armature: float | None = None
    damping: float | None = None
    frictionloss: float | None = None


@dataclass(frozen=True, kw_only=True)
class ActuateResult:
    """What was added.

    Attributes:
        preset: The preset.
        drives: Actuators, in the order of the joints.
        removed: Names of actuators that were removed.
        kept: Joints that were left alone because an actuator acts on them already.
        assumed: What was assumed, one sentence each.
        measure: What to measure to replace the assumptions, one sentence each.
    """

    preset: Preset
    drives: tuple[Drive, ...]
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    measure: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready mapping; infinities become ``None``."""
        record = asdict(self)
        record["drives"] = [
            {k: None if v in (float("inf"), float("-inf")) else v for k, v in drive.items()}
            for drive in record["drives"]
        ]
        return record
