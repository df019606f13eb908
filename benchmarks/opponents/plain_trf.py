"""Plain nonlinear least squares: scipy's trust-region-reflective method, start not estimated.

The textbook fit: residuals over the noise, logarithms of the factors, forward differences, one
start at the nominal values. It has everything sameworld's fit has except the unknown start and
the several starts.

Source: Branch, Coleman and Li, "A subspace, interior, and conjugate gradient method for
large-scale bound-constrained minimization problems", SIAM J. Sci. Comput. 21 (1999), as in
`scipy.optimize.least_squares(method="trf")`.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import least_squares

from benchmarks.arm_problem import (
    FACTOR_HIGH,
    FACTOR_LOW,
    NAMES,
    ArmProblem,
    Array,
    RolloutCounter,
    simulate,
)
from benchmarks.opponents import Fit, cpu_clock, start_of

DIFFERENCE_STEP = 1e-4
TOLERANCE = 1e-8
MAX_EVALUATIONS = 50


def fit(problem: ArmProblem, *, start_known: bool, seed: int) -> Fit:
    """Fit the eight log-factors from the nominal values; deterministic, `seed` is unused."""
    del seed
    clock, counter = cpu_clock(), RolloutCounter()
    qpos, qvel = start_of(problem, start_known=start_known)

    def residuals(logs: Array) -> Array:
        factors = np.exp(np.atleast_2d(logs))
        starts = (np.tile(qpos, (len(factors), 1)), np.tile(qvel, (len(factors), 1)))
        predicted = simulate(problem, factors, *starts, counter)
        return ((predicted - problem.positions) / problem.noise_sd).reshape(len(factors), -1)

    return Fit(
        label="plain TRF",
        factors=np.exp(descend(residuals, len(NAMES))),
        rollouts=counter.rollouts,
        cpu_seconds=clock(),
    )


def descend(residuals: Callable[[Array], Array], size: int) -> Array:
    """Log-factors [size] that the method finds from the nominal values.

    Args:
        residuals: Residuals over the noise [N, R] at log-factors [N, size] or [size].
        size: Number of parameters.
    """

    def jacobian(logs: Array) -> Array:
        points = logs + DIFFERENCE_STEP * np.vstack([np.zeros(logs.size), np.eye(logs.size)])
        values = residuals(points)
        return (values[1:] - values[0]).T / DIFFERENCE_STEP

    result = least_squares(
        lambda logs: residuals(logs)[0],
        np.zeros(size),
        jacobian,
        bounds=(np.log(FACTOR_LOW), np.log(FACTOR_HIGH)),
        method="trf",
        xtol=TOLERANCE,
        ftol=TOLERANCE,
        gtol=TOLERANCE,
        max_nfev=MAX_EVALUATIONS,
    )
    return np.asarray(result.x)
