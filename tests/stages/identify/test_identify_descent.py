"""Descent by reverse-mode slopes against least squares and against differences of the cost."""

from dataclasses import replace

import numpy as np
import pytest
from identify_recordings import (
    CART,
    CART_NOISE,
    DAMPING,
    MASS,
    PENDULUM_NOISE,
    quick,
    random_starts,
    record,
)

from sameworld.core import FitError
from sameworld.core.signals import difference_jacobian, lerp, pull_difference, pull_lerp
from sameworld.core.spec import ChannelSpec
from sameworld.stages.identify import identify
from sameworld.stages.identify.fit import pose, rescaled
from sameworld.stages.identify.reverse import Frame, settled, slopes
from sameworld.stages.identify.sessions import Sessions
from sameworld.stages.identify.solve import chosen_optimiser, optimise
from sameworld.worlds import build
from sameworld.zoo import AnalyticCart, AnalyticPendulum, scene

TRUTH = {MASS: 0.8, DAMPING: 0.05}
WAYS = pytest.mark.parametrize("starts", ["joint", "warmup"])


def posed(starts, loss="linear", count=6):
    """A problem off its optimum, measured between ticks, with residual scales and a prior."""
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, count, truth=TRUTH, noise=PENDULUM_NOISE, ticks=30, seed=1, jitter=0.3)
    config = quick(MASS, DAMPING, starts=starts, warmup=6, loss=loss, prior=True)
    problem = pose(world, episodes, config)
    u = problem.prior_mean + np.array([0.1, -0.2])
    begun = random_starts(world, count, 1).array + 0.01
    if starts == "warmup":
        begun = problem.warm_starts(u, 6)
    robust = loss != "linear"
    return rescaled(problem, u, begun, config, robust=robust), u, begun, config


def numerical(function, x, step=1e-5):
    moves = step * np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([(function(x + m) - function(x - m)) / (2 * step) for m in moves]).reshape(
        x.shape
    )


@WAYS
@pytest.mark.parametrize("loss", ["linear", "huber", "cauchy"])
def test_the_slope_is_that_of_the_cost(starts, loss):
    problem, u, begun, config = posed(starts, loss)

    def cost(u, begun=begun):
        return slopes(problem, settled(problem, [(u, begun)]), config)[0].cost

    found = slopes(problem, settled(problem, [(u, begun)]), config)[0]
    # Starts from the warm-up follow by Gauss-Newton: their curvature is not differentiated.
    tolerance = 1e-6 if starts == "joint" else 2e-3
    expected = numerical(cost, u)
    np.testing.assert_allclose(found.u, expected, atol=tolerance * np.abs(expected).max())
    if starts == "joint":
        by_start = numerical(lambda s: cost(u, s), begun)
        np.testing.assert_allclose(found.starts, by_start, atol=1e-6 * np.abs(by_start).max())


@WAYS
def test_the_cost_is_that_of_least_squares(starts):
    problem, u, begun, config = posed(starts, "cauchy")
    polished = optimise(problem, u, begun, replace(config, optimiser="least_squares"))
    here = slopes(problem, [(polished.u, polished.starts)], config)[0]
    assert here.cost == pytest.approx(polished.cost, rel=1e-9)


@WAYS
@pytest.mark.parametrize("optimiser", ["lbfgs", "adam"])
def test_descents_end_where_least_squares_does(starts, optimiser):
    problem, u, begun, config = posed(starts, "cauchy")
    config = replace(config, evaluations=50, tolerance=1e-9)
    slow = optimise(problem, u, begun, config)
    fast = optimise(problem, u, begun, replace(config, optimiser=optimiser, slopes=150))
    assert fast.cost == pytest.approx(slow.cost, rel=1e-3)
    np.testing.assert_allclose(fast.u, slow.u, atol=2e-3)
    np.testing.assert_allclose(fast.starts, slow.starts, atol=2e-3)


def test_several_points_are_one_batch_with_the_slopes_of_each():
    problem, u, begun, config = posed("joint")
    points = [(u, begun), (u + 0.1, begun - 0.02), (u - 0.05, begun)]
    frames = [Frame.at(problem, point) for point in points]
    together = slopes(problem, points, config, frames)
    for point, frame, found in zip(points, frames, together, strict=True):
        alone = slopes(problem, [point], config, [frame])[0]
        assert found.cost == pytest.approx(alone.cost, rel=1e-12)
        np.testing.assert_allclose(found.u, alone.u, rtol=1e-9)


def test_the_slope_with_starts_eliminated_is_that_of_the_reduced_problem():
    problem, u, begun, config = posed("joint")
    settled_starts = optimise(
        replace(problem, prior_std=np.full(2, 1e-6), prior_mean=u),
        u,
        begun,
        replace(config, evaluations=50),
    ).starts
    frame = Frame.at(problem, (u, settled_starts))
    full = slopes(problem, [(u, settled_starts)], config)[0]
    reduced = slopes(problem, [(u, settled_starts)], config, [frame])[0]
    # At starts that minimise the cost the partial slope is the total one.
    np.testing.assert_allclose(reduced.u, full.u, atol=1e-3 * np.abs(full.u).max())


