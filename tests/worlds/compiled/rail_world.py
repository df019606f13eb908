"""A cart on a vertical rail by hand: an engine of ten lines on a compiled scene."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sameworld.core import Scene
from sameworld.core.belief import Belief
from sameworld.worlds.compiled.batches import checked_action, checked_actions, rollout_of
from sameworld.worlds.compiled.believed import Believed
from sameworld.worlds.compiled.config import CompileConfig
from sameworld.worlds.compiled.tables import Tables, make_tables

RAIL = Scene(
    name="rail",
    mjcf="""<mujoco><option timestep="0.002" integrator="Euler"/>
    <worldbody><body name="cart" pos="0 0 1">
      <joint name="rail" type="slide" axis="0 0 1" damping="2"/>
      <geom name="box" type="box" size=".1 .1 .1" mass="1.5" contype="0" conaffinity="0"/>
    </body></worldbody>
    <actuator><motor name="push" joint="rail"/></actuator>
    <keyframe><key name="other" qpos="9"/><key name="home" qpos=".25"/></keyframe></mujoco>""",
)
PERIOD = 0.01


@dataclass(frozen=True, kw_only=True, eq=False)
class RailWorld:
    """MuJoCo's Euler step of one sliding body, with damping taken implicitly."""

    scene: Scene
    parameters: Belief
    tables: Tables

    @property
    def spec(self):
        return self.tables.spec

    @cached_property
    def believed(self):
        return Believed(tables=self.tables, scene=self.scene, parameters=self.parameters)

    def with_belief(self, belief):
        told = self.believed.updated(belief)
        return replace(self, scene=told.scene, parameters=told.parameters)

    def reset(self, start, parameters=None, *, seed=0):
        starts, values = self.believed.asked(start, parameters)
        state = self.believed.state({"moving": self.tables.placed(starts)}, values, seed=seed)
        return self.tables.sensing.begun(state, self.raw)

    def step(self, state, action):
        force = checked_action(self.spec, action, state.batch)
        moving = self.moved(state.arrays["moving"], state.parameters, force)
        after = replace(state, arrays={"moving": moving}, time=state.time + self.spec.period)
        return self.tables.sensing.followed(state, after, self.raw)

    def moved(self, moving, values, force):
        """``[q, v]`` one control period later."""
        h, (q, v) = float(self.tables.model.opt.timestep), moving.T
        mass, damping = values.column("body:cart.mass"), values.column("joint:rail.damping")
        for _ in range(self.tables.compiled.substeps):
            pull = force[:, 0] + mass * values.column("option:gravity.z") - damping * v
            v = v + h * pull / (mass + h * damping)
            q = q + h * v
        return np.stack([q, v], axis=1)

    def observe(self, state):
        return self.tables.sensing.observed(state, self.raw)

    def raw(self, state):
        return self.shown(state.arrays["moving"])

    def shown(self, moving):
        bare = np.zeros((*moving.shape[:-1], 0))
        seen = self.tables.signals(moving[..., :1].copy(), moving[..., 1:].copy(), bare)
        return dict(seen)

    def rollout(self, state, actions):
        actions = checked_actions(self.spec, actions, state.batch)
        rows = [state.arrays["moving"]]
        for tick in range(actions.shape[1]):
            rows.append(self.moved(rows[-1], state.parameters, actions[:, tick]))
        signals = self.tables.sensing.rolled(self.shown(np.stack(rows, axis=1)), state)
        return rollout_of(self.spec, signals, actions, {})


def rail_world(scene=RAIL, *, capabilities=("rollout",)):
    tables = make_tables(scene, CompileConfig(period=PERIOD), capabilities=capabilities)
    believed = Believed.of(tables, scene)
    return RailWorld(scene=believed.scene, parameters=believed.parameters, tables=tables)
