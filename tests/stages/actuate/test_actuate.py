"""Actuators by preset: gains from inertia, limits, what is kept, and that identify can fit them."""

import math
import warnings
from dataclasses import replace

import mujoco
import numpy as np
import pytest

from sameworld import IdentifyConfig, Scene, build, check_world, identify
from sameworld.core import (
    AddressError,
    Belief,
    Channel,
    Episode,
    Parameter,
    SceneError,
    Values,
    rollout,
)
from sameworld.stages.actuate import SERVOS, ActuateConfig, actuate
from sameworld.store import load_scene, parse_urdf, save_scene
from sameworld.worlds.explicit.urdf import scene_from_urdf

ROD = """
<mujoco model="rod"><option timestep="0.001" integrator="implicitfast"/><worldbody>
  <body name="rod"><joint name="pivot" axis="0 1 0" damping="0.05" range="-120 120"
      actuatorfrcrange="-6 6"/>
    <inertial pos="0 0 -0.3" mass="0.5" diaginertia="0.02 0.02 0.0001"/>
    <body name="slider" pos="0 0 -0.5"><joint name="slide" type="slide" axis="1 0 0"
        range="-0.1 0.1"/><inertial pos="0 0 0" mass="0.2" diaginertia="1e-4 1e-4 1e-4"/></body>
  </body></worldbody></mujoco>
"""
GEARED = """
<mujoco model="geared"><option gravity="0 0 0" integrator="implicitfast"/><worldbody>
  <body name="a"><joint name="lead" axis="0 0 1"/>
    <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/></body>
  <body name="b" pos="1 0 0"><joint name="follow" axis="0 0 1"/>
    <inertial pos="0 0 0" mass="1" diaginertia="0.02 0.02 0.02"/></body>
</worldbody><equality><joint joint1="follow" joint2="lead" polycoef="0 3 0 0 0"/></equality>
</mujoco>
"""
DRIVEN = """
<mujoco model="driven"><option integrator="implicitfast"/>
<default><default class="strong"><motor gear="50"/></default></default><worldbody>
  <body name="a"><joint name="one" axis="0 1 0"/>
    <inertial pos="0 0 -0.1" mass="1" diaginertia="0.01 0.01 0.01"/>
    <body name="b" pos="0 0 -0.2"><joint name="two" axis="0 1 0"/>
      <inertial pos="0 0 -0.1" mass="1" diaginertia="0.01 0.01 0.01"/></body></body>
</worldbody><actuator><motor class="strong" name="old" joint="one"/></actuator>
<keyframe><key name="home" qpos="0.5 -0.5" ctrl="0.1"/></keyframe></mujoco>
"""
URDF = """
<robot name="r"><link name="base"/><link name="arm"><inertial><origin xyz="0 0 -0.2"/>
  <mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
  </link><link name="hand"><inertial><mass value="0.3"/>
  <inertia ixx="0.001" iyy="0.0012" izz="0.0011" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="12" velocity="3"/></joint>
  <joint name="wrist" type="continuous"><parent link="arm"/><child link="hand"/>
    <origin xyz="0 0 -0.4"/><axis xyz="0 0 1"/></joint>
  <transmission name="t"><joint name="elbow"/><actuator name="motor7">
    <hardwareInterface>EffortJointInterface</hardwareInterface></actuator></transmission></robot>
"""


def scene_of(text):
    return Scene(name="s", mjcf=text)


def compiled(scene):
    return mujoco.MjSpec.from_string(scene.mjcf).compile()


def robot():
    return scene_from_urdf(parse_urdf(URDF))[0]


# ---- gains ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0.3, 1.0])
@pytest.mark.parametrize("hertz", [1.0, 4.0])
def test_a_controlled_joint_swings_as_its_bandwidth_and_damping_ratio_say(hertz, ratio):
    """Against the exact response of a linear oscillator, gravity switched off."""
    weightless = ROD.replace("<option ", '<option gravity="0 0 0" ')
    config = ActuateConfig(joints=("pivot",), bandwidth=hertz, damping_ratio=ratio)
    scene, _ = actuate(scene_of(weightless.replace('actuatorfrcrange="-6 6"', "")), config=config)
    model = compiled(scene)
    model.opt.timestep = 1e-4
    model.jnt_range[1] = [-1e-9, 1e-9]  # hold the slider
    data = mujoco.MjData(model)
    data.qpos[0] = 0.01
    times, angles = [], []
    for _ in range(3000):
        mujoco.mj_step(model, data)
        times.append(data.time)
        angles.append(data.qpos[0])
    w, t = 2 * math.pi * hertz, np.array(times)
    if ratio == 1:
        exact = 0.01 * (1 + w * t) * np.exp(-w * t)
    else:
        wd = w * math.sqrt(1 - ratio**2)
        exact = 0.01 * np.exp(-ratio * w * t) * (np.cos(wd * t) + ratio * w / wd * np.sin(wd * t))
    np.testing.assert_allclose(angles, exact, atol=2e-4)


