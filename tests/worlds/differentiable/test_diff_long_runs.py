"""Long simulations beside MuJoCo's C engine, by the measures and bounds of ``diff_parity``."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import diff_parity


@pytest.fixture
def rng():
    return np.random.default_rng(3)


@pytest.mark.slow
def test_arms_and_pendulums_stay_with_the_engine_for_a_thousand_steps(rng):
    found = diff_parity.smooth(rng, None)
    assert {"smooth_err_pendulum", "smooth_err_panda", "tensegrity_err"} <= set(found)
    for name, error in found.items():
        bound = diff_parity.BOUNDS.get(name, diff_parity.BOUNDS["smooth_err_rad"])
        assert 0 < error <= bound, name


@pytest.mark.slow
def test_a_pushed_t_stays_with_the_engine_for_five_hundred_steps():
    assert 0 < diff_parity.push() <= diff_parity.BOUNDS["push_err_m"]


@pytest.mark.slow
def test_a_tossed_cube_stays_with_the_engine_up_to_its_second_impact(rng):
    assert 0 < diff_parity.toss(rng) <= diff_parity.BOUNDS["toss_err_m"]
