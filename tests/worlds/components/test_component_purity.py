"""A world with components stays a pure function of its State, whatever else is in the batch."""

from dataclasses import replace

import numpy as np
import pytest
from component_cases import SCENES, arm, component, excitation, firmware, friction, hinge, servo

from sameworld.core import State, Values, rollout
from sameworld.core.rollout import loop
from sameworld.worlds.check import check_world
from sameworld.worlds.explicit import ExplicitConfig, explicit_world

#: One scene per law.
CHECKED = [n for n in SCENES if n not in ("servo_m2", "servo_m3", "servo_m5", "filtered_pd_no")]
ACCELERATION = '<sensor><accelerometer name="imu" site="tip"/></sensor>'
PLACES = '<sensor><jointpos name="encoder" joint="elbow"/></sensor>'


def same(mine, theirs, rows=slice(None)):
    for name, values in mine.items():
        np.testing.assert_array_equal(values, theirs[name][rows], err_msg=name)


@pytest.mark.parametrize("name", CHECKED)
def test_components_keep_the_contract_of_worlds(name):
    world = explicit_world(SCENES[name])
    start, actions = excitation(world, 3, 8)
    check_world(world, starts=start, actions=actions).raise_if_failed()


@pytest.mark.parametrize("name", list(SCENES))
def test_rollout_equals_looping_step_bit_for_bit(name):
    world = explicit_world(SCENES[name])
    start, actions = excitation(world, 3, 25)
    state = world.reset(start)
    fast, slow = world.rollout(state, actions), loop(world, state, actions)
    same(fast.signals, slow.signals)
    assert fast.valid.all() and slow.valid.all()


@pytest.mark.parametrize("sensor", [ACCELERATION, PLACES])
def test_sensors_agree_between_rollout_and_step(sensor):
    """Elements share a model; each sensor feels its own element's friction."""
    world = explicit_world(hinge(friction("m4", load=0.5), firmware(), more=sensor))
    start, actions = excitation(world, 4, 12)
    state = world.reset(start)
    fast, slow = world.rollout(state, actions), loop(world, state, actions)
    same(fast.signals, slow.signals)


def test_an_accelerometer_feels_the_friction_of_components():
    """A rod that friction holds still accelerates nowhere: the sensor shows gravity alone."""
    held = explicit_world(hinge(friction("m1", coulomb=1.0), more=ACCELERATION))
    result = rollout(held, Values.of({"start:elbow.pos": [1.0]}), np.zeros((1, 20, 1)))
    gravity = np.linalg.norm(result.signals["imu"][0], axis=-1)
    np.testing.assert_allclose(gravity, 9.81, rtol=1e-3)


def test_a_clone_goes_its_own_way_and_the_original_its_own():
    world = explicit_world(servo("m6", slew="yes"))
    start, actions = excitation(world, 2, 20)
    state = world.reset(start)
    for tick in range(5):
        state = world.step(state, actions[:, tick])
    before = {name: array.copy() for name, array in state.arrays.items()}
    branches = state.rows([0, 0, 1])
    other = world.rollout(branches, actions[[1, 0, 1]][:, 5:])
    for name, array in before.items():
        np.testing.assert_array_equal(array, state.arrays[name])
    own = world.rollout(state, actions[:, 5:])
    same({n: v[1:2] for n, v in other.signals.items()}, own.signals, [0])
    same({n: v[2:3] for n, v in other.signals.items()}, own.signals, [1])
    assert np.abs(other.signals["elbow.pos"][0] - own.signals["elbow.pos"][0]).max() > 1e-3


def test_a_saved_state_goes_on_bit_for_bit():
    world = explicit_world(arm())
    start, actions = excitation(world, 2, 20)
    state = world.reset(start)
    for tick in range(7):
        state = world.step(state, actions[:, tick])
    saved = State.from_arrays({n: a.copy() for n, a in state.to_arrays().items()})
    fresh = explicit_world(arm())
    same(fresh.rollout(saved, actions[:, 7:]).signals, world.rollout(state, actions[:, 7:]).signals)


