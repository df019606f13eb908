"""Limits of commands and signals: read from the spec, narrowed, checked on the simulation."""

import numpy as np
import pytest
from excite_arm import asked, servo_arm

from sameworld.core import FitError, SpecError, rollout
from sameworld.stages.excite import Limit, excite
from sameworld.stages.excite.limits import boxes, margins, violations

SPEC = servo_arm().spec


def held(*targets: float, ticks: int = 50):
    world = servo_arm()
    return rollout(world, world.spec.start.mean, np.tile(targets, (1, ticks, 1)))


def test_spec_bounds_hold_without_being_asked_and_are_only_narrowed():
    wide = {b.channel.name: b for b in boxes(SPEC, ())}
    assert wide["elbow_servo"].low == -2 and wide["elbow_servo"].high == 2
    limits = (Limit(signal="elbow_*", low=-5, high=1.5), Limit(signal="elbow_servo", low=-1))
    narrow = {b.channel.name: b for b in boxes(SPEC, limits)}
    assert (narrow["elbow_servo"].low, narrow["elbow_servo"].high) == (-1, 1.5)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (Limit(signal="elbo.pos", low=0), "Did you mean 'elbow.pos'"),
        (Limit(signal="tip", low=(0, 0)), "'tip' has 3 components, its limit 2"),
        (Limit(signal="elbow_servo", low=3), "leave no room"),
    ],
)
def test_limits_that_do_not_fit_the_world_are_refused(limit, words):
    with pytest.raises(SpecError, match=words):
        boxes(SPEC, (limit,))


@pytest.mark.parametrize(
    "options", [{"low": 1, "high": 0}, {"speed": 0}, {"low": (0, 1), "high": (1, 2, 3)}]
)
def test_impossible_limits_are_refused(options):
    with pytest.raises(SpecError):
        Limit(signal="x", **options)


def test_margins_are_the_room_left_in_units_of_the_signal():
    result = held(0.5, -0.5)
    limit = Limit(signal="tip", low=(-0.1, -1, 0.3), high=(0.5, 1, 2), speed=100)
    found = {m.bound: m for m in margins(SPEC, boxes(SPEC, (limit,)), result) if m.signal == "tip"}
    path = result.signals["tip"][0]
    assert found["low"].left == pytest.approx(min(path[:, 0].min() + 0.1, 1.0), abs=0.2)
    speed = np.abs(np.diff(path, axis=0)).max() / SPEC.period
    assert found["speed"].left == pytest.approx(100 - speed)
    assert found["speed"].share == pytest.approx(1 - speed / 100)


def test_violations_are_relative_to_the_range_and_zero_inside():
    result = held(0.5, 0.0)
    reached = float(result.signals["shoulder.pos"].max())
    fine = boxes(SPEC, (Limit(signal="shoulder.pos", low=-1, high=1),))
    passed = boxes(SPEC, (Limit(signal="shoulder.pos", low=-1, high=reached - 0.1),))
    assert violations(SPEC, fine, result)[0] == 0
    assert violations(SPEC, passed, result)[0] == pytest.approx(0.1 / (reached + 0.9))


def test_a_failed_simulation_passes_every_limit():
    world = servo_arm()
    start = world.spec.start.mean
    broken = start.array.copy()
    broken[:, start.index("start:elbow.vel")] = 1e12
    result = rollout(world, type(start)(names=start.names, array=broken), np.zeros((1, 5, 2)))
    assert violations(SPEC, boxes(SPEC, ()), result)[0] == np.inf


def test_a_box_that_excludes_home_is_an_error_that_names_it():
    box = Limit(signal="tip", low=(0.2, -1, 0), high=(1, 1, 2))
    with pytest.raises(FitError, match=r"passes the low bound 0\.2 of 'tip'"):
        excite(servo_arm(), config=asked(limits=(box,), search="none", candidates=2))
