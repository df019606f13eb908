"""Two capsules: one contact at the nearest points, two where the axes are parallel.

Source: MuJoCo, ``engine_collision_primitive.c``; the rule for parallel axes was measured on 4.0.0.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.differentiable.collide.contacts import Contacts, Shape, contacts
from sameworld.worlds.differentiable.collide.frame import frames
from sameworld.worlds.differentiable.collide.sphere import ball_ball, fallback_normal

__all__ = ["capsule_capsule", "nearest_places"]

_ENDS = np.array([1.0, -1.0])

_PARALLEL = 1e-8  # squared sine of the angle between the axes


def capsule_capsule(capsule1: Shape, capsule2: Shape, margin: jax.Array | float) -> Contacts:
    """Two capsules, 2 slots.

    Parallel capsules (within 1e-4 rad) touch at both ends of the stretch where they lie beside
    each other; without such a stretch both contacts are the same. Others touch once.
    """
    half1 = capsule1.axis * capsule1.size[1]
    half2 = capsule2.axis * capsule2.size[1]
    offset = capsule1.position - capsule2.position
    ma, mb, mc = half1 @ half1, -(half1 @ half2), half2 @ half2
    u, v = -(half1 @ offset), half2 @ offset
    determinant = ma * mc - mb * mb
    parallel = determinant < _PARALLEL * ma * mc
    crossing1, crossing2 = nearest_places(ma, mb, mc, u, v, jnp.where(parallel, 1.0, determinant))
    beside = (u - _ENDS * mb) / ma
    end1 = jnp.clip(beside, -1.0, 1.0)
    end2 = jnp.where(beside == end1, _ENDS, jnp.clip((v - end1 * mb) / mc, -1.0, 1.0))
    at1 = jnp.where(parallel, end1, crossing1)[:, None]
    at2 = jnp.where(parallel, end2, crossing2)[:, None]
    touch = ball_ball(
        capsule1.position + at1 * half1,
        capsule1.size[0],
        capsule2.position + at2 * half2,
        capsule2.size[0],
        fallback_normal(capsule1, capsule2),
    )
    present = (touch.distance < margin) & (parallel | (_ENDS > 0.0))
    return contacts(touch.distance, touch.point, frames(touch.normal), present)


def nearest_places(
    ma: jax.Array, mb: jax.Array, mc: jax.Array, u: jax.Array, v: jax.Array, determinant: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Nearest places on two segments that are not parallel, in half lengths from their middles.

    Minimises |offset + a half1 - b half2| over a and b in [-1, 1]: the free minimum, then a
    clipped, then b clipped with a solved for again.
    """
    free = (mc * u - mb * v) / determinant
    at1 = jnp.clip(free, -1.0, 1.0)
    wished = jnp.where(at1 == free, (ma * v - mb * u) / determinant, (v - at1 * mb) / mc)
    at2 = jnp.clip(wished, -1.0, 1.0)
    return jnp.where(at2 == wished, at1, jnp.clip((u - at2 * mb) / ma, -1.0, 1.0)), at2