@pytest.mark.parametrize("name", ["servo_m6", "arm", "dynamic_car"])
def test_company_and_order_do_not_matter(name):
    world = explicit_world(SCENES[name])
    start, actions = excitation(world, 5, 15)
    whole = rollout(world, start, actions).signals
    order = [3, 0, 4, 2, 1]
    mixed = rollout(world, start.rows(order), actions[order]).signals
    same(mixed, whole, order)
    alone = rollout(world, start.rows([2]), actions[[2]]).signals
    same(alone, whole, [2])


def test_large_arenas_are_stepped_in_smaller_parts():
    """A scene that asks for a gigabyte of memory per simulation does not get 256 of them."""
    scene = servo("m1")
    roomy = scene.mjcf.replace("<worldbody>", '<size memory="1G"/><worldbody>')
    world = explicit_world(replace(scene, mjcf=roomy))
    start, actions = excitation(world, 6, 3)
    result = rollout(world, start, actions)
    same(result.signals, rollout(explicit_world(scene), start, actions).signals)


def test_batches_larger_than_what_is_stepped_together_agree():
    world = explicit_world(servo("m1"))
    start, actions = excitation(world, 3, 4)
    rows = [k % 3 for k in range(260)]
    whole = rollout(world, start.rows(rows), actions[rows]).signals
    same(whole, rollout(world, start, actions).signals, rows)


def test_elements_of_different_parameters_do_as_alone():
    """Masses edit models, a moved centre of mass their layout, friction nothing but a column."""
    world = explicit_world(servo("m4"))
    start, actions = excitation(world, 6, 15)
    parameters = Values.of(
        {
            "body:rod.mass": [0.3, 0.3, 0.5, 0.3, 0.2, 0.3],
            "body:rod.com.x": [0.0, 0.02, 0.0, 0.01, 0.0, 0.0],
            "component:friction.coulomb": [0.01, 0.05, 0.1, 0.0, 0.03, 0.01],
        }
    )
    state = world.reset(start, parameters)
    fast, slow = world.rollout(state, actions), loop(world, state, actions)
    assert fast.valid.all()
    same(fast.signals, slow.signals)
    for row in range(6):
        alone = rollout(world, start.rows([row]), actions[[row]], parameters=parameters.rows([row]))
        same(alone.signals, fast.signals, [row])


def test_edited_and_compiled_models_move_alike():
    """Editing fields of a compiled model gives what compiling the edited scene gives."""
    values = Values.of(
        {
            "body:rod.mass": [0.5],
            "joint:elbow.armature": [0.004],
            "component:friction.load": [0.1],
        }
    )
    runs = []
    for edits in ("fields", "recompile"):
        world = explicit_world(servo("m4"), ExplicitConfig(edits=edits))
        start, actions = excitation(world, 1, 30)
        runs.append(rollout(world, start, actions, parameters=values).signals["elbow.pos"])
    np.testing.assert_allclose(runs[0], runs[1], atol=1e-9)


def test_models_are_given_back_as_they_were():
    """Joints keep the MJCF's own friction and damping after components wrote theirs."""
    scene = hinge(friction("m4"), firmware(), joint='damping=".07" frictionloss=".03"')
    world = explicit_world(scene)
    start, actions = excitation(world, 4, 6)
    first = rollout(world, start, actions).signals
    model = world.kernel.model
    assert (model.dof_frictionloss[0], model.dof_damping[0]) == (0.03, 0.07)
    world.step(world.reset(start), actions[:, 0])
    assert (model.dof_frictionloss[0], model.dof_damping[0]) == (0.03, 0.07)
    same(rollout(world, start, actions).signals, first)


def test_friction_of_the_joint_and_of_its_component_add_up():
    own = 'damping=".05" frictionloss=".1"'
    added = friction("m1", coulomb=0.2, viscous=0.03)
    start, actions = Values.of({"start:elbow.pos": [2.0]}), np.zeros((1, 60, 1))
    both = rollout(explicit_world(hinge(added, joint=own)), start, actions)
    whole = rollout(
        explicit_world(hinge(friction("m1", coulomb=0.3, viscous=0.08))), start, actions
    )
    np.testing.assert_allclose(both.signals["elbow.pos"], whole.signals["elbow.pos"], atol=1e-3)


