"""CMA-ES on the noise-weighted cost, with the defaults of pycma.

This is how PACE and BAM identify joints (CMA-ES, the latter through Optuna): parameters scaled to
the unit box, the mean squared residual as cost, one rollout for each candidate.

Source: Hansen, "The CMA evolution strategy: a tutorial", arXiv:1604.00772, and its package
`cma` (pycma). Users: PACE, arXiv:2509.06342; BAM, arXiv:2410.08650.
"""

import cma
import numpy as np

from benchmarks.arm_problem import NAMES, ArmProblem, Array, RolloutCounter, simulate
from benchmarks.opponents import Fit, cpu_clock, factors_from_box, start_of

MAX_ROLLOUTS = 1500
SIGMA = 0.25
"""First step as a fraction of the box, as pycma advises: about a quarter of its width."""


def fit(problem: ArmProblem, *, start_known: bool, seed: int) -> Fit:
    """Search the unit box from its middle, the nominal values, for 1500 rollouts."""
    clock, counter = cpu_clock(), RolloutCounter()
    qpos, qvel = start_of(problem, start_known=start_known)

    def costs(box: Array) -> Array:
        starts = (np.tile(qpos, (len(box), 1)), np.tile(qvel, (len(box), 1)))
        predicted = simulate(problem, factors_from_box(box), *starts, counter)
        return np.mean(((predicted - problem.positions) / problem.noise_sd) ** 2, axis=(1, 2))

    options = {"bounds": [0.0, 1.0], "seed": seed + 1, "verbose": -9}  # seed 0 means "by clock"
    search = cma.CMAEvolutionStrategy(len(NAMES) * [0.5], SIGMA, options)
    while not search.stop() and counter.rollouts + search.popsize <= MAX_ROLLOUTS:
        candidates = search.ask()
        search.tell(candidates, costs(np.array(candidates)).tolist())
    return Fit(
        label="CMA-ES",
        factors=factors_from_box(np.asarray(search.result.xbest)),
        rollouts=counter.rollouts,
        cpu_seconds=clock(),
    )
