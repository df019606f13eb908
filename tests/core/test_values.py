"""Values are a table: names across, batch elements down."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sameworld.core import SpecError, Values

NAMES = ("a", "b", "c", "d")


@st.composite
def tables(draw, batch=None):
    names = draw(st.permutations(NAMES))[: draw(st.integers(0, 4))]
    rows = draw(st.integers(1, 4)) if batch is None else batch
    seed = draw(st.integers(0, 1000))
    array = np.random.default_rng(seed).normal(size=(rows, len(names)))
    return Values(names=tuple(names), array=array)


def _same(a, b):
    assert a.names == b.names
    np.testing.assert_array_equal(a.array, b.array)


@given(tables())
def test_selecting_everything_changes_nothing(values):
    _same(values.select(values.names), values)
    _same(values.rows(slice(None)), values)
    _same(values.broadcast(values.batch), values)
    _same(values.updated(Values.none()), values)


@given(tables(), tables(batch=1))
def test_an_update_wins_where_shared_and_keeps_the_rest(values, other):
    merged = values.updated(other)
    assert merged.names[: len(values.names)] == values.names
    assert set(merged.names) == set(values.names) | set(other.names)
    for name in merged.names:
        source = other.broadcast(values.batch) if name in other.names else values
        np.testing.assert_array_equal(merged.column(name), source.column(name))
    _same(merged.updated(other), merged)


@given(tables(), st.data())
def test_rows_pick_with_repetition(values, data):
    index = data.draw(st.lists(st.integers(0, values.batch - 1), max_size=5))
    picked = values.rows(np.array(index, dtype=int))
    assert (picked.names, picked.batch) == (values.names, len(index))
    np.testing.assert_array_equal(picked.array, values.array[np.array(index, int)])


@given(tables(batch=2), st.data())
def test_stacking_cuts_and_joins(values, data):
    shuffled = values.rows([1]).select(data.draw(st.permutations(values.names)))
    _same(Values.stack([values.rows([0]), shuffled]), values)


def test_scalars_are_repeated_to_the_batch():
    values = Values.of({"a": 1, "b": [2, 3, 4]})
    np.testing.assert_array_equal(values.array, [[1, 2], [1, 3], [1, 4]])
    assert Values.of({}).array.shape == (1, 0)
    assert Values.none(3).batch == len(Values.none(3)) == 3


def test_values_cannot_be_written():
    values = Values.of({"a": [1.0, 2.0]})
    with pytest.raises(ValueError, match="read-only"):
        values.array[0, 0] = 5


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Values(names=("a",), array=np.zeros((2, 2))), r"need shape \[B, 1\]"),
        (lambda: Values(names=("a", "a"), array=np.zeros((1, 2))), "twice"),
        (lambda: Values.of({"alpha": 1}).index("alpah"), "Did you mean 'alpha'"),
        (lambda: Values.of({"a": [1, 2]}).broadcast(3), "hold 2 elements, 3 are needed"),
        (lambda: Values.of({"a": [1, 2]}).updated(Values.of({"a": [1, 2, 3]})), "hold 2 elements"),
        (lambda: Values(names=("a",), array=np.zeros((2, 1, 1))), "need shape"),
    ],
)
def test_what_does_not_fit_is_refused(make, words):
    with pytest.raises(SpecError, match=words):
        make()