def test_inertia_at_the_home_pose_is_that_of_the_mass_matrix():
    _, result = actuate(scene_of(ROD), config=ActuateConfig(preset="torque"))
    drive = result.drives[0]
    by_hand = 0.02 + 0.5 * 0.3**2 + 1e-4 + 0.2 * 0.5**2
    assert drive.inertia == pytest.approx(by_hand, rel=1e-9)
    assert drive.inertia_low <= drive.inertia <= drive.inertia_high
    assert drive.inertia_high == pytest.approx(by_hand + 0.2 * 0.1**2, rel=5e-3)
    assert drive.gravity == pytest.approx(9.81 * (0.5 * 0.3 + 0.2 * 0.5), rel=0.05)
    assert [d.linear for d in result.drives] == [False, True]


def test_joints_that_follow_add_their_inertia_and_get_no_actuator():
    _, result = actuate(scene_of(GEARED), config=ActuateConfig(preset="torque", effort=1))
    assert [d.joint for d in result.drives] == ["lead"]
    assert result.drives[0].inertia == pytest.approx(0.01 + 9 * 0.02)
    assert any("'follow' follows 'lead' and gets no actuator" in t for t in result.assumed)


def test_beliefs_about_masses_count():
    heavy = scene_of(ROD).with_belief(
        Belief(parameters=(Parameter(name="body:rod.mass", value=5.0, std=1.0),))
    )
    plain, belief = (actuate(s)[1].drives[0].inertia for s in (scene_of(ROD), heavy))
    assert belief - plain == pytest.approx(9 * (0.02 + 0.5 * 0.3**2), rel=1e-6)


def test_given_gains_are_taken_as_they_are():
    scene, result = actuate(scene_of(ROD), config=ActuateConfig(joints="pivot", kp=7, kv=0.3))
    actuator = compiled(scene).actuator("pivot")
    assert actuator.gainprm[0] == 7 and actuator.biasprm[:3].tolist() == [0, -7, -0.3]
    assert "The gains are those given." in result.assumed


# ---- presets --------------------------------------------------------------------------------


def test_torque_commands_act_directly_within_the_effort_limit():
    model = compiled(actuate(robot(), config=ActuateConfig(preset="torque"))[0])
    data = mujoco.MjData(model)
    data.ctrl[0] = 30
    mujoco.mj_forward(model, data)
    assert data.qfrc_actuator[0] == 12
    assert model.actuator("elbow").ctrlrange.tolist() == [-12, 12]


def test_a_velocity_drive_reaches_its_command():
    scene, result = actuate(robot(), config=ActuateConfig(preset="velocity", joints="wrist"))
    model = compiled(scene)
    data = mujoco.MjData(model)
    data.ctrl[0] = 2.0
    for _ in range(500):
        mujoco.mj_step(model, data)
    assert data.joint("wrist").qvel[0] == pytest.approx(2.0, abs=0.02)
    assert any("no speed limit is known" in text for text in result.assumed)
    limited = actuate(robot(), config=ActuateConfig(preset="velocity", joints="elbow"))[0]
    assert compiled(limited).actuator("elbow").ctrlrange.tolist() == [-3, 3]


def test_impedance_holds_the_arm_against_gravity_and_position_sags():
    ends = {}
    for preset in ("impedance", "position"):
        config = ActuateConfig(preset=preset, joints="*", bandwidth=2, effort=50)
        model = compiled(actuate(robot(), config=config)[0])
        data = mujoco.MjData(model)
        data.ctrl[0] = data.qpos[0] = 0.8
        for _ in range(3000):
            mujoco.mj_step(model, data)
        ends[preset] = abs(data.qpos[0] - 0.8)
    assert ends["impedance"] < 1e-6
    assert ends["position"] > 0.05


