"""Cost of constraint rows: how forces depend on the residual acceleration of each row.

Four kinds of row stand in this order: equalities (quadratic), dry friction (Huber), one-sided rows
(limits, frictionless contacts, pyramid edges), and elliptic contacts, grouped by their dimension.

Source: MuJoCo documentation, chapter Computation, section "Primal problem".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from sameworld.worlds.differentiable.typed import einsum, eye, full, pad

__all__ = ["Cost", "Layout", "Problem", "curved", "evaluated", "forces"]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How many rows of each kind.

    Attributes:
        equalities: Rows of equality constraints.
        frictions: Rows of dry friction.
        onesided: Rows that only push.
        cones: Elliptic contacts as pairs (dimension, number).
    """

    equalities: int = 0
    frictions: int = 0
    onesided: int = 0
    cones: tuple[tuple[int, int], ...] = ()

    @property
    def plain(self) -> int:
        """Rows outside of cones."""
        return self.equalities + self.frictions + self.onesided

    @property
    def rows(self) -> int:
        """All rows."""
        return self.plain + sum(dim * count for dim, count in self.cones)


class Problem(NamedTuple):
    """Acceleration that minimises ``a' M a / 2 - a' f + cost(J a - r)``.

    Attributes:
        mass: M [nv, nv].
        smooth: f, all forces but those of constraints [nv].
        jacobian: J [n, nv].
        reference: r [n].
        stiffness: 1 / R of every row, 0 where it is absent [n].
        limit: Largest friction of the friction rows [frictions].
        friction: Coefficients of elliptic contacts by group: [count, dim - 1] each.
        regular: Coefficient of the regular cone by group [count] each.
    """

    mass: jax.Array
    smooth: jax.Array
    jacobian: jax.Array
    reference: jax.Array
    stiffness: jax.Array
    limit: jax.Array
    friction: tuple[jax.Array, ...]
    regular: tuple[jax.Array, ...]


class Cost(NamedTuple):
    """Cost of rows at residuals [n].

    Attributes:
        value: Cost.
        gradient: Derivative by the residuals [n]: the negative force.
        diagonal: Second derivative of plain rows [plain].
        blocks: Second derivative of elliptic contacts by group, [count, dim, dim] each.
    """

    value: jax.Array
    gradient: jax.Array
    diagonal: jax.Array
    blocks: tuple[jax.Array, ...]


def evaluated(layout: Layout, p: Problem, residual: jax.Array) -> Cost:
    """Cost, gradient and curvature at residuals [n]."""
    plain = _plain(layout, p, residual)
    value, gradients, blocks = plain[0], [plain[1]], list[jax.Array]()
    for rows, stiffness, friction, regular in _groups(layout, p, residual):
        cone = _cone(rows, stiffness, friction, regular)
        value = value + jnp.sum(cone[0])
        gradients.append(cone[1].reshape(-1))
        blocks.append(_cone_curvature(rows, stiffness, friction, regular))
    gradient = jnp.concatenate(gradients)
    return Cost(value=value, gradient=gradient, diagonal=plain[2], blocks=tuple(blocks))


def forces(layout: Layout, p: Problem, residual: jax.Array) -> jax.Array:
    """Forces of rows [n] at residuals [n]; the part that is differentiated."""
    parts = [_plain(layout, p, residual)[1]]
    for rows, stiffness, friction, regular in _groups(layout, p, residual):
        parts.append(_cone(rows, stiffness, friction, regular)[1].reshape(-1))
    return -jnp.concatenate(parts)


def curved(layout: Layout, cost: Cost, columns: jax.Array) -> jax.Array:
    """Second derivative of the cost times columns [n, m]."""
    parts = [cost.diagonal[:, None] * columns[: layout.plain]]
    at = layout.plain
    for (dim, count), block in zip(layout.cones, cost.blocks, strict=True):
        group = columns[at : at + dim * count].reshape(count, dim, -1)
        parts.append(einsum("kij,kjm->kim", block, group).reshape(dim * count, -1))
        at += dim * count
    return jnp.concatenate(parts)


