"""Starts eliminated from the problem: the optimiser sees the parameters only.

Variable projection in Kaufman's form. At each Jacobian the start columns of every episode are
projected out by an orthogonal basis; between Jacobians the starts follow the parameters along
their linear prediction plus chord corrections, each kept only where it lowers an episode's cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array
from sameworld.maths.projection import basis, solve_columns
from sameworld.stages.identify.problem import Block, Problem

__all__ = ["Eliminated", "Linear"]

_CORRECTIONS = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Linear:
    """A linearisation with the starts projected out.

    Attributes:
        u: Coordinates [P].
        starts: Starts [W, S_all].
        blocks: Blocks per window, with derivatives.
        projected: Projected parameter Jacobian per window [R, P].
        residual: Projected residual per window [R].
    """

    u: Array
    starts: Array
    blocks: list[Block]
    projected: list[Array]
    residual: list[Array]

    @property
    def jacobian(self) -> Array:
        """Projected Jacobian of all windows, stacked."""
        return np.concatenate(self.projected)

    @classmethod
    def at(cls, problem: Problem, u: Array, starts: Array) -> Linear:
        """Linearise the problem at a point."""
        blocks = problem.linearise(u, starts)
        projected: list[Array] = []
        residual: list[Array] = []
        for block in blocks:
            q = basis(block.start)
            projected.append(block.theta - q @ (q.T @ block.theta))
            residual.append(block.residual - q @ (q.T @ block.residual))
        return cls(u=u, starts=starts, blocks=blocks, projected=projected, residual=residual)


class Eliminated:
    """Residuals and Jacobian as scipy wants them, with starts that follow.

    Not thread-safe: it remembers the last linearisation and the starts found at visited points.
    """

    def __init__(self, problem: Problem, u: Array, starts: Array) -> None:
        self.problem = problem
        self._free = [problem.world.spec.start.index(n) for n in problem.start_names]
        spec = problem.world.spec.start
        self._low = np.array([p.low for p in spec.parameters])
        self._high = np.array([p.high for p in spec.parameters])
        self._visited: dict[bytes, tuple[Array, list[Block]]] = {}
        self.simulations = 0
        self.history: list[float] = []
        self._reference = self._linearise(u, starts)

    # ---- scipy's view ----------------------------------------------------------------------

    def residual(self, u: Array) -> Array:
        """Residuals of all windows and the prior at coordinates ``u`` [P]."""
        _, blocks = self._follow(u)
        return np.concatenate([*(b.residual for b in blocks), self._prior(u)])

    def jacobian(self, u: Array) -> Array:
        """Projected Jacobian at ``u``; becomes the reference of the starts."""
        starts, blocks = self._follow(u)
        if not np.array_equal(u, self._reference.u):
            self._reference = self._linearise(u, starts)
        self.history.append(sum(b.cost for b in blocks))
        finite = np.isfinite(self.problem.prior_std)
        rows = np.diag(1 / np.where(finite, self.problem.prior_std, 1.0))[finite]
        return np.concatenate([*self._reference.projected, rows])

    def starts(self, u: Array) -> Array:
        """Starts that belong to ``u`` [W, S_all]."""
        return self._follow(u)[0]

    # ---- inside ----------------------------------------------------------------------------

    def _prior(self, u: Array) -> Array:
        finite = np.isfinite(self.problem.prior_std)
        return ((u - self.problem.prior_mean) / self.problem.prior_std)[finite]

    def _linearise(self, u: Array, starts: Array) -> Linear:
        linear = Linear.at(self.problem, u, starts)
        inputs = len(self.problem.names) + len(self.problem.start_names)
        self.simulations += (1 + 2 * inputs) * len(self.problem.windows)
        self._pulls = [
            solve_columns(b.start, np.column_stack([b.residual, b.theta])) for b in linear.blocks
        ]
        self._chords = [_pinv(b.start) for b in linear.blocks]
        return linear

    def _simulate(self, u: Array, starts: Array) -> list[Block]:
        self.simulations += len(starts)
        return self.problem.simulate(u, starts)

    def _follow(self, u: Array) -> tuple[Array, list[Block]]:
        key = np.ascontiguousarray(u).tobytes()
        if key not in self._visited:
            self._visited[key] = self._adapt(u)
        return self._visited[key]

    def _adapt(self, u: Array) -> tuple[Array, list[Block]]:
        """Starts at ``u``: the best of staying, the linear prediction and chord corrections."""
        move = np.concatenate([[1.0], u - self._reference.u])
        starts = self._reference.starts
        blocks = self._simulate(u, starts)
        steps = np.stack([-pull @ move for pull in self._pulls])
        for _ in range(1 + _CORRECTIONS):
            trial = self._moved(starts, steps)
            tried = self._simulate(u, trial)
            better = np.array([t.cost < b.cost for t, b in zip(tried, blocks, strict=True)])
            gain = sum(
                b.cost - t.cost for t, b in zip(tried, blocks, strict=True) if t.cost < b.cost
            )
            starts = np.where(better[:, None], trial, starts)
            blocks = [t if ok else b for t, b, ok in zip(tried, blocks, better, strict=True)]
            if gain <= 1e-4 * sum(b.cost for b in blocks):
                break
            steps = np.stack(
                [-chord @ b.residual for chord, b in zip(self._chords, blocks, strict=True)]
            )
        return starts, blocks

    def _moved(self, starts: Array, steps: Array) -> Array:
        moved = starts.copy()
        moved[:, self._free] += steps
        return np.clip(moved, self._low, self._high)


def _pinv(columns: Array) -> Array:
    if columns.shape[1] == 0:
        return np.zeros((0, len(columns)))
    return solve_columns(columns, np.eye(len(columns)))
