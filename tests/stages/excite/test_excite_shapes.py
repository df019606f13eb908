"""Shapes of motions: at rest at both ends, smooth, and as rich as they claim."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sameworld.stages.excite.shapes import basis

SHAPES = ("fourier", "spline")


@pytest.mark.parametrize("shape", SHAPES)
@settings(deadline=None, max_examples=15)
@given(terms=st.integers(2, 9), duration=st.floats(0.5, 20.0))
def test_paths_begin_and_end_at_rest(shape, terms, duration):
    ends = basis(shape, terms, duration, np.array([0.0, duration]))
    scale = 2 * np.pi * terms / duration
    np.testing.assert_allclose(ends.values, 0, atol=1e-9)
    np.testing.assert_allclose(ends.rates / scale, 0, atol=1e-9)
    np.testing.assert_allclose(ends.curvatures / scale**2, 0, atol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
def test_rates_and_curvatures_are_derivatives(shape):
    time, h = np.linspace(0.2, 3.7, 50), 1e-5
    below, here, above = (basis(shape, 4, 4.0, time + d) for d in (-h, 0.0, h))
    np.testing.assert_allclose((above.values - below.values) / (2 * h), here.rates, atol=1e-6)
    np.testing.assert_allclose((above.rates - below.rates) / (2 * h), here.curvatures, atol=1e-5)


@pytest.mark.parametrize(("shape", "size"), [("fourier", 6), ("spline", 4)])
def test_functions_are_independent_and_peak_at_one(shape, size):
    values = basis(shape, 4, 3.0, np.linspace(0, 3, 2000)).values
    assert values.shape[1] == size
    assert np.linalg.cond(values) < 50
    np.testing.assert_allclose(np.abs(values).max(axis=0), 1, rtol=5e-3)


def test_every_series_at_rest_at_its_ends_is_reached():
    terms, duration = 4, 2.0
    time = np.linspace(0, duration, 300)
    angle = 2 * np.pi * time[:, None] * np.arange(1, terms + 1) / duration
    k = np.arange(1, terms + 1)
    series = np.hstack([np.ones((300, 1)), np.sin(angle), np.cos(angle)])
    at_zero = np.vstack(
        [
            np.r_[1, np.zeros(terms), np.ones(terms)],
            np.r_[0, k, np.zeros(terms)],
            np.r_[0, np.zeros(terms), -(k**2)],
        ]
    )
    raw = np.random.default_rng(0).standard_normal(1 + 2 * terms)
    resting = raw - np.linalg.pinv(at_zero) @ (at_zero @ raw)
    values = basis("fourier", terms, duration, time).values
    _, rest, *_ = np.linalg.lstsq(values, series @ resting, rcond=None)
    assert rest.max(initial=0.0) < 1e-18
