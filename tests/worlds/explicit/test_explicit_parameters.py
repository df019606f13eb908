"""Parameters by address: fields against recompilation, inertia, contact, beliefs, warnings."""

from dataclasses import replace
from operator import attrgetter

import mujoco
import numpy as np
import pytest

from sameworld.core import (
    AddressError,
    Belief,
    Parameter,
    Scene,
    SpecError,
    Values,
    rollout,
)
from sameworld.core.errors import SameworldWarning
from sameworld.worlds import build
from sameworld.worlds.compiled.contacts import colliding_pairs
from sameworld.worlds.explicit import ExplicitConfig, explicit_world

#: Bookkeeping of bounding volumes may differ in order; trajectories are compared besides.
UNORDERED = ("bvh_aabb", "bvh_nodeid", "bvh_child", "bvh_depth")


def array_fields(model):
    named = ((n, getattr(model, n)) for n in dir(model) if n[0] != "_" and n not in UNORDERED)
    fields = [n for n, v in named if isinstance(v, np.ndarray) and v.dtype.kind in "fiub"]
    return [*fields, "opt.gravity", "stat.meaninertia"]


def differing_fields(first, second, fields):
    return [n for n in fields if not same(attrgetter(n)(first), attrgetter(n)(second))]


def same(first, second):
    if np.array_equal(first, second):
        return True
    close = np.shape(first) == np.shape(second)
    return close and np.allclose(first, second, rtol=1e-9, atol=1e-11, equal_nan=True)


def moved(parameter):
    """A value near the scene's, inside the bounds and physical."""
    if ".inertia." in parameter.name:
        return 1.02 * parameter.value
    shift = 0.011 if parameter.value == 0 or parameter.unit in ("m", "rad") else 0.0
    return min(1.1 * parameter.value + shift, parameter.high)


@pytest.fixture(scope="module")
def world(zoo):
    return explicit_world(zoo)


@pytest.fixture(scope="module")
def twin(zoo):
    return explicit_world(zoo, ExplicitConfig(edits="recompile"))


def test_every_address_edits_fields_as_recompiling_does(world):
    editor = world.kernel.models.editor
    fields, wrong, idle = array_fields(world.kernel.model), {}, []
    for column, slot in enumerate(editor.slots):
        change = ((column, moved(world.parameters[slot.name])),)
        fast = editor.edit_fields(change, frozenset())
        if names := differing_fields(fast, editor.recompile(change, frozenset()), fields):
            wrong[slot.name] = names
        plain = editor.general if editor.needs_general(change) else world.kernel.model
        if not differing_fields(fast, plain, fields):
            idle.append(slot.name)
    assert not wrong
    assert not idle


def test_every_address_moves_trajectories_as_recompiling_does(world, twin):
    names = world.kernel.tables.slots[: world.kernel.tables.edits]
    values = np.repeat(world.parameters.mean.array, len(names), axis=0)
    for row, slot in enumerate(names):
        values[row, row] = moved(world.parameters[slot.name])
    parameters = Values(names=world.parameters.names, array=values)
    start = Values.of({"start:cube.omega.x": 1.0, "start:elbow.pos": 0.4, "start:rail.vel": 0.2})
    actions = np.random.default_rng(0).normal(size=(1, 15, 5))
    fast = rollout(world, start, actions, parameters=parameters)
    slow = rollout(twin, start, actions, parameters=parameters)
    assert fast.valid.all() and slow.valid.all()
    for channel in fast.signals:
        gap = np.abs(fast.signals[channel] - slow.signals[channel])
        rows = np.flatnonzero(gap.reshape(len(names), -1).max(axis=1) > 1e-9)
        assert not len(rows), [names[row].name for row in rows]


def test_every_kind_of_address_is_offered(world):
    names = world.parameters.names
    expected = """body:cube.mass body:cube.com.x body:cube.inertia.z body:cube.inertial.alpha
        body:cube.inertial.t3 geom:box.size.2 geom:box.pos.x geom:box.friction.slide
        geom:box.solref.timeconst geom:egg.solref.stiffness geom:box.solimp.power
        pair:box+floor.friction.roll pair:box+floor.solref.dampratio pair:box+floor.margin
        joint:elbow.damping joint:elbow.frictionloss joint:elbow.armature joint:elbow.stiffness
        joint:elbow.springref joint:elbow.ref joint:wrist.damping actuator:servo.kp
        actuator:servo.kv actuator:servo.force.low actuator:speed.kv actuator:late.delay
        actuator:late.gain actuator:muscle.bias.velocity actuator:muscle.timeconst
        actuator:motor.resistance actuator:motor.motorconst actuator:motor.cogging.amplitude
        actuator:motor.lugre.stribeck actuator:motor.damping option:gravity.z
        sensor:encoder.delay sensor:elbow.pos.bias sensor:cube.pos.bias.y sensor:cube.quat.delay
        sensor:tracker.gain body:body6.mass geom:geom3.size.0""".split()
    assert not set(expected) - set(names)
    assert not [n for n in names if n.startswith(("body:world", "geom:floor.size"))]
    assert all(p.std == np.inf and p.scope == "scene" for p in world.parameters.parameters)
    assert world.parameters["body:cube.mass"].transform == "log"


