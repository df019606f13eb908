"""The gate, the split, and the intervals learned from held-out errors."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from identify_recordings import (
    CART,
    CART_NOISE,
    DAMPING,
    MASS,
    PENDULUM_NOISE,
    quick,
    record,
)

from sameworld.core import SameworldWarning, predict_all
from sameworld.stages.identify import identify
from sameworld.stages.identify.holdout import learn_discrepancy, score_holdout, split
from sameworld.zoo import AnalyticCart, AnalyticPendulum, learned_cart

TRUTH = {MASS: 0.8, DAMPING: 0.05}
WARMUP = 5


@given(st.integers(1, 60), st.floats(0, 0.9), st.integers(0, 10))
def test_the_split_is_disjoint_complete_and_the_same_every_time(count, share, seed):
    kept, held = split(count, share, seed)
    assert sorted([*kept, *held]) == list(range(count))
    assert (kept, held) == split(count, share, seed)
    assert len(held) == (round(share * count) if count >= 5 else 0)
    assert kept


def test_the_split_depends_on_the_seed():
    assert len({tuple(split(20, 0.3, seed)[1]) for seed in range(5)}) == 5


def test_a_good_fit_passes_and_says_by_how_much_it_predicts_better():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 10, truth=TRUTH, noise=PENDULUM_NOISE, ticks=30)
    fitted, _, result = identify(world, episodes, config=quick(*TRUTH, holdout=0.3))
    score = result.holdout
    assert score is not None and score.passed
    held = [episodes[i].id for i in split(10, 0.3, 0)[1]]
    assert list(score.episodes) == held and score.warmup == WARMUP
    assert 0.3 < score.gain_low <= score.gain <= score.gain_high <= 1
    assert all(len(v) == 3 for v in (*score.before.values(), *score.after.values()))
    assert fitted.parameters[MASS].value == result.verdict(MASS).value
    assert result.episodes == tuple(e.id for e in episodes)  # the final fit sees all of them


def shuffled(episodes, seed=0):
    """Episodes whose observations belong to other actions."""
    order = np.roll(np.arange(len(episodes)), 1)
    return [e.with_channels(episodes[order[i]].observations) for i, e in enumerate(episodes)]


def test_a_fit_that_predicts_worse_fails_the_gate_and_the_given_belief_is_kept():
    truth = AnalyticPendulum(substeps=1)
    knowing = truth.with_belief(truth.parameters.with_values(TRUTH))
    good = record(truth, 12, truth=TRUTH, noise=PENDULUM_NOISE, ticks=30, seed=3)
    kept, _ = split(12, 0.4, 0)
    garbage = shuffled([good[i] for i in kept])
    mixed = list(good)
    for i, e in zip(kept, garbage, strict=True):
        mixed[i] = e
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SameworldWarning)
        after, _, result = identify(knowing, mixed, config=quick(*TRUTH, holdout=0.4))
    score = result.holdout
    assert score is not None and not score.passed
    assert score.gain_high < 0
    assert after.parameters.to_json() == knowing.parameters.to_json()
    assert abs(result.verdict(MASS).value / TRUTH[MASS] - 1) > 0.02  # garbage did move the fit


def test_without_a_holdout_there_is_no_gate():
    world = AnalyticPendulum(substeps=1)
    for config in (quick(*TRUTH), quick(*TRUTH, holdout=0.5)):
        few = record(world, 4, truth=TRUTH, noise=PENDULUM_NOISE, ticks=30)
        _, _, result = identify(world, few, config=config)
        assert result.holdout is None


def test_learned_worlds_pass_the_same_gate():
    episodes = record(AnalyticCart(substeps=1), 10, noise=CART_NOISE, size=10.0, ticks=30)
    world, _, result = identify(learned_cart(), episodes, config=quick(holdout=0.3))
    assert result.holdout is not None and result.holdout.passed
    assert world.parameters.discrepancy is not None
    assert result.covariance_kind == "blocks" and not result.verdicts


def test_equal_predictions_are_no_reason_to_refuse():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 6, noise=PENDULUM_NOISE, ticks=30)
    same = predict_all(world, episodes, WARMUP)
    score = score_holdout(same, same, seed=0)
    assert score.passed and score.gain == score.gain_low == score.gain_high == 0
    assert not score_holdout(same, same, seed=0, better=True).passed


def test_blocks_must_predict_better_to_be_accepted_unless_asked_for_less():
    episodes = record(AnalyticCart(substeps=1), 10, noise=CART_NOISE, size=10.0, ticks=30)
    trained = learned_cart().fit(episodes, seed=0)
    after, _, result = identify(trained, episodes, config=quick(holdout=0.3))
    assert result.holdout is not None and result.holdout.gain_low <= 0
    assert after is trained and not result.holdout.passed
    _, _, lenient = identify(trained, episodes, config=quick(holdout=0.3, gate="not_worse"))
    assert lenient.holdout.passed is (lenient.holdout.gain_high >= 0)
    assert lenient.holdout.gain_high == result.holdout.gain_high


def test_named_parameters_must_be_better_where_that_is_asked_for():
    world = AnalyticPendulum(substeps=1)
    knowing = world.with_belief(world.parameters.with_values(TRUTH))
    episodes = record(world, 10, truth=TRUTH, noise=PENDULUM_NOISE, ticks=30)
    scores = {
        gate: identify(knowing, episodes, config=quick(*TRUTH, holdout=0.4, gate=gate))[2].holdout
        for gate in ("auto", "not_worse", "better")
    }
    assert scores["auto"] == scores["not_worse"]
    assert scores["auto"].gain_low < 0 < scores["auto"].gain_high
    assert scores["auto"].passed and not scores["better"].passed


def test_a_prediction_that_is_not_finite_counts_as_the_worst():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 6, noise=PENDULUM_NOISE, ticks=30)
    before = predict_all(world, episodes, WARMUP)
    broken = [
        replace(
            p,
            channels={
                n: replace(c, error=np.full_like(c.error, np.nan)) for n, c in p.channels.items()
            },
        )
        for p in before
    ]
    assert not score_holdout(before, broken, seed=0).passed


# ---- intervals -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def calibrated():
    """A pendulum fitted to twenty episodes."""
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 20, truth=TRUTH, noise=PENDULUM_NOISE, ticks=30, seed=4)
    return identify(world, episodes, config=quick(*TRUTH))[0]


def test_quantiles_rise_with_the_level_and_intervals_with_the_horizon(calibrated):
    record_ = calibrated.parameters.discrepancy
    assert record_.warmup == WARMUP and record_.episodes == 20
    for name, channel in record_.channels.items():
        assert (np.diff(channel.quantiles, axis=1) >= 0).all()
        assert (np.diff(channel.magnitude, axis=1) >= 0).all()
        assert (np.diff(channel.horizon) > 0).all()
        half = channel.half_width(np.array([0.02, 0.6]), 0.9)
        assert half[1, 0] > half[0, 0] > 0.5 * PENDULUM_NOISE[name]
    assert record_.noise == pytest.approx(PENDULUM_NOISE, rel=0.3)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_cover_fresh_recordings_as_often_as_they_say(calibrated, level):
    fresh = record(
        AnalyticPendulum(substeps=1), 60, truth=TRUTH, noise=PENDULUM_NOISE, ticks=30, seed=5
    )
    inside = [
        (fresh[i][n].values[WARMUP:] >= c.low) & (fresh[i][n].values[WARMUP:] <= c.high)
        for i, p in enumerate(predict_all(calibrated, fresh, WARMUP, level=level))
        for n, c in p.channels.items()
    ]
    assert np.mean(np.concatenate(inside)) == pytest.approx(level, abs=0.08)


def test_few_episodes_give_wider_intervals_than_their_errors():
    world = AnalyticPendulum(substeps=1)
    many = record(world, 40, noise=PENDULUM_NOISE, ticks=30, seed=6)
    predictions = predict_all(world, many, WARMUP)
    whole = learn_discrepancy(world.spec, many, predictions)
    widths = []
    for at in range(0, 40, 4):
        part = learn_discrepancy(world.spec, many[at : at + 4], predictions[at : at + 4])
        widths.append(part.channels["pivot.pos"].half_width(np.array([0.3]), 0.8)[0, 0])
    assert np.mean(widths) > whole.channels["pivot.pos"].half_width(np.array([0.3]), 0.8)[0, 0]


def test_learned_worlds_get_intervals_by_the_same_protocol():
    noise, size = CART_NOISE, 10.0
    episodes = record(AnalyticCart(substeps=1), 15, noise=noise, size=size, ticks=30)
    world = identify(learned_cart(), episodes, config=quick())[0]
    fresh = record(AnalyticCart(substeps=1), 40, noise=noise, size=size, ticks=30, seed=9)
    inside = [
        (fresh[i][n].values[WARMUP:] >= c.low) & (fresh[i][n].values[WARMUP:] <= c.high)
        for i, p in enumerate(predict_all(world, fresh, WARMUP))
        for n, c in p.channels.items()
    ]
    assert np.mean(np.concatenate(inside)) == pytest.approx(0.9, abs=0.08)
    assert CART[0] not in world.parameters.names
