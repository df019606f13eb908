import numpy as np
import pytest

from sameworld.core import (
    Belief,
    ChannelDiscrepancy,
    Context,
    Discrepancy,
    RolloutError,
    SpecError,
    Task,
    Values,
    rollout,
    simulate,
)
from sameworld.policies import Hold, MultiSine, Replay
from sameworld.zoo import AnalyticCart, AnalyticPendulum, learned_cart

CART_START = Values.of({"start:rail.vel": [0.0, 1.0]})


def context(batch=2):
    rng = np.random.default_rng(0)
    return Context(
        observations={"rail.pos": rng.normal(size=(batch, 2)), "rail.vel": np.ones((batch, 2))},
        actions=np.zeros((batch, 1, 1)),
    )


def kinds():
    pendulum = Values.of({"start:pivot.pos": [0.3, 1.0]})
    return [
        pytest.param(AnalyticPendulum(), pendulum, id="deterministic"),
        pytest.param(AnalyticCart(noise=0.1), CART_START, id="stochastic"),
        pytest.param(learned_cart(), context(), id="learned"),
    ]


@pytest.mark.parametrize(("world", "start"), kinds())
def test_a_rollout_has_one_row_more_than_actions(world, start):
    result = rollout(world, start, np.zeros((2, 7, 1)))
    assert result.time == pytest.approx(0.02 * np.arange(8))
    assert all(values.shape == (2, 8) for values in result.signals.values())
    assert result.valid.all() and result.reason == ("", "")
    assert np.isnan(result.trust).all()


@pytest.mark.parametrize(("world", "start"), kinds())
def test_open_loop_equals_closed_loop_under_replayed_actions(world, start):
    actions = np.random.default_rng(1).uniform(-1, 1, (2, 20, 1))
    opened = rollout(world, start, actions, seed=3)
    closed = simulate(world, Replay(actions=actions), start, 20, seed=3)
    assert np.array_equal(closed.actions, actions)
    for name, values in opened.signals.items():
        assert np.array_equal(values, closed.signals[name])


def test_one_start_and_many_parameters_make_a_batch():
    world = AnalyticCart()
    masses = Values.of({"body:cart.mass": [1.0, 2.0, 4.0]})
    result = rollout(world, Values.none(), np.ones((1, 50, 1)), parameters=masses)
    assert result.batch == 3
    assert (np.diff(result.signals["rail.pos"][:, -1]) < 0).all()


@pytest.mark.parametrize(
    "actions", [np.zeros((2, 5)), np.zeros((2, 5, 2)), np.full((2, 5, 1), np.nan)]
)
def test_actions_that_do_not_fit_are_refused(actions):
    with pytest.raises(SpecError, match="Actions"):
        rollout(AnalyticCart(), CART_START, actions)


def test_batches_that_do_not_fit_are_refused():
    with pytest.raises(SpecError):
        rollout(AnalyticCart(), CART_START, np.zeros((3, 5, 1)))


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_an_element_that_explodes_is_marked_and_leaves_the_other_alone():
    world = AnalyticCart()
    values = Values.of({"body:cart.mass": [1.5, 1e-9], "joint:rail.damping": [0.5, 20.0]})
    actions = np.ones((2, 40, 1))
    result = rollout(world, CART_START, actions, parameters=values)
    assert result.valid[0].all() and not result.valid[1, -1]
    assert result.reason[0] == "" and "NaN" in result.reason[1]
    assert (result.trust[1][~result.valid[1]] == 0).all()
    alone = rollout(world, CART_START.rows([0]), actions[:1], parameters=values.rows([0]))
    assert np.array_equal(alone.signals["rail.pos"][0], result.signals["rail.pos"][0])
    with pytest.raises(RolloutError, match="Element 1"):
        rollout(world, CART_START, actions, parameters=values, raise_on_failure=True)


def test_trust_comes_from_measured_errors():
    horizon = np.array([0.0, 1.0])
    errors = ChannelDiscrepancy(
        horizon=horizon,
        levels=np.array([0.5, 0.9]),
        quantiles=np.array([[[0.001], [0.002]], [[0.01], [0.02]]]),
        magnitude=np.array([[0.001, 0.002], [0.01, 0.02]]),
    )
    world = AnalyticCart()
    measured = Belief(
        parameters=world.parameters.parameters,
        discrepancy=Discrepancy(channels={"rail.pos": errors}, episodes=9, warmup=2),
    )
    result = rollout(world.with_belief(measured), Values.none(), np.zeros((1, 50, 1)))
    assert result.trust[0, 0] > 0.95
    assert result.trust[0, -1] == pytest.approx(0.5, abs=0.01)
    assert (np.diff(result.trust[0]) <= 1e-12).all()


@pytest.mark.parametrize("latency", [0, 1, 5])
def test_a_policys_latency_delays_its_actions_by_whole_ticks(latency):
    policy = Hold(action=np.array([2.0]), latency=latency)
    result = simulate(AnalyticCart(), policy, Values.none(2), 10)
    assert (result.actions[:, :latency] == 0).all()
    assert (result.actions[:, latency:] == 2).all()
    speed = result.signals["rail.vel"]
    assert (speed[:, : latency + 1] == 0).all() and (speed[:, latency + 1] > 0).all()


def test_elements_of_a_policy_act_on_their_own():
    policy = MultiSine(amplitude=np.array([1.0]), period=0.02, seed=1)
    result = simulate(AnalyticCart(), policy, Values.none(3), 30)
    alone = simulate(AnalyticCart(), policy, Values.none(1), 30)
    assert np.array_equal(result.actions[0], alone.actions[0])
    assert np.abs(np.diff(result.actions[:, :, 0], axis=0)).max() > 0.1


def test_a_task_scores_every_row():
    task = Task(
        name="reach",
        success=lambda s: s["rail.pos"] > 0.1,
        reward=lambda s: -np.abs(s["rail.pos"] - 0.1),
        needs={"rail.pos": "measured"},
    )
    result = simulate(AnalyticCart(), Hold(action=np.ones(1)), CART_START, 25, task=task)
    assert result.cost == pytest.approx(np.abs(result.signals["rail.pos"] - 0.1))


def test_no_ticks_give_the_start_alone():
    result = simulate(AnalyticCart(), Hold(action=np.ones(1)), CART_START, 0)
    assert result.actions.shape == (2, 0, 1)
    assert result.signals["rail.vel"].tolist() == [[0.0], [1.0]]


def test_rows_of_a_rollout_keep_everything_together():
    result = rollout(AnalyticCart(), CART_START, np.zeros((2, 3, 1)))
    picked = result.rows([1])
    assert picked.batch == 1 and len(picked.reason) == 1
    assert np.array_equal(picked.signals["rail.vel"][0], result.signals["rail.vel"][1])
