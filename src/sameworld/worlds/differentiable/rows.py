"""Rows of the constraint problem: reference acceleration and regularisation.

Source: E. Todorov, "Convex and analytically-invertible dynamics with contacts and constraints",
ICRA 2014; MuJoCo documentation, chapter Computation, section "Constraint model".
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

__all__ = ["Block", "Reference", "impedance", "joined", "referenced"]

#: Bounds of the impedance and smallest regularisation, as in MuJoCo.
_LOWEST, _HIGHEST, _SMALLEST = 1e-4, 0.9999, 1e-15


class Block(NamedTuple):
    """Rows of one kind, before impedance.

    Attributes:
        jacobian: Velocity of the residual per joint velocity [n, nv].
        position: Residual, or distance [n].
        margin: Distance at which the row becomes active [n].
        weight: Inverse inertia that the row sees, as MuJoCo approximates it [n].
        solref: Reference parameters [n, 2].
        solimp: Impedance parameters [n, 5].
        depth: Residual that decides the impedance [n]; ``position - margin`` for most.
        drift: Velocity product (time derivative of the Jacobian times velocity) [n], subtracted
            from the reference.
        present: Whether the row exists at this instant [n].
    """

    jacobian: jax.Array
    position: jax.Array
    margin: jax.Array
    weight: jax.Array
    solref: jax.Array
    solimp: jax.Array
    depth: jax.Array
    drift: jax.Array
    present: jax.Array


class Reference(NamedTuple):
    """What the solver needs of rows.

    Attributes:
        jacobian: [n, nv].
        acceleration: Reference acceleration [n].
        regularisation: R [n].
        present: Whether the row exists [n].
    """

    jacobian: jax.Array
    acceleration: jax.Array
    regularisation: jax.Array
    present: jax.Array


def joined(blocks: list[Block]) -> Block:
    """Blocks one below the other."""
    return Block(*(jnp.concatenate(parts) for parts in zip(*blocks, strict=True)))


def impedance(solimp: jax.Array, depth: jax.Array) -> jax.Array:
    """Impedance [n] at a depth [n] m or rad: a power sigmoid between two levels.

    Args:
        solimp: Lowest and highest impedance, width, midpoint, power [n, 5].
        depth: Residual; only its size matters.
    """
    low = jnp.clip(solimp[:, 0], _LOWEST, _HIGHEST)
    high = jnp.clip(solimp[:, 1], _LOWEST, _HIGHEST)
    width = jnp.maximum(solimp[:, 2], 0.0)
    middle = jnp.clip(solimp[:, 3], _LOWEST, _HIGHEST)
    power = jnp.maximum(solimp[:, 4], 1.0)
    flat = width <= _SMALLEST
    x = jnp.clip(jnp.abs(depth) / jnp.where(flat, 1.0, width), 0.0, 1.0)
    rising = x <= middle
    base = jnp.where(rising, x / middle, (1 - x) / (1 - middle))
    positive = base > 0
    curve = jnp.where(positive, jnp.where(positive, base, 0.5) ** power, 0.0)
    level = jnp.where(rising, middle * curve, 1 - (1 - middle) * curve)
    inside = low + level * (high - low)
    return jnp.where(flat, 0.5 * (low + high), inside)


def referenced(
    block: Block, velocity: jax.Array, timestep: float, *, safe: bool, spring: bool = True
) -> Reference:
    """Reference acceleration and regularisation of rows.

    Args:
        block: The rows.
        velocity: Joint velocities [nv].
        timestep: Engine step [s].
        safe: Whether time constants are kept at two engine steps or more.
        spring: Whether the row pulls towards zero residual; friction only damps.
    """
    level = impedance(block.solimp, block.depth)
    high = jnp.clip(block.solimp[:, 1], _LOWEST, _HIGHEST)
    first, second = block.solref[:, 0], block.solref[:, 1]
    standard = first > 0
    time = jnp.where(standard, first, 1.0)
    time = jnp.maximum(time, 2 * timestep) if safe else time
    ratio = jnp.where(standard, second, 1.0)
    stiffness = jnp.where(standard, 1 / (high * time * ratio) ** 2, -first / high**2)
    damping = jnp.where(standard, 2 / (high * time), -second / high)
    pull = stiffness * level * (block.position - block.margin) if spring else 0.0
    acceleration = -damping * (block.jacobian @ velocity) - pull - block.drift
    regularisation = jnp.maximum((1 - level) * block.weight / level, _SMALLEST)
    return Reference(
        jacobian=block.jacobian,
        acceleration=acceleration,
        regularisation=regularisation,
        present=block.present,
    )
