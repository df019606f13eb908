"""Simulated annealing over a normalised box, after SIMPLER's system identification.

SIMPLER fits the stiffness and damping of its arms by annealing the mean tracking error over the
unit box of the parameters: a uniform move of every parameter, clipped to the box, accepted with
probability `exp(-increase / temperature)`; the best point seen is the answer.

Where the original would be weaker than it needs to be on this problem, this opponent is stronger:
the temperature is relative to the error at the start, 0.02 to 0.4 rad, where SIMPLER's 1.5 would
accept nearly everything, and cools geometrically; the move shrinks with it, where SIMPLER's stays
at half the box. The constants are the best of five schedules tried on problems 100 to 105 with the
start known, which no table reports. The rest is SIMPLER's: the box is logarithmic, as in the
variant it keeps commented out, and the error is the mean over time of the distance between
simulated and recorded pose, here in joint space because that is what was recorded.

Source: Li et al., "Evaluating real-world robot manipulation policies in simulation" (SIMPLER),
arXiv:2405.05941; `tools/sysid/sysid.py` of simpler-env/SimplerEnv at commit 25ba0d9, with
`simulated_annealing/sa.py` of nathanrooy/simulated-annealing at commit 293e2b0.
"""

from collections.abc import Callable

import numpy as np

from benchmarks.arm_problem import NAMES, ArmProblem, Array, RolloutCounter, simulate
from benchmarks.opponents import Fit, cpu_clock, factors_from_box, start_of

MAX_ROLLOUTS = 1500
FIRST_TEMPERATURE = 0.03
LAST_TEMPERATURE = 3e-6
"""Temperatures as fractions of the error at the start."""
FIRST_MOVE = 0.3
LAST_MOVE = 0.003
"""Half widths of the uniform move in the unit box."""


def fit(problem: ArmProblem, *, start_known: bool, seed: int) -> Fit:
    """Anneal from the middle of the unit box, the nominal values, for 1500 rollouts."""
    clock, counter = cpu_clock(), RolloutCounter()
    qpos, qvel = start_of(problem, start_known=start_known)

    def error(box: Array) -> float:
        factors = factors_from_box(box)[None]
        predicted = simulate(problem, factors, qpos[None], qvel[None], counter)[0]
        return float(np.mean(np.linalg.norm(predicted - problem.positions, axis=1)))

    best = anneal(error, len(NAMES), most=MAX_ROLLOUTS, rng=np.random.default_rng(seed))
    return Fit(
        label="annealing",
        factors=factors_from_box(best),
        rollouts=counter.rollouts,
        cpu_seconds=clock(),
    )


def anneal(
    error: Callable[[Array], float], size: int, *, most: int, rng: np.random.Generator
) -> Array:
    """Best point [size] of the unit box that annealing from its middle sees.

    Args:
        error: What is made small.
        size: Number of parameters.
        most: Number of points that are tried.
        rng: Source of moves.
    """
    here = best = np.full(size, 0.5)
    here_error = best_error = start_error = error(here)
    for tried in range(1, most):
        progress = tried / most
        temperature = start_error * _geometric(FIRST_TEMPERATURE, LAST_TEMPERATURE, progress)
        move = _geometric(FIRST_MOVE, LAST_MOVE, progress) * rng.uniform(-1.0, 1.0, size)
        there = np.clip(here + move, 0.0, 1.0)
        there_error = error(there)
        if rng.random() < np.exp(min(0.0, (here_error - there_error) / temperature)):
            here, here_error = there, there_error
        if there_error < best_error:
            best, best_error = there, there_error
    return best


def _geometric(first: float, last: float, progress: float) -> float:
    """Interpolate geometrically; `progress` runs from 0 to 1."""
    return first * (last / first) ** progress
