"""Which kinds of component there are."""

from __future__ import annotations

from sameworld.core.errors import SceneError, closest, listed
from sameworld.core.scene import Component
from sameworld.worlds.components.car import DynamicCar, KinematicCar
from sameworld.worlds.components.controllers import FilteredPD, JointImpedance
from sameworld.worlds.components.friction import AsymmetricFriction, GearFriction
from sameworld.worlds.components.law import Law
from sameworld.worlds.components.motors import FirmwareServo, VoltageMotor

__all__ = ["LAWS", "law_of"]

_ALL: tuple[type[Law], ...] = (
    GearFriction,
    AsymmetricFriction,
    FirmwareServo,
    VoltageMotor,
    JointImpedance,
    FilteredPD,
    KinematicCar,
    DynamicCar,
)
#: Laws by the type that a component names.
LAWS: dict[str, type[Law]] = {law.kind: law for law in _ALL}


def law_of(component: Component) -> type[Law]:
    """The law of a component.

    Raises:
        SceneError: There is none of that type and version.
    """
    law = LAWS.get(component.type)
    if law is None:
        raise SceneError(
            f"Component '{component.name}' is of type '{component.type}', which does not exist. "
            f"Types: {listed(LAWS)}.{closest(component.type, LAWS)}"
        )
    if component.version != law.version:
        raise SceneError(
            f"Component '{component.name}' is version {component.version} of '{component.type}'; "
            f"this package has version {law.version}."
        )
    return law
