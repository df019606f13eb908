"""Search for the assignment of columns to joints that explains the recorded torques best.

Source: simulated annealing, S. Kirkpatrick, C. D. Gelatt, M. P. Vecchi, Science 220 (1983).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.stages.capture.arm import Arm, Assignment

__all__ = [
    "Search",
    "far_neighbours",
    "neighbours",
    "polish",
    "search",
    "start_order",
]

_TRIALS = 1200
_HOT, _COLD = 4.0, 0.2
#: R^2 of the worst torque above which an end that was reached once, or twice, is believed.
_GOOD, _FAIR = 0.85, 0.5
#: Zero offsets tried from each assignment [rad or m].
_ZEROS = (-1.5, -0.7, 0.7, 1.5, math.pi)
#: Neighbours of an optimum whose zero offsets are refined.
_REFINED = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """What the search found.

    Attributes:
        best: The best assignment.
        cost: Its cost.
        ends: Costs at which the starts ended, in order.
    """

    best: Assignment
    cost: float
    ends: tuple[float, ...]


def neighbours(
    arm: Arm, assignment: Assignment, factors: Sequence[tuple[float, ...]]
) -> Iterator[Assignment]:
    """Assignments that differ by two joints, by one or two signs, or by one unit.

    Args:
        arm: What is explained.
        assignment: The one in the middle.
        factors: Per group, factors that turn its first unit into the others.
    """
    used = assignment.order[: len(arm.joints)]
    own = [int(g) for g in used if g < arm.groups]
    for i, j in itertools.combinations(range(arm.places()), 2):
        if i < len(arm.joints):
            yield assignment.swapped(i, j)
    for groups in itertools.chain(itertools.combinations(own, 1), itertools.combinations(own, 2)):
        yield assignment.scaled(groups, -1.0)
    for group in own:
        for factor in factors[group]:
            yield assignment.scaled((group,), factor)


def far_neighbours(arm: Arm, assignment: Assignment) -> Iterator[Assignment]:
    """Assignments further away: three or four signs (an arm and its mirror image look alike).

    Also two joints exchanged with signs turned, and three joints in a ring.
    """
    used = assignment.order[: len(arm.joints)]
    own = [int(g) for g in used if g < arm.groups]
    for count in (3, 4):
        for groups in itertools.combinations(own, count):
            yield assignment.scaled(groups, -1.0)
    for i, j in itertools.combinations(range(len(own)), 2):
        swapped = assignment.swapped(i, j)
        for groups in ((own[i],), (own[j],), (own[i], own[j])):
            yield swapped.scaled(groups, -1.0)
    for i, j, k in itertools.combinations(range(len(own)), 3):
        yield assignment.swapped(i, j).swapped(j, k)
        yield assignment.swapped(j, k).swapped(i, j)


def _zero_moves(arm: Arm, assignment: Assignment) -> Iterator[Assignment]:
    for group in assignment.order[: len(arm.joints)].tolist():
        if group < arm.groups:
            yield assignment.moved(group, None)
            for by in _ZEROS:
                yield assignment.moved(group, by)


def polish(
    arm: Arm, assignment: Assignment, factors: Sequence[tuple[float, ...]]
) -> tuple[float, Assignment]:
    """Go to the best neighbour until none is better."""
    best = arm.cost(assignment)
    while True:
        near = [*neighbours(arm, assignment, factors), *_zero_moves(arm, assignment)]
        cost, found = _best_of(arm, assignment, near)
        if cost >= best - 1e-3:
            cost, found = _best_of(arm, assignment, list(far_neighbours(arm, assignment)))
        if cost >= best - 1e-3:
            return best, assignment
        best, assignment = cost, found


def _best_of(
    arm: Arm, assignment: Assignment, around: Sequence[Assignment]
) -> tuple[float, Assignment]:
    """The best of some assignments and of the one in the middle, with zeros refined."""
    free = np.ones(arm.groups, dtype=np.bool_)
    costs = np.array([arm.cost(a) for a in around])
    order: list[int] = np.argsort(costs, kind="stable")[:_REFINED].tolist()
    tried = [(float(costs[k]), around[k]) for k in order]
    tried += [_refined(arm, a, free) for _, a in tried]
    tried.append(_refined(arm, assignment, free))
    return min(tried, key=lambda t: t[0])


def _refined(arm: Arm, assignment: Assignment, free: NDArray[np.bool_]) -> tuple[float, Assignment]:
    zeroed, _ = arm.zeroed(assignment, free, rounds=2)
    return arm.cost(zeroed), zeroed


def _annealed(arm: Arm, start: Assignment, rng: np.random.Generator) -> Assignment:
    """Random walk over assignments that grows pickier."""
    places = arm.places()
    here = replace(start, order=rng.permutation(places).astype(np.intp))
    cost = arm.cost(here)
    best, lowest = here, cost
    for trial in range(_TRIALS):
        heat = _HOT * (_COLD / _HOT) ** (trial / _TRIALS)
        there = _jump(arm, here, rng)
        new = arm.cost(there)
        if new < cost or rng.random() < math.exp((cost - new) / heat):
            here, cost = there, new
            if cost < lowest:
                best, lowest = here, cost
    return best


def _jump(arm: Arm, here: Assignment, rng: np.random.Generator) -> Assignment:
    kind = rng.random()
    if kind < 0.6 and arm.places() > 1:
        i, j = rng.choice(arm.places(), 2, replace=False).tolist()
        there = here.swapped(i, j)
        if rng.random() < 0.5:
            for place in (i, j):
                group = int(there.order[place])
                there = there.moved(group, None) if group < arm.groups else there
        return there
    group = int(rng.integers(arm.groups))
    if kind < 0.75:
        return here.scaled((group,), -1.0)
    by = None if rng.random() < 0.3 else 0.5 * float(rng.standard_normal())
    return here.moved(group, by)


def search(
    rough: Arm,
    arm: Arm,
    start: Assignment,
    factors: Sequence[tuple[float, ...]],
    *,
    searches: int,
    seed: int,
) -> Search:
    """Search from a start and from random ones until the best end was reached twice.

    An end that explains nearly everything is enough if one more start finds nothing better.

    Args:
        rough: What is explained, at few rows, for the random walks.
        arm: The same at more rows.
        start: Where the names and the order of the columns point to.
        factors: Per group, factors that turn its first unit into the others.
        searches: Most random starts.
        seed: Seed of the random starts.
    """
    rng = np.random.default_rng(seed)
    ends = [polish(arm, start, factors)]
    for _ in range(searches):
        ends.append(polish(arm, _annealed(rough, start, rng), factors))
        best = min(ends, key=lambda e: e[0])
        reached = sum(cost < best[0] + 0.2 for cost, _ in ends) > 1
        explained = float(arm.explain(best[1]).fit.min())
        if (reached and explained > _FAIR) or (explained > _GOOD and best is not ends[-1]):
            break
    cost, found = min(ends, key=lambda e: e[0])
    return Search(best=found, cost=cost, ends=tuple(c for c, _ in ends))


def start_order(prior: Array, places: int) -> NDArray[np.intp]:
    """Order [S] that the prior costs [G, n] ask for."""
    from scipy.optimize import linear_sum_assignment

    order = np.full(places, -1, dtype=np.intp)
    rows, columns = linear_sum_assignment(prior)
    order[columns] = rows
    rest = [k for k in range(places) if k not in set(rows.tolist())]
    order[order < 0] = rest[: int((order < 0).sum())]
    return order
