"""The signals of a compiled scene: where each observation and action lives, with its unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.errors import SceneError, listed
from sameworld.core.spec import ChannelSpec
from sameworld.worlds.compiled.actuators import control_unit
from sameworld.worlds.compiled.engine import Model, mj

__all__ = ["Signal", "action_channels", "joint_signals", "sensor_signals", "unique_names"]

_TOLERANCE = {"m": 0.01, "m/s": 0.1, "rad": 0.05, "rad/s": 0.5}
_AXES = ("x", "y", "z")
#: Units of MJCF sensors; a ``?`` depends on whether the joint slides.
_SENSOR_UNITS = {
    "ACCELEROMETER": "m/s^2",
    "VELOCIMETER": "m/s",
    "GYRO": "rad/s",
    "FORCE": "N",
    "TORQUE": "N m",
    "TOUCH": "N",
    "RANGEFINDER": "m",
    "JOINTPOS": "?pos",
    "JOINTVEL": "?vel",
    "JOINTACTFRC": "?force",
    "BALLANGVEL": "rad/s",
    "FRAMEPOS": "m",
    "FRAMELINVEL": "m/s",
    "FRAMEANGVEL": "rad/s",
    "FRAMELINACC": "m/s^2",
    "FRAMEANGACC": "rad/s^2",
    "SUBTREECOM": "m",
    "SUBTREELINVEL": "m/s",
}
_JOINT_UNITS = {"pos": ("m", "rad"), "vel": ("m/s", "rad/s"), "force": ("N", "N m")}


@dataclass(frozen=True, kw_only=True)
class Signal:
    """An observation and the slice of a state array that holds it.

    Attributes:
        spec: The channel.
        source: Array it is read from.
        first: First column.
    """

    spec: ChannelSpec
    source: Literal["qpos", "qvel", "sensordata", "memory"]
    first: int

    def read(self, array: Array) -> Array:
        """View of the signal in ``array`` [..., n]."""
        if self.spec.shape == ():
            return array[..., self.first]
        return array[..., self.first : self.first + self.spec.size]


def joint_signals(model: Model) -> list[Signal]:
    """Position and velocity of every joint; a free joint speaks for its body."""
    signals: list[Signal] = []
    for joint in range(model.njnt):
        kind = mj.mjtJoint(int(model.jnt_type[joint])).name.removeprefix("mjJNT_")
        qpos, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        if kind == "FREE":
            body = model.body(int(model.jnt_bodyid[joint])).name
            signals += _free_signals(body, qpos, dof)
        elif kind == "BALL":
            signals += _rotation_signals(model.joint(joint).name, qpos, dof)
        else:
            signals += _scalar_signals(model, joint, qpos, dof)
    return signals


def _channel(name: str, unit: str, **fields: object) -> ChannelSpec:
    tolerance = _TOLERANCE.get(unit, math.inf)
    return ChannelSpec(name=name, unit=unit, tolerance=tolerance, **fields)  # type: ignore[arg-type]


def _starts(target: str, part: str) -> tuple[str, ...]:
    return tuple(f"start:{target}.{part}.{axis}" for axis in _AXES)


def _free_signals(body: str, qpos: int, dof: int) -> list[Signal]:
    pos, vel = _starts(body, "pos"), _starts(body, "vel")
    return [
        Signal(
            spec=_channel(f"{body}.pos", "m", shape=(3,), start=pos, rate=vel),
            source="qpos",
            first=qpos,
        ),
        *_rotation_signals(body, qpos + 3, dof + 3)[:1],
        Signal(
            spec=_channel(f"{body}.vel", "m/s", shape=(3,), start=vel), source="qvel", first=dof
        ),
        *_rotation_signals(body, qpos + 3, dof + 3)[1:],
    ]


def _rotation_signals(target: str, qpos: int, dof: int) -> list[Signal]:
    rot, omega = _starts(target, "rot"), _starts(target, "omega")
    turn = _channel(
        f"{target}.quat", "rad", shape=(4,), manifold="quaternion", start=rot, rate=omega
    )
    rate = _channel(f"{target}.omega", "rad/s", shape=(3,), start=omega)
    return [
        Signal(spec=turn, source="qpos", first=qpos),
        Signal(spec=rate, source="qvel", first=dof),
    ]


def _scalar_signals(model: Model, joint: int, qpos: int, dof: int) -> list[Signal]:
    name = model.joint(joint).name
    units = ("m", "m/s") if _slides(model, joint) else ("rad", "rad/s")
    limited = bool(model.jnt_limited[joint])
    low, high = model.jnt_range[joint].tolist() if limited else (-math.inf, math.inf)
    pos, vel = f"start:{name}.pos", f"start:{name}.vel"
    return [
        Signal(
            spec=_channel(f"{name}.pos", units[0], low=low, high=high, start=(pos,), rate=(vel,)),
            source="qpos",
            first=qpos,
        ),
        Signal(spec=_channel(f"{name}.vel", units[1], start=(vel,)), source="qvel", first=dof),
    ]


def _slides(model: Model, joint: int) -> bool:
    return int(model.jnt_type[joint]) == int(mj.mjtJoint.mjJNT_SLIDE)


def sensor_signals(model: Model) -> list[Signal]:
    """Every ``<sensor>`` under its own name."""
    return [
        Signal(
            spec=_sensor_channel(model, sensor),
            source="sensordata",
            first=int(model.sensor_adr[sensor]),
        )
        for sensor in range(model.nsensor)
    ]


def _sensor_channel(model: Model, sensor: int) -> ChannelSpec:
    kind = mj.mjtSensor(int(model.sensor_type[sensor])).name.removeprefix("mjSENS_")
    name, size = model.sensor(sensor).name, int(model.sensor_dim[sensor])
    quaternion = int(mj.mjtDataType.mjDATATYPE_QUATERNION)
    if int(model.sensor_datatype[sensor]) == quaternion:
        start, rate = _sensor_starts(model, sensor, kind)
        return _channel(name, "rad", shape=(4,), manifold="quaternion", start=start, rate=rate)
    unit = _SENSOR_UNITS.get(kind, "")
    if unit.startswith("?"):
        slides = _slides(model, int(model.sensor_objid[sensor]))
        unit = _JOINT_UNITS[unit[1:]][0 if slides else 1]
    start, rate = _sensor_starts(model, sensor, kind)
    return _channel(name, unit, shape=() if size == 1 else (size,), start=start, rate=rate)


def _sensor_starts(model: Model, sensor: int, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Start parameters a sensor shows directly, and those that are its rate."""
    if int(model.sensor_history[sensor, 0]) > 0:
        return (), ()
    target = int(model.sensor_objid[sensor])
    if kind in ("JOINTPOS", "JOINTVEL"):
        joint = model.joint(target).name
        pos, vel = (f"start:{joint}.pos",), (f"start:{joint}.vel",)
        return (pos, vel) if kind == "JOINTPOS" else (vel, ())
    if kind in ("BALLQUAT", "BALLANGVEL"):
        joint = model.joint(target).name
        rot, omega = _starts(joint, "rot"), _starts(joint, "omega")
        return (rot, omega) if kind == "BALLQUAT" else (omega, ())
    if kind in ("FRAMEPOS", "FRAMEQUAT") and _is_free_frame(model, sensor):
        body = model.body(target).name
        if kind == "FRAMEPOS":
            return _starts(body, "pos"), _starts(body, "vel")
        return _starts(body, "rot"), _starts(body, "omega")
    return (), ()


