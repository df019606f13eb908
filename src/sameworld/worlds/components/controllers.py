"""Joint controllers outside the motor: impedance with late commands, PD with filtered velocity."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sameworld.core.arrays import Array
from sameworld.worlds.components.arrays import at_tick, clipped, namespace
from sameworld.worlds.components.goals import DelayLine, lagged
from sameworld.worlds.components.law import Effect, Field, Law, Motion, Signal, Values, library

__all__ = ["FilteredPD", "JointImpedance"]

_LONGEST_DELAY = 0.5


class JointImpedance(Law):
    """Joint impedance: a spring and a damper to a commanded position, gravity carried along.

    ``force = stiffness (goal - q) - damping v + compensation * (-load)``: with ``compensation``
    1 the controller carries gravity and inertial coupling as its own model has them (one engine
    step late). The goal is delayed by ``delay`` and smoothed by a first-order ``lag``, as
    interpolating robot drivers do.

    Source: A. Albu-Schaeffer, C. Ott, G. Hirzinger, "A unified passivity-based control framework
    for position, torque and impedance control of flexible joint robots", IJRR 26 (2007).
    """

    kind = "joint_impedance"
    target = "actuator"

    def fields(self) -> tuple[Field, ...]:
        """Spring, damper, compensation, and what happens to the goal."""
        return (
            Field(name="stiffness", unit="F/J", default=np.nan),
            Field(name="damping", unit="F/V", default=np.nan),
            Field(name="compensation", unit="", default=1.0, high=1.5),
            Field(name="offset", unit="J", default=0.0, low=-0.3, high=0.3),
            Field(name="delay", unit="s", default=0.0, high=_LONGEST_DELAY),
            Field(name="lag", unit="s", default=0.0, high=2.0),
        )

    def idle(self, values: Mapping[str, float]) -> Mapping[str, str]:
        """Everything about the goal, where no spring pulls towards it."""
        if values["stiffness"]:
            return {}
        return dict.fromkeys(("offset", "delay", "lag"), "the stiffness is 0")

    def unit(self) -> str:
        """The action is a position."""
        return "J"

    @cached_property
    def _line(self) -> DelayLine:
        return DelayLine(_LONGEST_DELAY, self.clock)

    def reads(self) -> frozenset[str]:
        """The load it carries."""
        return frozenset({"load"})

    def memory(self) -> int:
        """Past goals, the smoothed goal, and whether the first goal has come."""
        return self._line.size + 2

    def _told(self, xp: Any, values: Values, memory: Array, motion: Motion) -> Array:
        """Memory with this tick's goal.

        Nothing is known of earlier goals: the robot is taken to rest at the one it follows.
        """
        fresh = memory[..., -1] == 0
        line = self._line.taken(memory[..., :-2], motion.command[..., 0], fresh)
        smooth = xp.where(fresh, motion.position + values["offset"], memory[..., -2])
        return _kept(xp, line, smooth)

    def act(self, values: Values, memory: Array, motion: Motion) -> Effect:
        """Force of spring and damper, and the load carried along."""
        xp = library(values, memory, motion)
        memory = at_tick(motion.substep, lambda: self._told(xp, values, memory, motion), memory)
        line, smooth = memory[..., :-2], memory[..., -2]
        late = self._line.read(line, values["delay"], motion.substep)
        smooth = lagged(smooth, late, values["lag"], self.clock.timestep)
        error = smooth - motion.position - values["offset"]
        force = values["stiffness"] * error - values["damping"] * motion.velocity
        force = force - values["compensation"] * motion.load
        return Effect(memory=_kept(xp, line, smooth), force=force)


def _kept(xp: Any, line: Array, smooth: Array) -> Array:
    last = xp.stack([smooth, xp.ones_like(smooth)], axis=-1)
    return xp.concatenate([line, last], axis=-1)


class FilteredPD(Law):
    """Sampled PD position controller whose velocity is a filtered difference of positions.

    Once per control tick ``u = kp kv (goal - q) - kv dq``, saturated at ``limit``, where ``dq`` is
    the difference of the mean of two successive samples, ``(q_k - q_{k-2}) / (2 T)``; the drive
    turns ``u`` into a force by ``drive_gain``, to which ``offset`` is added. The output is held
    until the next tick. With setting ``disturbance`` = ``yes`` the exogenous input of that name is
    added before the saturation.

    Source: A. Janot, M. Gautier, M. Brunot, "Data Set and Reference Models of EMPS", Workshop on
    Nonlinear System Identification Benchmarks (2019).
    """

    kind = "filtered_pd"
    target = "actuator"
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {"disturbance": ("no", "yes")}

    def fields(self) -> tuple[Field, ...]:
        """Gains, saturation, drive, a constant force."""
        return (
            Field(name="kp", unit="1/s", default=np.nan),
            Field(name="kv", unit="volt/V", default=np.nan),
            Field(name="limit", unit="volt", default=10.0),
            Field(name="drive_gain", unit="F/volt", default=1.0),
            Field(name="offset", unit="F", default=0.0, low=-np.inf),
        )

    def outputs(self) -> tuple[Signal, ...]:
        """The output held during the control tick that ends now."""
        return (Signal(name="output", unit="volt", column=2),)

    def idle(self, values: Mapping[str, float]) -> Mapping[str, str]:
        """Gain of the position, where the gain of the velocity, which multiplies it, is 0."""
        return {} if values["kv"] else {"kp": "kv is 0"}

    def unit(self) -> str:
        """The action is a position."""
        return "J"

    def inputs(self) -> tuple[Signal, ...]:
        """A known voltage added to the output, with setting ``disturbance`` = ``yes``."""
        if self.settings["disturbance"] == "no":
            return ()
        return (Signal(name="disturbance", unit="volt"),)

    def memory(self) -> int:
        """Two past samples of the position, the held output."""
        return 3

    def begin(self, values: Values, starts: Values, motion: Motion) -> Array:
        """Past samples as if the joint had moved with its start velocity."""
        before = motion.position - self.clock.period * motion.velocity
        earlier = before - self.clock.period * motion.velocity
        xp = namespace(before)
        return xp.stack([before, earlier, xp.zeros_like(before)], axis=-1)

    def _sampled(self, values: Values, memory: Array, motion: Motion) -> Array:
        """Memory with this tick's sample and output."""
        xp = library(values, memory, motion)
        speed = (motion.position - memory[..., 1]) / (2 * self.clock.period)
        wanted = values["kv"] * (values["kp"] * (motion.command[..., 0] - motion.position))
        output = wanted - values["kv"] * speed
        if self.settings["disturbance"] == "yes":
            output = output + motion.inputs["disturbance"]
        output = clipped(output, -values["limit"], values["limit"])
        return xp.stack([motion.position, memory[..., 0], output], axis=-1)

    def act(self, values: Values, memory: Array, motion: Motion) -> Effect:
        """Force of the held output; a new output at the beginning of a tick."""
        memory = at_tick(motion.substep, lambda: self._sampled(values, memory, motion), memory)
        force = values["drive_gain"] * memory[..., 2] + values["offset"]
        return Effect(memory=memory, force=force)
