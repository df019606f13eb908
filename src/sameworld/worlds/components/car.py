"""Cars on the plane: kinematic and dynamic bicycle.

The body needs three joints in this order: slides along the world's x and y, and a hinge about z.
Actions are the steering angle and the speed that are asked for.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from sameworld.core.arrays import Array
from sameworld.worlds.components.arrays import at_tick, namespace
from sameworld.worlds.components.goals import DelayLine, lagged
from sameworld.worlds.components.law import Effect, Field, Law, Motion, Signal, Values, library

__all__ = ["DynamicCar", "KinematicCar"]

_LONGEST_DELAY = 0.3
#: Speed below which tyre slip angles are computed as at this speed [m/s].
_SLOWEST = 0.3
_ACTIONS = (Signal(name="steering", unit="rad"), Signal(name="throttle", unit="m/s"))


def _command_fields() -> tuple[Field, ...]:
    return (
        Field(name="steer_gain", unit="", default=1.0, low=0.1, high=3.0),
        Field(name="steer_offset", unit="rad", default=0.0, low=-0.3, high=0.3),
        Field(name="steer_lag", unit="s", default=0.05, high=1.0),
        Field(name="speed_gain", unit="", default=1.0, low=0.1, high=3.0),
        Field(name="speed_offset", unit="m/s", default=0.0, low=-2.0, high=2.0),
        Field(name="speed_lag", unit="s", default=0.2, high=3.0),
        Field(name="delay", unit="s", default=0.0, high=_LONGEST_DELAY),
    )


class _Car(Law):
    """What both cars share: commands arrive late, steering and speed follow them with a lag.

    Memory: past steering commands, past speed commands, steering angle, forward speed, whether the
    first command has come.
    """

    target = "body"

    def actions(self) -> tuple[Signal, ...]:
        """Steering angle and speed that are asked for."""
        return _ACTIONS

    @cached_property
    def _line(self) -> DelayLine:
        return DelayLine(_LONGEST_DELAY, self.clock)

    def memory(self) -> int:
        """Two delay lines, steering angle, speed, whether the first command has come."""
        return 2 * self._line.size + 3

    def outputs(self) -> tuple[Signal, ...]:
        """Forward speed and steering angle."""
        first = 2 * self._line.size
        return (
            Signal(name="speed", unit="m/s", column=first + 1, start="speed"),
            Signal(name="steer", unit="rad", column=first, start="steer"),
        )

    def starts(self) -> tuple[Field, ...]:
        """Forward speed and steering angle at the start."""
        return (
            Field(name="speed", unit="m/s", default=0.0, low=-np.inf),
            Field(name="steer", unit="rad", default=0.0, low=-0.6, high=0.6),
        )

    def begin(self, values: Values, starts: Values, motion: Motion) -> Array:
        """Steering and speed of the start; no command yet."""
        blank = super().begin(values, starts, motion)
        xp = namespace(blank, *starts.values())
        steer = starts["steer"]
        moving = xp.stack([steer, self._speed(starts, motion), xp.zeros_like(steer)], axis=-1)
        return xp.concatenate([blank[..., :-3], moving], axis=-1)

    def _speed(self, starts: Values, motion: Motion) -> Array:
        """Forward speed at the start."""
        return starts["speed"]

    def _commanded(
        self, xp: Any, values: Values, memory: Array, motion: Motion
    ) -> tuple[Array, Array]:
        """Delay lines after this step's commands [B, n, 2, K]; delayed commands [B, n, 2]."""
        size, fresh = self._line.size, memory[..., -1:] == 0
        before = xp.stack([memory[..., :size], memory[..., size : 2 * size]], axis=-2)
        lines = at_tick(
            motion.substep, lambda: self._line.taken(before, motion.command, fresh), before
        )
        delay = xp.repeat(values["delay"][..., None], 2, axis=-1)
        return lines, self._line.read(lines, delay, motion.substep)

    def _followed(
        self, xp: Any, values: Values, memory: Array, motion: Motion, speed: Array
    ) -> tuple[Array, Array, Array]:
        """Delay lines, steering angle and forward speed after this step."""
        lines, late = self._commanded(xp, values, memory, motion)
        steer = values["steer_gain"] * late[..., 0] + values["steer_offset"]
        steer = lagged(memory[..., -3], steer, values["steer_lag"], self.clock.timestep)
        wanted = values["speed_gain"] * late[..., 1] + values["speed_offset"]
        return lines, steer, lagged(speed, wanted, values["speed_lag"], self.clock.timestep)


def _kept(xp: Any, lines: Array, steer: Array, speed: Array) -> Array:
    flat = lines.reshape(*steer.shape, -1)
    last = xp.stack([steer, speed, xp.ones_like(steer)], axis=-1)
    return xp.concatenate([flat, last], axis=-1)


