"""Control by gradient against CMA-ES: throw a ball to a target, bring an arm to rest at a point.

Run: ``python -m benchmarks.diff_control [--out FILE.json] [--seed N]``.

Optimal control (``throw``, ``reach``): cost = (miss / hit)^2 + mean squared share of the motors'
limits / ``EFFORT``. Success: at most ``WITHIN`` times the lowest cost that ours converges to.
Target alone (``throw_hit``, ``reach_hit``): no effort in the cost; success: a miss of at most one
hit, 5 mm or 1 cm (``control_problems``). A target alone is one number (throw) or six (reach),
however many actions there are: the fewer numbers, the better sampling does.

Both methods shape the same numbers from the same start and stop at the first success. Ours uses
reverse mode: Levenberg-Marquardt for the throw, whose Jacobian is one row, L-BFGS for the reach,
which has six (``control_gradient``). CMA-ES has the defaults of pycma, begins again when it stops,
and counts the best of its ``FIRST_STEPS``.

The currency is one forward rollout of the differentiable world, as cheap as it gets in a batch of
CMA-ES's size. Gradients, and our rollouts that go one by one, count what they cost in CPU time
beside it, measured in the run. CMA-ES runs in MuJoCo itself, which moves alike; a run without
success counts its whole budget, so ratios are lower bounds where ``*_cma_success`` is below 1.
``*_cpu_ratio`` is CPU time of the best CMA-ES run with MuJoCo over that of ours; compilation
(``*_compile_cpu_s``, from the disk cache where that is warm) is left out. ``*_cma_cost_ratio`` is
the lowest cost that CMA-ES saw until it stopped, over the lowest of ours; it stops at a success.

Sources: Degrave et al., "A differentiable physics engine for deep learning in robotics", 2016,
arXiv:1611.01652; de Avila Belbute-Peres et al., "End-to-end differentiable physics for learning and
control", NeurIPS 2018; Hansen, arXiv:1604.00772.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.control_gradient import Goal, planned
from benchmarks.control_problems import Problem, Reach, Throw
from benchmarks.convention import options, show, write_json
from benchmarks.opponents.cma_control import Search, search
from sameworld.core.arrays import Array

TARGETS = 6
WITHIN = 1.1
BUDGET = {"throw": 6000, "reach": 10000}
FIRST_STEPS = (0.03, 0.1, 0.3)
"""First steps of CMA-ES, in shares of the motors' limits."""
REPEATS = 5


# ---- costs -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Costs:
    """CPU seconds of one call.

    Attributes:
        batched: A forward rollout within a batch of CMA-ES's size.
        single: A forward rollout alone.
        reverse: A reverse pass.
        compiling: Compiling the two programs that gradients need.
    """

    batched: float
    single: float
    reverse: float
    compiling: float


def measured(problem: Problem) -> Costs:
    """Lowest CPU time of a few repeats, after a first call that compiles."""
    z = problem.first
    size = 4 + int(3 * math.log(z.size))
    batch = np.repeat(z[None], size, axis=0)
    single, compiled = _cpu(lambda: problem.seen(problem.world, z[None]))
    weights = problem.weights(problem.seen(problem.world, z[None]))
    if problem.method == "lbfgs":
        weights = {name: weight[:1] for name, weight in weights.items()}
    reverse, more = _cpu(lambda: problem.pulled(z, weights))
    batched, _ = _cpu(lambda: problem.seen(problem.world, batch))
    return Costs(batched=batched / size, single=single, reverse=reverse, compiling=compiled + more)