# ---- inertia -------------------------------------------------------------------------------


def model_of(world, values):
    state = world.reset(Values.none(), Values.of(values))
    return world.kernel.models.assign(state.parameters.array, world._believed.given)[0].model


def test_mass_scales_the_moments_along_unless_they_are_believed_too(cube):
    world = build(cube)
    before = world.kernel.model.body("cube").inertia.copy()
    assert np.allclose(model_of(world, {"body:cube.mass": 0.8}).body("cube").inertia, 2 * before)
    moment = replace(world.parameters["body:cube.inertia.x"], std=1e-4)
    given = world.with_belief(Belief(parameters=(moment,)))
    assert np.allclose(model_of(given, {"body:cube.mass": 0.8}).body("cube").inertia, before)


def test_log_cholesky_coordinates_reach_any_inertia_and_replace_the_rest(cube):
    world = build(cube)
    rng = np.random.default_rng(0)
    parts = [n for n in world.parameters.names if ".inertial." in n]
    means = np.array([world.parameters[n].value for n in parts])
    wild = Values(names=tuple(parts), array=means + rng.normal(size=(50, 10)))
    models = world.kernel.models.assign(
        world.reset(Values.none(), wild).parameters.array, frozenset()
    )
    assert not any(edited.reason for edited in models.models)
    alpha = {"body:cube.inertial.alpha": 0.5, "body:cube.mass": 7.0}
    assert np.isclose(model_of(world, alpha).body("cube").mass, np.exp(1.0))


def test_impossible_moments_make_one_element_invalid_with_a_reason(cube):
    world = build(cube)
    values = Values.of({"body:cube.inertia.x": [8e-4, 1.0, np.nan]})
    result = rollout(world, Values.none(), np.zeros((3, 5, 0)), parameters=values)
    assert result.valid.tolist() == [[True] * 6, [False] * 6, [False] * 6]
    assert result.reason[0] == ""
    assert "triangle inequality" in result.reason[1]
    assert "not finite" in result.reason[2]


def test_moving_a_centre_of_mass_switches_off_the_shortcut_for_simple_bodies(cube):
    """A stale shortcut would leave a lopsided free body spinning about its geometric centre."""
    world = build(cube)
    spin = Values.of({"start:cube.omega.x": 3.0, "start:cube.pos.z": 2.0})
    shifted = Values.of({"body:cube.com.y": [0.0, 0.03]})
    result = rollout(world, spin, np.zeros((2, 30, 0)), parameters=shifted)
    centred, lopsided = result.signals["cube.pos"][..., 1]
    assert np.allclose(centred, 0.0, atol=1e-9)
    assert np.allclose(lopsided, 0.03 * (1 - np.cos(3 * result.time)), atol=1e-4)


def test_geometry_does_not_change_the_mass(cube):
    model = model_of(build(cube), {"geom:box.size.0": 0.1})
    assert np.isclose(model.body("cube").mass, 0.4)
    assert np.isclose(model.geom("box").rbound, np.sqrt(0.1**2 + 0.06**2 + 0.05**2))


# ---- contact pairs -----------------------------------------------------------------------------

MIXED = """
<mujoco><option timestep="0.002"/><worldbody>
  <geom name="floor" type="plane" size="1 1 .1" friction=".7 .01 .001" margin=".004" gap=".001"
    solref=".03 .9" solmix="2"/>
  <body name="p" pos="0 0 .05"><freejoint/><geom name="g" type="box" size=".05 .06 .05" mass=".4"
    friction=".3 .02 .0001" condim="6" margin=".002" gap=".003" adhesion=".1"/></body>
  <body name="b1" pos=".3 0 .03"><freejoint/><geom name="h" type="sphere" size=".03" mass=".4"
    priority="1" friction=".2 .1 .1" solref="-1000 -10"/></body>
  <body name="b2" pos=".34 0 .06"><freejoint/><geom name="i" type="sphere" size=".03" mass=".4"
    solref="-2000 -5" margin=".01"/></body>
</worldbody></mujoco>"""


