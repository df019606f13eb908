"""A spec is checked when it is written, not when it is used."""

import numpy as np
import pytest

from sameworld.core import ChannelSpec, Spec, SpecError, Task

POSITION = ChannelSpec(name="pos", shape=(3,), unit="m")
TORQUE = ChannelSpec(name="torque", shape=(2,), unit="N m")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ChannelSpec(name="q", manifold="quaternion"), r"needs shape \(4,\)"),
        (lambda: ChannelSpec(name="q", manifold="sphere"), "manifold 'sphere'"),
        (lambda: ChannelSpec(name="q", low=1, high=0), r"bounds \[1, 0\]"),
        (lambda: ChannelSpec(name="q", tolerance=0), "tolerance 0"),
        (lambda: Spec(period=0, observations=()), "must be positive"),
        (lambda: Spec(period=0.1, observations=(POSITION, POSITION)), "twice: 'pos'"),
        (lambda: Spec(period=0.1, observations=(), capabilities={"fly"}), "'fly'"),
        (lambda: Spec(period=0.1, observations=(), starts_from="context"), "how many rows"),
    ],
)
def test_impossible_specs_are_refused(make, words):
    with pytest.raises(SpecError, match=words):
        make()


def test_sizes_follow_the_shapes():
    turn = ChannelSpec(name="q", shape=(4,), manifold="quaternion")
    assert (turn.size, turn.tangent, POSITION.tangent, ChannelSpec(name="x").size) == (4, 3, 3, 1)
    assert Spec(period=0.1, observations=(POSITION,), actions=(TORQUE,)).action_size == 2


def test_actions_are_checked_for_shape_and_finiteness():
    spec = Spec(period=0.1, observations=(POSITION,), actions=(TORQUE,))
    assert spec.check_actions(np.zeros((1, 5, 2), np.float32)).dtype == np.float64
    with pytest.raises(SpecError, match=r"\[B, T, 2\] for 'torque'"):
        spec.check_actions(np.zeros((5, 2)))
    with pytest.raises(SpecError, match="NaN"):
        spec.check_actions(np.full((1, 5, 2), np.nan))


def test_specs_agree_on_what_is_asked():
    one = Spec(period=0.1, observations=(POSITION,), actions=(TORQUE,))
    more = Spec(period=0.1, observations=(POSITION, ChannelSpec(name="x")), actions=(TORQUE,))
    slower = Spec(period=0.2, observations=(POSITION,), actions=(TORQUE,))
    idle = Spec(period=0.1, observations=(POSITION,))
    assert one.agrees_with(one)
    assert not one.agrees_with(more)
    assert one.agrees_with(more, ["pos"])
    assert not one.agrees_with(slower)
    assert not one.agrees_with(idle)


def test_a_task_that_needs_a_missing_signal_fails_before_the_first_trial():
    def success(signals):
        return signals["goal"] > 0

    task = Task(name="push", success=success, reward=success, needs={"goal": "measured"})
    with pytest.raises(SpecError, match="needs 'goal'"):
        task.check(Spec(period=0.1, observations=(POSITION,)))
    task.check(Spec(period=0.1, observations=(ChannelSpec(name="goal"),)))
