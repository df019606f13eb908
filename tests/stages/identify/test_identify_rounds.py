"""Residual scales are taken anew until they hold still; the prior's share is told."""

import math
from dataclasses import replace

import numpy as np
import pytest
from identify_recordings import CART, DAMPING, MASS, PENDULUM_NOISE, quick, record

from sameworld.core import Belief, FitError, Parameter
from sameworld.stages.identify import identify
from sameworld.stages.identify.fit import pose
from sameworld.stages.identify.scales import Profile, Scales
from sameworld.zoo import AnalyticCart, AnalyticPendulum

TRUTH = {MASS: 0.8, DAMPING: 0.05}


def guessed():
    """A pendulum with confident and wrong guesses."""
    world = AnalyticPendulum(substeps=1)
    belief = world.parameters.with_values({MASS: 0.3, DAMPING: 0.3})
    rows = tuple(replace(p, std=0.3 * p.value) if p.name in TRUTH else p for p in belief.parameters)
    return world.with_belief(Belief(parameters=rows))


def test_scales_of_a_poor_guess_do_not_let_the_prior_win():
    world = guessed()
    episodes = record(world, 8, truth=TRUTH, noise=PENDULUM_NOISE, seed=3)
    options = {"prior": True, "weighting": "channel"}
    settled = identify(world, episodes, config=quick(*TRUTH, rounds=8, **options))[2]
    for name, value in TRUTH.items():
        assert settled.verdict(name).value == pytest.approx(value, rel=0.05)
    for row in settled.residuals:
        assert row.rms_after == pytest.approx(row.noise, rel=0.3)


def test_rounds_end_where_scales_hold_still():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 6, truth=TRUTH, noise=PENDULUM_NOISE, seed=3)
    few, many = (
        identify(
            world,
            episodes,
            config=quick(*TRUTH, rounds=rounds, weighting="channel", loss="cauchy"),
        )[2]
        for rounds in (8, 40)
    )
    assert few.rollouts == many.rollouts
    assert few.verdicts == many.verdicts


def test_a_change_of_scales_is_the_largest_ratio():
    knots = np.array([0.0, 1.0])
    old, new = (
        Scales(noise={"a": 1.0}, profiles={"a": Profile(horizon=knots, std=np.array(std))})
        for std in ([1.0, 2.0], [1.0, 2.1])
    )
    assert new.change(old) == pytest.approx(math.log(1.05))
    assert old.change(old) == 0


# ---- the prior's share -------------------------------------------------------------------------


def passive(std):
    """A passive pendulum shows damping over mass only; both have priors of relative ``std``."""
    world = AnalyticPendulum(substeps=1)
    parameters = tuple(
        replace(p, std=std * p.value) if p.name in TRUTH else p for p in world.parameters.parameters
    )
    return world.with_belief(Belief(parameters=parameters))


def test_an_unseen_common_scale_is_not_determined_by_tight_priors():
    world = passive(0.1)
    episodes = record(world, 8, truth=TRUTH, noise=PENDULUM_NOISE, size=0.0, ticks=80)
    result = identify(world, episodes, config=quick(*TRUTH, prior=True))[2]
    for name in TRUTH:
        row = result.verdict(name)
        assert row.std < 0.3 * row.value  # narrow enough, but not by the recordings
        assert row.verdict == "only in combination"
        assert "by its prior" in row.detail and "% of that" in row.detail
    (combination,) = result.combinations
    assert combination.weights[MASS] == pytest.approx(-combination.weights[DAMPING], rel=0.05)


def test_a_prior_that_recordings_improve_on_does_not_disturb_the_verdict():
    world = passive(0.1)
    episodes = record(world, 8, truth=TRUTH, noise=PENDULUM_NOISE)
    result = identify(world, episodes, config=quick(*TRUTH, prior=True))[2]
    assert {v.verdict for v in result.verdicts} == {"determined"}


