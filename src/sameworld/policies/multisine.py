"""``MultiSine``: a sum of random sines, to excite what shall be identified.

Source: J. Swevers, C. Ganseman, D. B. Tukel, J. De Schutter, H. Van Brussel, "Optimal robot
excitation and identification", IEEE Transactions on Robotics and Automation 13 (1997).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np

from sameworld.core.arrays import Array, Signals, frozen
from sameworld.core.errors import SpecError

__all__ = ["MultiSine"]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class MultiSine:
    """Seeded multi-sine excitation, different for every element and component.

    Attributes:
        amplitude: Largest magnitude of each component [A], in the action's unit.
        period: Control period [s].
        low: Lowest frequency [Hz].
        high: Highest frequency [Hz], at most half of the control rate.
        count: Number of sines.
        centre: Value around which the sines move [A]; zero if not given.
        seed: Seed of frequencies and phases.
        latency: Declared latency [ticks].
    """

    amplitude: Array
    period: float
    low: float = 0.1
    high: float = 2.0
    count: int = 5
    centre: Array | None = None
    seed: int = 0
    latency: int = 0

    def __post_init__(self) -> None:
        amplitude = frozen(np.atleast_1d(self.amplitude))
        centre = np.zeros_like(amplitude) if self.centre is None else np.atleast_1d(self.centre)
        object.__setattr__(self, "amplitude", amplitude)
        object.__setattr__(self, "centre", frozen(centre))
        if amplitude.shape != centre.shape or amplitude.ndim != 1:
            raise SpecError(
                f"Amplitude and centre need one number per action component, got shapes "
                f"{amplitude.shape} and {centre.shape}."
            )
        if not (self.period > 0 and self.count >= 1):
            raise SpecError("MultiSine needs a positive period and at least one sine.")
        if not 0 < self.low <= self.high <= 0.5 / self.period:
            raise SpecError(
                f"Frequencies {self.low} to {self.high} Hz do not fit a control period of "
                f"{self.period} s: they must be positive and at most {0.5 / self.period:.4g} Hz."
            )

    def init(self, batch: int) -> tuple[int, Array, Array]:
        """Tick 0, with frequencies and phases [B, A, count] drawn per element."""
        shape = (self.amplitude.size, self.count)
        rngs = [np.random.default_rng([self.seed, element]) for element in range(batch)]
        decades = [r.uniform(math.log(self.low), math.log(self.high), shape) for r in rngs]
        phases = [r.uniform(0, 2 * np.pi, shape) for r in rngs]
        return 0, np.exp(np.stack(decades)), np.stack(phases)

    def act(
        self, carry: tuple[int, Array, Array], observation: Signals
    ) -> tuple[tuple[int, Array, Array], Array]:
        """Actions of this tick [B, A], within ``centre`` plus or minus ``amplitude``."""
        tick, frequency, phase = carry
        waves = np.sin(2 * np.pi * frequency * tick * self.period + phase)
        action = self.centre + self.amplitude * waves.mean(axis=2)
        return (tick + 1, frequency, phase), action
