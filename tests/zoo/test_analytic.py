from dataclasses import replace

import mujoco
import numpy as np
import pytest

from sameworld.core import Belief, SpecError, Values, jacobian, rollout
from sameworld.zoo import AnalyticCart, AnalyticPendulum, scene

MASS, DAMPING, STIFFNESS = 1.5, 0.5, 20.0


def all_names(world):
    return (*world.spec.start.names, *world.parameters.names)


def test_cart_follows_its_closed_form():
    world = AnalyticCart()
    start = Values.of({"start:rail.pos": 0.2, "start:rail.vel": 1.0})
    result = rollout(world, start, np.full((1, 100, 1), 3.0))
    decay = np.exp(-DAMPING / MASS * result.time)
    limit = 3.0 / DAMPING
    assert np.allclose(result.signals["rail.vel"][0], limit + (1 - limit) * decay, atol=1e-9)


def test_sprung_cart_oscillates_at_its_natural_frequency():
    world = AnalyticCart()
    values = Values.of({"joint:rail.stiffness": STIFFNESS})
    start = Values.of({"start:rail.pos": 0.1})
    result = rollout(world, start, np.zeros((1, 200, 1)), parameters=values)
    rate = DAMPING / (2 * MASS)
    omega = np.sqrt(STIFFNESS / MASS - rate**2)
    t = result.time
    exact = 0.1 * np.exp(-rate * t) * (np.cos(omega * t) + rate / omega * np.sin(omega * t))
    assert np.allclose(result.signals["rail.pos"][0], exact, atol=1e-8)


def test_cart_gradient_is_the_derivative_of_the_closed_form():
    world = AnalyticCart()
    start = Values.of({"start:rail.vel": 1.0})
    exact = jacobian(
        world, start, np.zeros((1, 50, 1)), wrt=("body:cart.mass", "start:rail.vel")
    ).derivatives["rail.vel"][0, :, 0]
    t = 0.02 * np.arange(51)
    decay = np.exp(-DAMPING / MASS * t)
    assert np.allclose(exact[:, 0], DAMPING / MASS**2 * t * decay, atol=1e-9)
    assert np.allclose(exact[:, 1], decay, atol=1e-9)


def test_halving_the_step_divides_the_error_by_sixteen():
    start = Values.of({"start:pivot.pos": 2.5})

    def path(substeps):
        world = AnalyticPendulum(substeps=substeps, period=0.08)
        return rollout(world, start, np.zeros((1, 25, 1))).signals["pivot.pos"]

    truth = path(64)
    errors = [np.abs(path(n) - truth).max() for n in (4, 8)]
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.25)


def test_undamped_pendulum_keeps_its_energy():
    world = AnalyticPendulum()
    start = Values.of({"start:pivot.pos": 2.0})
    values = Values.of({"joint:pivot.damping": 0.0})
    signals = rollout(world, start, np.zeros((1, 200, 1)), parameters=values).signals
    arm = 0.5**2 + 0.4 * 0.05**2
    energy = 0.5 * arm * signals["pivot.vel"] ** 2 - 9.81 * 0.5 * np.cos(signals["pivot.pos"])
    assert np.ptp(energy) < 1e-6


@pytest.mark.parametrize("world", [AnalyticPendulum(), AnalyticCart(), AnalyticPendulum(noise=0.2)])
def test_gradient_agrees_with_central_differences(world):
    rng = np.random.default_rng(0)
    start = Values(names=world.spec.start.names, array=rng.normal(size=(4, 2)))
    actions = rng.uniform(-3, 3, (4, 80, 1))
    runs = [
        jacobian(world, start, actions, wrt=all_names(world), method=method, seed=5).derivatives
        for method in ("gradient", "differences")
    ]
    for name, exact in runs[0].items():
        size = np.abs(exact).max(axis=(0, 1, 2))
        assert (np.abs(exact - runs[1][name]).max(axis=(0, 1, 2)) <= 1e-5 * size).all()


@pytest.mark.parametrize(("make", "joint"), [(AnalyticPendulum, "pivot"), (AnalyticCart, "rail")])
def test_the_engine_agrees_on_the_same_scene(make, joint):
    world = make()
    rng = np.random.default_rng(1)
    actions = rng.uniform(-2, 2, (1, 100, 1))
    start = Values.of({f"start:{joint}.pos": 0.7, f"start:{joint}.vel": -1.0})
    ours = rollout(world, start, actions).signals
    model = mujoco.MjModel.from_xml_string(world.scene.mjcf)
    data = mujoco.MjData(model)
    data.qpos[0], data.qvel[0] = 0.7, -1.0
    for tick in range(100):
        data.ctrl[0] = actions[0, tick, 0]
        mujoco.mj_step(model, data, nstep=4)
        assert data.qpos[0] == pytest.approx(ours[f"{joint}.pos"][0, tick + 1], abs=1e-10)
        assert data.qvel[0] == pytest.approx(ours[f"{joint}.vel"][0, tick + 1], abs=1e-10)


def test_noise_moves_the_velocity_by_its_standard_deviation():
    world = AnalyticCart(noise=0.3)
    state = world.step(world.reset(Values.none(20_000), seed=2), np.zeros((20_000, 1)))
    assert world.observe(state)["rail.vel"].std() == pytest.approx(0.3, rel=0.02)


def test_noise_of_successive_ticks_is_independent():
    world = AnalyticCart(noise=0.3)
    first = world.step(world.reset(Values.none(20_000), seed=2), np.zeros((20_000, 1)))
    second = world.step(first, np.zeros((20_000, 1)))
    a = world.observe(first)["rail.vel"]
    b = world.observe(second)["rail.vel"] - a * np.exp(-DAMPING / MASS * 0.02)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03


def test_noise_free_worlds_leave_the_key_alone():
    world = AnalyticCart()
    state = world.reset(Values.none(2), seed=9)
    assert np.array_equal(world.step(state, np.ones((2, 1))).key, state.key)


def test_the_belief_is_the_scenes():
    for world in (AnalyticPendulum(), AnalyticCart()):
        assert world.parameters.to_json() == world.scene.belief.to_json()
        assert world.scene.id == scene(world.scene.name).id


def test_a_belief_with_other_names_is_refused():
    with pytest.raises(SpecError, match=r"body:bob\.mass"):
        AnalyticPendulum(parameters=Belief())


@pytest.mark.parametrize("bad", [{"substeps": 0}, {"noise": -1.0}, {"noise": np.nan}])
def test_impossible_settings_are_refused(bad):
    with pytest.raises(SpecError):
        AnalyticCart(**bad)


def test_an_unknown_name_in_a_gradient_is_refused():
    world = AnalyticCart()
    with pytest.raises(SpecError, match=r"body:cat\.mass.*Did you mean 'body:cart\.mass'"):
        world.gradient(
            Values.none(), np.zeros((1, 2, 1)), Values.none(), ("body:cat.mass",), seed=0
        )


def test_worlds_with_other_settings_are_new_worlds():
    world = AnalyticCart()
    noisy = replace(world, noise=0.1)
    assert noisy.spec.stochastic and not world.spec.stochastic
