"""Scenes of the explicit world's tests, and an offscreen OpenGL where one works."""

import os

import pytest

from sameworld.core import Scene

os.environ.setdefault("MUJOCO_GL", "egl")

TETRAHEDRON = b"""v 0 0 0
v .1 0 0
v 0 .12 0
v 0 0 .14
f 1 3 2
f 1 2 4
f 1 4 3
f 2 3 4
"""

CUBE = """
<mujoco model="cube"><option timestep="0.002"/>
<custom><numeric name="control_period" data="0.008"/></custom>
<worldbody>
  <geom name="floor" type="plane" size="2 2 .1"/>
  <body name="cube" pos="0 0 .2"><freejoint/>
    <geom name="box" type="box" size=".05 .06 .05" mass=".4" friction=".3 .02 .0001"/></body>
</worldbody></mujoco>
"""

PENDULUM = """
<mujoco model="pendulum"><option timestep="0.002"/><worldbody>
  <body name="rod" pos="0 0 1"><joint name="pivot" axis="0 1 0" damping=".02" range="-90 90"/>
    <geom name="bob" type="capsule" fromto="0 0 0 0 0 -.5" size=".02" mass=".5"/></body>
</worldbody><actuator><motor name="torque" joint="pivot" ctrlrange="-2 2"/></actuator></mujoco>
"""

#: One of everything: joints, shapes, frames, meshes, actuators, delays, sensors of all stages.
ZOO = """
<mujoco model="zoo"><option timestep="0.002"/>
<custom><numeric name="control_period" data="0.004"/></custom>
<asset><mesh name="t" file="t.obj"/></asset>
<worldbody>
  <geom name="floor" type="plane" size="2 2 .1"/>
  <body name="cube" pos="0 0 .06"><freejoint/>
    <geom name="box" type="box" size=".05 .05 .05" mass=".4" friction=".3 .02 .0001" condim="6"/>
  </body>
  <body name="rock" pos=".5 0 .1" euler="0 0 20"><freejoint/><frame euler="10 20 30">
    <geom name="shard" type="mesh" mesh="t" friction="1.2"/>
    <frame quat="1 0 1 0"><geom type="sphere" size=".03" pos=".1 0 0" mass=".01"/></frame>
  </frame></body>
  <body name="q" pos="1 0 1">
    <joint name="elbow" axis="0 1 0" armature=".01" range="-90 90" damping=".1"/>
    <geom name="upper" type="capsule" fromto="0 0 0 0 0 -.3" size=".02"/>
    <body name="r" pos="0 0 -.3"><joint name="wrist" type="ball"/>
      <geom name="lower" type="capsule" fromto="0 0 0 0 .1 0" size=".04" mass=".2"/>
      <site name="s"/></body></body>
  <body name="c" pos="0 1 1"><joint name="rail" type="slide" axis="1 0 0"/>
    <geom name="egg" type="ellipsoid" size=".1 .05 .06" solref="-1000 -20"/>
    <body pos="0 0 -.1"><joint name="tip" axis="0 1 0"/>
      <geom type="cylinder" size=".03 .05"/></body></body>
</worldbody>
<actuator>
  <position name="servo" joint="elbow" kp="10" kv="1" ctrlrange="-1 1" forcerange="-5 5"/>
  <velocity name="speed" joint="rail" kv="3"/>
  <motor name="late" joint="tip" gear="2" delay=".004" nsample="4"/>
  <general name="muscle" joint="tip" dyntype="filter" dynprm=".05" gaintype="affine"
    gainprm="1 .1 .1" biastype="affine" biasprm=".1 -.02 -.03"/>
  <dcmotor name="motor" joint="rail" motorconst=".05" resistance="2" inductance=".001"
    cogging=".01 7 .2" lugre="10 .1 .02 .03 .1" damping=".1" armature=".02"/>
</actuator>
<sensor>
  <accelerometer name="imu" site="s"/>
  <jointpos name="encoder" joint="elbow" delay=".006" nsample="6" interp="linear"/>
  <framepos name="tracker" objtype="xbody" objname="cube"/>
</sensor></mujoco>
"""


@pytest.fixture(scope="session")
def cube() -> Scene:
    return Scene(name="cube", mjcf=CUBE)


@pytest.fixture(scope="session")
def pendulum() -> Scene:
    return Scene(name="pendulum", mjcf=PENDULUM)


@pytest.fixture(scope="session")
def zoo() -> Scene:
    return Scene(name="zoo", mjcf=ZOO, assets={"t.obj": TETRAHEDRON})
