"""Covariances against the scatter they claim, on problems whose truth is exactly linear."""

from dataclasses import replace

import numpy as np
import pytest
from identify_recordings import CART, CART_NOISE, quick, record

from sameworld.maths.projection import solve_columns
from sameworld.stages.identify.covariance import influence, spread
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.fit import pose
from sameworld.stages.identify.problem import Block, Head, Window
from sameworld.zoo import AnalyticCart

ROWS, STARTS = 40, 2
DRAWS = 150


def template(episodes):
    """A problem with two parameters, one window per episode and no prior."""
    recorded = record(AnalyticCart(substeps=1), 1, noise=CART_NOISE, ticks=12)
    problem = pose(AnalyticCart(substeps=1), recorded, quick(*CART))
    windows = tuple(
        Window(episode=e, piece=problem.windows[0].piece, first=True) for e in range(episodes)
    )
    return replace(problem, windows=windows)


def white(rng, rows):
    return rng.normal(size=rows)


def shared(rng, rows):
    """Every episode has an error of its own that changes slowly: a wrong model."""
    steps = np.linspace(-1, 1, rows)
    slow = rng.normal(size=4) @ np.stack([np.cos(k * steps) for k in (3, 9, 15, 20)])
    return 0.5 * rng.normal(size=rows) + slow + rng.normal() * np.sin(20 * steps)


def walking(rng, rows, rho=0.9):
    """Autocorrelated noise of unit variance."""
    series = rng.normal(size=rows)
    for k in range(1, rows):
        series[k] = rho * series[k - 1] + np.sqrt(1 - rho**2) * series[k]
    return series


def linear_problem(rng, episodes, noise, rows=ROWS):
    """A linear-Gaussian problem at its optimum, and the error of its estimate [P]."""
    steps = np.linspace(-1, 1, rows)
    theta, start, error = [], [], []
    for _ in range(episodes):
        bend = rng.normal(size=(2, 1)) * np.stack([np.cos(9 * steps), np.sin(20 * steps)])
        theta.append(bend.T @ np.array([[1.0, 0.3], [0.2, 1.0]]))
        start.append(np.stack([np.ones(rows), steps], axis=1))
        error.append(noise(rng, rows))
    projected = [t - s @ solve_columns(s, t) for t, s in zip(theta, start, strict=True)]
    noises = [e - s @ solve_columns(s, e) for e, s in zip(error, start, strict=True)]
    information = sum(p.T @ p for p in projected)
    miss = np.linalg.solve(
        information, sum(p.T @ n for p, n in zip(projected, noises, strict=True))
    )
    residual = [n - p @ miss for n, p in zip(noises, projected, strict=True)]
    empty = Head(residual=np.zeros(0), theta=np.zeros((0, 0)), start=np.zeros((0, 0)))
    blocks = [
        Block(
            residual=r,
            theta=t,
            start=s,
            time=np.linspace(0, 1, rows),
            curvature=np.ones(rows),
            head=empty,
            parts=(),
            failed=False,
        )
        for r, t, s in zip(residual, theta, start, strict=True)
    ]
    linear = Linear(
        u=np.zeros(2),
        starts=np.zeros((episodes, STARTS)),
        blocks=blocks,
        projected=projected,
        residual=residual,
        bread=[p.T @ p for p in projected],
    )
    return linear, miss


def scatter(episodes, noise, rows=ROWS):
    """z-rms by the default covariance and by J'J over many draws, and the kind of the former."""
    problem, default, naive, kind = template(episodes), [], [], ""
    for draw in range(DRAWS):
        linear, miss = linear_problem(
            np.random.default_rng([draw, episodes]), episodes, noise, rows
        )
        found = spread(problem, linear, bootstrap=200, seed=draw)
        default.append(miss / np.sqrt(np.diag(found.covariance)))
        naive.append(miss / np.sqrt(np.diag(found.naive)))
        kind = found.kind
    rms = [float(np.sqrt(np.mean(np.square(z)))) for z in (default, naive)]
    return rms[0], rms[1], kind


def test_with_white_noise_the_sandwich_and_jtj_agree():
    default, naive, kind = scatter(12, white)
    assert kind == "episode sandwich"
    assert 0.85 < default < 1.25 and 0.9 < naive < 1.1
    linear, _ = linear_problem(np.random.default_rng(0), 200, white)
    found = spread(template(200), linear, bootstrap=0, seed=0)
    ratio = np.diag(found.covariance) / np.diag(found.naive)
    assert ratio == pytest.approx([1, 1], abs=0.3)


def test_errors_shared_within_episodes_fool_jtj_but_not_the_sandwich():
    default, naive, _ = scatter(12, shared)
    assert 0.8 < default < 1.25
    assert naive > 2


@pytest.mark.parametrize("noise", [white, walking])
def test_below_eight_episodes_blocks_of_rows_are_resampled(noise):
    default, naive, kind = scatter(3, noise, rows=400)
    assert kind == "block bootstrap"
    assert 0.75 < default < 1.3
    if noise is walking:
        assert naive > 2


