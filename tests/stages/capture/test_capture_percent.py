"""Degrees or percent: asked of LeRobot columns without units, and answered by a person."""

import numpy as np
import pytest

from sameworld.core import EpisodeError, Recording, Scene, Stream
from sameworld.stages.capture import apply_mapping, propose_mapping
from sameworld.worlds import build

MJCF = """<mujoco><compiler angle="radian"/><worldbody><body>
  <joint name="elbow" axis="0 1 0" range="-1.9 1.9"/><geom size="0.02" fromto="0 0 0 0 0 .2"
   type="capsule"/><body pos="0 0 .2"><joint name="gripper" axis="0 0 1" range="-0.2 1.8"/>
   <geom size="0.01" fromto="0 0 0 .1 0 0" type="capsule"/></body></body></worldbody>
  <actuator><position name="elbow" joint="elbow" kp="9" kv="1" ctrlrange="-1.9 1.9"/>
   <position name="gripper" joint="gripper" kp="9" kv="1" ctrlrange="-0.2 1.8"/></actuator></mujoco>
"""
LABELS = ("elbow.pos", "gripper.pos")


@pytest.fixture(scope="module")
def world():
    return build(Scene(name="arm", mjcf=MJCF))


def recording(streams=("observation.state", "action"), unit="", reach=70.0):
    """Both joints follow their commands by 0.1 s."""
    time = np.arange(0, 12, 1 / 30)

    def columns(t):
        elbow = reach * np.sin(2.1 * t) * np.cos(0.37 * t)
        return np.stack([elbow, 50 + 45 * np.sin(1.7 * t + 1) * np.sin(0.5 * t)], axis=1)

    parts = zip(streams, (columns(time - 0.1), columns(time)), strict=True)
    return Recording(
        id="run",
        streams=tuple(
            Stream(name=n, time=time, values=v, labels=LABELS, unit=unit) for n, v in parts
        ),
    )


def asked(world, log):
    return {q.about: [a.name for a in q.alternatives] for q in _map(world, log).undecided}


def _map(world, log):
    return propose_mapping(world, [log])[0]


def test_both_kinds_are_asked_once_each_and_nothing_is_used_before(world):
    log = recording()
    assert asked(world, log) == {
        "unit of gripper.pos": ["percent", "degrees"],
        "unit of elbow.pos": ["degrees", "percent"],
    }
    with pytest.raises(EpisodeError, match="percent"):
        apply_mapping(world, log, _map(world, log))


def test_answers_reach_positions_and_commands(world):
    log = recording()
    mapping = _map(world, log).answered("unit of gripper.pos", "percent")
    mapping = mapping.answered("unit of elbow.pos", "percent")
    episode = apply_mapping(world, log, mapping)
    state, action = (log[name].values for name in ("observation.state", "action"))
    for name, recorded in (("gripper.pos", state), ("gripper", action)):
        wanted = -0.2 + 2.0 * recorded[:, 1] / 100
        np.testing.assert_allclose(episode[name].values, wanted, atol=1e-9)
    for name, recorded in (("elbow.pos", state), ("elbow", action)):
        np.testing.assert_allclose(episode[name].values, 1.9 * recorded[:, 0] / 100, atol=1e-9)


def test_degrees_leave_the_signals_as_they_were_proposed(world):
    proposed = _map(world, recording())
    answered = proposed.answered("unit of elbow.pos", "degrees")
    assert answered.signals == proposed.signals


def test_a_column_beyond_a_hundred_is_no_percentage(world):
    assert "unit of elbow.pos" not in asked(world, recording(reach=104.0))


@pytest.mark.parametrize(
    "other", [{"unit": "deg"}, {"streams": ("joints", "commands")}], ids=["stated", "other log"]
)
def test_nothing_is_asked_where_a_unit_is_stated_or_the_log_is_another(world, other):
    assert not any("unit" in about for about in asked(world, recording(**other)))
