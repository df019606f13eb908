"""Unit vectors and contact frames whose derivatives are finite where the direction is undefined.

Source: MuJoCo, ``mju_normalize3`` and ``mju_makeFrame`` (behaviour, not code).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["MINVAL", "frames", "unit"]

MINVAL = 1e-15
"""Length under which MuJoCo calls a direction undefined [m]."""

_X, _Y, _Z = np.eye(3)


def unit(vector: jax.Array, fallback: jax.Array | None = None) -> tuple[jax.Array, jax.Array]:
    """Directions and lengths of vectors [..., 3].

    A vector shorter than ``MINVAL`` has direction ``fallback`` (x where none is given), length 0
    and derivative 0: both branches of the choice are finite, so no derivative is NaN.

    Returns:
        Directions [..., 3] and lengths [...].
    """
    squared = jnp.sum(vector * vector, axis=-1)
    defined = squared >= MINVAL**2
    length = jnp.sqrt(jnp.where(defined, squared, 1.0))
    direction = vector / length[..., None]
    other = _X if fallback is None else fallback
    return jnp.where(defined[..., None], direction, other), jnp.where(defined, length, 0.0)


def frames(normal: jax.Array, tangent: jax.Array | None = None) -> jax.Array:
    """Contact frames [..., 3, 3] with rows normal, tangent and their cross product.

    Args:
        normal: Unit normals [..., 3].
        tangent: Unit vectors [..., 3] to lay the first tangent along; without them it is laid along
            the world's y axis, or z where the normal is close to y.
    """
    steep = jnp.abs(normal[..., 1:2]) >= 0.5
    wished = jnp.where(steep, _Z, _Y) if tangent is None else tangent
    across, _ = unit(wished - normal * jnp.sum(normal * wished, axis=-1, keepdims=True))
    return jnp.stack([normal, across, jnp.cross(normal, across)], axis=-2)
