"""The thrown tensegrity: what a throw shows, and the scale that it does not."""

import numpy as np
import pytest

from sameworld.core import RolloutError, SpecError, Values, rollout
from sameworld.core.manifolds import compose, inverse, quat_log
from sameworld.worlds import build
from sameworld.zoo import (
    TENSEGRITY_CABLES,
    TENSEGRITY_FLOOR,
    TENSEGRITY_NOISE,
    TENSEGRITY_SCALED,
    scene,
    tensegrity_throw,
)

RODS = ("rod1", "rod2", "rod3")


@pytest.fixture(scope="module")
def world():
    return build(scene("tensegrity"))


def scaled(world, factor):
    values = [factor * world.parameters[name].value for name in TENSEGRITY_SCALED]
    return Values(names=TENSEGRITY_SCALED, array=np.array([values]))


def test_every_mass_stiffness_and_damping_doubled_gives_the_same_throw(world):
    once, twice = (tensegrity_throw(world, truth=scaled(world, f), seed=4) for f in (1.0, 2.0))
    for channel in once.channels:
        assert np.allclose(twice[channel.name].values, channel.values, rtol=0, atol=1e-8)


def test_one_mass_doubled_alone_gives_another_throw(world):
    heavier = Values.of({"body:rod1.mass": 0.5})
    throws = [tensegrity_throw(world, truth=t, seed=4) for t in (None, heavier)]
    first, second = (throw["rod2.pos"].values[-1] for throw in throws)
    assert np.abs(first - second).max() > 20 * TENSEGRITY_NOISE[0]


def test_a_throw_is_tracked_with_the_noise_it_states(world):
    throws = [tensegrity_throw(world, seed=s) for s in (1, 1, 2)]
    assert np.array_equal(throws[0]["rod1.pos"].values, throws[1]["rod1.pos"].values)
    assert not np.array_equal(throws[0]["rod1.pos"].values, throws[2]["rod1.pos"].values)
    place, turn = (throws[0][f"rod3.{part}"] for part in ("pos", "quat"))
    assert (place.noise, turn.noise) == TENSEGRITY_NOISE
    assert len(place) == len(turn) == 201
    third = np.diff(place.values, n=3, axis=0) / np.sqrt(20)
    spread = 1.4826 * float(np.median(np.abs(third)))
    assert 0.9 * place.noise < spread < 1.3 * place.noise
    turns = quat_log(compose(inverse(turn.values[:-1]), turn.values[1:]))
    assert np.abs(turns).max() < 0.3  # no jump between the two quaternions of a rotation


def test_the_prism_stands_by_itself_without_gravity(world):
    still = Values.of({"option:gravity.z": 0.0})
    actions = np.zeros((1, 200, 0))
    found = rollout(world, world.spec.start.mean, actions, parameters=still)
    for rod in RODS:
        place = found.signals[f"{rod}.pos"][0]
        assert np.abs(place - place[0]).max() < 1e-3


def test_a_cable_pulls_where_it_is_taut_and_never_pushes(world):
    taut = Values.of({"tendon:bottom1.stiffness": [300.0, 600.0]})
    slack = taut.updated(Values.of({"tendon:bottom1.springlength.high": [0.5, 0.5]}))
    actions = np.zeros((2, 20, 0))
    start = world.spec.start.mean.broadcast(2)
    for values, same in ((taut, False), (slack, True)):
        place = rollout(world, start, actions, parameters=values).signals["rod1.pos"]
        assert np.array_equal(place[0], place[1]) == same


def test_the_scene_believes_in_everything_that_is_unknown(world):
    believed = scene("tensegrity").belief
    assert set(believed.names) == {*TENSEGRITY_SCALED, *TENSEGRITY_FLOOR}
    assert {f"tendon:{c}.stiffness" for c in TENSEGRITY_CABLES} < set(believed.names)
    assert all(p.transform == "log" for p in believed.parameters)


def test_another_scene_is_refused_by_name():
    with pytest.raises(SpecError, match=r"no free rods .*scene\('tensegrity'\)"):
        tensegrity_throw(build(scene("cube")))


def test_a_robot_that_cannot_be_is_refused(world):
    with pytest.raises(RolloutError, match="rod1"):
        tensegrity_throw(world, truth=Values.of({"body:rod1.mass": -1.0}))
