"""Rotations between matrices, quaternions, rotation vectors and roll-pitch-yaw.

Quaternions are unit, scalar first (wxyz), and rotate body coordinates into world coordinates; every
function takes leading batch axes. The group operations live in ``core.manifolds`` and are offered
here again, so that one import is enough.

Source: J. Sola, "Quaternion kinematics for the error-state Kalman filter", arXiv 1711.02508.
"""

from __future__ import annotations

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.manifolds import (
    compose,
    continuous,
    inverse,
    inverse_left_jacobian,
    normalised,
    quat_exp,
    quat_log,
)

__all__ = [
    "angle_between",
    "compose",
    "continuous",
    "inverse",
    "inverse_left_jacobian",
    "matrix_to_quat",
    "normalised",
    "quat_exp",
    "quat_log",
    "quat_to_matrix",
    "quat_to_rpy",
    "random_quat",
    "rotate",
    "rpy_to_quat",
    "skew",
    "slerp",
]


def skew(v: Array) -> Array:
    """Cross-product matrices [..., 3, 3] of vectors [..., 3]: ``skew(a) @ b = a x b``."""
    zero = np.zeros_like(v[..., 0])
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=-1).reshape(*v.shape, 3)


def rotate(q: Array, v: Array) -> Array:
    """Bring vectors [..., 3] from the body frame into the world frame of quaternions [..., 4]."""
    twice = 2 * np.cross(q[..., 1:], v)
    return v + q[..., :1] * twice + np.cross(q[..., 1:], twice)


def quat_to_matrix(q: Array) -> Array:
    """Unit quaternions [..., 4] to rotation matrices [..., 3, 3]."""
    w = q[..., 0, None, None]
    cross = skew(q[..., 1:])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def matrix_to_quat(matrix: Array) -> Array:
    """Rotation matrices [..., 3, 3] to unit quaternions [..., 4] with ``w >= 0``.

    The row of the matrix ``4 q q^T`` with the largest diagonal is used, so no angle is singular.

    Source: S. W. Shepperd, "Quaternion from rotation matrix", J. Guidance and Control 1 (1978).
    """
    m = np.asarray(matrix, dtype=np.float64)
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    wx, wy, wz = (
        m[..., 2, 1] - m[..., 1, 2],
        m[..., 0, 2] - m[..., 2, 0],
        m[..., 1, 0] - m[..., 0, 1],
    )
    xy, xz, yz = (
        m[..., 0, 1] + m[..., 1, 0],
        m[..., 0, 2] + m[..., 2, 0],
        m[..., 1, 2] + m[..., 2, 1],
    )
    rows = [
        [1 + xx + yy + zz, wx, wy, wz],
        [wx, 1 + xx - yy - zz, xy, xz],
        [wy, xy, 1 - xx + yy - zz, yz],
        [wz, xz, yz, 1 - xx - yy + zz],
    ]
    outer = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    best = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    q = normalised(np.take_along_axis(outer, best[..., None, None], axis=-2)[..., 0, :])
    return np.where(q[..., :1] < 0, -q, q)


def rpy_to_quat(rpy: Array) -> Array:
    """Roll, pitch, yaw [..., 3] rad to quaternions [..., 4].

    Rotations about the fixed x, then y, then z axis (URDF): ``R = Rz(yaw) Ry(pitch) Rx(roll)``.
    """
    half = 0.5 * np.asarray(rpy, dtype=np.float64)
    (sr, sp, sy), (cr, cp, cy) = np.moveaxis(np.sin(half), -1, 0), np.moveaxis(np.cos(half), -1, 0)
    return np.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        axis=-1,
    )


def quat_to_rpy(q: Array) -> Array:
    """Quaternions [..., 4] to roll, pitch, yaw [..., 3] rad, pitch in [-pi/2, pi/2].

    At pitch +-pi/2 only roll -+ yaw is determined; roll is then set to 0.
    """
    m = quat_to_matrix(q)
    lying = np.hypot(m[..., 2, 1], m[..., 2, 2])
    locked = lying < 1e-9
    roll = np.where(locked, 0.0, np.arctan2(m[..., 2, 1], m[..., 2, 2]))
    yaw = np.where(
        locked,
        np.arctan2(-m[..., 0, 1], m[..., 1, 1]),
        np.arctan2(m[..., 1, 0], m[..., 0, 0]),
    )
    return np.stack([roll, np.arctan2(-m[..., 2, 0], lying), yaw], axis=-1)


def angle_between(a: Array, b: Array) -> Array:
    """Geodesic angle [...] rad in [0, pi] between orientations [..., 4], whatever their signs."""
    return np.linalg.norm(quat_log(compose(inverse(a), b)), axis=-1)


def slerp(a: Array, b: Array, share: Array) -> Array:
    """Orientations [..., 4] a ``share`` [...] of the shortest way from ``a`` to ``b``."""
    return compose(a, quat_exp(np.asarray(share)[..., None] * quat_log(compose(inverse(a), b))))


def random_quat(rng: np.random.Generator, shape: tuple[int, ...] = ()) -> Array:
    """Uniformly distributed orientations, shape [*shape, 4].

    Source: G. Marsaglia, "Choosing a point from the surface of a sphere", Ann. Math. Stat. 43
    (1972).
    """
    return normalised(rng.standard_normal((*shape, 4)))