def test_values_per_session_have_slopes_of_their_own():
    problem, u, begun, config = posed("joint")
    sessions = Sessions(
        size=2,
        names=("a", "b"),
        member=np.arange(6) % 2,
        columns=(1,),
        scale=np.array([0.3]),
    )
    problem = replace(problem, sessions=sessions)
    u = np.concatenate([u, [0.4, -0.7]])
    found = slopes(problem, [(u, begun)], config)[0]
    expected = numerical(lambda x: slopes(problem, [(x, begun)], config)[0].cost, u)
    np.testing.assert_allclose(found.u, expected, rtol=1e-5)


@pytest.mark.parametrize("optimiser", ["lbfgs", "adam"])
def test_a_descent_gives_the_posterior_and_verdicts_of_least_squares(optimiser):
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 10, truth=TRUTH, noise=PENDULUM_NOISE, ticks=40, seed=4)
    options = quick(*TRUTH, tolerance=1e-8)
    usual = identify(world, episodes, config=options)[2]
    other = identify(world, episodes, config=replace(options, optimiser=optimiser))[2]
    assert (usual.optimiser, other.optimiser) == ("least_squares", optimiser)
    for a, b in zip(usual.verdicts, other.verdicts, strict=True):
        assert abs(a.value - b.value) < 0.05 * a.std
        assert b.std == pytest.approx(a.std, rel=0.03)
        assert a.verdict == b.verdict


def test_a_descent_searches_other_points_as_one_batch():
    world = AnalyticCart(substeps=1)
    truth = {CART[0]: 2.3, CART[1]: 0.7}
    episodes = record(world, 4, truth=truth, noise=CART_NOISE, size=10.0, ticks=30)
    far = world.with_belief(world.parameters.with_values({CART[0]: 0.2, CART[1]: 15.0}))
    config = quick(*CART, optimiser="lbfgs", slopes=4, search="sobol", candidates=8, polished=3)
    result = identify(far, episodes, config=config)[2]
    assert len(result.searches) == 5  # the given values, three more, the best of them polished
    assert min(s.cost for s in result.searches[1:]) < result.searches[0].cost


def test_too_many_parameters_get_values_and_no_pretended_intervals(monkeypatch):
    monkeypatch.setattr("sameworld.stages.identify.fit.MOST_JUDGED", 1)
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 8, truth=TRUTH, noise=PENDULUM_NOISE, ticks=40, seed=4)
    fitted, _, result = identify(
        world, episodes, config=quick(*TRUTH, optimiser="lbfgs", holdout=0.25)
    )
    assert result.covariance_kind == "left out"
    assert result.holdout is not None and result.holdout.passed
    for row in result.verdicts:
        assert row.verdict == "no interval" and "2 parameters" in row.detail
        assert np.isinf(row.std)
        assert row.value == pytest.approx(TRUTH[row.name], rel=0.05)
        assert fitted.parameters[row.name].value == row.value
    assert any("too many" in line for line in result.advice)


def test_least_squares_is_the_usual_optimiser_until_parameters_are_many(monkeypatch):
    problem, _, _, config = posed("joint")
    assert chosen_optimiser(problem, config) == "least_squares"
    monkeypatch.setattr("sameworld.stages.identify.solve._MANY", 1)
    assert chosen_optimiser(problem, config) == "lbfgs"
    engine = replace(problem, world=build(scene("pendulum")))
    assert chosen_optimiser(engine, config) == "least_squares"


@pytest.mark.parametrize("options", [{"optimiser": "adam"}, {"derivatives": "exact"}])
def test_what_the_world_does_not_declare_is_refused_with_a_way_out(options):
    world = build(scene("cart"))
    episodes = record(AnalyticCart(substeps=1), 2, noise=CART_NOISE, ticks=20)
    with pytest.raises(FitError, match="differentiable"):
        identify(world, episodes, config=quick(*CART, **options))


# ---- transposes --------------------------------------------------------------------------------


def test_pulling_is_the_transpose_of_interpolation_and_of_the_error():
    rng = np.random.default_rng(0)
    ticks, at = rng.normal(size=(9, 3)), np.sort(rng.uniform(0, 0.8, 20))
    rows = rng.normal(size=(20, 3))
    pulled = pull_lerp(0.1, 9, rows, at)
    assert np.sum(rows * lerp(0.1, ticks, at)) == pytest.approx(np.sum(pulled * ticks))
    turn = ChannelSpec(name="q", shape=(4,), manifold="quaternion")
    plain = ChannelSpec(name="p", shape=(3,))
    error, tangent = 0.5 * rng.normal(size=(20, 3)), rng.normal(size=(20, 3))
    for channel in (turn, plain):
        pushed = difference_jacobian(channel, error, tangent[..., None])[..., 0]
        back = pull_difference(channel, error, rows)
        assert np.sum(rows * pushed) == pytest.approx(np.sum(back * tangent))