# ---- bounds at infinity ------------------------------------------------------------------------


@pytest.mark.parametrize("high", [0.6, 3.0])
def test_a_logit_parameter_at_its_bound_says_so(high):
    world = AnalyticPendulum(substeps=1)
    mass = Parameter(name=MASS, value=0.4, low=0.1, high=high, unit="kg", transform="logit")
    others = [p for p in world.parameters.parameters if p.name != MASS]
    world = world.with_belief(Belief(parameters=(mass, *others)))
    episodes = record(world, 6, truth=TRUTH, noise=PENDULUM_NOISE)
    row = identify(world, episodes, config=quick(MASS, rounds=2, evaluations=60))[2].verdict(MASS)
    if high > TRUTH[MASS]:
        assert row.verdict == "determined"
        assert row.value == pytest.approx(TRUTH[MASS], rel=0.05)
    else:
        assert row.verdict == "at bound"
        assert "leave [0.1, 0.6] kg" in row.detail


# ---- warm-up and windows -----------------------------------------------------------------------


def test_windows_that_are_all_warm_up_are_refused_with_a_way_out():
    world = AnalyticPendulum(substeps=1)
    episodes = [e.head(5) for e in record(world, 2, noise=PENDULUM_NOISE)]
    with pytest.raises(FitError, match="all warm-up"):
        identify(world, episodes, config=quick(MASS, starts="warmup", warmup=5))


@pytest.mark.parametrize("weighting", ["noise", "channel", "horizon"])
def test_one_episode_without_a_row_to_score_does_not_stop_the_fit(weighting):
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 6, truth=TRUTH, noise=PENDULUM_NOISE)
    cut = [episodes[0].head(5), *episodes[1:]]
    config = quick(MASS, starts="warmup", warmup=5, weighting=weighting, rounds=2)
    result = identify(world, cut, config=config)[2]
    row = result.verdict(MASS)
    assert abs(row.value - TRUTH[MASS]) < 4 * row.std


def test_channels_are_scored_after_the_slowest_channels_warm_up():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 3, noise=PENDULUM_NOISE, every={"pivot.pos": 5}, ticks=60)
    config = quick(MASS, starts="warmup", warmup=4)
    problem = pose(world, episodes, config)
    starts = problem.warm_starts(problem.prior_mean, 4)
    last = 3 * 5 * world.spec.period
    for block in problem.simulate(problem.prior_mean, starts):
        assert {p.channel.name for p in block.parts} == set(PENDULUM_NOISE)
        assert all(p.time.min() > last for p in block.parts)
        assert block.time.min() > last
        assert len(block.head.residual) == 2 * 4 + len(world.spec.start)  # rows and priors


def test_one_warm_up_row_will_do_where_it_shows_the_start():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 10, truth=TRUTH, noise={"pivot.pos": 1e-4, "pivot.vel": 1e-3})
    _, _, result = identify(world, episodes, config=quick(*TRUTH, starts="warmup", warmup=1))
    for name, value in TRUTH.items():
        row = result.verdict(name)
        assert row.value == pytest.approx(value, rel=0.1)
        assert abs(row.value - value) < 4 * row.std


# ---- imprecise is not forgotten ----------------------------------------------------------------


def test_a_linear_cart_is_never_cut_however_imprecise_its_start():
    world = AnalyticCart(substeps=1)
    noise = {"rail.pos": 0.05}
    truth = {CART[0]: 2.0, CART[1]: 0.5}
    episodes = record(world, 8, truth=truth, noise=noise, ticks=150, size=10.0)
    options = {"window": 0.0, "starts": "auto"}
    auto = identify(world, episodes, config=quick(*CART, **options))[2]
    whole = identify(world, episodes, config=quick(*CART))[2]
    assert auto.windows == len(episodes)
    for name in CART:
        assert auto.verdict(name).std == pytest.approx(whole.verdict(name).std)
