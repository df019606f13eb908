"""Error quantiles give intervals and probabilities that agree with each other."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameworld.core import BeliefError, ChannelDiscrepancy, Discrepancy

LEVELS = np.linspace(0.05, 0.95, 19)


def _normal(growth=0.0, count=20000):
    """Quantiles of |N(0, 1 + growth t)| in two components, at t = 0 and 1 s."""
    errors = np.abs(np.random.default_rng(0).normal(size=(count, 2)))
    base = np.quantile(errors, LEVELS, axis=0)
    norms = np.quantile(np.linalg.norm(errors, axis=1), LEVELS)
    return ChannelDiscrepancy(
        horizon=[0.0, 1.0],
        levels=LEVELS,
        quantiles=np.stack([base, base * (1 + growth)]),
        magnitude=np.stack([norms, norms * (1 + growth)]),
    )


def test_half_widths_are_those_of_the_errors_they_came_from():
    half = _normal().half_width(np.array([0.0, 0.5, 1.0]), 0.9)
    assert half.shape == (3, 2)
    np.testing.assert_allclose(half, 1.645, rtol=0.03)


def test_widths_grow_along_the_horizon_and_are_held_beyond_it():
    half = _normal(growth=2).half_width(np.array([0.0, 0.5, 1.0, 9.0]), 0.5)[:, 0]
    np.testing.assert_allclose(half / half[0], [1, 2, 3, 3])


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95))
def test_a_higher_level_is_never_narrower(a, b):
    channel, at = _normal(count=500), np.array([0.3])
    low, high = sorted((a, b))
    assert (channel.half_width(at, low) <= channel.half_width(at, high) + 1e-12).all()


def test_levels_below_the_first_and_at_the_last_are_given():
    channel = _normal()
    first = channel.half_width(np.zeros(1), 0.01)
    np.testing.assert_allclose(first, channel.half_width(np.zeros(1), 0.05))
    np.testing.assert_allclose(channel.half_width(np.zeros(1), 0.95)[0], channel.quantiles[0, -1])
    for level in (0.0, 0.96, -1.0):
        with pytest.raises(BeliefError, match="is not in"):
            channel.half_width(np.zeros(1), level)


def test_the_probability_of_staying_within_is_the_share_that_did():
    errors = np.linalg.norm(np.random.default_rng(0).normal(size=(20000, 2)), axis=1)
    for tolerance in (0.3, 1.0, 2.0):
        share = float(_normal().within(np.zeros(1), tolerance)[0])
        assert share == pytest.approx(np.mean(errors < tolerance), abs=0.02)


def test_the_probability_goes_from_nought_to_one():
    tolerances = np.geomspace(1e-6, 1e6, 60)
    shares = [float(_normal(growth=1).within(np.array([0.7]), t)[0]) for t in tolerances]
    assert (np.diff(shares) >= -1e-12).all()
    assert shares[0] < 1e-4
    assert shares[-1] > 1 - 1e-4


def test_json_gives_the_same_discrepancy_back():
    discrepancy = Discrepancy(channels={"a.b": _normal()}, episodes=4, warmup=5)
    back = Discrepancy.from_json(json.loads(json.dumps(discrepancy.to_json())))
    assert (back.episodes, back.warmup) == (4, 5)
    for name, array in vars(_normal()).items():
        np.testing.assert_array_equal(getattr(back.channels["a.b"], name), array)


@pytest.mark.parametrize(
    "record",
    [
        None,
        {},
        {"channels": {}, "episodes": "many", "warmup": 1},
        {"channels": [], "episodes": 1, "warmup": 1},
        {"channels": {"a": {"horizon": [1]}}, "episodes": 1, "warmup": 1},
        {"channels": {"a": {**vars(_normal()), "magnitude": [[1]]}}, "episodes": 1, "warmup": 1},
        {"channels": {"a": {**vars(_normal()), "levels": [0.5]}}, "episodes": 1, "warmup": 1},
        {
            "channels": {"a": {**vars(_normal()), "horizon": [0, np.nan]}},
            "episodes": 1,
            "warmup": 1,
        },
    ],
)
def test_a_malformed_record_is_refused(record):
    with pytest.raises(BeliefError, match="Discrepancy"):
        Discrepancy.from_json(record)
