"""Derivatives of all windows' residuals: the arrowhead Jacobian.

Every window has a start of its own, so one tangent (or one difference) per start component moves
the starts of all windows: P + S columns, not P + S * W. Where the world declares its gradient the
columns are exact; else they are differences along steps that see the trend of a rough cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.jacobian import default_step, jacobian
from sameworld.core.values import Values
from sameworld.maths.projection import solve_columns
from sameworld.stages.identify.problem import Block, Head, Problem

__all__ = ["by_starts", "linearise"]


def linearise(problem: Problem, u: Array, starts: Array) -> list[Block]:
    """Residuals and derivatives of every window at coordinates ``u`` and starts [W, S_all].

    With starts from the warm-up rows, ``theta`` is the total derivative, starts following, and
    ``start`` is empty.
    """
    if not problem.warmup:
        return list(_partial(problem, u, starts))
    if problem.exact:
        return [_followed(block) for block in _partial(problem, u, starts)]
    return _differenced(problem, u, starts)


def by_starts(
    problem: Problem, u: Array, starts: Array, ticks: int
) -> Iterator[tuple[dict[str, Array], dict[str, Array]]]:
    """Signals of every window over some ticks, and their derivatives by its start."""
    actions = problem.actions[:, :ticks]
    for _, signals, slopes in _slopes(problem, u, starts, actions, problem.start_names):
        yield signals, slopes


def _partial(problem: Problem, u: Array, starts: Array) -> Iterator[Block]:
    """Derivatives by parameters with the start held, and by the start."""
    wrt = problem.start_names if problem.bare else (*problem.names, *problem.start_names)
    for w, signals, slopes in _slopes(problem, u, starts, problem.actions, wrt):
        block, stretch = problem.block(w, signals, slopes, starts[w]), problem.stretch(u, w)
        stretch = stretch[: block.theta.shape[1]]
        head = replace(block.head, theta=block.head.theta * stretch) if problem.warmup else None
        yield replace(block, theta=block.theta * stretch, head=head or block.head)


def _follow(head: Head) -> Array:
    """How the start follows the parameters as the warm-up rows demand [S, P]."""
    return -solve_columns(head.start, head.theta)


def _followed(block: Block) -> Block:
    total = block.theta + block.start @ _follow(block.head)
    return replace(block, theta=total, start=np.zeros((len(block.residual), 0)))


def _slopes(
    problem: Problem, u: Array, starts: Array, actions: Array, wrt: tuple[str, ...]
) -> Iterator[tuple[int, dict[str, Array], dict[str, Array]]]:
    """Signals and their derivatives per window, chunked to bound memory."""
    values, steps = problem.values(u), _steps(problem, u)
    for chunk in problem.chunks(len(wrt), actions.shape[1]):
        found = jacobian(
            problem.world,
            Values(names=problem.world.spec.start.names, array=starts[chunk]),
            actions[chunk],
            wrt=wrt,
            parameters=values.rows(chunk) if values.batch > 1 else values,
            steps=steps,
            method="gradient" if problem.exact else "differences",
            central=problem.central,
            seed=problem.seed,
        )
        for row, w in enumerate(range(len(problem.windows))[chunk]):
            signals = {n: v[row] for n, v in found.rollout.signals.items()}
            yield w, signals, {n: v[row] for n, v in found.derivatives.items()}


# ---- differences, starts from the warm-up --------------------------------------------------


def _differenced(problem: Problem, u: Array, starts: Array) -> list[Block]:
    """Total derivatives by differences: only the short warm-up is differentiated by the starts."""
    heads: list[Head] = []
    warmup = problem.actions[:, : problem.warmup_ticks()]
    wrt = (*problem.names, *problem.start_names)
    for w, signals, slopes in _slopes(problem, u, starts, warmup, wrt):
        head = problem.head(w, signals, slopes, starts[w])
        heads.append(replace(head, theta=head.theta * problem.stretch(u, w)))
    follow = np.stack([_follow(head) for head in heads])  # [W, S, P]
    blocks = problem.simulate(u, starts)
    columns = _total_columns(problem, u, starts, follow)
    return [
        replace(
            block,
            theta=np.stack([c[w] for c in columns], axis=1),
            start=np.zeros((len(block.residual), 0)),
            head=heads[w],
        )
        for w, block in enumerate(blocks)
    ]


def _total_columns(problem: Problem, u: Array, starts: Array, follow: Array) -> list[list[Array]]:
    """Central differences of all residuals along every parameter, starts moving with it."""
    sides = [
        _beside(problem, u, starts, follow, i, sign)
        for i in range(len(problem.names))
        for sign in (-1.0, 1.0)
    ]
    blocks = problem.simulate_all([(moved, begun) for moved, begun, _ in sides])
    columns: list[list[Array]] = []
    for i in range(len(problem.names)):
        below, above = next(blocks), next(blocks)
        spans = np.maximum(sides[2 * i + 1][2] - sides[2 * i][2], 1e-12).tolist()
        triples = zip(below, above, spans, strict=True)
        columns.append([(up.residual - down.residual) / span for down, up, span in triples])
    return columns


def _beside(
    problem: Problem, u: Array, starts: Array, follow: Array, i: int, sign: float
) -> tuple[Array, Array, Array]:
    """Coordinates and starts a difference step along parameter i away, and the step [W]."""
    free = [problem.world.spec.start.index(n) for n in problem.start_names]
    low, high = problem.transform.bounds
    here = problem.sessions.local(u)
    moved, begun = here.copy(), starts.copy()
    step = sign * problem.stride * problem.difference[i]
    moved[..., i] = np.clip(here[..., i] + step, low[i], high[i])
    step = np.broadcast_to(moved[..., i] - here[..., i], len(starts))
    begun[:, free] += follow[:, :, i] * step[:, None]
    return moved, begun, step


def _steps(problem: Problem, u: Array) -> dict[str, float]:
    """Difference steps in the parameters' own units."""
    slopes = problem.transform.derivative(u[: len(problem.names)])
    moves = np.abs(problem.stride * problem.difference * slopes).tolist()
    steps: dict[str, float] = dict(zip(problem.names, moves, strict=True))
    for name in problem.start_names:
        step = max(default_step(problem.world.spec.start[name]), 1e-5)
        steps[name] = problem.stride * step
    return steps
