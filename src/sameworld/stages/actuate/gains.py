"""Gains of a drive from what its joint moves."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from sameworld.core.errors import SceneError
from sameworld.stages.actuate.config import ActuateConfig
from sameworld.stages.actuate.plant import JointPlant, Plant
from sameworld.stages.actuate.result import Drive
from sameworld.stages.actuate.servos import SERVOS

__all__ = ["Design", "design"]

#: Radians per engine step beyond which a controlled joint is not simulated well, and not at all.
_COARSE, _HOPELESS = 0.3, 1.0


@dataclass(frozen=True, kw_only=True)
class Design:
    """A drive, and what was assumed for it.

    Attributes:
        drive: The drive.
        assumed: Sentences.
    """

    drive: Drive
    assumed: tuple[str, ...] = ()


def design(joint: JointPlant, name: str, config: ActuateConfig, plant: Plant) -> Design:
    """Choose the numbers of one drive.

    A joint of inertia ``I`` under ``kp`` and ``kv`` with its own damping ``d`` has the natural
    frequency ``w = sqrt(kp / I)`` and the damping ratio ``(kv + d) / (2 w I)``.

    Args:
        joint: The joint.
        name: Name of the actuator.
        config: Preset and its options.
        plant: The scene it stands in.

    Raises:
        SceneError: The controller would be too fast for the engine step, or a servo was asked to
            drive a slide.
    """
    make = _Maker(joint=joint, name=name, config=config, plant=plant)
    if config.preset == "hobby_servo":
        return make.servo()
    if config.preset == "torque":
        return make.torque()
    return make.velocity() if config.preset == "velocity" else make.position()


@dataclass(frozen=True, kw_only=True)
class _Maker:
    joint: JointPlant
    name: str
    config: ActuateConfig
    plant: Plant

    @property
    def _force(self) -> float:
        known = math.isfinite(self.joint.effort)
        return self.joint.effort if known else self.config.effort or math.inf

    def _drive(
        self,
        *,
        kp: float = 0.0,
        kv: float = 0.0,
        force: float,
        low: float = -math.inf,
        high: float = math.inf,
    ) -> Drive:
        joint = self.joint
        return Drive(
            actuator=self.name,
            joint=joint.name,
            linear=joint.linear,
            kp=kp,
            kv=kv,
            force=force,
            low=low,
            high=high,
            inertia=joint.inertia,
            inertia_low=joint.inertia_low,
            inertia_high=joint.inertia_high,
            gravity=joint.gravity,
        )

    # ---- presets ----------------------------------------------------------------------------

    def torque(self) -> Design:
        force = self._force
        drive = self._drive(force=force, low=-force, high=force)
        return Design(drive=drive, assumed=tuple(self._limits()))

    def velocity(self) -> Design:
        joint, rate = self.joint, 2 * math.pi * self.config.frequency
        kv = self.config.kv or max(joint.inertia * rate - joint.damping, 0.1 * joint.inertia * rate)
        assumed = [*self._limits(), *self._damped(kv)]
        if not math.isfinite(joint.speed):
            assumed.append(f"joint '{joint.name}': no speed limit is known for its commands.")
        drive = self._drive(kv=kv, force=self._force, low=-joint.speed, high=joint.speed)
        return Design(drive=drive, assumed=tuple(assumed))

    def position(self) -> Design:
        joint, config = self.joint, self.config
        kp = config.kp or joint.inertia * (2 * math.pi * config.frequency) ** 2
        wanted = 2 * config.damping_ratio * math.sqrt(kp * joint.inertia) - joint.damping
        kv = config.kv or max(wanted, 0.0)
        assumed = [*self._limits(), *self._speed(math.sqrt(kp / joint.inertia_low))]
        assumed += self._damped(kv)
        if wanted < 0 and not config.kv:
            assumed.append(
                f"joint '{joint.name}': its own damping {joint.damping:.3g} is more than the "
                f"damping ratio {config.damping_ratio:g} asks for; kv is 0."
            )
        if config.preset == "position":
            assumed += self._sag(kp)
        drive = self._drive(kp=kp, kv=kv, force=self._force, low=joint.low, high=joint.high)
        return Design(drive=drive, assumed=tuple(assumed))

    def servo(self) -> Design:
        joint, config = self.joint, self.config
        servo = SERVOS[config.servo]
        if joint.linear:
            raise SceneError(
                f"joint '{joint.name}' is a slide; a hobby servo drives hinges. Leave it out by "
                "'joints', or use preset 'position'."
            )
        voltage, gain = config.voltage or servo.voltage, config.gain or servo.gain
        kp, stall = servo.stiffness(voltage, gain), servo.stall_torque(voltage)
        drive = self._drive(
            kp=config.kp or kp, kv=config.kv, force=stall, low=joint.low, high=joint.high
        )
        fastest = math.sqrt(drive.kp / (joint.inertia_low + servo.armature))
        assumed = [*self._speed(fastest), *self._sag(drive.kp)]
        if joint.effort < 0.99 * stall:
            assumed.append(
                f"joint '{joint.name}': its effort limit {joint.effort:.3g} N m stays; the servo's "
                f"stall torque is {stall:.3g} N m."
            )
        if joint.damping:
            assumed.append(
                f"joint '{joint.name}': the servo's damping {servo.damping:.3g} N m s/rad replaces "
                f"{joint.damping:.3g}."
            )
        drive = replace(
            drive,
            armature=servo.armature,
            damping=servo.damping,
            frictionloss=servo.frictionloss,
        )
        return Design(drive=drive, assumed=tuple(assumed))

    # ---- what was assumed ---------------------------------------------------------------------

    def _limits(self) -> list[str]:
        joint, force = self.joint, self._force
        unit = "N" if joint.linear else "N m"
        if not math.isfinite(force):
            return [f"joint '{joint.name}': no effort limit is known; its force is unlimited."]
        if joint.gravity > force:
            return [
                f"joint '{joint.name}': gravity asks for up to {joint.gravity:.3g} {unit}, but its "
                f"largest force is {force:.3g} {unit}."
            ]
        return []

    def _speed(self, rate: float) -> list[str]:
        """Complain where the controlled joint moves too fast [rad/s] for the engine step."""
        name, timestep = self.joint.name, self.plant.timestep
        step = rate * timestep
        if step > _HOPELESS:
            raise SceneError(
                f"joint '{name}': its controller works at {rate / 2 / math.pi:.3g} Hz, which a "
                f"timestep of {timestep:g} s cannot follow. Lower the bandwidth or the gains, "
                f"or take a timestep below {_COARSE / rate:.2g} s."
            )
        if step > _COARSE:
            return [
                f"joint '{name}': its controller reaches {rate / 2 / math.pi:.3g} Hz in some pose; "
                f"take a timestep below {_COARSE / rate:.2g} s (it is {timestep:g} s)."
            ]
        return []

    def _damped(self, kv: float) -> list[str]:
        """Complain where explicit integration would turn damping into growth."""
        joint = self.joint
        step = kv / joint.inertia_low * self.plant.timestep
        if self.plant.implicit or step < 1:
            return []
        text = (
            f"joint '{joint.name}': kv {kv:.3g} at an inertia of {joint.inertia_low:.3g} in some "
            f"pose is {'unstable' if step > 2 else 'inexact'} at a timestep of "
            f"{self.plant.timestep:g} s with the integrator Euler. Set <option "
            'integrator="implicitfast"/>, or lower the bandwidth.'
        )
        if step > 2:
            raise SceneError(text)
        return [text]

    def _sag(self, kp: float) -> list[str]:
        joint = self.joint
        sag, unit, worth = joint.gravity / kp, "m" if joint.linear else "rad", 0.1
        if sag < (0.01 if joint.linear else worth):
            return []
        return [
            f"joint '{joint.name}': gravity moves it up to {sag:.2g} {unit} from its command. More "
            "stiffness, or preset 'impedance', would hold it."
        ]
