"""Tables of a compiled scene: starts, names, and what they leave to the engine."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from rail_world import RAIL, rail_world

from sameworld.core import Belief, Parameter, Scene, SceneError, Values
from sameworld.core.errors import SameworldWarning
from sameworld.worlds import build
from sameworld.worlds.compiled.config import CompileConfig
from sameworld.worlds.compiled.tables import make_tables

TWO = Scene(
    name="two",
    mjcf="""<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
    <body name="a" pos="0 0 .2"><freejoint/><geom name="ga" size=".1" mass="1"/></body>
    <body name="b" pos="1 0 .2" euler="0 30 0"><joint name="ball" type="ball"/>
      <geom name="gb" size=".1" mass="1"/></body>
    </worldbody></mujoco>""",
)


@pytest.fixture(scope="module")
def two():
    return make_tables(TWO)


def test_home_is_the_keyframe_of_that_name():
    tables = make_tables(RAIL)
    assert tables.home.qpos.tolist() == [0.25]
    assert tables.home.ctrl.tolist() == [0.0]
    assert tables.spec.start.mean.array.tolist() == [[0.25, 0.0]]


def test_home_is_the_first_keyframe_where_none_has_that_name():
    tables = make_tables(replace(RAIL, mjcf=RAIL.mjcf.replace('"home"', '"rest"')))
    assert tables.home.qpos.tolist() == [9.0]


def test_home_is_the_reference_pose_without_keyframes(two):
    assert np.array_equal(two.home.qpos, two.model.qpos0)
    assert two.home.act.shape == two.home.ctrl.shape == (0,)


def test_placed_rows_are_where_the_explicit_world_starts(two):
    world = build(TWO)
    names, size = world.spec.start.names, two.model.nq + two.model.nv
    starts = world.spec.start.mean.array + np.random.default_rng(0).normal(size=(5, len(names)))
    rows = two.placed(starts)
    state = world.reset(Values(names=names, array=starts))
    assert rows.shape == (5, size)
    assert np.array_equal(rows, state.arrays["integration"][:, world.kernel.layout.moving])


def test_signals_are_read_from_stacks_of_any_shape(two):
    model = two.model
    qpos = np.arange(2 * 3 * model.nq, dtype=float).reshape(2, 3, model.nq)
    qvel = -np.arange(2 * 3 * model.nv, dtype=float).reshape(2, 3, model.nv)
    signals = two.signals(qpos, qvel, np.zeros((2, 3, 0)))
    assert np.array_equal(signals["a.pos"], qpos[..., :3])
    assert np.array_equal(signals["ball.quat"], qpos[..., 7:])
    assert np.array_equal(signals["ball.omega"], qvel[..., 6:])


def test_a_pair_is_spelled_as_the_tables_do(two):
    told = Belief(parameters=(Parameter(name="pair:floor+ga.friction.slide", value=0.7),))
    assert two.canonical(told).names == ("pair:floor+ga.friction.slide",)
    turned = Belief(parameters=(Parameter(name="pair:ga+floor.friction.slide", value=0.7),))
    assert two.canonical(turned).names == ("pair:floor+ga.friction.slide",)


def test_capabilities_and_period_are_the_builders_choice():
    tables = make_tables(RAIL, CompileConfig(period=0.02), capabilities=("gradient", "rollout"))
    assert tables.spec.capabilities == {"gradient", "rollout"}
    assert (tables.spec.period, tables.compiled.substeps) == (0.02, 10)
    assert make_tables(RAIL).spec.capabilities == frozenset()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"period": 0.0}, "must be positive"),
        ({"period": float("nan")}, "must be positive"),
        ({"pairs": -1}, "count >= 0"),
    ],
)
def test_impossible_options_of_compiling_are_refused(options, reason):
    with pytest.raises(SceneError, match=reason):
        CompileConfig(**options)


def test_a_period_that_does_not_fit_names_the_nearest():
    with pytest.raises(SceneError, match=r"nearest that is: 0\.004 s"):
        make_tables(RAIL, CompileConfig(period=0.0035))


def test_a_belief_without_effect_warns_whoever_asked_for_the_world():
    belief = Belief(parameters=(Parameter(name="joint:rail.springref", value=0.1),))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SameworldWarning)
        rail_world(replace(RAIL, belief=belief))
    assert [("no stiffness" in str(w.message), w.filename) for w in caught] == [(True, __file__)]
