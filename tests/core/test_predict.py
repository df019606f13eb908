"""Open-loop prediction from warm-up rows, for worlds with a start and with a context."""

from dataclasses import replace

import numpy as np
import pytest

from sameworld.core import (
    Belief,
    Channel,
    ChannelDiscrepancy,
    Discrepancy,
    Episode,
    EpisodeError,
    Parameter,
    Values,
    predict,
    predict_all,
    rollout,
)
from sameworld.worlds import build
from sameworld.zoo import AnalyticCart, AnalyticPendulum, learned_cart, scene

WARMUP = 6
NAMES = {"pivot.pos": 0.002, "pivot.vel": 0.02, "rail.pos": 0.002, "rail.vel": 0.02}


def recorded(world, count, *, rows=40, seed=0, noise=1.0, parameters=None):
    """Episodes of different lengths from a one-joint world, sampled on its ticks."""
    rng = np.random.default_rng(seed)
    start = Values(names=world.spec.start.names, array=rng.normal(0, 0.4, (count, 2)))
    actions = np.repeat(rng.uniform(-1, 1, (count, rows // 5, 1)), 5, axis=1)
    result = rollout(world, start, actions, parameters=parameters)
    episodes = []
    for i in range(count):
        length = rows - 3 * (i % 4)
        channels = [
            Channel(
                name=name,
                time=10.0 * i + result.time[:length],
                values=values[i, :length] + noise * NAMES[name] * rng.normal(size=length),
            )
            for name, values in result.signals.items()
        ]
        motor = world.spec.actions[0].name
        channels.append(
            Channel(
                name=motor,
                time=10.0 * i + result.time[: length - 1],
                values=actions[i, : length - 1, 0],
                role="action",
            )
        )
        episodes.append(Episode(id=f"e{i}", channels=tuple(channels)))
    return episodes


def trained_cart(seed=5):
    """A learned cart fitted to recordings of the analytic one."""
    return learned_cart().fit(recorded(AnalyticCart(substeps=1), 12, seed=seed), seed=0)


KINDS = {
    "analytic": lambda: (AnalyticPendulum(substeps=1), AnalyticPendulum(substeps=1)),
    "explicit": lambda: (build(scene("cart"), "explicit"), AnalyticCart(substeps=1)),
    "learned": lambda: (trained_cart(), AnalyticCart(substeps=1)),
}


def discrepancy_for(world, std, *, warmup=WARMUP):
    """A discrepancy whose quantiles are those of Gaussian errors of ``std`` per channel."""
    levels = np.array([0.1, 0.5, 0.9, 0.95])
    normal = np.array([0.1257, 0.6745, 1.6449, 1.96])
    channels = {
        c.name: ChannelDiscrepancy(
            horizon=np.array([0.0, 1.0]),
            levels=levels,
            quantiles=np.tile((std[c.name] * normal)[None, :, None], (2, 1, c.tangent)),
            magnitude=np.tile((std[c.name] * normal)[None], (2, 1)),
        )
        for c in world.spec.observations
    }
    return Discrepancy(channels=channels, episodes=20, warmup=warmup)


def believing(world, discrepancy):
    """The world with a record of its errors."""
    return world.with_belief(replace(world.parameters, discrepancy=discrepancy))


@pytest.mark.parametrize("kind", KINDS)
def test_a_world_predicts_what_it_would_have_recorded(kind):
    world, source = KINDS[kind]()
    for prediction in predict_all(world, recorded(source, 5, seed=1), WARMUP):
        assert prediction.valid
        for name, channel in prediction.channels.items():
            rms = float(np.sqrt(np.mean(channel.error**2)))
            assert rms < (12 if kind == "learned" else 3) * NAMES[name], name


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_single_predictions(kind):
    world, source = KINDS[kind]()
    world = believing(world, discrepancy_for(world, NAMES))
    episodes = recorded(source, 6, seed=2)
    together = predict_all(world, episodes, WARMUP)
    assert [p.episode for p in together] == [e.id for e in episodes]
    for one, episode in zip(together, episodes, strict=True):
        alone = predict(world, episode, WARMUP)
        np.testing.assert_allclose(one.trust, alone.trust, atol=1e-9)
        for name in one.channels:
            np.testing.assert_allclose(
                one.channels[name].values, alone.channels[name].values, atol=1e-5
            )
            np.testing.assert_allclose(one.channels[name].time, alone.channels[name].time)


@pytest.mark.parametrize("kind", KINDS)
def test_later_rows_cannot_change_a_prediction(kind):
    world, source = KINDS[kind]()
    (episode,) = recorded(source, 1, seed=3)
    known = [replace(c, noise=NAMES[c.name]) for c in episode.observations]
    episode = episode.with_channels(known)
    rng = np.random.default_rng(0)
    spoilt = episode.with_channels(
        replace(c, values=np.r_[c.values[:WARMUP], rng.normal(size=len(c) - WARMUP)]) for c in known
    )
    plain, other = predict(world, episode, WARMUP), predict(world, spoilt, WARMUP)
    for name, channel in plain.channels.items():
        assert np.array_equal(channel.values, other.channels[name].values)
        assert not np.array_equal(channel.error, other.channels[name].error)


@pytest.mark.parametrize("kind", KINDS)
def test_later_rows_cannot_change_a_prediction_even_where_noise_must_be_guessed(kind):
    world, source = KINDS[kind]()
    (episode,) = recorded(source, 1, seed=3)
    rng = np.random.default_rng(0)
    spoilt = episode.with_channels(
        replace(c, values=np.r_[c.values[:WARMUP], rng.normal(size=len(c) - WARMUP)])
        for c in episode.observations
    )
    plain, other = predict(world, episode, WARMUP), predict(world, spoilt, WARMUP)
    for name, channel in plain.channels.items():
        assert np.array_equal(channel.values, other.channels[name].values)


@pytest.mark.parametrize("kind", KINDS)
def test_warm_up_rows_are_not_part_of_the_prediction(kind):
    world, source = KINDS[kind]()
    (episode,) = recorded(source, 1, seed=4)
    found = predict(world, episode, WARMUP)
    for name, channel in found.channels.items():
        assert np.array_equal(channel.time, episode[name].time[WARMUP:])
        np.testing.assert_allclose(
            channel.error[:, 0], episode[name].values[WARMUP:] - channel.values, atol=1e-12
        )


@pytest.mark.parametrize("kind", KINDS)
def test_an_unmeasured_world_says_that_it_is_uncalibrated(kind):
    world, source = KINDS[kind]()
    found = predict(world, recorded(source, 1)[0], WARMUP)
    assert not found.calibrated
    assert np.isnan(found.trust).all()
    for channel in found.channels.values():
        assert np.array_equal(channel.low, channel.values)
        assert np.array_equal(channel.high, channel.values)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_cover_as_often_as_they_say(level):
    std = {"pivot.pos": 0.05, "pivot.vel": 0.3}
    world = believing(
        AnalyticPendulum(substeps=1), discrepancy_for(AnalyticPendulum(substeps=1), std)
    )
    rng = np.random.default_rng(0)
    rough = [
        episode.with_channels(
            replace(
                c,
                values=c.values
                + rng.normal(0, std[c.name], len(c)) * (np.arange(len(c)) >= WARMUP),
                noise=0.05 * NAMES[c.name],
            )
            for c in episode.observations
        )
        for episode in recorded(AnalyticPendulum(substeps=1), 60, seed=6, noise=0.05)
    ]
    inside = []
    for found, episode in zip(predict_all(world, rough, WARMUP, level=level), rough, strict=True):
        assert found.calibrated and found.level == level
        for name, c in found.channels.items():
            measured = episode[name].values[WARMUP:]
            inside.append((measured >= c.low) & (measured <= c.high))
    assert np.mean(np.concatenate(inside)) == pytest.approx(level, abs=0.02)


def test_trust_is_the_chance_to_stay_within_every_tolerance():
    world = AnalyticPendulum(substeps=1)
    tolerance = {c.name: c.tolerance for c in world.spec.observations}
    assert tolerance == {"pivot.pos": 0.05, "pivot.vel": 0.5}
    std = {"pivot.pos": 0.05 / 1.6449, "pivot.vel": 0.5 / 0.6745}  # 90 % and 50 %
    found = predict(believing(world, discrepancy_for(world, std)), recorded(world, 1)[0], WARMUP)
    assert found.trust == pytest.approx(np.full(len(found.trust), 0.5), abs=1e-3)
    assert found.trust_time[0] == 0.0 and len(found.trust_time) == len(found.trust)


def test_trust_falls_with_the_time_since_the_warm_up():
    world = AnalyticPendulum(substeps=1)
    levels = np.array([0.5, 0.9])
    growing = ChannelDiscrepancy(
        horizon=np.array([0.0, 0.3]),
        levels=levels,
        quantiles=np.array([[[0.01], [0.02]], [[0.1], [0.2]]]),
        magnitude=np.array([[0.01, 0.02], [0.1, 0.2]]),
    )
    record = Discrepancy(channels={"pivot.pos": growing}, episodes=9, warmup=WARMUP)
    found = predict(believing(world, record), recorded(world, 1)[0], WARMUP)
    last = (WARMUP - 1) * world.spec.period
    during = found.trust[found.trust_time <= last + 1e-9]
    assert (during == during[0]).all() and during[0] > 0.95
    assert (np.diff(found.trust) <= 1e-12).all() and found.trust[-1] < 0.5
    widths = (found.channels["pivot.pos"].high - found.channels["pivot.pos"].low) / 2
    assert widths[0] == pytest.approx(0.02 + 0.18 * world.spec.period / 0.3)
    assert not (found.channels["pivot.vel"].high - found.channels["pivot.vel"].low).any()


def test_a_diverging_simulation_is_marked_and_not_trusted():
    world = believing(AnalyticCart(substeps=1), discrepancy_for(AnalyticCart(substeps=1), NAMES))
    (episode,) = recorded(AnalyticCart(substeps=1), 1, rows=600)
    stiff = {"joint:rail.damping": 20.0, "body:cart.mass": 0.1}  # unstable at this step
    with np.errstate(all="ignore"):
        found = predict(world.with_belief(world.parameters.with_values(stiff)), episode, WARMUP)
    assert not found.valid
    assert found.trust[0] > 0.9 and found.trust[-1] == 0.0
    assert predict(world, episode, WARMUP).valid


def test_session_parameters_reach_the_prediction():
    world = AnalyticPendulum(substeps=1)
    (episode,) = recorded(world, 1, parameters=Values.of({"body:bob.mass": 2.0}), noise=0.0)
    payload = Belief(parameters=(Parameter(name="body:bob.mass", value=2.0, scope="session"),))
    blind = predict(world, episode, WARMUP).channels["pivot.pos"].error
    told = predict(world, replace(episode, session=payload), WARMUP).channels["pivot.pos"].error
    assert np.abs(told).max() < 0.05 * np.abs(blind).max()


def test_stated_noise_beats_recorded_noise_beats_the_rows():
    world = AnalyticPendulum(substeps=1)
    (episode,) = recorded(world, 1, seed=8, noise=4.0)
    trusting = {"pivot.pos": 1e-4, "pivot.vel": 10.0}
    doubting = {"pivot.pos": 1.0, "pivot.vel": 1e-3}
    record = replace(discrepancy_for(world, NAMES), noise=trusting)
    starts = [
        predict(w, episode, WARMUP, noise=given).start.array[0]
        for w, given in (
            (world, None),
            (world, trusting),
            (world, doubting),
            (believing(world, record), None),
            (believing(world, record), doubting),
        )
    ]
    assert np.array_equal(starts[1], starts[3]) and np.array_equal(starts[2], starts[4])
    assert not np.allclose(starts[1], starts[2], atol=1e-4)
    assert not np.allclose(starts[0], starts[1], atol=1e-6)


def test_measurement_times_need_not_lie_on_ticks():
    world = AnalyticPendulum(substeps=1)
    (episode,) = recorded(world, 1, noise=0.0)
    rng = np.random.default_rng(1)
    position = episode["pivot.pos"]
    time = position.time.copy()
    time[1:-1] += rng.uniform(-0.008, 0.008, len(time) - 2)
    jittered = replace(position, time=time, values=np.interp(time, position.time, position.values))
    alone = replace(episode, channels=(jittered, episode["pivot_motor"]))
    found = predict(world, alone, WARMUP).channels["pivot.pos"]
    assert np.array_equal(found.time, time[WARMUP:])
    assert np.abs(found.error).max() < 2e-3


def test_an_episode_that_does_not_fit_is_refused_before_anything_runs():
    world = AnalyticPendulum(substeps=1)
    (episode,) = recorded(AnalyticCart(substeps=1), 1)
    with pytest.raises(EpisodeError, match="nothing in common"):
        predict(world, episode, WARMUP)
    (good,) = recorded(world, 1)
    with pytest.raises(EpisodeError, match="fewer than the warm-up"):
        predict(world, good.head(4), WARMUP)
    with pytest.raises(EpisodeError, match="lacks the action channel"):
        predict(world, replace(good, channels=good.observations), WARMUP)


def test_scores_begin_after_the_warm_up_of_the_slowest_channel():
    world = AnalyticPendulum(substeps=1)
    (episode,) = recorded(world, 1)
    fast, slow = (episode[name] for name in ("pivot.pos", "pivot.vel"))
    thinned = episode.with_channels([slow.rows(slice(None, None, 5))])
    prediction = predict(world, thinned, 4)
    last = thinned["pivot.vel"].time[3]
    for name in ("pivot.pos", "pivot.vel"):
        time = prediction.channels[name].time
        assert time[0] > last
        np.testing.assert_array_equal(time, thinned[name].time[thinned[name].time > last])
    assert len(prediction.channels["pivot.pos"].time) == len(fast) - 16
