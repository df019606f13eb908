"""Numbers in the wrong unit are suspected, numbers in the right one are not."""

import math

import numpy as np
import pytest

from sameworld.core.units import PLAUSIBLE, suspicion


@pytest.mark.parametrize(
    ("values", "unit", "word"),
    [
        ([90.0, -180.0], "rad", "degrees"),
        ([400.0, 350.0], "m", "millimetres"),
        ([900.0], "kg", "grams"),
        ([3000.0], "rad/s", "degrees per second"),
        ([700.0], "m/s", "millimetres per second"),
    ],
)
def test_the_usual_mistakes_are_named(values, unit, word):
    assert word in suspicion(np.array(values), unit)


@pytest.mark.parametrize(
    ("values", "unit"),
    [([3.0, -3.1], "rad"), ([0.5], "m"), ([80.0], "kg"), ([1e9], "N"), ([], "m"), ([400.0], "")],
)
def test_plausible_or_unknown_units_are_left_alone(values, unit):
    assert suspicion(np.array(values), unit) is None


def test_bounds_sharpen_the_suspicion():
    values = np.array([20.0])
    assert suspicion(values, "rad") is None
    assert "degrees" in suspicion(values, "rad", -1.5, 1.5)
    assert suspicion(np.array([2.5]), "rad", -1.5, 1.5) is None
    assert suspicion(values, "rad", -math.inf, 1.5) is None


def test_values_that_no_conversion_mends_are_not_called_a_mistake_of_unit():
    assert suspicion(np.array([1e12]), "rad") is None


def test_every_plausible_limit_is_finite_and_positive():
    assert all(0 < limit < math.inf for limit in PLAUSIBLE.values())
