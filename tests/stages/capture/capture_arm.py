"""A small arm, its logs, and recordings whose columns are corrupted on purpose."""

import numpy as np

from sameworld.core import Recording, Scene, Stream, Values, rollout
from sameworld.worlds import build

JOINTS = 3
_LINK = """<body name="l{k}" pos="0 0 0.3"><joint name="j{k}" axis="{axis}" range="-2.6 2.6"
 damping="{d}" frictionloss="{f}" armature="0.02"/>
 <geom type="capsule" size="0.04" fromto="0 0 0 0 0 0.3" mass="{m}" contype="0" conaffinity="0"/>
 <geom type="sphere" size="0.05" pos="0.12 0.1 0.2" mass="0.8" contype="0" conaffinity="0"/>"""
_AXES = ("0 1 0", "1 0 0", "0 1 0")


def mjcf(sensors: bool = True) -> str:
    count = range(JOINTS)
    links = "".join(
        _LINK.format(k=k + 1, axis=_AXES[k], d=0.2 / (k + 1), f=0.2 / (k + 1), m=2.0 / (k + 1))
        for k in count
    )
    servos = "".join(
        f'<position name="s{k + 1}" joint="j{k + 1}" kp="{150 / (k + 1)}" kv="{12 / (k + 1)}" '
        'ctrlrange="-2.6 2.6"/>'
        for k in count
    )
    felt = "".join(
        f'<jointactuatorfrc name="j{k + 1}.torque" joint="j{k + 1}"/>' for k in count if sensors
    )
    head = (
        '<compiler angle="radian"/><option timestep="0.002" integrator="implicitfast"/>'
        '<custom><numeric name="control_period" data="0.004"/></custom>'
    )
    return (
        f"<mujoco>{head}<worldbody>{links}{'</body>' * JOINTS}</worldbody>"
        f"<actuator>{servos}</actuator><sensor>{felt}</sensor></mujoco>"
    )


def arm_world(sensors: bool = True):
    return build(Scene(name="arm", mjcf=mjcf(sensors)))


def arm_log(world, seed=0, duration=13.0):
    """Stamps [T] and columns [T, 12]: positions, velocities, torques, commands."""
    rng = np.random.default_rng(seed)
    clock = np.arange(round(duration / world.spec.period) + 1) * world.spec.period
    tones, phases = rng.uniform(0.1, 0.5, (3, JOINTS)), rng.uniform(0, 6, (3, JOINTS))
    sizes = rng.uniform(0.25, 0.6, (3, JOINTS))
    wanted = np.sum(sizes * np.sin(2 * np.pi * tones * clock[:, None, None] + phases), axis=1)
    starts = Values.of({f"start:j{k + 1}.pos": wanted[0, k] for k in range(JOINTS)})
    run = rollout(world, starts, wanted[None, :-1])
    parts = [
        np.stack([run.signals[f"j{k + 1}.{part}"][0] for k in range(JOINTS)], axis=1)
        for part in ("pos", "vel", "torque")
    ]
    noisy = [
        p + n * rng.standard_normal(p.shape) for p, n in zip(parts, (1e-4, 1e-3, 0.01), strict=True)
    ]
    kept = slice(250, None, 5)  # at 50 Hz, once the servos have caught up
    return clock[kept], np.concatenate([*noisy, wanted], axis=1)[kept]


def recorded(time, columns, labels=None, name="log"):
    labels = tuple(f"c{k}" for k in range(columns.shape[1])) if labels is None else tuple(labels)
    stream = Stream(name=name, time=time, values=columns, labels=labels)
    return Recording(id="run", streams=(stream,))
