"""Every parameter address of a compiled scene."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from sameworld.worlds.compiled.actuators import actuator_slots
from sameworld.worlds.compiled.compile import Compiled
from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.compiled.inertial import body_slots
from sameworld.worlds.compiled.slots import Bounds, FieldWrite, Slot, SpecWrite, around, positive

__all__ = ["model_slots", "pair_names"]

_AXES = ("x", "y", "z")
_SOLIMP = ("dmin", "dmax", "width", "midpoint", "power")


def model_slots(compiled: Compiled, believed: Iterable[str] = ()) -> list[Slot]:
    """All addresses that edit the model, in a fixed order: what others depend on first.

    Args:
        compiled: The scene.
        believed: Names in the scene's belief; they decide how a contact pair is spelled.
    """
    model = compiled.model
    slots: list[Slot] = []
    for body in range(1, model.nbody):
        if model.body_weldid[body] != 0 and model.body_mass[body] > 0:
            slots += body_slots(model, body)
    for geom in range(model.ngeom):
        slots += _geom_slots(model, geom)
    for pair, name in enumerate(pair_names(model, believed)):
        slots += _pair_slots(model, pair, name)
    for joint in range(model.njnt):
        slots += _joint_slots(model, joint, in_degrees=bool(compiled.spec.compiler.degree))
    for tendon in range(model.ntendon):
        slots += _tendon_slots(model, tendon)
    for actuator in range(model.nactuator):
        slots += actuator_slots(model, actuator)
    return slots + _gravity_slots(model)


def pair_names(model: Model, believed: Iterable[str] = ()) -> list[str]:
    """Targets ``A+B`` of the model's contact pairs.

    Alphabetical, unless the belief spells it the other way round.
    """
    spelled = {n.removeprefix("pair:").split(".")[0] for n in believed if n.startswith("pair:")}
    names: list[str] = []
    for first, second in zip(model.pair_geom1, model.pair_geom2, strict=True):
        a, b = sorted((model.geom(int(first)).name, model.geom(int(second)).name))
        names.append(f"{b}+{a}" if f"{b}+{a}" in spelled else f"{a}+{b}")
    return names


def _slot(
    name: str, unit: str, bounds: Bounds, value: float, field: FieldWrite, attr: SpecWrite
) -> Slot:
    return Slot(name=name, unit=unit, value=value, bounds=bounds, fields=(field,), attrs=(attr,))


# ---- geoms and pairs ---------------------------------------------------------------------------


def _geom_slots(model: Model, geom: int) -> list[Slot]:
    name = model.geom(geom).name
    kind = int(model.geom_type[geom])
    slots: list[Slot] = []
    for k in range(_editable_sizes(kind)):
        value = float(model.geom_size[geom, k])
        field, attr = ("geom_size", (geom, k), 1.0), ("geom", name, "size", k, 1.0)
        slots.append(
            _slot(f"geom:{name}.size.{k}", "m", positive(value, factor=5), value, field, attr)
        )
    reach = 0.05 + 0.5 * float(model.geom_rbound[geom])
    for k, axis in enumerate(_AXES):
        value = float(model.geom_pos[geom, k])
        field, attr = ("geom_pos", (geom, k), 1.0), ("geom", name, "pos", k, 1.0)
        slots.append(
            _slot(f"geom:{name}.pos.{axis}", "m", around(value, reach), value, field, attr)
        )
    if model.geom_contype[geom] or model.geom_conaffinity[geom]:
        slots += _contact_slots(model, "geom", geom, f"geom:{name}", name)
    return slots


def _editable_sizes(kind: int) -> int:
    """Numbers of ``geom_size`` that shape a primitive; planes and meshes have none."""
    sizes = {
        mj.mjtGeom.mjGEOM_SPHERE: 1,
        mj.mjtGeom.mjGEOM_CAPSULE: 2,
        mj.mjtGeom.mjGEOM_CYLINDER: 2,
        mj.mjtGeom.mjGEOM_ELLIPSOID: 3,
        mj.mjtGeom.mjGEOM_BOX: 3,
    }
    return next((count for shape, count in sizes.items() if int(shape) == kind), 0)


def _pair_slots(model: Model, pair: int, target: str) -> list[Slot]:
    element = model.pair(pair).name
    slots = _contact_slots(model, "pair", pair, f"pair:{target}", element)
    value = float(model.pair_margin[pair])
    field, attr = ("pair_margin", (pair,), 1.0), ("pair", element, "margin", -1, 1.0)
    bounds = positive(value, high=0.01)
    slots.append(_slot(f"pair:{target}.margin", "m", bounds, value, field, attr))
    return slots


def _contact_slots(model: Model, kind: str, index: int, prefix: str, element: str) -> list[Slot]:
    slots = _friction_slots(model, kind, index, prefix, element)
    for place, (part, unit, factor) in enumerate(_solref_parts(model, kind, index)):
        value = float(getattr(model, f"{kind}_solref")[index, place]) / factor
        bounds = (2 * float(model.opt.timestep), 1.0) if part == "timeconst" else positive(value)
        field = (f"{kind}_solref", (index, place), factor)
        attr = (kind, element, "solref", place, factor)
        slots.append(_slot(f"{prefix}.solref.{part}", unit, bounds, value, field, attr))
    limits = ((1e-4, 0.9999), (1e-4, 0.9999), (1e-6, 0.1), (0.0, 1.0), (1.0, 6.0))
    for place, (part, bounds) in enumerate(zip(_SOLIMP, limits, strict=True)):
        value = float(getattr(model, f"{kind}_solimp")[index, place])
        unit = "m" if part == "width" else ""
        field = (f"{kind}_solimp", (index, place), 1.0)
        attr = (kind, element, "solimp", place, 1.0)
        slots.append(_slot(f"{prefix}.solimp.{part}", unit, bounds, value, field, attr))
    return slots


def _friction_slots(model: Model, kind: str, index: int, prefix: str, element: str) -> list[Slot]:
    array = getattr(model, f"{kind}_friction")
    places = {"slide": (0,), "spin": (1,), "roll": (2,)}
    if kind == "pair":
        places = {"slide": (0, 1), "spin": (2,), "roll": (3, 4)}
    bounds = {"slide": (0.01, 3.0), "spin": (1e-5, 0.1), "roll": (1e-6, 0.05)}
    units = {"slide": "", "spin": "m", "roll": "m"}
    return [
        Slot(
            name=f"{prefix}.friction.{part}",
            unit=units[part],
            value=float(array[index, where[0]]),
            bounds=bounds[part],
            fields=tuple((f"{kind}_friction", (index, k), 1.0) for k in where),
            attrs=tuple((kind, element, "friction", k, 1.0) for k in where),
        )
        for part, where in places.items()
    ]


def _solref_parts(model: Model, kind: str, index: int) -> tuple[tuple[str, str, float], ...]:
    """Time constant and damping ratio, or stiffness and damping where MuJoCo's format is direct."""
    if float(getattr(model, f"{kind}_solref")[index, 0]) > 0:
        return ("timeconst", "s", 1.0), ("dampratio", "", 1.0)
    return ("stiffness", "1/s^2", -1.0), ("damping", "1/s", -1.0)


