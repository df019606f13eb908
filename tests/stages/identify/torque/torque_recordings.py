"""A three-joint arm whose true inertia, friction and torques are known."""

from functools import cache

import numpy as np

from sameworld.core import Belief, Channel, Episode, Parameter, Scene, Values
from sameworld.stages.identify.torque.friction import friction_signals
from sameworld.worlds import build

ARM = """
<mujoco model="arm"><option timestep="0.002"/>
<worldbody><body name="base"><geom type="sphere" size=".1" mass="3"/>
  <body name="upper" pos="0 0 .3"><joint name="yaw" axis="0 0 1"/>
    <inertial mass="2" pos=".02 -.03 .1" fullinertia=".03 .04 .02 .002 -.003 .001"/>
    <body name="middle" pos="0 .05 .1"><joint name="shoulder" axis="0 1 0"/>
      <inertial mass="1.5" pos=".01 .02 .15" fullinertia=".03 .03 .01 0 .001 0"/>
      <body name="lower" pos="0 0 .3"><joint name="elbow" axis="1 0 0"/>
        <inertial mass="1.1" pos="0 .02 .12" fullinertia=".02 .02 .01 0 .001 0"/>
        <body name="load" pos="0 0 .25">
          <inertial mass=".4" pos="0 0 .03" diaginertia=".001 .0012 .0009"/></body>
      </body></body></body></body></worldbody>
<sensor><jointactuatorfrc name="tau1" joint="yaw"/><jointactuatorfrc name="tau2" joint="shoulder"/>
  <jointactuatorfrc name="tau3" joint="elbow"/></sensor></mujoco>
"""
JOINTS = ("yaw", "shoulder", "elbow")
FRICTION = np.array([0.3, 0.2, 0.1])
DAMPING = np.array([0.1, 0.2, 0.05])
BIAS = np.array([0.05, -0.1, 0.02])
#: True values of what the scene has wrong.
TRUTH = {"body:lower.mass": 1.4, "body:load.mass": 0.55, "body:middle.com.z": 0.13}


@cache
def arm():
    """The world as given: joint losses unknown, some inertias off."""
    losses = [
        Parameter(name=f"joint:{joint}.{part}", value=0.0, low=0.0, high=5.0, unit=unit)
        for joint in JOINTS
        for part, unit in (("damping", "N m s/rad"), ("frictionloss", "N m"))
    ]
    return build(Scene(name="arm", mjcf=ARM)).with_belief(Belief(parameters=tuple(losses)))


def swing(seconds, seed, period=0.002):
    """Smooth motion: time [N], positions, velocities, accelerations [N, 3]."""
    rng = np.random.default_rng([seed, 7])
    time = period * np.arange(round(seconds / period))
    rates = 2 * np.pi * np.array([0.23, 0.41, 0.67, 1.1])
    wave = rng.normal(size=(3, 4, 2)) / np.array([1.0, 1.5, 2.5, 4.0])[None, :, None]
    angle = rates[:, None] * time
    basis = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    slope = np.stack([np.cos(angle), -np.sin(angle)], axis=1) * rates[:, None, None]
    curve = -basis * rates[:, None, None] ** 2
    return time, *(np.einsum("jkb,kbn->nj", wave, part) for part in (basis, slope, curve))


def coloured(rng, shape, rho):
    """Autoregressive noise of unit variance [N, V]."""
    out = np.empty(shape)
    out[0] = rng.normal(size=shape[1])
    for k in range(1, shape[0]):
        out[k] = rho * out[k - 1] + np.sqrt(1 - rho**2) * rng.normal(size=shape[1])
    return out


def recorded(seed=0, *, seconds=8.0, noise=0.02, rho=0.0, truth=TRUTH, name="swing", width=0.004):
    """An episode of the true arm with Dahl friction, damping, offsets and torque noise."""
    world, rng = arm(), np.random.default_rng([seed, 1])
    time, q, v, a = swing(seconds, seed)
    torque = world.inverse(q, v, a, Values.of(truth)) + DAMPING * v + BIAS
    shape = friction_signals("dahl", v, 0.002, np.array([width]))[:, 0]
    torque += FRICTION * shape + noise * coloured(rng, v.shape, rho)
    channels = []
    for k, joint in enumerate(JOINTS):
        channels += [
            Channel(name=f"{joint}.pos", time=time, values=q[:, k], unit="rad"),
            Channel(name=f"{joint}.vel", time=time, values=v[:, k], unit="rad/s"),
            Channel(name=f"tau{k + 1}", time=time, values=torque[:, k], unit="N m"),
        ]
    return Episode(id=name, channels=tuple(channels), source="mujoco")
