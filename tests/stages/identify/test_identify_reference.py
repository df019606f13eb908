"""Fast paths of the fit against their slow twins: dense Jacobians, all unknowns at once."""

from dataclasses import replace

import numpy as np
import pytest
from identify_recordings import (
    CART,
    CART_NOISE,
    DAMPING,
    MASS,
    PENDULUM_NOISE,
    quick,
    random_starts,
    record,
)
from scipy.optimize import least_squares

from sameworld.core import Values
from sameworld.maths.projection import project_out
from sameworld.stages.identify import identify
from sameworld.stages.identify.derivatives import linearise
from sameworld.stages.identify.eliminate import Eliminated, Linear
from sameworld.stages.identify.fit import pose
from sameworld.stages.identify.solve import optimise
from sameworld.worlds import build
from sameworld.zoo import AnalyticCart, AnalyticPendulum, scene

TRUTH = {MASS: 0.8, DAMPING: 0.05}


def pendulum_problem(count=4, ticks=30, **options):
    """A posed problem, coordinates off the optimum, and starts near the truth."""
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, count, truth=TRUTH, noise=PENDULUM_NOISE, ticks=ticks, seed=1)
    problem = pose(world, episodes, quick(MASS, DAMPING, **options))
    starts = random_starts(world, count, 1).array + 0.01
    return problem, problem.prior_mean + np.array([0.1, -0.2]), starts


def cart_problem(count=3, ticks=30, **options):
    """The same for the engine, whose derivatives are differences."""
    world = build(scene("cart"), "explicit")
    truth = {CART[0]: 2.3, CART[1]: 0.7}
    episodes = record(
        AnalyticCart(substeps=1),
        count,
        truth=truth,
        noise=CART_NOISE,
        ticks=ticks,
        size=10.0,
        seed=2,
    )
    problem = pose(world, episodes, quick(*CART, **options))
    return problem, problem.prior_mean + 0.1, random_starts(world, count, 2).array


def stacked(problem, unknowns):
    """Residuals of all windows with parameters and every start in one vector."""
    size = len(problem.names)
    starts = unknowns[size:].reshape(len(problem.windows), -1)
    return np.concatenate([b.residual for b in problem.simulate(unknowns[:size], starts)])


def dense_jacobian(problem, unknowns, step=1e-6):
    """Every column by its own central difference: 2 (P + S W) simulations of everything."""
    columns = []
    for k in range(len(unknowns)):
        move = step * (np.arange(len(unknowns)) == k)
        up, down = stacked(problem, unknowns + move), stacked(problem, unknowns - move)
        columns.append((up - down) / (2 * step))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("make", [pendulum_problem, cart_problem])
def test_the_arrowhead_equals_the_dense_jacobian(make):
    problem, u, starts = make()
    dense = dense_jacobian(problem, np.concatenate([u, starts.ravel()]))
    blocks, row, size = linearise(problem, u, starts), 0, len(u)
    for w, block in enumerate(blocks):
        rows = slice(row, row + len(block.residual))
        width = starts.shape[1]
        own = slice(size + w * width, size + (w + 1) * width)
        for fast, slow in ((block.theta, dense[rows, :size]), (block.start, dense[rows, own])):
            np.testing.assert_allclose(fast, slow, atol=2e-3 * np.abs(slow).max())
        others = np.delete(dense[rows], np.r_[0:size, own], axis=1)
        assert not others.any()
        row += len(block.residual)


def test_eliminated_starts_leave_the_schur_complement_of_the_dense_problem():
    problem, u, starts = pendulum_problem()
    linear = Linear.at(problem, u, starts)
    dense = dense_jacobian(problem, np.concatenate([u, starts.ravel()]))
    theta, nuisance = dense[:, : len(u)], dense[:, len(u) :]
    reduced = project_out(nuisance, theta)
    np.testing.assert_allclose(linear.jacobian, reduced, atol=1e-4 * np.abs(theta).max())
    residual = np.concatenate([b.residual for b in linear.blocks])
    np.testing.assert_allclose(
        np.concatenate(linear.residual), project_out(nuisance, residual), atol=1e-4
    )
    np.testing.assert_allclose(
        sum(linear.bread), reduced.T @ reduced, rtol=1e-3, atol=1e-3 * np.abs(reduced).max() ** 2
    )


@pytest.mark.parametrize("make", [pendulum_problem, cart_problem])
def test_the_optimum_equals_that_over_all_unknowns(make):
    problem, u, starts = make()
    fast = optimise(problem, u, starts, quick(*problem.names, tolerance=1e-10, evaluations=50))
    slow = least_squares(
        lambda x: stacked(problem, x),
        np.concatenate([u, starts.ravel()]),
        jac=lambda x: dense_jacobian(problem, x),
        ftol=1e-13,
        xtol=1e-13,
        gtol=1e-13,
    )
    assert fast.cost == pytest.approx(slow.cost, rel=1e-6)
    np.testing.assert_allclose(fast.u, slow.x[: len(u)], atol=1e-4)
    np.testing.assert_allclose(fast.starts.ravel(), slow.x[len(u) :], atol=1e-4)