# ---- joints ------------------------------------------------------------------------------------


def _joint_slots(model: Model, joint: int, *, in_degrees: bool) -> list[Slot]:
    kind = int(model.jnt_type[joint])
    if kind == int(mj.mjtJoint.mjJNT_FREE):
        return []
    name, linear = model.joint(joint).name, kind == int(mj.mjtJoint.mjJNT_SLIDE)
    first = int(model.jnt_dofadr[joint])
    dofs = range(first, first + (3 if kind == int(mj.mjtJoint.mjJNT_BALL) else 1))
    units = ("N s/m", "N", "kg", "N/m", "m") if linear else _ANGULAR
    slots = [
        _dof_slot(model, name, "damping", units[0], dofs, 10.0),
        _dof_slot(model, name, "frictionloss", units[1], dofs, 10.0),
        _dof_slot(model, name, "armature", units[2], dofs, 1.0),
    ]
    stiffness = float(model.jnt_stiffness[joint])
    field, attr = ("jnt_stiffness", (joint,), 1.0), ("joint", name, "stiffness", 0, 1.0)
    slots.append(
        _slot(
            f"joint:{name}.stiffness",
            units[3],
            positive(stiffness, high=100.0),
            stiffness,
            field,
            attr,
        )
    )
    if kind == int(mj.mjtJoint.mjJNT_BALL):
        return slots
    scale = 180 / math.pi if in_degrees and not linear else 1.0
    place = (int(model.jnt_qposadr[joint]),)
    for part, array in (("springref", "qpos_spring"), ("ref", "qpos0")):
        value = float(getattr(model, array)[place])
        field, attr = (array, place, 1.0), ("joint", name, part, -1, scale)
        bounds = around(value, 1.0 if linear else math.pi)
        slots.append(_slot(f"joint:{name}.{part}", units[4], bounds, value, field, attr))
    return slots


