"""Descent by reverse-mode slopes: for more parameters than a Jacobian should have columns.

``adam`` moves several points at once, one batch per step; starts follow by chord corrections and
are projected out of the slope. ``lbfgs`` polishes one point over parameters and starts together,
in coordinates whitened by what is known of the curvature: the start's own block exactly, the
parameters' diagonal by random pulls.

Source: D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015; R. H. Byrd,
P. Lu, J. Nocedal, C. Zhu, "A limited memory algorithm for bound constrained optimization", SIAM J.
Sci. Comput. 16 (1995); C. Bekas, E. Kokiopoulou, Y. Saad, "An estimator for the diagonal of a
matrix", Applied Numerical Mathematics 57 (2007).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.optimize import minimize

from sameworld.core.arrays import Array
from sameworld.stages.identify.config import IdentifyConfig
from sameworld.stages.identify.optimum import Optimum
from sameworld.stages.identify.problem import Problem
from sameworld.stages.identify.reverse import Frame, Point, Slope, moved, pulled, settled, slopes

__all__ = ["adam", "lbfgs"]

#: Random pulls that estimate the diagonal of the curvature.
_PULLS = 4
#: Largest step of Adam in coordinates, its decay rates, and the share of steps that cool down.
_STEP, _DECAY = 0.05, (0.9, 0.99)
#: Pairs that L-BFGS remembers.
_MEMORY = 30
#: Trajectories that one slope counts as: the simulation and its way back.
_SPENT = 2


# ---- Adam ------------------------------------------------------------------------------------


def adam(
    problem: Problem,
    points: Sequence[Array],
    starts: Array,
    config: IdentifyConfig,
    tick: Callable[[int], None] | None = None,
) -> list[Optimum]:
    """Descend from several points at once.

    Args:
        problem: The problem.
        points: Coordinates [P + extra] of each.
        starts: Starts to begin from [W, S_all].
        config: Options; ``config.slopes`` steps.
        tick: Hears the number of steps so far.

    Returns:
        The best point that each descent met.
    """
    low, high = _bounds(problem, len(points[0]))
    here: list[Point] = [(np.clip(u, low, high), starts) for u in points]
    frames = None if problem.warmup else [Frame.at(problem, point) for point in here]
    shape = (len(points), len(points[0]))
    first, second = np.zeros(shape), np.zeros(shape)
    best, history = list[tuple[float, Point]](), [list[float]() for _ in points]
    for step in range(config.slopes):
        if tick is not None:
            tick(step)
        here = settled(problem, here, steps=1)
        found = slopes(problem, here, config, frames)
        costs = [slope.cost for slope in found]
        best = _better(best, costs, here)
        for known, cost in zip(history, costs, strict=True):
            known.append(cost)
        slope = np.stack([slope.u for slope in found])
        first = _DECAY[0] * first + (1 - _DECAY[0]) * slope
        second = _DECAY[1] * second + (1 - _DECAY[1]) * slope**2
        mean = first / (1 - _DECAY[0] ** (step + 1))
        size = np.sqrt(second / (1 - _DECAY[1] ** (step + 1)))
        rate = 0.5 * _STEP * (1 + np.cos(np.pi * step / config.slopes))
        move = -rate * mean / np.maximum(size, 1e-300)
        if frames is not None:
            here = _chased(problem, here, frames, found)
        here = [
            (np.clip(u + m, low, high), begun) for (u, begun), m in zip(here, move, strict=True)
        ]
    return [
        _optimum(problem, point, cost, known, f"Adam took {config.slopes} steps.")
        for (cost, point), known in zip(best, history, strict=True)
    ]


def _chased(
    problem: Problem, here: Sequence[Point], frames: Sequence[Frame], found: Sequence[Slope]
) -> list[Point]:
    """Points whose starts made one chord correction; those that failed stay."""
    moves: list[Point] = []
    for (u, starts), frame, slope in zip(here, frames, found, strict=True):
        steps = [
            -chord @ (b.residual * (not b.failed))
            for chord, b in zip(frame.chords, slope.blocks, strict=True)
        ]
        moves.append((u, moved(problem, starts, np.stack(steps))))
    return moves


def _better(
    best: list[tuple[float, Point]], costs: Sequence[float], here: Sequence[Point]
) -> list[tuple[float, Point]]:
    if not best:
        return list(zip(costs, here, strict=True))
    pairs = zip(best, costs, here, strict=True)
    return [(cost, point) if cost < old[0] else old for old, cost, point in pairs]


# ---- L-BFGS ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class _Whitened:
    """Coordinates in which the curvature is near one.

    Attributes:
        problem: The problem.
        centre: The point at zero.
        width: Units of the coordinates [P + extra].
        roots: Units of the starts per window [S, S]; empty where starts follow.
    """

    problem: Problem
    centre: Point
    width: Array
    roots: list[Array]

    @classmethod
    def at(cls, problem: Problem, point: Point, seed: int) -> _Whitened:
        frame = None if problem.warmup else Frame.at(problem, point)
        return cls(
            problem=problem,
            centre=point,
            width=_widths(problem, point, frame, seed),
            roots=[] if frame is None else [_root(b.start) for b in frame.blocks],
        )

    def point(self, x: Array) -> Point:
        size = len(self.width)
        u = self.centre[0] + self.width * x[:size]
        if not self.roots:
            return u, self.centre[1]
        steps = x[size:].reshape(len(self.roots), -1)
        moves = [root @ step for root, step in zip(self.roots, steps, strict=True)]
        return u, moved(self.problem, self.centre[1], np.stack(moves))

    def slope(self, found: Slope) -> Array:
        by_start = [
            root.T @ pull for root, pull in zip(self.roots, found.starts, strict=bool(self.roots))
        ]
        return np.concatenate([self.width * found.u, *by_start])

    def bounds(self) -> list[tuple[float, float]]:
        low, high = _bounds(self.problem, len(self.width))
        ends = [(b - self.centre[0]) / self.width for b in (low, high)]
        loose = [(-np.inf, np.inf)] * sum(len(root) for root in self.roots)
        return [*zip(ends[0].tolist(), ends[1].tolist(), strict=True), *loose]


def _widths(problem: Problem, point: Point, frame: Frame | None, seed: int) -> Array:
    """Inverse roots of the diagonal of the curvature [P + extra], by random pulls."""
    rng = np.random.default_rng([seed, 17])
    blocks = problem.simulate(*point) if frame is None else frame.blocks
    power = np.zeros(len(point[0]))
    for _ in range(_PULLS):
        rows = [rng.choice([-1.0, 1.0], size=len(b.residual)) for b in blocks]
        rows = rows if frame is None else frame.projected(rows)
        power += pulled(problem, [point], [blocks], [rows])[0][0] ** 2 / _PULLS
    prior = np.append(problem.prior_std, np.ones(len(power) - len(problem.prior_std)))
    power += prior**-2.0
    return np.where(power > 0, power, 1.0) ** -0.5


def _root(slope: Array) -> Array:
    """Root R [S, S] of the inverse of a Gauss-Newton block, R R'; unit where nothing is seen."""
    gram = slope.T @ slope
    scale = np.sqrt(np.where(np.diag(gram) > 0, np.diag(gram), 1.0))
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    return vectors / np.sqrt(np.maximum(values, 1e-6)) / scale[:, None]


