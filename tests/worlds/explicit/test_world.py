"""The explicit world as a World: channels, starts, purity, the fast path."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sameworld.core import Scene, SceneError, SpecError, State, Values, jacobian, rollout
from sameworld.core.manifolds import quat_exp
from sameworld.core.rollout import loop
from sameworld.worlds import build, check_world
from sameworld.worlds.explicit import ExplicitConfig, explicit_world


def random_start(world, batch, seed, scale=0.3):
    rng = np.random.default_rng(seed)
    mean = world.spec.start.mean.array
    noise = scale * rng.normal(size=(batch, mean.shape[1]))
    lift = np.array([1.0 if n.endswith("pos.z") else 0.0 for n in world.spec.start.names])
    return Values(names=world.spec.start.names, array=mean + noise + lift)


def worst(first, second):
    return max(np.abs(first.signals[n] - second.signals[n]).max() for n in second.signals)


@pytest.mark.parametrize("name", ["cube", "pendulum", "zoo"])
def test_the_explicit_world_keeps_the_contract(name, request):
    check_world(build(request.getfixturevalue(name))).raise_if_failed()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["cube", "pendulum", "zoo"])
def test_rollout_equals_looping_step_bit_for_bit(name, threads, request):
    world = explicit_world(request.getfixturevalue(name), ExplicitConfig(threads=threads))
    rng = np.random.default_rng(1)
    masses = [n for n in world.parameters.names if n.endswith(".mass")]
    factors = rng.uniform(0.5, 2, (6, len(masses)))
    means = [world.parameters[n].value for n in masses]
    values = Values(names=tuple(masses), array=factors * means)
    state = world.reset(random_start(world, 6, 0), values)
    actions = rng.uniform(-1, 1, (6, 30, world.spec.action_size))
    fast, slow = world.rollout(state, actions), loop(world, state, actions)
    assert fast.valid.all()
    assert worst(fast, slow) == 0.0
    assert np.array_equal(fast.time, slow.time)


def test_splitting_a_batch_for_memory_changes_nothing(zoo):
    large = explicit_world(zoo)
    small = explicit_world(zoo, ExplicitConfig(memory=2**16, models=2))
    start = random_start(large, 9, 3)
    masses = Values.of({"body:cube.mass": np.linspace(0.2, 1.0, 9)})
    actions = np.random.default_rng(0).uniform(-1, 1, (9, 12, large.spec.action_size))
    first = rollout(large, start, actions, parameters=masses)
    second = rollout(small, start, actions, parameters=masses)
    assert worst(first, second) == 0.0
    assert len(small.kernel.models) <= 2


def test_a_saved_state_resumes_bit_for_bit_in_contact(cube, tmp_path):
    world = build(cube)
    state = world.reset(Values.of({"start:cube.pos.z": 0.08, "start:cube.vel.x": [1.0, 2.0]}))
    none = np.zeros((2, 0))
    for _ in range(10):
        state = world.step(state, none)
    np.savez(tmp_path / "state.npz", **state.to_arrays())
    with np.load(tmp_path / "state.npz") as flat:
        resumed = State.from_arrays(dict(flat))
    actions = np.zeros((2, 20, 0))
    assert worst(world.rollout(state, actions), world.rollout(resumed, actions)) == 0.0


def test_signals_carry_the_time_of_their_state():
    """Free fall from rest: after k steps of symplectic Euler the speed is exactly k g dt."""
    mjcf = """<mujoco><option timestep="0.01"/><worldbody>
      <body name="ball" pos="0 0 5"><freejoint/><geom size=".1"/></body></worldbody>
      <sensor><framelinvel name="speed" objtype="body" objname="ball"/></sensor></mujoco>"""
    world = build(Scene(name="fall", mjcf=mjcf))
    result = rollout(world, Values.none(), np.zeros((1, 20, 0)))
    expected = -9.81 * 0.01 * np.arange(21)
    assert np.allclose(result.signals["ball.vel"][0, :, 2], expected, atol=1e-12)
    assert np.allclose(result.signals["speed"][0, :, 2], expected, atol=1e-12)


def test_an_accelerometer_reads_gravity_on_the_last_row_too():
    mjcf = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
      <body name="slider"><joint name="x" type="slide" axis="1 0 0"/>
        <geom size=".1" mass="2" contype="0" conaffinity="0"/><site name="s"/></body></worldbody>
      <actuator><motor name="push" joint="x"/></actuator>
      <sensor><accelerometer name="imu" site="s"/></sensor></mujoco>"""
    world = build(Scene(name="imu", mjcf=mjcf))
    actions = np.array([[[2.0], [4.0], [6.0]]])
    result = rollout(world, Values.none(), actions)
    # A row is measured before the next command: it feels the command that led to it.
    assert np.allclose(result.signals["imu"][0, :, 0], [0.0, 1.0, 2.0, 3.0], atol=1e-9)
    assert np.allclose(result.signals["imu"][0, :, 2], 9.81, atol=1e-9)


vectors = st.tuples(*[st.floats(-3, 3)] * 3).filter(lambda v: 1e-3 < np.linalg.norm(v) < 3.1)