_ANGULAR = ("N m s/rad", "N m", "kg m^2", "N m/rad", "rad")


def _dof_slot(model: Model, joint: str, part: str, unit: str, dofs: range, high: float) -> Slot:
    array = np.asarray(getattr(model, f"dof_{part}"))
    value = float(array[dofs[0]])
    return Slot(
        name=f"joint:{joint}.{part}",
        unit=unit,
        value=value,
        bounds=positive(value, high=high),
        fields=tuple((f"dof_{part}", (dof,), 1.0) for dof in dofs),
        attrs=(("joint", joint, part, 0 if part == "damping" else -1, 1.0),),
    )


# ---- tendons -----------------------------------------------------------------------------------


def _tendon_slots(model: Model, tendon: int) -> list[Slot]:
    name, spatial = model.tendon(tendon).name, _is_spatial(model, tendon)
    slots: list[Slot] = []
    for part, unit, high, place in _TENDON_PARTS:
        value = float(getattr(model, f"tendon_{part}")[tendon])
        field, attr = (f"tendon_{part}", (tendon,), 1.0), ("tendon", name, part, place, 1.0)
        bounds = positive(value, high=high)
        slots.append(
            _slot(f"tendon:{name}.{part}", unit if spatial else "", bounds, value, field, attr)
        )
    low, high = model.tendon_lengthspring[tendon].tolist()
    parts = {"springlength": (0, 1)} if low == high else _ends("springlength")
    slots += _length_slots(model, tendon, "tendon_lengthspring", "springlength", parts)
    if model.tendon_limited[tendon]:
        slots += _length_slots(model, tendon, "tendon_range", "range", _ends("range"))
    return slots


#: Part, unit in a spatial tendon, upper bound where the scene has none of it, place in the MjSpec.
_TENDON_PARTS = (
    ("stiffness", "N/m", 100.0, 0),
    ("damping", "N s/m", 10.0, 0),
    ("frictionloss", "N", 10.0, -1),
)


def _is_spatial(model: Model, tendon: int) -> bool:
    """Whether it runs through space; else it is a weighted sum of joint positions."""
    return int(model.wrap_type[model.tendon_adr[tendon]]) != int(mj.mjtWrap.mjWRAP_JOINT)


def _ends(part: str) -> dict[str, tuple[int, ...]]:
    return {f"{part}.low": (0,), f"{part}.high": (1,)}


def _length_slots(
    model: Model, tendon: int, array: str, attribute: str, parts: dict[str, tuple[int, ...]]
) -> list[Slot]:
    """Lengths of one attribute: the parts, each with the places in the array that it fills."""
    name, spatial = model.tendon(tendon).name, _is_spatial(model, tendon)
    reach = 1.0 + abs(float(model.tendon_length0[tendon]))
    slots: list[Slot] = []
    for part, places in parts.items():
        value = float(getattr(model, array)[tendon, places[0]])
        straight = positive(value, factor=5, high=reach)
        slots.append(
            Slot(
                name=f"tendon:{name}.{part}",
                unit="m" if spatial else "",
                value=value,
                bounds=straight if spatial else around(value, reach),
                fields=tuple((array, (tendon, k), 1.0) for k in places),
                attrs=tuple(("tendon", name, attribute, k, 1.0) for k in places),
            )
        )
    return slots


# ---- options -----------------------------------------------------------------------------------


def _gravity_slots(model: Model) -> list[Slot]:
    return [
        _slot(
            f"option:gravity.{axis}",
            "m/s^2",
            around(float(model.opt.gravity[k]), 2.0),
            float(model.opt.gravity[k]),
            ("opt.gravity", (k,), 1.0),
            ("option", "", "gravity", k, 1.0),
        )
        for k, axis in enumerate(_AXES)
    ]