def test_a_hobby_servo_has_the_constants_of_its_bench():
    scene, result = actuate(robot(), config=ActuateConfig(preset="hobby_servo"))
    drive, servo = result.drives[0], SERVOS["sts3215"]
    assert drive.kp == pytest.approx(17.8, rel=1e-3)
    assert drive.force == pytest.approx(3.35, rel=1e-3)
    assert servo.damping == pytest.approx(0.60, abs=0.01)
    model = compiled(scene)
    assert model.joint("elbow").armature[0] == pytest.approx(0.0284, rel=1e-2)
    assert model.joint("elbow").frictionloss[0] == pytest.approx(0.0524, rel=1e-3)
    belief = build(scene).parameters
    assert belief["actuator:elbow.kp"].std == pytest.approx(0.3 * drive.kp)
    assert belief["joint:elbow.damping"].std == pytest.approx(0.3 * servo.damping)


def test_a_hobby_servo_at_half_the_voltage_has_half_the_torque():
    config = ActuateConfig(preset="hobby_servo", servo="xl330", joints="elbow")
    whole, half = (
        actuate(robot(), config=replace(config, voltage=v))[1].drives[0] for v in (7.4, 3.7)
    )
    assert half.force == pytest.approx(whole.force / 2)
    assert half.kp == pytest.approx(whole.kp / 2)


# ---- what is chosen and kept ------------------------------------------------------------------


def test_the_robot_description_says_what_is_driven_and_how():
    _, result = actuate(robot(), config=ActuateConfig(naming="described"))
    assert [(d.actuator, d.joint) for d in result.drives] == [("motor7", "elbow")]
    assert any("commands its effort, this preset its position" in t for t in result.assumed)
    everything = actuate(robot(), config=ActuateConfig(joints="*", effort=5))[1]
    assert [d.joint for d in everything.drives] == ["elbow", "wrist"]
    assert [d.force for d in everything.drives] == [12, 5]


def test_actuators_that_are_there_stay_unless_they_are_replaced():
    scene, result = actuate(scene_of(DRIVEN), config=ActuateConfig(effort=9))
    assert result.kept == ("one",) and [d.joint for d in result.drives] == ["two"]
    assert [a.name for a in mujoco.MjSpec.from_string(scene.mjcf).actuators] == ["old", "two"]
    with pytest.raises(SceneError, match=r"every chosen joint has an actuator.*--replace"):
        actuate(scene)
    believed = scene_of(DRIVEN).with_belief(
        Belief(parameters=(Parameter(name="actuator:old.gear", value=50.0, std=1.0),))
    )
    scene, result = actuate(believed, config=ActuateConfig(replace=True))
    assert result.removed == ("old",)
    assert [a.name for a in mujoco.MjSpec.from_string(scene.mjcf).actuators] == ["one", "two"]
    assert not [name for name in scene.belief.names if "old" in name]
    assert "removed 'old'" in scene.history[0].summary


def test_the_home_keyframe_is_the_home_pose():
    home = actuate(scene_of(DRIVEN), config=ActuateConfig(replace=True))[1].drives[0].inertia
    moved = DRIVEN.replace('name="home"', 'name="away"')
    zero = actuate(scene_of(moved), config=ActuateConfig(replace=True))[1].drives[0].inertia
    arm = lambda a: 0.02 + 0.1**2 + 0.2**2 + 0.1**2 + 2 * 0.2 * 0.1 * math.cos(a)  # noqa: E731
    assert home == pytest.approx(arm(-0.5), rel=1e-9)
    assert zero == pytest.approx(arm(0.0), rel=1e-9)


def test_defaults_of_the_scene_that_change_new_actuators_are_noticed():
    text = ROD.replace("<worldbody>", '<default><position timeconst="0.1"/></default><worldbody>')
    with pytest.raises(SceneError, match="<default> settings of actuators interfere"):
        actuate(scene_of(text), config=ActuateConfig(joints="pivot"))


def test_comments_and_numbers_of_the_scene_survive():
    text = ROD.replace("<worldbody>", "<!-- mind the gap --><worldbody>")
    scene, _ = actuate(scene_of(text))
    assert "mind the gap" in scene.mjcf
    before, after = compiled(scene_of(ROD)), compiled(scene)
    for field in ("body_mass", "body_inertia", "jnt_range", "dof_damping"):
        np.testing.assert_array_equal(getattr(before, field), getattr(after, field))


