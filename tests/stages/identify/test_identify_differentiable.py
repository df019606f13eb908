"""One fit, four ways: explicit and differentiable world, differences and exact derivatives."""

from dataclasses import replace

import numpy as np
import pytest
from identify_recordings import DAMPING, MASS, PENDULUM_NOISE, quick, record

from sameworld.core import SameworldWarning, Scene, Values, silent_gradients
from sameworld.stages.identify import identify
from sameworld.stages.identify.derivatives import linearise
from sameworld.stages.identify.fit import pose, stepped
from sameworld.worlds import build
from sameworld.zoo import scene

pytest.importorskip("jax")

TRUTH = {MASS: 0.8, DAMPING: 0.05}
KINDS = ("differentiable", "explicit")

SLIDING = """
<mujoco>
  <option timestep="0.004" cone="pyramidal"/>
  <worldbody>
    <geom name="table" type="plane" size="1 1 0.1" friction="0.7 0.005 0.0001"/>
    <body name="puck" pos="0 0 0.02">
      <joint name="slide" type="slide" axis="1 0 0"/>
      <joint name="lift" type="slide" axis="0 0 1"/>
      <geom name="ball" type="sphere" size="0.02" mass="0.1" friction="0.3 0.005 0.0001"/>
    </body>
  </worldbody>
</mujoco>
"""
LOWER, HIGHER = "geom:ball.friction.slide", "geom:table.friction.slide"


@pytest.fixture(scope="module")
def worlds():
    """The zoo's pendulum, of either kind, with an integrator that both have."""
    zoo = scene("pendulum")
    shared = replace(zoo, mjcf=zoo.mjcf.replace('"RK4"', '"implicitfast"'))
    return {kind: build(shared, kind) for kind in KINDS}


@pytest.fixture(scope="module")
def episodes(worlds):
    return record(worlds["explicit"], 10, truth=TRUTH, noise=PENDULUM_NOISE, ticks=24, seed=3)


@pytest.mark.parametrize("starts", ["joint", "warmup"])
def test_every_kind_of_world_and_derivative_gives_the_same_fit(worlds, episodes, starts):
    config = quick(*TRUTH, starts=starts, warmup=6, tolerance=1e-8, evaluations=40)
    cases = [
        ("explicit", "auto", "differences"),
        ("differentiable", "auto", "exact"),
        ("differentiable", "differences", "differences"),
    ]
    fits = []
    for kind, asked, taken in cases:
        result = identify(worlds[kind], episodes, config=replace(config, derivatives=asked))[2]
        assert result.derivatives == taken
        fits.append(result)
    for other in fits[1:]:
        for a, b in zip(fits[0].verdicts, other.verdicts, strict=True):
            assert abs(a.value - b.value) < 1e-3 * a.std
            assert b.std == pytest.approx(a.std, rel=1e-3)
            assert a.verdict == b.verdict == "determined"


@pytest.mark.parametrize("starts", ["joint", "warmup"])
def test_exact_derivatives_are_those_of_fine_differences(worlds, episodes, starts):
    problem = pose(worlds["differentiable"], episodes, quick(*TRUTH, starts=starts, warmup=6))
    u = problem.prior_mean + 0.1
    begun = problem.warm_starts(u, 6)
    exact = linearise(replace(problem, exact=True), u, begun)
    fine = replace(problem, exact=False, difference=np.full(2, 1e-5))
    for a, b in zip(exact, linearise(fine, u, begun), strict=True):
        np.testing.assert_allclose(a.theta, b.theta, atol=1e-4 * np.abs(b.theta).max())
        np.testing.assert_allclose(a.residual, b.residual, atol=1e-9)
        if starts == "joint":
            np.testing.assert_allclose(a.start, b.start, atol=1e-4 * np.abs(b.start).max())


@pytest.mark.slow
def test_a_descent_in_reverse_mode_gives_the_same_fit(worlds, episodes):
    config = quick(*TRUTH, tolerance=1e-8, evaluations=40)
    slow = identify(worlds["explicit"], episodes, config=config)[2]
    fast = identify(worlds["differentiable"], episodes, config=replace(config, optimiser="lbfgs"))[
        2
    ]
    for a, b in zip(slow.verdicts, fast.verdicts, strict=True):
        assert abs(a.value - b.value) < 0.01 * a.std
        assert a.verdict == b.verdict


def test_a_rough_cost_leaves_exact_derivatives_aside_unless_they_are_asked_for(
    worlds, episodes, monkeypatch
):
    config = quick(*TRUTH)
    problem = pose(worlds["differentiable"], episodes, config)
    point = problem.prior_mean, np.zeros((10, 2))
    assert stepped(problem, *point, config).exact
    monkeypatch.setattr(
        "sameworld.stages.identify.fit.choose_steps", lambda *_: np.array([1e-4, 5e-2])
    )
    assert not stepped(problem, *point, config).exact
    asked = replace(config, derivatives="exact")
    assert stepped(problem, *point, asked).exact and stepped(problem, *point, asked).central


# ---- silent gradients --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sliding():
    return build(Scene(name="sliding", mjcf=SLIDING), "differentiable")


def pushed(batch=2, ticks=8):
    starts = Values.of({"start:slide.vel": np.linspace(0.5, 0.8, batch)})
    return starts, np.zeros((batch, ticks, 0))


@pytest.mark.slow
def test_the_lower_friction_of_a_pair_is_silent_and_the_scene_knows_why(sliding):
    from sameworld.worlds.differentiable import silence_reasons

    start, actions = pushed()
    names = (LOWER, HIGHER, "start:slide.vel")
    reasons = silence_reasons(sliding, names)
    assert list(reasons) == [LOWER]
    (row,) = silent_gradients(sliding, start, actions, wrt=names, reasons=reasons)
    assert row.name == LOWER
    assert row.kind == "no effect"
    assert "larger friction" in row.reason and "table" in row.reason


@pytest.mark.slow
def test_identify_warns_of_a_parameter_it_cannot_hear(worlds, episodes):
    touching_nothing = "geom:ball.friction.slide"
    with pytest.warns(SameworldWarning, match="changes nothing here"):
        result = identify(worlds["differentiable"], episodes, config=quick(MASS, touching_nothing))[
            2
        ]
    assert result.verdict(touching_nothing).verdict == "zero gradient"
    assert result.verdict(MASS).verdict == "determined"
