"""The spread between sessions, against the likelihood of everything at once."""

import numpy as np
import pytest

from sameworld.stages.identify.hierarchy import Hierarchy

SESSIONS, SHARED = 7, 2


def linear_sessions(seed, apart, *, noise=1.0, rows=12):
    """Linear regression with one shared slope and one mean that differs between sessions.

    Returns:
        The hierarchy, and per session design [R, 2] and data [R].
    """
    rng = np.random.default_rng(seed)
    designs, data = [], []
    for _ in range(SESSIONS):
        design = rng.normal(size=(rows, SHARED)) + np.array([0.0, 1.0])
        values = np.array([0.7, 2.0 + apart * rng.normal()])
        designs.append(design)
        data.append(design @ values + noise * rng.normal(size=rows))
    information = np.stack([d.T @ d for d in designs]) / noise**2
    pull = np.stack([d.T @ y for d, y in zip(designs, data, strict=True)]) / noise**2
    hierarchy = Hierarchy(
        columns=(1,),
        information=information,
        pull=pull,
        prior=np.zeros((2, 2)),
        prior_pull=np.zeros(2),
        offsets=np.zeros((SESSIONS, 1)),
        population=np.zeros(1),
        inflation=1.0,
        freedom=20.0,
    )
    return hierarchy, designs, data


def dense_deviance(designs, data, scale, noise=1.0):
    """Minus twice the restricted log likelihood by the full covariance of the data."""
    x, y = np.concatenate(designs), np.concatenate(data)
    own = np.zeros((len(x), SESSIONS))
    row = 0
    for s, design in enumerate(designs):
        own[row : row + len(design), s] = design[:, 1]
        row += len(design)
    covariance = noise**2 * np.eye(len(x)) + scale**2 * own @ own.T
    inverse = np.linalg.inv(covariance)
    information = x.T @ inverse @ x
    left = y - x @ np.linalg.solve(information, x.T @ inverse @ y)
    return (
        np.linalg.slogdet(covariance)[1]
        + np.linalg.slogdet(information)[1]
        + float(left @ inverse @ left)
    )


def test_the_deviance_is_that_of_the_dense_restricted_likelihood():
    hierarchy, designs, data = linear_sessions(0, 0.5)
    grid = [0.0, 0.1, 0.4, 1.0, 3.0]
    fast = np.array([hierarchy.deviance(np.array([g])) for g in grid])
    slow = np.array([dense_deviance(designs, data, g) for g in grid])
    np.testing.assert_allclose(fast - fast[0], slow - slow[0], atol=1e-8)


def test_the_best_spread_minimises_the_dense_deviance():
    hierarchy, designs, data = linear_sessions(1, 0.6)
    best = float(hierarchy.best_scale()[0])
    grid = np.linspace(0.01, 2.0, 400)
    slow = grid[np.argmin([dense_deviance(designs, data, g) for g in grid])]
    assert best == pytest.approx(slow, abs=0.01)


def test_the_interval_ends_where_the_deviance_has_risen_by_its_quantile():
    hierarchy, designs, data = linear_sessions(2, 0.8)
    best = hierarchy.best_scale()
    low, high = hierarchy.scale_interval(best, 0)
    assert 0 < low < float(best[0]) < high < np.inf
    least = dense_deviance(designs, data, float(best[0]))
    for end in (low, high):
        assert dense_deviance(designs, data, end) - least == pytest.approx(2.7055, abs=0.02)


def test_given_the_spread_sessions_are_the_best_linear_predictions():
    hierarchy, designs, data = linear_sessions(3, 0.5)
    found = hierarchy.posterior(np.array([0.5]), np.array([1e-9]))  # nothing but zero weighs
    zero = hierarchy.posterior(np.array([0.0]), np.array([1e-9]))
    np.testing.assert_allclose(found.values, zero.values, atol=1e-6)
    values, covariance = dense_sessions(designs, data, 0.5)
    known = hierarchy._given(np.array([0.5]))
    np.testing.assert_allclose(known.values[:, 0], values, atol=1e-8)
    np.testing.assert_allclose(known.covariance[:, 0, 0], covariance, atol=1e-8)


def dense_sessions(designs, data, scale):
    """Session values and their error variances from all unknowns at once."""
    size = SHARED + SESSIONS
    information, pull = np.zeros((size, size)), np.zeros(size)
    for s, (design, values) in enumerate(zip(designs, data, strict=True)):
        wide = np.zeros((len(design), size))
        wide[:, :SHARED], wide[:, SHARED + s] = design, design[:, 1]
        information, pull = information + wide.T @ wide, pull + wide.T @ values
    information[SHARED:, SHARED:] += np.eye(SESSIONS) / scale**2
    inverse = np.linalg.inv(information)
    at = inverse @ pull
    picks = np.zeros((SESSIONS, size))
    picks[:, 1] = 1
    picks[np.arange(SESSIONS), SHARED + np.arange(SESSIONS)] = 1
    return picks @ at, np.einsum("sp,pq,sq->s", picks, inverse, picks)


def test_no_difference_gives_a_spread_of_zero_about_half_the_time():
    zeros = [float(linear_sessions(seed, 0.0)[0].best_scale()[0]) == 0 for seed in range(40)]
    assert 0.3 < np.mean(zeros) < 0.85


def test_intervals_of_the_spread_hold_the_truth():
    inside = []
    for seed in range(60):
        hierarchy = linear_sessions(seed, 0.5)[0]
        low, high = hierarchy.scale_interval(hierarchy.best_scale(), 0)
        inside.append(low <= 0.5 <= high)
    assert 0.8 < np.mean(inside) <= 1.0


def test_overconfident_sessions_are_not_mistaken_for_different_ones():
    hierarchy = linear_sessions(4, 0.0, noise=1.0)[0]
    bold = Hierarchy(
        columns=hierarchy.columns,
        information=hierarchy.information * 100,
        pull=hierarchy.pull * 100,
        prior=hierarchy.prior,
        prior_pull=hierarchy.prior_pull,
        offsets=hierarchy.offsets,
        population=hierarchy.population,
        inflation=100.0,
        freedom=hierarchy.freedom,
    )
    scale = np.array([0.3])
    assert bold.deviance(scale / 10) - bold.deviance(np.zeros(1)) == pytest.approx(
        hierarchy.deviance(scale) - hierarchy.deviance(np.zeros(1)), abs=1e-6
    )
