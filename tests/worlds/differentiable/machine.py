"""A scene with one of everything that the core computes besides shapes of contacts."""

from __future__ import annotations

import mujoco
import numpy as np
from diff_cases import States, random_states

BODIES = """
<geom name="floor" type="plane" size="1 1 1" contype="1" conaffinity="1"/>
<site name="wall" pos=".3 .2 1.1"/>
<body name="upper" pos="0 0 1" euler="10 0 20">
  <joint name="shoulder" axis="0 1 .3" pos=".1 0 0" damping=".3" armature=".02" frictionloss=".2"
    stiffness="4" springref=".2" range="-.5 .6" margin=".05"/>
  <geom name="upper" pos=".02 0 .01" euler="30 0 10"/>
  <site name="upper" pos=".1 .05 0"/>
  <body name="lower" pos=".3 0 0" euler="20 10 0" gravcomp=".7">
    <joint name="elbow" axis="1 0 .2" damping=".1" actuatorfrcrange="-.6 .5"/>
    <joint name="rail" type="slide" axis="0 1 1" range="-.1 .1" solreflimit="-900 -40"
      frictionloss=".1" stiffness="30"/>
    <geom name="lower"/>
    <site name="lower" pos=".1 0 .04"/>
    <body name="wrist" pos=".3 .1 0">
      <joint name="wrist" type="ball" pos=".05 0 .02" stiffness=".6" damping=".05" range="0 .7"
        frictionloss=".02" armature=".001"/>
      <geom name="wrist"/>
      <site name="wrist" pos=".02 .05 .04"/>
    </body>
  </body>
</body>
<body name="drone" pos="1 0 .3">
  <joint name="drone" type="free" damping=".2" stiffness="3" frictionloss=".05" armature=".01"/>
  <geom name="drone"/>
  <body name="rotor" pos="0 .1 .1"><joint name="rotor" axis="0 0 1" damping=".01"/>
    <geom name="rotor"/><site name="rotor" pos=".05 .02 0"/></body>
</body>
<body name="stone" pos="2 0 .06" euler="0 3 0"><freejoint name="stone"/>
  <geom name="stone" pos=".01 .02 0" contype="1" conaffinity="1"/></body>
<body name="brick" pos="2.6 0 .06"><freejoint name="brick"/>
  <geom name="brick" contype="1" conaffinity="1" condim="4"/></body>
<body name="cart" pos="3 0 .3"><joint name="cart" type="slide" axis="1 0 0" damping="1"/>
  <geom name="cart"/></body>
<body name="twin" pos="3 .3 .3"><joint name="twin" type="slide" axis="1 0 0"/>
  <geom name="twin"/></body>
<body name="door" pos="4 0 .3"><joint name="door" axis="0 0 1"/>
  <geom name="door" pos=".1 0 0"/></body>
<body name="latch" pos="4.2 0 .3"><joint name="latch" type="free"/><geom name="latch"/></body>
<body name="mount" pos="5 0 .4"><freejoint name="mount"/><geom name="mount"/></body>
"""

MORE = """
<tendon>
  <fixed name="belt" range="-.3 .3" limited="true" frictionloss=".1" stiffness="2" damping=".3">
    <joint joint="shoulder" coef="1.2"/><joint joint="elbow" coef="-.6"/></fixed>
  <spatial name="rope" stiffness="20" springlength=".1 .3" damping=".5" range="0 .9"
    limited="true" margin=".02">
    <site site="wall"/><site site="upper"/><pulley divisor="2"/><site site="lower"/>
    <site site="wrist"/></spatial>
  <fixed name="coupler"><joint joint="cart" coef="1"/></fixed>
  <fixed name="follower"><joint joint="twin" coef="2"/></fixed>
</tendon>
<actuator>
  <motor name="shoulder" joint="shoulder" gear="3" armature=".01" damping=".04"
    ctrlrange="-1 1" ctrllimited="true"/>
  <position name="elbow" joint="elbow" kp="5" kv=".4" forcerange="-1 .8" forcelimited="true"/>
  <velocity name="rail" joint="rail" kv="2" forcerange="-2 2" forcelimited="true"/>
  <general name="belt" tendon="belt" gainprm="2 .3 .1" gaintype="affine" biastype="affine"
    biasprm=".1 -1 -.2"/>
  <position name="rope" tendon="rope" kp="3" kv=".2" gear="1.5"/>
  <motor name="rotor" jointinparent="rotor"/>
</actuator>
<equality>
  <tendon tendon1="coupler" tendon2="follower" polycoef=".01 1.1 .2 0 0"/>
  <connect body1="door" body2="latch" anchor=".2 .01 0" solref=".01 1"/>
  <weld body1="mount" relpose="0 0 0 1 0 0 0" solimp=".8 .9 .01"/>
  <joint joint1="rotor" joint2="shoulder" polycoef="0 .8 .1 0 0"/>
</equality>
"""


