"""``Hold``: the same action for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from sameworld.core.arrays import Array, Signals, frozen
from sameworld.policies.batch import batch_of

__all__ = ["Hold"]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Hold:
    """A constant action.

    Attributes:
        action: The action [A].
        latency: Declared latency [ticks].
    """

    action: Array
    latency: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "action", frozen(np.atleast_1d(self.action)))

    def init(self, batch: int) -> None:
        """Nothing is remembered."""

    def act(self, carry: None, observation: Signals) -> tuple[None, Array]:
        """The action, once per element [B, A]."""
        return None, np.repeat(self.action[None], batch_of(observation), axis=0)