class KinematicCar(_Car):
    """Kinematic bicycle: no slip; the body's origin lies ``rear`` ahead of the rear axle.

    ``h' = v tan(steer) / wheelbase``, and the origin moves with ``v`` along the heading and
    ``rear h'`` across it. The joints are given these velocities; forces on them have no effect.

    Source: R. Rajamani, "Vehicle Dynamics and Control", 2nd ed. (2012), section 2.2.
    """

    kind = "kinematic_car"
    prescribes = True

    def fields(self) -> tuple[Field, ...]:
        """Wheelbase, place of the origin, what becomes of commands."""
        return (
            Field(name="wheelbase", unit="m", default=0.33, low=0.02, high=10.0),
            Field(name="rear", unit="m", default=0.0, low=-1.0, high=5.0),
            *_command_fields(),
        )

    def act(self, values: Values, memory: Array, motion: Motion) -> Effect:
        """Velocities of the planar joints, taken at the middle of the step."""
        xp, before = library(values, memory, motion), memory[..., -2]
        lines, steer, speed = self._followed(xp, values, memory, motion, before)
        middle, angle = (before + speed) / 2, (memory[..., -3] + steer) / 2
        rate = middle * xp.tan(angle) / values["wheelbase"]
        heading = motion.position[..., 2] + 0.5 * self.clock.timestep * rate
        cosine, sine, across = xp.cos(heading), xp.sin(heading), values["rear"] * rate
        x, y = middle * cosine - across * sine, middle * sine + across * cosine
        velocity = xp.stack([x, y, rate], axis=-1)
        return Effect(memory=_kept(xp, lines, steer, speed), velocity=velocity)


class DynamicCar(_Car):
    """Dynamic bicycle: lateral tyre forces from slip angles, saturated by friction.

    Lateral force of an axle is ``-C slip`` up to ``grip`` times the axle's load, joined by a
    hyperbolic tangent; the drive pulls the forward speed towards the commanded one. The body's
    origin is the centre of mass; its mass and moment of inertia come from the scene.

    Source: R. Rajamani, "Vehicle Dynamics and Control", 2nd ed. (2012), section 2.3; saturation by
    a hyperbolic tangent in place of Pacejka's formula.
    """

    kind = "dynamic_car"

    def fields(self) -> tuple[Field, ...]:
        """Axle distances, cornering stiffness, grip, what becomes of commands."""
        return (
            Field(name="front", unit="m", default=0.17, low=0.01, high=5.0),
            Field(name="rear", unit="m", default=0.16, low=0.01, high=5.0),
            Field(name="stiffness_front", unit="N/rad", default=50.0, high=1e6),
            Field(name="stiffness_rear", unit="N/rad", default=50.0, high=1e6),
            Field(name="grip", unit="", default=1.0, low=0.05, high=3.0),
            *_command_fields(),
        )

    def _speed(self, starts: Values, motion: Motion) -> Array:
        """Forward speed of the joints' start velocity."""
        return _body_frame(motion)[0]

    def starts(self) -> tuple[Field, ...]:
        """Steering angle; speed and slip are those of the joints."""
        return super().starts()[1:]

    def outputs(self) -> tuple[Signal, ...]:
        """Forward speed, which follows from the joints, and steering angle."""
        speed, steer = super().outputs()
        return Signal(name="speed", unit=speed.unit, column=speed.column), steer

    def act(self, values: Values, memory: Array, motion: Motion) -> Effect:
        """Forces and torque on the planar joints."""
        xp = library(values, memory, motion)
        forward, sideways, rate = _body_frame(motion)
        lines, steer, wanted = self._followed(xp, values, memory, motion, forward)
        mass = motion.mass[..., 0]
        pull = mass * (wanted - forward) / self.clock.timestep
        front, rear = values["front"], values["rear"]
        slow = xp.maximum(xp.abs(forward), _SLOWEST)
        slip_front = xp.arctan2(sideways + front * rate, slow) - steer * xp.sign(forward)
        slip_rear = xp.arctan2(sideways - rear * rate, slow)
        weight = mass * 9.81 / (front + rear)
        grip = values["grip"] * weight
        held_front = _tyre(xp, values["stiffness_front"], slip_front, grip * rear)
        held_rear = _tyre(xp, values["stiffness_rear"], slip_rear, grip * front)
        along = pull - held_front * xp.sin(steer)
        across = held_front * xp.cos(steer) + held_rear
        turn = front * held_front * xp.cos(steer) - rear * held_rear
        cosine, sine = xp.cos(motion.position[..., 2]), xp.sin(motion.position[..., 2])
        force = xp.stack(
            [along * cosine - across * sine, along * sine + across * cosine, turn], axis=-1
        )
        return Effect(memory=_kept(xp, lines, steer, wanted), force=force)


def _body_frame(motion: Motion) -> tuple[Array, Array, Array]:
    """Forward speed, sideways speed, yaw rate."""
    heading, xp = motion.position[..., 2], namespace(motion.position)
    x, y, rate = (motion.velocity[..., k] for k in range(3))
    cosine, sine = xp.cos(heading), xp.sin(heading)
    return x * cosine + y * sine, y * cosine - x * sine, rate


def _tyre(xp: Any, stiffness: Array, slip: Array, most: Array) -> Array:
    """Lateral force: linear for small slip, at most ``most``."""
    return -most * xp.tanh(stiffness * slip / most)
