import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameworld.core import Policy, SameworldError, SpecError
from sameworld.policies import Hold, MultiSine, Replay


def seen(batch):
    return {"x": np.zeros((batch, 2))}


def played(policy, batch, ticks):
    carry, rows = policy.init(batch), []
    for _ in range(ticks):
        carry, action = policy.act(carry, seen(batch))
        rows.append(action)
    return np.stack(rows, axis=1)


@pytest.mark.parametrize(
    "policy",
    [
        Hold(action=np.array([1.0, 2.0])),
        MultiSine(amplitude=np.array([1.0, 2.0]), period=0.01),
        Replay(actions=np.arange(8.0).reshape(4, 2)),
    ],
)
def test_policies_act_for_every_element_and_keep_no_memory_of_their_own(policy):
    assert isinstance(policy, Policy)
    first, second = played(policy, 3, 6), played(policy, 3, 6)
    assert first.shape == (3, 6, 2)
    assert np.array_equal(first, second)


def test_an_old_carry_can_be_used_again():
    policy = MultiSine(amplitude=np.array([1.0]), period=0.01)
    start = policy.init(1)
    later, first = policy.act(start, seen(1))
    policy.act(later, seen(1))
    assert np.array_equal(policy.act(start, seen(1))[1], first)


@given(
    seed=st.integers(0, 10**6),
    amplitude=st.floats(0, 50),
    centre=st.floats(-5, 5),
    count=st.integers(1, 8),
)
def test_multi_sines_stay_within_their_amplitude(seed, amplitude, centre, count):
    policy = MultiSine(
        amplitude=np.array([amplitude]),
        centre=np.array([centre]),
        period=0.02,
        count=count,
        seed=seed,
    )
    assert np.abs(played(policy, 2, 40) - centre).max() <= amplitude + 1e-9


def test_multi_sines_hold_only_the_asked_frequencies():
    policy = MultiSine(amplitude=np.array([1.0]), period=0.01, low=1.0, high=3.0, seed=2)
    signal = played(policy, 1, 4096)[0, :, 0] * np.hanning(4096)
    power = np.abs(np.fft.rfft(signal)) ** 2
    frequency = np.fft.rfftfreq(4096, 0.01)
    inside = (frequency > 0.9) & (frequency < 3.1)
    assert power[inside].sum() > 0.999 * power.sum()


def test_elements_components_and_seeds_are_excited_differently():
    policy = MultiSine(amplitude=np.ones(2), period=0.02)
    path = played(policy, 2, 50)
    other = played(MultiSine(amplitude=np.ones(2), period=0.02, seed=1), 2, 50)
    for a, b in ((path[0], path[1]), (path[..., 0], path[..., 1]), (path, other)):
        assert np.abs(a - b).max() > 0.1


def test_replay_holds_its_last_action():
    path = played(Replay(actions=np.array([[1.0], [2.0]])), 2, 4)
    assert path[0, :, 0].tolist() == [1, 2, 2, 2]


def test_replay_plays_each_element_its_own_actions():
    actions = np.arange(12.0).reshape(2, 3, 2)
    assert np.array_equal(played(Replay(actions=actions), 2, 3), actions)
    with pytest.raises(SpecError, match="2 elements, not 3"):
        Replay(actions=actions).init(3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Replay(actions=np.zeros(3)),
        lambda: Replay(actions=np.zeros((0, 3))),
        lambda: Replay(actions=np.array([[np.nan]])),
        lambda: MultiSine(amplitude=np.ones(2), period=0.1, high=6.0),
        lambda: MultiSine(amplitude=np.ones(2), period=0.1, low=0.0),
        lambda: MultiSine(amplitude=np.ones(2), period=0.1, centre=np.ones(3)),
        lambda: MultiSine(amplitude=np.ones(2), period=0.0),
        lambda: MultiSine(amplitude=np.ones(2), period=0.1, count=0),
    ],
)
def test_impossible_policies_are_refused(make):
    with pytest.raises(SameworldError):
        make()


def test_what_was_given_can_change_afterwards():
    given = np.array([1.0])
    policy = Hold(action=given)
    given[0] = 9.0
    assert played(policy, 1, 1)[0, 0, 0] == 1.0
