from dataclasses import replace

import numpy as np
import pytest
from report_synthetic import POSITION, ROTATION, WARMUP, report_data

from sameworld.core.discrepancy import ChannelDiscrepancy
from sameworld.report.curves import (
    autocorrelation,
    coverage_by_horizon,
    coverage_share,
    error_by_horizon,
    inside,
    largest_likely,
)


@pytest.fixture(scope="module")
def data():
    return report_data(episodes=10)


def test_horizon_starts_at_the_last_warm_up_row(data):
    item = data.held_out[0]
    clock = item.episode["cube.pos"].time
    horizon = item.horizon("cube.pos", item.after.channels["cube.pos"])
    assert horizon[0] == pytest.approx(clock[WARMUP] - clock[WARMUP - 1])


def test_every_sample_is_binned_once(data):
    for curve in error_by_horizon(POSITION, data.held_out):
        rows = sum(len(h.after.channels["cube.pos"].time) for h in data.held_out)
        assert curve.count.sum() == rows
        assert (curve.low <= curve.middle).all() and (curve.middle <= curve.high).all()
        assert (np.diff(curve.horizon) > 0).all()


def test_inside_compares_tangent_errors_with_bounds(data):
    for spec in (POSITION, ROTATION):
        prediction = data.held_out[0].after.channels[spec.name]
        measured = data.held_out[0].episode[spec.name].values[WARMUP:]
        given = measured if spec is POSITION else prediction.error
        expected = (given >= prediction.low) & (given <= prediction.high)
        assert (inside(spec, prediction) == expected).all()


def test_coverage_is_whole_with_endless_bands_and_nothing_without(data):
    def with_bands(item, width):
        channel = item.after.channels["cube.pos"]
        wide = replace(channel, low=channel.values - width, high=channel.values + width)
        return replace(item, after=replace(item.after, channels={"cube.pos": wide}))

    for width, share in ((10.0, 1.0), (0.0, 0.0)):
        held_out = [with_bands(h, width) for h in data.held_out]
        assert coverage_share([POSITION], held_out) == share
        assert (coverage_by_horizon(POSITION, held_out).middle == share).all()


def test_autocorrelation_of_known_series():
    rng = np.random.default_rng(0)
    white = rng.standard_normal(20_000)
    found = autocorrelation(white, 3)
    assert found[0] == pytest.approx(1.0)
    assert np.abs(found[1:]).max() < 0.03
    walk = np.zeros(20_000)
    for k in range(1, len(walk)):
        walk[k] = 0.8 * walk[k - 1] + white[k]
    np.testing.assert_allclose(autocorrelation(walk, 3), 0.8 ** np.arange(4), atol=0.03)
    assert np.isnan(autocorrelation(np.ones(5), 2)).all()
    assert np.isnan(autocorrelation(np.array([0.0, 1.0]), 3)[2:]).all()


def test_horizons_that_few_episodes_reach_are_left_out(data):
    whole = error_by_horizon(POSITION, data.held_out)[1]
    short = [_cut(h, 20) for h in data.held_out[:6]]
    curve = error_by_horizon(POSITION, [*short, *data.held_out[6:]])[1]
    reached = short[0].horizon("cube.pos", short[0].after.channels["cube.pos"]).max()
    assert curve.horizon.max() <= reached * 1.2 < whole.horizon.max()


def test_the_likely_size_of_an_error_is_read_from_its_quantiles():
    known = ChannelDiscrepancy(
        horizon=[0.1, 0.3],
        levels=[0.5, 0.9],
        quantiles=np.ones((2, 2, 3)),
        magnitude=[[1.0, 2.0], [3.0, 6.0]],
    )
    found = largest_likely(known, np.array([0.0, 0.1, 0.2, 0.9]), 0.9)
    np.testing.assert_allclose(found, [2.0, 2.0, 4.0, 6.0])
    np.testing.assert_allclose(largest_likely(known, np.array([0.3]), 0.7), [4.5])


def _cut(item, rows):
    channel = item.after.channels["cube.pos"]
    kept = {p: getattr(channel, p)[:rows] for p in ("time", "values", "low", "high", "error")}
    short = replace(item.after, channels={"cube.pos": replace(channel, **kept)})
    return replace(item, after=short)
