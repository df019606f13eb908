"""Actuators as parameters, by what MuJoCo compiled them to."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.compiled.slots import Bounds, FieldWrite, Slot, SpecWrite, around, positive

__all__ = [
    "actuator_slots",
    "control_unit",
    "is_direct_drive",
    "is_position_servo",
    "is_velocity_servo",
]

_GAIN, _BIAS, _DYN = "gainprm", "biasprm", "dynprm"
#: LuGre parameters of a DC motor and where MuJoCo compiles them to.
_LUGRE = (
    ("stiffness", "N m/rad", _DYN, 5),
    ("damping", "N m s/rad", _DYN, 6),
    ("coulomb", "N m", _BIAS, 3),
    ("static", "N m", _BIAS, 4),
    ("stribeck", "rad/s", _BIAS, 5),
)
#: Model arrays with one number per actuator.
_SCALARS = ("delay", "armature", "damping")
#: Units of kp and kv by the unit of a servo's command.
_SERVO_UNITS = {
    "rad": ("N m/rad", "N m s/rad"),
    "m": ("N/m", "N s/m"),
    "rad/s": ("", "N m s/rad"),
    "m/s": ("", "N s/m"),
}
_TERMS = ("constant", "position", "velocity")


def is_position_servo(model: Model, actuator: int) -> bool:
    """Whether force is ``kp (control - position) - kv velocity``."""
    return _is_servo(model, actuator, 1)


def is_velocity_servo(model: Model, actuator: int) -> bool:
    """Whether force is ``kv (control - velocity)``."""
    return _is_servo(model, actuator, 2) and float(model.actuator_biasprm[actuator, 1]) == 0.0


def is_direct_drive(model: Model, actuator: int) -> bool:
    """Whether the actuator hands its control on as a force to one joint, unlimited and at once."""
    joints = (int(mj.mjtTrn.mjTRN_JOINT), int(mj.mjtTrn.mjTRN_JOINTINPARENT))
    return (
        int(model.actuator_trntype[actuator]) in joints
        and _gain_type(model, actuator) == "FIXED"
        and _bias_type(model, actuator) == "NONE"
        and _dyn_type(model, actuator) == "NONE"
        and float(model.actuator_gainprm[actuator, 0]) == 1.0
        and not model.actuator_ctrllimited[actuator]
        and int(model.actuator_history[actuator, 0]) == 0
    )


def _is_servo(model: Model, actuator: int, term: int) -> bool:
    gain = float(model.actuator_gainprm[actuator, 0])
    return (
        _gain_type(model, actuator) == "FIXED"
        and _bias_type(model, actuator) == "AFFINE"
        and gain != 0
        and float(model.actuator_biasprm[actuator, term]) == -gain
    )


def _gain_type(model: Model, actuator: int) -> str:
    return mj.mjtGain(int(model.actuator_gaintype[actuator])).name.removeprefix("mjGAIN_")


def _bias_type(model: Model, actuator: int) -> str:
    return mj.mjtBias(int(model.actuator_biastype[actuator])).name.removeprefix("mjBIAS_")


def _dyn_type(model: Model, actuator: int) -> str:
    return mj.mjtDyn(int(model.actuator_dyntype[actuator])).name.removeprefix("mjDYN_")


def control_unit(model: Model, actuator: int) -> str:
    """Unit of the control signal where it is certain, else empty."""
    joint_kinds = (int(mj.mjtTrn.mjTRN_JOINT), int(mj.mjtTrn.mjTRN_JOINTINPARENT))
    if int(model.actuator_trntype[actuator]) not in joint_kinds:
        return ""
    kind = int(model.jnt_type[model.actuator_trnid[actuator, 0]])
    units = {
        int(mj.mjtJoint.mjJNT_HINGE): ("rad", "rad/s", "N m"),
        int(mj.mjtJoint.mjJNT_SLIDE): ("m", "m/s", "N"),
    }.get(kind)
    if units is None or float(model.actuator_gear[actuator, 0]) != 1.0:
        return ""
    if is_position_servo(model, actuator):
        return units[0]
    if is_velocity_servo(model, actuator):
        return units[1]
    plain = _gain_type(model, actuator) == "FIXED" and _bias_type(model, actuator) == "NONE"
    unity = float(model.actuator_gainprm[actuator, 0]) == 1.0
    return units[2] if plain and unity and _dyn_type(model, actuator) == "NONE" else ""


@dataclass(frozen=True, kw_only=True)
class _Builder:
    """Makes slots of one actuator."""

    model: Model
    actuator: int
    name: str

    def slot(self, part: str, unit: str, bounds: Bounds, *places: tuple[str, int, float]) -> Slot:
        fields: list[FieldWrite] = []
        attrs: list[SpecWrite] = []
        for array, index, factor in places:
            scalar = array in _SCALARS
            where = (self.actuator,) if scalar else (self.actuator, index)
            fields.append((f"actuator_{array}", where, factor))
            place = -1 if array in ("delay", "armature") else index
            attrs.append(("actuator", self.name, array, place, factor))
        return Slot(
            name=f"actuator:{self.name}.{part}",
            unit=unit,
            value=self.value(*places[0]),
            bounds=bounds,
            fields=tuple(fields),
            attrs=tuple(attrs),
        )

    def value(self, array: str, index: int = 0, factor: float = 1.0) -> float:
        values = getattr(self.model, f"actuator_{array}")[self.actuator]
        return float(values if array in _SCALARS else values[index]) / factor

    def free(self, part: str, array: str, index: int) -> Slot:
        """A number of either sign."""
        value = self.value(array, index)
        span = 10 * abs(value) if value else 10.0
        bounds = positive(value) if value > 0 else around(value, span)
        return self.slot(part, "", bounds, (array, index, 1.0))


def actuator_slots(model: Model, actuator: int) -> list[Slot]:
    """Slots of one actuator: gains, filter, force limits, gear, delay."""
    make = _Builder(model=model, actuator=actuator, name=model.actuator(actuator).name)
    slots = [*_gains(make), *_dynamics(make), *_limits(make)]
    gear = make.value("gear")
    if gear:
        slots.append(make.free("gear", "gear", 0))
    for part in ("armature", "damping"):
        value = make.value(part)
        slots.append(make.slot(part, "", positive(value), (part, 0, 1.0)))
    samples = int(model.actuator_history[actuator, 0])
    if samples > 0:
        high = samples * float(model.opt.timestep)
        slots.append(make.slot("delay", "s", (0.0, high), ("delay", 0, 1.0)))
    return slots


def _gains(make: _Builder) -> list[Slot]:
    model, actuator = make.model, make.actuator
    if is_position_servo(model, actuator):
        kp, kv = make.value(_GAIN), make.value(_BIAS, 2, -1.0)
        stiffness, damping = _SERVO_UNITS.get(control_unit(model, actuator), ("", ""))
        return [
            make.slot("kp", stiffness, positive(kp), (_GAIN, 0, 1.0), (_BIAS, 1, -1.0)),
            make.slot("kv", damping, positive(kv, high=max(1.0, kp)), (_BIAS, 2, -1.0)),
        ]
    if is_velocity_servo(model, actuator):
        kv = make.value(_GAIN)
        damping = _SERVO_UNITS.get(control_unit(model, actuator), ("", ""))[1]
        return [make.slot("kv", damping, positive(kv), (_GAIN, 0, 1.0), (_BIAS, 2, -1.0))]
    slots: list[Slot] = []
    gain, bias = _gain_type(model, actuator), _bias_type(model, actuator)
    if gain == "DCMOTOR":
        resistance, constant = make.value(_GAIN, 0), make.value(_GAIN, 1)
        slots.append(make.slot("resistance", "ohm", positive(resistance), (_GAIN, 0, 1.0)))
        slots.append(make.slot("motorconst", "N m/A", positive(constant), (_GAIN, 1, 1.0)))
        slots += _motor_friction(make)
    if gain in ("FIXED", "AFFINE"):
        slots.append(make.free("gain", _GAIN, 0))
    if gain == "AFFINE":
        slots += [make.free(f"gain.{_TERMS[k]}", _GAIN, k) for k in (1, 2)]
    if bias == "AFFINE":
        slots += [make.free(f"bias.{_TERMS[k]}", _BIAS, k) for k in (0, 1, 2)]
    return slots


def _motor_friction(make: _Builder) -> list[Slot]:
    """Cogging and LuGre friction of a DC motor, where the scene has them."""
    slots: list[Slot] = []
    if amplitude := make.value(_BIAS, 0):
        bounds = positive(amplitude)
        slots.append(make.slot("cogging.amplitude", "N m", bounds, (_BIAS, 0, 1.0)))
        phase = around(make.value(_BIAS, 2), math.pi)
        slots.append(make.slot("cogging.phase", "rad", phase, (_BIAS, 2, 1.0)))
    if make.value(_DYN, 5) > 0:
        for part, unit, array, index in _LUGRE:
            bounds = positive(make.value(array, index))
            slots.append(make.slot(f"lugre.{part}", unit, bounds, (array, index, 1.0)))
    return slots


def _dynamics(make: _Builder) -> list[Slot]:
    if _dyn_type(make.model, make.actuator) not in ("FILTER", "FILTEREXACT", "DCMOTOR"):
        return []
    value = make.value(_DYN)
    return [make.slot("timeconst", "s", positive(value), (_DYN, 0, 1.0))] if value > 0 else []


def _limits(make: _Builder) -> list[Slot]:
    if not make.model.actuator_forcelimited[make.actuator]:
        return []
    low, high = make.value("forcerange", 0), make.value("forcerange", 1)
    span = max(abs(low), abs(high))
    return [
        make.slot("force.low", "", (low - 19 * span, min(high, 0.0)), ("forcerange", 0, 1.0)),
        make.slot("force.high", "", (max(low, 0.0), high + 19 * span), ("forcerange", 1, 1.0)),
    ]
