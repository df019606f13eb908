"""Motors and servo firmware: from a command to a torque, with the limits that real ones have."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sameworld.core.arrays import Array
from sameworld.worlds.components.arrays import at_tick, clipped
from sameworld.worlds.components.goals import DelayLine
from sameworld.worlds.components.law import Effect, Field, Law, Motion, Signal, Values, library

__all__ = ["FirmwareServo", "VoltageMotor"]

_LONGEST_DELAY = 0.1


def _motor_fields() -> tuple[Field, ...]:
    return (
        Field(name="torque_constant", unit="F/A", default=np.nan),
        Field(name="resistance", unit="ohm", default=np.nan),
    )


def _torque(voltage: Array, values: Values, velocity: Array) -> Array:
    """Torque of a DC motor without inductance: ``k (V - k v) / R``."""
    constant, resistance = values["torque_constant"], values["resistance"]
    return constant / resistance * (voltage - constant * velocity)


class VoltageMotor(Law):
    """A DC motor driven by a voltage, with back-EMF; the action is the voltage.

    MuJoCo's own ``dcmotor`` actuator does the same where the scene has one (it adds cogging,
    inductance and temperature); this law exists for scenes whose other components must know the
    motor's torque in the same engine step, and for engines without that actuator.
    """

    kind = "voltage_motor"
    target = "actuator"

    def fields(self) -> tuple[Field, ...]:
        """Motor constants and the largest voltage."""
        return (*_motor_fields(), Field(name="limit", unit="volt", default=24.0))

    def unit(self) -> str:
        """The action is a voltage."""
        return "volt"

    def act(self, values: Values, memory: Array, motion: Motion) -> Effect:
        """Torque at the present speed."""
        limit = values["limit"]
        voltage = clipped(motion.command[..., 0], -limit, limit)
        return Effect(memory=memory, force=_torque(voltage, values, motion.velocity))


class FirmwareServo(Law):
    """Position controller in a servo's firmware: proportional, derivative, saturated duty cycle.

    ``duty = clip((goal - q) kp gain - v kd gain, -duty_limit, duty_limit)``, voltage is the
    supply's times the duty, torque that of a DC motor with back-EMF. The goal may come late
    (``delay``) and may be followed with limited speed (``goal_speed``). Without enable the motor
    carries no current.

    Settings: ``inputs`` names exogenous inputs beside the goal, ``none``, ``voltage``, ``enable``
    or ``voltage+enable``; without an input of that name the parameter ``voltage`` counts and the
    motor is on.

    Source: M. Duclusaud, G. Passault, V. Padois, O. Ly, arXiv 2410.08650 (2024), section II, for
    the voltage-controlled actuator.
    """

    kind = "firmware_servo"
    target = "actuator"
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "inputs": ("none", "voltage", "enable", "voltage+enable"),
        "slew": ("no", "yes"),
    }

    def fields(self) -> tuple[Field, ...]:
        """Firmware gains, supply, motor constants, delay."""
        limited = self.settings["slew"] == "yes"
        supply = 0.0 if self._has_supply else np.nan
        speed = Field(name="goal_speed", unit="V", default=5.0, low=0.01, high=100.0)
        return (
            Field(name="kp", unit="", default=np.nan),
            Field(name="kd", unit="s", default=0.0),
            Field(name="gain", unit="1/J", default=np.nan),
            Field(name="voltage", unit="volt", default=supply),
            Field(name="duty_limit", unit="", default=1.0, low=0.01, high=1.0),
            *_motor_fields(),
            Field(name="offset", unit="J", default=0.0, low=-0.3, high=0.3),
            Field(name="delay", unit="s", default=0.0, high=_LONGEST_DELAY),
            *((speed,) if limited else ()),
        )

    @property
    def _has_supply(self) -> bool:
        return "voltage" in self.settings["inputs"].split("+")

    def idle(self, values: Mapping[str, float]) -> Mapping[str, str]:
        """The supply's voltage, where it is an input."""
        if not self._has_supply:
            return {}
        return {"voltage": "the input of that name takes its place"}

    def unit(self) -> str:
        """The action is a position."""
        return "J"

    def inputs(self) -> tuple[Signal, ...]:
        """Supply voltage and enable flag, as far as wanted."""
        wanted = self.settings["inputs"].split("+")
        offered = (
            Signal(name="voltage", unit="volt", default=np.nan),
            Signal(name="enable", unit="", default=1.0),
        )
        return tuple(signal for signal in offered if signal.name in wanted)

    @cached_property
    def _line(self) -> DelayLine:
        return DelayLine(_LONGEST_DELAY, self.clock)

    def memory(self) -> int:
        """Past goals, the goal being followed, and whether the first goal has come."""
        return self._line.size + 2

    def _told(self, xp: Any, memory: Array, motion: Motion) -> Array:
        """Memory with this tick's goal; the first one is taken as having lasted for ever."""
        goal, fresh = motion.command[..., 0], memory[..., -1] == 0
        line = self._line.taken(memory[..., :-2], goal, fresh)
        followed = xp.where(fresh, goal, memory[..., -2])
        return _kept(xp, line, followed)

    def act(self, values: Values, memory: Array, motion: Motion) -> Effect:
        """Torque that the firmware lets the motor give."""
        xp = library(values, memory, motion)
        memory = at_tick(motion.substep, lambda: self._told(xp, memory, motion), memory)
        line, followed = memory[..., :-2], memory[..., -2]
        wanted = self._line.read(line, values["delay"], motion.substep)
        if self.settings["slew"] == "yes":
            reach = values["goal_speed"] * self.clock.timestep
            wanted = clipped(wanted, followed - reach, followed + reach)
        error = wanted - motion.position - values["offset"]
        duty = values["gain"] * (values["kp"] * error - values["kd"] * motion.velocity)
        duty = clipped(duty, -values["duty_limit"], values["duty_limit"])
        supply = motion.inputs.get("voltage", values["voltage"])
        torque = _torque(supply * duty, values, motion.velocity)
        if "enable" in motion.inputs:
            torque = xp.where(motion.inputs["enable"] > 0.5, torque, 0.0)
        return Effect(memory=_kept(xp, line, wanted), force=torque)


def _kept(xp: Any, line: Array, followed: Array) -> Array:
    last = xp.stack([followed, xp.ones_like(followed)], axis=-1)
    return xp.concatenate([line, last], axis=-1)