# ---- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (ROD, {"bandwidth": 500}, r"'pivot': its controller works at \d+ Hz, which a timestep"),
        (ROD, {"preset": "hobby_servo"}, "'slide' is a slide; a hobby servo drives hinges"),
        (ROD.replace("implicitfast", "Euler"), {"kv": 500, "kp": 20}, "unstable at a timestep"),
        ("<mujoco/>", {}, "has no hinge or slide to drive"),
        (
            ROD.replace("</mujoco>", "")
            + '<actuator><motor name="m" joint="pivot"/></actuator>'
            + '<sensor><actuatorfrc name="f" actuator="m"/></sensor></mujoco>',
            {"replace": True},
            "sensors 'f' measure actuators that would be removed",
        ),
        (
            ROD.replace('name="pivot" ', ""),
            {"preset": "hobby_servo", "joints": "joint0"},
            "unnamed",
        ),
    ],
)
def test_what_cannot_be_driven_is_refused_with_the_reason(text, options, words):
    with pytest.raises(SceneError, match=words):
        actuate(scene_of(text), config=ActuateConfig(**options))


def test_a_pattern_that_meets_no_joint_is_an_error():
    with pytest.raises(AddressError, match=r"'pivto' matches no hinge or slide.*'pivot'"):
        actuate(scene_of(ROD), config=ActuateConfig(joints="pivto"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"preset": "postion"}, "Did you mean 'position'"),
        ({"servo": "sts3216"}, "Did you mean 'sts3215'"),
        ({"bandwidth": -1}, "bandwidth = -1 must not be negative"),
        ({"damping_ratio": 0}, "must be positive"),
        ({"naming": "mine"}, "naming"),
    ],
)
def test_options_are_checked(options, words):
    with pytest.raises(SceneError, match=words):
        ActuateConfig(**options)


def test_weak_and_sagging_joints_are_told():
    weak = ROD.replace("-6 6", "-1 1")
    told = actuate(scene_of(weak), config=ActuateConfig(joints="pivot", bandwidth=1))[1].assumed
    assert any("gravity asks for up to 2.4" in text for text in told)
    assert any("from its command" in text for text in told)


# ---- the story --------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["torque", "position", "velocity", "impedance", "hobby_servo"])
def test_the_world_of_every_preset_keeps_the_contract_and_survives_the_disk(preset, tmp_path):
    scene, _ = actuate(robot(), config=ActuateConfig(preset=preset, joints="*"))
    save_scene(scene, tmp_path / "s")
    loaded = load_scene(tmp_path / "s")
    assert loaded.id == scene.id and loaded.belief.names == scene.belief.names
    assert check_world(build(loaded)).passed


def test_identify_finds_the_real_stiffness_from_the_wide_belief():
    scene, _ = actuate(robot(), config=ActuateConfig(joints="elbow", bandwidth=3))
    world = build(scene)
    truth = 1.4 * world.parameters["actuator:elbow.kp"].value
    episodes = _recorded(world, truth, seed=3)
    config = IdentifyConfig(free=("actuator:elbow.kp",), search="none", starts="joint", warmup=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted, _, _ = identify(world, episodes, config=config)
    found = fitted.parameters["actuator:elbow.kp"]
    assert found.value == pytest.approx(truth, rel=0.02)
    assert abs(found.value - truth) < 4 * found.std
    assert found.source == "identified"


def _recorded(world, stiffness, seed):
    """Ten noisy recordings of commands and positions of a robot with another stiffness."""
    rng, ticks, names = np.random.default_rng(seed), 120, world.spec.start.names
    start = Values(names=names, array=rng.normal(0, 0.2, (10, len(names))))
    actions = np.repeat(rng.uniform(-0.8, 0.8, (10, ticks // 30, 1)), 30, axis=1)
    truth = Values.of({"actuator:elbow.kp": stiffness})
    found = rollout(world, start, actions, parameters=truth)
    time = np.arange(ticks + 1) * world.spec.period
    episodes = []
    for k in range(10):
        channels = [Channel(name="elbow", time=time[:-1], values=actions[k, :, 0], role="action")]
        for name in ("elbow.pos", "wrist.pos"):
            signal = found.signals[name][k]
            noisy = signal + rng.normal(0, 1e-3, signal.shape)
            channels.append(Channel(name=name, time=time, values=noisy, unit="rad", noise=1e-3))
        episodes.append(Episode(id=f"e{k}", channels=tuple(channels)))
    return tuple(episodes)
