"""Filtering without delay."""

import numpy as np

from sameworld.maths.filtering import correlation_time, low_passed, rate_of_change

TIME = 1e-3 * np.arange(4000)


def tone(frequency, phase=0.0):
    return np.sin(2 * np.pi * frequency * TIME + phase)


def test_low_frequencies_pass_without_delay_and_high_ones_do_not():
    slow = low_passed(tone(1.0, 0.3), 1e-3, 10.0)
    assert np.abs(slow - tone(1.0, 0.3))[500:-500].max() < 1e-3
    assert np.abs(low_passed(tone(50.0), 1e-3, 10.0))[500:-500].max() < 1e-4


def test_both_passes_lose_half_at_the_cut_off():
    assert np.isclose(np.abs(low_passed(tone(10.0), 1e-3, 10.0))[1000:-1000].max(), 0.5, atol=0.01)


def test_columns_are_filtered_alone():
    both = low_passed(np.stack([tone(2.0), tone(7.0)], axis=1), 1e-3, 10.0)
    assert np.allclose(both[:, 1], low_passed(tone(7.0), 1e-3, 10.0))


def test_rate_of_change_is_the_derivative():
    rate = rate_of_change(tone(1.0), 1e-3)
    assert np.allclose(rate[1:-1], 2 * np.pi * tone(1.0, np.pi / 2)[1:-1], atol=1e-3)


def test_correlation_time_of_an_autoregression():
    rng = np.random.default_rng(0)
    rho, series = 0.9, np.zeros(200_000)
    for k, push in enumerate(rng.normal(size=len(series) - 1), start=1):
        series[k] = rho * series[k - 1] + push
    assert np.isclose(correlation_time(series), (1 + rho) / (1 - rho), rtol=0.1)
    assert 1 <= correlation_time(rng.normal(size=10_000)) < 1.2
    assert correlation_time(np.zeros(10)) == 1.0
