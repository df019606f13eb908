"""Which joints a robot description says are driven: ``<transmission>`` and ``<ros2_control>``."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from sameworld.core.errors import SceneError
from sameworld.store.urdf_robot import UrdfActuator
from sameworld.store.urdf_xml import local

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ["actuators_of"]

_INTERFACES = ("position", "velocity", "effort")


def actuators_of(
    root: Element, joints: Collection[str], where: str
) -> tuple[tuple[UrdfActuator, ...], tuple[str, ...]]:
    """Driven joints, one actuator each, and remarks on entries that name no joint.

    Returns:
        Actuators in document order, and remarks.
    """
    found: dict[str, UrdfActuator] = {}
    remarks: list[str] = []
    for actuator in (*_transmissions(root, where), *_controls(root)):
        if actuator.joint not in joints:
            remarks.append(
                f"An actuator is described for joint '{actuator.joint}', which does not exist; it "
                "is left out."
            )
        elif actuator.joint not in found:
            found[actuator.joint] = actuator
    return tuple(found.values()), tuple(remarks)


def _transmissions(root: Element, where: str) -> list[UrdfActuator]:
    out: list[UrdfActuator] = []
    for transmission in root.findall("transmission"):
        joint, actuator = transmission.find("joint"), transmission.find("actuator")
        if joint is None or not joint.get("name"):
            continue
        name = "" if actuator is None else actuator.get("name", "")
        reduction = transmission.find(".//mechanicalReduction")
        out.append(
            UrdfActuator(
                joint=local(joint.get("name", "")),
                name=local(name or joint.get("name", "")),
                interface=_interface(transmission),
                reduction=_reduction(reduction, where),
            )
        )
    return out


def _controls(root: Element) -> list[UrdfActuator]:
    out: list[UrdfActuator] = []
    for joint in root.findall("ros2_control/joint"):
        interfaces = [e.get("name", "") for e in joint.findall("command_interface")]
        name = local(joint.get("name", ""))
        if interfaces and name:
            kind = next((i for i in _INTERFACES if i in interfaces), "")
            out.append(UrdfActuator(joint=name, name=name, interface=kind))
    return out


def _interface(transmission: Element) -> str:
    texts = [(e.text or "").lower() for e in transmission.iter("hardwareInterface")]
    return next((i for i in _INTERFACES if any(i in text for text in texts)), "")


def _reduction(element: Element | None, where: str) -> float:
    text = "1" if element is None else (element.text or "1").strip()
    try:
        return float(text)
    except ValueError:
        raise SceneError(f"'{where}': <mechanicalReduction>{text:.40} is not numeric.") from None
