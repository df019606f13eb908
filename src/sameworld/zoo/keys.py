"""Counter-based random numbers: draws are a pure function of a key that lives in the State.

Source: the mixing function of G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom
number generators", OOPSLA 2014 (SplitMix64), and G. E. P. Box, M. E. Muller, "A note on the
generation of random normal deviates", Annals of Mathematical Statistics 29 (1958).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array

__all__ = ["advance", "element_keys", "standard_normal"]

Keys = NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LANE = np.uint64(0xD1B54A32D192ED03)


def _mix(z: Keys) -> Keys:
    """Scramble 64-bit words; a bijection."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def element_keys(seed: int, batch: int) -> Keys:
    """Keys [B] of a batch: element b of a seed has the same key whatever the batch size."""
    seeds = np.full(batch, seed % 2**64, dtype=np.uint64)
    return _mix(_mix(seeds + _GOLDEN) + _GOLDEN * np.arange(1, batch + 1, dtype=np.uint64))


def advance(keys: Keys) -> Keys:
    """Keys [B] of the next step."""
    return keys + _GOLDEN


def standard_normal(keys: Keys, lane: int = 0) -> Array:
    """One standard normal per key [B]; lanes of a key are independent."""
    salted = _mix(keys ^ (_LANE * np.full(len(keys), lane + 1, dtype=np.uint64)))
    first, second = _uniform(_mix(salted + _GOLDEN)), _uniform(_mix(salted + _LANE))
    return np.sqrt(-2 * np.log(first)) * np.cos(2 * np.pi * second)


def _uniform(words: Keys) -> Array:
    """Numbers in (0, 1] from the upper 53 bits."""
    return ((words >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
