"""Batches in and out: actions checked, failures as values."""

import numpy as np
import pytest

from sameworld.core import ChannelSpec, Spec, SpecError
from sameworld.worlds.compiled.batches import Failure, checked_action, checked_actions, rollout_of

SPEC = Spec(
    period=0.1,
    observations=(ChannelSpec(name="x"), ChannelSpec(name="p", shape=(3,))),
    actions=(ChannelSpec(name="u"), ChannelSpec(name="w")),
)


def signals(batch, rows):
    return {"x": np.ones((batch, rows)), "p": np.ones((batch, rows, 3))}


def test_actions_come_out_as_floats_of_one_shape():
    assert checked_action(SPEC, np.ones((3, 2), dtype=int), 3).dtype == np.float64
    assert checked_actions(SPEC, np.ones((3, 4, 2), dtype=int), 3).shape == (3, 4, 2)


@pytest.mark.parametrize(
    ("action", "reason"),
    [(np.ones(2), r"\[3, 2\]"), (np.ones((1, 2)), r"\[3, 2\]"), (np.full((3, 2), np.nan), "NaN")],
)
def test_an_action_that_does_not_fit_is_refused(action, reason):
    with pytest.raises(SpecError, match=reason):
        checked_action(SPEC, action, 3)


def test_actions_of_another_batch_are_refused():
    with pytest.raises(SpecError, match="hold 2 elements, the state 3"):
        checked_actions(SPEC, np.ones((2, 5, 2)), 3)


def test_failures_end_an_element_where_they_happened_and_say_why():
    failures = {1: Failure(row=2, reason="burst"), 2: Failure(row=0, reason="never began")}
    result = rollout_of(SPEC, signals(4, 5), np.zeros((4, 4, 2)), failures)
    assert result.valid.sum(axis=1).tolist() == [5, 2, 0, 5]
    assert result.reason == ("", "burst", "never began", "")
    assert np.allclose(result.time, [0.0, 0.1, 0.2, 0.3, 0.4])
    assert np.isnan(result.trust).all()


def test_values_that_are_not_finite_end_an_element_too():
    seen = signals(2, 5)
    seen["p"][1, 3:, 2] = np.inf
    result = rollout_of(SPEC, seen, np.zeros((2, 4, 2)), {})
    assert result.valid.tolist() == [[True] * 5, [True] * 3 + [False] * 2]
    assert result.reason == ("", "signals became NaN or infinite")
