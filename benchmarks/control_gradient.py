"""Two ways of planning by reverse-mode gradients: Levenberg-Marquardt and L-BFGS.

The first takes one reverse pass for all residuals at once, at the cost of as many; the second one
pass for the gradient of the cost, in coordinates in which the effort is a sphere.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

import numpy as np
import scipy.optimize

from benchmarks.control_problems import Problem
from sameworld.core import World
from sameworld.core.arrays import Array, Signals

ITERATIONS = 60
"""Most rollouts of Levenberg-Marquardt."""
CONVERGED = 1e-3
"""Relative decrease of the cost at which Levenberg-Marquardt stops."""
EVALUATIONS = 200
"""Most rollouts of L-BFGS."""
FACTOR = 1e-5 / float(np.finfo(np.float64).eps)
"""Relative decrease at which L-BFGS stops, in units of the machine's precision."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A target, with the matrix of the effort (zero where only the target counts)."""

    problem: Problem
    target: Array
    metric: Array

    def costs(self, world: World, z: Array) -> Array:
        """Costs [B] of numbers [B, K, A]."""
        missed = self.missed(self.problem.seen(world, z))
        flat = z.reshape(len(z), -1)
        return np.sum(missed**2, axis=1) + np.einsum("bi,ij,bj->b", flat, self.metric, flat)

    def missed(self, signals: Signals) -> Array:
        """Miss in hits [B, R]."""
        return self.problem.residuals(signals, self.target) / self.problem.hit


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A point of our descent.

    Attributes:
        cost: Its cost.
        forwards: Rollouts so far, one by one.
        reverses: Reverse passes so far.
        cpu_seconds: CPU time so far.
        z: Its numbers [K, A].
    """

    cost: float
    forwards: int
    reverses: int
    cpu_seconds: float
    z: Array


def descend(goal: Goal, enough: float) -> list[Tried]:
    """Levenberg-Marquardt until the cost is ``enough``, or converged if that is 0; the path."""
    began, problem, metric = time.process_time(), goal.problem, goal.metric
    z, damping, reverses = problem.first.reshape(-1), 1e-2, 0
    shape = problem.first.shape

    def looked(at: Array) -> tuple[Signals, Array, float]:
        signals = problem.seen(problem.world, at.reshape(1, *shape))
        missed = goal.missed(signals)[0]
        return signals, missed, float(missed @ missed + at @ metric @ at)

    signals, missed, cost = looked(z)
    path: list[Tried] = []
    slope: Array | None = None
    for forwards in range(1, ITERATIONS + 1):
        if slope is None:
            spent = time.process_time() - began
            path.append(
                Tried(
                    cost=cost,
                    forwards=forwards,
                    reverses=reverses,
                    cpu_seconds=spent,
                    z=z.reshape(shape),
                )
            )
            flat = len(path) > 1 and cost > (1 - CONVERGED) * path[-2].cost
            if cost <= enough or (flat and enough == 0):
                break
            slope = problem.pulled(z.reshape(shape), problem.weights(signals)).reshape(
                len(missed), -1
            )
            slope, reverses = slope / problem.hit, reverses + 1
        curve = slope.T @ slope + metric
        ridge = damping * np.trace(curve) / len(z) * np.eye(len(z))
        tried = z - np.linalg.solve(curve + ridge, slope.T @ missed + metric @ z)
        found = looked(tried)
        if found[2] < cost:
            z, (signals, missed, cost), slope, damping = tried, found, None, damping / 10
        else:
            damping *= 5
    return path


class _Enough(Exception):
    """The cost is low enough."""


def slide(goal: Goal, enough: float) -> list[Tried]:
    """L-BFGS until the cost is ``enough``, or converged if that is 0; every point it looked at."""
    began, problem, shape = time.process_time(), goal.problem, goal.problem.first.shape
    wide = np.linalg.inv(np.linalg.cholesky(problem.metric())).T
    path: list[Tried] = []

    def looked(at: Array) -> tuple[float, Array]:
        z = wide @ at
        signals = problem.seen(problem.world, z.reshape(1, *shape))
        missed = goal.missed(signals)[0]
        cost = float(missed @ missed + z @ goal.metric @ z)
        spent, count = time.process_time() - began, len(path)
        path.append(
            Tried(
                cost=cost,
                forwards=count + 1,
                reverses=count,
                cpu_seconds=spent,
                z=z.reshape(shape),
            )
        )
        if cost <= enough:
            raise _Enough
        weights = {
            name: np.einsum("r,rtd->td", missed / problem.hit, weight)[None]
            for name, weight in problem.weights(signals).items()
        }
        slope = problem.pulled(z.reshape(shape), weights).reshape(-1)
        return cost, wide.T @ (2 * slope + 2 * goal.metric @ z)

    first = np.linalg.solve(wide, problem.first.reshape(-1))
    with contextlib.suppress(_Enough):
        scipy.optimize.fmin_l_bfgs_b(looked, first, m=20, factr=FACTOR, maxfun=EVALUATIONS)
    return path


def planned(goal: Goal, enough: float) -> list[Tried]:
    """The path of the method that the problem asks for."""
    return descend(goal, enough) if goal.problem.method == "lm" else slide(goal, enough)
