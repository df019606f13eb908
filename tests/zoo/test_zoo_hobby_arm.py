"""The stand-in's dataset looks like a hobby arm's, and hides what it says it hides."""

import math

import numpy as np
import pytest

from sameworld.core import EpisodeError, SceneError
from sameworld.stages.actuate import ActuateConfig, actuate
from sameworld.store import lerobot_info, parse_urdf, read_lerobot
from sameworld.worlds import build
from sameworld.worlds.explicit.urdf import UrdfConfig, scene_from_urdf
from sameworld.zoo import HOBBY_ARM_TRUTH, hobby_arm_urdf, write_hobby_arm

TICK = 360 / 4096


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arm")
    write_hobby_arm(folder, episodes=2, seconds=1)
    return folder


def driven(**options):
    scene, report = scene_from_urdf(parse_urdf(hobby_arm_urdf()), config=UrdfConfig(**options))
    return actuate(scene, config=ActuateConfig(preset="hobby_servo"))[0], report


def test_positions_and_commands_have_the_same_names_at_30_rows_a_second(arm):
    info = lerobot_info(arm / "dataset")
    assert info.fps == 30
    for recording in read_lerobot(arm / "dataset"):
        state, action = recording["observation.state"], recording["action"]
        assert state.labels == action.labels and state.labels[0] == "shoulder_pan.pos"
        assert state.unit == action.unit == "" and len(state.time) == 30
        assert recording["observation.images.side"].kind == "images"


def test_encoders_count_4096_ticks_a_turn_and_the_gripper_is_in_percent(arm):
    state = next(iter(read_lerobot(arm / "dataset")))["observation.state"].values
    ticks = state[:, :5] / TICK
    np.testing.assert_allclose(ticks, np.round(ticks), atol=1e-3)
    gripper = math.degrees(1) * (-0.17 + 1.92 * state[:, 5] / 100) / TICK
    np.testing.assert_allclose(gripper, np.round(gripper), atol=1e-3)


def test_seeds_repeat_and_differ(arm, tmp_path):
    write_hobby_arm(tmp_path / "same", episodes=1, seconds=1, camera=False)
    write_hobby_arm(tmp_path / "other", episodes=1, seconds=1, camera=False, seed=9)
    first, same, other = (
        next(iter(read_lerobot(p / "dataset")))["observation.state"].values
        for p in (arm, tmp_path / "same", tmp_path / "other")
    )
    assert np.array_equal(first, same) and not np.array_equal(first, other)


def test_the_description_passes_the_gate_and_every_hidden_number_has_an_address():
    scene, report = driven()
    assert report.doubts == () and "<actuator>" not in hobby_arm_urdf()
    world = build(scene)
    known = {p.name: p for p in world.parameters.parameters}
    assert set(HOBBY_ARM_TRUTH) <= set(known)
    assert all(abs(known[n].value / v - 1) > 0.02 for n, v in HOBBY_ARM_TRUTH.items())
    assert known["actuator:gripper.kp"].unit == "N m/rad"


def test_a_urdf_scene_steps_as_asked():
    scene, _ = driven(timestep=0.01, integrator="RK4")
    assert 'timestep="0.01" integrator="RK4"' in scene.mjcf
    with pytest.raises(SceneError, match="RK4"):
        UrdfConfig(integrator="Euler")


def test_an_arm_without_episodes_is_refused(tmp_path):
    with pytest.raises(EpisodeError, match="at least one episode"):
        write_hobby_arm(tmp_path, episodes=0)
