"""Components of one vector belong together, and some parameters matter more to a person."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sameworld.core.address import Address
from sameworld.report.names import field_name, target_name
from sameworld.report.numbers import scale, together
from sameworld.stages.identify.result import ParameterVerdict

__all__ = ["Group", "by_importance", "grouped", "half_width", "moved"]

_AXES = ("x", "y", "z")
#: Fields of an engine's contact model: numbers that make it work, no property of a thing.
_NUMERICAL = ("solref", "solimp", "armature")


def moved(row: ParameterVerdict) -> bool:
    """Whether the 90 % interval excludes the value given before the fit."""
    return math.isfinite(row.low) and math.isfinite(row.high) and not _contains(row)


def _contains(row: ParameterVerdict) -> bool:
    return row.low <= row.before <= row.high


def half_width(row: ParameterVerdict) -> float:
    """Half of the 90 % interval [unit], or the standard deviation where there is none."""
    half = 0.5 * (row.high - row.low)
    return half if math.isfinite(half) else row.std


@dataclass(frozen=True, kw_only=True)
class Group:
    """One parameter, or the components of one vector.

    Attributes:
        target: What it belongs to, e.g. ``cube``.
        field: Its field in words, e.g. ``centre of mass``.
        axes: Components, e.g. ``x, y, z``; empty for a single parameter.
        rows: Verdicts of the components.
    """

    target: str
    field: str
    axes: str
    rows: tuple[ParameterVerdict, ...]

    @property
    def name(self) -> str:
        """Name in words."""
        return f"{self.field} of {self.target}"

    @property
    def moved(self) -> bool:
        """Whether some component is determined and moved."""
        return any(moved(row) and row.verdict == "determined" for row in self.rows)

    @property
    def distance(self) -> float:
        """Largest move in standard deviations."""
        sizes = [abs(r.value - r.before) / r.std for r in self.rows if 0 < r.std < math.inf]
        return max(sizes, default=0.0)

    @property
    def scaled(self) -> tuple[float, str]:
        """Factor and unit in which the numbers of the group read best."""
        ends = [v for r in self.rows for v in (r.low, r.high)]
        return scale(
            [*(v for r in self.rows for v in (r.before, r.value)), *ends], self.rows[0].unit
        )

    @property
    def spread(self) -> float:
        """Smallest half width of the components [unit]; NaN if none is finite."""
        halves = [h for r in self.rows if 0 < (h := half_width(r)) < math.inf]
        return min(halves, default=math.nan)

    def change(self) -> tuple[str, str]:
        """Values given and found, to the first uncertain digit: '0' and '0.4, 0.9, 6.7 mm'."""
        factor, unit = self.scaled
        numbers = [*(r.before for r in self.rows), *(r.value for r in self.rows)]
        texts = together([factor * n for n in numbers], 10 * factor * self.spread)
        given, found = texts[: len(self.rows)], texts[len(self.rows) :]
        was = _plain_zero(given[:1] if len(set(given)) == 1 else given)
        return was, ", ".join(found) + (f"\u00a0{unit}" if unit else "")


def _plain_zero(texts: Sequence[str]) -> str:
    return ", ".join("0" if t.strip("0.") == "" else t for t in texts)


def grouped(rows: Sequence[ParameterVerdict]) -> tuple[Group, ...]:
    """Verdicts by vector, in their order; a lone component stays a parameter of its own."""
    found: dict[tuple[str, str, str], list[ParameterVerdict]] = {}
    for row in rows:
        address = Address.parse(row.name)
        stem, _, axis = address.field.rpartition(".")
        key = f"{stem}." if axis in _AXES else address.field
        found.setdefault((f"{address.kind}:{address.target}", key, row.unit), []).append(row)
    return tuple(_group(members) for members in found.values())


def _group(members: list[ParameterVerdict]) -> Group:
    address = Address.parse(members[0].name)
    axes = [Address.parse(m.name).field.rpartition(".")[2] for m in members]
    vector = len(members) > 1
    field = address.field.rpartition(".")[0] if vector else address.field
    return Group(
        target=target_name(address.target),
        field=field_name(field),
        axes=", ".join(axes) if vector else "",
        rows=tuple(members),
    )


def by_importance(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Properties of things before numbers of the contact model; then the farthest move first."""
    return tuple(sorted(groups, key=lambda g: (_numerical(g), -g.distance)))


def _numerical(group: Group) -> bool:
    return Address.parse(group.rows[0].name).field.partition(".")[0] in _NUMERICAL
