"""Tiny scenes of the differentiable world's tests: one hinge, an arm, a ball on a floor, a belt."""

from sameworld.core import Component, Scene


def hinge(*components: Component, joint: str = "", motor: str = 'ctrlrange="-2 2"') -> Scene:
    """A rod that hangs from a driven hinge; two engine steps per tick."""
    return Scene(
        name="hinge",
        mjcf=f"""
<mujoco model="hinge"><option timestep="0.005"/>
<custom><numeric name="control_period" data="0.01"/></custom><worldbody>
  <body name="rod"><joint name="elbow" axis="0 1 0" armature=".003" {joint}/>
    <geom name="link" type="capsule" fromto="0 0 0 0 0 -.15" size=".01" mass=".3"
      contype="0" conaffinity="0"/></body>
</worldbody><actuator><motor name="motor" joint="elbow" {motor}/></actuator></mujoco>
""",
        components=components,
    )


SERVO = Component(
    name="servo",
    type="firmware_servo",
    version=1,
    target="actuator:motor",
    settings={
        "kp": 400.0,
        "kd": 2.0,
        "gain": 0.0035,
        "voltage": 7.5,
        "torque_constant": 0.9,
        "resistance": 4.0,
    },
)

ARM = """
<mujoco model="arm"><option timestep="0.005" integrator="implicitfast"/>
<custom><numeric name="control_period" data="0.01"/></custom><worldbody>
  <body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 0" damping=".1"
      frictionloss=".02" range="-100 20" armature=".01"/>
    <geom name="upper" type="capsule" fromto="0 0 0 0 .02 -.3" size=".02" mass=".6"
      contype="0" conaffinity="0"/>
    <body name="fore" pos="0 0 -.3"><joint name="elbow" axis=".1 1 0" stiffness=".3"/>
      <geom name="fore" type="capsule" fromto="0 0 0 .2 0 0" size=".02" mass=".3"
        contype="0" conaffinity="0"/><site name="hand" pos=".2 0 0"/></body></body>
</worldbody><actuator>
  <position name="shoulder" joint="shoulder" kp="20" kv="1" ctrlrange="-1 1"/>
  <motor name="elbow" joint="elbow" gear="2" ctrlrange="-1 1"/></actuator>
<sensor><jointpos name="encoder" joint="elbow"/>
  <framepos name="tracker" objtype="site" objname="hand"/></sensor></mujoco>
"""

BALL = """
<mujoco model="ball"><option timestep="0.005"/><worldbody>
  <geom name="floor" type="plane" size="2 2 .1" friction=".4"/>
  <body name="ball" pos="0 0 .0495"><freejoint/>
    <geom name="ball" type="sphere" size=".05" mass=".4" friction=".3"/></body>
</worldbody></mujoco>
"""

BELT = """
<mujoco model="belt"><option timestep="0.005"/><worldbody>
  <body name="left"><joint name="left" type="slide" axis="0 0 1"/>
    <geom name="left" size=".05" mass=".5" contype="0" conaffinity="0"/></body>
  <body name="right" pos=".4 0 0"><joint name="right" axis="0 1 0"/>
    <geom name="right" type="capsule" fromto="0 0 0 .2 0 0" size=".02" mass=".2"
      contype="0" conaffinity="0"/></body>
</worldbody>
<tendon><fixed name="belt" stiffness="30" damping=".5"><joint joint="left" coef="1"/>
  <joint joint="right" coef="-.2"/></fixed></tendon>
<actuator><motor name="winch" tendon="belt" ctrlrange="-2 2"/></actuator>
<sensor><tendonpos name="belt" tendon="belt"/></sensor></mujoco>
"""

SCENES = {
    "arm": Scene(name="arm", mjcf=ARM),
    "ball": Scene(name="ball", mjcf=BALL),
    "belt": Scene(name="belt", mjcf=BELT),
    "servo": hinge(SERVO, motor=""),
}
