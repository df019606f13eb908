from dataclasses import replace

import numpy as np
import pytest

from sameworld.core import Belief, Channel, ChannelSpec, Episode
from sameworld.core.prediction import ChannelPrediction, Prediction
from sameworld.core.values import Values
from sameworld.loops.metrics import coverage, held_out_metrics, trust_score
from sameworld.stages.identify import IdentifyResult

SPECS = (ChannelSpec(name="a", tolerance=1.0), ChannelSpec(name="b"))


def prediction(trust, errors, *, clock=None):
    time = np.arange(len(errors)) * 0.1
    blank = np.zeros(len(errors))
    channel = ChannelPrediction(
        time=time, values=blank, low=blank, high=blank, error=np.asarray(errors, float)[:, None]
    )
    return Prediction(
        episode="e",
        warmup=2,
        channels={"a": channel},
        level=0.9,
        calibrated=True,
        valid=True,
        start=Values.none(),
        trust=np.asarray(trust, float),
        trust_time=time if clock is None else np.asarray(clock, float),
    )


def test_sure_and_right_is_perfect_and_sure_and_wrong_is_the_worst():
    right = trust_score(SPECS, [prediction([1, 1, 0, 0], [0.1, -0.9, 1.1, 5.0])])
    assert (right.brier, right.skill, right.calibration, right.rows) == (0, 1, 0, 4)
    wrong = trust_score(SPECS, [prediction([0, 0, 1, 1], [0.1, -0.9, 1.1, 5.0])])
    assert (wrong.brier, wrong.skill, wrong.calibration) == (1, -3, 1)


def test_honest_chances_are_calibrated_and_always_stating_the_share_has_no_skill():
    rng = np.random.default_rng(0)
    chance = rng.uniform(size=20_000)
    errors = np.where(rng.uniform(size=chance.size) < chance, 0.5, 2.0)
    honest = trust_score(SPECS, [prediction(chance, errors)])
    assert honest.calibration < 0.02
    assert honest.brier == pytest.approx(1 / 6, abs=0.005)
    assert honest.skill == pytest.approx(1 / 3, abs=0.02)
    lazy = trust_score(SPECS, [prediction(np.full(chance.size, honest.share), errors)])
    assert lazy.skill == pytest.approx(0, abs=1e-9)


def test_chances_are_read_at_the_measured_times_and_diverged_errors_are_misses():
    found = trust_score(SPECS, [prediction([1.0, 0.0], [0.0, np.nan, 0.0], clock=[0.0, 0.2])])
    assert found.stated == pytest.approx(0.5)
    assert found.share == pytest.approx(2 / 3)


def test_nothing_is_scored_without_tolerance_or_stated_chance():
    assert trust_score((ChannelSpec(name="a"),), [prediction([1, 1], [0, 0])]) is None
    assert trust_score(SPECS, [prediction([np.nan, np.nan], [0, 0])]) is None
    assert trust_score(SPECS, []) is None


def test_recordings_with_other_channels_are_scored_on_what_they_have():
    def seen(names, size):
        one = prediction([1, 1, 1], [size] * 3)
        return replace(one, channels=dict.fromkeys(names, one.channels["a"]))

    before = [seen("a", 1.0), seen("ab", 2.0), seen("b", 4.0)]
    after = [seen("a", 0.5), seen("ab", 1.0), seen("b", 1.0)]
    channel = Channel(name="a", time=np.arange(3), values=np.zeros(3))
    episodes = [Episode(id=f"e{k}", channels=(channel,)) for k in range(3)]
    numbers = held_out_metrics(episodes, before, after, nothing_fitted())
    assert numbers["a.before"] == 1.5 and numbers["a.after"] == 0.75
    assert numbers["b.before"] == 3.0 and numbers["b.after"] == 1.0
    assert numbers["gain_median"] == 0.5
    assert coverage(after, "b") == 0.0


def nothing_fitted():
    """The result of a fit that found nothing."""
    return IdentifyResult(
        posterior=Belief(),
        naive_covariance=np.zeros((0, 0)),
        covariance_kind="episode sandwich",
        misfit_factor=1.0,
        verdicts=(),
        combinations=(),
        holdout=None,
        residuals=(),
        delays=(),
        advice=(),
        searches=(),
        cost=0.0,
        history=(),
        episodes=(),
        windows=0,
        rollouts=0,
        cpu_seconds=0.0,
        seed=0,
    )
