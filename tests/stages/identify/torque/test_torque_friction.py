"""Shapes of dry friction."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from sameworld.stages.identify.torque.friction import friction_signals, friction_widths


def swinging(time):
    return np.stack([np.sin(3 * time), 0.3 * np.cos(7 * time)], axis=1)


@pytest.mark.parametrize("width", [0.02, 0.2])
def test_dahl_friction_solves_its_differential_equation(width):
    time = 0.1 + 1e-3 * np.arange(3000)
    fast = friction_signals("dahl", swinging(time), 1e-3, np.array([width]))[:, 0]

    def rate(t, z):
        v = swinging(np.array([t]))[0]
        return (v - np.abs(v) * z) / width

    slow = solve_ivp(
        rate, (0.1, time[-1]), np.sign(swinging(time[:1])[0]), t_eval=time, rtol=1e-8, max_step=0.01
    )
    assert np.ptp(slow.y) > 1.5
    assert np.abs(fast - slow.y.T).max() < 0.03


@pytest.mark.parametrize("shape", ["coulomb", "sigmoid", "dahl"])
def test_friction_is_odd_and_at_most_one(shape):
    v = swinging(1e-3 * np.arange(2000))
    widths = friction_widths(shape)
    there, back = (friction_signals(shape, sign * v, 1e-3, widths) for sign in (1, -1))
    assert there.shape == (2000, len(widths), 2)
    assert np.abs(there).max() <= 1
    assert np.allclose(there, -back)


@pytest.mark.parametrize("shape", ["sigmoid", "dahl"])
def test_narrow_friction_is_coulomb_friction_away_from_reversals(shape):
    v = swinging(1e-3 * np.arange(2000))
    narrow = friction_signals(shape, v, 1e-3, np.array([1e-5]))[:, 0]
    moving = np.abs(v) > 0.05
    assert np.allclose(narrow[moving], np.sign(v)[moving], atol=1e-3)


def test_each_joint_may_have_its_own_width():
    v = swinging(1e-3 * np.arange(500))
    own = friction_signals("sigmoid", v, 1e-3, np.array([[0.1, 0.5]]))[:, 0]
    assert np.allclose(own, np.tanh(v / [0.1, 0.5]))
