"""Spread and verdicts where parameters are too many to differentiate by: they say so."""

from __future__ import annotations

import numpy as np

from sameworld.core.arrays import Array
from sameworld.stages.identify.covariance import Spread, unit_variance
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.problem import Problem
from sameworld.stages.identify.result import ParameterVerdict
from sameworld.stages.identify.verdicts import Judged

__all__ = ["unjudged", "unknown_spread"]


def unknown_spread(problem: Problem, linear: Linear) -> Spread:
    """No covariance: nothing is known of how far the parameters are open."""
    size = len(problem.names)
    nothing = np.diag(np.full(size, np.inf))
    return Spread(
        covariance=nothing,
        naive=nothing,
        information=np.zeros((size, size)),
        unit_variance=unit_variance(problem, linear),
        kind="left out",
        freedom=np.inf,
    )


def unjudged(problem: Problem, u: Array, before: Array) -> Judged:
    """Values without intervals, and why.

    Args:
        problem: The problem.
        u: Coordinates of the optimum [P].
        before: Values before the fit [P].
    """
    size = len(problem.names)
    detail = f"Left out: derivatives of every residual by {size} parameters cost too much."
    values = problem.transform.backward(u[:size])
    verdicts = tuple(
        ParameterVerdict(
            name=parameter.name,
            unit=parameter.unit,
            before=float(old),
            value=float(value),
            low=parameter.low,
            high=parameter.high,
            std=np.inf,
            naive_std=np.inf,
            verdict="no interval",
            detail=detail,
            partners={},
        )
        for parameter, old, value in zip(problem.transform.parameters, before, values, strict=True)
    )
    return Judged(verdicts=verdicts, combinations=())
