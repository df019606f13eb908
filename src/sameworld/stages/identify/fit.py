"""Fitting named parameters: windows, search, polish, reweighting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sameworld.core.address import match_names
from sameworld.core.arrays import Array
from sameworld.core.checkpoint import Checkpoint
from sameworld.core.episode import Episode
from sameworld.core.errors import FitError
from sameworld.core.noise import noise_levels
from sameworld.core.progress import Report
from sameworld.core.residuals import Comparison
from sameworld.core.starts import session_values
from sameworld.core.values import Values
from sameworld.core.world import World
from sameworld.maths.transforms import Transform
from sameworld.stages.identify.config import IdentifyConfig
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.problem import Problem, held_for
from sameworld.stages.identify.result import SearchStart
from sameworld.stages.identify.scales import Scales, estimate_scales
from sameworld.stages.identify.search import Memory, Search, ticking
from sameworld.stages.identify.solve import Optimum, optimise
from sameworld.stages.identify.steps import LADDER, choose_steps
from sameworld.stages.identify.windows import cut, trusted_length

__all__ = ["Fitted", "fit_parameters", "pose", "rescaled", "stepped", "weighed"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """A finished fit.

    Attributes:
        problem: The problem with its final weights.
        linear: Linearisation at the optimum.
        optimum: The optimum.
        searches: Multi-start table.
        before: Comparisons per window with the world as given.
        simulations: Trajectories spent.
    """

    problem: Problem
    linear: Linear
    optimum: Optimum
    searches: tuple[SearchStart, ...]
    before: list[tuple[Comparison, ...]]
    simulations: int


def pose(world: World, episodes: Sequence[Episode], config: IdentifyConfig) -> Problem:
    """Set up the problem with noise weights.

    Raises:
        AddressError: A pattern matches no parameter.
        FitError: A free parameter cannot move, or sessions state it.
    """
    names = match_names(config.free, world.parameters.names)
    parameters = tuple(world.parameters[name] for name in names)
    stuck = [p.name for p in parameters if p.low >= p.high or p.std == 0]
    if stuck:
        raise FitError(
            f"Cannot fit {stuck}: bounds leave no room or the belief says they are known exactly "
            "(std = 0). Widen them or drop them from 'free'."
        )
    stated = sorted({p.name for e in episodes for p in e.session.parameters} & set(names))
    if stated:
        raise FitError(
            f"Cannot fit {stated}: episodes state them in their sessions, which override the "
            "world. Drop them from 'free', or from the sessions."
        )
    transform = Transform.of(parameters)
    length = config.window or trusted_length(world, episodes, config)
    windows = cut(world, episodes, config, length)
    pieces = [w.piece for w in windows]
    spec = world.spec.start
    centre = transform.forward(np.array([p.value for p in parameters]))
    std = np.array([p.std for p in parameters]) / np.abs(transform.derivative(centre))
    return Problem(
        world=world,
        windows=windows,
        transform=transform,
        start_names=tuple(p.name for p in spec.parameters if p.std > 0 and p.low < p.high),
        base=session_values(world, pieces, Values.none()),
        actions=held_for(world, pieces),
        scales=Scales.white(noise_levels(world.spec, episodes)),
        difference=np.full(len(names), config.difference or LADDER[1]),
        warmup=config.warmup if _from_warmup(config, length) else 0,
        prior_std=std if config.prior else np.full(len(std), np.inf),
        prior_mean=centre,
        seed=config.seed,
    )


def fit_parameters(
    world: World,
    episodes: Sequence[Episode],
    config: IdentifyConfig,
    *,
    report: Report,
    checkpoint: Checkpoint | None,
    label: str,
    given: Array | None = None,
) -> Fitted:
    """Fit named parameters to episodes.

    Args:
        world: A world that starts from named values.
        episodes: Episodes to fit.
        config: Options.
        report: Receives progress.
        checkpoint: Where finished phases are kept.
        label: Prefix of checkpoint names and progress messages.
        given: Coordinates to polish from instead of searching [P].
    """
    problem = pose(world, episodes, config)
    memory = Memory(checkpoint, label)
    centre = np.clip(problem.prior_mean, *problem.transform.bounds)
    point = centre if given is None else given
    starts = problem.warm_starts(point, config.warmup)
    begun = starts if given is None else problem.warm_starts(centre, config.warmup)
    before = [b.parts for b in problem.simulate(centre, begun)]
    problem = rescaled(problem, point, starts, config, robust=False)
    problem = stepped(problem, point, starts, config)
    search = Search(
        problem=problem, starts=starts, config=config, memory=memory, report=report, label=label
    )
    searches = search.run() if given is None else [search.polish(point, np.nan, "search0")]
    best = min(searches, key=lambda found: found.optimum.cost).optimum
    spent = sum(found.optimum.simulations for found in searches)
    for turn in range(config.rounds - 1):
        tick = ticking(report, f"{label}, reweighted", config, turn, config.rounds - 1)
        problem = rescaled(problem, best.u, best.starts, config, robust=True)
        work = partial(optimise, problem, best.u, best.starts, config, tick)
        best = memory.optimum(f"round{turn}", work)
        spent += best.simulations
    problem = weighed(problem, best.u, best.starts, config)
    problem = problem if problem.warmup else replace(problem, rates=True)
    return Fitted(
        problem=problem,
        linear=Linear.at(problem, best.u, best.starts),
        optimum=best,
        searches=tuple(found.row for found in searches),
        before=before,
        simulations=spent,
    )


def _from_warmup(config: IdentifyConfig, length: float) -> bool:
    if config.starts == "auto":
        return bool(np.isfinite(length))
    return config.starts == "warmup"


def rescaled(
    problem: Problem, u: Array, starts: Array, config: IdentifyConfig, *, robust: bool
) -> Problem:
    """The problem with residual scales re-estimated at a point, and row weights if wanted.

    Where starts come from the warm-up the optimiser applies the loss itself and rows keep their
    full weight.
    """
    parts = [b.parts for b in problem.simulate(u, starts)]
    scales = estimate_scales(problem.scales.noise, parts, config)
    return problem.with_scales(scales if robust and not problem.warmup else scales.plain())


def weighed(problem: Problem, u: Array, starts: Array, config: IdentifyConfig) -> Problem:
    """The problem with the loss turned into row weights at the optimum, scales kept."""
    parts = [b.parts for b in problem.simulate(u, starts)]
    return problem.with_scales(problem.scales.weighed(parts, config))


def stepped(problem: Problem, u: Array, starts: Array, config: IdentifyConfig) -> Problem:
    """The problem with difference steps chosen at a point; smooth ones go one-sided."""
    if config.difference > 0:
        return problem
    steps = choose_steps(problem, u, starts)
    return replace(problem, difference=steps, central=bool((steps > LADDER[0]).any()))
