"""Laws in a traced engine step, beside what the explicit world does with them step by step."""

from dataclasses import replace

import numpy as np
import pytest
from component_cases import (
    FIRMWARE,
    IMPEDANCE,
    SCENES,
    component,
    excitation,
    firmware,
    friction,
    hinge,
    slider,
)

from sameworld.core import Scene, Values
from sameworld.worlds.explicit import explicit_world

jax = pytest.importorskip("jax")
jnp = jax.numpy

from sameworld.worlds.differentiable.laws import Plant, Seen, acted, begun  # noqa: E402

BATCH, TICKS = 3, 6

#: Cars, arms and a plain motor in one scene; two laws and an own friction on one joint.
MIXED = Scene(
    name="mixed",
    mjcf="""
<mujoco model="mixed"><option timestep="0.002"/><default><geom contype="0" conaffinity="0"/>
</default><custom><numeric name="control_period" data="0.006"/></custom><worldbody>
  <body name="free" pos="0 0 5"><freejoint name="loose"/><geom size=".1" mass=".2"/></body>
  <body name="upper"><joint name="shoulder" axis="0 1 0" frictionloss=".05" damping=".02"/>
    <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".4"/>
    <body name="lower" pos="0 0 -.3"><joint name="elbow" axis="0 1 0" armature=".01"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".3"/>
      <body name="hand" pos="0 0 -.3"><joint name="wrist" axis="1 0 0" armature=".01"/>
        <geom size=".03" mass=".1"/></body></body></body>
  <body name="chassis"><joint name="x" type="slide" axis="1 0 0"/>
    <joint name="y" type="slide" axis="0 1 0"/><joint name="heading" axis="0 0 1"/>
    <geom name="shell" type="box" size=".25 .1 .05" mass="3.5"/></body>
</worldbody><actuator><motor name="plain" joint="shoulder" gear="2"/>
  <motor name="turn" joint="wrist" gear="-3" forcerange="-.2 .3"/>
  <motor name="bend" joint="elbow" gear="2"/></actuator></mujoco>""",
    components=(
        component("gear", "gear_friction", "joint:elbow", model="m5"),
        component("more", "gear_friction", "joint:elbow", model="m5", coulomb=0.02),
        component("lean", "asymmetric_friction", "joint:shoulder", offset=0.3),
        component("grease", "gear_friction", "joint:shoulder", model="m3"),
        component("drive", "dynamic_car", "body:chassis", delay=0.011),
        component("servo", "firmware_servo", "actuator:bend", inputs="enable", **FIRMWARE),
        component("soft", "joint_impedance", "actuator:turn", lag=0.01, **IMPEDANCE),
    ),
)


def geared():
    """A slider whose motor has a gear and a limited force."""
    scene = slider(
        component("drive", "voltage_motor", "actuator:motor", torque_constant=2.0, resistance=0.5),
        component("friction", "gear_friction", "joint:rail", model="m4", load=0.3),
    )
    motor = '<motor name="motor" joint="rail" gear="-4" forcerange="-.5 .7"/>'
    mjcf = scene.mjcf.replace('<motor name="motor" joint="rail" gear="1.0"/>', motor)
    assert motor in mjcf
    return replace(scene, mjcf=mjcf)


#: Scenes that bring no law and no rule beyond those of others.
LEFT_OUT = ("servo_m1", "servo_m2", "servo_m3", "servo_m5", "filtered_pd_no")
CASES = {
    **{name: SCENES[name] for name in SCENES if name not in LEFT_OUT},
    "own_friction": hinge(friction("m6"), firmware(), joint='frictionloss=".03" damping=".02"'),
    "geared": geared(),
    "mixed": MIXED,
}


