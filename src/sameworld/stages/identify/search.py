"""The search: grow the horizon from the given values, then try other starting points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.checkpoint import Checkpoint
from sameworld.core.progress import Progress, Report
from sameworld.maths.robust import mad_scale
from sameworld.stages.identify.config import IdentifyConfig
from sameworld.stages.identify.descend import adam
from sameworld.stages.identify.optimum import Optimum
from sameworld.stages.identify.problem import Problem
from sameworld.stages.identify.result import SearchStart
from sameworld.stages.identify.solve import chosen_optimiser, optimise, proposals, search_by_cma

__all__ = ["Memory", "Polished", "Search", "ticking"]

_SHARE = 0.25
_SHORTEST = 20
_EXPLAINED = 1.3


@dataclass(frozen=True, kw_only=True, eq=False)
class Polished:
    """One optimisation and its row in the multi-start table."""

    optimum: Optimum
    row: SearchStart


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """Where to begin, and when to stop beginning.

    Attributes:
        problem: The problem, scaled at the given point.
        starts: Starts found there [W, S_all].
        config: Options.
        memory: Keeps finished optimisations.
        report: Receives progress.
        label: Stage that progress belongs to.
    """

    problem: Problem
    starts: Array
    config: IdentifyConfig
    memory: Memory
    report: Report
    label: str

    def run(self) -> list[Polished]:
        """Polish the given values; unless they explain the data to the noise, others too."""
        points = proposals(self.problem, self.config)
        if chosen_optimiser(self.problem, self.config) != "least_squares":
            return self._descended(points)
        found = [self._grown(points[0])]
        if len(points) == 1 or self._explained(found[0].optimum):
            return found
        costs = [self._cost(k, point, len(points)) for k, point in enumerate(points)]
        if self.config.search == "cma":
            best = search_by_cma(self.problem, self.starts, self.config)
            points, costs = np.concatenate([points, best[None]]), [*costs, -np.inf]
        order = [int(k) for k in np.argsort(costs) if k != 0][: self.config.polished]
        for turn, k in enumerate(order):
            tick = ticking(self.report, self.label, self.config, 1 + turn, 1 + len(order))
            found.append(self.polish(points[k], costs[k], f"search{1 + turn}", tick))
        return found

    def _descended(self, points: Array) -> list[Polished]:
        """Descend from the given values; unless they explain the data, from others as one batch."""
        found = [self.polish(points[0], np.nan, "search0")]
        if len(points) == 1 or self._explained(found[0].optimum):
            return found
        costs = [self._cost(k, point, len(points)) for k, point in enumerate(points)]
        order = [int(k) for k in np.argsort(costs) if k != 0][: self.config.polished]
        tick = ticking(self.report, self.label, self.config, 1, 2)
        batch = cache(
            lambda: adam(self.problem, [points[k] for k in order], self.starts, self.config, tick)
        )
        for turn, k in enumerate(order):
            optimum = self.memory.optimum(f"search{1 + turn}", lambda turn=turn: batch()[turn])
            found.append(self._row(points[k], costs[k], optimum))
        best = min(found, key=lambda row: row.optimum.cost)
        if best is not found[0] and self.config.optimiser != "adam":
            found.append(self.polish(best.optimum.u, best.optimum.cost, "polished"))
        return found

    def polish(
        self, point: Array, screened: float, name: str, tick: Callable[[int], None] | None = None
    ) -> Polished:
        """Optimise from a point [P]."""
        heard = ticking(self.report, self.label, self.config) if tick is None else tick
        work = partial(optimise, self.problem, point, self.starts, self.config, heard)
        return self._row(point, screened, self.memory.optimum(name, work))

    def _grown(self, point: Array) -> Polished:
        """Fit the first quarter of every window, then all of it: wrong minima are long ones."""
        tick = ticking(self.report, self.label, self.config, 0, 1 + self.config.polished)
        short = _shortened(self.problem)
        begin = point
        if short is not None:
            loose = replace(self.config, tolerance=1e-3, evaluations=8)
            work = partial(optimise, short, point, self.starts, loose)
            begin = self.memory.optimum("grow", work).u
        work = partial(optimise, self.problem, begin, self.starts, self.config, tick)
        return self._row(point, np.nan, self.memory.optimum("search0", work))

    def _cost(self, k: int, point: Array, total: int) -> float:
        self.report(Progress(stage="screening", done=k, total=total, message=""))
        return self.problem.cost(point, self.starts)

    def _explained(self, found: Optimum) -> bool:
        """Whether every channel's residuals have come down to its noise."""
        parts = [p for b in self.problem.simulate(found.u, found.starts) for p in b.parts]
        for name, noise in self.problem.scales.noise.items():
            errors = [p.error.reshape(-1) for p in parts if p.channel.name == name]
            size = mad_scale(np.concatenate(errors)) if errors else 0.0
            if not size <= _EXPLAINED * noise:  # NaN where a simulation failed
                return False
        return True

    def _row(self, point: Array, screened: float, found: Optimum) -> Polished:
        values = self.problem.transform.backward(point)
        named = {n: float(v) for n, v in zip(self.problem.names, values, strict=True)}
        row = SearchStart(values=named, screened=screened, cost=found.cost, message=found.message)
        return Polished(optimum=found, row=row)


def ticking(
    report: Report, stage: str, config: IdentifyConfig, turn: int = 0, turns: int = 1
) -> Callable[[int], None]:
    """What ``optimise`` calls to report how far optimisation ``turn`` of ``turns`` is, at worst."""
    descends = config.optimiser in ("lbfgs", "adam")
    each = config.slopes if descends else config.evaluations

    def tick(done: int) -> None:
        finished = turn * each + min(done, each)
        message = f"start {turn + 1} of {turns}" if turns > 1 else ""
        report(Progress(stage=stage, done=finished, total=turns * each, message=message))

    return tick


def _shortened(problem: Problem) -> Problem | None:
    """The first quarter of every window; ``None`` where that is too short or starts are short."""
    rows = int(_SHARE * min(len(c) for w in problem.windows for c in w.piece.observations))
    if problem.warmup or rows < _SHORTEST:
        return None
    windows = tuple(
        replace(w, piece=w.piece.window(w.piece.begin, w.piece.begin + _SHARE * span))
        for w in problem.windows
        for span in [w.piece.end - w.piece.begin]
    )
    ticks = int(np.ceil(_SHARE * problem.actions.shape[1])) + 1
    return replace(problem, windows=windows, actions=problem.actions[:, :ticks])


class Memory:
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
