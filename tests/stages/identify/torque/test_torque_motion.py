"""From channels to filtered motion."""

from dataclasses import replace

import numpy as np
import pytest
from torque_recordings import JOINTS, arm, recorded, swing

from sameworld.core import Channel, Episode, EpisodeError, FitError, Scene
from sameworld.stages.identify.torque import TorqueConfig, read_motion
from sameworld.worlds import build

CONFIG = TorqueConfig(cutoff=15.0)
MOTORS = """
<mujoco><worldbody><body name="b"><joint name="hinge" axis="0 1 0"/>
  <inertial mass="1" pos="0 0 .1" diaginertia=".01 .01 .01"/></body></worldbody>
<actuator><motor name="drive" joint="hinge" gear="3"/></actuator></mujoco>
"""


def test_motion_is_that_of_the_recording_without_delay():
    motion = read_motion(arm(), recorded(noise=0.0), CONFIG)
    time, q, v, a = swing(8.0, 0)
    rows = slice(250, 3750)
    assert np.allclose(motion.time, time[rows])
    for found, true in ((motion.q, q), (motion.v, v), (motion.a, a)):
        assert np.abs(found - true[rows]).max() < 0.02 * np.abs(true).max()


@pytest.mark.parametrize("drop", [True, False])
def test_velocities_come_from_positions_where_asked_or_needed(drop):
    episode = recorded(noise=0.0)
    if drop:
        kept = [c for c in episode.channels if not c.name.endswith(".vel")]
        episode = replace(episode, channels=tuple(kept))
    config = CONFIG if drop else replace(CONFIG, velocity="differentiated")
    _, _, v, _ = swing(8.0, 0)
    assert np.abs(read_motion(arm(), episode, config).v - v[250:3750]).max() < 0.05


def test_channels_with_clocks_of_their_own_meet_on_one():
    episode, (late, *rest) = recorded(noise=0.0), recorded(noise=0.0).channels
    later = replace(late, time=late.time[25:-10:2], values=late.values[25:-10:2])
    moved = read_motion(arm(), episode.with_channels([later, *rest]), CONFIG)
    whole = read_motion(arm(), episode, CONFIG)
    shared = np.interp(moved.time, whole.time, whole.q[:, 0])
    assert np.abs(moved.q[:, 0] - shared)[20:-20].max() < 2e-3


def test_motors_give_torque_by_gear_and_commands_are_held():
    world = build(Scene(name="motor", mjcf=MOTORS))
    time = 0.001 * np.arange(3000)
    channels = (
        Channel(name="hinge.pos", time=time, values=np.sin(time)),
        Channel(name="drive", time=time[::50], values=np.cos(time[::50]), role="action"),
    )
    motion = read_motion(world, Episode(id="e", channels=channels), CONFIG)
    held = np.cos(motion.time - 0.0245)  # half an interval late on average
    assert np.abs(motion.torque[:, 0] - 3 * held).max() < 0.02


def test_a_missing_torque_is_refused_with_what_there_is():
    episode = recorded()
    lacking = replace(episode, channels=tuple(c for c in episode.channels if c.name != "tau2"))
    with pytest.raises(EpisodeError, match=r"no torque channel 'tau2'.*identify\(\)"):
        read_motion(arm(), lacking, CONFIG)
    bare = build(Scene(name="bare", mjcf=MOTORS.replace("<motor", "<position")))
    with pytest.raises(EpisodeError, match="neither a jointactuatorfrc sensor nor a plain motor"):
        read_motion(bare, episode, CONFIG)


def test_channel_names_may_be_given():
    renamed = recorded().channels
    channels = [replace(c, name=c.name.replace("tau", "torque_")) for c in renamed]
    episode = replace(recorded(), channels=tuple(channels))
    config = replace(CONFIG, torque="torque_{number}")
    assert np.array_equal(
        read_motion(arm(), episode, config).torque, read_motion(arm(), recorded(), CONFIG).torque
    )
    assert JOINTS[0] in "yaw"
    by_joint = [
        replace(c, name=f"{JOINTS[int(c.name[3]) - 1]}.effort") if c.name[:3] == "tau" else c
        for c in recorded().channels
    ]
    other = replace(recorded(), channels=tuple(by_joint))
    motion = read_motion(arm(), other, replace(CONFIG, torque="{joint}.effort"))
    assert np.array_equal(motion.torque, read_motion(arm(), recorded(), CONFIG).torque)


@pytest.mark.parametrize(
    ("episode", "config", "words"),
    [
        (recorded(seconds=1.0), CONFIG, "for 0.998 s only"),
        (recorded(), replace(CONFIG, cutoff=240.0), "too few for a cut-off"),
        (replace(recorded(), channels=recorded().channels[1:]), CONFIG, "no channel 'yaw.pos'"),
    ],
)
def test_episodes_that_are_too_short_slow_or_blind_are_refused(episode, config, words):
    with pytest.raises(EpisodeError, match=words):
        read_motion(arm(), episode, config)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"free": ()}, "free is empty"),
        ({"friction": "stribeck"}, "must be one of"),
        ({"pull": 0.0}, "pull = 0.0 must be positive"),
        ({"holdout": 1.0}, "holdout = 1.0"),
        ({"torque": "tau"}, "one channel for all joints"),
    ],
)
def test_impossible_options_are_refused(options, words):
    with pytest.raises(FitError, match=words):
        TorqueConfig(**options)
