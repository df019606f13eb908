"""Scenes with components, each beside the plain MJCF that comes nearest to it.

The plain twin has Coulomb friction and damping on the joints, position servos in place of
controllers and, for the car, motors: what one would write without components.
"""

from dataclasses import dataclass

from sameworld.core import Component, Scene

__all__ = ["ComponentScene", "component_scenes"]

_SERVO = """
<mujoco model="servo"><option timestep="0.002"/>
<custom><numeric name="control_period" data="0.01"/></custom><worldbody>
  <body name="horn"><joint name="elbow" axis="0 1 0" armature=".003" {joint}/>
    <geom name="rod" type="capsule" fromto="0 0 0 0 0 -.15" size=".01" mass=".3"
      contype="0" conaffinity="0"/></body>
</worldbody><actuator>{actuator}</actuator></mujoco>
"""
_CAR = """
<mujoco model="car"><option timestep="0.005" gravity="0 0 0"/>
<custom><numeric name="control_period" data="0.02"/></custom><worldbody>
  <body name="car">
    <joint name="x" type="slide" axis="1 0 0" {joint}/>
    <joint name="y" type="slide" axis="0 1 0" {joint}/>
    <joint name="heading" axis="0 0 1" {joint}/>
    <geom name="chassis" type="box" size=".25 .1 .05" mass="3.5" contype="0" conaffinity="0"/>
  </body></worldbody>{actuators}</mujoco>
"""
_PLAIN_JOINT = 'frictionloss=".05" damping=".02"'
_FIRMWARE: dict[str, float | str] = {
    "kp": 400.0,
    "gain": 0.0035,
    "voltage": 7.5,
    "torque_constant": 0.9,
    "resistance": 4.0,
    "delay": 0.006,
}


@dataclass(frozen=True, kw_only=True)
class ComponentScene:
    """A scene with components and its plain twin.

    Attributes:
        scene: MJCF with components.
        plain: MJCF without, of the same bodies, timestep and control period.
    """

    scene: Scene
    plain: str


def component_scenes() -> dict[str, ComponentScene]:
    """Servos with friction models M1, M4, M6; an arm; cars."""
    servos = {f"servo_{model}": _servo(model) for model in ("m1", "m4", "m6")}
    cars = {kind: _car(kind) for kind in ("kinematic_car", "dynamic_car")}
    return {**servos, "impedance_arm": _arm(), **cars}


def _component(name: str, kind: str, target: str, **settings: float | str) -> Component:
    return Component(name=name, type=kind, version=1, target=target, settings=settings)


def _servo(model: str) -> ComponentScene:
    components = (
        _component("friction", "gear_friction", "joint:elbow", model=model),
        _component("firmware", "firmware_servo", "actuator:motor", **_FIRMWARE),
    )
    motor = '<motor name="motor" joint="elbow"/>'
    servo = '<position name="motor" joint="elbow" kp="2" kv=".2"/>'
    return ComponentScene(
        scene=Scene(
            name=f"servo_{model}",
            mjcf=_SERVO.format(joint="", actuator=motor),
            components=components,
        ),
        plain=_SERVO.format(joint=_PLAIN_JOINT, actuator=servo),
    )


def _arm_mjcf(joint: str, actuator: str) -> str:
    axes = ("0 0 1", "0 1 0") * 4
    bodies = "".join(
        f'<body name="link{i}" pos="0 0 {0.2 if i else 0.0}"><joint name="j{i}" axis="{axes[i]}" '
        f'armature=".05" {joint}/><geom name="tube{i}" type="capsule" '
        f'fromto="0 0 0 0 0 .2" size=".05" mass="{4 - 0.5 * i}" contype="0" conaffinity="0"/>'
        for i in range(7)
    )
    actuators = "".join(actuator.format(i=i) for i in range(7))
    return (
        '<mujoco model="arm"><option timestep="0.002" integrator="implicitfast"/>'
        '<custom><numeric name="control_period" data="0.02"/></custom>'
        f"<worldbody>{bodies}{'</body>' * 7}</worldbody>"
        f"<actuator>{actuators}</actuator></mujoco>"
    )


def _arm() -> ComponentScene:
    parts: list[Component] = []
    for i in range(7):
        parts.append(
            _component(
                f"friction{i}", "gear_friction", f"joint:j{i}", model="m4", coulomb=0.3, viscous=1.0
            )
        )
        parts.append(
            _component(
                f"impedance{i}",
                "joint_impedance",
                f"actuator:a{i}",
                stiffness=200.0,
                damping=5.0,
                lag=0.03,
            )
        )
    motor = '<motor name="a{i}" joint="j{i}"/>'
    servo = '<position name="a{i}" joint="j{i}" kp="200" kv="5"/>'
    return ComponentScene(
        scene=Scene(name="impedance_arm", mjcf=_arm_mjcf("", motor), components=tuple(parts)),
        plain=_arm_mjcf('frictionloss=".3" damping="1"', servo),
    )


def _car(kind: str) -> ComponentScene:
    motors = "".join(f'<motor name="push_{j}" joint="{j}"/>' for j in ("x", "y", "heading"))
    return ComponentScene(
        scene=Scene(
            name=kind,
            mjcf=_CAR.format(joint="", actuators=""),
            components=(_component("drive", kind, "body:car"),),
        ),
        plain=_CAR.format(joint=_PLAIN_JOINT, actuators=f"<actuator>{motors}</actuator>"),
    )
