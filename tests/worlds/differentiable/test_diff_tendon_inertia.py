"""Armature of tendons, and armature and damping of actuators that pull them, act as in MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from diff_cases import case_of, in_c, random_states, relative

from sameworld.core import Scene, Values, jacobian, rollout
from sameworld.worlds.differentiable import differentiable_world
from sameworld.worlds.explicit import explicit_world

#: An arm, a lone body, a ball joint, and two bodies that only slide, with tendons of every kind.
SCENE = """<mujoco>
<compiler angle="radian"/>
<option timestep=".004" integrator="{integrator}"/>
<custom><numeric name="control_period" data=".008"/></custom>
<default><geom type="box" size=".1 .05 .04" contype="0" conaffinity="0"/></default>
<worldbody>
<site name="wall" pos=".2 .1 1.4"/>
<body name="upper" pos="0 0 1"><joint name="shoulder" axis="0 1 .2" frictionloss=".1"/>
  <geom pos=".1 0 0"/><site name="upper" pos=".1 .02 .05"/>
  <body pos=".25 0 0"><joint name="elbow" axis=".1 1 0" range="-.2 .3" damping=".05"/>
    <geom pos=".1 .01 0"/><site name="lower" pos=".2 0 .03"/>
    <body pos=".2 0 0"><joint name="wrist" type="ball" armature=".001"/><geom pos=".02 .03 0"/>
      <site name="hand" pos=".1 .05 0"/></body></body></body>
<body name="stone" pos="1 0 1"><freejoint name="stone"/><geom pos=".02 .03 .01"/>
  <site name="stone" pos=".05 .05 .04"/></body>
<body name="left" pos="2 0 1"><joint name="left" type="slide" axis="0 0 1"/><geom/></body>
<body name="right" pos="2 1 1"><joint name="right" type="slide" axis="0 0 1"/><geom/>
  <site name="right"/></body>
</worldbody>
<tendon>
  <fixed name="arm" armature="{fixed}" limited="true" range="-.1 .2">
    <joint joint="shoulder" coef="1.2"/><joint joint="elbow" coef="-.7"/></fixed>
  <fixed name="belt"><joint joint="left" coef="1"/><joint joint="right" coef="-2"/></fixed>
  <spatial name="rope" armature="{spatial}" damping=".3" frictionloss=".05">
    <site site="wall"/><site site="upper"/><pulley divisor="2"/><site site="lower"/>
    <site site="hand"/></spatial>
  <spatial name="leash"><site site="wall"/><site site="stone"/></spatial>
  <spatial name="bare" damping=".1"><site site="wall"/><site site="right"/></spatial>
</tendon>
<actuator>
  <motor name="arm" tendon="arm" gear="2" armature="{armature}" damping="{damping}"/>
  <motor name="belt" tendon="belt" gear="1.5" armature="{armature}" damping="{damping}"/>
  <motor name="rope" tendon="rope" gear="-1.3" armature="{armature}" damping="{damping}"/>
  <motor name="leash" tendon="leash" armature="{armature}" damping="{damping}"/>
  <motor name="elbow" joint="elbow" gear="3" armature="{armature}" damping="{damping}"/>
</actuator></mujoco>"""
HEAVY = {"fixed": 0.3, "spatial": 0.4, "armature": 0.2, "damping": 0.5}
LIGHT = {"fixed": 0.0, "spatial": 0.0, "armature": 0.0, "damping": 0.0}


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
def test_a_step_with_heavy_tendons_is_that_of_mujoco(integrator: str) -> None:
    model = mujoco.MjModel.from_xml_string(SCENE.format(integrator=integrator, **HEAVY))
    case, states = case_of(model), random_states(model, 60, spread=0.4)
    ours, theirs = case.stepped(states), in_c(model, states)
    for quantity in ("acceleration", "v", "q"):
        error = relative(getattr(ours, quantity), getattr(theirs, quantity))
        assert error.max() < 1e-9, quantity


@pytest.mark.parametrize("part", sorted(HEAVY))
def test_every_part_of_a_heavy_tendon_moves_mujoco(part: str) -> None:
    models = [
        mujoco.MjModel.from_xml_string(SCENE.format(integrator="Euler", **(HEAVY | {part: value})))
        for value in (HEAVY[part], 0.0)
    ]
    states = random_states(models[0], 5)
    assert np.abs(in_c(models[0], states).v - in_c(models[1], states).v).max() > 1e-4


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(name="belt", mjcf=SCENE.format(integrator="Euler", **LIGHT))


WRT = tuple(f"actuator:{a}.{p}" for a in ("arm", "belt", "rope") for p in ("armature", "damping"))


def test_parameters_of_actuators_on_tendons_act_as_in_the_explicit_world(scene: Scene) -> None:
    values = Values.of({name: 0.1 + 0.05 * k for k, name in enumerate(WRT)})
    start = Values.of({"start:shoulder.vel": 1.0, "start:left.vel": 2.0, "start:elbow.vel": -1.0})
    actions = np.random.default_rng(0).normal(size=(1, 8, 5))
    worlds = explicit_world(scene), differentiable_world(scene)
    theirs, ours = (rollout(w, start, actions, parameters=values) for w in worlds)
    usual = rollout(worlds[1], start, actions)
    for name, signal in theirs.signals.items():
        assert np.abs(ours.signals[name] - signal).max() < 1e-9, name
    assert np.abs(usual.signals["left.vel"] - ours.signals["left.vel"]).max() > 1e-3
    exact = worlds[1].gradient(start, actions, values, WRT, seed=0)
    numeric = jacobian(
        worlds[1], start, actions, parameters=values, wrt=WRT, method="differences"
    ).derivatives
    for name, slope in numeric.items():
        size = np.maximum(np.abs(slope).max(axis=(0, 1, 2)), 1e-4)
        assert (np.abs(exact[name] - slope).max(axis=(0, 1, 2)) < 1e-5 * size).all(), name
