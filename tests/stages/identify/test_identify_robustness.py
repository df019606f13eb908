"""Recordings as they come: outliers, gaps, odd lengths, few of them; worlds that blow up."""

import warnings
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
    record,
)

from sameworld.core import Belief, SameworldWarning
from sameworld.stages.identify import identify
from sameworld.zoo import AnalyticCart, AnalyticPendulum

TRUTH = {MASS: 0.8, DAMPING: 0.05}


def fitted(episodes, *free, world=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SameworldWarning)
        config = quick(*(free or TRUTH), **options)
        return identify(world or AnalyticPendulum(substeps=1), episodes, config=config)[2]


def recorded(count=8, **options):
    return record(AnalyticPendulum(substeps=1), count, truth=TRUTH, noise=PENDULUM_NOISE, **options)


def errors(result):
    return [abs(result.verdict(n).value / v - 1) for n, v in TRUTH.items()]


def test_an_outlier_ridden_episode_is_outvoted():
    episodes, rng = recorded(), np.random.default_rng(0)
    position = episodes[2]["pivot.pos"]
    wild = np.where(rng.random(len(position)) < 0.4, rng.normal(0, 2, len(position)), 0.0)
    episodes[2] = episodes[2].with_channels([replace(position, values=position.values + wild)])
    plain = errors(fitted(episodes, loss="linear"))
    robust = errors(fitted(episodes, loss="cauchy", rounds=3))
    assert max(robust) < 0.03 < max(plain)


@pytest.mark.parametrize(
    ("weighting", "loss"),
    [("noise", "huber"), ("channel", "linear"), ("channel", "cauchy"), ("horizon", "cauchy")],
)
def test_every_weighting_and_loss_recovers_clean_data(weighting, loss):
    result = fitted(recorded(5, ticks=30), weighting=weighting, loss=loss, rounds=3)
    assert max(errors(result)) < 0.08


def test_channels_may_be_missing_from_some_episodes():
    episodes = recorded()
    for i in (1, 4):
        kept = [c for c in episodes[i].channels if c.name != "pivot.vel"]
        episodes[i] = replace(episodes[i], channels=tuple(kept))
    kept = [c for c in episodes[6].channels if c.name != "pivot.pos"]
    episodes[6] = replace(episodes[6], channels=tuple(kept))
    result = fitted(episodes, holdout=0.25)
    assert max(errors(result)) < 0.05
    assert result.holdout is None or result.holdout.passed


def test_episodes_may_have_different_lengths():
    episodes = [e.window(e.begin, e.begin + 0.3 + 0.1 * i) for i, e in enumerate(recorded())]
    assert len({len(e["pivot.pos"]) for e in episodes}) == 8
    assert max(errors(fitted(episodes))) < 0.05


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_episodes_are_enough_for_an_answer_with_intervals(count):
    result = fitted(recorded(count, ticks=80), holdout=0.2)
    assert result.holdout is None
    assert result.covariance_kind == "block bootstrap"
    for name, value in TRUTH.items():
        row = result.verdict(name)
        assert np.isfinite(row.std) and row.std > 0
        assert abs(row.value - value) < 5 * row.std


def test_clocks_may_begin_anywhere():
    shifted = [
        e.with_channels(replace(c, time=c.time + 1000.0 * i) for c in e.channels)
        for i, e in enumerate(recorded(4, ticks=30))
    ]
    plain, late = fitted(recorded(4, ticks=30)), fitted(shifted)
    for name in TRUTH:
        assert late.verdict(name).value == pytest.approx(plain.verdict(name).value, rel=1e-5)


def explosive(**values):
    """A cart whose integration blows up where damping over mass is large."""
    world = AnalyticCart(substeps=1)
    return world.with_belief(world.parameters.with_values(values))


def test_a_start_point_that_diverges_does_not_stop_the_search():
    truth = {CART[0]: 2.3, CART[1]: 0.7}
    episodes = record(
        AnalyticCart(substeps=1), 6, truth=truth, noise=CART_NOISE, size=10.0, ticks=120
    )
    world = explosive(**{CART[0]: 0.101, CART[1]: 19.9})
    with np.errstate(all="ignore"):
        result = fitted(
            episodes, *CART, world=world, search="sobol", candidates=8, polished=2, evaluations=40
        )
    for name, value in truth.items():
        assert result.verdict(name).value == pytest.approx(value, rel=0.05)


def test_a_region_that_gives_nan_is_left_alone():
    truth = {CART[0]: 0.6, CART[1]: 8.0}
    episodes = record(
        AnalyticCart(substeps=1), 4, truth=truth, noise=CART_NOISE, size=10.0, ticks=60, spread=0.2
    )
    world = explosive(**{CART[0]: 0.3, CART[1]: 15.0})
    with np.errstate(all="ignore"):
        result = fitted(episodes, *CART, world=world, search="sobol", candidates=8, evaluations=40)
    for name, value in truth.items():
        assert result.verdict(name).value == pytest.approx(value, rel=0.1)
    assert np.isfinite(result.cost)


def test_a_motionless_recording_gives_no_false_certainty():
    episodes = record(
        AnalyticPendulum(substeps=1), 8, noise={"pivot.pos": 1e-3}, size=0.0, spread=0.0, ticks=30
    )
    for row in fitted(episodes).verdicts:
        assert row.verdict != "determined"


def test_a_parameter_with_one_sided_or_no_bounds_can_be_fitted():
    world = AnalyticPendulum(substeps=1)
    free = replace(world.parameters[DAMPING], low=-np.inf, high=np.inf, transform="identity")
    loose = world.with_belief(world.parameters.updated(Belief(parameters=(free,))))
    result = fitted(recorded(), world=loose)
    assert max(errors(result)) < 0.05
