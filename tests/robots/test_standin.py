import numpy as np
import pytest

from sameworld.core import (
    Belief,
    Parameter,
    Robot,
    SpecError,
    Values,
    check_episode,
    rollout,
)
from sameworld.policies import Hold, MultiSine
from sameworld.robots import RobotError, StandIn, record
from sameworld.zoo import AnalyticCart, learned_cart

HIDDEN = Values.of({"body:cart.mass": 2.3, "joint:rail.damping": 0.7})
SINES = MultiSine(amplitude=np.array([5.0]), period=0.02, seed=1)


def start_belief():
    return Belief(
        parameters=(
            Parameter(name="start:rail.pos", value=0.1, std=0.2, unit="m", scope="episode"),
        )
    )


def connected(**options):
    robot = StandIn(AnalyticCart(), **options)
    robot.connect()
    return robot


def test_a_stand_in_is_a_robot():
    assert isinstance(StandIn(AnalyticCart()), Robot)


def test_without_noise_it_moves_like_its_world_with_the_hidden_parameters():
    world = AnalyticCart()
    episode = record(connected(parameters=HIDDEN), SINES, 80)
    sent = episode["rail_motor"].values[None, :, None]
    truth = rollout(world, Values.none(), sent, parameters=HIDDEN).signals
    believed = rollout(world, Values.none(), sent).signals
    assert np.array_equal(episode["rail.pos"].values, truth["rail.pos"][0])
    assert np.abs(episode["rail.pos"].values - believed["rail.pos"][0]).max() > 0.01


def test_noise_has_the_stated_standard_deviation():
    robot = connected(noise={"rail.pos": 0.01})
    episode = record(robot, Hold(action=np.zeros(1)), 3000)
    assert episode["rail.pos"].values.std() == pytest.approx(0.01, rel=0.05)
    assert (episode["rail.vel"].values == 0).all()


def test_observing_twice_is_one_measurement():
    robot = connected(noise={"rail.pos": 0.01})
    first = robot.observe()["rail.pos"]
    assert robot.observe()["rail.pos"] == first
    robot.command(np.zeros(1))
    assert robot.observe()["rail.pos"] != first


def test_a_measurement_that_is_written_into_does_not_change_the_robot():
    robot = connected(noise={"rail.pos": 0.01})
    first = float(robot.observe()["rail.pos"])
    robot.observe()["rail.pos"][...] = 9.0
    assert float(robot.observe()["rail.pos"]) == first


@pytest.mark.parametrize("delay", [0, 1, 4])
def test_delay_postpones_the_effect_of_commands(delay):
    episode = record(connected(delay=delay), Hold(action=np.ones(1)), 10)
    speed = episode["rail.vel"].values
    assert (speed[: delay + 1] == 0).all() and speed[delay + 1] > 0


def test_actions_are_limited_and_the_limited_ones_are_recorded():
    robot = connected()
    assert robot.command(np.array([99.0])).tolist() == [20.0]
    episode = record(robot, np.array([[-50.0], [3.0]]))
    assert episode["rail_motor"].values.tolist() == [-20.0, 3.0]


def test_every_connection_of_a_seed_is_the_same_reality():
    robot = connected(noise={"rail.pos": 0.01}, seed=3)
    first = record(robot, SINES, 20)["rail.pos"].values
    robot.close()
    robot.close()
    robot.connect()
    again = record(robot, SINES, 20)["rail.pos"].values
    other = record(connected(noise={"rail.pos": 0.01}, seed=4), SINES, 20)["rail.pos"].values
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_placing_it_draws_a_start_and_says_which():
    robot = connected(start=start_belief())
    assert float(robot.observe()["rail.pos"]) == 0.1
    known = robot.place(5)
    assert set(known) == {"start:rail.pos"}
    assert float(robot.observe()["rail.pos"]) == known["start:rail.pos"] != 0.1
    assert robot.place(6) != known == robot.place(5)


def test_placing_it_forgets_commands_under_way():
    robot = connected(delay=2, start=start_belief())
    robot.command(np.array([10.0]))
    robot.place(0)
    for _ in range(4):
        robot.command(np.zeros(1))
    assert float(robot.observe()["rail.vel"]) == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda robot: robot.observe(),
        lambda robot: robot.command(np.zeros(1)),
        lambda robot: robot.place(0),
    ],
)
def test_a_robot_must_be_connected_to_be_used(use):
    robot = StandIn(AnalyticCart())
    with pytest.raises(RobotError, match=r"connect\(\)"):
        use(robot)


def test_connecting_twice_is_an_error():
    with pytest.raises(RobotError, match=r"close\(\)"):
        connected().connect()


@pytest.mark.parametrize("action", [np.zeros(2), np.zeros(0), np.array([np.nan]), np.zeros((1, 1))])
def test_commands_that_do_not_fit_are_refused_and_do_not_move_it(action):
    robot = connected()
    with pytest.raises(SpecError):
        robot.command(action)
    assert float(robot.observe()["rail.pos"]) == 0


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"noise": {"rail.poss": 0.1}}, r"Did you mean 'rail\.pos'"),
        ({"noise": {"rail.pos": -0.1}}, "finite"),
        ({"delay": -1}, "Delay"),
        ({"parameters": Values.of({"body:cart.mass": [1.0, 2.0]})}, "one set"),
        ({"parameters": Values.of({"body:car.mass": 1.0})}, r"body:car\.mass"),
        (
            {
                "start": Belief(
                    parameters=(Parameter(name="start:x.pos", value=0, scope="episode"),)
                )
            },
            r"start:x\.pos",
        ),
    ],
)
def test_realities_that_do_not_fit_the_world_are_refused(options, word):
    with pytest.raises(SpecError, match=word):
        StandIn(AnalyticCart(), **options)


def test_worlds_that_start_from_a_context_cannot_play_reality():
    with pytest.raises(SpecError, match="context"):
        StandIn(learned_cart())


def test_recorded_episodes_fit_the_world_and_carry_their_labels():
    known = start_belief()
    robot = connected(parameters=HIDDEN, noise={"rail.pos": 1e-3, "rail.vel": 1e-3})
    episode = record(
        robot, SINES, 50, id="run_1", source="analytic", start=known, session_id="monday"
    )
    check_episode(AnalyticCart().spec, episode, names=["rail.pos", "rail.vel"])
    assert (episode.id, episode.source, episode.session_id) == ("run_1", "analytic", "monday")
    assert episode.start is known
    assert len(episode["rail.pos"]) == 51 and len(episode["rail_motor"]) == 50
    assert episode["rail_motor"].role == "action"
    assert episode["rail.pos"].time == pytest.approx(0.02 * np.arange(51))


@pytest.mark.parametrize(
    ("driver", "ticks", "word"),
    [(SINES, None, "how many"), (SINES, 0, "0 ticks"), (np.zeros((3, 1)), 4, "3 actions")],
)
def test_ticks_that_do_not_fit_are_refused(driver, ticks, word):
    with pytest.raises(SpecError, match=word):
        record(connected(), driver, ticks)
