"""Time series on a regular clock: low-pass without delay, differences.

Source: F. Gustafsson, "Determining the initial states in forward-backward filtering", IEEE
Transactions on Signal Processing 44 (1996), for filtering in both directions.
"""

from __future__ import annotations

import numpy as np
from scipy import signal

from sameworld.core.arrays import Array

__all__ = ["correlation_time", "low_passed", "rate_of_change"]


def low_passed(values: Array, period: float, cutoff: float, *, order: int = 4) -> Array:
    """Butterworth low-pass, run forwards and backwards: no delay, twice the order.

    Args:
        values: Samples [T, ...] on a regular clock.
        period: Time between samples [s].
        cutoff: Frequency [Hz] at which one pass has lost 3 dB, both passes 6 dB; below half the
            sampling rate.
        order: Order of one pass.
    """
    sections = signal.butter(order, 2 * cutoff * period, output="sos")
    return np.asarray(signal.sosfiltfilt(sections, values, axis=0), dtype=np.float64)


def rate_of_change(values: Array, period: float) -> Array:
    """Central differences [T, ...] per second; one-sided at the ends."""
    return np.asarray(np.gradient(values, period, axis=0), dtype=np.float64)


def correlation_time(series: Array) -> float:
    """Samples per independent sample of a series [T], at least 1.

    Twice the sum of autocorrelations up to the first that is not positive.

    Source: C. J. Geyer, "Practical Markov chain Monte Carlo", Statistical Science 7 (1992), whose
    initial positive sequence this simplifies.
    """
    series = np.asarray(series, dtype=np.float64)
    rows = len(series)
    spectrum = np.abs(np.fft.rfft(series, 2 * rows)) ** 2
    power = np.fft.irfft(spectrum)[:rows]
    if rows < 2 or power[0] <= 0:
        return 1.0
    rho = power / power[0]
    ended = np.flatnonzero(rho <= 0)
    last = int(ended[0]) if len(ended) else rows
    return float(max(1.0, 2 * rho[:last].sum() - 1))