def _cpu(call: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds of a call, and what the first one took."""
    spent: list[float] = []
    for _ in range(1 + REPEATS):
        began = time.process_time()
        call()
        spent.append(time.process_time() - began)
    return min(spent[1:]), spent[0]


# ---- the benchmark -----------------------------------------------------------------------------


def opponent(goal: Goal, threshold: float, seed: int) -> tuple[Search, float]:
    """Best run of CMA-ES over its first steps (the cost is the lowest of all), and its CPU s."""
    problem = goal.problem

    def costs(z: Array) -> Array:
        return goal.costs(problem.engine, z.reshape(-1, *problem.first.shape))

    best: tuple[Search, float] | None = None
    lowest = math.inf
    for step in FIRST_STEPS:
        budget = BUDGET[problem.name] if best is None else best[0].evaluations
        began = time.process_time()
        first = problem.first.reshape(-1)
        found = search(costs, first, step, threshold, budget=budget, seed=seed)
        spent = time.process_time() - began
        lowest = min(lowest, found.cost)
        if best is None or (found.success and found.evaluations < best[0].evaluations):
            best = (found, spent)
    assert best is not None
    return replace(best[0], cost=lowest), best[1]


def compared(goal: Goal, costs: Costs, seed: int) -> tuple[float, ...]:
    """Success and forwards of both methods for one goal; ratios of forwards, CPU and costs."""
    path = planned(goal, 0.0 if goal.metric.any() else 1.0)
    threshold = WITHIN * min(p.cost for p in path) if goal.metric.any() else 1.0
    reached = next((p for p in path if p.cost <= threshold), path[-1])
    confirmed = goal.costs(goal.problem.engine, reached.z[None])[0] <= 1.001 * threshold
    paid = reached.forwards * costs.single + reached.reverses * costs.reverse
    paid /= costs.batched
    theirs, spent = opponent(goal, threshold, seed)
    return (
        float(confirmed),
        paid,
        float(theirs.success),
        float(theirs.evaluations),
        theirs.evaluations / paid,
        spent / reached.cpu_seconds,
        theirs.cost / min(p.cost for p in path),
    )


def run(problem: Problem, costs: Costs, seed: int, *, effort: bool) -> dict[str, float]:
    """Numbers of one problem over all targets."""
    metric = problem.metric() if effort else 0 * problem.metric()
    name = problem.name if effort else f"{problem.name}_hit"
    rows: list[tuple[float, ...]] = []
    for number in range(TARGETS):
        goal = Goal(problem=problem, target=problem.target(1000 * seed + number), metric=metric)
        rows.append(compared(goal, costs, number))
    columns = (
        "target",
        "ours",
        "forwards",
        "CMA-ES",
        "forwards",
        "ratio",
        "CPU ratio",
        "cost ratio",
    )
    show(f"{name}: forward rollouts until success", columns, [(k, *r) for k, r in enumerate(rows)])
    table = np.array(rows)
    keys = (
        "success",
        "forwards",
        "cma_success",
        "cma_forwards",
        "ratio",
        "cpu_ratio",
        "cma_cost_ratio",
    )
    reduced = (np.mean, np.median, np.mean, np.median, np.median, np.median, np.median)
    found = {
        f"{name}_{key}": float(reduce(table[:, k]))
        for k, (key, reduce) in enumerate(zip(keys, reduced, strict=True))
    }
    if not effort:
        del found[f"{name}_cma_cost_ratio"]  # costs below a hit say nothing
    return found | {f"{name}_ratio_lowest": float(table[:, 4].min())}


def paid(problem: Problem, costs: Costs) -> dict[str, float]:
    """What calls cost."""
    return {
        f"{problem.name}_forward_ms": 1e3 * costs.batched,
        f"{problem.name}_single_in_forwards": costs.single / costs.batched,
        f"{problem.name}_gradient_in_forwards": costs.reverse / costs.batched,
        f"{problem.name}_compile_cpu_s": costs.compiling,
    }


def main(argv: Sequence[str] | None = None) -> dict[str, float]:
    """Run the benchmark."""
    opts = options(__doc__ or "", argv)
    numbers: dict[str, float] = {}
    for problem in (Throw(), Reach()):
        costs = measured(problem)
        numbers |= paid(problem, costs)
        for effort in (True, False):
            numbers |= run(problem, costs, opts.seed, effort=effort)
    show("Control by gradient", ("number", "value"), sorted(numbers.items()))
    write_json(opts.out, numbers)
    return numbers


if __name__ == "__main__":
    main()
