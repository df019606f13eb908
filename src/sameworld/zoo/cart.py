"""A driven, damped cart on a rail, optionally sprung, with exact derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

from sameworld.core.arrays import Array
from sameworld.core.belief import Belief
from sameworld.core.scene import Scene
from sameworld.core.values import Values
from sameworld.zoo.analytic import AnalyticWorld
from sameworld.zoo.joint import JointSpec
from sameworld.zoo.priors import cart_prior
from sameworld.zoo.scenes import scene

__all__ = ["AnalyticCart"]

_MASS, _DAMPING, _STIFFNESS = "body:cart.mass", "joint:rail.damping", "joint:rail.stiffness"
_EFFORT = "action:rail_motor"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class AnalyticCart(AnalyticWorld):
    """``m a = force - c v - k pos``."""

    parameters: Belief = field(default_factory=cart_prior)
    scene: Scene = field(default_factory=lambda: scene("cart"))

    @classmethod
    def names(cls) -> JointSpec:
        """Names, units and limits."""
        return JointSpec(
            joint="rail", motor="rail_motor", unit="m", effort="N", limit=20.0, tolerance=0.01
        )

    @classmethod
    def physical_names(cls) -> tuple[str, ...]:
        """Mass, damping, stiffness."""
        return (_MASS, _DAMPING, _STIFFNESS)

    def acceleration(self, pos: Array, vel: Array, effort: Array, values: Values) -> Array:
        """Acceleration [B] m/s^2."""
        mass, damping, stiffness = (values.column(n) for n in self.physical_names())
        return (effort - damping * vel - stiffness * pos) / mass

    def partials(
        self, pos: Array, vel: Array, effort: Array, values: Values
    ) -> tuple[Array, Array, Mapping[str, Array]]:
        """Partial derivatives of the acceleration [B]."""
        mass, damping, stiffness = (values.column(n) for n in self.physical_names())
        force = effort - damping * vel - stiffness * pos
        return (
            -stiffness / mass,
            -damping / mass,
            {
                _MASS: -force / mass**2,
                _DAMPING: -vel / mass,
                _STIFFNESS: -pos / mass,
                _EFFORT: 1 / mass,
            },
        )