class Explicit:
    """The laws of a scene as the explicit world drives them, stopped before every engine step."""

    def __init__(self, scene, seed=0):
        self.world = world = explicit_world(scene)
        start, self.actions = excitation(world, BATCH, TICKS, seed)
        state = world.reset(start, self._spread(seed))
        self.values, self.starts = state.parameters.array, start.array
        self.composed, self.rows = world.kernel.composed, state.arrays["integration"]
        models = world.kernel.models.assign(self.values, frozenset(state.parameters.names))
        self.batch = self.composed._batch(self.rows, self.values, models)

    def _spread(self, seed):
        """Component parameters that differ between elements."""
        rng = np.random.default_rng(seed)
        chosen = [p for p in self.world.parameters.parameters if p.name.startswith("component:")]
        values = {
            p.name: np.clip(p.value * rng.uniform(0.6, 1.4, BATCH), p.low, p.high) for p in chosen
        }
        return Values.of(values)

    @property
    def seen(self):
        b = self.batch
        return Seen(*(np.array(a) for a in (b.position, b.velocity, b.load, b.drive)))

    @property
    def plant(self):
        b = self.batch
        return Plant(b.masses, *b.transmission, b.own_friction, b.own_damping)

    def steps(self):
        """Before every engine step: what laws see, action, memory, substep; then act and go on."""
        with self.composed._running(self.batch) as messages:
            for tick in range(TICKS):
                for substep in range(self.composed._substeps):
                    actions = self.actions[:, tick]
                    before = (self.seen, actions, self.batch.memory.copy(), substep)
                    self.composed._laws_act(self.batch, actions, substep)
                    yield before
                    self.composed._engine_step(self.batch, tick, messages)
        assert not self.batch.failures


@pytest.fixture(scope="module", params=list(CASES))
def scene(request):
    return CASES[request.param]


def near(mine, theirs, what):
    np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12, err_msg=what)


def test_a_traced_step_acts_as_the_explicit_world_does(scene):
    explicit = Explicit(scene)
    groups = explicit.world.kernel.tables.groups
    one = lambda *given: acted(groups, *given)  # noqa: E731
    compiled = jax.jit(jax.vmap(one, in_axes=(0, 0, 0, 0, None, 0)))
    batch, count = explicit.batch, 0
    with jax.enable_x64(True):
        for seen, actions, memory, substep in explicit.steps():
            drive = compiled(explicit.values, seen, actions, memory, substep, explicit.plant)
            assert all(a.dtype == np.float64 for a in drive if a is not drive.prescribed)
            near(drive.control, batch.control, "control")
            near(drive.friction, batch.friction, "friction")
            near(drive.damping, batch.damping, "damping")
            near(drive.applied, batch.applied, "applied")
            moves = explicit.composed._touched.velocity
            near(drive.imposed, batch.imposed if moves else batch.velocity, "imposed")
            near(drive.memory, batch.memory, "memory")
            prescribed = np.any([a.law.prescribes for a in groups])
            assert np.asarray(drive.prescribed).any() == prescribed
            count += 1
    assert count == TICKS * explicit.composed._substeps


def test_memory_begins_as_in_the_explicit_world(scene):
    explicit = Explicit(scene)
    groups = explicit.world.kernel.tables.groups
    one = lambda *given: begun(groups, *given)  # noqa: E731
    with jax.enable_x64(True):
        mine = jax.jit(jax.vmap(one))(explicit.starts, explicit.values, explicit.seen)
    near(mine, explicit.composed.memory_of(explicit.rows), "memory")


@pytest.mark.parametrize("name", ["geared", "arm"])
def test_the_drive_is_the_force_that_the_engine_puts_on_the_joints(name):
    explicit = Explicit(CASES[name])
    groups, found, wanted = explicit.world.kernel.tables.groups, [], []
    one = lambda *given: acted(groups, *given).drive  # noqa: E731
    compiled = jax.jit(jax.vmap(one, in_axes=(0, 0, 0, 0, None, 0)))
    with jax.enable_x64(True):
        for seen, actions, memory, substep in explicit.steps():
            wanted.append(seen.drive)
            found.append(compiled(explicit.values, seen, actions, memory, substep, explicit.plant))
    assert np.abs(wanted[1:]).max() > 0.1
    near(np.array(found[:-1]), np.array(wanted[1:]), "drive")


