"""Array types and the checks every noun shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sameworld.core.errors import SameworldError

__all__ = ["Array", "BoolArray", "Signals", "finite_array", "frozen", "read_only"]

Array: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
Signals: TypeAlias = Mapping[str, Array]


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view that refuses writes."""
    view = array.view()
    view.flags.writeable = False
    return view


def frozen(values: ArrayLike) -> Array:
    """Copy to float64 and forbid writes."""
    return read_only(np.array(values, dtype=np.float64))


def finite_array(
    values: ArrayLike, what: str, *, error: type[SameworldError], ndim: int | None = None
) -> Array:
    """Convert to a read-only float64 array, or raise ``error`` naming ``what``.

    Raises:
        error: Not numeric, wrong number of axes, or NaN/Inf inside (with the first place).
    """
    try:
        given = np.asarray(values)
        if given.dtype.kind in "cSUMm":
            raise TypeError(f"it holds {given.dtype} values")
        array = frozen(given)
    except (TypeError, ValueError) as cause:
        raise error(f"{what} is not numeric: {cause}.") from cause
    if ndim is not None and array.ndim != ndim:
        raise error(f"{what} must have {ndim} axes, got shape {array.shape}.")
    bad = ~np.isfinite(array)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise error(
            f"{what} holds {int(bad.sum())} NaN or infinite value(s), first at index {place}. "
            "Drop those samples (each channel has its own time vector) before building it."
        )
    return array