@given(rotation=vectors, spin=vectors)
@settings(max_examples=25, deadline=None)
def test_starts_place_a_free_body_by_rotation_vector_and_body_rates(cube_world, rotation, spin):
    names = {f"start:cube.rot.{a}": v for a, v in zip("xyz", rotation, strict=True)}
    names |= {f"start:cube.omega.{a}": v for a, v in zip("xyz", spin, strict=True)}
    seen = cube_world.observe(cube_world.reset(Values.of(names)))
    assert np.allclose(seen["cube.quat"][0], quat_exp(np.array(rotation)), atol=1e-12)
    assert np.allclose(seen["cube.omega"][0], spin)


@pytest.fixture(scope="module")
def cube_world(cube):
    return build(cube)


def test_channels_know_their_starts_bounds_and_units(pendulum, cube):
    pivot = build(pendulum).spec.observation("pivot.pos")
    assert (pivot.start, pivot.rate) == (("start:pivot.pos",), ("start:pivot.vel",))
    assert np.allclose((pivot.low, pivot.high), (-np.pi / 2, np.pi / 2))
    assert (pivot.unit, pivot.tolerance) == ("rad", 0.05)
    turn = build(cube).spec.observation("cube.quat")
    assert turn.start == tuple(f"start:cube.rot.{a}" for a in "xyz")
    assert turn.rate == tuple(f"start:cube.omega.{a}" for a in "xyz")


def test_actions_are_named_like_actuators_with_bounds_and_unit(pendulum, zoo):
    torque = build(pendulum).spec.actions[0]
    assert (torque.name, torque.unit, torque.low, torque.high) == ("torque", "N m", -2, 2)
    units = {c.name: c.unit for c in build(zoo).spec.actions}
    assert units == {"servo": "rad", "speed": "m/s", "late": "", "muscle": "", "motor": ""}


def test_a_keyframe_named_home_gives_the_default_start():
    mjcf = """<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1"/></body>
      </worldbody><keyframe><key name="other" qpos="1"/><key name="home" qpos=".4"/></keyframe>
      </mujoco>"""
    world = build(Scene(name="key", mjcf=mjcf))
    assert world.spec.start["start:j.pos"].value == 0.4
    assert world.observe(world.reset(Values.none()))["j.pos"] == [0.4]


def test_control_period_is_read_from_the_mjcf_and_overridden_by_the_config(cube):
    assert build(cube).spec.period == 0.008
    assert build(cube, config=ExplicitConfig(period=0.02)).spec.period == 0.02
    with pytest.raises(SceneError, match=r"no whole multiple.*nearest that is: 0\.008"):
        build(cube, config=ExplicitConfig(period=0.0075))


def test_substeps_hold_the_action(pendulum):
    fine = build(pendulum)
    coarse = build(pendulum, config=ExplicitConfig(period=0.01))
    actions = np.random.default_rng(0).uniform(-1, 1, (1, 8, 1))
    slow = rollout(coarse, Values.none(), actions).signals["pivot.pos"]
    fast = rollout(fine, Values.none(), np.repeat(actions, 5, axis=1)).signals["pivot.pos"]
    assert np.array_equal(slow, fast[:, ::5])


def test_mujocos_own_delays_start_with_the_value_of_the_start(zoo):
    world = build(zoo)
    result = rollout(world, Values.of({"start:elbow.pos": 0.3}), np.zeros((1, 9, 5)))
    late, now = result.signals["encoder"][0], result.signals["elbow.pos"][0]
    assert np.allclose(late[:2], 0.3, atol=1e-3) and late[0] == 0.3
    assert np.allclose(late[2:], 0.5 * (now[:-2] + now[1:-1]), atol=1e-3)  # 1.5 ticks ago
    assert np.abs(late[2:] - now[2:]).max() > 5e-3


def test_differences_see_a_mass_through_the_fast_path(pendulum):
    world = build(pendulum)
    wrt = ("body:rod.mass", "start:pivot.pos")
    actions = np.full((2, 40, 1), 0.5)
    derivatives = jacobian(world, Values.none(2), actions, wrt=wrt).derivatives["pivot.pos"]
    assert np.all(np.abs(derivatives[:, -1, 0]) > 1e-6)
    assert np.allclose(derivatives[:, 0, 0, 1], 1.0)


def test_components_and_contexts_are_refused(pendulum):
    from dataclasses import replace

    from sameworld.core import Component, Context

    part = Component(name="drag", type="stribeck", version=1, target="joint:pivot")
    with pytest.raises(SceneError, match="'drag'"):
        build(replace(pendulum, components=(part,)))
    world = build(pendulum)
    with pytest.raises(SpecError, match="not from a context"):
        world.reset(Context(observations={}, actions=np.zeros((1, 0, 1))))


def test_signals_of_one_name_are_refused():
    mjcf = """<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom size=".1"/></body>
      </worldbody><actuator><motor name="q" joint="j"/></actuator>
      <sensor><jointpos name="q" joint="j"/></sensor></mujoco>"""
    with pytest.raises(SceneError, match="several signals are called 'q'"):
        build(Scene(name="twice", mjcf=mjcf))


def test_a_kind_that_does_not_exist_names_those_that_do(pendulum):
    with pytest.raises(SceneError, match="'explicit'"):
        build(pendulum, "explicitly")