def test_rows_of_components_hold_their_memory_in_the_order_of_the_signals():
    """Two cars in one scene show their own speed and steering."""
    one = SCENES["kinematic_car"]
    body = one.mjcf.split("<worldbody>")[1].split("</worldbody>")[0]
    twin = body
    for name in ("chassis", "x", "y", "heading", "shell"):
        twin = twin.replace(f'name="{name}"', f'name="{name}2"')
    scene = replace(
        one,
        mjcf=one.mjcf.replace(body, body + twin),
        components=(
            component("a", "kinematic_car", "body:chassis"),
            component("b", "kinematic_car", "body:chassis2"),
        ),
    )
    start = Values.of({"start:a.speed": [1.0], "start:b.speed": [2.0], "start:b.steer": [0.1]})
    seen = explicit_world(scene)
    signals = seen.observe(seen.reset(start))
    found = {n: float(v[0]) for n, v in signals.items() if n[:2] in ("a.", "b.")}
    assert found == {"a.speed": 1.0, "a.steer": 0.0, "b.speed": 2.0, "b.steer": 0.1}


# ---- failures ----------------------------------------------------------------------------------


def test_an_exploding_element_fails_with_a_reason_and_leaves_others_alone():
    world = explicit_world(servo("m4"))
    start, actions = excitation(world, 3, 20)
    gains = Values.of({"component:firmware.resistance": [4.0, 1e-14, 4.0]})
    state = world.reset(start, gains)
    fast, slow = world.rollout(state, actions), loop(world, state, actions)
    same(fast.signals, slow.signals)
    assert fast.valid[[0, 2]].all() and not fast.valid[1, -1]
    assert fast.reason[0] == fast.reason[2] == ""
    assert fast.reason[1].startswith("control of actuator 'motor' became NaN, infinite or huge")
    assert np.isnan(fast.signals["elbow.pos"][1, -1])
    alone = rollout(world, start, actions, parameters=Values.of({}).broadcast(3))
    same({n: v[[0, 2]] for n, v in fast.signals.items()}, alone.signals, [0, 2])


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("component:friction.coulomb", np.nan, "component:friction.coulomb is not finite"),
        ("component:firmware.delay", np.inf, "component:firmware.delay is not finite"),
        ("component:friction.stribeck_velocity", 0.0, "friction of joint 'elbow' became NaN"),
        ("body:rod.mass", -1.0, "mass"),
    ],
)
def test_absurd_parameters_fail_their_own_element_only(name, value, reason):
    world = explicit_world(servo("m4"))
    start = Values.of({"start:elbow.pos": [0.1, 0.1], "start:elbow.vel": [0.0, 0.0]})
    usual = world.parameters[name].value
    state = world.reset(start, Values.of({name: [usual, value]}))
    result = world.rollout(state, np.zeros((2, 5, 1)))
    assert result.valid[0].all() and not result.valid[1, -1]
    assert reason in result.reason[1]
    slow = loop(world, state, np.zeros((2, 5, 1)))
    same(result.signals, slow.signals)


def test_a_start_that_is_not_finite_fails_its_own_element():
    world = explicit_world(SCENES["kinematic_car"])
    start = Values.of({"start:drive.speed": [1.0, np.nan]})
    result = rollout(world, start, np.zeros((2, 5, 2)))
    assert result.valid[0].all() and not result.valid[1].any()
    assert result.reason[1] == "its start is not finite"


def test_models_are_given_back_after_a_law_fails():
    """A bug in a law must not leave its friction behind in a shared model."""
    world = explicit_world(hinge(friction("m1", coulomb=0.5)))
    state = world.reset(Values.of({"start:elbow.pos": [1.0]}))
    with pytest.raises(IndexError):
        world.kernel.composed.step(
            state.arrays["integration"],
            state.parameters.array,
            world.kernel.models.assign(state.parameters.array, frozenset()),
            np.zeros((0, 1)),
        )
    assert world.kernel.model.dof_frictionloss[0] == 0.0
