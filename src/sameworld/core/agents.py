"""``Robot``, ``Task``, ``Policy``: what acts, what counts, what is really there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from sameworld.core.arrays import Array, BoolArray, Signals
from sameworld.core.errors import SpecError, listed
from sameworld.core.spec import Spec

__all__ = ["Policy", "ResetProcedure", "Robot", "SignalOrigin", "Task"]

SignalOrigin = Literal["measured", "estimated", "privileged"]


@runtime_checkable
class Robot(Protocol):
    """Reality, or something that plays it. It has no ``reset`` to a state."""

    @property
    def spec(self) -> Spec:
        """What it takes and gives, readable before connecting."""
        ...

    def connect(self) -> None:
        """Open the connection."""
        ...

    def observe(self) -> Signals:
        """Newest signals, each [...] without batch axis."""
        ...

    def command(self, action: Array) -> Array:
        """Send an action [A] and return the action really sent after limits."""
        ...

    def close(self) -> None:
        """Leave the robot safe and close the connection; may be called twice."""
        ...


class ResetProcedure(Protocol):
    """How a real scene gets back to a start: a prompt to a person, a script."""

    def __call__(self, seed: int) -> Mapping[str, float]:
        """Bring the scene to a start and return what is known of it by address."""
        ...


@runtime_checkable
class Policy(Protocol):
    """A controller with explicit memory."""

    @property
    def latency(self) -> int:
        """Control ticks between an observation and its action taking effect."""
        ...

    def init(self, batch: int) -> Any:
        """Memory at the start of ``batch`` episodes."""
        ...

    def act(self, carry: Any, observation: Signals) -> tuple[Any, Array]:
        """New memory and actions [B, A] for observations [B, ...]."""
        ...


@dataclass(frozen=True, kw_only=True)
class Task:
    """Success and reward as pure functions of named signals.

    Attributes:
        name: Task name.
        success: Signals [B, ...] to success [B].
        reward: Signals [B, ...] to reward [B].
        needs: Signal names used, with where they may come from.
    """

    name: str
    success: Callable[[Signals], BoolArray]
    reward: Callable[[Signals], Array]
    needs: Mapping[str, SignalOrigin]

    def check(self, spec: Spec) -> None:
        """Verify before the first trial that every needed signal exists.

        Raises:
            SpecError: A signal is missing.
        """
        names = {c.name for c in spec.observations}
        missing = sorted(set(self.needs) - names)
        if missing:
            raise SpecError(
                f"Task '{self.name}' needs {listed(missing)}, but the world or robot offers "
                f"{listed(sorted(names))}."
            )

    def cost(self, signals: Signals) -> Array:
        """Negative reward [B]."""
        return -np.asarray(self.reward(signals), dtype=np.float64)
