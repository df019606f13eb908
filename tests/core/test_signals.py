"""The simulation comes to the measurement: interpolation, errors, held actions, checks."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameworld.core import Channel, ChannelSpec, Episode, EpisodeError, Spec, SpecError
from sameworld.core.manifolds import compose, quat_exp, quat_log
from sameworld.core.signals import (
    check_episode,
    difference,
    difference_jacobian,
    held_actions,
    interpolate,
    lerp,
    ticks_for,
)

POSITION = ChannelSpec(name="pos", shape=(2,), unit="m")
ANGLE = ChannelSpec(name="angle", unit="rad", low=-1.5, high=1.5)
TURN = ChannelSpec(name="turn", shape=(4,), manifold="quaternion")
TORQUE = ChannelSpec(name="torque", shape=(2,), unit="N m")
SPEC = Spec(period=0.1, observations=(POSITION, ANGLE, TURN), actions=(TORQUE,))


def _turns(rng, rows):
    """A path of unit quaternions with small steps."""
    path = [quat_exp(rng.normal(size=3))]
    for _ in range(rows - 1):
        path.append(compose(path[-1], quat_exp(rng.normal(0, 0.3, size=3))))
    return np.array(path)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_linear_motion_is_interpolated_exactly(times):
    ticks = 0.1 * np.arange(11)
    values = np.stack([1 + 2 * ticks, -3 * ticks], axis=1)
    at = np.array(times)
    expected = np.stack([1 + 2 * at, -3 * at], axis=1)
    np.testing.assert_allclose(interpolate(POSITION, 0.1, values, at), expected, atol=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_steady_rotation_is_interpolated_exactly(times):
    first, rate = quat_exp(np.array([0.3, -0.2, 0.5])), np.array([1.0, -2.0, 0.5])
    ticks = 0.1 * np.arange(11)
    values = compose(np.tile(first, (11, 1)), quat_exp(ticks[:, None] * rate))
    values[::3] *= -1  # the sign of a quaternion means nothing
    at = np.array(times)
    expected = compose(np.tile(first, (len(at), 1)), quat_exp(at[:, None] * rate))
    found = interpolate(TURN, 0.1, values, at)
    np.testing.assert_allclose(difference(TURN, found, expected), 0, atol=1e-7)


def test_on_a_tick_the_sample_itself_is_returned_and_beyond_the_end_it_is_held():
    values = np.random.default_rng(0).normal(size=(8, 2))
    np.testing.assert_allclose(lerp(0.1, values, 0.1 * np.arange(8)), values, atol=1e-9)
    np.testing.assert_allclose(lerp(0.1, values, np.array([5.0])), values[-1:])
    np.testing.assert_allclose(lerp(0.1, values, np.array([-1.0])), values[:1])


@given(st.integers(0, 1000), st.integers(1, 10**6))
def test_time_stamps_on_ticks_hit_their_tick_at_any_period(tick, microseconds):
    period = microseconds * 1e-6
    values = np.arange(tick + 2.0)
    assert lerp(period, values, np.array([tick * period]))[0] == pytest.approx(tick, abs=1e-6)


def test_errors_are_measured_minus_predicted_in_the_tangent_space():
    rng = np.random.default_rng(1)
    predicted, measured = rng.normal(size=(2, 5, 2))
    np.testing.assert_array_equal(difference(POSITION, predicted, measured), measured - predicted)
    scalar = difference(ANGLE, predicted[:, 0], measured[:, 0])
    np.testing.assert_array_equal(scalar, (measured - predicted)[:, :1])
    q, v = _turns(rng, 5), rng.normal(0, 0.5, size=(5, 3))
    np.testing.assert_allclose(difference(TURN, q, compose(q, quat_exp(v))), v, atol=1e-12)
    np.testing.assert_allclose(difference(TURN, q, -compose(q, quat_exp(v))), v, atol=1e-12)


def test_the_error_jacobian_agrees_with_differences():
    rng = np.random.default_rng(2)
    predicted, tangent = _turns(rng, 6), rng.normal(size=(6, 3, 4))
    measured = compose(predicted, quat_exp(rng.normal(0, 0.7, size=(6, 3))))
    error, step = difference(TURN, predicted, measured), 1e-6
    analytic = difference_jacobian(TURN, error, tangent)
    for n in range(4):
        moved = [
            difference(TURN, compose(predicted, quat_exp(s * step * tangent[..., n])), measured)
            for s in (-1, 1)
        ]
        np.testing.assert_allclose(analytic[..., n], (moved[1] - moved[0]) / (2 * step), atol=1e-6)
    linear = rng.normal(size=(6, 2, 4))
    np.testing.assert_array_equal(difference_jacobian(POSITION, error[:, :2], linear), -linear)


def test_ticks_cover_the_duration_without_rounding_up_a_whole_number():
    assert [ticks_for(SPEC, d) for d in (0.0, 0.05, 0.1, 0.3, 0.30001, 1.0)] == [1, 1, 1, 3, 4, 10]


def _episode(**channels):
    base = {
        "pos": Channel(name="pos", time=[0.0, 0.1], values=[[0, 0], [1, 1]], unit="m"),
        "torque": Channel(name="torque", time=[0.0, 0.2], values=[[1, 2], [3, 4]], role="action"),
    } | channels
    return Episode(id="e", channels=tuple(c for c in base.values() if c is not None))


def test_actions_come_as_the_mean_of_what_is_held_over_each_tick():
    held = held_actions(SPEC, _episode(), 0.05, 4)
    np.testing.assert_allclose(held, [[1, 2], [2, 3], [3, 4], [3, 4]])  # the change comes at 0.2
    bare = Spec(period=0.1, observations=(POSITION,))
    assert held_actions(bare, _episode(), 0.0, 3).shape == (3, 0)


def test_a_missing_or_misshaped_action_is_named():
    with pytest.raises(EpisodeError, match="lacks the action channel 'torque'"):
        held_actions(SPEC, _episode(torque=None), 0.0, 3)
    scalar = Channel(name="torque", time=[0.0], values=[1.0], role="action")
    with pytest.raises(EpisodeError, match=r"shape \(\), the world needs \(2,\)"):
        held_actions(SPEC, _episode(torque=scalar), 0.0, 3)


def test_a_fitting_episode_passes_with_channels_the_world_does_not_know():
    extra = Channel(name="lidar", time=[0.0, 0.1], values=np.zeros((2, 360)))
    check_episode(SPEC, _episode(lidar=extra), names=["pos"])


def _obs(name, values, unit=""):
    return Channel(name=name, time=np.arange(len(values)) * 0.1, values=values, unit=unit)


@pytest.mark.parametrize(
    ("channels", "words"),
    [
        ({"pos": _obs("position", [[0, 0], [1, 1]])}, "nothing in common"),
        ({"pos": _obs("pos", [[0, 0, 0], [1, 1, 1]])}, r"shape \(3,\), the world has \(2,\)"),
        ({"pos": _obs("pos", [[0, 0], [1, 1]], "mm")}, "is in 'mm', the world in 'm'"),
        ({"pos": _obs("pos", [[0, 0], [480, 310]])}, "millimetres"),
        ({"angle": _obs("angle", [10.0, 80.0])}, "degrees"),
        ({"turn": _obs("turn", [[1, 0, 0, 0], [2, 0, 0, 0]])}, "length 1 to 2"),
        ({"turn": _obs("turn", [[0, 0, 0, 0], [1, 0, 0, 0]])}, "length 0 to 1"),
        (
            {"torque": Channel(name="torque", time=[0.0], values=[1.0], role="action")},
            r"shape \(\), the world has \(2,\)",
        ),
    ],
)
def test_an_episode_that_does_not_fit_the_world_is_refused(channels, words):
    with pytest.raises(EpisodeError, match=words):
        check_episode(SPEC, _episode(**channels))


def test_names_asked_for_must_exist_on_both_sides():
    with pytest.raises(EpisodeError, match="no channel 'angle'"):
        check_episode(SPEC, _episode(), names=["angle"])
    extra = Channel(name="lidar", time=[0.0, 0.1], values=np.zeros(2))
    with pytest.raises(SpecError, match="no observation 'lidar'"):
        check_episode(SPEC, _episode(lidar=extra), names=["lidar"])


def test_slerp_takes_the_short_way():
    q = np.array([[1.0, 0, 0, 0], quat_exp(np.array([0, 0, 3.0])) * -1])
    middle = interpolate(TURN, 1.0, q, np.array([0.5]))
    np.testing.assert_allclose(quat_log(middle)[0], [0, 0, 1.5], atol=1e-12)