def test_materialised_pairs_leave_behaviour_unchanged():
    scene = Scene(name="mixed", mjcf=MIXED)
    start = Values.of({"start:p.vel.x": 0.5, "start:b2.omega.y": 2.0})
    plain = explicit_world(scene, ExplicitConfig(pairs=0))
    paired = explicit_world(scene)
    assert (plain.kernel.model.npair, paired.kernel.model.npair) == (0, 6)
    first = rollout(plain, start, np.zeros((1, 200, 0)))
    second = rollout(paired, start, np.zeros((1, 200, 0)))
    for name, signal in first.signals.items():
        assert np.abs(signal - second.signals[name]).max() < 1e-10
    raw = mujoco.MjModel.from_xml_string(MIXED)
    data = mujoco.MjData(raw)
    data.qvel[0], data.qvel[16] = 0.5, 2.0
    for _ in range(200):
        mujoco.mj_step(raw, data)
    assert np.abs(data.qpos[:3] - second.signals["p.pos"][0, -1]).max() < 1e-10


def test_geoms_that_cannot_touch_have_no_pair():
    mjcf = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
      <body name="a" pos="0 0 1"><freejoint/><geom name="x" size=".1"/><geom name="y" size=".1"/>
        <body name="b" pos="0 0 .3"><joint axis="0 1 0"/><geom name="z" size=".1"/></body></body>
      <body name="c" pos="1 0 1"><freejoint/><geom name="w" size=".1"/></body>
      <body name="d" pos="2 0 1"><freejoint/><geom name="ghost" size=".1" contype="0"
        conaffinity="0"/></body></worldbody>
      <contact><exclude body1="b" body2="c"/></contact></mujoco>"""
    model = mujoco.MjModel.from_xml_string(mjcf)
    names = {"+".join(model.geom(g).name for g in pair) for pair in colliding_pairs(model)}
    assert names == {"floor+x", "floor+y", "floor+z", "floor+w", "x+w", "y+w"}


def test_pair_names_take_either_order(cube):
    world = build(cube)
    for name in ("pair:floor+box.friction.slide", "pair:box+floor.friction.slide"):
        model = model_of(world, {name: 0.11})
        assert np.allclose(model.pair_friction[0], [0.11, 0.11, 0.02, 0.0001, 0.0001])
    believed = replace(
        cube,
        belief=Belief(parameters=(Parameter(name="pair:floor+box.friction.slide", value=0.2),)),
    )
    assert "pair:floor+box.friction.slide" in build(believed).parameters.names


def test_many_pairs_are_materialised_only_where_named(cube):
    name = "pair:box+floor.friction.slide"
    none = explicit_world(cube, ExplicitConfig(pairs=0))
    assert name not in none.parameters.names
    assert name in explicit_world(cube, ExplicitConfig(pairs=("floor+*",))).parameters.names
    belief = Belief(parameters=(Parameter(name=name, value=0.2),))
    named = explicit_world(replace(cube, belief=belief), ExplicitConfig(pairs=0))
    assert named.parameters[name].value == 0.2


def test_materialised_pairs_follow_their_geoms(cube):
    world = build(cube)
    slid = {n: world.parameters[n].value for n in ("geom:floor.friction.slide",)}
    assert slid == {"geom:floor.friction.slide": 1.0}
    model = model_of(world, {"geom:floor.friction.slide": 0.05})
    assert model.pair_friction[0, 0] == 0.3
    both = {"geom:floor.friction.slide": 0.05, "pair:box+floor.friction.slide": 0.9}
    assert model_of(world, both).pair_friction[0, 0] == 0.9


# ---- beliefs, values, warnings -----------------------------------------------------------------


def test_belief_values_are_simulated(pendulum):
    heavy = Belief(parameters=(Parameter(name="joint:pivot.damping", value=0.5, std=0.1),))
    scene = replace(pendulum, belief=heavy)
    start, actions = Values.of({"start:pivot.pos": 0.5}), np.zeros((1, 50, 1))
    believed = rollout(build(scene), start, actions).signals["pivot.pos"]
    given = Values.of({"joint:pivot.damping": 0.5})
    asked = rollout(build(pendulum), start, actions, parameters=given).signals["pivot.pos"]
    later = rollout(build(pendulum).with_belief(heavy), start, actions).signals["pivot.pos"]
    assert np.array_equal(believed, asked) and np.array_equal(believed, later)
    assert not np.allclose(believed, rollout(build(pendulum), start, actions).signals["pivot.pos"])


def test_with_belief_shows_in_the_scene_and_shares_the_compiled_model(pendulum):
    world = build(pendulum)
    belief = Belief(parameters=(Parameter(name="body:rod.mass", value=0.7, std=0.1),))
    other = world.with_belief(belief)
    assert other.kernel is world.kernel
    assert other.scene.belief.names == ("body:rod.mass",)
    assert world.scene.belief.names == ()
    assert build(other.scene).parameters["body:rod.mass"].value == 0.7


def test_believing_what_is_believed_already_does_not_pin_the_moments(cube):
    """Handing the whole belief back must not turn every moment into a given one."""
    world = build(cube)
    lighter = world.parameters.with_values({"body:cube.mass": 0.2})
    moments = world.kernel.model.body("cube").inertia
    assert np.allclose(model_of(world.with_belief(lighter), {}).body("cube").inertia, moments / 2)
    assert world.with_belief(lighter).scene.belief.names == ("body:cube.mass",)


def test_a_bare_belief_takes_unit_bounds_and_transform_from_the_world(pendulum):
    bare = Belief(parameters=(Parameter(name="body:rod.mass", value=0.6),))
    mass = build(replace(pendulum, belief=bare)).parameters["body:rod.mass"]
    assert (mass.value, mass.unit, mass.transform) == (0.6, "kg", "log")
    assert 0 < mass.low < 0.6 < mass.high < np.inf
    own = Belief(parameters=(Parameter(name="body:rod.mass", value=0.6, low=0.5, high=0.7),))
    kept = build(replace(pendulum, belief=own)).parameters["body:rod.mass"]
    assert (kept.low, kept.high, kept.transform) == (0.5, 0.7, "identity")


def test_unknown_addresses_suggest_the_nearest(pendulum):
    typo = Belief(parameters=(Parameter(name="joint:pivot.dampings", value=0.1),))
    with pytest.raises(AddressError, match=r"Did you mean 'joint:pivot\.damping'\?"):
        build(replace(pendulum, belief=typo))
    with pytest.raises(SpecError, match=r"Did you mean 'joint:pivot\.damping'\?"):
        build(pendulum).reset(Values.none(), Values.of({"joint:pivot.dampin": 1.0}))


IDLE = {
    "geom:box.friction.slide": (
        "",
        "takes the larger friction .* Use 'pair:box.floor.friction.slide'",
    ),
    "pair:box+floor.friction.spin": ("", "condim 3; spin friction needs condim >= 4"),
    "geom:floor.friction.slide": ('<pair geom1="box" geom2="floor"/>', "explicit <pair>"),
    "joint:j.damping": ('<weld body1="arm"/>', "welded"),
    "joint:j.springref": ("", "no stiffness"),
}


@pytest.mark.parametrize("name", list(IDLE))
def test_an_address_without_effect_warns_with_the_reason(name):
    extra, reason = IDLE[name]
    contact = f"<contact>{extra}</contact>" if "pair" in extra else ""
    equality = f"<equality>{extra}</equality>" if "weld" in extra else ""
    mjcf = f"""<mujoco><worldbody><geom name="floor" type="plane" size="2 2 .1"/>
      <body name="cube" pos="0 0 .2"><freejoint/>
        <geom name="box" type="box" size=".05 .06 .05" friction=".3"/></body>
      <body name="arm" pos="1 0 1"><joint name="j" axis="0 1 0"/>
        <geom size=".1" contype="0" conaffinity="0"/></body></worldbody>{contact}{equality}
      </mujoco>"""
    belief = Belief(parameters=(Parameter(name=name, value=0.25),))
    with pytest.warns(
        SameworldWarning, match=f"'{name.replace('+', '.')}' has no effect: .*{reason}"
    ):
        build(Scene(name="idle", mjcf=mjcf, belief=belief))


def test_an_address_with_effect_does_not_warn(cube):
    names = ("geom:floor.friction.slide", "pair:box+floor.friction.slide", "body:cube.mass")
    belief = Belief(parameters=tuple(Parameter(name=n, value=0.5) for n in names))
    assert build(replace(cube, belief=belief)).parameters["body:cube.mass"].value == 0.5


def test_the_cache_of_models_is_bounded_and_reused(pendulum):
    world = explicit_world(pendulum, ExplicitConfig(models=4))
    values = Values.of({"body:rod.mass": np.linspace(0.2, 1.0, 10)})
    state = world.reset(Values.none(), values)
    assert len(world.kernel.models) == 4
    again = world.kernel.models.assign(state.parameters.array[-1:], frozenset())[0]
    assert world.kernel.models.assign(state.parameters.array[-1:], frozenset())[0] is again
