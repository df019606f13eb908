"""Edge cases: lone sources of information, failed simulations, missing channels, few rows."""

from dataclasses import replace

import numpy as np
import pytest
from identify_recordings import CART, CART_NOISE, DAMPING, PENDULUM_NOISE, quick, record

from sameworld.core import Belief, Parameter
from sameworld.core.prediction import ChannelPrediction, Prediction
from sameworld.core.values import Values
from sameworld.stages.identify import identify
from sameworld.stages.identify.holdout import learn_discrepancy, score_holdout
from sameworld.zoo import AnalyticCart, AnalyticPendulum

TRUTH = dict(zip(CART, (2.2, 0.8), strict=True))


def predicted(episode, errors, channel="pivot.pos"):
    error = np.array(errors, dtype=float)[:, None]
    time = 0.02 * np.arange(2, 2 + len(error))
    found = ChannelPrediction(time=time, values=error, low=error, high=error, error=error)
    return Prediction(
        episode=episode,
        warmup=2,
        channels={channel: found},
        level=0.9,
        calibrated=False,
        valid=True,
        start=Values.none(),
        trust=time,
        trust_time=time,
    )


def test_a_parameter_that_one_episode_alone_informs_is_not_called_exact():
    world = AnalyticCart()
    moved = record(world, 1, truth=TRUTH, noise=CART_NOISE, size=10.0, seed=3)
    idle = record(world, 9, truth=TRUTH, noise=CART_NOISE, size=0.0, spread=0.0, seed=103)
    episodes = moved + [replace(e, id=f"idle {e.id}") for e in idle]
    result = identify(world, episodes, config=quick(*CART))[2]
    assert result.covariance_kind == "episode sandwich"
    for row in result.verdicts:
        assert 0.3 * row.naive_std < row.std < 5 * row.naive_std


@pytest.mark.parametrize(("before", "after", "passed"), [(np.nan, 0.1, True), (0.1, np.nan, False)])
def test_the_gate_favours_the_world_whose_simulations_survive(before, after, passed):
    old = [predicted(f"e{k}", [before, 0.1]) for k in range(3)]
    new = [predicted(f"e{k}", [after, 0.1]) for k in range(3)]
    assert score_holdout(old, new, seed=0).passed is passed


def test_channels_may_be_missing_in_some_held_out_episodes():
    world = AnalyticPendulum()
    episodes = record(world, 6, truth={DAMPING: 0.1}, noise=PENDULUM_NOISE, seed=1)
    short = [replace(e, channels=(e.channels[0], e.channels[2])) for e in episodes[::2]]
    result = identify(world, [*short, *episodes[1::2]], config=quick(DAMPING, holdout=0.5))[2]
    assert result.holdout is not None and result.holdout.passed


def test_two_scored_rows_are_enough_for_a_discrepancy():
    world = AnalyticPendulum()
    episodes = record(world, 4, noise={"pivot.pos": 0.003}, ticks=3)
    rows = [predicted(e.id, [0.1, 0.2]) for e in episodes]
    found = learn_discrepancy(world.spec, episodes, rows).channels["pivot.pos"]
    assert np.isfinite(found.quantiles).all()


def test_a_later_window_forgets_the_start_of_the_episode():
    episode = record(AnalyticPendulum(), 1, noise=PENDULUM_NOISE)[0]
    start = Belief(parameters=(Parameter(name="start:pivot.pos", value=0.1, std=0.01),))
    held = replace(episode, start=start)
    assert held.window(0.0, 0.5).start.names == ("start:pivot.pos",)
    assert not held.window(0.2, 0.5).start.names
