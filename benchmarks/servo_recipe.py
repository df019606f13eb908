"""Servo pendulum benches as episodes and scenes: shared by ``servo_bam`` and others."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sameworld.core import Belief, Channel, Component, Episode, Parameter, Scene
from sameworld.core.world import World
from sameworld.worlds import build
from sameworld.worlds.explicit import ExplicitConfig

__all__ = ["MODELS", "load", "published", "servo_world", "with_published"]

#: Friction models, from Coulomb and viscous to everything.
MODELS = ("m1", "m2", "m3", "m4", "m5", "m6")
#: Duty cycle per firmware gain and radian of error.
GAIN = {"xl330": 4096 / (2 * math.pi) / (256 * 885), "sts3250": 0.166}
VOLTAGE = {"xl330": 7.4, "sts3250": 12.0}
DUTY = {"xl330": 1.0, "sts3250": 0.97}
#: Rough values of motor constant [N m/A], resistance [ohm] and rotor inertia [kg m^2].
MOTOR = {"xl330": (0.35, 3.5, 0.002), "sts3250": (1.2, 2.5, 0.02)}
GRAVITY = 9.81
_MJCF = """<mujoco><compiler angle="radian"/>
<custom><numeric name="control_period" data="{period}"/></custom>
<option timestep="{step}" integrator="implicitfast"/>
<worldbody><body name="arm">
  <joint name="joint" axis="0 1 0" armature="{armature}"/>
  <inertial pos="0 0 -{length}" mass="{mass}" diaginertia="1e-6 1e-6 1e-6"/>
</body></worldbody>
<actuator><motor name="servo" joint="joint"/></actuator></mujoco>"""
#: Names of the source for our addresses.
_NAMES = {
    "kt": "component:firmware.torque_constant",
    "R": "component:firmware.resistance",
    "armature": "joint:joint.armature",
    "friction_base": "component:gear.coulomb",
    "friction_viscous": "component:gear.viscous",
    "friction_stribeck": "component:gear.stribeck",
    "dtheta_stribeck": "component:gear.stribeck_velocity",
    "alpha": "component:gear.stribeck_exponent",
    "load_friction_base": "component:gear.load",
    "load_friction_stribeck": "component:gear.load_stribeck",
    "load_friction_motor": "component:gear.load_drive",
    "load_friction_external": "component:gear.load_external",
    "load_friction_motor_stribeck": "component:gear.load_stribeck_drive",
    "load_friction_external_stribeck": "component:gear.load_stribeck_external",
    "load_friction_motor_quad": "component:gear.quadratic_drive",
    "load_friction_external_quad": "component:gear.quadratic_external",
}


def load(folder: Path | None, motor: str) -> tuple[Episode, ...]:
    """All runs of one motor; ids are ``TRAJECTORY_kpGAIN``.

    The firmware gain is a session parameter that is known. Of the speed only the first rows are
    kept, for the start: the servo reports it some 17 ms late. The measured supply voltage is
    not used: it sags with the motor's own current, so it knows the future of the run.

    Raises:
        SystemExit: No folder was given.
    """
    if folder is None:
        raise SystemExit(f"Give the folder of the data set: --data DIR ({motor}.npz in it).")
    with np.load(folder / f"{motor}.npz", allow_pickle=False) as data:
        log, begins = data["log"].astype(np.float64), data["start"].tolist()
    runs = json.loads((folder / f"{motor}_runs.json").read_text())
    return tuple(
        _episode(run, log[a:b]) for run, (a, b) in zip(runs, pairwise(begins), strict=True)
    )


def _episode(run: dict[str, float | str], log: NDArray[np.float64]) -> Episode:
    time = log[:, 0] - log[0, 0]
    gain = Parameter(
        name="component:firmware.kp",
        value=float(run["kp"]),
        std=0.0,
        scope="session",
        source="measured",
    )
    return Episode(
        id=f"{run['trajectory']}_kp{run['kp']}",
        channels=(
            Channel(name="joint.pos", time=time, values=log[:, 2], unit="rad", noise=0.0015),
            Channel(name="joint.vel", time=time[:2], values=log[:2, 3], unit="rad/s", noise=0.05),
            Channel(name="servo", time=time, values=log[:, 1], unit="rad", role="action"),
            Channel(name="firmware.enable", time=time, values=log[:, 7], role="exogenous"),
        ),
        session=Belief(parameters=(gain,)),
        session_id=f"kp{run['kp']}",
    )


def servo_world(
    motor: str, model: str, *, mass: float, length: float, threads: int = 1, step: float = 0.005
) -> World:
    """Pendulum on a servo with a friction model; rough values, wide bounds."""
    constant, resistance, armature = MOTOR[motor]
    text = _MJCF.format(period=0.005, step=step, armature=armature, length=length, mass=mass)
    firmware = Component(
        name="firmware",
        type="firmware_servo",
        version=1,
        target="actuator:servo",
        settings={
            "inputs": "enable",
            "kp": 1.0,
            "gain": GAIN[motor],
            "voltage": VOLTAGE[motor],
            "duty_limit": DUTY[motor],
            "torque_constant": constant,
            "resistance": resistance,
        },
    )
    gear = Component(
        name="gear",
        type="gear_friction",
        version=1,
        target="joint:joint",
        settings={"model": model, "coulomb": 0.02, "viscous": 0.01},
    )
    # The bench may stand askew: gravity's x component is g times the angle of the true vertical.
    tilt = Parameter(name="option:gravity.x", value=0.0, low=-2.0, high=2.0, unit="m/s^2")
    scene = Scene(
        name=f"{motor} bench",
        mjcf=text,
        components=(firmware, gear),
        belief=Belief(parameters=(tilt,)),
    )
    return build(scene, "explicit", config=ExplicitConfig(threads=threads))


def published(folder: Path, motor: str, model: str) -> dict[str, float]:
    """The authors' values by our addresses; the offset of the zero is a tilt of gravity."""
    record = json.loads((folder / "params" / f"{motor}_{model}.json").read_text())
    values = {_NAMES[k]: float(v) for k, v in record.items() if k in _NAMES}
    return {**values, "option:gravity.x": GRAVITY * math.sin(float(record["q_offset"]))}


def with_published(world: World, values: dict[str, float]) -> World:
    """A world that believes given values, bounds moved to hold them."""
    known = {p.name: p for p in world.parameters.parameters}
    moved = tuple(
        Parameter(
            name=name,
            value=value,
            low=min(known[name].low, value),
            high=max(known[name].high, value),
            unit=known[name].unit,
        )
        for name, value in values.items()
    )
    return world.with_belief(Belief(parameters=moved))
