"""``Slot``: where a parameter address lives in the compiled model and in the MjSpec."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from sameworld.core.parameters import Parameter
from sameworld.worlds.compiled.engine import Model

__all__ = ["Bounds", "FieldWrite", "Slot", "SpecWrite", "around", "positive", "read_slot"]

#: Model array, index into it, factor: the array receives ``factor * value``.
FieldWrite = tuple[str, tuple[int, ...], float]
#: Kind and name of the MjSpec element, attribute, index (-1: scalar), factor.
SpecWrite = tuple[str, str, str, int, float]
Bounds = tuple[float, float]
Group = Literal["field", "body", "sensor", "component"]


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One scalar parameter of the explicit world.

    Attributes:
        name: Address.
        unit: SI unit.
        value: Value in the compiled model [unit].
        bounds: Range in which a search makes sense [unit].
        fields: Where it goes in a compiled model (``field`` group).
        attrs: Where it goes in the MjSpec (``field`` group).
        group: ``field`` for plain numbers, ``body`` for inertia, which is edited as a whole,
            ``sensor`` for what is applied to signals, ``component`` for what component laws read.
        owner: Name of the body, channel or component (not for the ``field`` group).
        part: Which of its numbers.
    """

    name: str
    unit: str
    value: float
    bounds: Bounds
    fields: tuple[FieldWrite, ...] = ()
    attrs: tuple[SpecWrite, ...] = ()
    group: Group = "field"
    owner: str = ""
    part: str = ""

    def parameter(self) -> Parameter:
        """The parameter as the world first believes it: the scene's value, no opinion."""
        low, high = self.bounds
        low, high = min(low, self.value), max(high, self.value)
        log = low >= 0 and self.value > 0
        return Parameter(
            name=self.name,
            value=self.value,
            low=low,
            high=high,
            unit=self.unit,
            transform="log" if log else "identity",
        )


def read_slot(model: Model, writes: tuple[FieldWrite, ...]) -> float:
    """Value that a model holds at the first place of ``writes``."""
    field, index, factor = writes[0]
    return float(_array(model, field)[index]) / factor


def _array(model: Model, field: str) -> Any:
    return model.opt.gravity if field == "opt.gravity" else getattr(model, field)


def positive(value: float, *, factor: float = 20.0, high: float = 1.0) -> Bounds:
    """Bounds of a quantity that is never negative: a factor around it, or ``[0, high]`` if 0."""
    if value > 0:
        return value / factor, value * factor
    return min(0.0, value), high


def around(value: float, span: float) -> Bounds:
    """Bounds ``span`` to both sides."""
    return (value - span, value + span) if math.isfinite(value) else (-math.inf, math.inf)
