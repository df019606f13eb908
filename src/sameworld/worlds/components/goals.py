"""What happens to a command on its way to a controller: transport delay, lag, limited speed."""

from __future__ import annotations

import math

import numpy as np

from sameworld.core.arrays import Array, BoolArray
from sameworld.worlds.components.arrays import clipped, namespace, slope
from sameworld.worlds.components.law import Clock

__all__ = ["DelayLine", "lagged"]

#: Engine steps per time constant from which a step leaves nothing of the old state, exp(-800) = 0.
_AT_ONCE = 800.0


class DelayLine:
    """Commands of the last control ticks, read back a fraction of a tick at a time.

    The delayed command is the mean over one engine step of the zero-order hold, moved by the
    delay: continuous and piecewise linear in the delay, so that it can be fitted. At kinks, such
    as delay 0, the derivative is the one towards longer delays.

    Args:
        longest: Longest delay [s].
        clock: How time passes.
    """

    def __init__(self, longest: float, clock: Clock) -> None:
        self._clock = clock
        self.size = math.ceil(longest / clock.period - 1e-9) + 2

    def begin(self, command: Array) -> Array:
        """Memory [..., K] filled with one command [...]."""
        return namespace(command).repeat(command[..., None], self.size, axis=-1)

    def pushed(self, memory: Array, command: Array) -> Array:
        """Memory [..., K] after a control tick with a new command [...]; the newest comes last."""
        return namespace(memory, command).concatenate(
            [memory[..., 1:], command[..., None]], axis=-1
        )

    def taken(self, memory: Array, command: Array, fresh: BoolArray) -> Array:
        """Memory [..., K] after a control tick; a first (``fresh``) command has lasted for ever."""
        old = self.pushed(memory, command)
        return namespace(old).where(fresh[..., None], self.begin(command), old)

    def read(self, memory: Array, delay: Array, substep: int | Array) -> Array:
        """Delayed command [...], mean over the engine step that is ``substep`` into the tick."""
        clock, xp = self._clock, namespace(memory, delay)
        later = (substep + 1) / clock.substeps - delay / clock.period
        earlier = substep / clock.substeps - delay / clock.period
        tick = xp.floor(later - 1e-9)
        share = (later - tick) * clock.substeps  # of the step in the later tick
        whole = 1.0 + xp.where(earlier - 1e-9 < tick, slope(share), 0.0)
        inside = xp.floor(earlier + 1e-9) >= tick
        share = xp.where(inside, whole, clipped(share, 0.0, 1.0))
        newest = self.size - 1
        newer = clipped(newest + tick.astype(np.intp), 0, newest)
        places = xp.stack([newer, xp.maximum(newer - 1, 0)], axis=-1)
        found = xp.take_along_axis(memory, places, axis=-1)
        return share * found[..., 0] + (1 - share) * found[..., 1]


def lagged(state: Array, command: Array, timeconst: Array, timestep: float) -> Array:
    """First-order lag after one step, exact for a command that is held; no lag at zero."""
    xp = namespace(state, command, timeconst)
    lags = timeconst > timestep / _AT_ONCE
    rate = timestep / xp.where(lags, timeconst, 1.0)
    return state + xp.where(lags, 1 - xp.exp(-rate), 1.0) * (command - state)
