"""Numbers for people: a value and its interval rounded together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sameworld.report.names import unit_name

__all__ = ["measure", "percent", "quantity", "scale", "signed_percent", "together"]

_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MISSING = "–"
_MAX_DIGITS = 6
#: Unit to the one a thousand times smaller.
_SMALLER = {"m": "mm", "s": "ms", "kg": "g", "kg·m²": "g·m²"}
#: Below this size the smaller unit reads better.
_SMALL = 0.1


def together(values: Sequence[float], spread: float) -> tuple[str, ...]:
    """Write values with one number of decimals and one power of ten.

    Args:
        values: Numbers in one unit.
        spread: Their uncertainty; its second significant digit is the last one shown. Three
            significant digits of the largest value if it is zero or not finite.

    Returns:
        One text per value; an en dash for NaN, the infinity sign for infinities.
    """
    finite = [abs(v) for v in values if math.isfinite(v) and v != 0]
    if not finite:
        return tuple(_special(v) or "0" for v in values)
    top = math.floor(math.log10(max(finite)) + 1e-12)
    last = _last_digit(spread, top)
    power = top if top < -3 or top > 5 else 0
    decimals = max(power - last, 0)
    return tuple(
        _special(v) or ("0" if v == 0 and power else _fixed(v / 10.0**power, decimals, power))
        for v in values
    )


def _last_digit(spread: float, top: int) -> int:
    if not math.isfinite(spread) or spread <= 0:
        return top - 2
    return min(max(math.floor(math.log10(spread) + 1e-12) - 1, top - _MAX_DIGITS + 1), top)


def _special(value: float) -> str | None:
    """Text of a value that takes no decimals."""
    if math.isnan(value):
        return _MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return None


def _fixed(value: float, decimals: int, power: int) -> str:
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    text = text.replace("-", "−")
    return f"{text}\u00a0×\u00a010{str(power).translate(_SUPERSCRIPT)}" if power else text


def quantity(value: float, unit: str = "", digits: int = 3) -> str:
    """One number with its unit and ``digits`` significant digits."""
    special = _special(value)
    if special is None and value != 0:
        top = math.floor(math.log10(abs(value)) + 1e-12)
        special = together([value], 10.0 ** (top - digits + 2))[0]
    text = "0" if special is None else special
    return f"{text}\u00a0{unit}" if unit and text != _MISSING else text


def scale(values: Sequence[float], unit: str) -> tuple[float, str]:
    """Factor and unit in which numbers read best: 0.0067 m are 6.7 mm.

    Args:
        values: Numbers in one unit; infinities and NaN do not count.
        unit: Their SI unit.

    Returns:
        Factor to multiply by, and the unit as people write it.
    """
    name = unit_name(unit)
    largest = max((abs(v) for v in values if math.isfinite(v)), default=0.0)
    return (1e3, _SMALLER[name]) if name in _SMALLER and 0 < largest < _SMALL else (1.0, name)


def measure(value: float, unit: str, digits: int = 3) -> str:
    """One number in the unit in which it reads best."""
    factor, name = scale([value], unit)
    return quantity(factor * value, name, digits)


def signed_percent(share: float) -> str:
    """A change as per cent with its sign."""
    text = percent(share)
    return f"+{text}" if share > 0 and text[:1] not in ("0", _MISSING) else text


def percent(share: float) -> str:
    """A share as whole per cent, one decimal below 10 %, with a space that does not break."""
    if math.isnan(share):
        return _MISSING
    size = 100 * share
    decimals = 1 if 1e-9 < abs(size) < 9.95 else 0
    return f"{size:.{decimals}f}\u00a0%".replace("-", "−")
