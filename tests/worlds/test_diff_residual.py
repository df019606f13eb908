"""A network inside the step: the contract of a world, slopes, training, weights, the gate."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import jax
import numpy as np
import pytest
from diff_scenes import hinge

from sameworld.core import BeliefError, Block, Channel, Episode, SpecError, StoreError, Values
from sameworld.core.predict import predict_all
from sameworld.core.rollout import rollout
from sameworld.stages.identify import IdentifyConfig, identify
from sameworld.stages.identify.holdout import split
from sameworld.worlds.check import check_world
from sameworld.worlds.differentiable import DifferentiableConfig, differentiable_world
from sameworld.worlds.differentiable.residual import Network, ResidualConfig, residual_world
from sameworld.worlds.differentiable.residual.network import network_of
from sameworld.worlds.differentiable.residual.pieces import cut
from sameworld.worlds.differentiable.step import Carry

TICKS, PERIOD, WARMUP = 99, 0.01, 8
CONFIG = ResidualConfig(
    width=8, depth=1, window=1.0, warmup=WARMUP, batch=4, steps=60, check=20, rate=2e-2
)


pytestmark = pytest.mark.usefixtures("few_optimisations")


@pytest.fixture(scope="module")
def analytic():
    return differentiable_world(hinge())


@pytest.fixture(scope="module")
def untrained(analytic):
    return residual_world(analytic, CONFIG)


@pytest.fixture(scope="module")
def rubbing(analytic):
    """Episodes of a hinge that drags at its velocity, which the analytic world does not know."""
    return episodes(analytic, damping=0.015, count=7)


@pytest.fixture(scope="module")
def trained(untrained, rubbing):
    reports = []
    world = untrained.fit(rubbing[:5], seed=0, progress=reports.append)
    assert [r.done for r in reports] == list(world.training.checks[1:])
    return world


def episodes(world, *, damping, count, seed=0):
    rng = np.random.default_rng(seed)
    time = PERIOD * np.arange(TICKS)
    phase = rng.uniform(0, 6, size=(count, 1))
    actions = 0.3 * np.sin(2 * np.pi * 0.9 * time + phase)[:, :, None]
    start = Values.of({"start:elbow.pos": rng.normal(size=count)})
    drag = Values.of({"joint:elbow.damping": [damping]})
    run = rollout(world, start, actions, parameters=drag)
    seen = run.signals["elbow.pos"] + 1e-3 * rng.normal(size=(count, TICKS + 1))
    return [
        Episode(
            id=f"e{seed}_{row}",
            source="mujoco",
            channels=(
                Channel(name="elbow.pos", time=run.time, values=seen[row], unit="rad"),
                Channel(name="motor", time=time, values=actions[row, :, 0], role="action"),
            ),
        )
        for row in range(count)
    ]


def errors(world, runs):
    found = predict_all(world, runs, WARMUP)
    return np.array([np.abs(p.channels["elbow.pos"].error).mean() for p in found])


def shaken(world, seed=1):
    """The world with some network that does push."""
    weights = world.inner.weights.copy()
    weights[: world.network.trained] += 0.5 * np.random.default_rng(seed).normal(
        size=world.network.trained
    )
    return world.from_arrays({"residual": weights})


# ---- the world -------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_keeps_the_contract_of_a_world_that_trains_itself(untrained):
    world = replace(untrained, config=replace(CONFIG, steps=2, check=1, batch=4))
    actions = 0.4 * np.random.default_rng(0).normal(size=(2, 8, 1))
    report = check_world(shaken(world), actions=actions, parameters=["body:rod.mass"])
    report.raise_if_failed()
    assert {row.name for row in report.rows if row.outcome == "skip"} == {
        "render gives images",
        "inverse is linear in inertia",
    }


def test_untrained_it_is_the_analytic_world(analytic, untrained):
    start = Values.of({"start:elbow.pos": [0.3, 1.0]})
    actions = np.ones((2, 49, 1))
    mine, theirs = (rollout(w, start, actions).signals for w in (untrained, analytic))
    for name, signal in theirs.items():
        assert np.abs(mine[name] - signal).max() < 1e-12, name


def test_programs_serve_all_weights(untrained):
    start, actions = Values.of({"start:elbow.pos": [0.3, 1.0]}), np.ones((2, 49, 1))
    first = rollout(untrained, start, actions).signals["elbow.pos"]
    before = untrained.inner.kernel.compiles
    second = rollout(shaken(untrained), start, actions).signals["elbow.pos"]
    assert untrained.inner.kernel.compiles == before
    assert np.abs(first - second).max() > 1e-3


def test_all_elements_at_once_are_those_of_the_loop(untrained):
    at_once = residual_world(
        differentiable_world(untrained.scene, DifferentiableConfig(batching="vector")), CONFIG
    )
    start, actions = Values.of({"start:elbow.pos": [0.3, 1.0]}), np.ones((2, 49, 1))
    runs = [rollout(shaken(w), start, actions).signals for w in (untrained, at_once)]
    assert np.allclose(runs[0]["elbow.pos"], runs[1]["elbow.pos"], atol=1e-12)


# ---- the network -----------------------------------------------------------------------------


def twin(network: Network, weights, q, v, control):
    """The network of one joint without limits, in numpy."""
    centre, scale = np.split(weights[network.trained :], 2)
    seen = (np.array([np.sin(q[0]), np.cos(q[0]), v[0], control[0]]) - centre) / scale
    layer = np.append(seen, seen[2] / np.sqrt(seen[2] ** 2 + 0.01))
    at, sizes = 0, [5, *[network.width] * network.depth, 1]
    for k, (inputs, outputs) in enumerate(pairwise(sizes)):
        matrix = weights[at : at + inputs * outputs].reshape(outputs, inputs)
        at += inputs * outputs
        layer = matrix @ layer + weights[at : at + outputs]
        at += outputs
        layer = np.tanh(layer) if k < network.depth else layer
    assert at == network.trained
    return network.bound[0] * np.tanh(layer[0])


@pytest.mark.parametrize("depth", [1, 3])
def test_the_force_is_that_of_its_twin_in_numpy(analytic, depth):
    network = network_of(analytic.kernel.model, replace(CONFIG, depth=depth, bound=0.7))
    rng = np.random.default_rng(depth)
    weights = network.initial(0) + 0.3 * rng.normal(size=network.size)
    q, v, control = rng.normal(size=(3, 1))
    none = np.zeros(1)
    with jax.enable_x64(True):
        carry = Carry(q, v, none, none, none, np.zeros(0), control, np.asarray(True))
        force = np.asarray(network.force(weights, carry))
    assert np.isclose(force[0], twin(network, weights, q, v, control), rtol=1e-12)
    assert np.abs(force).max() <= 0.7


def test_the_last_layer_begins_at_zero_and_the_others_follow_the_seed(untrained):
    first, second = (untrained.network.initial(seed) for seed in (0, 1))
    trained = untrained.network.trained
    assert (first[trained - 9 : trained] == 0).all()
    assert not np.allclose(first, second)


def test_inputs_come_to_a_common_scale(untrained):
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-0.2, 0.2, size=(200, 1)), 5 * rng.normal(size=(200, 1))
    weights = untrained.network.scaled(untrained.network.initial(0), q, v, np.zeros((200, 1)))
    centre, scale = np.split(weights[untrained.network.trained :], 2)
    assert np.isclose(centre[1], np.cos(q).mean()) and centre[2] == 0
    assert np.isclose(scale[2], np.sqrt(np.mean(v**2)))
    assert scale[3] == 1  # a control that never moves


def test_a_pattern_without_joints_and_an_unknown_input_are_refused(analytic):
    with pytest.raises(SpecError, match="matches no hinge or slide"):
        residual_world(analytic, replace(CONFIG, joints=("knee",)))
    with pytest.raises(SpecError, match="use some of"):
        ResidualConfig(inputs=("torque",))


# ---- training --------------------------------------------------------------------------------


def test_slopes_by_weights_are_those_of_differences(untrained):
    world = shaken(untrained)
    start = Values.of({"start:elbow.pos": [0.3, 1.0, 0.2, -0.5]})
    actions = np.ones((4, 99, 1))
    rng = np.random.default_rng(3)
    pull = rng.normal(size=(4, 100, 1))
    slopes = world.inner.weights_pullback(start, actions, {"elbow.pos": pull})
    direction = rng.normal(size=world.inner.weights.shape)
    ends = []
    for sign in (-1, 1):
        moved = world.from_arrays({"residual": world.inner.weights + sign * 1e-6 * direction})
        signal = rollout(moved, start, actions).signals["elbow.pos"]
        ends.append(np.sum(pull[..., 0] * signal, axis=1))
    assert np.allclose(slopes @ direction, (ends[1] - ends[0]) / 2e-6, rtol=1e-5)


def test_pieces_cover_an_episode_and_keep_its_last_rows(untrained, rubbing):
    pieces = cut(untrained.spec, rubbing[0], 0.4, WARMUP)
    assert pieces[0].begin == rubbing[0].begin and pieces[-1].end == rubbing[0].end
    assert all(a.end >= b.begin - PERIOD for a, b in pairwise(pieces))
    short = cut(untrained.spec, rubbing[0].head(WARMUP), 0.4, WARMUP)
    assert short == []  # nothing behind the warm-up


def test_it_learns_friction_that_the_model_lacks(untrained, trained, rubbing):
    before, after = errors(untrained, rubbing[5:]), errors(trained, rubbing[5:])
    assert (after < 0.5 * before).all()
    assert min(trained.training.costs) < 0.3


def test_where_the_model_is_right_it_stays_small(untrained):
    runs = episodes(untrained.inner, damping=0.0, count=7, seed=5)
    world = untrained.fit(runs[:5], seed=0)
    assert min(world.training.costs) <= 1
    assert (errors(world, runs[5:]) < 2 * errors(untrained, runs[5:]) + 1e-3).all()


# ---- weights and beliefs ---------------------------------------------------------------------


def test_weights_survive_a_file(tmp_path, untrained, trained, rubbing):
    np.savez(tmp_path / "weights.npz", **trained.to_arrays())
    with np.load(tmp_path / "weights.npz", allow_pickle=False) as arrays:
        loaded = untrained.from_arrays(dict(arrays))
    assert loaded.parameters.blocks == trained.parameters.blocks != untrained.parameters.blocks
    assert (errors(loaded, rubbing[5:]) == errors(trained, rubbing[5:])).all()
    with pytest.raises(StoreError, match="finite numbers"):
        untrained.from_arrays({"residual": np.zeros(3)})


def test_a_belief_moves_parameters_and_holds_no_other_weights(trained):
    moved = trained.with_belief(trained.parameters.with_values({"body:rod.mass": 0.2}))
    assert moved.parameters["body:rod.mass"].value == 0.2
    assert moved.parameters.blocks == trained.parameters.blocks
    foreign = replace(trained.parameters, blocks=(Block(name="residual", sha256="0"),))
    with pytest.raises(BeliefError, match="from_arrays"):
        trained.with_belief(foreign)


@pytest.mark.slow
def test_the_gate_refuses_a_residual_that_is_worse_on_held_out_episodes(untrained, rubbing):
    _, held = split(5, 0.2, 0)
    runs = list(rubbing[:5])
    runs[held[0]] = episodes(untrained.inner, damping=0.0, count=1, seed=7)[0]
    world = replace(untrained, config=replace(CONFIG, steps=20))
    config = IdentifyConfig(free=(), warmup=WARMUP, holdout=0.2, seed=0)
    kept, _, result = identify(world, runs, config=config)
    assert result.holdout is not None and not result.holdout.passed
    assert kept.parameters.blocks == world.parameters.blocks
