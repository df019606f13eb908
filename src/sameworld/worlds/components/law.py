"""``Law``: what a component computes at every engine step, independent of the engine.

All arrays are batched over elements B and over the n components that share a law and its
settings; they are numpy's or, where derivatives are wanted, JAX's, and results are of the same
library. The engine calls ``begin`` once and ``act`` at every step; what a law has to remember is
part of the State, so that a world with components stays a pure function of it.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.errors import SceneError, closest, listed
from sameworld.worlds.components.arrays import namespace

__all__ = [
    "Clock",
    "Effect",
    "Field",
    "Law",
    "Motion",
    "Settings",
    "Signal",
    "Target",
    "Values",
    "library",
]

Target = Literal["joint", "actuator", "body"]
Settings: TypeAlias = Mapping[str, "float | str"]
#: Parameter values by field, each [B, n].
Values: TypeAlias = Mapping[str, Array]


@dataclass(frozen=True, kw_only=True)
class Field:
    """A parameter of a law.

    Attributes:
        name: Last part of the address ``component:NAME.field``.
        unit: SI unit; ``J``, ``F`` and ``V`` in it stand for the joint's unit (rad or m), the force
            conjugate to it (N m or N), and its velocity.
        default: Value unless the scene says otherwise; NaN if the scene must say it.
        low: Lower bound.
        high: Upper bound.
    """

    name: str
    unit: str
    default: float
    low: float = 0.0
    high: float = math.inf

    def bounds(self, value: float) -> tuple[float, float]:
        """Range in which a search makes sense, around ``value``."""
        if self.low >= 0:
            low = max(self.low, 1e-3 * value)
            return low, min(self.high, 20 * value if value > 0 else 10.0)
        if math.isfinite(self.high) and math.isfinite(self.low):
            return self.low, self.high
        span = 10 * abs(value) if value else 10.0
        return max(self.low, value - span), min(self.high, value + span)


@dataclass(frozen=True, kw_only=True)
class Signal:
    """An input or output of a law.

    Attributes:
        name: Its name is ``COMPONENT.name`` in the world's spec.
        unit: SI unit.
        default: Value of an exogenous input where nobody gives it.
        column: Column of the law's memory that an output shows.
        start: Field of the start that an output shows directly, if any.
    """

    name: str
    unit: str
    default: float = 0.0
    column: int = 0
    start: str = ""


@dataclass(frozen=True, kw_only=True)
class Clock:
    """How time passes for a law.

    Attributes:
        timestep: Engine step [s].
        substeps: Engine steps per control tick.
    """

    timestep: float
    substeps: int

    @property
    def period(self) -> float:
        """Control period [s]."""
        return self.timestep * self.substeps


@dataclass(frozen=True, kw_only=True, eq=False)
class Motion:
    """What a law sees of the simulation at the beginning of an engine step.

    Attributes:
        position: Joint positions [B, n], of a body's planar joints [B, n, 3].
        velocity: Joint velocities of the same shape.
        load: Torque or force that the rest of the world exerts on the joint [B, n]: gravity and
            inertial coupling, as of the engine step before (``-qfrc_bias``).
        drive: Force of the actuators on the joint [B, n]: those of components in this step, of
            others in the engine step before.
        command: Actions on the component's actuators [B, n, A].
        inputs: Exogenous inputs by name [B, n].
        substep: Engine steps since the control tick began; an array inside a traced loop.
        mass: Mass of the body [B, n] and its moment of inertia about z, for laws of bodies.
    """

    position: Array
    velocity: Array
    load: Array
    drive: Array
    command: Array
    inputs: Mapping[str, Array]
    substep: int | Array
    mass: Array = field(default_factory=lambda: np.zeros((0, 0, 2)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Effect:
    """What a law does in one engine step; ``None`` where it does not touch a quantity.

    Attributes:
        force: Force of the actuator, or generalised force on the joint [B, n] or [B, n, 3].
        friction: Coulomb friction limit on the joint [B, n].
        damping: Viscous damping of the joint [B, n].
        velocity: Velocity that the joints are made to have [B, n, 3].
        memory: What the law remembers afterwards [B, n, M].
    """

    memory: Array
    force: Array | None = None
    friction: Array | None = None
    damping: Array | None = None
    velocity: Array | None = None


def library(values: Values, memory: Array, motion: Motion) -> Any:
    """Functions for the arrays of one call of a law: numpy's, or those of the traced library."""
    joint = motion.position, motion.velocity, motion.load, motion.drive, motion.command
    return namespace(*joint, memory, motion.mass, *values.values(), *motion.inputs.values())


class Law(abc.ABC):
    """A kind of component.

    Args:
        settings: Constants of the component that are not parameters.
        clock: How time passes.

    Raises:
        SceneError: A setting is unknown or has no meaning.
    """

    #: Name in ``Component.type`` and version of its definition.
    kind: ClassVar[str]
    version: ClassVar[int] = 1
    #: What a component of this kind acts on.
    target: ClassVar[Target]
    #: Whether it gives its joints their velocities: then their start velocities mean nothing.
    prescribes: ClassVar[bool] = False
    #: Settings that are words or constants, with what they may be.
    options: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self.clock = clock
        self.settings = {name: str(value) for name, value in settings.items()}
        for name, allowed in self.options.items():
            value = self.settings.setdefault(name, allowed[0])
            if value not in allowed:
                raise SceneError(
                    f"Component of type '{self.kind}': setting {name} = '{value}' must be one of "
                    f"{listed(allowed)}.{closest(value, allowed)}"
                )

    @abc.abstractmethod
    def fields(self) -> tuple[Field, ...]:
        """Its parameters."""

    def idle(self, values: Mapping[str, float]) -> Mapping[str, str]:
        """Fields that do nothing at these values of all fields, with the reason."""
        return {}

    def unit(self) -> str:
        """Unit of the action it takes, with placeholders as in ``Field``; joint laws take none."""
        return ""

    def actions(self) -> tuple[Signal, ...]:
        """Actions it takes besides, or in place of, the one of an actuator."""
        return ()

    def inputs(self) -> tuple[Signal, ...]:
        """Exogenous inputs it reads."""
        return ()

    def outputs(self) -> tuple[Signal, ...]:
        """Signals it shows, columns of its memory."""
        return ()

    def starts(self) -> tuple[Field, ...]:
        """Start parameters that its memory begins with."""
        return ()

    def reads(self) -> frozenset[str]:
        """Which of the lagging forces it needs: ``load``, ``drive``."""
        return frozenset()

    def memory(self) -> int:
        """Numbers it remembers between engine steps."""
        return 0

    def begin(self, values: Values, starts: Values, motion: Motion) -> Array:
        """Memory at the start [B, n, M].

        Args:
            values: Parameters [B, n].
            starts: Start parameters [B, n].
            motion: Joint positions and velocities at the start.
        """
        position = motion.position
        shape = (*position.shape[:2], self.memory())
        return namespace(position).zeros(shape, dtype=position.dtype)

    @abc.abstractmethod
    def act(self, values: Values, memory: Array, motion: Motion) -> Effect:
        """What it does in the engine step that begins now.

        Args:
            values: Parameters [B, n].
            memory: What it remembers [B, n, M].
            motion: What it sees.
        """
