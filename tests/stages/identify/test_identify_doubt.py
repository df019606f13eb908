"""Directions that recordings do not see: no information out of the error of differences."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from identify_recordings import quick

from sameworld.core import Belief, Channel, Episode, Parameter, Scene, Values, rollout
from sameworld.stages.identify import identify
from sameworld.stages.identify.doubt import doubtful, last_linear, without
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.fit import pose
from sameworld.worlds import build

#: A mass on a spring with a damper and nothing that pulls: only ratios show.
OSCILLATOR = """<mujoco><option timestep="0.005" gravity="0 0 0" integrator="implicitfast"/>
<custom><numeric name="control_period" data="0.02"/></custom><worldbody>
<body name="a"><joint name="j" type="slide" axis="1 0 0" stiffness="60" damping=".4"/>
  <geom type="sphere" size=".1" mass="1"/></body></worldbody></mujoco>"""
NAMES = {"body:a.mass": 1.0, "joint:j.stiffness": 60.0, "joint:j.damping": 0.4}
#: So precise that the error of a one-sided difference looks like a measurement.
NOISE = 1e-5


def oscillator(kind):
    parameters = tuple(
        Parameter(name=n, value=v, low=v / 10, high=10 * v, std=math.log(3) * v, transform="log")
        for n, v in NAMES.items()
    )
    belief = Belief(parameters=parameters)
    return build(Scene(name="oscillator", mjcf=OSCILLATOR, belief=belief), kind)


@pytest.fixture(scope="module")
def world():
    return oscillator("explicit")


@pytest.fixture(scope="module")
def ringing(world):
    """Eight recordings of the oscillator left to itself."""
    rng = np.random.default_rng(0)
    truth = Values.of({n: 1.2 * v for n, v in NAMES.items()})
    start = Values(names=world.spec.start.names, array=rng.normal(0, 0.5, (8, 2)))
    result = rollout(world, start, np.zeros((8, 40, 0)), parameters=truth)
    return [
        Episode(
            id=f"e{i}",
            channels=(
                Channel(
                    name="j.pos",
                    time=result.time,
                    values=result.signals["j.pos"][i] + NOISE * rng.normal(size=41),
                    noise=NOISE,
                ),
            ),
        )
        for i in range(8)
    ]


@pytest.fixture(scope="module")
def posed(world, ringing):
    """The problem of the explicit world at the truth, and that point."""
    problem = replace(pose(world, ringing, quick(*NAMES)), rough=False)
    u = problem.prior_mean + math.log(1.2)
    return problem, u, problem.warm_starts(u, 10)


def along_scale(linear):
    """Square of the signal along the common scale, per unit of the logarithm."""
    ones = np.ones(len(NAMES))
    return sum(float(np.sum((p @ ones) ** 2)) for p in linear.projected)


# ---- the signal along an exact null direction --------------------------------------------------


def test_one_sided_differences_see_a_scale_that_cannot_show_and_central_ones_hardly(posed):
    problem, u, starts = posed
    at = {c: Linear.at(replace(problem, central=c), u, starts) for c in (False, True)}
    assert along_scale(at[False]) > 1 / 0.3**2  # "determined"
    assert along_scale(at[True]) < 1e-4 * along_scale(at[False])


@pytest.mark.parametrize("step", [1e-9, 1e-5, 1e-4, 1e-2])
@pytest.mark.parametrize("warmup", [0, 10])
def test_the_last_linearisation_leaves_the_scale_open_at_any_step(posed, step, warmup):
    problem, u, starts = posed
    problem = replace(problem, difference=np.full(3, step), warmup=warmup)
    linear = last_linear(problem, u, starts, choose=False)
    values, vectors = np.linalg.eigh(sum(linear.bread) / 1e10)
    assert values[0] < 1e-11 * values[1]  # and nothing else is lost
    np.testing.assert_allclose(vectors[:, 0] / vectors[0, 0], 1.0, atol=1e-2)


def test_what_shows_keeps_its_derivative(posed):
    problem, u, starts = posed
    plain = Linear.at(replace(problem, difference=np.full(3, 1e-5)), u, starts)
    last = last_linear(replace(problem, difference=np.full(3, 1e-3)), u, starts, choose=False)
    close = 1e-5 * np.abs(plain.jacobian).max()
    np.testing.assert_allclose(last.jacobian, plain.jacobian, atol=close)


def test_steps_that_do_not_agree_at_the_optimum_are_chosen_again(posed):
    problem, u, starts = posed
    wide = replace(problem, difference=np.full(3, 1.0))
    truth = Linear.at(replace(problem, difference=np.full(3, 1e-5)), u, starts).jacobian
    off = [
        np.linalg.norm(last_linear(wide, u, starts, choose=choose).jacobian - truth)
        for choose in (False, True)
    ]
    assert off[1] < 1e-3 * np.linalg.norm(truth) < 0.1 * off[0]


def test_a_rough_cost_keeps_its_differences(posed):
    problem, u, starts = posed
    rough = replace(problem, rough=True, central=False, difference=np.full(3, 1e-2))
    kept = last_linear(rough, u, starts, choose=True).jacobian
    plain = Linear.at(replace(rough, central=True), u, starts).jacobian
    assert np.array_equal(kept, plain)


# ---- verdicts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [True, False])
@pytest.mark.parametrize(
    ("kind", "derivatives"),
    [
        ("explicit", "auto"),
        pytest.param("differentiable", "exact", marks=pytest.mark.slow),
    ],
)
def test_a_free_oscillator_is_known_in_ratios_only_by_every_derivative(
    world, ringing, kind, derivatives, prior
):
    if kind == "differentiable":
        pytest.importorskip("jax")
        world = oscillator(kind)
    config = quick(*NAMES, derivatives=derivatives, prior=prior)
    result = identify(world, ringing, config=config)[2]
    assert {v.verdict for v in result.verdicts} == {"only in combination"}
    assert all(len(v.partners) == 2 for v in result.verdicts)
    least = math.log(3) if prior else 1e3
    assert all(v.std / v.value > 0.5 * least for v in result.verdicts)
    ratio = result.verdict("joint:j.stiffness").value / result.verdict("body:a.mass").value
    assert ratio == pytest.approx(60.0, rel=1e-3)


def test_a_known_mass_leaves_nothing_in_doubt(world, ringing):
    known = {"body:a.mass": 1.2}
    told = world.with_belief(world.parameters.with_values(known))
    fits = [
        identify(told, ringing, config=quick(*list(NAMES)[1:], difference=step))[2]
        for step in (0.0, 1e-5)  # one-sided on the way, and central all the way
    ]
    for usual, careful in zip(*(f.verdicts for f in fits), strict=True):
        assert usual.verdict == careful.verdict == "determined"
        assert usual.value == pytest.approx(1.2 * NAMES[usual.name], rel=1e-3)
        assert usual.std == pytest.approx(careful.std, rel=1e-3)
        assert abs(usual.value - careful.value) < 1e-2 * careful.std


# ---- algebra -----------------------------------------------------------------------------------


def linear_of(jacobian):
    """A linearisation with one window and nothing but a Jacobian."""
    return Linear(
        u=np.zeros(jacobian.shape[1]),
        starts=np.zeros((1, 0)),
        blocks=[],
        projected=[jacobian],
        residual=[np.zeros(len(jacobian))],
        bread=[jacobian.T @ jacobian],
    )


def random_pair(seed, error, *, size=4, sizes=4.0):
    """Jacobians [30, size] at two steps, columns of very different sizes, blind along one."""
    rng = np.random.default_rng(seed)
    scale = 10 ** rng.uniform(0, sizes, size)
    blind = rng.normal(size=size) / scale
    exact = rng.normal(size=(30, size)) * scale
    weight = scale**2 * blind
    exact -= np.outer(exact @ blind, weight) / (weight @ blind)
    wrong = error * rng.normal(size=(2, 30, size)) * scale
    return linear_of(exact + wrong[0]), linear_of(exact + wrong[1]), blind


@given(st.integers(0, 2**31), st.floats(-5.5, -2.5))
def test_the_blind_direction_is_found_and_taken_out_and_nothing_else(seed, power):
    fine, coarse, blind = random_pair(seed, 10**power)
    found = doubtful(fine, coarse)
    assert found.shape == (4, 1)
    scale = np.linalg.norm(fine.jacobian, axis=0)
    pair = [v * scale / np.linalg.norm(v * scale) for v in (found[:, 0], blind)]
    assert abs(pair[0] @ pair[1]) > 1 - 1e-3
    cleaned = without(fine, found)
    assert np.linalg.norm(cleaned.jacobian @ found) < 1e-9 * np.linalg.norm(found[:, 0] * scale)
    moved = np.linalg.norm(cleaned.jacobian - fine.jacobian, axis=0)
    assert (moved < 10 * 10**power * scale).all()
    np.testing.assert_allclose(
        cleaned.bread[0] / np.outer(scale, scale),
        cleaned.jacobian.T @ cleaned.jacobian / np.outer(scale, scale),
        atol=1e-12,
    )


@given(st.integers(0, 2**31))
def test_the_nearest_linearisation_is_taken(seed):
    """Any other Jacobian without the effect is further away, columns measured by their sizes."""
    fine, coarse, _ = random_pair(seed, 1e-2)
    found = doubtful(fine, coarse)
    scale = np.linalg.norm(fine.jacobian, axis=0)
    cleaned = without(fine, found).jacobian
    rng = np.random.default_rng(seed)
    other = rng.normal(size=cleaned.shape) * scale
    q, _ = np.linalg.qr(found * scale[:, None])
    other -= (other / scale) @ q @ q.T * scale
    gap = np.linalg.norm((cleaned - fine.jacobian) / scale)
    assert np.linalg.norm((cleaned + 1e-2 * other - fine.jacobian) / scale) > gap


def test_equal_linearisations_leave_no_doubt_and_empty_columns_are_no_direction():
    fine, _, _ = random_pair(1, 0.1)
    dead = linear_of(np.column_stack([fine.jacobian, np.zeros(30)]))
    assert doubtful(dead, dead).shape == (5, 0)
    assert without(dead, doubtful(dead, dead)) is dead
