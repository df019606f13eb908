"""Small scenes with components, and one component of every kind with values that excite it."""

from dataclasses import replace

import numpy as np

from sameworld.core import Component, Scene, Values, rollout
from sameworld.worlds.components import Clock, Motion
from sameworld.worlds.explicit import explicit_world

FIRMWARE = {
    "kp": 400.0,
    "kd": 2.0,
    "gain": 0.0035,
    "voltage": 7.5,
    "torque_constant": 0.9,
    "resistance": 4.0,
}
IMPEDANCE = {"stiffness": 60.0, "damping": 4.0}
FILTERED = {"kp": 20.0, "kv": 0.2, "limit": 10.0, "drive_gain": 0.5}
VOLTAGE = {"torque_constant": 0.3, "resistance": 1.5, "limit": 6.0}


def component(name, kind, target, **settings):
    return Component(name=name, type=kind, version=1, target=target, settings=settings)


def hinge(*components, timestep=0.002, period=0.01, gravity=-9.81, joint="", more=""):
    """A rod of 0.3 kg that hangs from a driven hinge; 0 hangs down."""
    return Scene(
        name="hinge",
        mjcf=f"""
<mujoco model="hinge"><option timestep="{timestep}" gravity="0 0 {gravity}"/>
<custom><numeric name="control_period" data="{period}"/></custom><worldbody>
  <body name="rod"><joint name="elbow" axis="0 1 0" armature=".003" {joint}/>
    <geom name="link" type="capsule" fromto="0 0 0 0 0 -.15" size=".01" mass=".3"
      contype="0" conaffinity="0"/><site name="tip" pos="0 0 -.15"/></body>
</worldbody><actuator><motor name="motor" joint="elbow"/></actuator>{more}</mujoco>
""",
        components=components,
    )


def slider(*components, timestep=0.002, period=0.01, mass=2.0, gear=1.0):
    """A block on a rail."""
    return Scene(
        name="slider",
        mjcf=f"""
<mujoco model="slider"><option timestep="{timestep}"/>
<custom><numeric name="control_period" data="{period}"/></custom><worldbody>
  <body name="block"><joint name="rail" type="slide" axis="1 0 0"/>
    <geom name="box" type="box" size=".1 .1 .05" mass="{mass}" contype="0" conaffinity="0"/></body>
</worldbody><actuator><motor name="motor" joint="rail" gear="{gear}"/></actuator></mujoco>
""",
        components=components,
    )


def car(kind, timestep=0.005, period=0.02, **settings):
    """A chassis of 3.5 kg on the plane."""
    return Scene(
        name="car",
        mjcf=f"""
<mujoco model="car"><option timestep="{timestep}" gravity="0 0 0"/>
<custom><numeric name="control_period" data="{period}"/></custom><worldbody>
  <body name="chassis"><joint name="x" type="slide" axis="1 0 0"/>
    <joint name="y" type="slide" axis="0 1 0"/><joint name="heading" axis="0 0 1"/>
    <geom name="shell" type="box" size=".25 .1 .05" mass="3.5" contype="0" conaffinity="0"/></body>
</worldbody></mujoco>
""",
        components=(component("drive", kind, "body:chassis", **settings),),
    )


def arm(*, joints=3, compensation=1.0, friction="m4", period=0.01):
    """A serial arm with friction and impedance control on every joint."""
    axes = ("0 1 0", "0 1 0", "1 0 0")
    bodies = "".join(
        f'<body name="link{i}" pos="0 0 {0.2 if i else 0}"><joint name="j{i}" axis="{axes[i]}" '
        f'armature=".02"/><geom name="tube{i}" type="capsule" fromto="0 0 0 0 .03 .2" size=".03" '
        f'mass="{1.5 - 0.3 * i}" contype="0" conaffinity="0"/>'
        for i in range(joints)
    )
    motors = "".join(f'<motor name="a{i}" joint="j{i}"/>' for i in range(joints))
    parts = []
    for i in range(joints):
        if friction:
            parts.append(component(f"friction{i}", "gear_friction", f"joint:j{i}", model=friction))
        parts.append(
            component(
                f"impedance{i}",
                "joint_impedance",
                f"actuator:a{i}",
                compensation=compensation,
                lag=0.02,
                delay=0.013,
                **IMPEDANCE,
            )
        )
    return Scene(
        name="arm",
        mjcf='<mujoco model="arm"><option timestep="0.002"/><custom>'
        f'<numeric name="control_period" data="{period}"/></custom><worldbody>{bodies}'
        f"{'</body>' * joints}</worldbody><actuator>{motors}</actuator></mujoco>",
        components=tuple(parts),
    )


