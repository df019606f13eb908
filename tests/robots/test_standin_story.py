"""Reality played by an engine: recorded, checked, replayed."""

import numpy as np

from sameworld.core import Belief, Parameter, Values, check_episode, rollout
from sameworld.core.signals import held_actions, ticks_for
from sameworld.policies import MultiSine
from sameworld.robots import StandIn, record
from sameworld.worlds import build
from sameworld.zoo import scene

HIDDEN = Values.of({"body:cart.mass": 2.3, "joint:rail.damping": 0.7})


def recorded_episodes(count):
    world = build(scene("cart"), "explicit")
    start = Belief(
        parameters=(
            Parameter(name="start:rail.pos", value=0.0, std=0.1, unit="m", scope="episode"),
            Parameter(name="start:rail.vel", value=0.0, std=0.1, unit="m/s", scope="episode"),
        )
    )
    robot = StandIn(world, parameters=HIDDEN, noise={"rail.pos": 1e-3}, start=start, seed=7)
    robot.connect()
    episodes, starts = [], []
    for run in range(count):
        starts.append(robot.place(run))
        sines = MultiSine(amplitude=np.array([8.0]), period=world.spec.period, seed=run)
        episodes.append(record(robot, sines, 150, id=f"run_{run}", source="mujoco"))
    robot.close()
    return world, episodes, starts


def replayed_error(world, episode, start, parameters):
    actions = held_actions(world.spec, episode, episode.begin, ticks_for(world.spec, episode.end))
    signals = rollout(world, Values.of(start), actions[None], parameters=parameters).signals
    return signals["rail.pos"][0] - episode["rail.pos"].values


def test_episodes_of_a_hidden_reality_are_valid_and_only_the_truth_explains_them():
    world, episodes, starts = recorded_episodes(3)
    for episode, start in zip(episodes, starts, strict=True):
        check_episode(world.spec, episode, names=["rail.pos", "rail.vel"])
        assert len(episode["rail.pos"]) == 151
        truth = replayed_error(world, episode, start, HIDDEN)
        believed = replayed_error(world, episode, start, None)
        assert 0.8e-3 < truth.std() < 1.2e-3 and abs(truth.mean()) < 3e-4
        assert believed.std() > 5 * truth.std()


def test_reality_repeats_itself_for_equal_seeds():
    _, first, _ = recorded_episodes(1)
    _, again, _ = recorded_episodes(1)
    assert np.array_equal(first[0]["rail.pos"].values, again[0]["rail.pos"].values)
