import numpy as np
import pytest

from sameworld.core import SpecError, Task, Values, simulate
from sameworld.policies import Hold
from sameworld.zoo import AnalyticCart


class Untouched(AnalyticCart):
    """A world that must not be asked for anything but its spec."""

    def reset(self, start, parameters=None, *, seed=0):
        raise AssertionError("the first trial began")


def task(signal):
    return Task(
        name="reach",
        success=lambda s: s[signal] > 0.1,
        reward=lambda s: s[signal],
        needs={signal: "privileged"},
    )


def test_a_missing_signal_is_an_error_before_the_first_trial():
    with pytest.raises(SpecError, match=r"'reach' needs 'gripper\.force'.*'rail\.pos'"):
        simulate(Untouched(), Hold(action=np.ones(1)), Values.none(), 5, task=task("gripper.force"))


def test_a_task_passes_where_its_signals_exist():
    task("rail.pos").check(AnalyticCart().spec)


def test_cost_is_the_negative_reward():
    assert task("rail.pos").cost({"rail.pos": np.array([1.0, -2.0])}).tolist() == [-1.0, 2.0]
