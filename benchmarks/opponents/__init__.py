"""Frozen opponents of the arm shoot-out: how others identify, on the same data and simulator.

Every module has one function `fit(problem, *, start_known, seed) -> Fit`. None of them is part of
sameworld; each cites where its method comes from. Constants are frozen at the top of each file.

Opponents have no notion of an unknown start. Where the start is not given they all use
`guess_start`, a parabola through the first 20 samples. Of five guesses compared on problems 10 to
39, which no table reports, it left plain least squares with the smallest median error: 20 %,
against 22 to 25 % for other parabolas and a cubic, and 39 % for the first sample at rest, which
is the default of most tools.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.arm_problem import FACTOR_HIGH, FACTOR_LOW, ArmProblem, Array

START_SAMPLES = 20


@dataclass(frozen=True, eq=False, kw_only=True)
class Fit:
    """What one method found and what it cost.

    Args:
        label: Name of the method in the table.
        factors: Estimated factors on the nominal values, shape [8].
        rollouts: Number of simulated 2 s trajectories.
        cpu_seconds: Processor time of the whole fit [s].
    """

    label: str
    factors: Array
    rollouts: int
    cpu_seconds: float


def start_of(problem: ArmProblem, *, start_known: bool) -> tuple[Array, Array]:
    """Return the start the opponent works with: the truth if it is given, else a guess.

    Returns:
        Joint positions [rad] and velocities [rad/s] at time 0, shapes [7] and [7].
    """
    if start_known:
        return problem.true_qpos, problem.true_qvel
    return guess_start(problem)


def guess_start(problem: ArmProblem) -> tuple[Array, Array]:
    """Fit a parabola to the first samples of each joint.

    Returns:
        Joint positions [rad] and velocities [rad/s] at time 0, shapes [7] and [7].
    """
    times = problem.times[:START_SAMPLES]
    _, speed, position = np.polyfit(times, problem.positions[:START_SAMPLES], 2)
    return position, speed


def factors_from_box(box: Array) -> Array:
    """Map the unit box to factors, logarithmically, so that 0.5 is the nominal value.

    Args:
        box: Points in [0, 1], shape [..., 8].
    """
    return FACTOR_LOW * (FACTOR_HIGH / FACTOR_LOW) ** box


def cpu_clock() -> Callable[[], float]:
    """Start a clock of processor time; calling it returns the seconds since."""
    start = time.process_time()
    return lambda: time.process_time() - start
