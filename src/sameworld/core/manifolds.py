"""Signals that do not live in a vector space: unit quaternions as a manifold.

Quaternions are scalar first (wxyz) and rotate body coordinates into world coordinates. The
tangent space at ``q`` is the body frame: ``compose(q, exp(v))`` with ``v`` in rad.

Source: J. Sola, J. Deray, D. Atchuthan, "A micro Lie theory for state estimation in robotics",
arXiv 1812.01537, section IV and equations 143-147.
"""

from __future__ import annotations

import numpy as np

from sameworld.core.arrays import Array

__all__ = [
    "compose",
    "continuous",
    "inverse",
    "inverse_left_jacobian",
    "normalised",
    "quat_exp",
    "quat_log",
]

_SMALL = 1e-8


def normalised(q: Array) -> Array:
    """Scale quaternions [..., 4] to unit length."""
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


def inverse(q: Array) -> Array:
    """Conjugate of unit quaternions [..., 4]."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def compose(a: Array, b: Array) -> Array:
    """Hamilton product a b of quaternions [..., 4]."""
    aw, av, bw, bv = a[..., :1], a[..., 1:], b[..., :1], b[..., 1:]
    w = aw * bw - np.sum(av * bv, axis=-1, keepdims=True)
    return np.concatenate([w, aw * bv + bw * av + np.cross(av, bv)], axis=-1)


def quat_exp(v: Array) -> Array:
    """Rotation vectors [..., 3] in rad to unit quaternions [..., 4]."""
    angle: Array = np.linalg.norm(v, axis=-1, keepdims=True)
    half = 0.5 * angle
    small = angle < _SMALL
    ratio: Array = np.where(small, 0.5 - angle**2 / 48, np.sin(half) / np.where(small, 1.0, angle))
    return np.concatenate([np.cos(half), ratio * v], axis=-1)


def quat_log(q: Array) -> Array:
    """Unit quaternions [..., 4] to the shortest rotation vectors [..., 3] in rad."""
    q = np.where(q[..., :1] < 0, -q, q)
    norm = np.linalg.norm(q[..., 1:], axis=-1, keepdims=True)
    angle = 2 * np.arctan2(norm, q[..., :1])
    small = norm < _SMALL
    return q[..., 1:] * np.where(small, 2.0, angle / np.where(small, 1.0, norm))


def continuous(q: Array) -> Array:
    """Flip signs along axis 0 so that neighbouring quaternions [T, 4] do not jump."""
    flips = np.sum(q[1:] * q[:-1], axis=-1) < 0
    signs = np.concatenate([[1.0], np.where(np.cumsum(flips) % 2 == 1, -1.0, 1.0)])
    return q * signs[:, None]


def inverse_left_jacobian(v: Array) -> Array:
    """Inverse left Jacobian of SO(3) at rotation vectors [..., 3], shape [..., 3, 3].

    ``log(exp(d) exp(v)) = v + inverse_left_jacobian(v) d`` to first order in ``d``.
    """
    angle = np.linalg.norm(v, axis=-1)[..., None, None]
    zero = np.zeros_like(v[..., 0])
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    skew = np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(*v.shape, 3)
    small = angle < 1e-4
    safe = np.where(small, 1.0, angle)
    factor = np.where(
        small, 1 / 12, 1 / safe**2 - (1 + np.cos(safe)) / (2 * safe * np.sin(safe) + 1e-300)
    )
    return np.eye(3) - 0.5 * skew + factor * (skew @ skew)