def lbfgs(
    problem: Problem,
    u: Array,
    starts: Array,
    config: IdentifyConfig,
    tick: Callable[[int], None] | None = None,
) -> Optimum:
    """Descend from one point by L-BFGS-B over whitened coordinates and starts.

    Args:
        problem: The problem.
        u: Coordinates [P + extra].
        starts: Starts [W, S_all].
        config: Options; at most ``config.slopes`` slopes.
        tick: Hears the number of slopes so far.
    """
    low, high = _bounds(problem, len(u))
    centre = settled(problem, [(np.clip(u, low, high), starts)])[0]
    frame = _Whitened.at(problem, centre, config.seed)
    history, known = list[float](), dict[bytes, Point]()

    def objective(x: Array) -> tuple[float, Array]:
        if tick is not None:
            tick(len(history))
        u, begun = frame.point(x)
        last = next(reversed(known.values()), centre)[1] if problem.warmup else begun
        point = known[x.tobytes()] = settled(problem, [(u, last)])[0]
        found = slopes(problem, [point], config)[0]
        history.append(found.cost)
        return found.cost, frame.slope(found)

    size = len(frame.width) + sum(len(root) for root in frame.roots)
    solution = cast(
        Any,
        minimize(
            objective,
            np.zeros(size),
            jac=True,
            method="L-BFGS-B",
            bounds=frame.bounds(),
            options={
                "maxfun": config.slopes,
                "maxiter": config.slopes,
                "maxcor": _MEMORY,
                "ftol": 1e-3 * config.tolerance,
                "gtol": 1e-10,
                "maxls": 30,
            },
        ),
    )
    best = np.asarray(solution.x, dtype=np.float64)
    point = known.get(best.tobytes()) or frame.point(best)
    message = f"L-BFGS: {str(solution.message).lower()}"
    return _optimum(problem, point, float(solution.fun), history, message)


# ---- both ------------------------------------------------------------------------------------


def _bounds(problem: Problem, size: int) -> tuple[Array, Array]:
    """Bounds of the coordinates [P + extra]."""
    loose = np.full(size - len(problem.names), np.inf)
    low, high = problem.transform.bounds
    return np.append(low, -loose), np.append(high, loose)


def _optimum(
    problem: Problem, point: Point, cost: float, history: Sequence[float], message: str
) -> Optimum:
    return Optimum(
        u=point[0],
        starts=point[1],
        cost=cost,
        history=(*history, cost),
        simulations=_SPENT * len(history) * len(problem.windows),
        message=message,
    )
