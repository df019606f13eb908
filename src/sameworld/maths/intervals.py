"""Intervals that judge numbers, and numbers that judge intervals."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from sameworld.core.arrays import Array, finite_array
from sameworld.core.errors import SameworldError

__all__ = [
    "Interval",
    "Statistic",
    "bootstrap",
    "coverage",
    "median_change",
    "paired_bootstrap",
    "wilson",
    "z_rms",
]

Statistic = Literal["mean", "median"]
_CHUNK = 2_000_000


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate with its central interval.

    Attributes:
        estimate: Point estimate.
        low: Lower end.
        high: Upper end.
        level: Probability the interval aims at.
    """

    estimate: float
    low: float
    high: float
    level: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


def bootstrap(
    samples: ArrayLike,
    *,
    seed: int,
    statistic: Statistic = "mean",
    level: float = 0.9,
    resamples: int = 2000,
) -> Interval:
    """Percentile bootstrap of a mean or median.

    Args:
        samples: Independent numbers [N], e.g. one per episode.
        seed: Seed of the resampling.
        statistic: What is estimated.
        level: Probability of the central interval.
        resamples: Number of resampled data sets.

    Raises:
        SameworldError: No samples, NaN among them, or a level outside (0, 1).

    Source: B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13.
    """
    _check_level(level)
    values = finite_array(samples, "Bootstrap samples", error=SameworldError, ndim=1)
    if not values.size or resamples < 1:
        raise SameworldError(f"Bootstrap got {values.size} sample(s) and {resamples} resamples.")
    rng = np.random.default_rng(seed)
    reduce = np.mean if statistic == "mean" else np.median
    rows = max(_CHUNK // values.size, 1)
    draws = [
        reduce(values[rng.integers(len(values), size=(min(rows, resamples - k), len(values)))], 1)
        for k in range(0, resamples, rows)
    ]
    low, high = np.quantile(np.concatenate(draws), [(1 - level) / 2, (1 + level) / 2])
    return Interval(estimate=float(reduce(values)), low=float(low), high=float(high), level=level)


def paired_bootstrap(
    before: ArrayLike,
    after: ArrayLike,
    *,
    seed: int,
    statistic: Statistic = "mean",
    level: float = 0.9,
    resamples: int = 2000,
) -> Interval:
    """Interval of the mean or median of ``after - before`` over the same items.

    Args:
        before: Scores [N].
        after: Scores of the same items in the same order [N].
        seed: Seed of the resampling.
        statistic: What is estimated of the differences.
        level: Probability of the central interval.
        resamples: Number of resampled data sets.

    Raises:
        SameworldError: The two do not pair up.
    """
    first, second = np.asarray(before, np.float64), np.asarray(after, np.float64)
    if first.shape != second.shape:
        raise SameworldError(f"Paired scores have shapes {first.shape} and {second.shape}.")
    return bootstrap(
        second - first, seed=seed, statistic=statistic, level=level, resamples=resamples
    )


def median_change(
    before: ArrayLike, after: ArrayLike, *, seed: int, level: float = 0.9, resamples: int = 2000
) -> Interval:
    """Relative change of the median, ``median(after) / median(before) - 1``, items resampled.

    The typical item changes by this much; it differs from the median of the items' own changes.

    Args:
        before: Positive scores [N].
        after: Scores of the same items in the same order [N].
        seed: Seed of the resampling.
        level: Probability of the central interval.
        resamples: Number of resampled data sets.

    Raises:
        SameworldError: The two do not pair up, are empty, or ``before`` is not positive.

    Source: B. Efron, R. J. Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13.
    """
    _check_level(level)
    first, second = (
        finite_array(scores, "Paired scores", error=SameworldError, ndim=1)
        for scores in (before, after)
    )
    if first.shape != second.shape or not first.size or not (first > 0).all() or resamples < 1:
        raise SameworldError(
            f"A relative change needs two equally long lists of scores, the first positive: got "
            f"{first.size} and {second.size} scores and {resamples} resamples."
        )
    chosen = np.random.default_rng(seed).integers(len(first), size=(resamples, len(first)))
    draws = np.median(second[chosen], axis=1) / np.median(first[chosen], axis=1) - 1
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    estimate = float(np.median(second) / np.median(first) - 1)
    return Interval(estimate=estimate, low=float(low), high=float(high), level=level)


def wilson(successes: ArrayLike, trials: ArrayLike, *, level: float = 0.9) -> tuple[Array, Array]:
    """Score interval of a success probability; sensible at 0 and at all successes.

    Args:
        successes: Number of successes [...].
        trials: Number of trials [...]; 0 trials give [0, 1].
        level: Probability of the interval.

    Returns:
        Lower and upper ends [...].

    Raises:
        SameworldError: More successes than trials, or negative counts.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    JASA 22 (1927).
    """
    _check_level(level)
    won, tried = np.broadcast_arrays(np.asarray(successes, float), np.asarray(trials, float))
    if not ((won >= 0) & (won <= tried)).all():
        raise SameworldError("Wilson interval needs 0 <= successes <= trials.")
    z = NormalDist().inv_cdf(0.5 + level / 2)
    count = np.maximum(tried, 1.0)
    share = won / count
    centre = share + z**2 / (2 * count)
    reach = z * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    scale = 1 + z**2 / count
    low: Array = np.where(tried > 0, np.clip((centre - reach) / scale, 0.0, 1.0), 0.0)
    high: Array = np.where(tried > 0, np.clip((centre + reach) / scale, 0.0, 1.0), 1.0)
    return low, high


def coverage(low: ArrayLike, high: ArrayLike, truth: ArrayLike) -> float:
    """Share of the true values [...] that lie inside their intervals; NaN if there are none."""
    low, high, truth = (np.asarray(x, np.float64) for x in (low, high, truth))
    inside = (low <= truth) & (truth <= high)
    return float(np.mean(inside)) if inside.size else float("nan")


def z_rms(estimate: ArrayLike, std: ArrayLike, truth: ArrayLike) -> float:
    """Root mean square of ``(estimate - truth) / std``: 1 for honest, more for boastful spreads.

    Raises:
        SameworldError: A spread is not positive.
    """
    estimate, std, truth = (np.asarray(x, np.float64) for x in (estimate, std, truth))
    if not (std > 0).all():
        raise SameworldError("z-scores need positive standard deviations.")
    return float(np.sqrt(np.mean(((estimate - truth) / std) ** 2)))


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise SameworldError(f"Level is {level}; it must lie between 0 and 1, e.g. 0.9.")
