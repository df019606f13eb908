"""Friction of geared joints: how much torque can hold a joint still, and how motion is damped.

The engine solves the friction itself: a law gives the largest Coulomb force and the damping, and
the constraint solver finds the force that stops the joint or opposes its motion, stiction
included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from sameworld.core.arrays import Array
from sameworld.worlds.components.law import Effect, Field, Law, Motion, Values, library

__all__ = ["AsymmetricFriction", "GearFriction"]

_TERMS = {
    "m1": (False, False, False, False),
    "m2": (True, False, False, False),
    "m3": (False, True, False, False),
    "m4": (True, True, False, False),
    "m5": (True, True, True, False),
    "m6": (True, True, True, True),
}


class GearFriction(Law):
    """Extended friction of a servo's gearbox, models M1 to M6.

    The limit of the friction torque is ``coulomb`` (M1), plus ``stribeck * s`` with
    ``s = exp(-|v / stribeck_velocity|^stribeck_exponent)`` (M2), plus a share of the torque that
    the gearbox carries, ``(load + load_stribeck * s) |external - drive|`` (M3 without the
    Stribeck part, M4 with it). M5 tells what comes from the motor and what from outside apart:
    ``|external * load_external - drive * load_drive|`` and the same with Stribeck coefficients.
    M6 adds ``s * quadratic_external * external^2`` where the motor drives against a smaller load
    and ``s * quadratic_drive * drive^2`` where a larger load drives the motor. ``viscous`` damps.

    ``external`` is the torque of gravity and inertial coupling on the joint, ``drive`` the
    actuators' torque.

    Source: M. Duclusaud, G. Passault, V. Padois, O. Ly, "Extended friction models for the physics
    simulation of servo actuators", arXiv 2410.08650 (2024), equations of section III.
    """

    kind = "gear_friction"
    target = "joint"
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {"model": tuple(_TERMS)}

    def fields(self) -> tuple[Field, ...]:
        """Coulomb and viscous friction and what the model adds."""
        stribeck, load, directional, quadratic = _TERMS[self.settings["model"]]
        found = [Field(name="coulomb", unit="F", default=0.05), _viscous()]
        if stribeck:
            found += [
                Field(name="stribeck", unit="F", default=0.02),
                Field(name="stribeck_velocity", unit="V", default=0.3, low=0.01, high=20.0),
                Field(name="stribeck_exponent", unit="", default=1.5, low=0.3, high=10.0),
            ]
        if load:
            parts = ("load_drive", "load_external") if directional else ("load",)
            found += [_share(name, 0.05) for name in parts]
            if stribeck:
                found += [_share(_with_stribeck(name), 0.05) for name in parts]
        if quadratic:
            found += [
                Field(name=name, unit="1/F", default=0.001, high=0.5)
                for name in ("quadratic_drive", "quadratic_external")
            ]
        return tuple(found)

    def idle(self, values: Mapping[str, float]) -> Mapping[str, str]:
        """Speed and exponent of the Stribeck term, where nothing is multiplied by it."""
        terms = [n for n in values if n.startswith(("load_stribeck", "quadratic"))]
        if "stribeck" not in values or any(values[n] for n in ("stribeck", *terms)):
            return {}
        reason = "everything that the Stribeck term multiplies is 0"
        return {"stribeck_velocity": reason, "stribeck_exponent": reason}

    def reads(self) -> frozenset[str]:
        """Loads, where friction depends on them."""
        return frozenset({"load", "drive"} if _TERMS[self.settings["model"]][1] else ())

    def act(self, values: Values, memory: Array, motion: Motion) -> Effect:
        """Friction limit and damping at the present velocity and load."""
        stribeck, load, directional, quadratic = _TERMS[self.settings["model"]]
        limit = values["coulomb"]
        xp = library(values, memory, motion)
        slow = xp.zeros_like(limit)
        if stribeck:
            slow = _slow(xp, values, motion.velocity)
            limit = limit + slow * values["stribeck"]
        if load and not directional:
            carried = xp.abs(motion.load - motion.drive)
            limit = limit + values["load"] * carried
            if stribeck:
                limit = limit + slow * values["load_stribeck"] * carried
        if directional:
            limit = limit + _carried(xp, values, motion, "load_external", "load_drive")
            names = _with_stribeck("load_external"), _with_stribeck("load_drive")
            limit = limit + slow * _carried(xp, values, motion, *names)
        if quadratic:
            limit = limit + slow * _opposed(xp, values, motion)
        return Effect(memory=memory, friction=limit, damping=values["viscous"])


def _viscous() -> Field:
    return Field(name="viscous", unit="F/V", default=0.01)


def _share(name: str, default: float) -> Field:
    return Field(name=name, unit="", default=default, high=1.0)


def _with_stribeck(name: str) -> str:
    return name.replace("load", "load_stribeck", 1)


def _slow(xp: Any, values: Values, velocity: Array) -> Array:
    """Share of the Stribeck term: 1 at rest, 0 in fast motion; its derivative at rest is 0."""
    speed = xp.abs(velocity / values["stribeck_velocity"])
    still = speed == 0
    power = xp.where(still, 1.0, speed) ** values["stribeck_exponent"]
    return xp.exp(-xp.where(still, 0.0, power))


def _carried(xp: Any, values: Values, motion: Motion, external: str, drive: str) -> Array:
    """Torque in the gearbox, motor side and outside weighed apart."""
    return xp.abs(motion.load * values[external] - motion.drive * values[drive])


def _opposed(xp: Any, values: Values, motion: Motion) -> Array:
    """Quadratic part, where motor and load pull against each other."""
    external, drive = xp.abs(motion.load), xp.abs(motion.drive)
    against = xp.sign(motion.load) != xp.sign(motion.drive)
    driving = values["quadratic_external"] * external**2
    driven = values["quadratic_drive"] * drive**2
    return against * ((external < drive) * driving + (external > drive) * driven)


class AsymmetricFriction(Law):
    """Coulomb and viscous friction that differ with the direction of motion.

    ``coulomb_positive + viscous_positive v`` for ``v > 0`` and the negative pair for ``v < 0``; at
    rest the side towards which the joint is driven counts. ``offset`` is a constant force.

    Source: A. Janot, M. Gautier, M. Brunot, "Data Set and Reference Models of EMPS", Workshop on
    Nonlinear System Identification Benchmarks (2019).
    """

    kind = "asymmetric_friction"
    target = "joint"

    def fields(self) -> tuple[Field, ...]:
        """Friction to both sides and a constant force."""
        return (
            Field(name="coulomb_positive", unit="F", default=0.1),
            Field(name="coulomb_negative", unit="F", default=0.1),
            Field(name="viscous_positive", unit="F/V", default=0.1),
            Field(name="viscous_negative", unit="F/V", default=0.1),
            Field(name="offset", unit="F", default=0.0, low=-math.inf),
        )

    def reads(self) -> frozenset[str]:
        """What drives a joint at rest."""
        return frozenset({"load", "drive"})

    def act(self, values: Values, memory: Array, motion: Motion) -> Effect:
        """Friction of the side the joint moves or is driven to."""
        xp = library(values, memory, motion)
        pushed = motion.drive + motion.load
        towards = xp.where(motion.velocity != 0, motion.velocity, pushed) >= 0
        friction = xp.where(towards, values["coulomb_positive"], values["coulomb_negative"])
        damping = xp.where(towards, values["viscous_positive"], values["viscous_negative"])
        return Effect(memory=memory, friction=friction, damping=damping, force=values["offset"])
