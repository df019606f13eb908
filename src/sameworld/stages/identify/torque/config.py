"""Options of ``identify_torque``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from sameworld.core.errors import FitError

__all__ = ["Friction", "TorqueConfig", "Velocity"]

Friction = Literal["coulomb", "sigmoid", "dahl"]
Velocity = Literal["measured", "differentiated"]


@dataclass(frozen=True, kw_only=True)
class TorqueConfig:
    """Options of ``identify_torque``.

    Attributes:
        free: Patterns of what to fit. A pattern that matches any inertial address of a body frees
            all ten numbers of that body; joint terms are ``joint:J.damping``, ``.frictionloss``,
            ``.armature``, ``.stiffness`` and the torque offset ``sensor:CHANNEL.bias``.
        torque: Name of the torque channel of each joint, with ``{joint}`` or ``{number}`` (from 1)
            in it; empty takes the scene's force sensors and motors.
        cutoff: Cut-off [Hz] of the zero-phase low-pass that motion and torque pass.
        trim: Time cut off at both ends after filtering [s].
        velocity: Whether velocities come from ``J.vel`` channels or from positions.
        friction: Shape of dry friction: jump at reversal (``coulomb``); smooth in velocity
            (``sigmoid``); or built up over a short way after each reversal (``dahl``). Width or
            way are found per joint.
        pull: Spread of the inertia of each free body around the scene's, in dimensionless
            coordinates: 0.3 means a mass within about 40 %. What the torques do not tell stays
            there.
        rounds: Rounds of re-estimating channel weights and friction shapes.
        determined: Largest relative spread that counts as determined.
        holdout: Share of the pieces of motion kept out for the gate; 0 switches it off.
        seed: Seed of everything random.
    """

    free: tuple[str, ...] = ("body:*", "joint:*.damping", "joint:*.frictionloss")
    torque: str = ""
    cutoff: float = 10.0
    trim: float = 0.5
    velocity: Velocity = "measured"
    friction: Friction = "dahl"
    pull: float = 0.3
    rounds: int = 4
    determined: float = 0.1
    holdout: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        free = (self.free,) if isinstance(self.free, str) else tuple(self.free)
        object.__setattr__(self, "free", free)
        if not free:
            raise FitError("free is empty: name what to fit, for example free=('body:hand.*',).")
        for name, literal in {"friction": Friction, "velocity": Velocity}.items():
            if getattr(self, name) not in get_args(literal):
                raise FitError(
                    f"{name} = {getattr(self, name)!r} must be one of {get_args(literal)}."
                )
        for name in ("cutoff", "pull", "determined", "rounds"):
            if not getattr(self, name) > 0:
                raise FitError(f"{name} = {getattr(self, name)} must be positive.")
        if self.trim < 0 or not 0 <= self.holdout < 1:
            raise FitError(f"trim = {self.trim} must be >= 0 and holdout = {self.holdout} < 1.")
        if self.torque and "{joint}" not in self.torque and "{number}" not in self.torque:
            raise FitError(
                f"torque = '{self.torque}' names one channel for all joints; write {{joint}} or "
                "{number} in it, for example 'tau{number}'."
            )
