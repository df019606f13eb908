"""The last linearisation, and what of its information differences could have made up.

Verdicts and intervals rest on how little residuals change along a direction of parameters. Where
they do not change at all (a common scale of masses, springs and dampers), what a difference
quotient shows is its own error, and a small number squared is information that does not exist. So
the optimum is linearised by central differences twice, at the chosen steps and at twice these; what
changes between the two bounds the error, and directions whose signal is no larger are taken out.

Derivation: ``docs/derivations/difference_doubt.md``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sameworld.core.arrays import Array
from sameworld.maths.projection import basis
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.problem import Problem
from sameworld.stages.identify.steps import AGREE, choose_steps

__all__ = ["doubtful", "last_linear", "without"]

#: Square of the change over that of the signal from which a direction says nothing. Where nothing
#: acts it is 9 by truncation and 5/4 by rounding.
_MADE_UP = 0.5
#: Scaled information below which a direction is empty anyway.
_EMPTY = 1e-12


def last_linear(problem: Problem, u: Array, starts: Array, *, choose: bool) -> Linear:
    """Linearise the optimum for verdicts and intervals, without information from difference errors.

    On rough costs everything changes with the step, and the change says nothing of null directions:
    they keep their differences, and their intervals are widened by the roughness itself.

    Args:
        problem: The problem with its final weights.
        u: The optimum, in all coordinates.
        starts: Its starts [W, S_all].
        choose: Whether steps that do not agree here may be chosen again.
    """
    problem = replace(problem, central=True)
    if problem.exact or problem.rough:
        return Linear.at(problem, u, starts)
    fine, coarse = _pair(problem, u, starts)
    if choose and _changes(fine, coarse) > AGREE:
        steps = choose_steps(problem, u, starts)
        if not np.array_equal(steps, problem.difference):
            fine, coarse = _pair(replace(problem, difference=steps), u, starts)
    return without(fine, doubtful(fine, coarse))


def _pair(problem: Problem, u: Array, starts: Array) -> tuple[Linear, Linear]:
    """Linearisations at the steps and at twice the steps."""
    return Linear.at(problem, u, starts), Linear.at(replace(problem, stride=2.0), u, starts)


def _changes(fine: Linear, coarse: Linear) -> float:
    """Largest relative change of a parameter's derivative between two linearisations."""
    pairs = [(a.theta, b.theta) for a, b in zip(fine.blocks, coarse.blocks, strict=True)]
    off = np.sqrt(sum(np.sum((b - a) ** 2, axis=0) for a, b in pairs))
    size = np.sqrt(sum(np.sum(b**2, axis=0) for _, b in pairs))
    return float(np.max(off / np.where(size > 0, size, 1.0), initial=0.0))


def doubtful(fine: Linear, coarse: Linear) -> Array:
    """Directions [P, K] along which residuals change no more than derivatives are wrong.

    The change from one linearisation to the other stands for the error of the finer one: twice
    the step makes the error of truncation four times as large and halves that of rounding, so
    their difference is no smaller than either.

    Args:
        fine: Linearisation at some steps.
        coarse: Linearisation at twice these.
    """
    signal = sum(p.T @ p for p in fine.projected)
    gaps = [c - f for f, c in zip(fine.projected, coarse.projected, strict=True)]
    error = sum(g.T @ g for g in gaps)
    scale = _sizes(fine)
    signal, error = (np.asarray(m) / np.outer(scale, scale) for m in (signal, error))
    values, vectors = np.linalg.eigh(signal + error)
    heard = values > _EMPTY
    white = vectors[:, heard] / np.sqrt(values[heard])
    share, axes = np.linalg.eigh(white.T @ error @ white)
    wrong = share > _MADE_UP / (1 + _MADE_UP)
    return (white @ axes[:, wrong]) / scale[:, None]


def without(linear: Linear, directions: Array) -> Linear:
    """The linearisation with no effect along ``directions`` [P, K], and otherwise the nearest.

    Nearest where every column is measured by its own size.
    """
    if directions.shape[1] == 0:
        return linear
    scale = _sizes(linear)
    q = basis(directions * scale[:, None])
    keep = np.eye(len(scale)) - (q / scale[:, None]) @ (q * scale[:, None]).T
    return replace(
        linear,
        projected=[p @ keep for p in linear.projected],
        bread=[keep.T @ b @ keep for b in linear.bread],
    )


def _sizes(linear: Linear) -> Array:
    """Size of every projected column [P]; 1 for empty ones."""
    power = np.asarray(sum(np.sum(p**2, axis=0) for p in linear.projected))
    return np.where(power > 0, np.sqrt(power), 1.0)
