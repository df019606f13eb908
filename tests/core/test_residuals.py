"""Residuals at measurement times, and their derivatives against differences."""

import numpy as np
import pytest

from sameworld.core import Channel, ChannelSpec, Episode, Spec
from sameworld.core.manifolds import compose, quat_exp
from sameworld.core.residuals import compare, shared_channels
from sameworld.core.signals import difference

POSITION = ChannelSpec(name="pos", shape=(2,), unit="m")
TURN = ChannelSpec(name="turn", shape=(4,), manifold="quaternion")
SPEC = Spec(period=0.1, observations=(POSITION, TURN))
TICKS = 0.1 * np.arange(11)
POINT = np.array([0.7, -0.4, 1.3])


def moved(inputs):
    """Signals [11, ...] of a made-up system with three inputs."""
    a, b, c = inputs
    pos = np.stack([a * TICKS + b * TICKS**2, np.sin(c * TICKS)], axis=1)
    turns = np.stack([a * TICKS, b * TICKS, 0.5 * c * TICKS], axis=1)
    tilt = np.tile(quat_exp(np.array([0.2, 0.0, 0.0])), (11, 1))
    return {"pos": pos, "turn": compose(tilt, quat_exp(turns))}


def neighbours(step):
    """Signals with each input moved down and up."""
    for k in range(3):
        offset = step * (np.arange(3) == k)
        yield moved(POINT - offset), moved(POINT + offset)


def tangents(step=1e-6):
    """Tangent derivatives of the signals on the ticks [11, D, 3]."""
    pairs = list(neighbours(step))
    return {
        c.name: np.stack(
            [difference(c, low[c.name], high[c.name]) / (2 * step) for low, high in pairs], axis=-1
        )
        for c in (POSITION, TURN)
    }


def measured(seed=0, begin=0.0, jitter=True, spread=0.3):
    """An episode with own, jittered clocks per channel and samples far off the simulation."""
    rng = np.random.default_rng(seed)
    channels = []
    for channel, rows in ((POSITION, 9), (TURN, 6)):
        time = np.linspace(0.0, 1.0, rows)
        if jitter:
            time[1:-1] += rng.uniform(-0.03, 0.03, rows - 2)
        values = rng.normal(0, spread, (rows, 2))
        if channel is TURN:
            values = quat_exp(rng.normal(0, spread, (rows, 3)))
        channels.append(Channel(name=channel.name, time=begin + time, values=values))
    return Episode(id="e", channels=tuple(channels))


def test_the_jacobian_is_the_derivative_of_the_error_on_ticks_quaternions_included():
    episode = measured(jitter=False)
    aligned = episode.with_channels(
        Channel(name=c.name, time=TICKS[: len(c)], values=c.values) for c in episode.channels
    )
    step = 1e-5
    found = compare(SPEC, aligned, moved(POINT), tangents())
    for k, (low, high) in enumerate(neighbours(step)):
        pairs = zip(compare(SPEC, aligned, low), compare(SPEC, aligned, high), strict=True)
        for part, (below, above) in zip(found, pairs, strict=True):
            numeric = (above.error - below.error) / (2 * step)
            np.testing.assert_allclose(part.jacobian[:, :, k], numeric, atol=1e-6)


def test_between_ticks_the_jacobian_is_exact_for_vectors_and_second_order_for_rotations():
    episode, step = measured(), 1e-5
    found = compare(SPEC, episode, moved(POINT), tangents())
    for k, (low, high) in enumerate(neighbours(step)):
        pairs = zip(compare(SPEC, episode, low), compare(SPEC, episode, high), strict=True)
        for part, (below, above) in zip(found, pairs, strict=True):
            numeric = (above.error - below.error) / (2 * step)
            tolerance = 1e-6 if part.channel is POSITION else 5e-3  # rotation per tick squared
            np.testing.assert_allclose(part.jacobian[:, :, k], numeric, atol=tolerance)


