"""Recover a known truth many times: errors are as large as the intervals say."""

import numpy as np
import pytest

from sameworld.core import Channel, Episode, Values, rollout
from sameworld.stages.identify import IdentifyConfig, identify
from sameworld.zoo import AnalyticPendulum

TRUTH = {"body:bob.mass": 0.8, "joint:pivot.damping": 0.05}
SEEDS, EPISODES, TICKS = 24, 12, 30


def recordings(world, seed):
    """Noisy positions of a driven pendulum from starts that nobody is told."""
    rng = np.random.default_rng(seed)
    start = Values(names=world.spec.start.names, array=rng.normal(0, 0.5, (EPISODES, 2)))
    actions = np.repeat(rng.uniform(-1, 1, (EPISODES, TICKS // 5, 1)), 5, axis=1)
    result = rollout(world, start, actions, parameters=Values.of(TRUTH))
    measured = result.signals["pivot.pos"] + 0.004 * rng.normal(size=(EPISODES, TICKS + 1))
    return [
        Episode(
            id=f"e{i}",
            channels=(
                Channel(name="pivot.pos", time=result.time, values=measured[i]),
                Channel(
                    name="pivot_motor",
                    time=result.time[:-1],
                    values=actions[i, :, 0],
                    role="action",
                ),
            ),
        )
        for i in range(EPISODES)
    ]


@pytest.mark.slow
def test_errors_are_as_large_as_the_intervals_say():
    world = AnalyticPendulum(substeps=1)
    config = IdentifyConfig(
        free=tuple(TRUTH),
        window=np.inf,
        starts="joint",
        weighting="noise",
        rounds=2,
        search="none",
        holdout=0.0,
    )
    default, naive, inside = [], [], []
    for seed in range(SEEDS):
        _, _, result = identify(world, recordings(world, seed), config=config)
        for name, value in TRUTH.items():
            row = result.verdict(name)
            assert row.verdict == "determined"
            default.append((row.value - value) / row.std)
            naive.append((row.value - value) / row.naive_std)
            inside.append(row.low <= value <= row.high)
    rms = [float(np.sqrt(np.mean(np.square(z)))) for z in (default, naive)]
    assert 0.8 < rms[0] < 1.3
    assert 0.8 < rms[1] < 1.25
    assert 0.82 <= np.mean(inside) <= 0.98