def _is_free_frame(model: Model, sensor: int) -> bool:
    """Whether a frame sensor shows the frame of a free body in the world."""
    if int(model.sensor_objtype[sensor]) != int(mj.mjtObj.mjOBJ_XBODY):
        return False
    body = int(model.sensor_objid[sensor])
    joint = int(model.body_jntadr[body])
    unreferenced = int(model.sensor_refid[sensor]) < 0
    return unreferenced and joint >= 0 and int(model.jnt_type[joint]) == int(mj.mjtJoint.mjJNT_FREE)


def action_channels(model: Model) -> list[ChannelSpec]:
    """One channel per actuator, in the order of MuJoCo's control vector."""
    channels: list[ChannelSpec] = []
    for actuator in np.argsort(model.actuator_ctrladr, kind="stable").tolist():
        size, first = int(model.actuator_ctrlnum[actuator]), int(model.actuator_ctrladr[actuator])
        if size == 0:
            continue
        low, high = -math.inf, math.inf
        if size == 1 and bool(model.actuator_ctrllimited[first]):
            low, high = model.actuator_ctrlrange[first].tolist()
        channels.append(
            ChannelSpec(
                name=model.actuator(actuator).name,
                shape=() if size == 1 else (size,),
                unit=control_unit(model, actuator),
                low=low,
                high=high,
            )
        )
    return channels


def unique_names(channels: Sequence[ChannelSpec], scene: str) -> None:
    """Refuse a scene in which two signals would carry one name.

    Raises:
        SceneError: A sensor or actuator is named like another signal.
    """
    names = [channel.name for channel in channels]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SceneError(
            f"Scene '{scene}': several signals are called {listed(twice)} (joints and free bodies "
            "give NAME.pos, NAME.vel, ...; sensors and actuators their own names). Rename the "
            "sensors or actuators."
        )
