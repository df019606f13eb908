"""States clone, select and save bit-exactly; contexts and rollouts keep their batch."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameworld.core import Context, Rollout, SpecError, State, Values


def _state(batch=3, names=("body:a.mass", "joint:j.damping")):
    rng = np.random.default_rng(0)
    return State(
        arrays={"qpos": rng.normal(size=(batch, 7)), "contacts": np.arange(batch, dtype=np.int32)},
        time=rng.random(batch),
        key=rng.integers(0, 2**63, batch).astype(np.uint64) * np.uint64(2) + np.uint64(1),
        parameters=Values(names=names, array=rng.normal(size=(batch, len(names)))),
    )


def _same(a, b):
    assert set(a.arrays) == set(b.arrays)
    assert a.parameters.names == b.parameters.names
    pairs = [(a.arrays[n], b.arrays[n]) for n in a.arrays]
    pairs += [(a.time, b.time), (a.key, b.key), (a.parameters.array, b.parameters.array)]
    for one, two in pairs:
        assert (one.dtype, one.shape) == (two.dtype, two.shape)
        assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("names", [("body:a.mass", "joint:j.damping"), ()])
def test_a_state_survives_a_file_without_pickles(names):
    state = _state(names=names)
    file = io.BytesIO()
    np.savez(file, **state.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as saved:
        _same(State.from_arrays({name: saved[name] for name in saved.files}), state)


def test_a_state_with_a_part_missing_is_refused():
    flat = _state().to_arrays()
    del flat["key"]
    with pytest.raises(SpecError, match="lacks 'key'"):
        State.from_arrays(flat)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=5))
def test_rows_pick_clone_and_branch(rows):
    state = _state()
    picked = state.rows(rows)
    assert picked.batch == len(rows)
    for place, row in enumerate(rows):
        _same(picked.rows([place]), state.rows([row]))


def test_a_clone_shares_no_memory():
    state = _state()
    clone = state.rows(slice(None))
    clone.arrays["qpos"][:] = 0
    clone.time[:] = 0
    assert (state.arrays["qpos"] != 0).all()
    assert (state.time != 0).all()


def test_a_context_counts_its_elements():
    context = Context(observations={"x": np.zeros((4, 3, 2))}, actions=np.zeros((4, 2, 1)))
    assert context.batch == 4


def test_rows_of_a_rollout_keep_everything_aligned():
    rng = np.random.default_rng(1)
    rollout = Rollout(
        time=np.arange(3.0),
        signals={"x": rng.normal(size=(4, 3, 2))},
        valid=rng.random((4, 3)) > 0.5,
        trust=rng.random((4, 3)),
        reason=("", "a", "", "b"),
        actions=rng.normal(size=(4, 2, 1)),
        cost=rng.random((4, 3)),
    )
    picked = rollout.rows([3, 1, 1])
    assert (picked.batch, picked.reason) == (3, ("b", "a", "a"))
    for name in ("valid", "trust", "actions", "cost"):
        np.testing.assert_array_equal(getattr(picked, name), getattr(rollout, name)[[3, 1, 1]])
    np.testing.assert_array_equal(picked.signals["x"], rollout.signals["x"][[3, 1, 1]])
    assert rollout.rows(slice(2, None)).reason == ("", "b")