# ---- derivatives -------------------------------------------------------------------------------


def swung(groups, plant, substeps, values, starts, actions):
    """A made-up motion under components: unit masses with their laws, stepped by ``scan``."""
    nv, nq = plant.friction.shape[0], plant.friction.shape[0]
    still = jnp.zeros(nv)
    seen = Seen(jnp.full(nq, 0.1), jnp.full(nv, 0.2), still, still)
    memory = begun(groups, starts, values, seen)

    def advance(carry, k):
        seen, memory = carry
        drive = acted(groups, values, seen, actions[k // substeps], memory, k % substeps, plant)
        slowed = jnp.tanh(drive.imposed) * (drive.friction + drive.damping)
        speed = drive.imposed + 0.002 * (drive.drive + drive.applied - slowed)
        position = seen.position + 0.002 * speed
        now = Seen(position, speed, -jnp.sin(position), drive.drive)
        return (now, drive.memory), position

    steps = jnp.arange(len(actions) * substeps)
    return jax.lax.scan(advance, (seen, memory), steps)[1]


def test_derivatives_through_many_steps_are_those_of_finite_differences():
    explicit = Explicit(CASES["arm"], seed=4)
    substeps = explicit.composed._substeps
    plant = jax.tree.map(lambda a: a[0], explicit.plant)
    groups = explicit.world.kernel.tables.groups
    given = (explicit.values[0], explicit.starts[0], explicit.actions[0])
    rng = np.random.default_rng(0)
    used = np.zeros(len(given[0]))
    for group in groups:
        for columns in group.fields.values():
            used[columns] = 1.0
    along = (
        used * rng.uniform(-1, 1, len(used)) * given[0],
        rng.uniform(-1, 1, given[1].shape),
        rng.uniform(-1, 1, given[2].shape),
    )

    @jax.jit
    def compiled(*given):
        run = lambda *given: swung(groups, plant, substeps, *given)  # noqa: E731
        out, slopes = jax.jvp(run, given, along)
        return out, slopes, jax.vjp(run, *given)[1](jnp.ones_like(out))

    with jax.enable_x64(True):
        _, slopes, pulled = jax.tree.map(np.asarray, compiled(*given))
        step = 1e-6
        ahead, behind = (
            compiled(*(a + s * step * b for a, b in zip(given, along, strict=True)))[0]
            for s in (1, -1)
        )
    wanted = (np.asarray(ahead) - np.asarray(behind)) / (2 * step)
    assert np.abs(wanted).max() > 1e-3
    np.testing.assert_allclose(slopes, wanted, atol=1e-6 * np.abs(wanted).max())
    reverse = sum(np.sum(a * b) for a, b in zip(pulled, along, strict=True))
    assert reverse == pytest.approx(np.sum(slopes), rel=1e-9)


def test_commands_before_the_start_do_not_spoil_derivatives():
    """Delay 0, lag 0 and a joint at rest are the usual values; derivatives there are finite."""
    world = explicit_world(hinge(friction("m6"), firmware(delay=0.0, kd=0.0)))
    explicit = Explicit(world.scene)
    plant = jax.tree.map(lambda a: a[0], explicit.plant)
    groups = explicit.world.kernel.tables.groups
    seen = Seen(*(np.zeros(1) for _ in range(4)))

    @jax.jit
    @jax.grad
    def gradient(values):
        memory = begun(groups, jnp.zeros(2), values, seen)
        drive = acted(groups, values, seen, jnp.zeros(1), memory, 0, plant)
        return jnp.sum(drive.control) + jnp.sum(drive.friction) + jnp.sum(drive.memory)

    with jax.enable_x64(True):
        found = np.asarray(gradient(world.parameters.mean.array[0]))
    assert np.isfinite(found).all() and np.abs(found).max() > 0
