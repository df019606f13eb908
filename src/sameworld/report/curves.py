"""Curves a report draws: error and interval coverage against horizon, autocorrelation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array, BoolArray
from sameworld.core.discrepancy import ChannelDiscrepancy
from sameworld.core.prediction import ChannelPrediction
from sameworld.core.spec import ChannelSpec
from sameworld.report.data import HeldOut

__all__ = [
    "HorizonCurve",
    "autocorrelation",
    "coverage_by_horizon",
    "coverage_share",
    "error_by_horizon",
    "inside",
    "largest_likely",
    "pooled_autocorrelation",
]

_BINS = 24


@dataclass(frozen=True, kw_only=True, eq=False)
class HorizonCurve:
    """A quantity over the prediction horizon, in bins that half of the episodes reach.

    Attributes:
        horizon: Middle of each bin, seconds since the last warm-up row [K].
        low: Lower quartile [K].
        middle: Median (or share) [K].
        high: Upper quartile [K].
        count: Samples per bin [K].
    """

    horizon: Array
    low: Array
    middle: Array
    high: Array
    count: Array


def inside(spec: ChannelSpec, prediction: ChannelPrediction) -> BoolArray:
    """Whether each measured component lies in its interval, shape [N, D]."""
    rows = len(prediction.time)
    low, high = prediction.low.reshape(rows, -1), prediction.high.reshape(rows, -1)
    if spec.manifold != "quaternion":
        centre = prediction.values.reshape(rows, -1)
        low, high = low - centre, high - centre
    return (prediction.error >= low) & (prediction.error <= high)


def largest_likely(known: ChannelDiscrepancy, horizon: Array, level: float) -> Array:
    """Size that the error's norm stays below with probability ``level``, at ``horizon`` [T] s."""
    at_knots = [float(np.interp(level, known.levels, row)) for row in known.magnitude]
    return np.interp(horizon, known.horizon, np.array(at_knots))


def error_by_horizon(
    spec: ChannelSpec, held_out: Sequence[HeldOut]
) -> tuple[HorizonCurve, HorizonCurve]:
    """Median and quartiles of the error norm over the horizon, before and after."""
    before, after = (
        _binned(
            _gather(spec, held_out, which, lambda c: np.linalg.norm(c.error, axis=-1)), _quartiles
        )
        for which in (0, 1)
    )
    return before, after


def coverage_by_horizon(spec: ChannelSpec, held_out: Sequence[HeldOut]) -> HorizonCurve:
    """Share of measured components inside the fitted world's intervals over the horizon."""
    return _binned(
        _gather(spec, held_out, 1, lambda c: inside(spec, c).mean(axis=1)),
        lambda shares: np.full(3, shares.mean()),
    )


def coverage_share(specs: Sequence[ChannelSpec], held_out: Sequence[HeldOut]) -> float:
    """Share of all measured components inside their intervals; NaN if there are none."""
    hits = [
        inside(spec, pair[1]).ravel()
        for spec in specs
        for h in held_out
        if (pair := h.channels(spec.name)) is not None
    ]
    return float(np.concatenate(hits).mean()) if hits else float("nan")


def _gather(
    spec: ChannelSpec,
    held_out: Sequence[HeldOut],
    which: int,
    measure: Callable[[ChannelPrediction], Array],
) -> list[tuple[Array, Array]]:
    """Horizons and finite measures of the rows of each episode."""
    found: list[tuple[Array, Array]] = []
    for item in held_out:
        pair = item.channels(spec.name)
        if pair is not None:
            horizon, measures = item.horizon(spec.name, pair[which]), measure(pair[which])
            keep = np.isfinite(measures)
            found.append((horizon[keep], measures[keep]))
    return found


def _quartiles(samples: Array) -> Array:
    return np.quantile(samples, [0.25, 0.5, 0.75])


def _binned(found: list[tuple[Array, Array]], summary: Callable[[Array], Array]) -> HorizonCurve:
    """Summaries in equal bins of the horizon; survivors of a minority of episodes are left out."""
    horizon = np.concatenate([np.zeros(0), *(h for h, _ in found)])
    samples = np.concatenate([np.zeros(0), *(s for _, s in found)])
    owner = np.repeat(np.arange(len(found)), [len(h) for h, _ in found])
    edges = np.linspace(0.0, float(horizon.max(initial=1e-9)), _BINS + 1)
    place = np.clip(np.searchsorted(edges, horizon, side="left") - 1, 0, _BINS - 1)
    rows: list[tuple[float, ...]] = []
    for k in range(_BINS):
        members = place == k
        if members.any() and 2 * len(np.unique(owner[members])) >= len(found):
            numbers = (float(v) for v in summary(samples[members]))
            rows.append((float(horizon[members].mean()), *numbers, float(members.sum())))
    table = np.array(rows).reshape(-1, 5)
    return HorizonCurve(
        horizon=table[:, 0],
        low=table[:, 1],
        middle=table[:, 2],
        high=table[:, 3],
        count=table[:, 4],
    )


def autocorrelation(series: Array, lags: int) -> Array:
    """Autocorrelation of a series [N] at lags 0 to ``lags``, mean removed, shape [lags + 1].

    Lags beyond the series are NaN, and so is a constant series.
    """
    out = np.full(lags + 1, np.nan)
    centred = series - series.mean()
    power = float(centred @ centred)
    if power <= 1e-300:
        return out
    for lag in range(min(lags + 1, len(series))):
        out[lag] = float(centred[: len(centred) - lag] @ centred[lag:]) / power
    return out


def pooled_autocorrelation(
    spec: ChannelSpec, held_out: Sequence[HeldOut], lags: int
) -> tuple[Array, int]:
    """Autocorrelation of the fitted world's held-out errors, mean over episodes and components.

    Returns:
        Autocorrelation [lags + 1] (NaN where no series is long enough) and the rows pooled.
    """
    series = [
        pair[1].error[:, d]
        for h in held_out
        if (pair := h.channels(spec.name)) is not None and np.isfinite(pair[1].error).all()
        for d in range(pair[1].error.shape[1])
    ]
    found = np.array([autocorrelation(s, lags) for s in series]).reshape(-1, lags + 1)
    known = np.isfinite(found)
    total = np.where(known, found, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return mean, sum(len(s) for s in series)
