"""A driven, damped pendulum with exact derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.belief import Belief
from sameworld.core.scene import Scene
from sameworld.core.values import Values
from sameworld.zoo.analytic import AnalyticWorld
from sameworld.zoo.joint import JointSpec
from sameworld.zoo.priors import pendulum_prior
from sameworld.zoo.scenes import scene

__all__ = ["AnalyticPendulum"]

_MASS, _DAMPING, _GRAVITY = "body:bob.mass", "joint:pivot.damping", "option:gravity.z"
_EFFORT = "action:pivot_motor"


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class AnalyticPendulum(AnalyticWorld):
    """A solid sphere on a massless rod: angle 0 hangs down, torque acts at the pivot.

    ``m (l^2 + 2/5 r^2) a = torque - c v + m g_z l sin(pos)`` with ``g_z`` negative.

    Attributes:
        length: Distance from the pivot to the centre of the bob [m].
        radius: Radius of the bob [m]; its inertia scales with its mass.
    """

    parameters: Belief = field(default_factory=pendulum_prior)
    scene: Scene = field(default_factory=lambda: scene("pendulum"))
    length: float = 0.5
    radius: float = 0.05

    @classmethod
    def names(cls) -> JointSpec:
        """Names, units and limits."""
        return JointSpec(
            joint="pivot", motor="pivot_motor", unit="rad", effort="N m", limit=5.0, tolerance=0.05
        )

    @classmethod
    def physical_names(cls) -> tuple[str, ...]:
        """Mass, damping, gravity."""
        return (_MASS, _DAMPING, _GRAVITY)

    def acceleration(self, pos: Array, vel: Array, effort: Array, values: Values) -> Array:
        """Angular acceleration [B] rad/s^2."""
        mass, damping, gravity = (values.column(n) for n in self.physical_names())
        torque = effort - damping * vel + mass * gravity * self.length * np.sin(pos)
        return torque / (mass * self._arm())

    def partials(
        self, pos: Array, vel: Array, effort: Array, values: Values
    ) -> tuple[Array, Array, Mapping[str, Array]]:
        """Partial derivatives of the angular acceleration [B]."""
        mass, damping, gravity = (values.column(n) for n in self.physical_names())
        inertia = mass * self._arm()
        return (
            gravity * self.length * np.cos(pos) / self._arm(),
            -damping / inertia,
            {
                _MASS: -(effort - damping * vel) / (inertia * mass),
                _DAMPING: -vel / inertia,
                _GRAVITY: self.length * np.sin(pos) / self._arm(),
                _EFFORT: 1 / inertia,
            },
        )

    def _arm(self) -> float:
        """Inertia about the pivot per mass [m^2]."""
        return self.length**2 + 0.4 * self.radius**2
