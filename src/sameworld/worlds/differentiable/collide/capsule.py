"""Two capsules: one contact of the nearest points, two where the axes are parallel.

Source: MuJoCo, ``engine_collision_primitive.c`` (behaviour).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.differentiable.collide.contacts import Contacts, Shape, contacts, first
from sameworld.worlds.differentiable.collide.frame import MINVAL, frames
from sameworld.worlds.differentiable.collide.sphere import ball_ball, fallback_normal

__all__ = ["capsule_capsule"]

_ENDS = np.array([1.0, -1.0])


def capsule_capsule(capsule1: Shape, capsule2: Shape, margin: jax.Array | float) -> Contacts:
    """Two capsules, 2 slots.

    Positions on the two axes are counted in half lengths. Parallel capsules touch at up to two of
    four ends: those of the first against the second, then those of the second against the first.
    """
    half1 = capsule1.axis * capsule1.size[1]
    half2 = capsule2.axis * capsule2.size[1]
    offset = capsule1.position - capsule2.position
    ma, mb, mc = half1 @ half1, -(half1 @ half2), half2 @ half2
    u, v = -(half1 @ offset), half2 @ offset
    determinant = ma * mc - mb * mb
    parallel = jnp.abs(determinant) < MINVAL
    at1, at2 = _nearest(ma, mb, mc, u, v, jnp.where(parallel, 1.0, determinant))
    along2 = jnp.clip((v - _ENDS * mb) / mc, -1.0, 1.0)
    along1 = jnp.clip((u - _ENDS * mb) / ma, -1.0, 1.0)
    places1 = jnp.concatenate([at1[None], _ENDS, along1])
    places2 = jnp.concatenate([at2[None], along2, _ENDS])
    touch = ball_ball(
        capsule1.position + places1[:, None] * half1,
        capsule1.size[0],
        capsule2.position + places2[:, None] * half2,
        capsule2.size[0],
        fallback_normal(capsule1, capsule2),
    )
    wanted = jnp.arange(5) > 0
    chosen, present = first((wanted == parallel) & (touch.distance < margin), 2)
    return contacts(
        touch.distance[chosen], touch.point[chosen], frames(touch.normal[chosen]), present
    )


def _nearest(
    ma: jax.Array, mb: jax.Array, mc: jax.Array, u: jax.Array, v: jax.Array, determinant: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Nearest places on two segments that are not parallel, each in [-1, 1]."""
    free = (mc * u - mb * v) / determinant
    at1 = jnp.clip(free, -1.0, 1.0)
    at2 = jnp.where(at1 == free, (ma * v - mb * u) / determinant, (v - at1 * mb) / mc)
    end2 = jnp.clip(at2, -1.0, 1.0)
    at1 = jnp.where(end2 == at2, at1, jnp.clip((u - end2 * mb) / ma, -1.0, 1.0))
    return at1, end2
