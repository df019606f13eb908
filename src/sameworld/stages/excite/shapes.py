"""Shapes of joint paths that begin and end at rest, linear in their coefficients.

Sources: J. Swevers, C. Ganseman, D. B. Tukel, J. De Schutter, H. Van Brussel, "Optimal robot
excitation and identification", IEEE Transactions on Robotics and Automation 13 (1997), for the
finite Fourier series; C. de Boor, "A Practical Guide to Splines" (1978).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline

from sameworld.core.arrays import Array
from sameworld.stages.excite.config import Shape

__all__ = ["Basis", "basis"]

_DEGREE = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Basis:
    """Functions of time, zero with their first two derivatives at both ends.

    Attributes:
        values: Functions at the asked times [T, M]; each has peak 1 over the motion.
        rates: First derivatives [T, M] 1/s.
        curvatures: Second derivatives [T, M] 1/s^2.
    """

    values: Array
    rates: Array
    curvatures: Array

    @property
    def size(self) -> int:
        """Number of functions M."""
        return self.values.shape[1]


def basis(shape: Shape, terms: int, duration: float, times: Array) -> Basis:
    """Evaluate the functions of a shape.

    Args:
        shape: ``fourier`` or ``spline``.
        terms: Highest harmonic, giving 2 (terms - 1) functions; or inner control points, one each.
        duration: Length of the motion [s].
        times: Times [T] s inside it.
    """
    build = _fourier if shape == "fourier" else _spline
    values, rates, curvatures = build(terms, duration, times)
    dense = build(terms, duration, np.linspace(0.0, duration, 1 + 64 * (terms + 1)))[0]
    mix = np.linalg.inv(np.linalg.qr(dense, mode="r")) if shape == "fourier" else np.eye(terms)
    mix = mix / np.abs(dense @ mix).max(axis=0)
    return Basis(values=values @ mix, rates=rates @ mix, curvatures=curvatures @ mix)


def _fourier(terms: int, duration: float, times: Array) -> tuple[Array, Array, Array]:
    """All harmonics up to ``terms`` less what moves at the ends.

    ``sin(kwt)/k - sin(wt)`` and ``(1 - cos(kwt))/k^2 - (1 - cos(wt))`` for k from 2: a basis of
    every periodic series with value, rate and curvature zero at 0.
    """
    w = 2 * np.pi / duration
    k = np.arange(1, terms + 1, dtype=np.float64)
    angle = w * times[:, None] * k
    sine = np.sin(angle) / k, w * np.cos(angle), -(w**2) * k * np.sin(angle)
    turn = (1 - np.cos(angle)) / k**2, w * np.sin(angle) / k, w**2 * np.cos(angle)
    parts = [
        np.hstack([f[:, 1:] - f[:, :1] for f in pair]) for pair in zip(sine, turn, strict=True)
    ]
    return parts[0], parts[1], parts[2]


def _spline(terms: int, duration: float, times: Array) -> tuple[Array, Array, Array]:
    """Cubic B-splines on uniform knots without the three at each end."""
    count = terms + 6
    inner = np.linspace(0.0, duration, count - _DEGREE + 1)
    knots = np.concatenate([np.zeros(_DEGREE), inner, np.full(_DEGREE, duration)])
    curve = BSpline(knots, np.eye(count)[:, 3:-3], _DEGREE)
    at = np.clip(times, 0.0, duration)
    return curve(at), curve(at, nu=1), curve(at, nu=2)
