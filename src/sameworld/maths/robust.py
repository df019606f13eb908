"""Robust losses as weights, and the statistics of residual series.

Source: P. J. Huber, "Robust Statistics" (1981), chapter 7; iteratively reweighted least squares
as in P. W. Holland, R. E. Welsch, Comm. Statist. A6 (1977).
"""

from __future__ import annotations

import numpy as np

from sameworld.core.arrays import Array

__all__ = ["autocorrelation", "huber_weights", "mad_scale"]

_MAD = 0.6744897501960817


def huber_weights(norms: Array, threshold: float) -> Array:
    """Square-root weights in (0, 1] of residual norms in standard deviations."""
    excess = np.maximum(np.asarray(norms, dtype=np.float64), 1e-300)
    return np.sqrt(np.minimum(1.0, threshold / excess))


def mad_scale(values: Array) -> float:
    """Standard deviation of Gaussian values by the median absolute deviation from zero."""
    return float(np.median(np.abs(values))) / _MAD if values.size else 0.0


def autocorrelation(series: Array, lag: int = 1) -> float:
    """Lag autocorrelation of a series [T] or of the columns of [T, D], pooled; 0 if too short."""
    series = np.asarray(series, dtype=np.float64)
    if len(series) <= lag + 1:
        return 0.0
    power = float(np.sum(series**2))
    return float(np.sum(series[lag:] * series[:-lag])) / power if power > 0 else 0.0
