"""``Parameter``: one uncertain number with an address, bounds, unit and origin."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from sameworld.core.address import Address
from sameworld.core.errors import BeliefError

__all__ = ["Parameter", "Scope", "Source", "TransformKind"]

Source = Literal["assumed", "measured", "identified", "sampled"]
Scope = Literal["scene", "session", "episode"]
TransformKind = Literal["identity", "log", "logit"]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A named, bounded, uncertain scalar.

    Attributes:
        name: Address, e.g. ``body:cube.mass``.
        value: Mean [unit].
        low: Lower bound [unit], may be ``-inf``.
        high: Upper bound [unit], may be ``inf``.
        unit: SI unit, empty for a pure number.
        std: Standard deviation [unit]; 0 means known exactly, ``inf`` means no opinion.
        source: Where the value comes from.
        scope: A mass belongs to the scene, a payload to a session, a start to an episode.
        transform: Coordinate in which optimisers see it: ``log`` needs ``low >= 0``, ``logit``
            needs two finite bounds.
    """

    name: str
    value: float
    low: float = -math.inf
    high: float = math.inf
    unit: str = ""
    std: float = math.inf
    source: Source = "assumed"
    scope: Scope = "scene"
    transform: TransformKind = "identity"

    def __post_init__(self) -> None:
        Address.parse(self.name)
        for field in ("value", "low", "high", "std"):
            object.__setattr__(self, field, float(getattr(self, field)))
        self._check_numbers()
        self._check_words()

    def _check_numbers(self) -> None:
        if not math.isfinite(self.value):
            raise BeliefError(f"Parameter '{self.name}' has value {self.value}; give a number.")
        if math.isnan(self.low) or math.isnan(self.high) or not self.low <= self.high:
            raise BeliefError(f"Parameter '{self.name}' has bounds [{self.low}, {self.high}].")
        if not self.low <= self.value <= self.high:
            raise BeliefError(
                f"Parameter '{self.name}' = {self.value} {self.unit} lies outside its bounds "
                f"[{self.low}, {self.high}]. Widen the bounds or mend the value."
            )
        if math.isnan(self.std) or self.std < 0:
            raise BeliefError(f"Parameter '{self.name}' has std {self.std}; it must be >= 0.")

    def _check_words(self) -> None:
        allowed = {"source": Source, "scope": Scope, "transform": TransformKind}
        for field, literal in allowed.items():
            value = getattr(self, field)
            if value not in get_args(literal):
                raise BeliefError(
                    f"Parameter '{self.name}' has {field} '{value}'; "
                    f"use one of {get_args(literal)}."
                )
        if self.transform == "log" and self.low < 0:
            raise BeliefError(f"Parameter '{self.name}' is 'log' but its low bound is {self.low}.")
        if self.transform == "logit" and not math.isfinite(self.high - self.low):
            raise BeliefError(f"Parameter '{self.name}' is 'logit' and needs two finite bounds.")

    @property
    def address(self) -> Address:
        """The parsed address."""
        return Address.parse(self.name)

    def with_value(
        self, value: float, *, std: float | None = None, source: Source | None = None
    ) -> Parameter:
        """Return a copy with a new mean, and optionally a new spread and origin."""
        return replace(
            self,
            value=value,
            std=self.std if std is None else std,
            source=self.source if source is None else source,
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-ready mapping; infinities become ``None``."""
        record: dict[str, Any] = {
            "name": self.name,
            "value": self.value,
            "low": _finite_or_none(self.low),
            "high": _finite_or_none(self.high),
            "unit": self.unit,
            "std": _finite_or_none(self.std),
            "source": self.source,
            "scope": self.scope,
            "transform": self.transform,
        }
        return record

    @classmethod
    def from_json(cls, record: Any) -> Parameter:
        """Rebuild from ``to_json`` output.

        Raises:
            BeliefError: A key is missing or unknown, or a value has the wrong type.
        """
        if not isinstance(record, dict):
            raise BeliefError(f"A parameter must be a JSON object, got {type(record).__name__}.")
        fields: dict[str, Any] = {str(key): value for key, value in record.items()}  # type: ignore[reportUnknownVariableType]
        unknown = set(fields) - set(cls.__dataclass_fields__)
        missing = {"name", "value"} - set(fields)
        if unknown or missing:
            raise BeliefError(
                f"Parameter record {fields.get('name', '?')!r}: unknown keys {sorted(unknown)}, "
                f"missing keys {sorted(missing)}."
            )
        if fields.get("low") is None:
            fields["low"] = -math.inf
        for key in ("high", "std"):
            if fields.get(key) is None:
                fields[key] = math.inf
        try:
            return cls(**fields)
        except (TypeError, ValueError, AttributeError) as cause:
            raise BeliefError(f"Parameter record {fields.get('name', '?')!r}: {cause}.") from cause


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