def _plain(
    layout: Layout, p: Problem, residual: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Value, gradient and curvature of rows outside of cones."""
    residual, stiffness = residual[: layout.plain], p.stiffness[: layout.plain]
    first, second = layout.equalities, layout.equalities + layout.frictions
    pull = stiffness * residual
    push = jnp.concatenate([residual[:second] < jnp.inf, residual[second:] < 0])
    if layout.frictions:
        bound = jnp.concatenate([full(first, jnp.inf), p.limit, full(layout.onesided, jnp.inf)])
        slides = jnp.abs(pull) >= bound  # also where both are 0: friction of 0 holds nothing
        bound = jnp.where(slides, bound, 0.0)
        compliance = jnp.where(slides, 1.0, 0.0) / jnp.where(stiffness > 0, stiffness, 1.0)
        value = jnp.where(
            slides,
            bound * (jnp.abs(residual) - 0.5 * bound * compliance),
            0.5 * pull * residual,
        )
        gradient = jnp.where(slides, bound * jnp.sign(pull), pull)
        active = push & ~slides
    else:
        value, gradient, active = 0.5 * pull * residual, pull, push
    return (
        jnp.sum(jnp.where(push, value, 0.0)),
        jnp.where(push, gradient, 0.0),
        jnp.where(active, stiffness, 0.0),
    )


def _groups(
    layout: Layout, p: Problem, residual: jax.Array
) -> list[tuple[jax.Array, jax.Array, jax.Array, jax.Array]]:
    """Residuals and stiffness [count, dim] of every group of elliptic contacts."""
    groups: list[tuple[jax.Array, jax.Array, jax.Array, jax.Array]] = []
    at = layout.plain
    for (dim, count), friction, regular in zip(layout.cones, p.friction, p.regular, strict=True):
        part = slice(at, at + dim * count)
        shape = (count, dim)
        rows, stiffness = residual[part].reshape(shape), p.stiffness[part].reshape(shape)
        groups.append((rows, stiffness, friction, regular))
        at += dim * count
    return groups


class _Zone(NamedTuple):
    """Where contacts stand relative to their cones [count]."""

    normal: jax.Array
    sideways: jax.Array
    length: jax.Array
    sticks: jax.Array
    slides: jax.Array
    stiffness: jax.Array


def _zone(rows: jax.Array, stiffness: jax.Array, friction: jax.Array, regular: jax.Array) -> _Zone:
    normal = rows[:, 0] * regular
    sideways = rows[:, 1:] * friction
    square = jnp.sum(sideways * sideways, axis=1)
    length = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)
    free = normal >= regular * length
    sticks = ~free & (regular * normal + length <= 0)
    scale = regular**2 * (1 + regular**2)
    return _Zone(
        normal=normal,
        sideways=sideways,
        length=length,
        sticks=sticks,
        slides=~free & ~sticks,
        stiffness=stiffness[:, 0] / scale,
    )


def _cone(
    rows: jax.Array, stiffness: jax.Array, friction: jax.Array, regular: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Value [count] and gradient [count, dim] of elliptic contacts."""
    z = _zone(rows, stiffness, friction, regular)
    excess = z.normal - regular * z.length
    pull = z.stiffness * excess
    direction = z.sideways / jnp.where(z.length > 0, z.length, 1.0)[:, None]
    sliding = jnp.concatenate(
        [(pull * regular)[:, None], -(pull * regular)[:, None] * direction * friction], axis=1
    )
    sticking = stiffness * rows
    value = jnp.where(z.slides, 0.5 * pull * excess, 0.0)
    value = jnp.where(z.sticks, 0.5 * jnp.sum(sticking * rows, axis=1), value)
    gradient = jnp.where(z.slides[:, None], sliding, 0.0)
    return value, jnp.where(z.sticks[:, None], sticking, gradient)


def _cone_curvature(
    rows: jax.Array, stiffness: jax.Array, friction: jax.Array, regular: jax.Array
) -> jax.Array:
    """Second derivative [count, dim, dim] of elliptic contacts."""
    z = _zone(rows, stiffness, friction, regular)
    length = jnp.where(z.length > 0, z.length, 1.0)
    direction = z.sideways / length[:, None]
    slope = jnp.concatenate([regular[:, None], -regular[:, None] * direction * friction], axis=1)
    outer = slope[:, :, None] * slope[:, None, :]
    across = eye(direction.shape[1]) - direction[:, :, None] * direction[:, None, :]
    bent = friction[:, :, None] * friction[:, None, :] * across / length[:, None, None]
    excess = z.normal - regular * z.length
    bent = pad(-(excess * regular)[:, None, None] * bent, ((0, 0), (1, 0), (1, 0)))
    sliding = z.stiffness[:, None, None] * (outer + bent)
    sticking = stiffness[:, :, None] * eye(rows.shape[1])
    curvature = jnp.where(z.slides[:, None, None], sliding, 0.0)
    return jnp.where(z.sticks[:, None, None], sticking, curvature)
