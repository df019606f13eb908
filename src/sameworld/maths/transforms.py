"""Coordinates in which an optimiser sees parameters: identity, log, logit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.special import expit

from sameworld.core.arrays import Array
from sameworld.core.errors import BeliefError
from sameworld.core.parameters import Parameter

__all__ = ["Transform"]

#: Largest exponent of a log coordinate; exp(700) is still finite.
_LARGEST = 700.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Transform:
    """Coordinates ``u`` of parameter values ``x``, one kind per parameter.

    ``identity``: u = (x - centre) / scale. ``log``: u = log x. ``logit``: u = log((x - low) /
    (high - x)). Log parameters whose lower bound is zero never reach it.

    Attributes:
        parameters: The parameters, in order.
        scale: Scale of the identity coordinates [P] in the parameters' units.
    """

    parameters: tuple[Parameter, ...]
    scale: Array

    @classmethod
    def of(cls, parameters: Sequence[Parameter]) -> Transform:
        """Scales from the std, else from the bounds, else from the magnitude.

        Raises:
            BeliefError: A log parameter starts at zero or below.
        """
        for p in parameters:
            if p.transform == "log" and p.value <= 0:
                raise BeliefError(
                    f"Parameter '{p.name}' is fitted in log coordinates but starts at {p.value}. "
                    "Give it a positive start value."
                )
        return cls(parameters=tuple(parameters), scale=np.array([_scale(p) for p in parameters]))

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Bounds in coordinates, two arrays [P]."""
        pairs = [self._bounds_of(i, p) for i, p in enumerate(self.parameters)]
        low, high = np.array(pairs).reshape(-1, 2).T
        return low, high

    def _bounds_of(self, i: int, p: Parameter) -> tuple[float, float]:
        if p.transform == "logit":
            return -np.inf, np.inf
        if p.transform == "log":
            low = float(np.log(p.low)) if p.low > 0 else -np.inf
            return low, float(np.log(p.high)) if np.isfinite(p.high) else np.inf
        return (p.low - p.value) / self.scale[i], (p.high - p.value) / self.scale[i]

    def forward(self, x: Array) -> Array:
        """Coordinates of values [..., P]."""
        columns = [self._forward(i, p, x[..., i]) for i, p in enumerate(self.parameters)]
        return np.stack(columns, axis=-1) if columns else np.zeros(x.shape)

    def _forward(self, i: int, p: Parameter, x: Array) -> Array:
        if p.transform == "log":
            return cast("Array", np.log(x))
        if p.transform == "logit":
            inside = np.clip(x, p.low + 1e-12 * (p.high - p.low), p.high - 1e-12 * (p.high - p.low))
            return cast("Array", np.log((inside - p.low) / (p.high - inside)))
        return (x - p.value) / self.scale[i]

    def backward(self, u: Array) -> Array:
        """Values of coordinates [..., P], inside the bounds."""
        columns = [self._backward(i, p, u[..., i]) for i, p in enumerate(self.parameters)]
        return np.stack(columns, axis=-1) if columns else np.zeros(u.shape)

    def _backward(self, i: int, p: Parameter, u: Array) -> Array:
        if p.transform == "log":
            return np.clip(np.exp(np.minimum(u, _LARGEST)), p.low, p.high)
        if p.transform == "logit":
            return np.clip(p.low + (p.high - p.low) * expit(u), p.low, p.high)
        return np.clip(p.value + self.scale[i] * u, p.low, p.high)

    def derivative(self, u: Array) -> Array:
        """Derivative dx/du at coordinates [P]."""
        x = self.backward(u)
        slopes = np.empty(len(self.parameters))
        for i, p in enumerate(self.parameters):
            if p.transform == "log":
                slopes[i] = x[i]
            elif p.transform == "logit":
                slopes[i] = (x[i] - p.low) * (p.high - x[i]) / (p.high - p.low)
            else:
                slopes[i] = self.scale[i]
        return slopes


def _scale(p: Parameter) -> float:
    if np.isfinite(p.std) and p.std > 0:
        return p.std
    if np.isfinite(p.high - p.low) and p.high > p.low:
        return 0.25 * (p.high - p.low)
    return abs(p.value) or 1.0
