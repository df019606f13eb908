"""One step of a machine with one of everything is a step of MuJoCo, whatever the integrator."""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
import pytest
from diff_cases import Case, States, Steps, case_of, in_c, random_states, relative
from machine import machine, machine_states

TOLERANCE = {"pyramidal": 1e-9, "elliptic": 1e-6}
COUNT = 60


class Compared(NamedTuple):
    case: Case
    ours: Steps
    theirs: Steps
    states: States
    tolerance: float


@pytest.fixture(
    scope="module", params=[("Euler", "pyramidal"), ("implicitfast", "elliptic")], ids="-".join
)
def compared(request) -> Compared:
    integrator, cone = request.param
    model = machine(integrator=integrator, cone=cone)
    case, states = case_of(model), machine_states(model, COUNT)
    return Compared(case, case.stepped(states), in_c(model, states), states, TOLERANCE[cone])


@pytest.mark.parametrize("quantity", ["acceleration", "v", "q"])
def test_a_step_is_that_of_mujoco(compared, quantity) -> None:
    error = relative(getattr(compared.ours, quantity), getattr(compared.theirs, quantity))
    assert error.max() <= compared.tolerance


def test_the_states_reach_limits_friction_contacts_and_force_ranges(compared) -> None:
    model, data = compared.case.model, mujoco.MjData(compared.case.model)
    kinds, held, full = set(), np.zeros(COUNT, bool), np.zeros(COUNT, bool)
    elbow = model.jnt_dofadr[model.joint("elbow").id]
    for k in range(COUNT):
        data.qpos[:], data.qvel[:] = compared.states.q[k], compared.states.v[k]
        data.ctrl[:] = compared.states.control[k]
        mujoco.mj_forward(model, data)
        kinds |= {mujoco.mjtConstraint(int(t)).name for t in data.efc_type}
        held[k] = np.isin(data.qfrc_actuator[elbow], model.jnt_actfrcrange[1])
        full[k] = np.isin(data.actuator_force[1], model.actuator_forcerange[1])
    wanted = {"EQUALITY", "FRICTION_DOF", "FRICTION_TENDON", "LIMIT_JOINT", "LIMIT_TENDON"}
    assert {f"mjCNSTR_{kind}" for kind in wanted} < kinds
    assert any("CONTACT" in kind for kind in kinds)
    assert (held & ~full).any()
    assert (~held & full).any()


# ---- flags ---------------------------------------------------------------------------------------

ARM = """
<geom name="floor" type="plane" size="1 1 1"/>
<body name="arm" pos="0 0 .06" gravcomp=".6">
  <joint name="joint0" axis="0 1 .2" damping=".4" stiffness="3" springref=".3" range="-.1 .1"
    limited="true" frictionloss=".3" actuatorfrcrange="-1 1"/>
  <geom name="arm" type="capsule" size=".05" fromto="0 0 0 .4 0 0"/>
  <body pos=".4 0 0">
    <joint name="joint1" type="slide" axis="1 0 0" damping="2"/>
    <geom name="hand" size=".05"/>
  </body>
</body>
<body pos="1 0 .1">
  <joint name="joint2" axis="1 0 0"/><geom name="wheel" size=".1" pos="0 .02 0"/>
</body>
"""
ACTUATORS = """<tendon><fixed name="t" range="0 .1" limited="true" frictionloss=".1" damping=".3"
  stiffness="2"><joint joint="joint0" coef="1"/></fixed></tendon>
<actuator>
<position joint="joint0" kp="9" kv="1" ctrlrange="-.1 .1" ctrllimited="true" damping=".2"/>
</actuator>
<equality><joint joint1="joint1" joint2="joint0"/></equality>"""
#: All flags that change the motion, in groups whose members leave each other something to change.
FLAGS = (
    ("constraint",),
    ("spring", "damper", "actuation"),
    ("damper", "equality", "frictionloss", "refsafe", "clampctrl", "filterparent"),
    ("limit", "gravity", "contact", "eulerdamp", "spring"),
)


def arm(flags: tuple[str, ...], integrator: str) -> mujoco.MjModel:
    disabled = " ".join(f'{flag}="disable"' for flag in flags)
    return mujoco.MjModel.from_xml_string(f"""<mujoco>
        <option integrator="{integrator}" timestep=".005"><flag {disabled}/></option>
        <default><geom solref=".006 1"/></default>
        <worldbody>{ARM}</worldbody>{ACTUATORS}</mujoco>""")


@pytest.mark.parametrize("flags", FLAGS, ids="+".join)
def test_disabled_flags_disable_the_same_things(flags) -> None:
    model = arm(flags, "implicitfast" if "spring" in flags else "Euler")
    states = random_states(model, COUNT, 2, spread=0.15)
    ours, theirs = case_of(model).stepped(states), in_c(model, states)
    assert relative(ours.v, theirs.v).max() <= 1e-9


@pytest.mark.parametrize("flag", sorted({flag for flags in FLAGS for flag in flags}))
def test_every_flag_makes_a_difference_in_the_scene(flag) -> None:
    model, usual = arm((flag,), "Euler"), arm((), "Euler")
    states = random_states(model, COUNT, 2, spread=0.15)
    assert np.abs(in_c(model, states).v - in_c(usual, states).v).max() > 1e-4
