"""Inverse dynamics, its regressor and forward kinematics, each against a slower twin."""

from dataclasses import dataclass

import mujoco
import numpy as np
import pytest

from sameworld.core import InverseWorld, Scene, SpecError, Values
from sameworld.maths.inertia import inertial_vector
from sameworld.worlds import build
from sameworld.worlds.check import check_world
from sameworld.worlds.explicit import ExplicitWorld

ARM = """
<mujoco model="arm"><option timestep="0.002"/>
<worldbody><body name="base"><geom type="sphere" size=".1" mass="3"/>
  <body name="upper" pos="0 0 .3" euler="10 20 30">
    <joint name="shoulder" axis="0 1 0" damping=".3" frictionloss=".2" armature=".05"
      stiffness="2" springref=".3"/>
    <inertial mass="2" pos=".02 -.03 .1" fullinertia=".03 .04 .02 .002 -.003 .001"/>
    <body name="lower" pos="0 .05 .3"><joint name="elbow" axis="1 0 0" armature=".02"/>
      <inertial mass="1.1" pos="0 .02 .12" fullinertia=".02 .02 .01 0 .001 0"/>
      <body name="slider" pos="0 0 .2"><joint name="rail" type="slide" axis="0 0 1"/>
        <inertial mass=".4" pos="0 .01 0" diaginertia=".001 .002 .0015"/>
        <body name="hand" pos=".1 0 .05" euler="0 40 0"><site name="tip" pos="0 0 .1"/>
          <inertial mass=".7" pos="0 0 .04" diaginertia=".002 .002 .001"/></body>
      </body></body></body></body></worldbody>
<actuator><motor name="m1" joint="shoulder" gear="5"/><motor name="m2" joint="elbow"/>
  <position name="p3" joint="rail" kp="10"/></actuator>
<sensor><jointactuatorfrc name="tau2" joint="elbow"/></sensor></mujoco>
"""
BALL = """
<mujoco><option gravity="1 2 -9"/><worldbody><body name="box" pos="0 0 1"><freejoint/>
  <inertial mass="1.5" pos=".05 .02 -.03" fullinertia=".03 .04 .02 .002 -.003 .001"/>
  <body name="arm" pos=".2 0 0"><joint name="wrist" type="ball" pos=".02 0 .01"/>
    <inertial mass=".5" pos="0 0 .1" diaginertia=".004 .003 .002"/></body></body>
</worldbody></mujoco>
"""


@pytest.fixture(scope="module")
def arm():
    return build(Scene(name="arm", mjcf=ARM))


def motion(rows=20, seed=0, dofs=3):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=(rows, dofs)) for _ in range(3))


def mujoco_inverse(mjcf, q, v, a):
    model = mujoco.MjModel.from_xml_string(mjcf)
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    data = mujoco.MjData(model)
    forces = np.empty(v.shape)
    for row in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[row], v[row], a[row]
        mujoco.mj_inverse(model, data)
        forces[row] = data.qfrc_inverse
    return forces


def bare(mjcf):
    for gone in ('damping=".3" frictionloss=".2" ', 'stiffness="2" springref=".3"'):
        mjcf = mjcf.replace(gone, "")
    return mjcf.replace('armature=".05"', "").replace('armature=".02"', "")


def test_rigid_body_torques_are_those_of_mujoco_without_joint_losses(arm):
    q, v, a = motion()
    assert np.allclose(arm.inverse(q, v, a), mujoco_inverse(bare(ARM), q, v, a), atol=1e-12)


def test_passive_joint_forces_are_added_on_demand(arm):
    q, v, a = motion()
    smooth = mujoco_inverse(ARM.replace('frictionloss=".2"', ""), q, v, a)
    smooth[:, 0] += 0.2 * np.sign(v[:, 0])
    assert np.allclose(arm.inverse(q, v, a, passive=True), smooth, atol=1e-12)


def test_parameters_act_row_by_row_and_impossible_ones_give_nan(arm):
    q, v, a = motion(3)
    masses = Values.of({"body:hand.mass": [0.7, 2.0, -1.0]})
    found = arm.inverse(q, v, a, masses)
    heavy = mujoco_inverse(
        bare(ARM).replace(
            'mass=".7" pos="0 0 .04" diaginertia=".002 .002 .001"',
            f'mass="2" pos="0 0 .04" diaginertia="{0.004 / 0.7} {0.004 / 0.7} {0.002 / 0.7}"',
        ),
        q,
        v,
        a,
    )
    assert np.allclose(found[0], arm.inverse(q[:1], v[:1], a[:1])[0])
    assert np.allclose(found[1], heavy[1])
    assert np.isnan(found[2]).all()


@pytest.mark.parametrize("mjcf", [ARM, BALL], ids=["hinges and slides", "free and ball"])
def test_regressor_times_inertias_is_the_inverse_dynamics(mjcf):
    world = build(Scene(name="scene", mjcf=mjcf))
    model = world.kernel.model
    q, v, a = motion(20, dofs=model.nv)
    q = np.random.default_rng(1).normal(size=(20, model.nq))
    if mjcf is BALL:
        for block in (slice(3, 7), slice(7, 11)):
            q[:, block] /= np.linalg.norm(q[:, block], axis=1, keepdims=True)
    bodies = world.mechanism.bodies
    regressor = world.regressor(q, v, a, bodies)
    assert regressor.shape == (20, model.nv, len(bodies), 10)
    summed = np.einsum("nvbk,bk->nv", regressor, world.inertias(bodies))
    assert np.allclose(summed, world.inverse(q, v, a), atol=1e-11)


