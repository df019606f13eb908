"""What names and stated units say about columns."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from sameworld.stages.capture.columns import Column
from sameworld.stages.capture.targets import Joint, Kind, Target

__all__ = ["Hint", "hints", "similarity", "unit_factor"]

_WORDS: tuple[tuple[Kind, frozenset[str]], ...] = (
    ("velocity", frozenset("vel velocity velocities speed dq qd qdot omega rate".split())),
    ("torque", frozenset("tau torque torques effort efforts force trq moment load".split())),
    ("position", frozenset("pos position positions q qpos angle angles theta encoder".split())),
)
_COMMAND = frozenset(
    "cmd command commands commanded target action actions ref reference desired des goal setpoint "
    "ctrl control leader".split()
)
#: Words of signals that are no joint's.
_ELSEWHERE = frozenset(
    "cartesian pose ee eef tcp gripper xyz euler quat orientation camera imu gravity tool".split()
)
#: Factors to SI of units as people write them.
_UNITS: dict[str, tuple[str, float]] = {
    "rad": ("rad", 1.0),
    "radian": ("rad", 1.0),
    "radians": ("rad", 1.0),
    "deg": ("rad", math.pi / 180),
    "degree": ("rad", math.pi / 180),
    "degrees": ("rad", math.pi / 180),
    "°": ("rad", math.pi / 180),
    "rev": ("rad", 2 * math.pi),
    "turn": ("rad", 2 * math.pi),
    "ticks": ("rad", 2 * math.pi / 4096),
    "m": ("m", 1.0),
    "cm": ("m", 1e-2),
    "mm": ("m", 1e-3),
    "rad/s": ("rad/s", 1.0),
    "deg/s": ("rad/s", math.pi / 180),
    "°/s": ("rad/s", math.pi / 180),
    "rpm": ("rad/s", 2 * math.pi / 60),
    "m/s": ("m/s", 1.0),
    "mm/s": ("m/s", 1e-3),
    "n m": ("N m", 1.0),
    "nm": ("N m", 1.0),
    "n*m": ("N m", 1.0),
    "n·m": ("N m", 1.0),
    "mnm": ("N m", 1e-3),
    "ncm": ("N m", 1e-2),
    "n": ("N", 1.0),
    "v": ("V", 1.0),
    "mv": ("V", 1e-3),
    "a": ("A", 1.0),
    "ma": ("A", 1e-3),
}
_BRACKET = re.compile(r"[\[(]\s*([^\])]+?)\s*[\])]\s*$")
_TOKEN = re.compile(r"[a-z]+|\d+")


@dataclass(frozen=True, kw_only=True)
class Hint:
    """What the name of a column suggests.

    Attributes:
        kind: Kind of signal, ``None`` if the name does not say.
        joint: Number of the joint, -1 if the name does not say.
        unit: SI unit that the stated unit converts to, empty if none is stated.
        factor: Factor to that unit, 0 if none is stated.
    """

    kind: Kind | None
    joint: int
    unit: str
    factor: float


def unit_factor(text: str) -> tuple[str, float] | None:
    """SI unit and factor of a unit as written, ``None`` if unknown."""
    return _UNITS.get(text.strip().lower().replace("^1", ""))


def hints(columns: Sequence[Column], joints: Sequence[Joint]) -> tuple[Hint, ...]:
    """Hints of all columns. Numbers in names count from 0 or 1, whichever their family shows."""
    kinds: list[Kind | None] = [_kind_of(c, joints) for c in columns]
    numbers = [_number(c) for c in columns]
    families: dict[tuple[str, str | None], list[int]] = {}
    for column, kind, number in zip(columns, kinds, numbers, strict=True):
        if number is not None:
            families.setdefault((column.stream, kind), []).append(number)
    found: list[Hint] = []
    for column, kind, number in zip(columns, kinds, numbers, strict=True):
        joint = _named_joint(column, joints)
        if joint < 0 and number is not None and kind not in (None, "other"):
            family = families[column.stream, kind]
            joint = _numbered(number, family, len(joints))
        if joint < 0 and len(joints) == 1 and kind not in (None, "other"):
            joint = joints[0].number
        unit, factor = _unit(column)
        found.append(Hint(kind=kind, joint=joint, unit=unit, factor=factor))
    return tuple(found)


def similarity(column: Column, target: Target) -> float:
    """How alike the names of a column and of a channel are, in [0, 1]."""
    wanted = _plain(target.channel)
    if target.size > 1:
        wanted += "xyz"[target.component] if target.size == 3 else str(target.component)
    given = (_plain(column.label), _plain(column.name))
    return max((difflib.SequenceMatcher(None, wanted, g).ratio() for g in given if g), default=0.0)


def _tokens(column: Column) -> list[str]:
    text = _BRACKET.sub("", column.name)
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return _TOKEN.findall(text.lower())


def _kind_of(column: Column, joints: Sequence[Joint]) -> Kind | None:
    tokens = _tokens(column)
    if _ELSEWHERE & set(tokens) and _named_joint(column, joints) < 0:
        return "other"
    return _kind(tokens)


def _kind(tokens: Sequence[str]) -> Kind | None:
    said = set(tokens)
    if said & _COMMAND:
        return "command"
    return next((kind for kind, words in _WORDS if said & words), None)


def _number(column: Column) -> int | None:
    label = _BRACKET.sub("", column.label or column.stream)
    digits = re.findall(r"\d+", label)
    return int(digits[-1]) if digits and len(digits[-1]) < 4 else None


def _numbered(number: int, family: Sequence[int], joints: int) -> int:
    """Joint of a number: the family must count 0, 1, ... or 1, 2, ... up to the joints at most."""
    first = min(family)
    complete = len(set(family)) == len(family) and first in (0, 1)
    joint = number - first
    return joint if complete and joint < joints and len(family) <= joints + 1 else -1


def _named_joint(column: Column, joints: Sequence[Joint]) -> int:
    """Joint whose whole name stands in the column's name; the longest such name counts."""
    text = f"_{'_'.join(_tokens(column))}_"
    inside = [j for j in joints if f"_{'_'.join(_TOKEN.findall(j.name.lower()))}_" in text]
    return max(inside, key=lambda j: len(j.name)).number if inside else -1


def _unit(column: Column) -> tuple[str, float]:
    bracket = _BRACKET.search(column.label) or _BRACKET.search(column.stream)
    for text in (column.unit, bracket.group(1) if bracket else ""):
        known = unit_factor(text) if text else None
        if known:
            return known
    said = _tokens(column)
    return _UNITS["deg"] if {"deg", "degrees", "degree"} & set(said) else ("", 0.0)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", _BRACKET.sub("", text).lower())
