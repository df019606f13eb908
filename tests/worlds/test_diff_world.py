"""The differentiable world as a world: contract, parity, failures, batches, derivatives."""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import numpy as np
import pytest
from diff_scenes import BALL, SCENES, hinge

from sameworld.core import (
    MissingExtraError,
    Scene,
    SceneError,
    SpecError,
    Values,
    jacobian,
    rollout,
)
from sameworld.worlds import build
from sameworld.worlds.check import check_world
from sameworld.worlds.differentiable import DifferentiableConfig, differentiable_world
from sameworld.worlds.differentiable.programs import bucket
from sameworld.worlds.explicit import ExplicitConfig

#: Parameters by which the hinge is differentiated; always eight names, so that programs are shared.
FEW = ("body:rod.mass", "joint:elbow.damping", "option:gravity.z")
LATE = {"sensor:elbow.pos.delay": 0.013, "sensor:elbow.pos.gain": 1.2, "sensor:elbow.vel.bias": 0.3}


pytestmark = pytest.mark.usefixtures("few_optimisations")


@pytest.fixture(scope="module")
def world():
    return differentiable_world(hinge())


def drive(world, batch, ticks, seed=0):
    return 0.4 * np.random.default_rng(seed).normal(size=(batch, ticks, world.spec.action_size))


# ---- contract and parity ---------------------------------------------------------------------


def test_it_keeps_the_contract_of_a_world(world):
    report = check_world(world, actions=drive(world, 2, 8), parameters=[*FEW, *LATE])
    report.raise_if_failed()
    assert {row.name for row in report.rows if row.outcome == "skip"} == {
        "fit returns a new world",
        "render gives images",
        "inverse is linear in inertia",
    }


@pytest.mark.parametrize("name", SCENES)
def test_rollouts_are_those_of_the_explicit_world(name):
    worlds = [build(SCENES[name], kind) for kind in ("explicit", "differentiable")]
    spec = worlds[0].spec
    assert worlds[1].spec.observations == spec.observations
    assert worlds[1].spec.actions == spec.actions
    assert worlds[1].spec.start.parameters == spec.start.parameters
    assert worlds[1].parameters.parameters == worlds[0].parameters.parameters
    start = spec.start.mean.rows([0, 0])
    start = Values(names=start.names, array=start.array + np.array([[0.0], [0.01]]))
    runs = [rollout(w, start, drive(w, 2, 40)) for w in worlds]
    for channel in spec.observations:
        mine, theirs = (run.signals[channel.name] for run in runs)
        assert np.abs(mine - theirs).max() < 1e-9 * max(1.0, np.abs(theirs).max()), channel.name
    assert runs[1].valid.all()


def test_reports_are_late_scaled_and_shifted_as_in_the_explicit_world(world):
    values, acts = Values.of(LATE), drive(world, 1, 12)
    runs = [
        rollout(w, Values.of({"start:elbow.vel": 2.0}), acts, parameters=values)
        for w in (build(hinge()), world)
    ]
    for name, theirs in runs[0].signals.items():
        assert np.allclose(runs[1].signals[name], theirs, rtol=0, atol=1e-12)
    plain = rollout(world, Values.of({"start:elbow.vel": 2.0}), acts)
    assert np.allclose(runs[1].signals["elbow.vel"], plain.signals["elbow.vel"] + 0.3)
    assert not np.allclose(runs[1].signals["elbow.pos"], 1.2 * plain.signals["elbow.pos"])


# ---- failures --------------------------------------------------------------------------------


def test_failures_are_values_with_reasons(world):
    values = Values.of(
        {
            "joint:elbow.stiffness": [0.0, 1e9, 0.0, 0.0, 0.0],
            "body:rod.com.z": [0.0, 0.0, 0.0, np.inf, 0.0],
        }
    )
    start = Values.of({"start:elbow.pos": [0.1, 0.1, np.nan, 0.1, 0.1]})
    state, acts = world.reset(start, values), np.zeros((5, 60, 1))
    run = world.rollout(state, acts)
    assert run.valid.all(axis=1).tolist() == [True, False, False, False, True]
    assert run.valid[1, 0] and "NaN or huge" in run.reason[1]
    assert not run.valid[2].any() and "start is not finite" in run.reason[2]
    assert not run.valid[3].any() and run.reason[3]
    alone = world.rollout(world.reset(start.rows([0]), values.rows([0])), acts[:1])
    assert np.array_equal(run.signals["elbow.pos"][0], alone.signals["elbow.pos"][0])
    for name, signal in run.signals.items():
        assert np.array_equal(np.isfinite(signal), run.valid), name


