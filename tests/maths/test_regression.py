"""Compressed rows and base columns."""

import numpy as np
import pytest

from sameworld.maths.regression import base_columns, compressed


def test_compression_keeps_every_residual_norm():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 7))
    small = compressed(rows)
    assert small.shape == (7, 7)
    for x in rng.normal(size=(5, 7)):
        assert np.isclose(np.linalg.norm(rows @ x), np.linalg.norm(small @ x))
    assert compressed(rows[:4]).shape == (4, 7)


@pytest.mark.parametrize("scale", [np.ones(5), np.array([1.0, 10.0, 0.1, 1.0, 1.0])])
def test_dependent_columns_are_told_with_their_weights(scale):
    rng = np.random.default_rng(1)
    plain = rng.normal(size=(50, 2))
    matrix = np.column_stack([plain, plain @ [2.0, -0.5], np.zeros(50), rng.normal(size=50)])
    found = base_columns(matrix, scale)
    assert len(found.independent) == 3 and list(found.silent) == [3] and len(found.dependent) == 1
    x = rng.normal(size=5)
    base = x[found.independent] + found.mixing @ x[found.dependent]
    assert np.allclose(matrix[:, found.independent] @ base, matrix @ x)


def test_nothing_is_independent_in_nothing():
    found = base_columns(np.zeros((4, 3)), np.ones(3))
    assert len(found.independent) == 0 and sorted(found.silent) == [0, 1, 2]
