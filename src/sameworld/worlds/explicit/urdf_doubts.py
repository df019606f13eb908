"""Is what a robot description says of its masses possible? Every doubt names both numbers.

Sources: P. M. Wensing, S. Kim, J.-J. E. Slotine, "Linear matrix inequalities for physically
consistent inertial parameter identification", RA-L 3 (2018), for what makes an inertia physical.
That mass lies inside the convex hull of the geometry bounds its moments: about an axis through the
centre of mass no moment exceeds the mass times the square of the largest distance from that axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from sameworld.core.arrays import Array
from sameworld.maths.inertia import inertia_problem
from sameworld.store.urdf_robot import UrdfInertial, UrdfLink
from sameworld.worlds.explicit.urdf_geometry import LinkGeometry

__all__ = ["UNACCEPTABLE", "Doubt", "DoubtKind", "doubts_of", "is_frame", "softened"]

DoubtKind = Literal[
    "impossible", "missing", "placeholder", "outside", "spread", "density", "scale", "odd"
]

#: What no acceptance makes possible.
UNACCEPTABLE: tuple[DoubtKind, ...] = ("impossible", "missing", "scale")
#: A fixed link of at most this mass [kg] only marks a place.
_FRAME_MASS = 1e-6
#: Least moment with which MuJoCo compiles [kg m^2].
_THINNEST = 1e-13
#: Osmium, the densest solid, has 22590 kg/m^3; hulls are a little larger than what they hold.
_DENSEST = 23_000.0
_HEAVY, _LIGHT = 9_000.0, 5.0
_LARGEST, _SMALLEST = 20.0, 5e-4
#: Shares of the size of a link forgiven for rounded or simplified shapes.
_OUTSIDE, _SPREAD = 0.05, 1.1


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """Something wrong or odd about the inertia of a link.

    Attributes:
        link: The link.
        kind: What sort of thing; ``odd`` is told and never refused.
        text: One sentence with the numbers.
    """

    link: str
    kind: DoubtKind
    text: str

    def __str__(self) -> str:
        return f"link '{self.link}': {self.text}"


def is_frame(inertial: UrdfInertial | None) -> bool:
    """Whether a link has no mass worth the name; allowed where no joint moves it by itself."""
    return inertial is None or 0 <= inertial.mass <= _FRAME_MASS


def doubts_of(link: UrdfLink, geometry: LinkGeometry | None, *, needs_mass: bool) -> list[Doubt]:
    """Everything doubtful about the inertia of one moving link.

    Args:
        link: The link.
        geometry: What its shapes say, ``None`` if it has none.
        needs_mass: Whether nothing that moves with it has mass either.
    """
    judge = _Judge(link=link, geometry=geometry)
    scale = judge.scale()
    if is_frame(link.inertial):
        return [*scale, *(judge.missing() if needs_mass else judge.weightless())]
    impossible = judge.impossible()
    if impossible:
        return [*scale, *impossible]
    placeholder = judge.placeholder()
    if placeholder or scale:
        return [*scale, *placeholder]
    return [*judge.outside(), *judge.spread(), *judge.density(), *judge.isotropic()]


def softened(doubts: Sequence[Doubt], reason: str) -> list[Doubt]:
    """Implausible but possible things as merely odd, with the reason why that is enough."""
    return [
        doubt
        if doubt.kind in (*UNACCEPTABLE, "odd")
        else replace(doubt, kind="odd", text=f"{doubt.text} {reason}")
        for doubt in doubts
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Judge:
    link: UrdfLink
    geometry: LinkGeometry | None

    def _doubt(self, kind: DoubtKind, text: str) -> list[Doubt]:
        return [Doubt(link=self.link.name, kind=kind, text=text)]

    @property
    def _inertial(self) -> UrdfInertial:
        assert self.link.inertial is not None
        return self.link.inertial

    def missing(self) -> list[Doubt]:
        if self.link.inertial is None:
            return self._doubt("missing", "it moves and has no <inertial>.")
        return self._doubt(
            "missing",
            f"it moves, but its mass is {self._inertial.mass:g} kg and nothing fixed to it has "
            "any.",
        )

    def weightless(self) -> list[Doubt]:
        """Moments without a mass, which are left out."""
        inertial = self.link.inertial
        if inertial is None or not (np.abs(inertial.inertia) > _FRAME_MASS).any():
            return []
        largest = float(np.abs(inertial.inertia).max())
        return self._doubt(
            "odd",
            f"its mass is {inertial.mass:g} kg, but its inertia is up to {largest:g} kg m^2; both "
            "are left out.",
        )

    def impossible(self) -> list[Doubt]:
        mass, matrix = self._inertial.mass, self._inertial.inertia
        problem = inertia_problem(mass, matrix)
        if problem is None:
            return self._thin()
        if mass > 0 and not matrix.any():
            return self._doubt(
                "missing", f"its inertia is zero, though its mass is {mass:g} kg: a point."
            )
        return self._doubt("impossible", f"{problem}{_triangle(matrix)}.")

    def _thin(self) -> list[Doubt]:
        smallest = float(np.linalg.eigvalsh(self._inertial.inertia)[0])
        if smallest >= _THINNEST:
            return []
        return self._doubt(
            "impossible",
            f"its smallest principal moment {smallest:.3g} kg m^2 is that of a line; MuJoCo takes "
            f"none below {_THINNEST:g}.",
        )

    def placeholder(self) -> list[Doubt]:
        """A round number on the diagonal that its geometry does not confirm."""
        moments = np.diag(self._inertial.inertia)
        first = float(moments[0])
        if not (np.allclose(self._inertial.inertia, first * np.eye(3), rtol=1e-9) and first > 0):
            return []
        if not math.isclose(math.log10(first), round(math.log10(first)), abs_tol=1e-9):
            return []
        mass = self._inertial.mass
        gyration = f"a radius of gyration of {math.sqrt(first / mass):.3g} m at {mass:g} kg"
        if self.geometry is None:
            return self._doubt(
                "placeholder",
                f"inertia {first:g} kg m^2 on every axis looks like a placeholder ({gyration}, and "
                "there is no geometry to compare with).",
            )
        own = self.geometry.moments(mass)
        if float(own.min()) / 3 <= first <= 3 * float(own.max()):
            return []
        return self._doubt(
            "placeholder",
            f"inertia {first:g} kg m^2 on every axis looks like a placeholder ({gyration}); its "
            f"shapes filled evenly would have {_moments(own)} kg m^2.",
        )

    def outside(self) -> list[Doubt]:
        if self.geometry is None:
            return []
        beyond = self.geometry.beyond(self._inertial.com)
        if beyond <= _OUTSIDE * self.geometry.size:
            return []
        return self._doubt(
            "outside",
            f"its centre of mass {_point(self._inertial.com)} m lies {beyond:.3g} m outside its "
            f"shapes, which reach from {_point(self.geometry.low)} to "
            f"{_point(self.geometry.high)} m.",
        )

    def spread(self) -> list[Doubt]:
        """Moments that mass inside the shapes cannot have, or that are oddly small."""
        if self.geometry is None:
            return []
        mass = self._inertial.mass
        moments, axes = np.linalg.eigh(self._inertial.inertia)
        reach = self.geometry.reach(self._inertial.com, axes)
        gyration = np.sqrt(moments / mass)
        worst = int(np.argmax(gyration / np.maximum(reach, 1e-12)))
        if gyration[worst] > _SPREAD * reach[worst]:
            return self._doubt(
                "spread",
                f"the moment {moments[worst]:.4g} kg m^2 at {mass:g} kg is a radius of gyration of "
                f"{gyration[worst]:.3g} m, but no point of its shapes is farther than "
                f"{reach[worst]:.3g} m from that axis.",
            )
        own = self.geometry.moments(mass)
        ratio = float(own.max() / moments.max())
        if ratio < 30:
            return []
        return self._doubt(
            "odd",
            f"its largest moment {moments.max():.3g} kg m^2 is {ratio:.3g} times smaller than that "
            f"of its shapes filled evenly ({own.max():.3g} kg m^2).",
        )

    def density(self) -> list[Doubt]:
        if self.geometry is None or self.geometry.volume <= 0:
            return []
        mass, volume = self._inertial.mass, self.geometry.volume
        density = mass / volume
        text = f"{mass:g} kg in a hull of {volume:.3g} m^3 is {density:.3g} kg/m^3"
        if density > _DENSEST:
            return self._doubt("density", f"{text}, denser than any metal ({_DENSEST:g}).")
        if density > _HEAVY:
            return self._doubt("odd", f"{text}, denser than steel.")
        if density < _LIGHT:
            return self._doubt("odd", f"{text}, lighter than foam.")
        return []

    def scale(self) -> list[Doubt]:
        """Millimetres taken for metres, or scaled twice."""
        if self.geometry is None:
            return []
        size = self.geometry.size
        if size > _LARGEST:
            return self._doubt(
                "scale",
                f"its shapes are {size:.4g} m large. URDF is in metres: were they drawn in "
                "millimetres? Then write <mesh scale='0.001 0.001 0.001'>, which makes them "
                f"{1e-3 * size:.4g} m.",
            )
        if size < _SMALLEST:
            return self._doubt(
                "scale",
                f"its shapes are {size:.3g} m large. Was a scale of 0.001 applied to a mesh that "
                f"is in metres already? Without it they would be {1e3 * size:.3g} m.",
            )
        return []

    def isotropic(self) -> list[Doubt]:
        matrix = self._inertial.inertia
        first = float(matrix[0, 0])
        if self.geometry is None or not np.allclose(matrix, first * np.eye(3), rtol=1e-9):
            return []
        own = self.geometry.moments(self._inertial.mass)
        if own.max() < 2 * own.min():
            return []
        return self._doubt(
            "odd",
            f"inertia {first:.4g} kg m^2 is the same on every axis, but its shapes are elongated "
            f"({_moments(own)} kg m^2): probably only one axis was measured.",
        )


def _triangle(matrix: Array) -> str:
    """The violated inequality in the link's own axes, where it shows there already."""
    for k, names in enumerate(("Iyy + Izz < Ixx", "Ixx + Izz < Iyy", "Ixx + Iyy < Izz")):
        a, b = (float(matrix[i, i]) for i in range(3) if i != k)
        c = float(matrix[k, k])
        if min(a, b, c) > 0 and a + b < c * (1 - 1e-6):
            left, _, right = names.partition(" < ")
            return f"; in the link's axes {left} = {a + b:.6g} < {right} = {c:.6g}"
    return ""


def _moments(values: Array) -> str:
    return ", ".join(f"{value:.3g}" for value in np.sort(values).tolist())


def _point(values: Array) -> str:
    return "(" + ", ".join(f"{value:.3g}" for value in values.tolist()) + ")"
