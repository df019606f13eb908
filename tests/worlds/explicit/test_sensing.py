"""Delay, gain and bias of signals."""

import numpy as np
import pytest

from sameworld.core import Values, rollout
from sameworld.core.manifolds import compose, inverse, quat_log
from sameworld.core.rollout import loop
from sameworld.worlds import build

ACTIONS = np.random.default_rng(0).uniform(-1, 1, (4, 40, 1))


@pytest.fixture(scope="module")
def world(pendulum):
    return build(pendulum)


def test_gain_and_bias_act_on_the_report_alone(world):
    values = Values.of({"sensor:pivot.pos.gain": [1.0, 1.1], "sensor:pivot.pos.bias": [0.0, 0.2]})
    result = rollout(world, Values.none(), ACTIONS[:1], parameters=values)
    true, seen = result.signals["pivot.pos"]
    assert np.allclose(seen, 1.1 * true + 0.2, atol=1e-14)
    assert np.array_equal(*result.signals["pivot.vel"])


def test_a_delay_of_whole_ticks_shifts_rows_and_holds_the_start(world):
    values = Values.of({"sensor:pivot.pos.delay": [0.0, 0.006]})
    start = Values.of({"start:pivot.pos": 0.3})
    true, seen = rollout(world, start, ACTIONS[:1], parameters=values).signals["pivot.pos"]
    assert np.allclose(seen[3:], true[:-3], atol=1e-12)
    assert np.allclose(seen[:3], 0.3, atol=1e-12)


def test_a_delay_between_ticks_interpolates(world):
    values = Values.of({"sensor:pivot.pos.delay": [0.0, 0.005]})
    true, seen = rollout(world, Values.none(), ACTIONS[:1], parameters=values).signals["pivot.pos"]
    assert np.allclose(seen[3:], 0.5 * (true[1:-2] + true[:-3]), atol=1e-12)


def test_delayed_rollouts_equal_the_loop_and_resume(world):
    delays = Values.of({"sensor:pivot.pos.delay": [0.0, 0.003, 0.0071, 0.02]})
    state = world.reset(Values.of({"start:pivot.vel": [0.1, 0.2, 0.3, 0.4]}), delays)
    fast, slow = world.rollout(state, ACTIONS), loop(world, state, ACTIONS)
    assert np.array_equal(fast.signals["pivot.pos"], slow.signals["pivot.pos"])
    for tick in range(15):
        state = world.step(state, ACTIONS[:, tick])
    rest = world.rollout(state, ACTIONS[:, 15:])
    assert np.array_equal(rest.signals["pivot.pos"], fast.signals["pivot.pos"][:, 15:])


def test_a_delayed_orientation_stays_on_the_sphere_and_lags(cube):
    world = build(cube)
    spin = Values.of({"start:cube.omega.z": 2.0, "start:cube.pos.z": 3.0})
    values = Values.of({"sensor:cube.quat.delay": [0.0, 0.02]})
    true, seen = rollout(world, spin, np.zeros((2, 20, 0)), parameters=values).signals["cube.quat"]
    assert np.allclose(np.linalg.norm(seen, axis=-1), 1.0)
    lag = quat_log(compose(inverse(seen[4:]), true[4:]))
    assert np.allclose(lag, [0.0, 0.0, 0.04], atol=1e-9)


def test_a_vector_has_a_bias_per_axis(cube):
    world = build(cube)
    values = Values.of({"sensor:cube.pos.bias.y": [0.0, 0.5]})
    seen = world.observe(world.reset(Values.none(), values))["cube.pos"]
    assert np.allclose(seen[1] - seen[0], [0.0, 0.5, 0.0])
