"""Time stamps and samples as they were recorded: rates, jitter, gaps, repeats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array, BoolArray

__all__ = ["GAP", "Steps", "constant_columns", "repeated_rows", "summarise_steps"]

#: A step longer than this many median steps is a gap.
GAP = 3.0


@dataclass(frozen=True, kw_only=True)
class Steps:
    """What the steps between stamps say about a clock.

    Attributes:
        samples: Number of stamps.
        span: Latest minus earliest stamp [s].
        step: Median of the positive steps [s]; NaN if there is none.
        rate: One over ``step`` [Hz].
        jitter_sd: Standard deviation of the positive steps up to a gap [s].
        jitter_p99: 99th percentile of their distance from the median [s].
        gaps: Steps longer than ``GAP`` medians.
        longest: Longest step [s].
        duplicates: Stamps equal to the one before.
        backward: Stamps earlier than the one before.
    """

    samples: int
    span: float
    step: float
    rate: float
    jitter_sd: float
    jitter_p99: float
    gaps: int
    longest: float
    duplicates: int
    backward: int


@np.errstate(over="ignore", invalid="ignore")
def summarise_steps(time: Array) -> Steps:
    """Summarise a clock without repairing it.

    Args:
        time: Stamps in the order they were recorded [T] s, finite.
    """
    steps = np.diff(time)
    forward = steps[steps > 0]
    step = float(np.median(forward)) if forward.size else float("nan")
    usual = forward[forward <= GAP * step]
    return Steps(
        samples=len(time),
        span=float(np.ptp(time)) if len(time) else 0.0,
        step=step,
        rate=1.0 / step if forward.size else float("nan"),
        jitter_sd=float(usual.std()) if usual.size else float("nan"),
        jitter_p99=float(np.quantile(np.abs(usual - step), 0.99)) if usual.size else float("nan"),
        gaps=int((forward > GAP * step).sum()),
        longest=float(forward.max()) if forward.size else float("nan"),
        duplicates=int((steps == 0).sum()),
        backward=int((steps < 0).sum()),
    )


def constant_columns(values: Array) -> BoolArray:
    """Which columns of samples [T, D] hold one value only, NaN aside; [D]."""
    known = np.where(np.isnan(values), -np.inf, values)
    high = known.max(axis=0, initial=-np.inf)
    low = np.where(np.isnan(values), np.inf, values).min(axis=0, initial=np.inf)
    return low >= high


def repeated_rows(values: Array) -> float:
    """Share of rows of samples [T, D] that equal the row before in every column, NaN included."""
    if len(values) < 2:
        return 0.0
    before, after = values[:-1], values[1:]
    same = (before == after) | (np.isnan(before) & np.isnan(after))
    return float(same.all(axis=1).mean())
