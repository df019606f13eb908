"""Search and polish: several starts screened cheaply, the best ones optimised."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Literal, cast

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import qmc

from sameworld.core.arrays import Array
from sameworld.core.errors import FitError, MissingExtraError
from sameworld.stages.identify.config import IdentifyConfig
from sameworld.stages.identify.descend import adam, lbfgs
from sameworld.stages.identify.eliminate import Eliminated
from sameworld.stages.identify.optimum import Optimum
from sameworld.stages.identify.problem import Problem

__all__ = ["chosen_optimiser", "optimise", "proposals", "search_box", "search_by_cma"]

_WIDE = 3.0
#: Parameters up to which least squares is the usual optimiser.
_MANY = 200


def optimise(
    problem: Problem,
    u: Array,
    starts: Array,
    config: IdentifyConfig,
    tick: Callable[[int], None] | None = None,
) -> Optimum:
    """Minimise over parameters and starts from one point, by the optimiser that was chosen.

    Args:
        problem: The problem.
        u: Coordinates [P + extra].
        starts: Starts [W, S_all].
        config: Options.
        tick: Hears the number of Jacobians or slopes so far.
    """
    chosen = chosen_optimiser(problem, config)
    if chosen == "lbfgs":
        return lbfgs(problem, u, starts, config, tick)
    if chosen == "adam":
        return adam(problem, [u], starts, config, tick)[0]
    return _least_squares(problem, u, starts, config, tick)


def chosen_optimiser(
    problem: Problem, config: IdentifyConfig
) -> Literal["least_squares", "lbfgs", "adam"]:
    """The optimiser: as asked for, else least squares up to some number of parameters."""
    if config.optimiser != "auto":
        return config.optimiser
    able = {"gradient", "pullback"} <= problem.world.spec.capabilities
    return "lbfgs" if able and len(problem.names) > _MANY else "least_squares"


def _least_squares(
    problem: Problem,
    u: Array,
    starts: Array,
    config: IdentifyConfig,
    tick: Callable[[int], None] | None,
) -> Optimum:
    """Trust-region reflective least squares.

    Trust-region reflective (``scipy.optimize.least_squares``) over the parameters' coordinates with
    the starts eliminated; ``tick`` hears the number of Jacobians so far, at most
    ``config.evaluations``. Source: M. A. Branch, T. F. Coleman, Y. Li, SIAM J. Sci. Comput. 21
    (1999).
    """
    loose = np.full(len(u) - len(problem.names), np.inf)
    low, high = (
        np.append(b, s * loose) for b, s in zip(problem.transform.bounds, (-1, 1), strict=True)
    )
    inside = np.clip(u, low + 1e-9, high - 1e-9)
    eliminated = Eliminated(problem, inside, starts)

    def jacobian(at: Array) -> Array:
        if tick is not None:
            tick(len(eliminated.history))
        return eliminated.jacobian(at)

    solution = cast(
        Any,
        least_squares(
            eliminated.residual,
            inside,
            jac=cast(Any, jacobian),
            bounds=(low, high),
            method="trf",
            x_scale=1.0,
            loss=config.loss if problem.warmup else "linear",
            f_scale=config.threshold,
            ftol=config.tolerance,
            xtol=1e-7,
            gtol=1e-10,
            max_nfev=config.evaluations,
        ),
    )
    best = np.asarray(solution.x, dtype=np.float64)
    return Optimum(
        u=best,
        starts=eliminated.starts(best),
        cost=float(solution.cost),
        history=(*eliminated.history, float(solution.cost)),
        simulations=eliminated.simulations,
        message=str(solution.message),
    )


def search_box(problem: Problem) -> tuple[Array, Array]:
    """Box of the search in coordinates: bounds, cut to the prior where it has an opinion."""
    low, high = problem.transform.bounds
    centre = np.clip(problem.prior_mean, low, high)
    reach = np.where(np.isfinite(problem.prior_std), 2 * problem.prior_std, _WIDE)
    wide_low = np.where(np.isfinite(low), low, centre - reach)
    wide_high = np.where(np.isfinite(high), high, centre + reach)
    return np.maximum(wide_low, centre - reach), np.minimum(wide_high, centre + reach)


def proposals(problem: Problem, config: IdentifyConfig) -> Array:
    """Starting points in coordinates [N, P]: the given one first, then a Sobol sequence."""
    given = np.clip(problem.prior_mean, *problem.transform.bounds)[None]
    if config.search == "none" or config.candidates == 0 or not problem.names:
        return given
    low, high = search_box(problem)
    sampler = qmc.Sobol(d=len(low), scramble=True, rng=np.random.default_rng(config.seed))
    unit = sampler.random_base2(int(np.ceil(np.log2(max(config.candidates, 2)))))[
        : config.candidates
    ]
    return np.concatenate([given, low + unit * (high - low)])


def search_by_cma(
    problem: Problem,
    starts: Array,
    config: IdentifyConfig,
    tick: Callable[[int], None] | None = None,
) -> Array:
    """Global search by CMA-ES with the starts held; returns coordinates [P] to polish.

    Source: N. Hansen, A. Ostermeier, Evolutionary Computation 9 (2001); the ``cma`` package.

    Raises:
        MissingExtraError: ``cma`` is not installed.
    """
    try:
        module: Any = import_module("cma")
    except ImportError as cause:
        raise MissingExtraError("cma", "global") from cause
    low, high = search_box(problem)
    if len(low) < 2:
        raise FitError("CMA-ES needs at least two free parameters. Use search='sobol'.")
    budget = max(config.candidates, 1) * 20
    options: dict[str, Any] = {
        "bounds": [0.0, 1.0],
        "seed": config.seed + 1,
        "maxfevals": budget,
        "verbose": -9,
    }
    strategy = module.CMAEvolutionStrategy([0.5] * len(low), 0.25, options)
    while not strategy.stop():
        points = strategy.ask()
        span = high - low
        costs = [problem.cost(low + np.asarray(p) * span, starts) for p in points]
        strategy.tell(points, costs)
        if tick is not None:
            tick(int(strategy.countevals))
    return low + np.asarray(strategy.result.xbest, dtype=np.float64) * (high - low)
