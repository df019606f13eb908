"""Addresses and units in words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sameworld.core.address import Address

__all__ = ["field_name", "parameter_name", "spoken", "target_name", "unit_name"]

_FIELDS = {
    "mass": "mass",
    "com": "centre of mass",
    "inertia": "inertia",
    "pos": "position",
    "friction.slide": "sliding friction",
    "friction.spin": "spinning friction",
    "friction.roll": "rolling friction",
    "damping": "damping",
    "stiffness": "stiffness",
    "armature": "armature",
    "springlength": "rest length",
    "springlength.low": "lower rest length",
    "springlength.high": "upper rest length",
    "frictionloss": "dry friction",
    "kp": "position gain",
    "kv": "velocity gain",
    "delay": "delay",
    "gain": "gain",
    "gravity": "gravity",
    "solref.timeconst": "contact time constant",
    "solref.dampratio": "contact damping ratio",
    "solimp.width": "contact softness width",
}
_WHOLE = {"pos.z": "height", "gravity.z": "vertical gravity"}
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def field_name(field: str) -> str:
    """A field in words, e.g. 'sliding friction', 'centre of mass x'.

    Fields without a known word keep their own, with dots and underscores as spaces.
    """
    if field in _WHOLE:
        return _WHOLE[field]
    stem, _, axis = field.rpartition(".")
    if axis in ("x", "y", "z") and stem in _FIELDS:
        return f"{_FIELDS[stem]} {axis}"
    return _FIELDS.get(field, field.replace(".", " ").replace("_", " "))


def target_name(target: str) -> str:
    """A target in words, e.g. 'cube on floor' for a contact pair."""
    return target.replace("+", " on ").replace("_", " ")


def parameter_name(name: str) -> str:
    """An address in words, e.g. 'sliding friction of cube on floor'."""
    address = Address.parse(name)
    return f"{field_name(address.field)} of {target_name(address.target)}"


def spoken(text: str, names: Iterable[str]) -> str:
    """Replace every whole address among ``names`` by its words."""
    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<![\w:.+]){re.escape(name)}(?![\w+]|\.\w)", parameter_name(name), text)
    return text


def unit_name(unit: str) -> str:
    """A unit as people write it: 'kg·m²' for 'kg m^2'."""
    raised = re.sub(r"\^(-?\d+)", lambda m: m[1].translate(_SUPERSCRIPT), unit)
    return re.sub(r"(?<=[^\s*/])[ *]+(?=[^\s*/])", "·", raised)
