"""When the rows of a LeRobot episode were taken."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array

__all__ = ["row_clock"]


def row_clock(
    stamps: NDArray[Any] | None, frames: Array, fps: float
) -> tuple[Array, tuple[str, ...]]:
    """Times of rows, from the episode's first row on.

    LeRobot stores stamps in single precision; where they are frame numbers over ``fps`` up to that
    rounding, the exact quotients are taken. Stamps that cannot be times are replaced by them.

    Args:
        stamps: Column ``timestamp`` [T] s; ``None`` if it cannot be read.
        frames: Frame numbers within the episode [T], increasing.
        fps: Rows a second.

    Returns:
        Times [T] s, strictly increasing from 0, and what had to be mended or looks odd.
    """
    grid = frames / fps
    if stamps is None:
        return grid, ("there is no usable column 'timestamp'; times are frame numbers over fps",)
    time = stamps.astype(np.float64)
    bad = int(np.sum(~np.isfinite(time)))
    if bad:
        return grid, (f"{bad} stamps are null, NaN or infinite; times are frame numbers over fps",)
    notes: list[str] = []
    rounding = 2 * np.finfo(np.float32).eps * float(np.max(np.abs(time))) + 1e-9
    if abs(time[0]) > rounding:
        notes.append(f"stamps begin at {time[0]:.6g} s instead of 0; they were shifted")
        time = time - time[0]
    steps = np.diff(time)
    if (steps <= 0).any():
        at = int(np.argmax(steps <= 0))
        notes.append(
            f"stamps do not increase at row {at + 1} ({time[at]:.6g} s, then {time[at + 1]:.6g} "
            "s); times are frame numbers over fps"
        )
        return grid, tuple(notes)
    if np.abs(time - grid).max() <= rounding:
        return grid, tuple(notes)
    jumps = np.abs(steps - 1 / fps) > 0.5 / fps
    if jumps.any():
        at = int(np.argmax(jumps))
        notes.append(
            f"stamps jump {int(jumps.sum())} time(s), first from {time[at]:.6g} s to "
            f"{time[at + 1]:.6g} s at {fps:g} rows a second"
        )
    return time, tuple(notes)
