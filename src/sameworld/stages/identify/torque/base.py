"""Base parameters: the combinations of inertial numbers that torques can tell at all.

Source: M. Gautier, "Numerical calculation of the base inertial parameters of robots", J. Robotic
Systems 8 (1991).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sameworld.core.arrays import Array
from sameworld.maths.regression import base_columns, compressed
from sameworld.stages.identify.result import Combination
from sameworld.stages.identify.torque.design import Design
from sameworld.stages.identify.torque.layout import Layout

__all__ = ["NUMBERS", "coefficient_names", "determined_combinations"]

#: Names of the ten numbers in which torques are linear, after ``body:NAME.``.
NUMBERS = (
    "mass",
    *(f"moment.{axis}" for axis in "xyz"),
    *(f"inertia.{pair}" for pair in ("xx", "yy", "zz", "xy", "xz", "yz")),
)
_SHOWN = 1e-3


def coefficient_names(layout: Layout) -> tuple[str, ...]:
    """Names of the linear coefficients that are fitted."""
    bodies = [f"body:{body}.{number}" for body in layout.bodies for number in NUMBERS]
    return (*bodies, *(layout.terms[k].parameter.name for k in layout.free))


def determined_combinations(
    pieces: Sequence[Design], layout: Layout, x: Array, covariance: Array, share: float
) -> tuple[Combination, ...]:
    """Combinations that the data fix better than the pull does.

    Args:
        pieces: The data.
        layout: The unknowns.
        x: Solution [P].
        covariance: Its covariance [P, P].
        share: Largest spread, relative to that of the pull, that counts as fixed.
    """
    own = slice(0, layout.named)
    slope, covariance = layout.coefficients(x)[1][own, own], covariance[own, own]
    spread = np.where(np.isfinite(layout.spread), layout.spread, 1.0)[own]
    scale = np.sqrt(np.maximum(np.sum((slope * spread) ** 2, axis=1), 1e-300))
    rows = compressed(
        np.concatenate([compressed(p.columns[..., own].reshape(-1, layout.named)) for p in pieces])
    )
    base = base_columns(rows, scale)
    names, after = coefficient_names(layout), slope @ covariance @ slope.T
    before = (slope * spread**2) @ slope.T
    found: list[Combination] = []
    for line, column in enumerate(base.independent.tolist()):
        weights = np.zeros(layout.named)
        weights[column], weights[base.dependent] = 1.0, base.mixing[line]
        weights /= np.abs(weights).max()
        std = float(np.sqrt(max(weights @ after @ weights, 0.0)))
        prior = float(np.sqrt(weights @ before @ weights))
        named = {names[k]: float(w) for k, w in enumerate(weights) if abs(w) > _SHOWN}
        if len(named) > 1 and std <= share * prior:
            found.append(Combination(weights=named, std=std, text=_text(named)))
    return tuple(found)


def _text(weights: dict[str, float]) -> str:
    parts = [f"{weight:+.3g} {name.removeprefix('body:')}" for name, weight in weights.items()]
    return " ".join(parts).removeprefix("+")