def test_an_inertia_that_no_body_can_have_fails_its_element(world):
    named = world.parameters.marginal(f"body:rod.inertia.{axis}" for axis in "xyz")
    world = differentiable_world(replace(hinge(), belief=named))
    usual = named["body:rod.inertia.x"].value
    values = Values.of({"body:rod.inertia.x": [usual, 3 * usual]})
    run = rollout(world, Values.none(2), np.zeros((2, 3, 1)), parameters=values)
    assert run.valid.all(axis=1).tolist() == [True, False]
    assert "rod" in run.reason[1]


def test_a_solver_that_stops_early_is_told():
    config = DifferentiableConfig(iterations=1, tolerance=1e-14)
    world = differentiable_world(Scene(name="ball", mjcf=BALL), config)
    run = rollout(world, Values.of({"start:ball.vel.x": 1.0}), np.zeros((1, 20, 0)))
    assert not run.valid.all()
    assert "constraint solver did not converge in 1 Newton steps" in run.reason[0]


# ---- batches and programs ----------------------------------------------------------------------


@pytest.mark.parametrize("config", [{"batching": "vector"}, {"batching": "loop", "threads": 2}])
def test_batches_are_the_same_however_they_are_run(world, config):
    other = differentiable_world(hinge(), DifferentiableConfig(**config))
    start = Values.of({"start:elbow.vel": [0.0, 1.0, 2.0]})
    mine, theirs = (rollout(w, start, drive(world, 3, 8)) for w in (other, world))
    for name, signal in theirs.signals.items():
        assert np.allclose(mine.signals[name], signal, rtol=0, atol=1e-12)


def test_buckets_hold_what_they_are_for_and_waste_an_eighth_at_most():
    for size in range(1, 3000):
        held = bucket(size)
        assert size <= held and bucket(held) == held
        assert held - size <= (0 if size <= 8 else size / 8)
    assert len({bucket(size) for size in range(1, 3000)}) < 80


def test_calls_in_one_bucket_share_programs(world):
    start = Values.of({"start:elbow.vel": 1.0})
    long = rollout(world, start, drive(world, 1, 40))
    before = world.kernel.compiles
    moved = world.with_belief(world.parameters.with_values({"body:rod.mass": 0.5}))
    short = rollout(world, start, drive(world, 1, 40)[:, :38])
    rollout(moved, start, drive(world, 1, 39))
    assert bucket(38) == bucket(40) and world.kernel.compiles == before
    assert np.array_equal(short.signals["elbow.pos"], long.signals["elbow.pos"][:, :39])


def test_reverse_slopes_in_one_bucket_share_a_program(world):
    start, acts = Values.of({"start:elbow.vel": 1.0}), drive(world, 1, 18)
    weights = {"elbow.vel": np.random.default_rng(1).normal(size=(1, 19, 1))}
    weights["elbow.vel"][:, 18] = 0.0
    long = world.pullback(start, acts, weights)
    before = world.kernel.compiles
    heavier = Values.of({"body:rod.mass": [0.5]})
    world.pullback(start, acts, weights, heavier, wrt=("body:rod.mass",))
    short = world.pullback(start, acts[:, :17], {"elbow.vel": weights["elbow.vel"][:, :18]})
    assert bucket(17) == bucket(18) and world.kernel.compiles == before
    assert np.array_equal(short.starts, long.starts)
    assert np.array_equal(short.parameters, long.parameters)
    assert np.array_equal(short.actions, long.actions[:, :17]) and not long.actions[:, 17].any()
    run = rollout(world, start, acts[:, :17])
    for name, signal in run.signals.items():
        assert np.allclose(short.signals[name], signal, rtol=0, atol=1e-13)


def test_slopes_without_parameters_are_the_same_and_parameters_are_left_open(world):
    acts, weights = drive(world, 1, 18), {"elbow.pos": np.ones((1, 19, 1))}
    whole, less = (world.pullback(Values.none(1), acts, weights, wrt=wrt) for wrt in (None, ()))
    assert np.allclose(less.actions, whole.actions, rtol=1e-12, atol=0)
    assert np.allclose(less.starts, whole.starts, rtol=1e-12, atol=0)
    assert np.isnan(less.parameters).all() and np.isfinite(whole.parameters).all()


# ---- derivatives -------------------------------------------------------------------------------


def test_derivatives_through_contact_agree_with_differences():
    world = differentiable_world(SCENES["ball"])
    wrt = ("start:ball.vel.x", "pair:ball+floor.friction.slide", "body:ball.mass")
    if wrt[1] not in world.parameters.names:
        wrt = (wrt[0], "pair:floor+ball.friction.slide", wrt[2])
    start, acts = Values.of({"start:ball.vel.x": 1.0}), np.zeros((1, 8, 0))
    exact = world.gradient(start, acts, Values.none(1), wrt, seed=0)
    numeric = jacobian(world, start, acts, wrt=wrt, method="differences").derivatives
    assert np.abs(exact["ball.omega"][..., :2]).max(axis=(0, 1, 2)).min() > 0.1
    for name, slope in numeric.items():
        size = np.maximum(np.abs(slope).max(axis=(0, 1, 2)), 1e-3)
        assert (np.abs(exact[name] - slope).max(axis=(0, 1, 2)) < 1e-5 * size).all(), name


