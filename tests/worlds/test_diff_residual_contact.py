"""A network inside the step of what begins in contact: starts, slopes, and where it may push."""

from __future__ import annotations

import numpy as np
import pytest

from sameworld.core import Scene, Values
from sameworld.core.rollout import rollout
from sameworld.worlds.differentiable import differentiable_world
from sameworld.worlds.differentiable.residual import ResidualConfig, residual_world

#: A puck that slides on the floor, 0.2 mm deep at the start.
PUCK = Scene(
    name="puck",
    mjcf="""
<mujoco model="puck"><option timestep="0.005" cone="elliptic"/><worldbody>
  <geom name="floor" type="plane" size="2 2 .1" friction=".3"/>
  <body name="puck" pos="0 0 .0498">
    <joint name="along" type="slide" axis="1 0 0"/><joint name="up" type="slide" axis="0 0 1"/>
    <geom name="puck" type="sphere" size=".05" mass=".4" friction=".2"/></body>
</worldbody></mujoco>
""",
)
START = Values.of({"start:along.vel": [0.4, -0.8], "start:up.pos": [0.0, -2e-4]})
ACTIONS = np.zeros((2, 20, 0))


pytestmark = pytest.mark.usefixtures("few_optimisations")


@pytest.fixture(scope="module")
def analytic():
    return differentiable_world(PUCK)


@pytest.fixture(scope="module")
def untrained(analytic):
    return residual_world(analytic, ResidualConfig(width=6, depth=1))


@pytest.fixture(scope="module")
def pushing(untrained):
    """The world with some network that does push."""
    rng = np.random.default_rng(0)
    weights = untrained.inner.weights.copy()
    weights[: untrained.network.trained] += 0.3 * rng.normal(size=untrained.network.trained)
    return untrained.from_arrays({"residual": weights})


def test_untrained_it_touches_as_the_analytic_world(analytic, untrained):
    mine, theirs = (rollout(world, START, ACTIONS) for world in (untrained, analytic))
    assert mine.valid.all()
    for name, signal in theirs.signals.items():
        assert np.abs(mine.signals[name] - signal).max() < 1e-12, name
    free = mine.signals["up.pos"][:, 0] - 9.81 / 2 * mine.time[-1] ** 2
    assert (mine.signals["up.pos"][:, -1] > free + 1e-3).all()


def test_it_starts_where_it_is_told(pushing):
    state = pushing.reset(START)
    for signals in (pushing.observe(state), rollout(pushing, START, ACTIONS).signals):
        along = signals["along.vel"]
        assert np.array_equal(along if along.ndim == 1 else along[:, 0], [0.4, -0.8])


def test_it_pushes_what_touches(untrained, pushing):
    runs = [rollout(world, START, ACTIONS).signals["along.pos"] for world in (untrained, pushing)]
    assert np.abs(runs[0] - runs[1])[:, -1].min() > 1e-4


def test_slopes_by_starts_and_parameters_through_contact_are_those_of_differences(pushing):
    weights = {"along.pos": np.ones((2, 21, 1)), "up.vel": np.ones((2, 21, 1))}
    back = pushing.pullback(START, ACTIONS, weights)
    names = {n: ("starts", k) for k, n in enumerate(pushing.spec.start.names)}
    names |= {n: ("parameters", k) for k, n in enumerate(pushing.parameters.names)}
    for name in ("start:along.vel", "start:up.pos", "body:puck.mass"):
        kind, column = names[name]
        slope = getattr(back, kind)[:, column]
        assert (np.abs(slope) > 1e-4).all(), name
        assert slope == pytest.approx(difference(pushing, weights, name), rel=1e-5), name


def difference(world, weights, name):
    """Central difference of the weighted sum of signals [B]."""
    step, sums = 1e-6, []
    for side in (step, -step):
        start, values = START, Values.none(2)
        if name in world.spec.start.names:
            columns = {n: START.array[:, k].copy() for k, n in enumerate(START.names)}
            columns[name] = columns[name] + side
            start = Values.of(columns)
        else:
            values = Values.of({name: [world.parameters[name].value + side] * 2})
        signals = rollout(world, start, ACTIONS, parameters=values).signals
        sums.append(sum((signals[n] * w[..., 0]).sum(axis=1) for n, w in weights.items()))
    return (sums[0] - sums[1]) / (2 * step)
