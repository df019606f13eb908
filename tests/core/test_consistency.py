"""Does the consistency test see that reality changed, and only then?"""

import numpy as np
import pytest

from sameworld.core import Channel, Episode, SpecError, Values, consistency, rollout
from sameworld.stages.identify import IdentifyConfig, identify
from sameworld.zoo import AnalyticPendulum

NAMES = ("body:bob.mass", "joint:pivot.damping")


def episode(world, name, damping, seed, rows=150):
    rng = np.random.default_rng(seed)
    start = Values(names=world.spec.start.names, array=rng.normal(0, [0.8, 1.0], (1, 2)))
    truth = Values(names=NAMES, array=np.array([[0.5, damping]]))
    actions = 0.5 * np.sin(np.arange(rows)[None, :, None] * 0.1 + rng.uniform(0, 6))
    result = rollout(world, start, actions, parameters=truth)
    noisy = result.signals["pivot.pos"][0] + rng.normal(0, 2e-3, rows + 1)
    return Episode(
        id=name,
        channels=(
            Channel(name="pivot.pos", time=result.time, values=noisy, unit="rad"),
            Channel(
                name="pivot_motor", time=result.time[:-1], values=actions[0, :, 0], role="action"
            ),
        ),
    )


@pytest.fixture(scope="module")
def fitted():
    world = AnalyticPendulum()
    episodes = [episode(world, f"train{k}", 0.02, k) for k in range(12)]
    config = IdentifyConfig(free=NAMES, search="none", holdout=0.0)
    return identify(world, episodes, config=config)[0]


def test_unchanged_reality_raises_no_alarm(fitted):
    found = [consistency(fitted, episode(fitted, "same", 0.02, 100 + k)) for k in range(10)]
    assert all(f.consistent and f.alarm is None for f in found)
    p = np.concatenate([f.p_values for f in found])
    assert 0.02 < np.mean(p < 0.2) < 0.5


def test_changed_damping_raises_an_alarm_within_the_episode(fitted):
    found = consistency(fitted, episode(fitted, "changed", 0.3, 200))
    assert not found.consistent
    assert 0 < found.alarm <= 150 * fitted.spec.period + 1e-9


def test_a_world_whose_errors_were_never_measured_is_refused():
    world = AnalyticPendulum()
    with pytest.raises(SpecError, match="identify"):
        consistency(world, episode(world, "any", 0.02, 0))
