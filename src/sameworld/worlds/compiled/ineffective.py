"""Addresses that exist but do nothing in a scene, each with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from sameworld.core.address import Address
from sameworld.worlds.compiled.addresses import pair_names
from sameworld.worlds.compiled.attach import Group
from sameworld.worlds.compiled.compile import Compiled
from sameworld.worlds.compiled.contacts import colliding_pairs, contact_parameters
from sameworld.worlds.compiled.engine import Model, mj
from sameworld.worlds.compiled.slots import Slot
from sameworld.worlds.components.law import Law

__all__ = ["ineffective"]

_PLACES = {"slide": 0, "spin": 1, "roll": 2}
#: Smallest contact dimension in which each friction acts.
_NEEDS = {"slide": 3, "spin": 4, "roll": 6}
_DISABLED_JOINT = {
    "damping": "mjDSBL_DAMPER",
    "stiffness": "mjDSBL_SPRING",
    "springref": "mjDSBL_SPRING",
    "frictionloss": "mjDSBL_FRICTIONLOSS",
}

_DISABLED_TENDON = {
    "damping": "mjDSBL_DAMPER",
    "stiffness": "mjDSBL_SPRING",
    "springlength": "mjDSBL_SPRING",
    "frictionloss": "mjDSBL_FRICTIONLOSS",
    "range": "mjDSBL_LIMIT",
}


def ineffective(
    compiled: Compiled,
    names: Iterable[str],
    groups: Sequence[Group] = (),
    slots: Sequence[Slot] = (),
) -> dict[str, str]:
    """Names among ``names`` whose value does not change the simulation, with the reason.

    Looks at the scene as compiled: a value that would matter only after another one changed
    counts as without effect.

    Args:
        compiled: The scene.
        names: Existing addresses.
        groups: Components of the scene, if any.
        slots: Parameters of the scene; values of those in ``names`` count as open.
    """
    names = tuple(names)
    laws = {name: group.law for group in groups for name in group.names}
    explainers = {
        "geom": _geom,
        "pair": _pair,
        "joint": _joint,
        "tendon": _tendon,
        "option": _option,
        "actuator": _actuator,
    }
    out: dict[str, str] = {}
    for name in names:
        address = Address.parse(name)
        if address.kind == "body":
            reason = _body(address, names)
        elif address.kind == "component":
            law, values = laws[address.target], _open_values(address.target, names, slots)
            reason = _component(compiled.model, law, address.field, values)
        elif address.kind in explainers:
            reason = explainers[address.kind](compiled, address, names)
        else:
            reason = ""
        if reason:
            out[name] = reason
    return out


def _disabled(model: Model, flag: str) -> bool:
    return bool(model.opt.disableflags & int(getattr(mj.mjtDisableBit, flag)))


def _body(address: Address, names: tuple[str, ...]) -> str:
    replaced = address.field.startswith(("mass", "com.", "inertia."))
    if replaced and any(n.startswith(f"body:{address.target}.inertial.") for n in names):
        return "the log-Cholesky coordinates inertial.* of the body, also named, replace it"
    return ""


# ---- components --------------------------------------------------------------------------------


def _open_values(owner: str, names: tuple[str, ...], slots: Sequence[Slot]) -> dict[str, float]:
    """Values of a component's fields; those that are named and 0 may become something else."""
    own = [s for s in slots if s.group == "component" and s.owner == owner]
    return {s.part: 1.0 if s.name in names and not s.value else s.value for s in own}


def _component(model: Model, law: Law, field: str, values: Mapping[str, float]) -> str:
    if law.target == "actuator" and _disabled(model, "mjDSBL_ACTUATION"):
        return "actuation is disabled in the scene's <option>"
    damps = field.startswith("viscous")
    flag = "mjDSBL_DAMPER" if damps else "mjDSBL_FRICTIONLOSS"
    if law.target == "joint" and field != "offset" and _disabled(model, flag):
        return f"'{flag.removeprefix('mjDSBL_').lower()}' is disabled in the scene's <option>"
    return law.idle(values).get(field, "")


# ---- contact -----------------------------------------------------------------------------------


def _geom(compiled: Compiled, address: Address, names: tuple[str, ...]) -> str:
    part = address.field.partition(".")[0]
    if part not in ("friction", "solref", "solimp"):
        return ""
    model = compiled.model
    geom = int(model.geom(address.target).id)
    if _disabled(model, "mjDSBL_CONTACT"):
        return "contacts are disabled in the scene's <option>"
    reasons = [
        _shadowed(compiled, geom, first if second == geom else second, address.field)
        for first, second in _dynamic_pairs(compiled)
        if geom in (first, second)
    ]
    if not reasons:
        explicit = geom in (*model.pair_geom1.tolist(), *model.pair_geom2.tolist())
        return "explicit <pair> elements override it" if explicit else "the geom touches nothing"
    return reasons[0] if all(reasons) else ""


def _dynamic_pairs(compiled: Compiled) -> list[tuple[int, int]]:
    """Pairs whose parameters MuJoCo would mix from the geoms."""
    materialised = [(first, second) for _, first, second in compiled.pairs]
    return materialised + colliding_pairs(compiled.model)


