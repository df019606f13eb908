import numpy as np
import pytest

from sameworld.core import Channel, Episode, SpecError, Values, jacobian, rollout
from sameworld.core.jacobian import default_step
from sameworld.core.starts import context_from
from sameworld.zoo import AnalyticCart, AnalyticPendulum, learned_cart

PENDULUM_NAMES = (
    "start:pivot.pos",
    "start:pivot.vel",
    "body:bob.mass",
    "joint:pivot.damping",
    "option:gravity.z",
)


def pendulum_problem(batch=3, ticks=60):
    rng = np.random.default_rng(4)
    start = Values(names=PENDULUM_NAMES[:2], array=rng.normal(size=(batch, 2)))
    return start, rng.uniform(-2, 2, (batch, ticks, 1))


@pytest.mark.parametrize("world", [AnalyticPendulum(), AnalyticPendulum(noise=0.3)])
def test_differences_agree_with_exact_derivatives(world):
    start, actions = pendulum_problem()
    exact = jacobian(world, start, actions, wrt=PENDULUM_NAMES, seed=2)
    numeric = jacobian(world, start, actions, wrt=PENDULUM_NAMES, seed=2, method="differences")
    assert (exact.method, numeric.method) == ("gradient", "differences")
    for name in ("pivot.pos", "pivot.vel"):
        assert exact.derivatives[name].shape == (3, 61, 1, 5)
        size = np.abs(exact.derivatives[name]).max(axis=(0, 1, 2))
        error = np.abs(exact.derivatives[name] - numeric.derivatives[name]).max(axis=(0, 1, 2))
        assert (error < 1e-6 * size).all()


def test_perturbed_copies_of_a_stochastic_world_share_their_random_numbers():
    world = AnalyticPendulum(noise=0.3)
    start, actions = pendulum_problem()
    tiny = dict.fromkeys(PENDULUM_NAMES, 1e-7)
    derivative = jacobian(
        world, start, actions, wrt=PENDULUM_NAMES, seed=2, method="differences", steps=tiny
    ).derivatives["pivot.vel"]
    assert np.abs(derivative).max() < 1e4  # other draws would give about noise / 1e-7


def test_elements_draw_their_own_random_numbers():
    result = jacobian(
        AnalyticCart(noise=0.3), Values.none(2), np.zeros((2, 5, 1)), wrt=(), seed=0
    ).rollout
    assert not np.array_equal(*result.signals["rail.vel"])


def test_the_point_itself_is_rolled_out_with_the_same_seed():
    world = AnalyticPendulum(noise=0.3)
    start, actions = pendulum_problem()
    direct = rollout(world, start, actions, seed=7)
    for method in ("gradient", "differences"):
        got = jacobian(world, start, actions, wrt=PENDULUM_NAMES, seed=7, method=method)
        assert np.array_equal(got.rollout.signals["pivot.pos"], direct.signals["pivot.pos"])


def test_rollouts_grow_with_names_not_with_episodes():
    world = AnalyticPendulum()
    for batch in (1, 4):
        start, actions = pendulum_problem(batch)
        got = jacobian(world, start, actions, wrt=PENDULUM_NAMES, method="differences")
        assert got.rollouts == batch * (1 + 2 * len(PENDULUM_NAMES))


def test_a_derivative_at_a_bound_is_taken_from_inside():
    world = AnalyticCart()
    name = "joint:rail.stiffness"
    assert world.parameters[name].value == world.parameters[name].low
    start = Values.of({"start:rail.pos": 0.5})
    actions = np.zeros((1, 30, 1))
    exact = jacobian(world, start, actions, wrt=(name,)).derivatives["rail.pos"]
    numeric = jacobian(world, start, actions, wrt=(name,), method="differences")
    assert np.allclose(exact, numeric.derivatives["rail.pos"], atol=1e-5)


def test_given_parameters_move_the_point():
    world = AnalyticCart()
    values = Values.of({"body:cart.mass": [1.0, 3.0]})
    result = jacobian(
        world, Values.none(), np.ones((1, 40, 1)), wrt=("body:cart.mass",), parameters=values
    )
    derivative = result.derivatives["rail.vel"][:, -1, 0, 0]
    assert result.rollout.batch == 2
    assert derivative[0] < derivative[1] < 0


def test_parameters_that_are_not_varied_keep_their_given_values():
    world = AnalyticCart()
    values = Values.of({"joint:rail.damping": 5.0})
    for method in ("gradient", "differences"):
        got = jacobian(
            world,
            Values.of({"start:rail.vel": 1.0}),
            np.zeros((1, 50, 1)),
            wrt=("start:rail.vel",),
            parameters=values,
            method=method,
        )
        last = got.derivatives["rail.vel"][0, -1, 0, 0]
        assert last == pytest.approx(np.exp(-5.0 / 1.5), rel=1e-6)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(SpecError, match=r"Did you mean 'body:cart\.mass'"):
        jacobian(AnalyticCart(), Values.none(), np.zeros((1, 3, 1)), wrt=("body:cart.mas",))


def test_a_gradient_is_not_invented():
    with pytest.raises(SpecError, match="no 'gradient'"):
        jacobian(learned_cart(), Values.none(), np.zeros((1, 3, 1)), wrt=(), method="gradient")


def test_steps_scale_with_the_parameter():
    belief = AnalyticPendulum().parameters
    assert default_step(belief["body:bob.mass"]) == pytest.approx(1e-4 * 0.5)
    assert default_step(belief["option:gravity.z"]) == pytest.approx(1e-5 * 9.81)


def test_a_learned_world_is_differentiated_with_respect_to_its_actions():
    truth = AnalyticCart()
    rng = np.random.default_rng(3)
    actions = rng.normal(size=(6, 60, 1))
    start = Values(names=truth.spec.start.names, array=rng.normal(size=(6, 2)))
    runs = rollout(truth, start, actions)
    episodes = [
        Episode(
            id=f"run{k}",
            channels=(
                *(
                    Channel(name=c.name, time=runs.time, values=runs.signals[c.name][k])
                    for c in truth.spec.observations
                ),
                Channel(
                    name="rail_motor", time=runs.time[:-1], values=actions[k, :, 0], role="action"
                ),
            ),
        )
        for k in range(6)
    ]
    learned = learned_cart().fit(episodes, seed=0)
    context, _ = context_from(learned.spec, episodes[:1], 8)
    found = jacobian(learned, context, actions[:1, :20], wrt=("action:rail_motor",))
    exact = jacobian(truth, start.rows([0]), actions[:1, :20], wrt=("action:rail_motor",))
    np.testing.assert_allclose(
        found.derivatives["rail.pos"][0, -1],
        exact.derivatives["rail.pos"][0, -1],
        rtol=0.05,
    )
