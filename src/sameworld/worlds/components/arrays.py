"""One source for numpy and for arrays with derivatives: laws take their functions from the arrays.

Whoever calls a law with numpy arrays gets numpy arrays; whoever calls it with arrays of another
library that follows the array API, such as JAX's under ``jit`` and ``jvp``, gets that library's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sameworld.core.arrays import Array

__all__ = ["at_tick", "clipped", "namespace", "slope"]

#: Numbers from a half up are whole multiples of its inverse.
_GRAIN = 2.0**53


def namespace(*arrays: Any) -> Any:
    """Functions for arrays: numpy, or the library of the first array that is not numpy's.

    Args:
        arrays: Arrays and plain numbers that take part in a computation, any shapes.

    Source: Python array API standard, ``__array_namespace__``.
    """
    for array in arrays:
        if not isinstance(array, (np.ndarray, float, int)):
            return array.__array_namespace__()
    return np


def at_tick(substep: int | Array, renewed: Callable[[], Array], kept: Array) -> Array:
    """What is ``renewed`` when a control tick begins and ``kept`` in its later engine steps.

    Args:
        substep: Engine steps since the tick began; an array inside a traced loop.
        renewed: Computes the new value, shape as ``kept``.
        kept: The present value.
    """
    if isinstance(substep, int):
        return renewed() if substep == 0 else kept
    return namespace(substep, kept).where(substep == 0, renewed(), kept)


def clipped(array: Array, low: Array | float, high: Array | float) -> Array:
    """``array`` kept between bounds; for small arrays several times as fast as numpy's own."""
    xp = namespace(array, low, high)
    return xp.minimum(xp.maximum(array, low), high)


def slope(array: Array) -> Array:
    """Exact zeros that have the derivatives of ``array``, for numbers of at least a half.

    A function that is constant on one side of a kink keeps the slope of the other side with it.
    """
    xp = namespace(array)
    if xp is np:
        return np.zeros(array.shape)
    return array - xp.floor(array * _GRAIN) / _GRAIN
