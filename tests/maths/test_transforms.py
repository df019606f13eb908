"""Coordinates of parameters: there and back, slopes, bounds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameworld.core import BeliefError, Parameter
from sameworld.maths.transforms import Transform

NAME = "body:cube.mass"


@st.composite
def parameters(draw):
    """A parameter of any transform, with or without finite bounds and spread."""
    kind = draw(st.sampled_from(["identity", "log", "logit"]))
    value = draw(st.floats(0.01, 100) if kind == "log" else st.floats(-50, 50))
    below, above = draw(st.floats(0.1, 5)), draw(st.floats(0.1, 5))
    low, high = value - below, value + above
    if kind == "log":
        low, high = draw(st.sampled_from([0.0, value / (1 + below)])), value * (1 + above)
    elif kind == "identity" and draw(st.booleans()):
        low, high = -math.inf, math.inf
    std = draw(st.sampled_from([math.inf, 0.3, 2.0]))
    return Parameter(name=NAME, value=value, low=low, high=high, std=std, transform=kind)


def several():
    """One parameter of each kind."""
    return (
        Parameter(name="body:a.mass", value=2.0, low=0.5, high=8.0, transform="log"),
        Parameter(name="body:b.mass", value=0.25, low=0.0, high=1.0, transform="logit"),
        Parameter(name="option:gravity.z", value=-9.8, low=-12.0, high=-8.0, std=0.1),
    )


@given(parameters(), st.floats(0.02, 0.98))
def test_values_survive_the_way_into_coordinates_and_back(parameter, share):
    transform = Transform.of([parameter])
    low = parameter.low if np.isfinite(parameter.low) else parameter.value - 10
    high = parameter.high if np.isfinite(parameter.high) else parameter.value + 10
    x = np.array([low + share * (high - low)])
    np.testing.assert_allclose(
        transform.backward(transform.forward(x)), x, rtol=1e-9, atol=1e-9 * max(abs(low), 1)
    )


@given(parameters(), st.floats(-1.5, 1.5))
def test_slopes_are_the_derivative_of_values_by_coordinates(parameter, offset):
    transform = Transform.of([parameter])
    low, high = transform.bounds
    centre = transform.forward(np.array([parameter.value]))
    u = centre + offset
    if not (low[0] + 1e-3 < u[0] < high[0] - 1e-3):
        return  # at a bound values are clipped
    step = 1e-5
    numeric = (transform.backward(u + step) - transform.backward(u - step)) / (2 * step)
    np.testing.assert_allclose(transform.derivative(u), numeric, rtol=1e-4, atol=1e-9)


@given(parameters(), st.floats(-1e3, 1e3))
def test_no_coordinate_leaves_the_bounds(parameter, u):
    value = Transform.of([parameter]).backward(np.array([u]))[0]
    assert parameter.low <= value <= parameter.high


@given(parameters())
def test_bounds_in_coordinates_are_the_bounds_of_the_values(parameter):
    transform = Transform.of([parameter])
    for bound, value in zip(transform.bounds, (parameter.low, parameter.high), strict=True):
        if np.isfinite(bound[0]):
            assert transform.backward(bound)[0] == pytest.approx(value, rel=1e-9, abs=1e-9)
        else:
            assert not np.isfinite(value) or value == 0 or parameter.transform == "logit"


def test_each_kind_has_its_formula():
    transform = Transform.of(several())
    x = np.array([4.0, 0.5, -9.7])
    u = transform.forward(x)
    assert u == pytest.approx([math.log(4), 0.0, 1.0])
    assert transform.derivative(u) == pytest.approx([4.0, 0.25, 0.1])


def test_many_points_are_transformed_at_once():
    transform = Transform.of(several())
    rng = np.random.default_rng(0)
    u = transform.forward(np.array([2.0, 0.25, -9.8])) + rng.normal(0, 0.3, (5, 3))
    rows = np.stack([transform.backward(row) for row in u])
    assert np.array_equal(transform.backward(u), rows)
    np.testing.assert_allclose(transform.forward(rows), u, atol=1e-9)


def test_the_scale_comes_from_the_spread_then_the_bounds_then_the_magnitude():
    parts = (
        Parameter(name="body:a.mass", value=3.0, low=1.0, high=9.0, std=0.5),
        Parameter(name="body:b.mass", value=3.0, low=1.0, high=9.0),
        Parameter(name="body:c.mass", value=3.0),
        Parameter(name="body:d.mass", value=0.0),
    )
    assert Transform.of(parts).scale.tolist() == [0.5, 2.0, 3.0, 1.0]


def test_a_log_parameter_that_starts_at_zero_is_refused_by_name():
    with pytest.raises(BeliefError, match=r"body:cube\.mass.*positive start value"):
        Transform.of([Parameter(name=NAME, value=0.0, low=0.0, transform="log")])


def test_no_parameters_are_no_coordinates():
    transform = Transform.of([])
    assert transform.forward(np.zeros(0)).shape == (0,)
    assert transform.backward(np.zeros((4, 0))).shape == (4, 0)
    assert transform.bounds[0].shape == (0,)