def mujoco_with(mjcf, bodies, vectors, q, v, a):
    spec = mujoco.MjSpec.from_string(mjcf)
    for name, vector in zip(bodies, vectors, strict=True):
        mass, com = vector[0], vector[1:4] / vector[0]
        about = np.array(vector)[[4, 7, 8, 7, 5, 9, 8, 9, 6]].reshape(3, 3)
        inertia = about - mass * (com @ com * np.eye(3) - np.outer(com, com))
        body = spec.body(name)
        body.mass, body.ipos = mass, com
        body.iquat, body.ialt.type = [1, 0, 0, 0], mujoco.mjtOrientation.mjORIENTATION_QUAT
        body.inertia = np.zeros(3)
        body.fullinertia = [
            inertia[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
        ]
    model = spec.compile()
    data, forces = mujoco.MjData(model), np.empty(v.shape)
    for row in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[row], v[row], a[row]
        mujoco.mj_inverse(model, data)
        forces[row] = data.qfrc_inverse
    return forces


def test_regressor_is_what_changing_one_number_of_one_body_does(arm):
    q, v, a = motion(6, seed=2)
    bodies = arm.mechanism.bodies
    vectors = arm.inertias(bodies)
    fast, mjcf = arm.regressor(q, v, a, bodies), bare(ARM)
    for b in range(len(bodies)):
        for k in range(10):
            step = np.zeros_like(vectors)
            step[b, k] = 2e-4
            more, less = (
                mujoco_with(mjcf, bodies, vectors + sign * step, q, v, a) for sign in (1, -1)
            )
            assert np.allclose(fast[:, :, b, k], (more - less) / 4e-4, atol=1e-7)


def test_inertial_vectors_are_those_written_in_the_scene(arm):
    inertia = np.array([[0.03, 0.002, -0.003], [0.002, 0.04, 0.001], [-0.003, 0.001, 0.02]])
    assert np.allclose(
        arm.inertias(["upper"])[0], inertial_vector(2.0, [0.02, -0.03, 0.1], inertia)
    )


def test_names_behind_the_columns(arm):
    names = arm.mechanism
    assert isinstance(arm, InverseWorld) and "inverse" in arm.spec.capabilities
    assert names.dofs == ("shoulder", "elbow", "rail")
    assert names.bodies == ("upper", "lower", "slider", "hand")
    assert names.torques == {"shoulder": ("m1", 5.0), "elbow": ("tau2", 1.0)}
    assert build(Scene(name="ball", mjcf=BALL)).mechanism.dofs[3:] == (
        *(f"box.omega.{axis}" for axis in "xyz"),
        *(f"wrist.omega.{axis}" for axis in "xyz"),
    )


def test_poses_are_those_of_mujoco(arm):
    q, _, _ = motion(4)
    poses = arm.poses(q)
    model = mujoco.MjModel.from_xml_string(ARM)
    data = mujoco.MjData(model)
    for row in range(4):
        data.qpos[:] = q[row]
        mujoco.mj_forward(model, data)
        assert np.allclose(poses["body:hand"][0][row], data.body("hand").xpos)
        assert np.allclose(poses["body:hand"][1][row], data.body("hand").xquat)
        assert np.allclose(poses["site:tip"][0][row], data.site("tip").xpos)
        turn = np.empty(9)
        mujoco.mju_quat2Mat(turn, poses["site:tip"][1][row])
        assert np.allclose(turn, data.site("tip").xmat)


def test_inputs_are_not_changed_and_wrong_ones_are_refused(arm):
    q, v, a = motion(5)
    before = [x.copy() for x in (q, v, a)]
    arm.inverse(q, v, a)
    arm.regressor(q, v, a, ["hand"])
    assert all(np.array_equal(x, y) for x, y in zip(before, (q, v, a), strict=True))
    with pytest.raises(SpecError, match=r"velocities and accelerations \[N, 3\]"):
        arm.inverse(q, v[:, :2], a)
    with pytest.raises(SpecError, match="NaN"):
        arm.inverse(q, v, np.full_like(a, np.nan))
    with pytest.raises(SpecError, match="Did you mean 'hand'"):
        arm.regressor(q, v, a, ["hnd"])
    with pytest.raises(SpecError, match="2 sets of parameters for 5 rows"):
        arm.inverse(q, v, a, Values.of({"body:hand.mass": [1.0, 2.0]}))
    with pytest.raises(SpecError, match="one set of parameters, got 2"):
        arm.inertias(["hand"], Values.of({"body:hand.mass": [1.0, 2.0]}))


def test_the_interface_check_sees_a_wrong_regressor(arm):
    assert check_world(arm).row("inverse is linear in inertia").outcome == "pass"

    @dataclass(frozen=True, kw_only=True, eq=False)
    class Wrong(ExplicitWorld):
        def regressor(self, q, v, a, bodies, parameters=None):
            return 1.001 * super().regressor(q, v, a, bodies, parameters)

    wrong = Wrong(scene=arm.scene, parameters=arm.parameters, kernel=arm.kernel)
    row = check_world(wrong).row("inverse is linear in inertia")
    assert row.outcome == "fail" and "is off by" in row.detail
    free = build(Scene(name="ball", mjcf=BALL))
    assert check_world(free).row("inverse is linear in inertia").outcome == "skip"
