"""Options of ``actuate``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from sameworld.core.errors import SceneError, closest, listed
from sameworld.stages.actuate.servos import SERVOS

__all__ = ["ActuateConfig", "Naming", "Preset"]

Preset = Literal["torque", "position", "velocity", "impedance", "hobby_servo"]
Naming = Literal["joint", "described"]


@dataclass(frozen=True, kw_only=True)
class ActuateConfig:
    """Options of ``actuate``.

    Attributes:
        preset: What a command means: a ``torque``; a ``position`` followed by a PD controller; a
            ``velocity``; a position held softly with gravity compensated (``impedance``); the
            position of a ``hobby_servo`` with identified motor constants.
        joints: Patterns of joint names. Empty takes the joints that the robot description says are
            driven, or all hinges and slides where it says nothing.
        replace: Remove actuators that act on these joints already; otherwise such joints are left
            as they are.
        bandwidth: Natural frequency of a controlled joint at the home pose [Hz]; 0 takes 5 Hz, and
            2 Hz for ``impedance``.
        damping_ratio: Damping ratio of a controlled joint; 1 does not overshoot.
        kp: Stiffness of every joint [N m/rad or N/m] instead of one from the bandwidth; 0 for none.
        kv: Damping of every joint [N m s/rad or N s/m] likewise.
        effort: Largest force where the scene knows none [N m or N]; 0 for no limit.
        servo: Which hobby servo.
        voltage: Supply voltage of the servos [V]; 0 takes that of their identification.
        gain: Proportional gain set in the servos' firmware; 0 takes the factory's.
        spread: Standard deviation of the gains relative to their values, for ``identify``.
        naming: Whether actuators are called like their joints or as the robot description says.
        poses: Random poses at which inertia and gravity are looked at besides the home pose.
        seed: Seed of the poses.
    """

    preset: Preset = "position"
    joints: tuple[str, ...] = ()
    replace: bool = False
    bandwidth: float = 0.0
    damping_ratio: float = 1.0
    kp: float = 0.0
    kv: float = 0.0
    effort: float = 0.0
    servo: str = "sts3215"
    voltage: float = 0.0
    gain: float = 0.0
    spread: float = 0.5
    naming: Naming = "joint"
    poses: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        joints = (self.joints,) if isinstance(self.joints, str) else tuple(self.joints)
        object.__setattr__(self, "joints", joints)
        for name, literal in {"preset": Preset, "naming": Naming}.items():
            value = getattr(self, name)
            if value not in get_args(literal):
                raise SceneError(
                    f"{name} = {value!r} must be one of {listed(get_args(literal))}."
                    f"{closest(str(value), get_args(literal))}"
                )
        for name in ("bandwidth", "kp", "kv", "effort", "voltage", "gain", "poses"):
            value = float(getattr(self, name))
            if not (math.isfinite(value) and value >= 0):
                raise SceneError(f"{name} = {value:g} must not be negative.")
        if not (self.damping_ratio > 0 and self.spread > 0):
            raise SceneError("damping_ratio and spread must be positive.")
        if self.servo not in SERVOS:
            raise SceneError(
                f"There is no servo '{self.servo}'. Servos: {listed(SERVOS)}."
                f"{closest(self.servo, SERVOS)}"
            )

    @property
    def frequency(self) -> float:
        """Natural frequency in use [Hz]."""
        return self.bandwidth or (2.0 if self.preset == "impedance" else 5.0)
