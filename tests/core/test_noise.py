"""The noise estimate needs nothing but the data."""

import numpy as np
import pytest

from sameworld.core import Channel, ChannelSpec, Episode, Spec
from sameworld.core.manifolds import compose, quat_exp
from sameworld.core.noise import channel_noise, noise_levels

SCALAR = ChannelSpec(name="x", unit="m")
VECTOR = ChannelSpec(name="x", shape=(3,), unit="m")
TURN = ChannelSpec(name="q", shape=(4,), manifold="quaternion")
TIME = 0.01 * np.arange(400)


def _channel(values, name="x", **fields):
    return Channel(name=name, time=0.01 * np.arange(len(values)), values=values, **fields)


@pytest.mark.parametrize("sigma", [1e-4, 3e-3, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_a_known_sigma_is_recovered_within_a_fifth(sigma, seed):
    rng = np.random.default_rng(seed)
    smooth = np.stack([np.sin(TIME), TIME**2, 3 * np.cos(0.5 * TIME)], axis=1)
    noisy = smooth + sigma * rng.normal(size=smooth.shape)
    assert channel_noise(VECTOR, _channel(noisy)) == pytest.approx(sigma, rel=0.2)
    assert channel_noise(SCALAR, _channel(noisy[:, 0])) == pytest.approx(sigma, rel=0.25)


@pytest.mark.parametrize("seed", range(3))
def test_a_known_rotation_noise_is_recovered_within_a_fifth(seed):
    rng = np.random.default_rng(seed)
    path = quat_exp(np.stack([np.sin(TIME), 0.5 * TIME, np.cos(TIME)], axis=1))
    noisy = compose(path, quat_exp(0.02 * rng.normal(size=(400, 3))))
    noisy[::7] *= -1  # the sign of a quaternion means nothing
    assert channel_noise(TURN, _channel(noisy, "q")) == pytest.approx(0.02, rel=0.2)


def test_uneven_stamps_do_not_count_as_noise():
    rng = np.random.default_rng(0)
    time = np.sort(rng.uniform(0, 4, 400))
    noisy = 5 * np.sin(time) + 10 * time + 1e-3 * rng.normal(size=400)
    channel = Channel(name="x", time=time, values=noisy)
    assert channel_noise(SCALAR, channel) == pytest.approx(1e-3, rel=0.2)


def test_a_few_impacts_do_not_count_as_noise():
    rng = np.random.default_rng(0)
    jumps = np.cumsum(np.isin(np.arange(400), [50, 120, 260])) * 0.5
    noisy = jumps + 1e-3 * rng.normal(size=400)
    assert channel_noise(SCALAR, _channel(noisy)) == pytest.approx(1e-3, rel=0.2)


def test_stated_noise_is_kept():
    assert channel_noise(SCALAR, _channel(np.zeros(9), noise=0.25)) == 0.25


@pytest.mark.parametrize("values", [np.zeros(100), np.ones(3), [0.0, 1.0]])
def test_still_or_short_channels_have_a_small_positive_noise(values):
    assert 0 < channel_noise(SCALAR, _channel(values)) <= 1e-5


def test_levels_are_medians_over_the_episodes_that_have_the_channel():
    spec = Spec(period=0.01, observations=(SCALAR, TURN))
    episodes = [
        Episode(id=str(i), channels=(_channel(np.zeros(5), noise=noise),))
        for i, noise in enumerate([1.0, 2.0, 9.0])
    ]
    assert noise_levels(spec, episodes) == {"x": 2.0}