def test_the_simulation_comes_to_the_jittered_times_and_the_data_stay():
    episode = measured(seed=1)
    position, turn = compare(SPEC, episode, moved(POINT))
    at = episode["pos"].time
    expected = np.stack([np.interp(at, TICKS, moved(POINT)["pos"][:, d]) for d in (0, 1)], axis=1)
    np.testing.assert_allclose(position.error, episode["pos"].values - expected, atol=1e-12)
    np.testing.assert_allclose(position.time, at)
    tilt, rate = quat_exp(np.array([0.2, 0, 0])), np.array([0.7, -0.4, 0.65])
    exact = compose(np.tile(tilt, (6, 1)), quat_exp(episode["turn"].time[:, None] * rate))
    np.testing.assert_allclose(
        turn.error, difference(TURN, exact, episode["turn"].values), atol=1e-7
    )


def test_the_rate_is_the_slope_of_the_simulation():
    episode = measured(seed=2)
    position, turn = compare(SPEC, episode, moved(POINT), rates=True)
    for row, at in enumerate(position.time):
        k = min(int(at / 0.1 + 1e-9), 9)
        slope = (moved(POINT)["pos"][k + 1] - moved(POINT)["pos"][k]) / 0.1
        np.testing.assert_allclose(position.rate[row], slope)
    np.testing.assert_allclose(turn.rate, np.tile([0.7, -0.4, 0.65], (6, 1)), atol=1e-6)


def test_times_count_from_the_begin_of_the_episode_or_from_where_one_says():
    early, late = measured(seed=3), measured(seed=3, begin=7.25)
    for a, b in zip(
        compare(SPEC, early, moved(POINT)), compare(SPEC, late, moved(POINT)), strict=True
    ):
        np.testing.assert_allclose(a.error, b.error, atol=1e-9)
        np.testing.assert_allclose(a.time, b.time, atol=1e-9)
    shifted = compare(SPEC, late, moved(POINT), begin=7.15)
    np.testing.assert_allclose(shifted[0].time, late["pos"].time - 7.15)


def test_rows_choose_what_is_compared():
    episode = measured(seed=4)
    whole, tail = (
        compare(SPEC, episode, moved(POINT)),
        compare(SPEC, episode, moved(POINT), rows=slice(3, None)),
    )
    for part, rest in zip(whole, tail, strict=True):
        np.testing.assert_array_equal(part.error[3:], rest.error)
        np.testing.assert_array_equal(part.time[3:], rest.time)


@pytest.mark.parametrize("scale", [0.1, np.linspace(0.1, 1, 9)[:, None], np.full((9, 2), 0.3)])
def test_weights_divide_errors_and_derivatives_alike(scale):
    part = compare(SPEC, measured(), moved(POINT), tangents())[0]
    residual, jacobian = part.weighted(scale)
    full = np.broadcast_to(scale, part.error.shape)
    np.testing.assert_allclose(residual.reshape(9, 2) * full, part.error)
    np.testing.assert_allclose(jacobian.reshape(9, 2, 3) * full[..., None], part.jacobian)


def test_without_derivatives_the_jacobian_has_no_columns():
    part = compare(SPEC, measured(), moved(POINT))[1]
    assert part.jacobian.shape == (6, 3, 0)
    assert part.weighted(0.5)[1].shape == (18, 0)


def test_only_channels_that_both_sides_have_are_compared_in_the_worlds_order():
    episode = measured()
    extra = Channel(name="current", time=TICKS, values=np.ones(11))
    swapped = Episode(id="e", channels=(extra, episode["turn"], episode["pos"]))
    assert [c.name for c, _ in shared_channels(SPEC, swapped)] == ["pos", "turn"]
    lone = Episode(id="e", channels=(extra, episode["turn"]))
    assert [p.channel.name for p in compare(SPEC, lone, moved(POINT))] == ["turn"]
