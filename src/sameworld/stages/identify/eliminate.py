"""Starts eliminated from the problem: the optimiser sees the parameters only.

Variable projection in Kaufman's form. At each Jacobian the start columns of every window are
projected out by an orthogonal basis; between Jacobians the starts follow the parameters along
their linear prediction plus chord corrections, each kept only where it lowers a window's cost.

Where predictions are chaotic the starts come from the warm-up rows instead, as they will when the
fitted world predicts: jointly estimated starts would absorb what the contact model gets wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array
from sameworld.maths.projection import basis, left_inverse, project_out, solve_columns
from sameworld.stages.identify.derivatives import linearise
from sameworld.stages.identify.problem import Block, Problem

__all__ = ["Eliminated", "Linear"]

_CORRECTIONS = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Linear:
    """A linearisation with the starts eliminated.

    Attributes:
        u: Coordinates [P], followed by those of sessions.
        starts: Starts [W, S_all].
        blocks: Blocks per window, with derivatives.
        projected: Total parameter derivative per window [R, P], starts following.
        residual: Residual per window [R], what starts can absorb taken out.
        bread: Curvature-weighted information per window [P, P].
    """

    u: Array
    starts: Array
    blocks: list[Block]
    projected: list[Array]
    residual: list[Array]
    bread: list[Array]

    @property
    def jacobian(self) -> Array:
        """Projected Jacobian of all windows, stacked."""
        return np.concatenate(self.projected)

    @classmethod
    def at(cls, problem: Problem, u: Array, starts: Array) -> Linear:
        """Linearise the problem at a point."""
        blocks = linearise(problem, u, starts)
        follow = _following if problem.warmup else _projecting
        parts = [follow(block) for block in blocks]
        return cls(
            u=u,
            starts=starts,
            blocks=blocks,
            projected=[p[0] for p in parts],
            residual=[p[1] for p in parts],
            bread=[p[2] for p in parts],
        )


def _projecting(block: Block) -> tuple[Array, Array, Array]:
    """Starts estimated from the same residuals: their columns are projected out."""
    q = basis(block.start)
    projected = block.theta - q @ (q.T @ block.theta)
    root = np.sqrt(block.curvature)[:, None]
    curved = project_out(root * block.start, root * block.theta)
    return projected, block.residual - q @ (q.T @ block.residual), curved.T @ curved


def _following(block: Block) -> tuple[Array, Array, Array]:
    """Starts found from the warm-up rows: they move with the parameters as those rows demand."""
    total = block.theta
    return total, block.residual, total.T @ (block.curvature[:, None] * total)


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

    @property
    def reference(self) -> Linear:
        """The linearisation that starts follow."""
        return self._reference

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
        size, extra = len(finite), self.problem.sessions.extra
        rows = np.zeros((int(finite.sum()) + extra, size + extra))
        rows[: len(rows) - extra, :size] = np.diag(
            1 / np.where(finite, self.problem.prior_std, 1.0)
        )[finite]
        rows[len(rows) - extra :, size:] = np.eye(extra)
        lifted = [
            self.problem.sessions.lifted(p, w) for w, p in enumerate(self._reference.projected)
        ]
        return np.concatenate([*lifted, rows])

    def starts(self, u: Array) -> Array:
        """Starts that belong to ``u`` [W, S_all]."""
        return self._follow(u)[0]

    # ---- inside ----------------------------------------------------------------------------

    def _prior(self, u: Array) -> Array:
        finite, size = np.isfinite(self.problem.prior_std), len(self.problem.names)
        gap = (u[:size] - self.problem.prior_mean) / self.problem.prior_std
        return np.concatenate([gap[finite], u[size:]])

    def _linearise(self, u: Array, starts: Array) -> Linear:
        linear = Linear.at(self.problem, u, starts)
        self.simulations += self._trajectories() * len(self.problem.windows)
        sources = [b.head if self.problem.warmup else b for b in linear.blocks]
        self._pulls = [
            solve_columns(s.start, np.column_stack([s.residual, s.theta])) for s in sources
        ]
        self._chords = [left_inverse(s.start) for s in sources]
        return linear

    def _trajectories(self) -> int:
        """Trajectories per window of one linearisation; an exact derivative counts as one."""
        if self.problem.exact:
            return 2
        inputs = len(self.problem.names)
        if not self.problem.warmup:
            inputs += len(self.problem.start_names)
        return 1 + 2 * inputs

    def _simulate(self, u: Array, starts: Array) -> list[Block]:
        self.simulations += len(starts)
        return self.problem.simulate(u, starts)

    def _follow(self, u: Array) -> tuple[Array, list[Block]]:
        key = np.ascontiguousarray(u).tobytes()
        if key not in self._visited:
            adapt = self._track if self.problem.warmup else self._adapt
            self._visited[key] = adapt(u)
        return self._visited[key]

    def _predicted(self, u: Array) -> Array:
        """Start steps [W, S] that the reference linearisation predicts at ``u``."""
        local = self.problem.sessions.local
        moves = np.atleast_2d(local(u) - local(self._reference.u))
        moves = np.broadcast_to(moves, (len(self._pulls), moves.shape[1]))
        return np.stack(
            [-pull[:, 0] - pull[:, 1:] @ m for pull, m in zip(self._pulls, moves, strict=True)]
        )

    def _track(self, u: Array) -> tuple[Array, list[Block]]:
        """Starts from the warm-up rows at ``u``: linear prediction and chord corrections."""
        starts = self._moved(self._reference.starts, self._predicted(u))
        for _ in range(_CORRECTIONS):
            heads = self.problem.heads(u, starts)
            steps = [-c @ h.residual for c, h in zip(self._chords, heads, strict=True)]
            starts = self._moved(starts, np.stack(steps))
        return starts, self._simulate(u, starts)

    def _adapt(self, u: Array) -> tuple[Array, list[Block]]:
        """Starts at ``u``: the best of staying, the linear prediction and chord corrections."""
        starts = self._reference.starts
        blocks = self._simulate(u, starts)
        steps = self._predicted(u)
        for _ in range(1 + _CORRECTIONS):
            trial = self._moved(starts, steps)
            tried = self._simulate(u, trial)
            pairs = list(zip(tried, blocks, strict=True))
            better = np.array([t.cost < b.cost for t, b in pairs])
            gain = sum(b.cost - t.cost for t, b in pairs if t.cost < b.cost)
            starts = np.where(better[:, None], trial, starts)
            blocks = [t if t.cost < b.cost else b for t, b in pairs]
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
