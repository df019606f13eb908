"""Clocks against each other: time shifts of columns, in whole samples where they mean something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array
from sameworld.stages.capture.columns import Table

__all__ = ["Lag", "delays", "series_lag"]


#: Rows that tell about the same.
_ALIKE_ROWS = 20


@dataclass(frozen=True, kw_only=True)
class Lag:
    """Measured time shift of a column.

    Attributes:
        column: Number of the column.
        family: Columns of one family usually share a clock.
        lag: Time by which it is late against the positions [s].
        spread: Standard deviation of that [s].
        step: Time between its samples [s].
    """

    column: int
    family: str
    lag: float
    spread: float
    step: float


def series_lag(table: Table, early: Array, late: Array) -> tuple[float, float]:
    """Lag of a series behind a combination of others, and its standard deviation [s].

    Args:
        table: Table whose rows the series share.
        early: Series that explain the other one [N, F]; the first is the most important.
        late: The other one [N].
    """
    reach = max(3, round(0.1 / table.step))
    shifts = list(range(-reach, reach + 1))
    losses = [_loss(table.shifted(early, k), late) for k in shifts]
    best = int(np.argmin(losses))
    if best in (0, len(shifts) - 1):
        return shifts[best] * table.step, table.step * reach
    before, here, after = losses[best - 1 : best + 2]
    bend = max(before - 2 * here + after, 1e-300)
    part = 0.5 * (before - after) / bend
    independent = max(len(late) / _ALIKE_ROWS, 1.0)
    spread = float(np.sqrt(here / independent / (0.5 * bend)))
    return (shifts[best] + part) * table.step, spread * table.step


def _loss(early: Array, late: Array) -> float:
    """Mean square that is left of ``late``."""
    keep = np.isfinite(early).all(axis=1)
    design = np.column_stack([early[keep], np.ones(int(keep.sum()))])
    basis, _ = np.linalg.qr(design)
    wanted = late[keep]
    left = wanted - basis @ (basis.T @ wanted)
    return float(np.mean(left**2))


def delays(lags: Sequence[Lag]) -> dict[int, float]:
    """Delay of every column [s]: whole samples, 0 where the shift is not clear.

    Columns of one family share their median unless one is clearly off. A shift that all columns
    share cannot be seen, so the most common time is taken as right.
    """
    if not lags:
        return {}
    clear = {lag.column: _whole(lag, [x for x in lags if x.family == lag.family]) for lag in lags}
    steps = {lag.column: lag.step for lag in lags}
    values = list(dict.fromkeys(clear.values()))
    common = max(values, key=lambda v: (_shared(clear, steps, v), v == 0, -abs(v)))
    return {
        column: 0.0 if abs(value - common) < 0.5 * steps[column] else value - common
        for column, value in clear.items()
    }


def _shared(clear: dict[int, float], steps: dict[int, float], value: float) -> int:
    return sum(abs(v - value) < 0.5 * steps[c] for c, v in clear.items())


def _whole(lag: Lag, family: Sequence[Lag]) -> float:
    """The family's lag, or the column's own if clearly another, in whole samples."""
    middle = float(np.median([x.lag for x in family]))
    scatter = 1.4826 * float(np.median([abs(x.lag - middle) for x in family]))
    spread = max(scatter, float(np.median([x.spread for x in family]))) / np.sqrt(len(family))
    own = abs(lag.lag - middle) > 0.5 * lag.step + 4 * max(lag.spread, scatter)
    value, spread = (lag.lag, lag.spread) if own else (middle, spread)
    samples = round(value / lag.step)
    return samples * lag.step if abs(value) > 3 * spread else 0.0
