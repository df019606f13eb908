"""Delays that the fit leaves over, and whether residuals are white."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from identify_recordings import DAMPING, MASS, PENDULUM_NOISE, quick, record

from sameworld.core import SameworldWarning
from sameworld.stages.identify import identify
from sameworld.zoo import AnalyticPendulum

TRUTH = {MASS: 0.8, DAMPING: 0.05}
PERIOD = 0.02
ONE = {"pivot.pos": 0.003}
#: Each channel is audited as if the others were on time.
BOTH = PENDULUM_NOISE


def audited(noise=ONE, *, shift=0.0, seed=1, size=1.0, only=None, count=8, ticks=60, **options):
    """The result of fitting recordings whose stamps lag by ``shift`` sampling steps."""
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, count, truth=TRUTH, noise=noise, seed=seed, size=size, ticks=ticks)
    episodes = [
        e.with_channels(
            replace(c, time=c.time + shift * PERIOD)
            for c in e.observations
            if only is None or c.name == only
        )
        for e in episodes
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SameworldWarning)
        return identify(world, episodes, config=quick(MASS, DAMPING, **options))[2]


@pytest.mark.parametrize("shift", [1.0, -1.0])
@pytest.mark.parametrize("noise", [ONE, PENDULUM_NOISE])
def test_a_shift_of_one_step_is_flagged_with_its_sign_and_size(shift, noise):
    result = audited(noise, shift=shift)
    for audit in result.delays:
        assert audit.suspicious
        assert audit.delay == pytest.approx(shift * PERIOD, rel=0.2)
        assert ("late" if shift > 0 else "early") in audit.text
        assert f"{audit.channel}: {audit.text}" in result.advice


def test_the_channel_that_lags_is_told_from_the_one_that_does_not():
    delays = {d.channel: d for d in audited(PENDULUM_NOISE, shift=1.0, only="pivot.vel").delays}
    assert delays["pivot.vel"].suspicious
    assert delays["pivot.vel"].delay == pytest.approx(PERIOD, rel=0.2)
    assert not delays["pivot.pos"].suspicious


def test_the_user_is_warned_of_a_delay():
    world = AnalyticPendulum(substeps=1)
    late = [
        e.with_channels(replace(c, time=c.time + PERIOD) for c in e.observations)
        for e in record(world, 8, truth=TRUTH, noise=ONE, seed=1)
    ]
    with pytest.warns(SameworldWarning, match=r"pivot\.pos: The data come .* ms too late"):
        identify(world, late, config=quick(MASS, DAMPING))


def test_true_stamps_are_hardly_ever_flagged():
    flagged = [
        any(d.suspicious for d in audited(seed=seed, ticks=25, count=6).delays)
        for seed in range(20)
    ]
    assert sum(flagged) <= 1


@pytest.mark.parametrize("noise", [ONE, PENDULUM_NOISE])
def test_a_passive_motion_says_that_it_cannot_tell(noise):
    for shift in (0.0, 1.0):
        result = audited(noise, shift=shift, size=0.0, prior=True)
        for audit in result.delays:
            assert not audit.suspicious
            assert "cannot be told" in audit.text
            assert audit.std > PERIOD / 4


def test_a_delay_is_found_in_a_single_recording_too():
    result = audited(shift=1.0, count=1, ticks=150)
    assert result.delays[0].suspicious
    assert result.delays[0].delay == pytest.approx(PERIOD, rel=0.2)


def test_white_residuals_are_called_white_and_a_wrong_model_is_not():
    right = audited(PENDULUM_NOISE, ticks=40)
    assert all(r.white and abs(r.whiteness) < 0.15 for r in right.residuals)
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 8, truth=TRUTH, noise=PENDULUM_NOISE, ticks=40)
    heavy = world.with_belief(world.parameters.with_values({MASS: 2.0}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SameworldWarning)
        wrong = identify(heavy, episodes, config=quick(DAMPING))[2]
    for row in wrong.residuals:
        assert not row.white and row.whiteness > 0.3
        assert row.rms_after > 2 * row.noise


def test_residuals_are_summed_up_in_the_channels_units():
    rows = {r.channel: r for r in audited(PENDULUM_NOISE).residuals}
    assert (rows["pivot.pos"].unit, rows["pivot.vel"].unit) == ("rad", "rad/s")
    for name, sigma in PENDULUM_NOISE.items():
        row = rows[name]
        assert row.noise == pytest.approx(sigma, rel=0.3)
        assert row.rms_after == pytest.approx(sigma, rel=0.1)
        assert row.rms_before > 3 * row.rms_after
        assert np.isfinite(row.weight_std)


@pytest.mark.parametrize(("count", "ticks", "rho", "seeds"), [(4, 25, 0.95, 6), (1, 60, 0.8, 24)])
def test_few_recordings_with_correlated_noise_raise_no_alarm(count, ticks, rho, seeds):
    flagged = []
    for seed in range(seeds):
        world, rng = AnalyticPendulum(substeps=1), np.random.default_rng([seed, 3])
        exact = dict.fromkeys(BOTH, 1e-9)
        clean = record(world, count, truth=TRUTH, noise=exact, seed=seed, ticks=ticks)
        noisy = [
            e.with_channels(
                replace(c, values=c.values + BOTH[c.name] * walk(rng, len(c), rho))
                for c in e.observations
            )
            for e in clean
        ]
        delays = identify(world, noisy, config=quick(MASS, DAMPING))[2].delays
        flagged.append(any(d.suspicious for d in delays))
    assert not any(flagged)


def walk(rng, rows, rho):
    """Autocorrelated noise of unit variance."""
    series = rng.normal(size=rows)
    for k in range(1, rows):
        series[k] = rho * series[k - 1] + np.sqrt(1 - rho**2) * series[k]
    return series
