"""Difference steps that see the trend of a rough cost, not its roughness."""

from __future__ import annotations

import numpy as np

from sameworld.core.arrays import Array
from sameworld.stages.identify.problem import Problem

__all__ = ["LADDER", "choose_steps"]

#: Steps tried, in the optimiser's coordinates.
LADDER = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 2e-1)
_AGREE = 0.1


def choose_steps(problem: Problem, u: Array, starts: Array) -> Array:
    """Choose a central-difference step per parameter [P].

    Derivatives of all residuals are computed along a ladder of steps; the smallest step that
    agrees with the next one within 10 % is taken, or the one that agrees best. On smooth problems
    that is the first rung; where contact makes trajectories rough it is a large one.
    """
    return np.array([_choose(problem, u, starts, i) for i in range(len(problem.names))])


def _choose(problem: Problem, u: Array, starts: Array, i: int) -> float:
    slope = _slope(problem, u, starts, i, LADDER[0])
    changes: list[float] = []
    for k, step in enumerate(LADDER[1:]):
        coarser = _slope(problem, u, starts, i, step)
        changes.append(_change(slope, coarser))
        if changes[-1] <= _AGREE:
            return LADDER[k]
        slope = coarser
    return LADDER[int(np.argmin(changes)) + 1]


def _slope(problem: Problem, u: Array, starts: Array, i: int, step: float) -> Array:
    low, high = problem.transform.bounds
    ends: list[Array] = []
    for sign in (-1.0, 1.0):
        moved = u.copy()
        moved[i] = np.clip(u[i] + sign * step, low[i], high[i])
        ends.append(moved)
    below, above = (
        np.concatenate([b.residual for b in problem.simulate(end, starts)]) for end in ends
    )
    return (above - below) / max(float(ends[1][i] - ends[0][i]), 1e-12)


def _change(fine: Array, coarse: Array) -> float:
    size = float(np.linalg.norm(coarse))
    return float(np.linalg.norm(fine - coarse)) / size if size > 0 else np.inf