def friction(model="m4", **values):
    return component("friction", "gear_friction", "joint:elbow", model=model, **values)


def firmware(**values):
    return component("firmware", "firmware_servo", "actuator:motor", **{**FIRMWARE, **values})


def servo(model="m4", **values):
    """A hinge with gear friction and firmware."""
    return hinge(friction(model), firmware(delay=0.007, **values))


def scenes():
    """One scene per law and setting, by name."""
    found = {f"servo_{m}": servo(m) for m in ("m1", "m2", "m3", "m4", "m5", "m6")}
    found["firmware_inputs"] = servo("m4", inputs="voltage+enable", slew="yes", goal_speed=2.0)
    found["voltage_motor"] = hinge(component("drive", "voltage_motor", "actuator:motor", **VOLTAGE))
    for disturbance in ("no", "yes"):
        found[f"filtered_pd_{disturbance}"] = slider(
            component("pd", "filtered_pd", "actuator:motor", disturbance=disturbance, **FILTERED),
            component("friction", "asymmetric_friction", "joint:rail", coulomb_negative=0.3),
        )
    found["arm"] = arm()
    found["kinematic_car"] = car("kinematic_car", delay=0.03)
    found["dynamic_car"] = car("dynamic_car", delay=0.03)
    return found


SCENES = scenes()


def excitation(world, batch, ticks, seed=0):
    """Starts [B, S] and piecewise constant actions [B, T, A] that move everything."""
    rng = np.random.default_rng(seed)
    spec = world.spec
    names = spec.start.names
    start = Values(names=names, array=rng.uniform(-0.4, 0.4, (batch, len(names))))
    knots = rng.uniform(-0.8, 0.8, (batch, -(-ticks // 4), spec.action_size))
    actions = np.repeat(knots, 4, axis=1)[:, :ticks]
    for column, channel in enumerate(spec.actions):
        if channel.name.endswith(".voltage"):
            actions[..., column] = 7 + actions[..., column]
        elif channel.name.endswith(".enable"):
            actions[..., column] = 1.0
        elif channel.name.endswith(".throttle"):
            actions[..., column] = 1.5 + actions[..., column]
        elif channel.name.endswith(".steering"):
            actions[..., column] *= 0.3
    return start, actions


def simulated(scene, start, actions, parameters=None):
    """Signals of one element under actions [T, A]."""
    world = explicit_world(scene)
    result = rollout(
        world, Values.of(start), np.asarray(actions, float)[None], parameters=parameters
    )
    assert result.valid.all(), result.reason
    return {name: values[0] for name, values in result.signals.items()}, result.time


def motion(position, velocity, *, load=0.0, drive=0.0, command=0.0, inputs=None, substep=0):
    """What a law sees of elements [B] with one component each."""

    def column(value):
        return np.broadcast_to(np.asarray(value, float).reshape(-1), np.shape(position))[:, None]

    return Motion(
        position=column(position),
        velocity=column(velocity),
        load=column(load),
        drive=column(drive),
        command=column(command)[..., None],
        inputs={name: column(value) for name, value in (inputs or {}).items()},
        substep=substep,
    )


CLOCK = Clock(timestep=0.002, substeps=5)


def with_settings(scene, name, **settings):
    """The scene with other settings of one component."""
    changed = tuple(
        replace(c, settings={**c.settings, **settings}) if c.name == name else c
        for c in scene.components
    )
    return replace(scene, components=changed)
