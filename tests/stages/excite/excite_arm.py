"""A two-joint arm in a vertical plane, with servos or motors, and what is asked of it."""

import math
from functools import cache

from sameworld.core import Belief, Parameter, Scene
from sameworld.core.world import World
from sameworld.stages.excite import ExciteConfig, Limit
from sameworld.worlds import build

NOISE = 1e-3
MASS, DAMPING, GAIN = "body:lower.mass", "joint:elbow.damping", "actuator:elbow_servo.kp"
LIMITS = (
    Limit(signal="shoulder.pos", low=-1.0, high=0.8, speed=2.0, acceleration=15.0),
    Limit(signal="elbow.pos", low=-1.2, high=1.2, speed=3.0, acceleration=25.0),
)

_SERVOS = """
    <position name="shoulder_servo" joint="shoulder" kp="60" kv="4" ctrlrange="-2 2"/>
    <position name="elbow_servo" joint="elbow" kp="20" kv="1" ctrlrange="-2 2"/>"""
_MOTORS = """
    <motor name="shoulder_motor" joint="shoulder" ctrlrange="-30 30" gear="2"/>
    <motor name="elbow_motor" joint="elbow" ctrlrange="-15 15"/>"""


def mjcf(actuators: str) -> str:
    return f"""<mujoco model="planar">
  <custom><numeric name="control_period" data="0.02"/></custom>
  <compiler angle="radian"/>
  <option timestep="0.01" integrator="implicitfast"><flag contact="disable"/></option>
  <default><geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.3"/></default>
  <worldbody><body name="upper" pos="0 0 1">
    <joint name="shoulder" type="hinge" axis="0 1 0" damping="0.2" armature="0.02"/>
    <geom mass="1"/>
    <body name="lower" pos="0 0 -0.3">
      <joint name="elbow" type="hinge" axis="0 1 0" damping="0.1" armature="0.01"/>
      <geom mass="0.6"/><site name="tip" pos="0 0 -0.3"/>
    </body>
  </body></worldbody>
  <actuator>{actuators}</actuator>
  <sensor><framepos name="tip" objtype="site" objname="tip"/></sensor>
</mujoco>"""


def positive(name: str, value: float, std: float = math.log(2)) -> Parameter:
    return Parameter(
        name=name, value=value, low=value / 8, high=8 * value, std=std * value, transform="log"
    )


@cache
def servo_arm() -> World:
    belief = Belief(parameters=(positive(MASS, 0.6), positive(DAMPING, 0.1), positive(GAIN, 20.0)))
    return build(Scene(name="planar", mjcf=mjcf(_SERVOS), belief=belief))


@cache
def motor_arm() -> World:
    belief = Belief(parameters=(positive(MASS, 0.6), positive(DAMPING, 0.1)))
    return build(Scene(name="planar", mjcf=mjcf(_MOTORS), belief=belief))


def asked(**options: object) -> ExciteConfig:
    given: dict[str, object] = {
        "free": (MASS, DAMPING, GAIN),
        "noise": {"*.pos": NOISE},
        "limits": LIMITS,
        "duration": 1.6,
        "terms": 3,
        "settle": 1.0,
        "candidates": 8,
        "polished": 1,
        "evaluations": 30,
    }
    return ExciteConfig(**(given | options))  # type: ignore[arg-type]