def test_following_starts_never_cost_more_than_staying():
    problem, u, starts = pendulum_problem()
    eliminated = Eliminated(problem, u, starts)
    for move in (np.zeros(2), np.array([0.05, -0.1]), np.array([-1.0, 1.5])):
        followed = 0.5 * np.sum(eliminated.residual(u + move) ** 2)
        assert followed <= problem.cost(u + move, starts) * (1 + 1e-12)


# ---- starts from the warm-up -----------------------------------------------------------------


def refound(problem, u, guess):
    """Starts that minimise the warm-up residuals of every window at ``u``, by brute force."""
    found = []
    for w in range(len(problem.windows)):

        def head(start, w=w):
            starts = guess.copy()
            starts[w] = start
            return problem.heads(u, starts)[w].residual

        solution = least_squares(head, guess[w], xtol=1e-14, ftol=1e-14, gtol=1e-14)
        found.append(solution.x)
    return np.array(found)


def test_the_total_derivative_is_that_with_starts_found_anew():
    problem, u, guess = pendulum_problem(count=2, starts="warmup", warmup=6)
    starts = refound(problem, u, guess)
    fast = linearise(problem, u, starts)
    step = 1e-3
    for i in range(len(u)):
        move = step * (np.arange(len(u)) == i)
        ends = [
            problem.simulate(u + sign * move, refound(problem, u + sign * move, starts))
            for sign in (-1, 1)
        ]
        for w, block in enumerate(fast):
            slow = (ends[1][w].residual - ends[0][w].residual) / (2 * step)
            np.testing.assert_allclose(
                block.theta[:, i], slow, atol=0.02 * max(np.abs(slow).max(), 1e-3)
            )


def test_starts_from_the_warm_up_are_those_that_predictions_use():
    problem, u, guess = cart_problem(starts="warmup", warmup=6)
    np.testing.assert_allclose(problem.warm_starts(u, 6), refound(problem, u, guess), atol=1e-4)


def test_warm_up_rows_are_not_scored_where_starts_come_from_them():
    joint, u, starts = cart_problem()
    warm = cart_problem(starts="warmup", warmup=6)[0]
    for a, b in zip(joint.simulate(u, starts), warm.simulate(u, starts), strict=True):
        assert len(a.residual) - len(b.residual) == 6 * 2  # rows of two channels
        assert (b.time >= 6 * joint.world.spec.period - 1e-9).all()


def test_both_ways_to_starts_recover_the_truth():
    world = AnalyticPendulum(substeps=1)
    episodes = record(world, 10, truth=TRUTH, noise={"pivot.pos": 1e-3, "pivot.vel": 1e-2}, seed=4)
    for mode in ("joint", "warmup"):
        _, _, result = identify(world, episodes, config=quick(*TRUTH, starts=mode, warmup=10))
        for name, value in TRUTH.items():
            row = result.verdict(name)
            assert abs(row.value - value) < 4 * row.std, mode
            assert row.value == pytest.approx(value, rel=0.1)


# ---- memory and batches ----------------------------------------------------------------------


def test_chunks_do_not_change_the_jacobian(monkeypatch):
    problem, u, starts = pendulum_problem()
    whole = linearise(problem, u, starts)
    monkeypatch.setattr("sameworld.stages.identify.problem._CHUNK_BYTES", 1.0)
    for a, b in zip(whole, linearise(problem, u, starts), strict=True):
        np.testing.assert_allclose(a.theta, b.theta, atol=1e-12)
        np.testing.assert_allclose(a.start, b.start, atol=1e-12)


def test_a_failed_simulation_costs_much_but_stays_finite():
    world = AnalyticCart(substeps=1)
    episodes = record(AnalyticCart(substeps=1), 2, noise=CART_NOISE, ticks=500)
    problem = pose(world, episodes, quick(*CART))
    stiff = Values(names=CART, array=np.array([[0.1, 20.0]]))
    u = problem.transform.forward(stiff.array[0])
    with np.errstate(all="ignore"):
        blocks = problem.simulate(u, np.zeros((2, 2)))
    assert all(b.failed and np.isfinite(b.residual).all() for b in blocks)
    assert not any(b.failed for b in problem.simulate(problem.prior_mean, np.zeros((2, 2))))


def test_the_prior_of_parameters_is_one_row_each():
    problem, u, starts = pendulum_problem(prior=True)
    without = replace(problem, prior_std=np.full(2, np.inf))
    with_rows, plain = Eliminated(problem, u, starts), Eliminated(without, u, starts)
    extra = with_rows.residual(u)[-2:]
    assert len(with_rows.residual(u)) == len(plain.residual(u)) + 2
    np.testing.assert_allclose(extra, (u - problem.prior_mean) / problem.prior_std)
    np.testing.assert_allclose(with_rows.jacobian(u)[-2:], np.diag(1 / problem.prior_std))
