"""The truncated sampler against references: closed moments, and plain rejection."""

import numpy as np
import pytest
from scipy import stats

from sameworld.core import sampling
from sameworld.core.sampling import truncated_normal

COUNT = 20000


@pytest.fixture
def gibbs_only(monkeypatch):
    """No rejection rounds: every draw comes from the Gibbs branch."""
    monkeypatch.setattr(sampling, "_ROUNDS", 0)


def _moments(mean, std, low, high):
    twin = stats.truncnorm((low - mean) / std, (high - mean) / std, loc=mean, scale=std)
    return twin.mean(), twin.std(), twin


INTERVALS = [
    (0.0, 1.0, -np.inf, np.inf),
    (0.0, 1.0, -0.3, 0.2),
    (0.0, 1.0, 0.0, np.inf),
    (0.0, 1.0, -np.inf, 0.0),
    (2.0, 0.5, 2.0, 2.1),
    (1.0, 3.0, -2.0, 1.0),
]


@pytest.mark.parametrize("case", INTERVALS)
@pytest.mark.usefixtures("gibbs_only")
def test_gibbs_in_one_dimension_draws_the_truncated_normal(case):
    mean, std, low, high = case
    draws = truncated_normal(
        np.array([mean]),
        np.array([[std**2]]),
        np.array([low]),
        np.array([high]),
        COUNT,
        np.random.default_rng(0),
    )[:, 0]
    expected, spread, twin = _moments(mean, std, low, high)
    assert draws.mean() == pytest.approx(expected, abs=4 * spread / np.sqrt(COUNT))
    assert draws.std() == pytest.approx(spread, rel=0.03)
    assert stats.kstest(draws, twin.cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("low", "high"), [(3.0, np.inf), (8.0, 8.1), (5.0, 40.0), (-np.inf, -6.0), (-7.0, -2.0)]
)
def test_tails_are_drawn_as_they_are(low, high):
    a, b = np.full(COUNT, low), np.full(COUNT, high)
    draws = sampling._standard(a, b, np.random.default_rng(1))
    assert stats.kstest(draws, stats.truncnorm(low, high).cdf).pvalue > 1e-3


def _by_rejection(mean, covariance, low, high, rng):
    kept = np.empty((0, len(mean)))
    while len(kept) < COUNT:
        fresh = rng.multivariate_normal(mean, covariance, size=200000)
        kept = np.concatenate([kept, fresh[((fresh >= low) & (fresh <= high)).all(axis=1)]])
    return kept[:COUNT]


@pytest.mark.parametrize("correlation", [-0.99, -0.7, 0.0, 0.8])
@pytest.mark.usefixtures("gibbs_only")
def test_gibbs_at_a_corner_agrees_with_plain_rejection(correlation):
    mean, std = np.array([0.0, 1.0]), np.array([1.0, 2.0])
    covariance = np.outer(std, std) * np.array([[1, correlation], [correlation, 1]])
    low, high = np.array([0.0, 1.0]), np.array([np.inf, 2.0])
    draws = truncated_normal(mean, covariance, low, high, COUNT, np.random.default_rng(2))
    twin = _by_rejection(mean, covariance, low, high, np.random.default_rng(3))
    np.testing.assert_allclose(draws.mean(axis=0), twin.mean(axis=0), atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), np.cov(twin.T), atol=0.03)
    for i in range(2):
        assert stats.ks_2samp(draws[:, i], twin[:, i]).pvalue > 1e-3


def test_the_mixture_of_both_branches_is_the_same_distribution():
    """A corner in many dimensions: rejection fills a part, Gibbs the rest."""
    size = 10
    draws = truncated_normal(
        np.zeros(size),
        np.eye(size),
        np.zeros(size),
        np.full(size, np.inf),
        2000,
        np.random.default_rng(4),
    )
    half = stats.halfnorm
    assert (draws >= 0).all()
    np.testing.assert_allclose(draws.mean(axis=0), half.mean(), atol=4 * half.std() / np.sqrt(2000))
    assert stats.kstest(draws.ravel(), half.cdf).pvalue > 1e-3


@pytest.mark.usefixtures("gibbs_only")
def test_gibbs_leaves_certain_parameters_where_they_are():
    covariance = np.diag([0.0, 1.0])
    draws = truncated_normal(
        np.array([5.0, 0.0]),
        covariance,
        np.array([0.0, 0.0]),
        np.array([9.0, 1.0]),
        50,
        np.random.default_rng(5),
    )
    np.testing.assert_array_equal(draws[:, 0], 5.0)
    assert np.ptp(draws[:, 1]) > 0


@pytest.mark.usefixtures("gibbs_only")
def test_gibbs_draws_along_a_perfect_correlation():
    covariance = np.ones((2, 2))
    draws = truncated_normal(
        np.zeros(2),
        covariance,
        np.zeros(2),
        np.full(2, np.inf),
        4000,
        np.random.default_rng(6),
    )
    assert draws[:, 0].mean() == pytest.approx(stats.halfnorm.mean(), rel=0.1)
    np.testing.assert_allclose(draws[:, 0], draws[:, 1], atol=1e-12)
