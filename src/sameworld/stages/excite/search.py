"""The search for coefficients: random motions screened, the best of them improved.

Sources: T. M. Ragonneau, "Model-based derivative-free optimization methods and software" (2022,
thesis, Hong Kong Polytechnic University), for COBYQA, by scipy; N. Hansen, A. Ostermeier,
"Completely derandomized self-adaptation in evolution strategies", Evolutionary Computation 9
(2001), by the ``cma`` package.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.stats import norm, qmc

from sameworld.core.arrays import Array
from sameworld.core.errors import FitError, MissingExtraError
from sameworld.core.progress import Progress, Report
from sameworld.stages.excite.config import ExciteConfig
from sameworld.stages.excite.information import Experiment, score
from sameworld.stages.excite.limits import violations
from sameworld.stages.excite.paths import Paths
from sameworld.stages.excite.shrink import Keeper

__all__ = ["Found", "Search", "random_coefficients"]

_PENALTY = 100.0
_FAILED = 1e6
_SIGMA, _RADIUS = 0.3, 0.5


class _Spent(Exception):
    """Every evaluation was used."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """What a search ended with.

    Attributes:
        coefficients: Coefficients [J, M], bounds kept.
        screened: Criterion of the random candidates that keep to the limits.
        trace: Best criterion after each improving simulation.
    """

    coefficients: Array
    screened: tuple[float, ...]
    trace: tuple[float, ...]


def random_coefficients(paths: Paths, count: int, seed: int) -> Array:
    """Random coefficients [count, J, M], scrambled Sobol points made normal, bounds kept."""
    joints, size = paths.shape
    sampler = qmc.Sobol(d=joints * size, scramble=True, rng=np.random.default_rng(seed))
    points = sampler.random_base2(int(np.ceil(np.log2(max(count, 2)))))[:count]
    normal = np.asarray(norm.ppf(np.clip(points, 1e-6, 1 - 1e-6)), dtype=np.float64)
    return paths.fitted(normal.reshape(count, joints, size))


@dataclass(kw_only=True, eq=False)
class Search:
    """One motion's search; counts what it simulates.

    Attributes:
        asked: What is asked; its prior holds what the motions before say.
        paths: The family of motions.
        keeper: Keeps motions to their limits.
        config: Options.
        seed: Seed of this motion.
        report: Receives progress.
        rollouts: Trajectories simulated so far.
    """

    asked: Experiment
    paths: Paths
    keeper: Keeper
    config: ExciteConfig
    seed: int
    report: Report
    rollouts: int = 0
    trace: list[float] = field(default_factory=list[float])
    best: tuple[float, Array] = field(default=(np.inf, np.zeros(0)))

    def run(self) -> Found:
        """Screen random motions and improve the best; limits are penalties here."""
        tried = random_coefficients(self.paths, self.config.candidates, self.seed)
        values, passed = self._judge(tried, "screening")
        order = np.argsort(values, kind="stable")
        self.best = (float(values[order[0]]), tried[order[0]])
        if self.config.search != "none" and self.config.evaluations:
            chosen = order[: self.config.polished]
            share = max(self.config.evaluations // len(chosen), 1)
            for turn, row in enumerate(chosen):
                self._improve(tried[row], share, turn)
        kept = tuple(values[passed == 0].tolist())
        best, spent = self.keeper.eased(self.best[1][None])
        self.rollouts += spent
        return Found(coefficients=best[0], screened=kept, trace=tuple(self.trace))

    def objective(self, coefficients: Array) -> Array:
        """Criterion plus penalties [B] of coefficients [B, J, M]."""
        return self._values(coefficients)[0]

    def _values(self, coefficients: Array) -> tuple[Array, Array]:
        eased, easing = self.keeper.eased(coefficients)
        actions = self.paths.commands(eased)
        result, added, _, spent = self.asked.information(self.paths.start, actions)
        self.rollouts += spent + easing
        passed = violations(self.paths.world.spec, self.keeper.bounds, result)
        value = score(self.asked.prior + added, self.asked.wanted, self.config.criterion)
        value = np.where(np.isfinite(passed), value + _PENALTY * np.minimum(passed, 100), _FAILED)
        return value, passed

    def _judge(self, tried: Array, stage: str) -> tuple[Array, Array]:
        """Objective and violations of many candidates, in batches that fit the memory."""
        size = self.asked.chunk(len(self.paths.time))
        values: list[Array] = []
        passed: list[Array] = []
        for at in range(0, len(tried), size):
            self.report(Progress(stage=stage, done=at, total=len(tried)))
            value, over = self._values(tried[at : at + size])
            values.append(value)
            passed.append(over)
        return np.concatenate(values), np.concatenate(passed)

    # ---- improvement -----------------------------------------------------------------------

    def _improve(self, start: Array, budget: int, turn: int) -> None:
        done = len(self.trace)
        if self.config.search == "cma":
            self._by_cma(start, done + budget, turn)
        else:
            self._by_cobyqa(start, done + budget)

    def _remember(self, tried: Array, values: Array) -> None:
        for value, row in zip(values.tolist(), tried, strict=True):
            if value < self.best[0]:
                self.best = (value, row.copy())
            self.trace.append(self.best[0])
        total = self.config.evaluations
        message = f"criterion {self.best[0]:.4g}"
        done = min(len(self.trace), total)
        self.report(Progress(stage="improving", done=done, total=total, message=message))

    def _by_cobyqa(self, start: Array, until: int) -> None:
        def cost(x: Array) -> float:
            if len(self.trace) >= until:
                raise _Spent
            tried = x.reshape(1, *self.paths.shape)
            values = self.objective(tried)
            self._remember(tried, values)
            return float(values[0])

        options: Any = {"initial_tr_radius": _RADIUS, "maxfev": 10 * until, "final_tr_radius": 1e-3}
        try:
            minimize(cost, start.reshape(-1), method="COBYQA", options=options)
        except _Spent:
            return

    def _by_cma(self, start: Array, until: int, turn: int) -> None:
        try:
            module: Any = import_module("cma")
        except ImportError as cause:
            raise MissingExtraError("cma", "global") from cause
        if start.size < 2:
            raise FitError("CMA-ES needs at least two coefficients. Use search='cobyqa'.")
        options = {"seed": 1 + 2 * self.seed + turn, "maxfevals": until, "verbose": -9}
        strategy = module.CMAEvolutionStrategy(start.reshape(-1).tolist(), _SIGMA, options)
        while not strategy.stop() and len(self.trace) < until:
            points = strategy.ask()[: until - len(self.trace)]
            tried = np.array(points).reshape(-1, *self.paths.shape)
            values, _ = self._judge(tried, "improving")
            self._remember(tried, values)
            if len(points) < strategy.popsize:
                return
            strategy.tell(points, values.tolist())
