"""Flat numbers of a calibration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Episode
from sameworld.core.prediction import Prediction
from sameworld.core.spec import ChannelSpec
from sameworld.maths.intervals import median_change
from sameworld.stages.identify import IdentifyResult

__all__ = ["TrustScore", "coverage", "held_out_metrics", "trust_score"]

_BINS = 10


@dataclass(frozen=True, kw_only=True)
class TrustScore:
    """How well the stated chance that errors stay within tolerance came true.

    Attributes:
        stated: Mean stated chance.
        share: Share of times at which every error was within its tolerance.
        brier: Mean squared difference between chance and outcome (0 is perfect).
        skill: ``1 - brier / brier of always stating share``; 0 knows no more than that.
        calibration: Mean distance between stated chance and share, over bins of equal count.
        rows: Number of scored times.

    Source: G. W. Brier, "Verification of forecasts expressed in terms of probability", Monthly
    Weather Review 78 (1950).
    """

    stated: float
    share: float
    brier: float
    skill: float
    calibration: float
    rows: int


def held_out_metrics(
    episodes: Sequence[Episode],
    before: Sequence[Prediction],
    after: Sequence[Prediction],
    result: IdentifyResult,
    channels: Sequence[ChannelSpec] = (),
) -> dict[str, float]:
    """Errors of predictions of episodes that were never fitted, before and after, and coverage.

    A channel is scored on the episodes that have it. Keys: ``test_episodes``; per channel
    ``CHANNEL.before``, ``CHANNEL.after`` (median over episodes of the time mean of the error norm,
    in the channel's unit), ``CHANNEL.change`` with its 90 % paired bootstrap interval
    ``change_low`` and ``change_high`` (of the median, relative), and
    ``CHANNEL.coverage``; ``trust.brier``, ``trust.skill``, ``trust.stated``, ``trust.share``,
    ``trust.calibration`` where ``channels`` declare tolerances; ``gain_median``;
    ``misfit_factor``; ``cpu_seconds``; ``rollouts``.
    """
    numbers: dict[str, float] = {"test_episodes": float(len(episodes))}
    if episodes:
        gains: list[Array] = []
        for name in dict.fromkeys(n for p in after for n in p.channels):
            old, new = _errors(before, name), _errors(after, name)
            seen = ~(np.isnan(old) | np.isnan(new))
            if not seen.any():
                continue
            numbers |= _channel(name, old[seen], new[seen], result.seed)
            numbers[f"{name}.coverage"] = coverage(after, name)
            gains.append(1 - new / np.maximum(old, 1e-300))
        numbers["gain_median"] = _median_gain(gains)
        numbers |= _trust(channels, after)
    numbers["misfit_factor"] = result.misfit_factor
    numbers["cpu_seconds"] = result.cpu_seconds
    numbers["rollouts"] = float(result.rollouts)
    return numbers


def _channel(name: str, old: Array, new: Array, seed: int) -> dict[str, float]:
    numbers = {f"{name}.before": float(np.median(old)), f"{name}.after": float(np.median(new))}
    if np.isfinite(old).all() and np.isfinite(new).all() and (old > 0).all():
        change = median_change(old, new, seed=seed)
        numbers |= {
            f"{name}.change": change.estimate,
            f"{name}.change_low": change.low,
            f"{name}.change_high": change.high,
        }
    return numbers


def _median_gain(gains: Sequence[Array]) -> float:
    """Median over episodes of the mean gain over the channels that the episode has."""
    table = np.array(gains).reshape(len(gains), -1)
    seen = [column[~np.isnan(column)] for column in table.T]
    each = [float(column.mean()) for column in seen if len(column)]
    return float(np.median(each)) if each else math.nan


def _errors(predictions: Sequence[Prediction], name: str) -> Array:
    """Time mean of the error norm per episode; NaN where the channel has no scored rows."""
    found = [p.channels[name].error if name in p.channels else None for p in predictions]
    return np.array(
        [np.mean(np.linalg.norm(e, axis=1)) if e is not None and len(e) else np.nan for e in found]
    )


def coverage(predictions: Sequence[Prediction], name: str) -> float:
    """Share of measured components inside the intervals, over all rows and episodes with them."""
    inside: list[np.ndarray] = []
    for prediction in predictions:
        if name not in prediction.channels:
            continue
        channel = prediction.channels[name]
        half = 0.5 * (channel.high - channel.low).reshape(len(channel.time), -1)
        inside.append((np.abs(channel.error) <= half).ravel())
    return float(np.mean(np.concatenate(inside))) if inside else float("nan")


def trust_score(
    channels: Sequence[ChannelSpec], predictions: Sequence[Prediction]
) -> TrustScore | None:
    """Score ``Prediction.trust`` against what happened.

    Args:
        channels: Observations of the world, with their tolerances.
        predictions: Predictions of episodes that were never fitted.

    Returns:
        The score over all measured times; ``None`` where no chance was stated.
    """
    scored = [p for p in predictions if np.isfinite(p.trust).all() and len(p.trust)]
    pairs = [_outcomes(channels, p) for p in scored]
    stated = np.concatenate([chance for chance, _ in pairs]) if pairs else np.zeros(0)
    if not len(stated):
        return None
    good = np.concatenate([outcome for _, outcome in pairs])
    share, brier = float(good.mean()), float(np.mean((stated - good) ** 2))
    order = np.argsort(stated, kind="stable")
    bins = [b for b in np.array_split(order, _BINS) if len(b)]
    off = sum(len(b) * abs(float(stated[b].mean() - good[b].mean())) for b in bins)
    return TrustScore(
        stated=float(stated.mean()),
        share=share,
        brier=brier,
        skill=1 - brier / (share * (1 - share)) if 0 < share < 1 else math.nan,
        calibration=off / len(stated),
        rows=len(stated),
    )


def _outcomes(channels: Sequence[ChannelSpec], prediction: Prediction) -> tuple[Array, Array]:
    """Stated chances and outcomes (0 or 1) at the measured times of the first channel."""
    limits = {
        c.name: c.tolerance
        for c in channels
        if c.name in prediction.channels and math.isfinite(c.tolerance)
    }
    if not limits:
        return np.zeros(0), np.zeros(0)
    time = prediction.channels[next(iter(limits))].time
    good = np.ones(len(time), dtype=bool)
    for name, limit in limits.items():
        channel = prediction.channels[name]
        size = np.nan_to_num(np.linalg.norm(channel.error, axis=1), nan=np.inf)
        good &= np.interp(time, channel.time, size) <= limit
    return np.interp(time, prediction.trust_time, prediction.trust), good.astype(np.float64)


def _trust(channels: Sequence[ChannelSpec], predictions: Sequence[Prediction]) -> dict[str, float]:
    score = trust_score(channels, predictions)
    if score is None:
        return {}
    names = ("brier", "skill", "stated", "share", "calibration")
    return {f"trust.{name}": getattr(score, name) for name in names}
