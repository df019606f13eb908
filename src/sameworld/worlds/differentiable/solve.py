"""Newton's method for the constraint problem, and its derivative.

The problem is strictly convex. It is solved without derivatives in a ``while_loop``; one further
Newton step from the solution, with the Hessian held fixed, carries the derivative: at the solution
it changes nothing, and its derivative is that of the implicit function theorem,
``da = -H^-1 (dg/dtheta) dtheta``, in forward and in reverse mode.

Source: E. Todorov, "Convex and analytically-invertible dynamics with contacts and constraints",
ICRA 2014, for the problem; B. Amos, J. Z. Kolter, "OptNet", ICML 2017, for differentiating through
the solution.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from sameworld.worlds.differentiable.cost import Cost, Layout, Problem, curved, evaluated, forces
from sameworld.worlds.differentiable.dynamics import inverted

__all__ = ["Effort", "Solution", "minimised"]

_LINE_STEPS = 30
_LINE_TOLERANCE = 1e-2
_SMALLEST = 1e-300


class Effort(NamedTuple):
    """How hard the solver tries.

    Attributes:
        tolerance: Newton decrement, relative to the energy of the accelerations, at which it stops.
        iterations: Most Newton steps.
    """

    tolerance: float = 1e-10
    iterations: int = 30


class Solution(NamedTuple):
    """Accelerations under constraints.

    Attributes:
        acceleration: [nv], differentiable.
        iterations: Newton steps taken.
        converged: Whether the tolerance was reached.
    """

    acceleration: jax.Array
    iterations: jax.Array
    converged: jax.Array


class _Progress(NamedTuple):
    acceleration: jax.Array
    cost: Cost
    inverse: jax.Array
    step: jax.Array
    gradient: jax.Array
    iterations: jax.Array
    converged: jax.Array


def minimised(
    layout: Layout, problem: Problem, free: jax.Array, warm: jax.Array, effort: Effort
) -> Solution:
    """Solve for the accelerations.

    Args:
        layout: Kinds of rows.
        problem: The problem.
        free: Accelerations without constraints [nv].
        warm: A guess [nv], such as the accelerations of the step before.
        effort: When to stop.
    """
    fixed: Problem = jax.lax.stop_gradient(problem)
    end = _searched(layout, fixed, *jax.lax.stop_gradient((free, warm)), effort)
    at: jax.Array = jax.lax.stop_gradient(end.acceleration)
    residual = problem.jacobian @ at - problem.reference
    pull = problem.jacobian.T @ forces(layout, problem, residual)
    gradient = problem.mass @ at - problem.smooth - pull
    inverse: jax.Array = jax.lax.stop_gradient(end.inverse)
    return Solution(
        acceleration=at - inverse @ gradient,
        iterations=end.iterations,
        converged=end.converged,
    )


def _searched(
    layout: Layout, p: Problem, free: jax.Array, warm: jax.Array, effort: Effort
) -> _Progress:
    start = jnp.where(_total(layout, p, warm) < _total(layout, p, free), warm, free)

    def advanced(now: _Progress) -> _Progress:
        length = _line(layout, p, now)
        return _at(layout, p, now.acceleration + length * now.step, now.iterations + 1, effort)

    def unfinished(now: _Progress) -> jax.Array:
        return ~now.converged & (now.iterations < effort.iterations)

    first = _at(layout, p, start, jnp.asarray(0), effort)
    return jax.lax.while_loop(unfinished, advanced, first)


def _total(layout: Layout, p: Problem, acceleration: jax.Array) -> jax.Array:
    residual = p.jacobian @ acceleration - p.reference
    cost = evaluated(layout, p, residual).value
    return cost + acceleration @ (0.5 * p.mass @ acceleration - p.smooth)


def _at(
    layout: Layout, p: Problem, acceleration: jax.Array, iterations: jax.Array, effort: Effort
) -> _Progress:
    """Newton step and decrement at an acceleration."""
    cost = evaluated(layout, p, p.jacobian @ acceleration - p.reference)
    inertial = p.mass @ acceleration
    gradient = inertial - p.smooth + p.jacobian.T @ cost.gradient
    hessian = p.mass + p.jacobian.T @ curved(layout, cost, p.jacobian)
    inverse = inverted(hessian)
    step = -inverse @ gradient
    energy = jnp.abs(acceleration @ inertial) + jnp.abs(acceleration @ p.smooth) + _SMALLEST
    return _Progress(
        acceleration=acceleration,
        cost=cost,
        inverse=inverse,
        step=step,
        gradient=gradient,
        iterations=iterations,
        converged=-(gradient @ step) <= effort.tolerance**2 * energy,
    )


class _Line(NamedTuple):
    length: jax.Array
    low: jax.Array
    high: jax.Array
    slope: jax.Array
    curvature: jax.Array
    steps: jax.Array


def _line(layout: Layout, p: Problem, now: _Progress) -> jax.Array:
    """Length of the step: a root of the slope by Newton's method between shrinking brackets."""
    along = p.jacobian @ now.step
    residual = p.jacobian @ now.acceleration - p.reference
    inertial = p.mass @ now.step
    base, rise = now.acceleration @ inertial - p.smooth @ now.step, now.step @ inertial
    steepness = -(now.gradient @ now.step)

    def measured(length: jax.Array) -> tuple[jax.Array, jax.Array]:
        cost = evaluated(layout, p, residual + length * along)
        slope = base + length * rise + cost.gradient @ along
        return slope, rise + along @ curved(layout, cost, along[:, None])[:, 0]

    def moved(line: _Line) -> _Line:
        low = jnp.where(line.slope < 0, line.length, line.low)
        high = jnp.where(line.slope < 0, line.high, line.length)
        guess = line.length - line.slope / line.curvature
        inside = (guess > low) & (guess < high)
        fallback = jnp.where(jnp.isfinite(high), 0.5 * (low + high), 2 * line.length)
        length = jnp.where(inside, guess, fallback)
        return _Line(length, low, high, *measured(length), line.steps + 1)

    def unfinished(line: _Line) -> jax.Array:
        far = jnp.abs(line.slope) > _LINE_TOLERANCE * steepness
        return far & (line.steps < _LINE_STEPS)

    full = jnp.asarray(1.0)
    first = _Line(full, jnp.asarray(0.0), jnp.asarray(jnp.inf), *measured(full), jnp.asarray(0))
    return jax.lax.while_loop(unfinished, moved, first).length
