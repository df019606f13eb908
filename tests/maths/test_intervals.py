"""Intervals hold what they promise."""

import numpy as np
import pytest
from scipy import stats

from sameworld.core.errors import SameworldError
from sameworld.maths.intervals import (
    Interval,
    bootstrap,
    coverage,
    median_change,
    paired_bootstrap,
    wilson,
    z_rms,
)


def test_wilson_agrees_with_scipy():
    for won, tried in [(0, 10), (3, 10), (10, 10), (57, 100)]:
        low, high = wilson(won, tried, level=0.9)
        twin = stats.binomtest(won, tried).proportion_ci(0.9, method="wilson")
        assert float(low) == pytest.approx(twin.low, abs=1e-12)
        assert float(high) == pytest.approx(twin.high, abs=1e-12)


def test_wilson_is_vectorised_and_knows_nothing_without_trials():
    low, high = wilson([0, 5], [0, 10])
    assert (low[0], high[0]) == (0, 1)
    assert 0 < low[1] < 0.5 < high[1] < 1


def test_wilson_covers_near_its_level():
    wins = np.random.default_rng(0).binomial(30, 0.2, size=20000)
    low, high = wilson(wins, 30, level=0.9)
    assert coverage(low, high, np.full(20000, 0.2)) == pytest.approx(0.9, abs=0.05)


@pytest.mark.parametrize("counts", [(3, 2), (-1, 2)])
def test_wilson_refuses_impossible_counts(counts):
    with pytest.raises(SameworldError, match="successes"):
        wilson(*counts)


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_bootstrap_covers_the_truth_about_as_often_as_it_says(statistic):
    rng = np.random.default_rng(1)
    hits = [
        0.3 in bootstrap(0.3 + rng.normal(size=40), seed=k, statistic=statistic, resamples=300)
        for k in range(300)
    ]
    assert np.mean(hits) == pytest.approx(0.9, abs=0.06)


def test_bootstrap_of_the_mean_has_the_normal_width():
    samples = np.random.default_rng(2).normal(2.0, 3.0, size=400)
    interval = bootstrap(samples, seed=0, level=0.95)
    half = 1.96 * samples.std() / np.sqrt(400)
    assert interval.estimate == pytest.approx(samples.mean())
    assert interval.high - interval.low == pytest.approx(2 * half, rel=0.1)


def test_pairing_removes_what_the_items_share():
    rng = np.random.default_rng(3)
    hard = rng.normal(0, 10, size=60)
    before, after = hard + rng.normal(size=60), hard - 1 + rng.normal(size=60)
    interval = paired_bootstrap(before, after, seed=0)
    assert interval.high < 0
    assert -1 in interval
    assert interval.high - interval.low < 1


def test_the_change_of_a_median_is_exact_where_every_item_changes_alike():
    before = np.random.default_rng(0).uniform(1, 9, size=31)
    change = median_change(before, 0.7 * before, seed=0)
    assert (change.low, change.estimate, change.high) == pytest.approx((-0.3, -0.3, -0.3))


def test_the_interval_of_a_change_holds_the_truth_at_least_as_often_as_it_says():
    rng = np.random.default_rng(2)
    hits = 0
    for trial in range(200):
        size = rng.lognormal(0.0, 0.6, size=(2, 41))
        before, after = size[0], size[0] * 0.8 * size[1] ** 0.3
        change = median_change(before, after, seed=trial, resamples=400)
        assert change.low <= change.estimate <= change.high
        assert change.high - change.low < 0.5
        hits += -0.2 in change
    assert hits / 200 > 0.87


def test_bootstrap_is_seeded():
    samples = np.arange(20.0)
    assert bootstrap(samples, seed=4) == bootstrap(samples, seed=4)
    assert bootstrap(samples, seed=4) != bootstrap(samples, seed=5)


def test_one_sample_gives_an_interval_of_no_width():
    assert bootstrap([2.0], seed=0) == Interval(estimate=2.0, low=2.0, high=2.0, level=0.9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bootstrap([], seed=0), "0 sample"),
        (lambda: bootstrap([1, np.nan], seed=0), "NaN"),
        (lambda: bootstrap([1.0], seed=0, level=90), "between 0 and 1"),
        (lambda: paired_bootstrap([1.0], [1.0, 2.0], seed=0), "Paired scores"),
        (lambda: median_change([1.0], [1.0, 2.0], seed=0), "equally long"),
        (lambda: median_change([0.0, 1.0], [1.0, 2.0], seed=0), "first positive"),
        (lambda: z_rms([1.0], [0.0], [1.0]), "positive standard"),
    ],
)
def test_bad_input_is_refused_with_the_reason(call, words):
    with pytest.raises(SameworldError, match=words):
        call()


def test_z_rms_is_one_for_honest_spreads_and_more_for_boastful_ones():
    rng = np.random.default_rng(5)
    std = rng.uniform(0.5, 2, size=5000)
    truth = np.zeros(5000)
    estimate = truth + std * rng.normal(size=5000)
    assert z_rms(estimate, std, truth) == pytest.approx(1, abs=0.05)
    assert z_rms(estimate, std / 4, truth) == pytest.approx(4, abs=0.2)


def test_coverage_counts_the_edges_and_knows_no_data():
    assert coverage([0, 0], [1, 1], [1, 2]) == 0.5
    assert np.isnan(coverage([], [], []))
