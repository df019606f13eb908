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

from sameworld.worlds.differentiable.cost import Layout, Problem, curved, evaluated, forces
from sameworld.worlds.differentiable.dynamics import inverted
from sameworld.worlds.differentiable.typed import asarray

__all__ = ["Effort", "Solution", "minimised"]

_LINE_STEPS = 30
_LINE_TOLERANCE = 1e-2
_SMALLEST = 1e-300
#: Accelerations relative to the free ones that rounding hides.
_ROUNDING = 1e-14


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
    inverse: jax.Array
    iterations: jax.Array
    converged: jax.Array


def minimised(layout: Layout, problem: Problem, warm: jax.Array, effort: Effort) -> Solution:
    """Solve for the accelerations.

    Args:
        layout: Kinds of rows.
        problem: The problem.
        warm: A guess [nv], such as the accelerations of the step before.
        effort: When to stop.
    """
    fixed: Problem = jax.lax.stop_gradient(problem)
    end = _solved(layout, fixed, jax.lax.stop_gradient(warm), effort)
    at: jax.Array = jax.lax.stop_gradient(end.acceleration)
    residual = problem.jacobian @ at - problem.reference
    pull = problem.jacobian.T @ forces(layout, problem, residual)
    gradient = problem.mass @ at - problem.smooth - pull
    return Solution(
        acceleration=at - jax.lax.stop_gradient(end.inverse) @ gradient,
        iterations=end.iterations,
        converged=end.converged,
    )


def _solved(layout: Layout, p: Problem, warm: jax.Array, effort: Effort) -> _Progress:
    """Newton steps until one would not change anything; the last one is not taken.

    None at all where no row resists the free accelerations. Bodies at rest have accelerations of
    zero, to which no tolerance is relative: there, rounding of the forces is the limit.
    """
    inverse = inverted(p.mass)
    free = inverse @ p.smooth
    floor = _ROUNDING**2 * jnp.abs(free @ p.smooth)
    costs = [evaluated(layout, p, p.jacobian @ a - p.reference) for a in (free, warm)]
    inert = [a @ (0.5 * p.mass @ a - p.smooth) for a in (free, warm)]
    better = costs[1].value + inert[1] < costs[0].value + inert[0]
    resisted = jnp.any(costs[0].gradient != 0)

    def advanced(now: _Progress) -> _Progress:
        at = now.acceleration
        residual = p.jacobian @ at - p.reference
        cost = evaluated(layout, p, residual)
        inertial = p.mass @ at
        gradient = inertial - p.smooth + p.jacobian.T @ cost.gradient
        inverse = inverted(p.mass + p.jacobian.T @ curved(layout, cost, p.jacobian))
        step = -inverse @ gradient
        decrement = -(gradient @ step)
        energy = jnp.abs(at @ inertial) + jnp.abs(at @ p.smooth) + _SMALLEST
        converged = decrement <= effort.tolerance**2 * energy + floor
        line = _Direction(residual, p.jacobian @ step, (inertial - p.smooth) @ step,
                          step @ (p.mass @ step), decrement)  # fmt: skip
        length = _length(layout, p, line, converged | ~jnp.isfinite(decrement))
        return _Progress(
            acceleration=jnp.where(converged, at, at + length * step),
            inverse=inverse,
            iterations=now.iterations + jnp.where(converged, 0, 1),
            converged=converged,
        )

    def unfinished(now: _Progress) -> jax.Array:
        fine = jnp.all(jnp.isfinite(now.acceleration))
        return ~now.converged & (now.iterations < effort.iterations) & fine

    first = _Progress(
        acceleration=jnp.where(resisted & better, warm, free),
        inverse=inverse,
        iterations=asarray(0),
        converged=~resisted,
    )
    return jax.lax.while_loop(unfinished, advanced, first)


class _Direction(NamedTuple):
    """A line through the space of accelerations.

    Attributes:
        residual: Residuals at its start [n].
        along: Their change per unit length [n].
        slope: Slope of the part of the cost that is not constraints, at the start.
        rise: Its curvature.
        steepness: Minus the slope of the whole cost at the start.
    """

    residual: jax.Array
    along: jax.Array
    slope: jax.Array
    rise: jax.Array
    steepness: jax.Array


class _Line(NamedTuple):
    length: jax.Array
    low: jax.Array
    high: jax.Array
    steps: jax.Array
    done: jax.Array


def _length(layout: Layout, p: Problem, line: _Direction, done: jax.Array) -> jax.Array:
    """Length of the step: a root of the slope by Newton's method between shrinking brackets."""

    def tried(now: _Line) -> _Line:
        cost = evaluated(layout, p, line.residual + now.length * line.along)
        slope = line.slope + now.length * line.rise + cost.gradient @ line.along
        bend = line.rise + line.along @ curved(layout, cost, line.along[:, None])[:, 0]
        low = jnp.where(slope < 0, now.length, now.low)
        high = jnp.where(slope < 0, now.high, now.length)
        guess = now.length - slope / bend
        fallback = jnp.where(jnp.isfinite(high), 0.5 * (low + high), 2 * now.length)
        better = jnp.where((guess > low) & (guess < high), guess, fallback)
        flat = jnp.abs(slope) <= _LINE_TOLERANCE * line.steepness
        return _Line(jnp.where(flat, now.length, better), low, high, now.steps + 1, flat)

    def unfinished(now: _Line) -> jax.Array:
        return ~now.done & (now.steps < _LINE_STEPS)

    ends = asarray(1.0), asarray(0.0), asarray(jnp.inf)
    return jax.lax.while_loop(unfinished, tried, _Line(*ends, asarray(0), done)).length
