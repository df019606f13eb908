"""Robust weights against the losses they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameworld.maths.robust import autocorrelation, loss_curvature, loss_weights, mad_scale

#: The losses themselves, of residuals in standard deviations.
LOSSES = {
    "linear": lambda r, c: 0.5 * r**2,
    "huber": lambda r, c: np.where(np.abs(r) <= c, 0.5 * r**2, c * (np.abs(r) - 0.5 * c)),
    "cauchy": lambda r, c: 0.5 * c**2 * np.log1p((r / c) ** 2),
}
RESIDUALS = st.floats(-50, 50).filter(lambda r: abs(r) > 1e-2)
THRESHOLDS = st.floats(0.5, 4)


def slope(loss, r, c, step=1e-5):
    return (LOSSES[loss](r + step, c) - LOSSES[loss](r - step, c)) / (2 * step)


@pytest.mark.parametrize("loss", LOSSES)
@given(r=RESIDUALS, c=THRESHOLDS)
def test_the_squared_weight_is_the_slope_of_the_loss_over_the_residual(loss, r, c):
    weight = loss_weights(np.array([r]), loss, c)[0]
    assert weight**2 == pytest.approx(slope(loss, r, c) / r, rel=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@given(r=RESIDUALS, c=THRESHOLDS)
def test_the_curvature_is_that_of_the_loss_over_the_weight(loss, r, c):
    if abs(abs(r) - c) < 1e-2:
        return  # Huber's second derivative jumps there
    step = 1e-3
    second = (slope(loss, r + step, c) - slope(loss, r - step, c)) / (2 * step)
    expected = max(second * r / slope(loss, r, c), 0.0)
    assert loss_curvature(np.array([r]), loss, c)[0] == pytest.approx(expected, rel=1e-2, abs=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_small_residuals_count_fully_and_large_ones_never_more(loss):
    grid = np.linspace(0, 30, 301)
    weights = loss_weights(grid, loss, 2.0)
    assert weights[0] == 1 and loss_curvature(grid, loss, 2.0)[0] == 1
    assert (np.diff(weights) <= 1e-12).all()
    assert np.array_equal(weights, loss_weights(-grid, loss, 2.0))


def test_iterated_weights_find_the_minimum_of_the_loss():
    rng = np.random.default_rng(0)
    samples = np.concatenate([rng.normal(3, 1, 60), rng.normal(25, 1, 12)])
    centre = float(np.median(samples))
    for _ in range(60):
        squared = loss_weights(samples - centre, "cauchy", 2.385) ** 2
        centre = float(np.sum(squared * samples) / np.sum(squared))
    grid = np.linspace(1, 6, 5001)
    costs = [LOSSES["cauchy"](samples - g, 2.385).sum() for g in grid]
    assert centre == pytest.approx(grid[int(np.argmin(costs))], abs=2e-3)
    assert abs(centre - 3) < 0.5 < abs(samples.mean() - 3)


def test_the_scale_is_that_of_the_bulk():
    rng = np.random.default_rng(1)
    samples = rng.normal(0, 0.7, 4000)
    samples[:200] = 1e3
    assert mad_scale(samples) == pytest.approx(0.7, rel=0.1)
    assert mad_scale(np.zeros(0)) == 0.0


def test_autocorrelation_of_a_first_order_process_is_its_coefficient():
    rng = np.random.default_rng(2)
    series = np.zeros((4000, 2))
    for k in range(1, len(series)):
        series[k] = 0.8 * series[k - 1] + rng.normal(size=2)
    assert autocorrelation(series) == pytest.approx(0.8, abs=0.03)
    assert autocorrelation(series, lag=2) == pytest.approx(0.64, abs=0.04)
    assert abs(autocorrelation(rng.normal(size=4000))) < 0.05


@pytest.mark.parametrize("series", [np.zeros(10), np.ones(2), np.zeros(0)])
def test_autocorrelation_of_nothing_is_zero(series):
    assert autocorrelation(series) == 0.0
