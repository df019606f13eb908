"""Doubts about units, from magnitudes and names."""

from __future__ import annotations

import math
import re

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.units import PLAUSIBLE, suspicion

__all__ = ["unit_doubt"]

_TICKS = (1023, 4095, 16383)
_ANGLE = re.compile(
    r"(?:^|[^a-z])(?:q|pos|position|angle|theta|yaw|pitch|roll|joint\w*)(?:[^a-z]|$)"
)
_LENGTH = re.compile(r"(?:^|[^a-z])(?:p|pos|position|translation)[._]?[xyz]$")
_TIME = re.compile(r"(?:^|[^a-z])(?:t|time|stamp|timestamp)(?:[^a-z]|$)")


def unit_doubt(name: str, unit: str, values: Array) -> str:
    """What a column was probably recorded in; empty if its numbers are plausible.

    A stated unit is checked against magnitudes. Without one, whole numbers that fill the range of
    an encoder, and positions too large for radians or metres, are named.

    Args:
        name: Stream and column name.
        unit: Stated unit, empty if none.
        values: Finite samples [T].
    """
    if not values.size:
        return ""
    if unit:
        return suspicion(values, unit) or ""
    low, high = float(values.min()), float(values.max())
    if ticks := _encoder(values, low, high):
        return ticks
    plain, largest = name.lower(), max(abs(low), abs(high))
    if _TIME.search(plain) and largest > 1e8:
        return f"reaches {largest:.4g}: a time stamp, not a signal"
    if _LENGTH.search(plain):
        far = largest > PLAUSIBLE["m"]
        return f"reaches {largest:.4g}, which looks like millimetres" if far else ""
    if _ANGLE.search(plain) and 8 * math.pi < largest <= 1080:
        return f"reaches {largest:.4g}, which looks like degrees (or millimetres)"
    return ""


def _encoder(values: Array, low: float, high: float) -> str:
    """Whole numbers inside the range of an encoder, and using a good part of it."""
    if low < 0 or high - low < 64 or not (values == np.floor(values)).all():
        return ""
    if 32767 < high <= 65535 and np.abs(np.diff(values)).max() > 60000:
        return "wraps at 65536: a signed 16-bit number read as unsigned"
    for top in _TICKS:
        if top / 4 < high <= top:
            return f"holds whole numbers from {low:g} to {high:g}: encoder ticks of 0 to {top}?"
    return ""