def _shadowed(compiled: Compiled, geom: int, other: int, field: str) -> str:
    """Why this geom's value does not reach the contact with another geom; empty if it does."""
    model = compiled.model
    me, partner = model.geom(geom).name, model.geom(other).name
    advice = f"Use 'pair:{'+'.join(sorted((me, partner)))}.{field}'."
    if model.geom_priority[other] > model.geom_priority[geom]:
        return f"geom '{partner}' has priority and decides alone. {advice}"
    kind, _, part = field.partition(".")
    mixed = contact_parameters(model, geom, other)
    if kind == "friction":
        if mixed.condim < _NEEDS[part]:
            return (
                f"contact with '{partner}' has condim {mixed.condim}, which has no {part} friction"
            )
        place = _PLACES[part]
        mine, theirs = model.geom_friction[geom, place], model.geom_friction[other, place]
        if model.geom_priority[other] == model.geom_priority[geom] and theirs > mine:
            return (
                f"MuJoCo takes the larger friction of two geoms, and '{partner}' has "
                f"{float(theirs):.4g} > {float(mine):.4g}. {advice}"
            )
        return ""
    same = model.geom_priority[other] == model.geom_priority[geom]
    if same and model.geom_solmix[geom] == 0 and model.geom_solmix[other] > 0:
        return f"its solmix is 0, so '{partner}' decides alone. {advice}"
    return ""


def _pair(compiled: Compiled, address: Address, names: tuple[str, ...]) -> str:
    model = compiled.model
    if _disabled(model, "mjDSBL_CONTACT"):
        return "contacts are disabled in the scene's <option>"
    kind, _, part = address.field.partition(".")
    condim = int(model.pair_dim[pair_names(model, names).index(address.target)])
    if kind == "friction" and condim < _NEEDS[part]:
        return f"the contact has condim {condim}; {part} friction needs condim >= {_NEEDS[part]}"
    return ""


# ---- joints, tendons, actuators, options ---------------------------------------------------------


def _joint(compiled: Compiled, address: Address, names: tuple[str, ...]) -> str:
    model = compiled.model
    joint = int(model.joint(address.target).id)
    flag = _DISABLED_JOINT.get(address.field)
    if flag is not None and _disabled(model, flag):
        return f"'{flag.removeprefix('mjDSBL_').lower()}' is disabled in the scene's <option>"
    if address.field == "springref" and not (
        model.jnt_stiffness[joint] or f"joint:{address.target}.stiffness" in names
    ):
        return "the joint has no stiffness"
    if _is_welded(model, joint):
        return "the joint's body is welded in place by an <equality>, so the joint cannot move"
    return ""


def _is_welded(model: Model, joint: int) -> bool:
    body = int(model.jnt_bodyid[joint])
    weld = int(mj.mjtEq.mjEQ_WELD)
    for equality in np.flatnonzero((model.eq_type == weld) & (model.eq_active0 != 0)).tolist():
        ends = {int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])}
        by_body = int(model.eq_objtype[equality]) == int(mj.mjtObj.mjOBJ_BODY)
        if by_body and body in ends and all(model.body_weldid[e] == 0 for e in ends - {body}):
            return True
    return False


def _tendon(compiled: Compiled, address: Address, names: tuple[str, ...]) -> str:
    model = compiled.model
    tendon = int(model.tendon(address.target).id)
    part = address.field.partition(".")[0]
    flag = _DISABLED_TENDON[part]
    if _disabled(model, flag):
        return f"'{flag.removeprefix('mjDSBL_').lower()}' is disabled in the scene's <option>"
    stiff = model.tendon_stiffness[tendon] or np.any(model.tendon_stiffnesspoly[tendon])
    if part == "springlength" and not (stiff or f"tendon:{address.target}.stiffness" in names):
        return "the tendon has no stiffness"
    if _is_rigid(model, tendon):
        return "all places that the tendon connects are on one rigid body, so it keeps its length"
    return ""


def _is_rigid(model: Model, tendon: int) -> bool:
    """Whether a tendon runs along bodies that cannot move against each other."""
    first, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
    bodies: set[int] = set()
    for wrap in range(first, first + count):
        kind, index = int(model.wrap_type[wrap]), int(model.wrap_objid[wrap])
        if kind == int(mj.mjtWrap.mjWRAP_JOINT):
            return False
        if kind != int(mj.mjtWrap.mjWRAP_PULLEY):
            site = kind == int(mj.mjtWrap.mjWRAP_SITE)
            body = int((model.site_bodyid if site else model.geom_bodyid)[index])
            bodies.add(int(model.body_weldid[body]))
    return len(bodies) == 1


def _option(compiled: Compiled, address: Address, names: tuple[str, ...]) -> str:
    if address.target == "gravity" and _disabled(compiled.model, "mjDSBL_GRAVITY"):
        return "gravity is disabled in the scene's <option>"
    return ""


def _actuator(compiled: Compiled, address: Address, names: tuple[str, ...]) -> str:
    if _disabled(compiled.model, "mjDSBL_ACTUATION"):
        return "actuation is disabled in the scene's <option>"
    return ""