BENCH = """<mujoco>
<option timestep=".002" integrator="implicitfast" cone="{cone}"/>
<default><geom type="box" size=".1 .05 .05" contype="0" conaffinity="0"/></default>
<worldbody>
<geom name="floor" type="plane" size="1 1 1" contype="1" conaffinity="1"/>
<site name="wall" pos=".3 .2 1.1"/>
<body name="upper" pos="0 0 1" euler="10 0 20">
  <joint name="shoulder" axis="0 1 .3" pos=".1 0 0" damping=".3" armature=".02" frictionloss=".2"
    stiffness="4" springref="10" range="-9 9" margin=".05"/>
  <geom name="upper" pos=".02 0 .01" euler="30 0 10"/>
  <site name="upper" pos=".1 .05 0"/>
  <body name="lower" pos=".3 0 0" euler="20 10 0" gravcomp=".7">
    <joint name="rail" type="slide" axis="0 1 1" actuatorfrcrange="-5 5"/>
    <geom name="lower"/>
    <site name="lower" pos=".1 0 .04"/>
    <body name="wrist" pos=".3 .1 0">
      <joint name="wrist" type="ball" pos=".05 0 .02" stiffness=".6" damping=".05"/>
      <geom name="wrist" pos=".01 .02 0"/>
    </body>
  </body>
</body>
<body name="stone" pos="2 0 .048"><freejoint name="stone"/>
  <geom name="stone" friction=".8 .006 .0002" pos=".01 .02 0" contype="1" conaffinity="1"/>
</body>
<body name="bead" pos="2.05 .01 .145"><freejoint name="bead"/>
  <geom name="bead" friction=".7 .004 .00015" type="sphere" size=".05" contype="1"
    conaffinity="1" condim="4"/></body>
<body name="cart" pos="3 0 .3"><joint name="cart" type="slide" axis="1 0 0" damping="1"/>
  <geom name="cart" pos=".02 0 0"/></body>
</worldbody>
<tendon>
  <fixed name="belt" range="-.03 .3" limited="true" frictionloss=".1" stiffness="2" damping=".3">
    <joint joint="shoulder" coef="1.2"/><joint joint="rail" coef="-.6"/></fixed>
  <spatial name="rope" stiffness="20" springlength=".1 .3" damping=".5">
    <site site="wall"/><site site="upper"/><site site="lower"/></spatial>
</tendon>
<actuator>
  <motor name="shoulder" joint="shoulder" gear="3" armature=".01" damping=".04"/>
  <position name="rail" joint="rail" kp="5" kv=".4" forcerange="-4 4" forcelimited="true"/>
  <general name="belt" tendon="belt" gainprm="2 .3 .1" gaintype="affine" biastype="affine"
    biasprm=".1 -1 -.2"/>
</actuator>
<equality><joint joint1="cart" joint2="shoulder" polycoef="0 .8 .1 0 0"/></equality>
</mujoco>"""
"""A smaller scene: things on the floor and on each other, an arm, tendons, motors.

Coefficients of friction differ: where two geoms have the same, the derivative jumps.
"""


PUSH = """<mujoco>
<option timestep=".002" cone="{cone}" integrator="Euler"/>
<worldbody>
<geom name="floor" type="plane" size="1 1 1"/>
<body name="cart" pos="0 0 .055"><joint name="cart" type="slide" axis="1 0 0" damping=".5"
  frictionloss=".1"/><geom name="cart" type="sphere" size=".05"/></body>
<body name="log" pos=".098 0 .049" euler="90 0 0"><freejoint name="log"/>
  <geom name="log" type="capsule" size=".05 .1" condim="4"/></body>
</worldbody>
<actuator><position name="push" joint="cart" kp="30" kv="1"/></actuator>
</mujoco>"""
"""A motor pushes a capsule that lies on the floor."""


def bench_states(model: mujoco.MjModel, count: int, seed: int = 0) -> States:
    """States near the reference configuration, stone and bead slightly deep and moving."""
    states = random_states(model, count, seed, spread=0.01)
    for joint, height in (("stone", 0.048), ("bead", 0.145)):
        states.q[:, int(model.joint(joint).qposadr[0]) + 2] = height
    return States(q=states.q, v=0.2 * states.v, control=states.control)


def machine(
    *, integrator: str = "Euler", cone: str = "pyramidal", flag: str = ""
) -> mujoco.MjModel:
    """The scene."""
    return mujoco.MjModel.from_xml_string(f"""<mujoco>
        <compiler angle="radian"/>
        <option timestep=".002" integrator="{integrator}" cone="{cone}"><flag {flag}/></option>
        <default><geom type="box" size=".1 .05 .05" contype="0" conaffinity="0"/></default>
        <worldbody>{BODIES}</worldbody>{MORE}</mujoco>""")


def machine_states(model: mujoco.MjModel, count: int, seed: int = 0) -> States:
    """States near the reference configuration, the two stones on or just above the floor."""
    rng = np.random.default_rng(seed)
    states = random_states(model, count, seed, spread=0.3)
    for name in ("stone", "brick"):
        at = int(model.joint(name).qposadr[0])
        states.q[:, at + 2] = 0.05 + rng.uniform(-0.004, 0.002, count)
        states.q[:, at + 3 : at + 7] = [1.0, 0.0, 0.0, 0.0] + 0.02 * rng.normal(size=(count, 4))
    return States(q=states.q, v=states.v, control=2 * states.control)
