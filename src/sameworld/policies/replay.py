"""``Replay``: recorded actions in order, the last one held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sameworld.core.arrays import Array, Signals, finite_array
from sameworld.core.errors import SpecError
from sameworld.policies.batch import batch_of

__all__ = ["Replay"]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """Play actions open loop.

    Attributes:
        actions: Actions [T, A] for every element, or [B, T, A] per element.
        latency: Declared latency [ticks].
    """

    actions: Array
    latency: int = 0

    def __post_init__(self) -> None:
        actions = finite_array(self.actions, "Replay actions", error=SpecError)
        if actions.ndim not in (2, 3) or actions.shape[-2] == 0:
            raise SpecError(f"Replay needs actions [T, A] or [B, T, A], got {actions.shape}.")
        object.__setattr__(self, "actions", actions)

    def init(self, batch: int) -> int:
        """Tick 0.

        Raises:
            SpecError: Actions are given per element, for another number of elements.
        """
        if self.actions.ndim == 3 and len(self.actions) != batch:
            raise SpecError(f"Replay holds actions of {len(self.actions)} elements, not {batch}.")
        return 0

    def act(self, carry: int, observation: Signals) -> tuple[int, Array]:
        """The actions of this tick [B, A]; after the end the last ones."""
        row = min(carry, self.actions.shape[-2] - 1)
        action = self.actions[..., row, :]
        batch = batch_of(observation)
        return carry + 1, np.array(np.broadcast_to(action, (batch, action.shape[-1])))
