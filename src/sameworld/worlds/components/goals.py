"""What happens to a command on its way to a controller: transport delay, lag, limited speed."""

from __future__ import annotations

import math

import numpy as np

from sameworld.core.arrays import Array, BoolArray
from sameworld.worlds.components.law import Clock

__all__ = ["DelayLine", "lagged"]


class DelayLine:
    """Commands of the last control ticks, read back a fraction of a tick at a time.

    The delayed command is the mean over one engine step of the zero-order hold, moved by the
    delay: continuous and piecewise linear in the delay, so that it can be fitted.

    Args:
        longest: Longest delay [s].
        clock: How time passes.
    """

    def __init__(self, longest: float, clock: Clock) -> None:
        self._clock = clock
        self.size = math.ceil(longest / clock.period - 1e-9) + 2

    def begin(self, command: Array) -> Array:
        """Memory [..., K] filled with one command [...]."""
        return np.repeat(command[..., None], self.size, axis=-1)

    def pushed(self, memory: Array, command: Array) -> Array:
        """Memory [..., K] after a control tick with a new command [...]; the newest comes last."""
        return np.concatenate([memory[..., 1:], command[..., None]], axis=-1)

    def taken(self, memory: Array, command: Array, fresh: BoolArray) -> Array:
        """Memory [..., K] after a control tick; a first (``fresh``) command has lasted for ever."""
        return np.where(fresh[..., None], self.begin(command), self.pushed(memory, command))

    def read(self, memory: Array, delay: Array, substep: int) -> Array:
        """Delayed command [...], mean over the engine step that is ``substep`` into the tick."""
        clock = self._clock
        later = (substep + 1) / clock.substeps - delay / clock.period
        earlier = substep / clock.substeps - delay / clock.period
        tick = np.floor(later - 1e-9)
        share = np.clip((later - tick) * clock.substeps, 0.0, 1.0)  # of the step in the later tick
        share = np.where(np.floor(earlier + 1e-9) >= tick, 1.0, share)
        newer = np.clip(self.size - 1 + tick.astype(np.intp), 0, self.size - 1)
        older = np.maximum(newer - 1, 0)
        after = np.take_along_axis(memory, newer[..., None], axis=-1)[..., 0]
        before = np.take_along_axis(memory, older[..., None], axis=-1)[..., 0]
        return share * after + (1 - share) * before


def lagged(state: Array, command: Array, timeconst: Array, timestep: float) -> Array:
    """First-order lag after one step, exact for a command that is held; no lag at zero."""
    rate = np.divide(timestep, timeconst, out=np.full_like(timeconst, np.inf), where=timeconst > 0)
    return state + (1 - np.exp(-rate)) * (command - state)
