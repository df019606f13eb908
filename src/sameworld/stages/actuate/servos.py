"""Hobby servos whose constants were identified on a bench."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["SERVOS", "Servo"]


@dataclass(frozen=True, kw_only=True)
class Servo:
    """A DC motor with gears behind a proportional controller of the duty cycle.

    ``duty = clip(gain * error_gain * (goal - q), -1, 1)`` and
    ``torque = torque_constant / resistance * (voltage * duty - torque_constant * velocity)``.

    Attributes:
        name: Name.
        torque_constant: Torque constant at the output shaft [N m/A].
        resistance: Resistance [ohm].
        armature: Reflected inertia of rotor and gears [kg m^2].
        frictionloss: Coulomb friction [N m].
        viscous: Viscous friction without back-EMF [N m s/rad].
        error_gain: Duty cycle per radian and unit of the firmware's gain [1/rad].
        gain: Factory setting of the firmware's proportional gain.
        voltage: Supply voltage of the identification [V].
        spread: Relative standard deviation between copies, wear and firmware; a judgement.
        source: Where the numbers come from.
    """

    name: str
    torque_constant: float
    resistance: float
    armature: float
    frictionloss: float
    viscous: float
    error_gain: float
    gain: float
    voltage: float
    spread: float
    source: str

    def stall_torque(self, voltage: float) -> float:
        """Largest torque at rest [N m]."""
        return self.torque_constant * voltage / self.resistance

    def stiffness(self, voltage: float, gain: float) -> float:
        """Torque per angle below saturation [N m/rad]."""
        return self.stall_torque(voltage) * self.error_gain * gain

    @property
    def damping(self) -> float:
        """Viscous friction and back-EMF [N m s/rad]."""
        return self.viscous + self.torque_constant**2 / self.resistance


_BAM = (
    "Rhoban BAM (Apache-2.0), model M1; M. Duclusaud, G. Passault, V. Padois, O. Ly, "
    "arXiv 2410.08650 (2024)"
)
_OWN = (
    "fitted to four runs of Rhoban BAM's bench (Apache-2.0, 1.13 kg at 0.12 m, 12 V) by "
    "`python -m benchmarks.servo_bam`, model M1"
)

#: Presets by name; the friction model is Coulomb and viscous (M1).
SERVOS: Mapping[str, Servo] = MappingProxyType(
    {
        servo.name: servo
        for servo in (
            Servo(
                name="sts3215",
                torque_constant=1.21164135295077,
                resistance=2.6761663274455603,
                armature=0.02840336348682085,
                frictionloss=0.05239296084748866,
                viscous=0.05908515565091076,
                error_gain=0.166,
                gain=32.0,
                voltage=7.4,
                spread=0.3,
                source=_BAM,
            ),
            Servo(
                name="sts3250",
                torque_constant=1.511,
                resistance=1.768,
                armature=0.008367,
                frictionloss=0.03411,
                viscous=0.06765,
                error_gain=0.166,
                gain=32.0,
                voltage=12.0,
                spread=0.3,
                source=_OWN,
            ),
            Servo(
                name="xl330",
                torque_constant=0.3866957639281311,
                resistance=4.017129222290597,
                armature=0.0018141672784458866,
                frictionloss=0.01283272036582759,
                viscous=0.003661672282824312,
                error_gain=4096 / (2 * math.pi) / (256 * 885),
                gain=400.0,
                voltage=7.4,
                spread=0.3,
                source=_BAM,
            ),
        )
    }
)
