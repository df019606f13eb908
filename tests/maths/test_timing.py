import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sameworld.maths.timing import constant_columns, repeated_rows, summarise_steps


def test_a_regular_clock_has_its_rate_and_no_faults():
    steps = summarise_steps(0.01 * np.arange(101.0))
    assert steps.rate == pytest.approx(100)
    assert steps.span == pytest.approx(1.0)
    assert steps.jitter_sd < 1e-12
    assert (steps.gaps, steps.duplicates, steps.backward) == (0, 0, 0)


def test_gaps_duplicates_and_jumps_back_are_counted_and_do_not_move_the_rate():
    time = np.array([0, 1, 2, 2, 3, 10, 11, 9, 10, 11.0])
    steps = summarise_steps(time)
    assert (steps.gaps, steps.duplicates, steps.backward) == (1, 1, 1)
    assert steps.longest == 7.0
    assert steps.rate == 1.0
    assert steps.jitter_sd == 0.0, "a gap is no jitter"


def test_jitter_is_the_spread_of_steps():
    rng = np.random.default_rng(3)
    time = np.cumsum(0.01 + 0.001 * rng.normal(size=20_000))
    steps = summarise_steps(time)
    assert steps.jitter_sd == pytest.approx(0.001, rel=0.03)
    assert steps.jitter_p99 == pytest.approx(0.001 * 2.576, rel=0.05)


@pytest.mark.parametrize("time", [[], [1.0], [1.0, 1.0]])
def test_clocks_without_a_step_have_no_rate(time):
    steps = summarise_steps(np.array(time))
    assert np.isnan(steps.rate)
    assert steps.samples == len(time)


@given(hnp.arrays(np.float64, st.integers(0, 30), elements=st.integers(-5, 5).map(float)))
def test_every_step_is_counted_once(time):
    steps = summarise_steps(time)
    forward = sum(b > a for a, b in itertools.pairwise(time))
    assert forward + steps.duplicates + steps.backward == max(len(time) - 1, 0)


def test_constant_columns_ignore_nan():
    values = np.array([[1.0, 1.0, np.nan], [1.0, 2.0, np.nan], [np.nan, 3.0, np.nan]])
    assert constant_columns(values).tolist() == [True, False, True]
    assert constant_columns(np.zeros((0, 2))).tolist() == [True, True]


def test_repeated_rows_compare_every_column_and_equal_nans():
    values = np.array([[1, 2], [1, 2], [1, 3], [np.nan, 3], [np.nan, 3.0]])
    assert repeated_rows(values) == 0.5
    assert repeated_rows(values[:1]) == 0.0
