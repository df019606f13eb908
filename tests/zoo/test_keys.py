import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameworld.zoo.keys import advance, element_keys, standard_normal


@given(seed=st.integers(0, 2**70), batch=st.integers(1, 20))
def test_an_element_has_the_same_key_whatever_the_batch(seed, batch):
    assert np.array_equal(element_keys(seed, batch), element_keys(seed, 20)[:batch])


def test_keys_of_neighbouring_seeds_and_elements_never_meet():
    keys = np.concatenate([element_keys(seed, 200) for seed in range(50)])
    assert len(np.unique(keys)) == keys.size


def test_draws_are_a_function_of_the_key_alone():
    keys = element_keys(3, 7)
    assert np.array_equal(standard_normal(keys), standard_normal(keys.copy()))
    assert np.array_equal(standard_normal(keys)[4:5], standard_normal(keys[4:5]))


@pytest.mark.parametrize("lane", [0, 1, 5])
def test_draws_are_standard_normal(lane):
    draws = standard_normal(element_keys(0, 100_000), lane)
    assert abs(draws.mean()) < 0.015
    assert abs(draws.std() - 1) < 0.01
    assert abs((np.abs(draws) < 1).mean() - 0.6827) < 0.006


def test_draws_of_ticks_lanes_and_elements_are_uncorrelated():
    keys = element_keys(1, 50_000)
    now, lane, later = (
        standard_normal(keys),
        standard_normal(keys, 1),
        standard_normal(advance(keys)),
    )
    for other in (lane, later, np.roll(now, 1)):
        assert abs(np.corrcoef(now, other)[0, 1]) < 0.02
