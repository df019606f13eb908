"""Held-out scores, the gate, and the discrepancy that prediction intervals come from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.discrepancy import ChannelDiscrepancy, Discrepancy
from sameworld.core.episode import Episode
from sameworld.core.noise import noise_levels
from sameworld.core.prediction import Prediction
from sameworld.core.residuals import warmed_up
from sameworld.core.spec import Spec
from sameworld.stages.identify.result import HoldoutScore

__all__ = ["HIGHEST_LEVEL", "errors_by_channel", "learn_discrepancy", "score_holdout", "split"]

_LEVELS = np.array([0.1, 0.25, 0.5, 0.68, 0.8, 0.9, 0.95])
#: Highest probability for which prediction intervals are learned.
HIGHEST_LEVEL = float(_LEVELS[-1])
_KNOTS = 16
_DRAWS = 2000


def split(count: int, share: float, seed: int) -> tuple[list[int], list[int]]:
    """Indices to fit and to hold out; nothing is held out below five episodes."""
    held = round(share * count) if count >= 5 else 0
    order = np.random.default_rng(seed).permutation(count)
    return sorted(order[held:].tolist()), sorted(order[:held].tolist())


def errors_by_channel(predictions: Sequence[Prediction]) -> dict[str, tuple[float, ...]]:
    """Time mean of the error norm per channel and prediction.

    NaN where the channel has no scored rows, infinite where the simulation failed.
    """
    names = dict.fromkeys(name for p in predictions for name in p.channels)
    return {name: tuple(_mean_error(p, name) for p in predictions) for name in names}


def _mean_error(prediction: Prediction, name: str) -> float:
    if name not in prediction.channels or not len(prediction.channels[name].time):
        return float("nan")
    mean = float(np.mean(_norms(prediction.channels[name].error)))
    return mean if np.isfinite(mean) else float("inf")


def score_holdout(
    before: Sequence[Prediction], after: Sequence[Prediction], *, seed: int, better: bool = False
) -> HoldoutScore:
    """Compare predictions of the same held-out episodes, paired.

    Each channel's error is divided by its median error before, channels are averaged, and the gain
    is the median over episodes of the relative reduction; where only one of the two simulations
    failed it is 1 or -1.

    Args:
        before: Predictions by the world as given.
        after: Predictions of the same episodes by the fitted world.
        seed: Seed of the bootstrap.
        better: Whether the gate asks that the whole 90 % bootstrap interval lie above zero; else
            it refuses only if the whole interval lies below.
    """
    old, new = errors_by_channel(before), errors_by_channel(after)
    gains = _gains(np.array(list(old.values())), np.array([new[name] for name in old]))
    rng = np.random.default_rng(seed)
    draws = np.median(gains[rng.integers(len(gains), size=(_DRAWS, len(gains)))], axis=1)
    low, high = (float(v) for v in np.quantile(draws, [0.05, 0.95]))
    return HoldoutScore(
        episodes=tuple(p.episode for p in before),
        warmup=before[0].warmup,
        before=old,
        after=new,
        gain=float(np.median(gains)),
        gain_low=low,
        gain_high=high,
        passed=low > 0 if better else high >= 0,
    )


def _gains(old: Array, new: Array) -> Array:
    """Relative reduction per episode [E] of errors [C, E] averaged over the measured channels."""
    finite = [row[np.isfinite(row)] for row in old]
    unit = np.array([np.median(row) if row.size else 1.0 for row in finite])
    measured = ~np.isnan(old)
    count = np.maximum(measured.sum(axis=0), 1)
    before, after = (
        np.sum(np.where(measured, errors, 0.0) / np.maximum(unit, 1e-300)[:, None], axis=0) / count
        for errors in (old, new)
    )
    both = np.isfinite(before) & np.isfinite(after) & measured.any(axis=0)
    ratio = np.where(both, after, 0.0) / np.maximum(np.where(both, before, 1.0), 1e-300)
    failed = np.isinf(before).astype(float) - np.isinf(after).astype(float)
    return np.where(both, 1 - ratio, failed)


def learn_discrepancy(
    spec: Spec, episodes: Sequence[Episode], predictions: Sequence[Prediction]
) -> Discrepancy:
    """Error quantiles by horizon from predictions of episodes that were not fitted.

    Around each knot the rows of all episodes are pooled; levels are corrected for the number of
    episodes (not rows, which are dependent), as in conformal prediction, so that intervals from
    few episodes are wider.
    """
    warmup = predictions[0].warmup
    channels: dict[str, ChannelDiscrepancy] = {}
    for channel in spec.observations:
        chosen = [
            (e, p.channels[channel.name])
            for e, p in zip(episodes, predictions, strict=True)
            if channel.name in p.channels and len(p.channels[channel.name].time)
        ]
        if not chosen:
            continue
        horizons = [c.time - warmed_up(spec, e, warmup) for e, c in chosen]
        errors = [np.nan_to_num(c.error, nan=1e6, posinf=1e6, neginf=-1e6) for _, c in chosen]
        channels[channel.name] = _quantiles(horizons, errors)
    noise = noise_levels(spec, episodes)
    return Discrepancy(channels=channels, episodes=len(episodes), warmup=warmup, noise=noise)


def _quantiles(horizons: Sequence[Array], errors: Sequence[Array]) -> ChannelDiscrepancy:
    owner = np.concatenate([np.full(len(h), i) for i, h in enumerate(horizons)])
    horizon, error = np.concatenate(horizons), np.concatenate(errors)
    magnitude = _norms(error)
    knots = np.unique(np.quantile(horizon, np.linspace(0, 1, _KNOTS)))
    by_component: list[Array] = []
    by_norm: list[Array] = []
    for knot, width in zip(knots, _widths(knots), strict=True):
        away = np.abs(horizon - knot)
        near = away <= max(float(width), float(away.min()))
        levels = _corrected(len(np.unique(owner[near])))
        by_component.append(np.quantile(np.abs(error[near]), levels, axis=0))
        by_norm.append(np.quantile(magnitude[near], levels))
    return ChannelDiscrepancy(
        horizon=knots,
        levels=_LEVELS,
        quantiles=np.array(by_component),
        magnitude=np.array(by_norm),
    )


def _widths(knots: Array) -> Array:
    if len(knots) == 1:
        return np.array([np.inf])
    gaps = np.diff(knots)
    return 0.5 * np.maximum(np.r_[gaps[:1], gaps], np.r_[gaps, gaps[-1:]]) + 1e-12


def _corrected(episodes: int) -> Array:
    """Levels lifted by (n + 1) / n for n exchangeable episodes, at most 1."""
    return np.minimum(_LEVELS * (episodes + 1) / max(episodes, 1), 1.0)


def _norms(error: Array) -> Array:
    return np.sqrt(np.sum(error**2, axis=1))
