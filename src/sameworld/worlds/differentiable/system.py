"""``System``: everything static that one engine step of a scene needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from sameworld.worlds.compiled.attach import Group
from sameworld.worlds.compiled.engine import Model
from sameworld.worlds.differentiable.cost import Layout
from sameworld.worlds.differentiable.equality import Equalities, equalities_of
from sameworld.worlds.differentiable.forces import Actuators, actuators_of
from sameworld.worlds.differentiable.limits import Limits, limits_of
from sameworld.worlds.differentiable.solve import Effort
from sameworld.worlds.differentiable.structure import Index, Structure, structure_of
from sameworld.worlds.differentiable.tendons import Tendons, tendons_of
from sameworld.worlds.differentiable.touch import Pairs, pairs_of

__all__ = ["System", "system_of"]


@dataclass(frozen=True, kw_only=True, eq=False)
class System:
    """Static layout of a scene.

    Attributes:
        structure: Bodies, joints and dofs.
        tendons: Tendons.
        actuators: Actuators.
        limits: Limited joints.
        equalities: Equality constraints.
        pairs: Pairs of geoms that may touch.
        owner: Body of every geom.
        rubbing: Dofs with dry friction.
        floating: Bodies with gravity compensation.
        groups: Components, by law.
        effort: How hard the constraint solver tries.
    """

    structure: Structure
    tendons: Tendons
    actuators: Actuators
    limits: Limits
    equalities: Equalities
    pairs: Pairs
    owner: Index
    rubbing: Index
    floating: Index
    groups: tuple[Group, ...]
    effort: Effort

    @property
    def layout(self) -> Layout:
        """Rows of the constraint problem."""
        dimensions = sorted(set(self.pairs.dimension.tolist()))
        contacts = {d: len(self.pairs.of_dimension(d)) for d in dimensions}
        elliptic = self.structure.elliptic
        pushing = self.limits.rows + 2 * len(self.tendons.limited) + contacts.get(1, 0)
        if not elliptic:
            pushing += sum(2 * (d - 1) * count for d, count in contacts.items())
        cones = tuple((d, count) for d, count in contacts.items() if d > 1)
        return Layout(
            equalities=len(self.equalities.row),
            frictions=len(self.rubbing) + len(self.tendons.rubbing),
            onesided=pushing,
            cones=cones if elliptic else (),
        )

    @property
    def is_constrained(self) -> bool:
        """Whether there are constraint rows at all."""
        return self.layout.rows > 0


def system_of(
    model: Model,
    chosen: list[tuple[int, int, int]],
    *,
    groups: tuple[Group, ...] = (),
    rubbing: Collection[int] = (),
    rubbing_tendons: Collection[int] = (),
    effort: Effort | None = None,
) -> System:
    """Lay out a compiled model that ``support`` has accepted.

    Args:
        model: The model.
        chosen: Pairs of geoms that may touch, and their ``<pair>`` element.
        groups: Components, by law.
        rubbing: Dofs that have dry friction besides those that have it in the model.
        rubbing_tendons: Tendons likewise.
        effort: How hard the constraint solver tries.
    """
    structure = structure_of(model)
    rubs = np.asarray(model.dof_frictionloss > 0)
    rubs[list(rubbing)] = True
    rubs &= not structure.is_disabled("FRICTIONLOSS")
    return System(
        structure=structure,
        tendons=tendons_of(model, rubbing_tendons),
        actuators=actuators_of(model),
        limits=limits_of(model),
        equalities=equalities_of(model),
        pairs=pairs_of(model, chosen),
        owner=np.asarray(model.geom_bodyid, dtype=np.intp),
        rubbing=np.flatnonzero(rubs),
        floating=np.flatnonzero(model.body_gravcomp),
        groups=groups,
        effort=effort or Effort(),
    )
