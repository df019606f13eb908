"""The cost's slope in reverse mode: a few simulations, however many parameters there are.

Same residuals, weights, prior and loss as least squares sees; only the way differs. The derivative
of the cost by every residual is carried back to the measurement times, from there to the control
ticks, and through the world by its ``pullback``. Several points are one batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from sameworld.core.arrays import Array, Signals
from sameworld.core.residuals import Comparison, compare
from sameworld.core.signals import pull_difference, pull_lerp
from sameworld.core.values import Values
from sameworld.core.world import PullbackWorld
from sameworld.maths.projection import basis, left_inverse
from sameworld.maths.robust import loss_values, loss_weights
from sameworld.stages.identify.config import IdentifyConfig, Loss
from sameworld.stages.identify.derivatives import by_starts, linearise
from sameworld.stages.identify.problem import Block, Problem

__all__ = ["Frame", "Point", "Slope", "moved", "pulled", "settled", "slopes"]

_SETTLING = 3

#: Coordinates [P + extra] and starts [W, S_all].
Point = tuple[Array, Array]


@dataclass(frozen=True, kw_only=True, eq=False)
class Slope:
    """Cost at a point, and its derivative.

    Attributes:
        cost: Cost, prior included.
        u: Derivative by the coordinates [P + extra]; the total one, starts following, where they
            are found from the warm-up.
        starts: Derivative by the free start components [W, S]; zero where starts follow.
        blocks: Residuals there.
    """

    cost: float
    u: Array
    starts: Array
    blocks: list[Block]


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """What a linearisation by the starts alone says at one point.

    Attributes:
        blocks: Residuals and their derivatives by the start, per window.
        bases: Orthonormal bases of these derivatives [R, S].
        chords: Their left inverses [S, R].
    """

    blocks: list[Block]
    bases: list[Array]
    chords: list[Array]

    @classmethod
    def at(cls, problem: Problem, point: Point) -> Frame:
        """Linearise by the starts only, exactly."""
        blocks = linearise(replace(problem, bare=True, exact=True), *point)
        return cls(
            blocks=blocks,
            bases=[basis(b.start) for b in blocks],
            chords=[left_inverse(b.start) for b in blocks],
        )

    def projected(self, rows: Sequence[Array]) -> list[Array]:
        """Rows [R] per window with what starts absorb taken out."""
        return [r - q @ (q.T @ r) for r, q in zip(rows, self.bases, strict=True)]


def slopes(
    problem: Problem,
    points: Sequence[Point],
    config: IdentifyConfig,
    frames: Sequence[Frame] | None = None,
) -> list[Slope]:
    """Cost and its derivative at several points.

    Where starts are found from the warm-up they must belong to the coordinates (``settled``). With
    frames the slope is that with the starts eliminated (Kaufman's form): what they can absorb
    of the residuals is taken out before these are carried back.
    """
    blocks = list(problem.simulate_all(points))
    loss = config.loss if problem.warmup else "linear"
    pulls = [[_psi(b.residual, loss, config.threshold) for b in found] for found in blocks]
    if frames is not None:
        pulls = [f.projected(rows) for f, rows in zip(frames, pulls, strict=True)]
    back = pulled(problem, points, blocks, pulls)
    if problem.warmup:
        back = _following(problem, points, back)
    found: list[Slope] = []
    for (u, _), own, (by_u, by_start) in zip(points, blocks, back, strict=True):
        rows = np.concatenate([*(b.residual for b in own), _prior(problem, u)])
        cost = float(np.sum(loss_values(rows, loss, config.threshold)))
        by_u = by_u + _prior_slope(problem, u, loss, config.threshold)
        found.append(Slope(cost=cost, u=by_u, starts=by_start, blocks=own))
    return found


def pulled(
    problem: Problem,
    points: Sequence[Point],
    blocks: Sequence[Sequence[Block]],
    rows: Sequence[Sequence[Array]],
) -> list[tuple[Array, Array]]:
    """Weighted sums of the rows of Jacobians, by coordinates [P + extra] and by starts [W, S].

    Args:
        problem: The problem.
        points: Points K.
        blocks: Residuals there, per point and window.
        rows: Weights of the residuals, likewise [R].
    """
    ticks = problem.actions.shape[1]
    weights: list[Mapping[str, Array]] = []
    for found, wanted in zip(blocks, rows, strict=True):
        for w, (block, weight) in enumerate(zip(found, wanted, strict=True)):
            scales = [problem.scales.at(w, part) for part in block.parts]
            pull = weight * (not block.failed)
            weights.append(_on_ticks(problem, block.parts, scales, pull, ticks))
    back = _through(problem, points, weights, ticks)
    for k, wanted in enumerate(rows):
        for w, (window, weight) in enumerate(zip(problem.windows, wanted, strict=True)):
            gap, pull = problem.start_prior(window, points[k][1][w])
            if not problem.warmup and len(gap):
                back[k][1][w] += pull.T @ weight[-len(gap) :]
    return back


def settled(problem: Problem, points: Sequence[Point], steps: int = _SETTLING) -> list[Point]:
    """The points with starts that the warm-up rows demand; unchanged where starts are joint.

    Args:
        problem: The problem.
        points: Coordinates, and starts to begin from.
        steps: Gauss-Newton steps.
    """
    if not problem.warmup:
        return list(points)
    found: list[Point] = []
    for u, starts in points:
        for _ in range(steps):
            moves = [-left_inverse(j) @ r for r, j, _ in _heads(problem, u, starts)]
            starts = moved(problem, starts, np.stack(moves))
        found.append((u, starts))
    return found


def moved(problem: Problem, starts: Array, steps: Array) -> Array:
    """Starts [W, S_all] moved by steps [W, S] of their free components, inside the bounds."""
    spec = problem.world.spec.start
    free = [spec.index(n) for n in problem.start_names]
    found = starts.copy()
    found[:, free] += steps
    low, high = (np.array([getattr(p, end) for p in spec.parameters]) for end in ("low", "high"))
    return np.clip(found, low, high)


# ---- inside ----------------------------------------------------------------------------------


def _psi(residual: Array, loss: Loss, threshold: float) -> Array:
    return loss_weights(residual, loss, threshold) ** 2 * residual


def _on_ticks(
    problem: Problem,
    parts: Sequence[Comparison],
    scales: Sequence[Array | float],
    rows: Array,
    ticks: int,
) -> dict[str, Array]:
    """Weights of residuals [R] as weights of the tangents on control ticks [T+1, D]."""
    found: dict[str, Array] = {}
    at = 0
    for part, scale in zip(parts, scales, strict=True):
        error = np.nan_to_num(part.error)
        own = rows[at : at + error.size].reshape(error.shape) / scale
        at += error.size
        tangents = pull_difference(part.channel, error, own)
        period = problem.world.spec.period
        found[part.channel.name] = pull_lerp(period, ticks + 1, tangents, part.time)
    return found


def _through(
    problem: Problem, points: Sequence[Point], weights: Sequence[Mapping[str, Array]], ticks: int
) -> list[tuple[Array, Array]]:
    """Carry weights of signals, per point and window, back through the world."""
    world, count = cast(PullbackWorld, problem.world), len(problem.windows)
    names = world.spec.start.names
    stacked = {
        c.name: np.stack([w.get(c.name, np.zeros((ticks + 1, c.tangent))) for w in weights])
        for c in world.spec.observations
    }
    back = world.pullback(
        Values(names=names, array=np.concatenate([starts for _, starts in points])),
        np.concatenate([problem.actions[:, :ticks]] * len(points)),
        stacked,
        Values.stack([problem.values(u).broadcast(count) for u, _ in points]),
        wrt=problem.names,
        seed=problem.seed,
    )
    columns = [world.parameters.names.index(n) for n in problem.names]
    free = [names.index(n) for n in problem.start_names]
    by_value = np.nan_to_num(back.parameters[:, columns])
    by_start = np.nan_to_num(back.starts[:, free])
    found: list[tuple[Array, Array]] = []
    for k, (u, _) in enumerate(points):
        total = np.zeros(len(problem.names) + problem.sessions.extra)
        for w in range(count):
            local = by_value[k * count + w] * problem.stretch(u, w)
            total += problem.sessions.lifted(local[None], w)[0]
        found.append((total, by_start[k * count : (k + 1) * count].copy()))
    return found


def _heads(
    problem: Problem, u: Array, starts: Array
) -> list[tuple[Array, Array, tuple[Comparison, ...]]]:
    """Warm-up residuals, their derivatives by the start, and comparisons, per window."""
    found: list[tuple[Array, Array, tuple[Comparison, ...]]] = []
    runs = by_starts(problem, u, starts, problem.warmup_ticks())
    for w, (signals, own) in enumerate(runs):
        head = problem.head(w, signals, own, starts[w])
        found.append((head.residual, head.start, _warmup_rows(problem, w, signals)))
    return found


def _warmup_rows(problem: Problem, w: int, signals: Signals) -> tuple[Comparison, ...]:
    rows = slice(0, problem.warmup)
    return tuple(compare(problem.world.spec, problem.windows[w].piece, signals, rows=rows))


def _following(
    problem: Problem, points: Sequence[Point], back: Sequence[tuple[Array, Array]]
) -> list[tuple[Array, Array]]:
    """Total derivatives: the starts follow the coordinates as the warm-up rows demand."""
    ticks, weights = problem.warmup_ticks(), list[Mapping[str, Array]]()
    for (u, starts), (_, by_start) in zip(points, back, strict=True):
        for (_, slope, parts), pull in zip(_heads(problem, u, starts), by_start, strict=True):
            scales = [problem.scales.noise[part.channel.name] for part in parts]
            rows = -left_inverse(slope).T @ pull
            weights.append(_on_ticks(problem, parts, scales, rows, ticks))
    extra = _through(problem, points, weights, ticks)
    return [
        (by_u + more, np.zeros_like(by_start))
        for (by_u, by_start), (more, _) in zip(back, extra, strict=True)
    ]


def _prior(problem: Problem, u: Array) -> Array:
    size = len(problem.names)
    finite = np.isfinite(problem.prior_std)
    gap = (u[:size] - problem.prior_mean) / problem.prior_std
    return np.concatenate([gap[finite], u[size:]])


def _prior_slope(problem: Problem, u: Array, loss: Loss, threshold: float) -> Array:
    size = len(problem.names)
    gap = (u[:size] - problem.prior_mean) / problem.prior_std  # 0 where there is no prior
    pull = _psi(np.append(gap, u[size:]), loss, threshold)
    return pull / np.append(problem.prior_std, np.ones(len(u) - size))
