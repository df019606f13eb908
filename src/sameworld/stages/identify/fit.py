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
from sameworld.core.residuals import Comparison, scored_rows
from sameworld.core.starts import session_values
from sameworld.core.values import Values
from sameworld.core.world import World
from sameworld.maths.transforms import Transform
from sameworld.stages.identify.config import IdentifyConfig
from sameworld.stages.identify.doubt import last_linear
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.hierarchy import Hierarchy
from sameworld.stages.identify.optimum import Optimum
from sameworld.stages.identify.problem import Problem, Window, held_for
from sameworld.stages.identify.result import SearchStart
from sameworld.stages.identify.scales import Scales, estimate_scales
from sameworld.stages.identify.search import Memory, Search, ticking
from sameworld.stages.identify.sessions import Sessions, own_names, session_names
from sameworld.stages.identify.solve import chosen_optimiser, optimise
from sameworld.stages.identify.steps import LADDER, choose_steps
from sameworld.stages.identify.windows import cut, trusted_length

__all__ = ["MOST_JUDGED", "Fitted", "fit_parameters", "pose", "rescaled", "stepped", "weighed"]

#: Most parameters with intervals and verdicts where a descent was chosen, not least squares.
MOST_JUDGED = 300
#: Relative change of a residual scale, and of a spread between sessions, that ends the rounds.
_SETTLED, _SPREAD_SETTLED = 0.02, 0.05
#: Fewest rounds in which spreads between sessions are estimated.
_SESSION_ROUNDS = 4


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
    hierarchy: Hierarchy | None = None

    @property
    def u(self) -> Array:
        """Coordinates of the parameters; of the population where sessions differ [P]."""
        return self.optimum.u[: len(self.problem.names)]


def pose(world: World, episodes: Sequence[Episode], config: IdentifyConfig) -> Problem:
    """Set up the problem with noise weights.

    Raises:
        AddressError: A pattern matches no parameter.
        FitError: A free parameter cannot move, or sessions state it.
    """
    names = match_names(config.free, world.parameters.names)
    own = own_names(config.per_session, names)
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
        exact=config.derivatives != "differences" and "gradient" in world.spec.capabilities,
        sessions=_sessions(names, own, windows, episodes),
    )


def _sessions(
    names: Sequence[str],
    own: Sequence[str],
    windows: Sequence[Window],
    episodes: Sequence[Episode],
) -> Sessions:
    """Which windows share a session, without any spread between sessions yet."""
    if not own:
        return Sessions.none(len(names), len(windows))
    order = session_names(episodes)
    member = [order.index(episodes[w.episode].session_id) for w in windows]
    return Sessions(
        size=len(names),
        names=order,
        member=np.array(member, dtype=np.intp),
        columns=tuple(names.index(n) for n in own),
        scale=np.zeros(len(own)),
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
    posed = pose(world, episodes, config)
    problem = replace(posed, sessions=Sessions.none(len(posed.names), len(posed.windows)))
    _check_scored(problem)
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
    problem = replace(problem, sessions=posed.sessions)
    problem, best, more = _settled(problem, best, config, memory, report, label)
    problem = weighed(problem, best.u, best.starts, config)
    problem = problem if problem.warmup else replace(problem, rates=True)
    problem = replace(problem, bare=_is_bare(problem, config))
    linear = last_linear(problem, best.u, best.starts, choose=config.difference == 0)
    return Fitted(
        problem=problem,
        linear=linear,
        optimum=best,
        searches=tuple(found.row for found in searches),
        before=before,
        simulations=spent + more,
        hierarchy=Hierarchy.at(problem, linear) if problem.sessions.extra else None,
    )


def _is_bare(problem: Problem, config: IdentifyConfig) -> bool:
    """Whether there are too many parameters for derivatives of all residuals by each."""
    if chosen_optimiser(problem, config) == "least_squares":
        return False
    bare = len(problem.names) > MOST_JUDGED
    if bare and problem.sessions.extra:
        raise FitError(
            f"'per_session' compares sessions by derivatives, for at most {MOST_JUDGED} free "
            f"parameters; {len(problem.names)} are free. Free fewer, or leave 'per_session' empty."
        )
    return bare


def _check_scored(problem: Problem) -> None:
    """At least one row must lie beyond the warm-up if that is where starts come from."""
    scored = [
        slice_.start < len(w.piece[name])
        for w in problem.windows
        for name, slice_ in scored_rows(problem.world.spec, w.piece, problem.warmup).items()
    ]
    if not any(scored):
        raise FitError(
            f"Every window is all warm-up: none has a row beyond its first {problem.warmup}. Use a "
            "smaller 'warmup', a longer 'window', or starts='joint'."
        )


def _settled(
    problem: Problem,
    best: Optimum,
    config: IdentifyConfig,
    memory: Memory,
    report: Report,
    label: str,
) -> tuple[Problem, Optimum, int]:
    """Fit again until residual scales and spreads between sessions hold still.

    Scales taken at a poor start are too large, and let the prior pull.
    """
    sessions, spent = bool(problem.sessions.extra), 0
    rounds = max(config.rounds - 1, _SESSION_ROUNDS if sessions else 0)
    for turn in range(rounds):
        u, starts = best.u, best.starts
        fresh = rescaled(problem, u, starts, config, robust=True)
        still = fresh.scales.change(problem.scales) < _SETTLED
        if sessions:
            apart, u = _spread_apart(fresh, u, starts, config, first=turn == 0)
            still = still and not _moved_much(problem.sessions.scale, apart.sessions.scale)
            fresh = apart
        if still and (turn or fresh.warmup or config.loss == "linear"):
            break
        problem = fresh
        tick = ticking(report, f"{label}, reweighted", config, turn, rounds)
        work = partial(optimise, problem, u, starts, config, tick)
        best = memory.optimum(f"round{turn}", work)
        spent += best.simulations
    return problem, best, spent


def _spread_apart(
    problem: Problem, u: Array, starts: Array, config: IdentifyConfig, *, first: bool
) -> tuple[Problem, Array]:
    """The problem with spreads between sessions estimated at a point, and the point in it.

    The first time they are wide (the prior's, else one unit of the coordinates), so that every
    session is heard before sessions are compared.
    """
    if first:
        columns = list(problem.sessions.columns)
        std = problem.prior_std[columns]
        scale = np.where(np.isfinite(std), std, 1.0)
        u = np.append(u, np.zeros(problem.sessions.extra - (len(u) - len(problem.names))))
    else:
        linear = Linear.at(weighed(problem, u, starts, config), u, starts)
        scale = Hierarchy.at(problem, linear).best_scale()
    sessions, moved = problem.sessions.rescaled(u, scale)
    return replace(problem, sessions=sessions), moved


def _moved_much(old: Array, new: Array) -> bool:
    return bool((np.abs(new - old) > _SPREAD_SETTLED * np.maximum(old, new)).any())


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
    """The problem with difference steps chosen at a point; smooth ones go one-sided.

    Rough ones leave exact derivatives aside unless these are asked for: between two jumps of a cost
    the slope says nothing of its trend.
    """
    if chosen_optimiser(problem, config) != "least_squares":
        return replace(problem, exact=True, central=False, rough=False)
    if config.difference > 0:
        return problem
    steps = choose_steps(problem, u, starts)
    rough = bool((steps > LADDER[0]).any())
    exact = problem.exact and not (rough and config.derivatives == "auto")
    return replace(problem, difference=steps, central=rough, rough=rough, exact=exact)
