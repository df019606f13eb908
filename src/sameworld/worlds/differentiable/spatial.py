"""Rotations and small vectors on JAX arrays, safe to differentiate at zero.

Everything works on leading axes; quaternions are wxyz.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sameworld.worlds.differentiable.typed import zeros

__all__ = [
    "arranged",
    "cross",
    "matrix_of",
    "multiplied",
    "norm",
    "normalised",
    "quaternion_of",
    "rotation_exp",
    "rotation_log",
    "transformed",
]

_TINY = 1e-30


def arranged(size: int, parts: list[tuple[NDArray[np.intp], jax.Array]]) -> jax.Array:
    """Array [size] that holds values [n] at places [n], and zeros elsewhere, by one gather."""
    order = np.zeros(size, dtype=np.intp)
    at = 1
    for places, _ in parts:
        order[places.reshape(-1)] = at + np.arange(places.size)
        at += places.size
    values = [values.reshape(-1) for _, values in parts]
    whole = jnp.concatenate([np.zeros(1), *values])
    return whole[order] if not np.array_equal(order, np.arange(1, at)) else whole[1:]


def norm(vector: jax.Array) -> jax.Array:
    """Length [...] of vectors [..., n]; its derivative at zero is zero, not NaN."""
    square = jnp.sum(vector * vector, axis=-1)
    positive = square > _TINY
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1.0)), 0.0)


def normalised(vector: jax.Array) -> jax.Array:
    """Unit vectors [..., n]; a zero vector gives the first axis."""
    square = jnp.sum(vector * vector, axis=-1, keepdims=True)
    positive = square > _TINY
    first = zeros(vector.shape[-1]).at[0].set(1.0)
    return jnp.where(positive, vector / jnp.sqrt(jnp.where(positive, square, 1.0)), first)


def cross(a: jax.Array, b: jax.Array) -> jax.Array:
    """Cross product [..., 3]."""
    return jnp.stack(
        [
            a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1],
            a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2],
            a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0],
        ],
        axis=-1,
    )


def transformed(matrix: jax.Array, vector: jax.Array) -> jax.Array:
    """Matrices [..., m, n] times vectors [..., n], as sums that XLA fuses."""
    return jnp.sum(matrix * vector[..., None, :], axis=-1)


def multiplied(a: jax.Array, b: jax.Array) -> jax.Array:
    """Product of quaternions [..., 4]."""
    w1, x1, y1, z1 = (a[..., k] for k in range(4))
    w2, x2, y2, z2 = (b[..., k] for k in range(4))
    return jnp.stack(
        [
            w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2,
            w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
            w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
            w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
        ],
        axis=-1,
    )


def matrix_of(quaternion: jax.Array) -> jax.Array:
    """Rotation matrices [..., 3, 3] of unit quaternions."""
    w, x, y, z = (quaternion[..., k] for k in range(4))
    rows = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def quaternion_of(matrix: jax.Array) -> jax.Array:
    """Unit quaternions [..., 4] of rotation matrices, by the largest of four candidates."""
    m = [[matrix[..., r, c] for c in range(3)] for r in range(3)]
    diagonal = [m[k][k] for k in range(3)]
    trace = diagonal[0] + diagonal[1] + diagonal[2]
    squares = jnp.stack([trace, *diagonal], axis=-1)
    candidates = jnp.stack(
        [
            jnp.stack([1 + trace, m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]], -1),
            jnp.stack(
                [m[2][1] - m[1][2], 1 + 2 * m[0][0] - trace, m[0][1] + m[1][0], m[0][2] + m[2][0]],
                -1,
            ),
            jnp.stack(
                [m[0][2] - m[2][0], m[0][1] + m[1][0], 1 + 2 * m[1][1] - trace, m[1][2] + m[2][1]],
                -1,
            ),
            jnp.stack(
                [m[1][0] - m[0][1], m[0][2] + m[2][0], m[1][2] + m[2][1], 1 + 2 * m[2][2] - trace],
                -1,
            ),
        ],
        axis=-2,
    )
    best = jnp.argmax(squares, axis=-1)
    chosen = jnp.take_along_axis(candidates, best[..., None, None], axis=-2)[..., 0, :]
    chosen = normalised(chosen)
    return jnp.where(chosen[..., :1] < 0, -chosen, chosen)


def rotation_exp(vector: jax.Array) -> jax.Array:
    """Quaternions [..., 4] of rotation vectors [..., 3] rad."""
    square = jnp.sum(vector * vector, axis=-1, keepdims=True)
    small = square < 1e-10
    angle = jnp.sqrt(jnp.where(small, 1.0, square))
    cosine = jnp.where(small, 1 - square / 8, jnp.cos(angle / 2))
    sine = jnp.where(small, 0.5 - square / 48, jnp.sin(angle / 2) / angle)
    return jnp.concatenate([cosine, sine * vector], axis=-1)


def rotation_log(quaternion: jax.Array) -> jax.Array:
    """Rotation vectors [..., 3] rad of unit quaternions, of length at most pi."""
    quaternion = jnp.where(quaternion[..., :1] < 0, -quaternion, quaternion)
    w, axis = quaternion[..., :1], quaternion[..., 1:]
    square = jnp.sum(axis * axis, axis=-1, keepdims=True)
    small = square < 1e-14
    sine = jnp.sqrt(jnp.where(small, 1.0, square))
    factor = jnp.where(small, 2.0 / jnp.where(small, w, 1.0), 2 * jnp.arctan2(sine, w) / sine)
    return factor * axis
