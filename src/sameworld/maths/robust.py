"""Robust losses as weights, and the statistics of residual series.

Source: P. J. Huber, "Robust Statistics" (1981), chapter 7; iteratively reweighted least squares
as in P. W. Holland, R. E. Welsch, Communications in Statistics A6 (1977).
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from sameworld.core.arrays import Array

__all__ = ["autocorrelation", "loss_curvature", "loss_values", "loss_weights", "mad_scale"]

_MAD = 0.6744897501960817

Loss = Literal["linear", "huber", "cauchy"]


def loss_weights(residual: Array, loss: Loss, threshold: float) -> Array:
    """Square roots of the weights psi(r) / r of residuals in standard deviations."""
    if loss == "linear":
        return np.ones_like(residual)
    scaled = np.abs(residual) / threshold
    if loss == "huber":
        return np.sqrt(1 / np.maximum(scaled, 1.0))
    return np.sqrt(1 / (1 + scaled**2))


def loss_values(residual: Array, loss: Loss, threshold: float) -> Array:
    """Loss of residuals in standard deviations; half their square below the threshold.

    Its derivative is ``loss_weights(...)**2 * residual``.
    """
    if loss == "linear":
        return 0.5 * residual**2
    scaled = np.abs(residual) / threshold
    if loss == "huber":
        return threshold**2 * np.where(scaled <= 1, 0.5 * scaled**2, scaled - 0.5)
    return 0.5 * threshold**2 * np.log1p(scaled**2)


def loss_curvature(residual: Array, loss: Loss, threshold: float) -> Array:
    """Second derivative of the loss over its weight, psi'(r) r / psi(r), negative ones cut to 0.

    Bread of the sandwich: with the weight alone in its place, covariances come out several times
    too narrow wherever many residuals lie in the tail.
    """
    if loss == "linear":
        return np.ones_like(residual)
    scaled = np.abs(residual) / threshold
    if loss == "huber":
        return np.where(scaled <= 1, 1.0, 0.0)
    return np.maximum((1 - scaled**2) / (1 + scaled**2), 0.0)


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
