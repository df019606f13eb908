"""Simulations that break: values per element, reasons, and the NaN guard."""

import subprocess
import sys

import numpy as np
import pytest

from sameworld.core import RolloutError, Scene, Values, rollout
from sameworld.core.rollout import loop
from sameworld.worlds import build
from sameworld.worlds.explicit import ExplicitConfig, explicit_world
from sameworld.worlds.explicit.replay import replay

#: A stiff spring without damping explodes under explicit Euler; a soft one does not.
SPRING = """<mujoco><option timestep="0.01"/>
<custom><numeric name="control_period" data="0.02"/></custom><worldbody>
  <body name="mass"><joint name="x" type="slide" axis="1 0 0" stiffness="1"/>
    <geom size=".1" mass="1" contype="0" conaffinity="0"/></body></worldbody>
<actuator><motor name="push" joint="x"/></actuator>
<sensor><jointpos name="ruler" joint="x"/></sensor></mujoco>"""


@pytest.fixture(scope="module")
def scene():
    return Scene(name="spring", mjcf=SPRING)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_diverging_element_is_invalid_from_there_and_the_others_go_on(scene, threads):
    world = explicit_world(scene, ExplicitConfig(threads=threads))
    stiffness = Values.of({"joint:x.stiffness": [1.0, 1e8, 2.0, 1e10]})
    state = world.reset(Values.of({"start:x.pos": 0.1}), stiffness)
    result = world.rollout(state, np.zeros((4, 60, 1)))
    assert result.valid.all(axis=1).tolist() == [True, False, True, False]
    assert result.valid[:, 0].all()
    assert "of joint 'x' became NaN, infinite or huge at t = 0." in result.reason[1]
    assert result.reason[0] == ""
    slow = loop(world, state, np.zeros((4, 60, 1)))
    assert np.array_equal(result.valid, slow.valid)
    for name, signal in slow.signals.items():
        assert np.array_equal(signal, result.signals[name], equal_nan=True)


@pytest.mark.parametrize("ticks", [1, 2, 9])
def test_a_failure_in_the_very_first_step_is_seen(scene, ticks):
    world = build(scene)
    values = Values.of({"joint:x.stiffness": [1.0, 1e15]})
    result = rollout(
        world, Values.of({"start:x.pos": 0.1}), np.zeros((2, ticks, 1)), parameters=values
    )
    assert result.valid.tolist() == [[True] * (ticks + 1), [True] + [False] * ticks]
    assert "acceleration of joint 'x'" in result.reason[1]


def test_a_huge_action_fails_its_element_and_a_bad_start_its_own(scene):
    world = build(scene)
    actions = np.zeros((3, 6, 1))
    actions[1, 2] = 1e14
    start = Values.of({"start:x.pos": [0.1, 0.1, np.nan]})
    state = world.reset(start)
    result, slow = world.rollout(state, actions), loop(world, state, actions)
    assert result.valid.sum(axis=1).tolist() == [7, 3, 0]
    assert "action" in result.reason[1] and "start" in result.reason[2]
    assert np.array_equal(result.valid, slow.valid)


def test_failures_are_raised_only_if_asked_for(scene):
    with pytest.raises(RolloutError, match=r"Element 0 .*joint 'x'"):
        rollout(
            build(scene),
            Values.of({"start:x.pos": 0.1}),
            np.zeros((1, 60, 1)),
            parameters=Values.of({"joint:x.stiffness": 1e8}),
            raise_on_failure=True,
        )


def test_no_log_file_is_left_behind(scene, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rollout(
        build(scene),
        Values.of({"start:x.pos": 0.1}),
        np.zeros((1, 60, 1)),
        parameters=Values.of({"joint:x.stiffness": 1e8}),
    )
    assert not list(tmp_path.iterdir())


def test_the_guard_dumps_the_first_failure_and_it_replays(scene, tmp_path):
    world = explicit_world(scene, ExplicitConfig(guard=tmp_path / "dumps"))
    stiffness = Values.of({"joint:x.stiffness": [1.0, 1e8, 1e10]})
    result = rollout(
        world, Values.of({"start:x.pos": 0.1}), np.zeros((3, 60, 1)), parameters=stiffness
    )
    (dump,) = (tmp_path / "dumps").glob("*.npz")
    again = replay(dump)
    assert again.failed and again.reason == result.reason[1] == again.recorded
    assert again.tick == int(result.valid[1].sum()) - 1
    assert dump.with_suffix(".xml").read_text() == SPRING
    assert "sameworld.worlds.explicit.replay" in dump.with_suffix(".txt").read_text()
    run = subprocess.run(
        [sys.executable, "-m", "sameworld.worlds.explicit.replay", str(dump)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1 and f"fails in tick {again.tick}" in run.stdout, run.stderr
