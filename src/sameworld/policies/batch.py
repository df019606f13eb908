"""How many elements a policy is asked about."""

from __future__ import annotations

from sameworld.core.arrays import Signals

__all__ = ["batch_of"]


def batch_of(observation: Signals) -> int:
    """Number of elements B in signals [B, ...]."""
    return len(next(iter(observation.values())))
