"""A Franka Emika Panda without meshes, following joint targets softly; no contacts.

Frames, joint ranges, speeds and accelerations are those of the manufacturer's documentation (Franka
Control Interface, "Robot and interface specifications"). Masses, centres of mass and inertias were
identified by C. Gaz, M. Cognetti, A. Oliva, P. Robuffo Giordano, A. De Luca, "Dynamic
identification of the Franka Emika Panda robot with retrieval of feasible parameters using
penalty-based optimization", IEEE Robotics and Automation Letters 4 (2019). Stiffness and damping
of the joints are those of the joint impedance example that comes with the manufacturer's library;
armature, damping and Coulomb friction are round guesses.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sameworld.core.belief import Belief
from sameworld.core.parameters import Parameter
from sameworld.core.scene import Scene
from sameworld.stages.excite import Limit

__all__ = ["FREE", "HOME", "panda_limits", "panda_scene"]

TIMESTEP = 0.005
PERIOD = 0.01
STIFFNESS = (600.0, 600.0, 600.0, 600.0, 250.0, 150.0, 50.0)
SERVO_DAMPING = (50.0, 50.0, 50.0, 50.0, 30.0, 25.0, 15.0)
ARMATURE, DAMPING, FRICTION = 0.1, 1.0, 0.3
SPEEDS = (2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61)
ACCELERATIONS = (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)
#: Share of the manufacturer's speeds and accelerations that motions may use.
SHARE = 0.5
#: Where the flange may be [m], world frame.
BOX = ((0.1, -0.5, 0.15), (0.75, 0.5, 1.0))
HOME = (0.0, 0.0, 0.0, -1.5708, 0.0, 1.5708, -0.7853)


@dataclass(frozen=True, kw_only=True)
class _Link:
    """Frame in the link before it, joint range, mass, centre of mass, inertia about it."""

    frame: str
    low: float
    high: float
    mass: float
    com: str
    inertia: str


_LINKS = (
    _Link(
        frame='pos="0 0 0.333"',
        low=-2.8973,
        high=2.8973,
        mass=4.970684,
        com="0.003875 0.002081 -0.04762",
        inertia="0.70337 0.70661 0.009117 -0.000139 0.006772 0.019169",
    ),
    _Link(
        frame='quat="1 -1 0 0"',
        low=-1.7628,
        high=1.7628,
        mass=0.646926,
        com="-0.003141 -0.02872 0.003495",
        inertia="0.007962 0.02811 0.025995 -0.003925 0.010254 0.000704",
    ),
    _Link(
        frame='pos="0 -0.316 0" quat="1 1 0 0"',
        low=-2.8973,
        high=2.8973,
        mass=3.228604,
        com="0.027518 0.039252 -0.066502",
        inertia="0.037242 0.036155 0.01083 -0.004761 -0.011396 -0.012805",
    ),
    _Link(
        frame='pos="0.0825 0 0" quat="1 1 0 0"',
        low=-3.0718,
        high=-0.0698,
        mass=3.587895,
        com="-0.05317 0.104419 0.027454",
        inertia="0.025853 0.019552 0.028323 0.007796 -0.001332 0.008641",
    ),
    _Link(
        frame='pos="-0.0825 0.384 0" quat="1 -1 0 0"',
        low=-2.8973,
        high=2.8973,
        mass=1.225946,
        com="-0.011953 0.041065 -0.038437",
        inertia="0.035549 0.029474 0.008627 -0.002117 -0.004037 0.000229",
    ),
    _Link(
        frame='quat="1 1 0 0"',
        low=-0.0175,
        high=3.7525,
        mass=1.666555,
        com="0.060149 -0.014117 -0.010517",
        inertia="0.001964 0.004354 0.005433 0.000109 -0.001158 0.000341",
    ),
    _Link(
        frame='pos="0.088 0 0" quat="1 1 0 0"',
        low=-2.8973,
        high=2.8973,
        mass=0.735522,
        com="0.010517 -0.004252 0.061597",
        inertia="0.012516 0.010027 0.004815 -0.000428 -0.001196 -0.000741",
    ),
)

#: What is unknown: two masses, and damping, friction and stiffness of two joints.
FREE: Mapping[str, tuple[float, str]] = {
    "body:link4.mass": (_LINKS[3].mass, "kg"),
    "body:link7.mass": (_LINKS[6].mass, "kg"),
    "joint:joint2.damping": (DAMPING, "N m s/rad"),
    "joint:joint4.damping": (DAMPING, "N m s/rad"),
    "joint:joint2.frictionloss": (FRICTION, "N m"),
    "joint:joint4.frictionloss": (FRICTION, "N m"),
    "actuator:servo2.kp": (STIFFNESS[1], "N m/rad"),
    "actuator:servo4.kp": (STIFFNESS[3], "N m/rad"),
}


def panda_scene() -> Scene:
    """The arm; the eight parameters are known to about a factor of two."""
    parameters = tuple(
        Parameter(
            name=name,
            value=value,
            low=value / 4,
            high=4 * value,
            unit=unit,
            std=math.log(2) * value,
            transform="log",
        )
        for name, (value, unit) in FREE.items()
    )
    return Scene(name="panda", mjcf=_mjcf(), belief=Belief(parameters=parameters))


def panda_limits() -> tuple[Limit, ...]:
    """Half of the manufacturer's speeds and accelerations, and a box for the flange."""
    joints = tuple(
        Limit(signal=f"joint{k + 1}.pos", speed=SHARE * speed, acceleration=SHARE * acceleration)
        for k, (speed, acceleration) in enumerate(zip(SPEEDS, ACCELERATIONS, strict=True))
    )
    return (*joints, Limit(signal="flange", low=BOX[0], high=BOX[1]))


def _mjcf() -> str:
    bodies = "".join(
        f'<body name="link{k + 1}" {link.frame}>'
        f'<inertial mass="{link.mass}" pos="{link.com}" fullinertia="{link.inertia}"/>'
        f'<joint name="joint{k + 1}" range="{link.low} {link.high}"/>'
        for k, link in enumerate(_LINKS)
    )
    servos = "".join(
        f'<position name="servo{k + 1}" joint="joint{k + 1}" kp="{kp}" kv="{kv}"'
        f' ctrlrange="{link.low} {link.high}"/>'
        for k, (link, kp, kv) in enumerate(zip(_LINKS, STIFFNESS, SERVO_DAMPING, strict=True))
    )
    home = " ".join(map(str, HOME))
    return (
        '<mujoco model="panda"><compiler angle="radian" autolimits="true"/>'
        f'<custom><numeric name="control_period" data="{PERIOD}"/></custom>'
        f'<option timestep="{TIMESTEP}" integrator="implicitfast"><flag contact="disable"/>'
        "</option>"
        f'<default><joint axis="0 0 1" armature="{ARMATURE}" damping="{DAMPING}"'
        f' frictionloss="{FRICTION}"/></default>'
        f'<worldbody>{bodies}<site name="flange" pos="0 0 0.107"/>{"</body>" * 7}</worldbody>'
        f"<actuator>{servos}</actuator>"
        '<sensor><framepos name="flange" objtype="site" objname="flange"/></sensor>'
        f'<keyframe><key name="home" qpos="{home}"/></keyframe></mujoco>'
    )
