"""Fitting named parameters: windows, search, polish, reweighting."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sameworld.core.address import match_names
from sameworld.core.arrays import Array
from sameworld.core.checkpoint import Checkpoint
from sameworld.core.episode import Episode
from sameworld.core.errors import FitError
from sameworld.core.noise import noise_levels
from sameworld.core.progress import Progress, Report
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
from sameworld.stages.identify.solve import Optimum, optimise, proposals, search_by_cma
from sameworld.stages.identify.steps import LADDER, choose_steps
from sameworld.stages.identify.windows import cut, trusted_length

__all__ = ["Fitted", "fit_parameters", "pose"]


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
        FitError: A free parameter cannot move.
    """
    names = match_names(config.free, world.parameters.names)
    parameters = tuple(world.parameters[name] for name in names)
    stuck = [p.name for p in parameters if p.low >= p.high or p.std == 0]
    if stuck:
        raise FitError(
            f"Cannot fit {stuck}: bounds leave no room or the belief says they are known exactly "
            "(std = 0). Widen them or drop them from 'free'."
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
    memory = _Memory(checkpoint, label)
    centre = np.clip(problem.prior_mean, *problem.transform.bounds)
    point = centre if given is None else given
    starts = problem.warm_starts(point, config.warmup)
    before = [b.parts for b in problem.simulate(centre, starts)]
    problem = problem.with_scales(
        _scales(problem, [b.parts for b in problem.simulate(point, starts)], config)
    )
    if config.difference == 0:
        problem = replace(problem, difference=choose_steps(problem, point, starts))
    searches: list[SearchStart] = []
    best: Optimum | None = None
    points = [(point, np.nan)] if given is not None else _screen(problem, starts, config, report)
    for k, (begin, screened) in enumerate(points):
        report(Progress(stage=label, done=k, total=len(points) + config.rounds, message="search"))
        found = memory.optimum(f"search{k}", partial(optimise, problem, begin, starts, config))
        searches.append(_row(problem, begin, screened, found))
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None
    spent = sum(s.simulations for s in [best])
    for turn in range(config.rounds - 1):
        report(
            Progress(
                stage=label,
                done=len(points) + turn,
                total=len(points) + config.rounds,
                message="reweighting",
            )
        )
        parts = [b.parts for b in problem.simulate(best.u, best.starts)]
        problem = problem.with_scales(_scales(problem, parts, config))
        work = partial(optimise, problem, best.u, best.starts, config)
        best = memory.optimum(f"round{turn}", work)
        spent += best.simulations
    linear = Linear.at(problem, best.u, best.starts)
    return Fitted(
        problem=problem,
        linear=linear,
        optimum=best,
        searches=tuple(searches),
        before=before,
        simulations=spent,
    )


def _from_warmup(config: IdentifyConfig, length: float) -> bool:
    if config.starts == "auto":
        return bool(np.isfinite(length))
    return config.starts == "warmup"


def _scales(
    problem: Problem, parts: Sequence[tuple[Comparison, ...]], config: IdentifyConfig
) -> Scales:
    return estimate_scales(problem.scales.noise, parts, config)


def _screen(
    problem: Problem, starts: Array, config: IdentifyConfig, report: Report
) -> list[tuple[Array, float]]:
    """The most promising starting points with their screening costs; the given one is kept."""
    points = proposals(problem, config)
    costs: list[float] = []
    for k, point in enumerate(points):
        report(Progress(stage="screening", done=k, total=len(points), message=""))
        costs.append(problem.cost(point, starts))
    if config.search == "cma":
        found = search_by_cma(problem, starts, config)
        points = np.concatenate([points, found[None]])
        costs.append(problem.cost(found, starts))
    order = [0, *(int(k) for k in np.argsort(costs) if k != 0)]
    return [(points[k], costs[k]) for k in order[: 1 + (config.polished if len(points) > 1 else 0)]]


def _row(problem: Problem, begin: Array, screened: float, found: Optimum) -> SearchStart:
    values = problem.transform.backward(begin)
    return SearchStart(
        values={n: float(v) for n, v in zip(problem.names, values, strict=True)},
        screened=screened,
        cost=found.cost,
        message=found.message,
    )


class _Memory:
    """Finished optimisations kept in a checkpoint."""

    def __init__(self, checkpoint: Checkpoint | None, label: str) -> None:
        self._checkpoint, self._label = checkpoint, label

    def optimum(self, name: str, work: Callable[[], Optimum]) -> Optimum:
        """Load the optimum of a phase, or do the work and keep it."""
        key = f"{self._label}-{name}"
        kept = None if self._checkpoint is None else self._checkpoint.load(key)
        if kept is not None:
            return _unpack(kept)
        found = work()
        if self._checkpoint is not None:
            self._checkpoint.save(key, _pack(found))
        return found


def _pack(found: Optimum) -> dict[str, NDArray[Any]]:
    return {
        "u": found.u,
        "starts": found.starts,
        "cost": np.array(found.cost),
        "history": np.array(found.history),
        "simulations": np.array(found.simulations),
        "message": np.array(found.message),
    }


def _unpack(kept: Mapping[str, NDArray[Any]]) -> Optimum:
    return Optimum(
        u=kept["u"],
        starts=kept["starts"],
        cost=float(kept["cost"]),
        history=tuple(kept["history"].tolist()),
        simulations=int(kept["simulations"]),
        message=str(kept["message"]),
    )
