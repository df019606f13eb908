"""Inertia of a body as parameters: mass, centre of mass, moments, or log-Cholesky coordinates.

``body:X.mass`` scales the moments along, as if the density changed, unless the moments are given
too (named in the belief, or different from the scene's). ``body:X.inertial.*`` are ten coordinates
in which every real vector is a possible inertia; as soon as one of them differs from the scene's
they replace mass, centre and moments of that body altogether.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.errors import SceneError
from sameworld.maths.inertia import (
    from_log_cholesky,
    inertia_problem,
    log_cholesky,
    principal,
    rotated,
)
from sameworld.worlds.compiled.engine import Model
from sameworld.worlds.compiled.slots import Slot, around, positive

__all__ = ["COORDINATES", "Inertial", "body_slots", "edited_inertial"]

COORDINATES = ("alpha", "d1", "d2", "d3", "s12", "s23", "s13", "t1", "t2", "t3")
_AXES = ("x", "y", "z")
_COORDINATE_UNITS = ("", "", "", "", "m", "m", "m", "m", "m", "m")


@dataclass(frozen=True, kw_only=True, eq=False)
class Inertial:
    """Inertia of one body.

    Attributes:
        mass: Mass [kg].
        com: Centre of mass in the body frame [3] m.
        quaternion: Principal axes to body frame, wxyz [4].
        moments: Principal moments about the centre of mass [3] kg m^2.
    """

    mass: float
    com: Array
    quaternion: Array
    moments: Array

    @classmethod
    def of(cls, model: Model, body: int) -> Inertial:
        """Read from a compiled model."""
        return cls(
            mass=float(model.body_mass[body]),
            com=np.array(model.body_ipos[body]),
            quaternion=np.array(model.body_iquat[body]),
            moments=np.array(model.body_inertia[body]),
        )

    def coordinates(self) -> Array:
        """Log-Cholesky coordinates [10].

        Raises:
            SceneError: A flat or point-like body has none.
        """
        return log_cholesky(self.mass, self.com, rotated(np.diag(self.moments), self.quaternion))


def body_slots(model: Model, body: int) -> list[Slot]:
    """Slots of one moving body."""
    name = model.body(body).name
    inertial = Inertial.of(model, body)
    reach = max(0.01, 2 * float(np.sqrt(inertial.moments.max() / inertial.mass)))
    slots = [_slot(name, "mass", "kg", inertial.mass, positive(inertial.mass))]
    for axis, value in zip(_AXES, inertial.com.tolist(), strict=True):
        slots.append(_slot(name, f"com.{axis}", "m", value, around(value, reach)))
    for axis, value in zip(_AXES, inertial.moments.tolist(), strict=True):
        slots.append(_slot(name, f"inertia.{axis}", "kg m^2", value, positive(value)))
    try:
        values = inertial.coordinates().tolist()
    except SceneError:
        return slots
    for part, unit, value in zip(COORDINATES, _COORDINATE_UNITS, values, strict=True):
        span = reach if unit == "m" else 1.5
        slots.append(_slot(name, f"inertial.{part}", unit, value, around(value, span)))
    return slots


def _slot(body: str, part: str, unit: str, value: float, bounds: tuple[float, float]) -> Slot:
    return Slot(
        name=f"body:{body}.{part}",
        unit=unit,
        value=value,
        bounds=bounds,
        group="body",
        owner=body,
        part=part,
    )


def edited_inertial(
    base: Inertial, changed: Mapping[str, float], given: Collection[str]
) -> Inertial | str:
    """Inertia with some numbers changed, or the reason why no body has it.

    Args:
        base: Inertia in the scene.
        changed: Part (``mass``, ``com.x``, ``inertial.alpha``, ...) to value, only what differs.
        given: Parts that the belief names; moments among them do not scale with the mass.
    """
    if any(part.startswith("inertial.") for part in changed):
        coordinates = base.coordinates()
        for k, part in enumerate(COORDINATES):
            coordinates[k] = changed.get(f"inertial.{part}", coordinates[k])
        mass, com, matrix = from_log_cholesky(coordinates)
        moments, quaternion = principal(matrix)
        edited = Inertial(mass=float(mass), com=com, quaternion=quaternion, moments=moments)
    else:
        edited = _plain_edit(base, changed, given)
    problem = inertia_problem(edited.mass, np.diag(edited.moments))
    return problem or edited


def _plain_edit(base: Inertial, changed: Mapping[str, float], given: Collection[str]) -> Inertial:
    mass = changed.get("mass", base.mass)
    own_moments = any(part.startswith("inertia.") for part in (*changed, *given))
    moments = base.moments if own_moments else base.moments * (mass / base.mass)
    return Inertial(
        mass=mass,
        com=_replaced(base.com, "com", changed),
        quaternion=base.quaternion,
        moments=_replaced(moments, "inertia", changed),
    )


def _replaced(vector: Array, part: str, changed: Mapping[str, float]) -> Array:
    return np.array(
        [changed.get(f"{part}.{axis}", float(v)) for axis, v in zip(_AXES, vector, strict=True)]
    )