def test_dry_friction_that_the_scene_lacks_is_differentiated(world):
    wrt, acts = ("joint:elbow.frictionloss",), np.zeros((1, 8, 1))
    start = Values.of({"start:elbow.vel": 2.0})
    exact = world.gradient(start, acts, Values.none(1), wrt, seed=0)["elbow.vel"]
    step = 1e-6
    ends = [
        rollout(world, start, acts, parameters=Values.of({wrt[0]: value})).signals["elbow.vel"]
        for value in (step, 2 * step)
    ]
    assert exact[0, -1, 0, 0] < -1.0
    assert np.allclose(exact[0, :, 0, 0], (ends[1] - ends[0])[0] / step, rtol=1e-5)


def test_an_offset_of_an_action_moves_all_ticks(world):
    acts = drive(world, 2, 8)
    start, wrt = Values.none(2), ("action:motor", "start:elbow.vel", *FEW, *LATE)
    found = world.gradient(start, acts, Values.none(2), wrt, seed=0)
    slope = found["elbow.vel"][..., :1]
    runs = [rollout(world, start, acts + side).signals["elbow.vel"] for side in (1e-6, -1e-6)]
    assert np.allclose(slope[:, :, 0, 0], (runs[0] - runs[1]) / 2e-6, rtol=1e-6, atol=1e-8)
    back = world.pullback(start, acts, {"elbow.vel": np.ones((2, 9, 1))}, wrt=wrt)
    assert np.allclose(back.actions.sum(axis=(1, 2)), slope.sum(axis=(1, 2, 3)), rtol=1e-10)
    assert back.actions[:, -1].any() and back.starts.shape == (2, 2)


# ---- what is refused ---------------------------------------------------------------------------


def test_unknown_names_and_wrong_weights_are_refused(world):
    acts = np.zeros((1, 8, 1))
    with pytest.raises(SpecError, match=r"body:rod\.mass"):
        world.gradient(Values.none(1), acts, Values.none(1), ("body:rod.mas",), seed=0)
    with pytest.raises(SpecError, match=r"no channel 'elbow\.acc'"):
        world.pullback(Values.none(1), acts, {"elbow.acc": np.ones((1, 9, 1))})
    with pytest.raises(SpecError, match=r"\(1, 9, 1\), got \(1, 8, 1\)"):
        world.pullback(Values.none(1), acts, {"elbow.vel": np.ones((1, 8, 1))})
    with pytest.raises(SpecError, match=r"elbow\.vel.*NaN"):
        world.pullback(Values.none(1), acts, {"elbow.vel": np.full((1, 9, 1), np.nan)})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tolerance": 0.0}, "tolerance is 0.0"),
        ({"tolerance": 0.1}, r"\(0, 0.01\)"),
        ({"iterations": 0}, "at least 1"),
        ({"batching": "fast"}, "'auto', 'loop', 'vector'"),
        ({"threads": 0}, "threads is 0"),
        ({"period": -0.01}, "period"),
    ],
)
def test_options_without_sense_are_refused(options, said):
    with pytest.raises(SceneError, match=said):
        DifferentiableConfig(**options)


def test_kinds_and_their_options_are_refused_with_what_exists():
    with pytest.raises(SceneError, match=r"Kinds: .*differentiable"):
        build(hinge(), "differentiabel")
    with pytest.raises(SceneError, match="takes a DifferentiableConfig, got ExplicitConfig"):
        build(hinge(), "differentiable", config=ExplicitConfig())
    with pytest.raises(SceneError, match="takes an ExplicitConfig, got DifferentiableConfig"):
        build(hinge(), config=DifferentiableConfig())


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    found = importlib.util.find_spec
    hidden = lambda name, *more: None if name == "jax" else found(name, *more)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    with pytest.raises(MissingExtraError, match=r"pip install .*sameworld\[jax\]"):
        build(hinge(), "differentiable")


def test_a_pattern_of_ignored_pairs_that_matches_none_is_refused():
    scene = Scene(
        name="drop",
        mjcf='<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>'
        '<body pos="0 0 1"><freejoint/><geom name="ball" size=".1"/></body></worldbody></mujoco>',
    )
    differentiable_world(scene, DifferentiableConfig(ignore=("ball+floor",)))
    with pytest.raises(SceneError, match=r"'ball\+flor' matches no pair.*floor\+ball"):
        differentiable_world(scene, DifferentiableConfig(ignore=("ball+flor",)))
