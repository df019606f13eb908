"""What goes into a batch of simulations and what comes out of it, whatever simulates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array, BoolArray, Signals
from sameworld.core.errors import SpecError, listed
from sameworld.core.rollout import finite_so_far
from sameworld.core.spec import Spec
from sameworld.core.world import Rollout

__all__ = ["Failure", "checked_action", "checked_actions", "rollout_of"]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Where an element of a batch failed.

    Attributes:
        row: First row that is invalid.
        reason: What happened, in words.
    """

    row: int
    reason: str


def checked_action(spec: Spec, action: Array, batch: int) -> Array:
    """Actions of one tick as float64 [B, A].

    Raises:
        SpecError: Wrong shape or non-finite values.
    """
    action = np.asarray(action, dtype=np.float64)
    if action.shape != (batch, spec.action_size):
        raise SpecError(
            f"Action needs shape [{batch}, {spec.action_size}] for "
            f"{listed(c.name for c in spec.actions)}, got {action.shape}."
        )
    return spec.check_actions(action[:, None])[:, 0]


def checked_actions(spec: Spec, actions: Array, batch: int) -> Array:
    """Actions of many ticks as float64 [B, T, A].

    Raises:
        SpecError: Wrong shape or non-finite values.
    """
    actions = spec.check_actions(actions)
    if len(actions) != batch:
        raise SpecError(f"Actions hold {len(actions)} elements, the state {batch}.")
    return actions


def rollout_of(
    spec: Spec, signals: Signals, actions: Array, failures: Mapping[int, Failure]
) -> Rollout:
    """Rollout from signals [B, T+1, ...] under actions [B, T, A], invalid where they failed.

    Args:
        spec: Contract of the world.
        signals: What was observed; values that are not finite end an element, too.
        actions: The actions applied.
        failures: Element to where and why it failed.
    """
    batch, ticks = actions.shape[:2]
    valid = np.ones((batch, ticks + 1), dtype=np.bool_)
    for element, failure in failures.items():
        valid[element, failure.row :] = False
    if not all(np.isfinite(signal[:, -1]).all() for signal in signals.values()):
        valid &= finite_so_far(signals)
    return Rollout(
        time=spec.period * np.arange(ticks + 1, dtype=np.float64),
        signals=signals,
        valid=valid,
        trust=np.full(valid.shape, np.nan),
        reason=_reasons(valid, failures),
        actions=actions,
    )


def _reasons(valid: BoolArray, failures: Mapping[int, Failure]) -> tuple[str, ...]:
    reasons = ["" if fine else "signals became NaN or infinite" for fine in valid[:, -1]]
    for element, failure in failures.items():
        reasons[element] = failure.reason
    return tuple(reasons)
