"""SI units, and guesses about numbers that were recorded in something else."""

from __future__ import annotations

import math

import numpy as np

from sameworld.core.arrays import Array

__all__ = ["PLAUSIBLE", "suspicion"]

#: Largest magnitude that a recording of a robot on a table or floor plausibly holds, per unit.
PLAUSIBLE: dict[str, float] = {
    "m": 50.0,
    "m/s": 50.0,
    "rad": 8 * math.pi,
    "rad/s": 200.0,
    "kg": 500.0,
}

#: Usual mistakes: unit -> (factor that mends it, what was probably recorded).
_MISTAKES: dict[str, tuple[float, str]] = {
    "m": (1e-3, "millimetres"),
    "m/s": (1e-3, "millimetres per second"),
    "rad": (math.pi / 180, "degrees"),
    "rad/s": (math.pi / 180, "degrees per second"),
    "kg": (1e-3, "grams"),
}


def suspicion(
    values: Array, unit: str, low: float = -math.inf, high: float = math.inf
) -> str | None:
    """Say in words what unit ``values`` were probably recorded in, if not ``unit``.

    Bounds (a joint range, say) sharpen the test: values far outside them that would fit after
    the usual conversion are suspicious.

    Args:
        values: Recorded numbers, any shape.
        unit: Unit they claim to have.
        low: Lower bound [unit].
        high: Upper bound [unit].
    """
    if unit not in _MISTAKES or not values.size:
        return None
    factor, wrong = _MISTAKES[unit]
    largest = float(np.max(np.abs(values)))
    limit = PLAUSIBLE[unit]
    if math.isfinite(low) and math.isfinite(high):
        limit = min(limit, 2 * max(abs(low), abs(high)))
    if largest > limit and largest * factor <= limit:
        return f"values reach {largest:.4g} {unit}, which looks like {wrong} (limit {limit:.4g})"
    return None
