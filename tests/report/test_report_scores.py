from dataclasses import replace

import numpy as np
import pytest
from report_synthetic import POSITION, ROTATION, report_data

from sameworld.report.scores import scores


@pytest.fixture(scope="module")
def data():
    return report_data(episodes=10)


def test_typical_errors_agree_with_a_loop(data):
    found = scores(data)
    assert (found.source, found.episodes) == ("test", 10)
    for spec, row in zip((POSITION, ROTATION), found.channels, strict=True):
        before, after = (
            np.median([np.sqrt((p.channels[spec.name].error ** 2).sum(1)).mean() for p in side])
            for side in ([h.before for h in data.held_out], [h.after for h in data.held_out])
        )
        assert (row.name, row.before, row.after) == (spec.name, before, after)
        assert row.change.estimate == pytest.approx(after / before - 1)
        assert row.direction == -1 and row.change.high < 0
    assert [c.unit for c in found.channels] == ["m", "rad"]


def test_swapped_worlds_are_worse(data):
    swapped = tuple(replace(h, before=h.after, after=h.before) for h in data.held_out)
    assert [c.direction for c in scores(replace(data, held_out=swapped)).channels] == [1, 1]


def test_without_test_episodes_the_gate_speaks_and_without_both_nothing_does(data):
    gate = data.result.holdout
    found = scores(replace(data, held_out=()))
    assert found.source == "gate" and found.episodes == len(gate.episodes)
    assert found.channels[0].before == np.median(gate.before["cube.pos"])
    silent = replace(data, held_out=(), result=replace(data.result, holdout=None))
    assert scores(silent).source == "none" and scores(silent).channels == ()


def test_a_prediction_that_diverged_leaves_no_interval(data):
    channel = data.held_out[0].after.channels["cube.pos"]
    broken = replace(channel, error=np.full_like(channel.error, np.inf))
    after = replace(
        data.held_out[0].after, channels={**data.held_out[0].after.channels, "cube.pos": broken}
    )
    first = replace(data.held_out[0], after=after)
    row = scores(replace(data, held_out=(first, *data.held_out[1:]))).channels[0]
    assert row.change is None and row.direction == 0 and np.isfinite(row.after)
