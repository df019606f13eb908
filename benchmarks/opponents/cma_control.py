"""CMA-ES on the squared residuals of a control problem, with the defaults of pycma.

Source: Hansen, "The CMA evolution strategy: a tutorial", arXiv:1604.00772, and its package
`cma` (pycma). When it stops by itself it begins again from the same point with other draws.
"""

from collections.abc import Callable
from dataclasses import dataclass

import cma
import numpy as np

from benchmarks.arm_problem import Array


@dataclass(frozen=True, kw_only=True)
class Search:
    """How a search ended.

    Args:
        success: Whether the cost came down to the threshold.
        evaluations: Rollouts until the first success, or all that were allowed.
        cost: Lowest cost seen.
    """

    success: bool
    evaluations: int
    cost: float


def search(
    costs: Callable[[Array], Array],
    first: Array,
    step: float,
    threshold: float,
    *,
    budget: int,
    seed: int,
) -> Search:
    """Minimise until the cost is at most `threshold`, for at most `budget` rollouts.

    Args:
        costs: Costs [N] of candidates [N, K].
        first: Where it begins [K].
        step: First standard deviation in every coordinate.
        threshold: Cost of a success.
        budget: Most rollouts.
        seed: Seed of the draws.
    """
    spent, lowest, again = 0, np.inf, 0
    while spent < budget:
        chosen = {"seed": 1 + 100 * seed + again, "verbose": -9}  # seed 0 means "by clock"
        strategy = cma.CMAEvolutionStrategy(first, step, chosen)
        while spent < budget and not strategy.stop():
            candidates = strategy.ask()
            found = costs(np.array(candidates))
            hits = np.flatnonzero(found[: budget - spent] <= threshold)
            lowest = min(lowest, float(found.min()))
            if len(hits):
                return Search(success=True, evaluations=spent + int(hits[0]) + 1, cost=lowest)
            spent += len(candidates)
            strategy.tell(candidates, found.tolist())
        again += 1
    return Search(success=False, evaluations=budget, cost=lowest)
