"""Elimination of columns against explicit QR and least squares."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sameworld.maths.projection import basis, project_out, solve_columns

SHAPES = st.tuples(st.integers(6, 20), st.integers(1, 5), st.integers(0, 2**31))


def random_columns(rows, count, seed, *, dependent=False):
    """Columns of very different sizes, one more that depends on the others if asked."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(rows, count)) * 10.0 ** rng.uniform(-6, 6, count)
    if dependent:
        columns = np.column_stack([columns, columns @ rng.normal(size=count)])
    return columns, rng.normal(size=rows)


@given(SHAPES)
def test_projection_equals_explicit_qr(shape):
    columns, target = random_columns(*shape)
    q, _ = np.linalg.qr(columns / np.linalg.norm(columns, axis=0))
    np.testing.assert_allclose(project_out(columns, target), target - q @ q.T @ target, atol=1e-9)


@given(SHAPES)
def test_coefficients_equal_explicit_least_squares(shape):
    columns, target = random_columns(*shape)
    norms = np.linalg.norm(columns, axis=0)
    scaled = np.linalg.lstsq(columns / norms, target, rcond=None)[0]
    np.testing.assert_allclose(solve_columns(columns, target) * norms, scaled, rtol=1e-6, atol=1e-9)


@given(SHAPES)
def test_dependent_and_zero_columns_remove_nothing_more(shape):
    plain, target = random_columns(*shape)
    padded = np.column_stack([plain, plain[:, 0], np.zeros(len(plain))])
    np.testing.assert_allclose(project_out(padded, target), project_out(plain, target), atol=1e-8)
    assert basis(padded).shape == (len(plain), plain.shape[1])


def test_dependent_columns_share_the_coefficient_and_zero_columns_get_none():
    rng = np.random.default_rng(0)
    column = rng.normal(size=8)
    columns = np.column_stack([column, column, np.zeros(8)])
    solution = solve_columns(columns, 6 * column)
    np.testing.assert_allclose(solution, [3.0, 3.0, 0.0], atol=1e-12)


def test_several_targets_are_solved_column_by_column():
    columns, _ = random_columns(10, 3, 1)
    targets = np.random.default_rng(2).normal(size=(10, 4))
    together = solve_columns(columns, targets)
    assert together.shape == (3, 4)
    for k in range(4):
        np.testing.assert_allclose(together[:, k], solve_columns(columns, targets[:, k]))
        np.testing.assert_allclose(
            project_out(columns, targets)[:, k], project_out(columns, targets[:, k]), atol=1e-12
        )


def test_what_is_left_is_orthogonal_and_projecting_twice_changes_nothing():
    columns, target = random_columns(12, 4, 3, dependent=True)
    left = project_out(columns, target)
    norms = np.linalg.norm(columns, axis=0)
    np.testing.assert_allclose((columns / norms).T @ left, 0, atol=1e-9)
    np.testing.assert_allclose(project_out(columns, left), left, atol=1e-12)


def test_no_columns_and_only_zero_columns_leave_the_target_alone():
    target = np.arange(5.0)
    for columns in (np.zeros((5, 0)), np.zeros((5, 2))):
        assert np.array_equal(project_out(columns, target), target)
        assert basis(columns).shape == (5, 0)
        assert not solve_columns(columns, target).any()