def test_one_episode_has_intervals_too():
    default, _, kind = scatter(1, walking, rows=1000)
    assert kind == "block bootstrap"
    assert 0.7 < default < 1.5


def test_the_sandwich_is_the_scatter_of_leave_one_out_estimates():
    linear, _ = linear_problem(np.random.default_rng(1), 10, shared)
    found = spread(template(10), linear, bootstrap=0, seed=0)
    estimates = []
    for gone in range(10):
        kept = [w for w in range(10) if w != gone]
        information = sum(linear.bread[w] for w in kept)
        pull = sum(linear.projected[w].T @ linear.residual[w] for w in kept)
        estimates.append(np.linalg.solve(information, pull))
    centred = np.array(estimates) - np.mean(estimates, axis=0)
    np.testing.assert_allclose(found.covariance, 0.9 * centred.T @ centred, rtol=1e-6)
    assert found.freedom == 9


def test_windows_of_one_episode_are_one_cluster():
    linear, _ = linear_problem(np.random.default_rng(2), 16, shared)
    halves = template(16)
    pairs = tuple(
        replace(w, episode=k // 2, first=k % 2 == 0) for k, w in enumerate(halves.windows)
    )
    scores, pieces, _ = influence(replace(halves, windows=pairs), linear)
    alone, each, _ = influence(halves, linear)
    assert scores.shape == (8, 2) and alone.shape == (16, 2)
    np.testing.assert_allclose(scores, alone[::2] + alone[1::2])
    np.testing.assert_allclose(pieces, each[::2] + each[1::2])


@pytest.mark.parametrize("episodes", [1, 2, 3, 9])
def test_a_parameter_without_effect_is_infinitely_uncertain_and_disturbs_nothing(episodes):
    linear, _ = linear_problem(np.random.default_rng(3), episodes, white, rows=100)
    whole = spread(template(episodes), linear, bootstrap=50, seed=0)
    cut = np.array([1.0, 0.0])
    dead = replace(
        linear,
        blocks=[replace(b, theta=b.theta * cut) for b in linear.blocks],
        projected=[p * cut for p in linear.projected],
        bread=[np.outer(cut, cut) * b for b in linear.bread],
    )
    found = spread(template(episodes), dead, bootstrap=50, seed=0)
    assert np.isinf(found.covariance[1, 1]) and np.isinf(found.naive[1, 1])
    assert 0 < found.covariance[0, 0] < whole.covariance[0, 0] * 10
    assert found.covariance[0, 1] == 0


@pytest.mark.parametrize("episodes", [1, 2, 8, 12])
def test_variances_are_never_negative(episodes):
    for seed in range(10):
        linear, _ = linear_problem(np.random.default_rng(seed), episodes, shared)
        found = spread(template(episodes), linear, bootstrap=30, seed=seed)
        for matrix in (found.covariance, found.naive):
            assert np.linalg.eigvalsh(matrix)[0] >= 0
            np.testing.assert_allclose(matrix, matrix.T, rtol=1e-9)


def test_residuals_of_zero_give_a_spread_of_zero_or_more():
    linear, _ = linear_problem(np.random.default_rng(4), 9, lambda rng, rows: np.zeros(rows))
    found = spread(template(9), linear, bootstrap=10, seed=0)
    assert (np.diag(found.covariance) >= 0).all() and np.isfinite(found.covariance).all()


def test_a_prior_adds_information():
    linear, _ = linear_problem(np.random.default_rng(5), 9, white)
    loose = template(9)
    tight = replace(loose, prior_std=np.array([1e-3, np.inf]))
    free, held = (spread(p, linear, bootstrap=0, seed=0) for p in (loose, tight))
    assert np.sqrt(held.covariance[0, 0]) == pytest.approx(1e-3, rel=0.2)
    assert held.information[0, 0] == pytest.approx(free.information[0, 0] + 1e6)


@pytest.mark.parametrize("episodes", [3, 10])
def test_a_direction_that_no_recording_shows_is_not_called_known(episodes):
    linear, _ = linear_problem(np.random.default_rng(6), episodes, white, rows=100)
    ratio = np.array([[1.0, 1.0], [0.0, 0.0]])  # only the sum of the two acts
    twins = replace(
        linear,
        blocks=[replace(b, theta=b.theta @ ratio) for b in linear.blocks],
        projected=[p @ ratio for p in linear.projected],
        bread=[ratio.T @ b @ ratio for b in linear.bread],
    )
    found = spread(template(episodes), twins, bootstrap=100, seed=0)
    total = np.array([1.0, 1.0])
    assert np.sqrt(np.diag(found.covariance)).min() > 1e3
    known = float(total @ found.covariance @ total)
    assert 0 <= known < 1e-2 * found.covariance[0, 0]
