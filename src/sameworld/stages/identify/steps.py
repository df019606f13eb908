"""Difference steps that see the trend of a rough cost, not its roughness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sameworld.core.arrays import Array
from sameworld.stages.identify.problem import Problem
from sameworld.stages.identify.scales import Scales

__all__ = ["AGREE", "LADDER", "choose_steps"]

#: Steps tried, in the optimiser's coordinates.
LADDER = (1e-4, 1e-3, 1e-2, 5e-2, 1e-1, 2e-1)
#: Relative change of a derivative from one step to the next at which they agree.
AGREE = 0.15
_PROBED = 16


def choose_steps(problem: Problem, u: Array, starts: Array) -> Array:
    """Choose a central-difference step per parameter [P].

    Derivatives of all residuals are computed along a ladder of steps on at most 16 windows; the
    smallest step that agrees with the next one is taken, or the one that agrees best. On smooth
    problems that is the first rung. Contact that is stepped in time jumps at every scale: there
    only large steps agree, and no parameter gets a step far below the usual one, however smooth
    its own derivative looks between two jumps.
    """
    probed, held = _probed(problem, starts)
    steps = np.array([_choose(probed, u, held, i) for i in range(len(problem.names))])
    return np.maximum(steps, 0.5 * np.median(steps)) if len(steps) else steps


def _probed(problem: Problem, starts: Array) -> tuple[Problem, Array]:
    """A few windows spread over the problem, with plain weights."""
    count = len(problem.windows)
    chosen = np.unique(np.linspace(0, count - 1, min(_PROBED, count)).astype(int))
    base = problem.base if problem.base.batch == 1 else problem.base.rows(chosen)
    few = replace(
        problem,
        windows=tuple(problem.windows[int(k)] for k in chosen.tolist()),
        actions=problem.actions[chosen],
        base=base,
        scales=Scales(noise=problem.scales.noise, profiles=problem.scales.profiles),
        sessions=problem.sessions.rows(chosen),
    )
    return few, starts[chosen]


def _choose(problem: Problem, u: Array, starts: Array, i: int) -> float:
    slope = _slope(problem, u, starts, i, LADDER[0])
    changes: list[float] = []
    for k, step in enumerate(LADDER[1:]):
        coarser = _slope(problem, u, starts, i, step)
        changes.append(_change(slope, coarser))
        if changes[-1] <= AGREE:
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
    if size == 0:
        return 0.0 if not np.any(fine) else np.inf
    return float(np.linalg.norm(fine - coarse)) / size
