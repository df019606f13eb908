"""Rigid-body inertia: what is physical, and coordinates in which everything is.

Ten numbers describe the inertia of a rigid body. They belong to some distribution of mass exactly
if the 4x4 pseudo-inertia is positive semidefinite, which implies a positive mass and moments that
obey the triangle inequality. The log-Cholesky coordinates reach every positive-definite one and
nothing else, so that an optimiser needs no constraint.

Sources: P. M. Wensing, S. Kim, J.-J. E. Slotine, "Linear matrix inequalities for physically
consistent inertial parameter identification", RA-L 3 (2018); C. Rucker, P. M. Wensing, "Smooth
parameterization of rigid-body inertia", RA-L 7 (2022).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sameworld.core.arrays import Array
from sameworld.core.errors import SceneError
from sameworld.maths.rotations import matrix_to_quat, quat_to_matrix

__all__ = [
    "from_inertial_vector",
    "from_log_cholesky",
    "from_pseudo_inertia",
    "inertia_problem",
    "inertial_vector",
    "log_cholesky",
    "moved",
    "principal",
    "pseudo_inertia",
    "rotated",
]

_EYE = np.eye(3)
#: Order in which the six numbers of a symmetric tensor are written.
_TENSOR = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def pseudo_inertia(mass: ArrayLike, com: ArrayLike, inertia: ArrayLike) -> Array:
    """Pseudo-inertia about the origin of the body frame, [..., 4, 4].

    Args:
        mass: Mass [...] kg.
        com: Centre of mass in the body frame [..., 3] m.
        inertia: Inertia about the centre of mass, axes of the body frame [..., 3, 3] kg m^2.
    """
    mass, com, inertia = (np.asarray(x, dtype=np.float64) for x in (mass, com, inertia))
    weight = mass[..., None, None]
    corner = _second_moment(inertia) + weight * com[..., :, None] * com[..., None, :]
    first = (mass[..., None] * com)[..., None]
    top = np.concatenate([corner, first], axis=-1)
    bottom = np.concatenate([np.swapaxes(first, -1, -2), weight], axis=-1)
    return np.concatenate([top, bottom], axis=-2)


def from_pseudo_inertia(pseudo: ArrayLike) -> tuple[Array, Array, Array]:
    """Mass [...], centre of mass [..., 3] and inertia about it [..., 3, 3] of [..., 4, 4]."""
    pseudo = np.asarray(pseudo, dtype=np.float64)
    mass = pseudo[..., 3, 3]
    com = pseudo[..., :3, 3] / mass[..., None]
    corner = pseudo[..., :3, :3] - mass[..., None, None] * com[..., :, None] * com[..., None, :]
    return mass, com, _inertia_of(corner)


def inertial_vector(mass: ArrayLike, com: ArrayLike, inertia: ArrayLike) -> Array:
    """The ten numbers in which joint torques are linear, [..., 10].

    Args:
        mass: Mass [...] kg.
        com: Centre of mass in the body frame [..., 3] m.
        inertia: Inertia about the centre of mass, axes of the body frame [..., 3, 3] kg m^2.

    Returns:
        Mass [kg], mass times centre of mass (3) [kg m], inertia about the origin of the body frame
        (xx, yy, zz, xy, xz, yz) [kg m^2].
    """
    mass, com, inertia = (np.asarray(x, dtype=np.float64) for x in (mass, com, inertia))
    about_origin = moved(mass, inertia, com)
    parts = [about_origin[..., i, j, None] for i, j in _TENSOR]
    return np.concatenate([mass[..., None], mass[..., None] * com, *parts], axis=-1)


def from_inertial_vector(vector: ArrayLike) -> tuple[Array, Array, Array]:
    """Mass [...], centre of mass [..., 3] and inertia about it [..., 3, 3] of [..., 10]."""
    vector = np.asarray(vector, dtype=np.float64)
    mass = vector[..., 0]
    com = vector[..., 1:4] / mass[..., None]
    tensor = np.empty((*vector.shape[:-1], 3, 3))
    for k, (i, j) in enumerate(_TENSOR):
        tensor[..., i, j] = tensor[..., j, i] = vector[..., 4 + k]
    return mass, com, moved(-mass, tensor, com)


def log_cholesky(mass: ArrayLike, com: ArrayLike, inertia: ArrayLike) -> Array:
    """Coordinates of a physical inertia, [..., 10].

    ``pseudo_inertia = U U^T`` with ``U = e^alpha [[e^d1, s12, s13, t1], [0, e^d2, s23, t2],
    [0, 0, e^d3, t3], [0, 0, 0, 1]]``; so ``alpha`` is half the log of the mass and ``t`` the
    centre of mass.

    Args:
        mass: Mass [...] kg, positive.
        com: Centre of mass in the body frame [..., 3] m.
        inertia: Inertia about the centre of mass [..., 3, 3] kg m^2.

    Returns:
        alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3 along the last axis.

    Raises:
        SceneError: The inertia belongs to no body of finite extent.
    """
    mass, com, inertia = (np.asarray(x, dtype=np.float64) for x in (mass, com, inertia))
    _demand_physical(mass, inertia)
    spread = _second_moment(inertia) / mass[..., None, None]
    try:
        lower = np.linalg.cholesky(np.flip(spread, axis=(-2, -1)))
    except np.linalg.LinAlgError as cause:
        raise SceneError(
            "The inertia is that of a flat or point-like body; log-Cholesky coordinates need "
            "some extent along every axis. Give it a small thickness."
        ) from cause
    upper = np.asarray(np.flip(lower, axis=(-2, -1)), dtype=np.float64)
    logs = np.log(np.diagonal(upper, axis1=-2, axis2=-1))
    alpha = 0.5 * np.log(mass)[..., None]
    shear = np.stack([upper[..., 0, 1], upper[..., 1, 2], upper[..., 0, 2]], axis=-1)
    return np.concatenate([alpha, logs, shear, com], axis=-1)


def from_log_cholesky(theta: ArrayLike) -> tuple[Array, Array, Array]:
    """Mass [...] kg, centre of mass [..., 3] m, inertia about it [..., 3, 3] kg m^2.

    Args:
        theta: Coordinates [..., 10] as ``log_cholesky`` returns them; every value is physical.
    """
    theta = np.asarray(theta, dtype=np.float64)
    zero = np.zeros_like(theta[..., 0])
    d1, d2, d3 = np.moveaxis(np.exp(theta[..., 1:4]), -1, 0)
    s12, s23, s13 = np.moveaxis(theta[..., 4:7], -1, 0)
    entries = [d1, s12, s13, zero, d2, s23, zero, zero, d3]
    upper = np.stack(entries, axis=-1).reshape(*theta.shape[:-1], 3, 3)
    mass = np.exp(2 * theta[..., 0])
    spread = upper @ np.swapaxes(upper, -1, -2)
    return mass, theta[..., 7:10].copy(), _inertia_of(mass[..., None, None] * spread)


def inertia_problem(mass: float, inertia: ArrayLike, *, tolerance: float = 1e-6) -> str | None:
    """Say in words why no rigid body has this mass and inertia; ``None`` if one has.

    Args:
        mass: Mass [kg].
        inertia: Inertia about the centre of mass [3, 3] kg m^2.
        tolerance: Relative violation forgiven as rounding.
    """
    matrix = np.asarray(inertia, dtype=np.float64)
    if matrix.shape != (3, 3):
        return f"inertia has shape {matrix.shape}, it must be (3, 3)"
    if not (math.isfinite(mass) and np.isfinite(matrix).all()):
        return "mass or inertia holds NaN or infinite values"
    if mass <= 0:
        return f"mass is {mass:.6g} kg, it must be positive"
    scale = float(np.abs(matrix).max())
    skewness = float(np.abs(matrix - matrix.T).max())
    if skewness > tolerance * scale:
        return f"inertia is not symmetric (entries differ by {skewness:.3g} kg m^2)"
    small, middle, large = (float(x) for x in np.linalg.eigvalsh(0.5 * (matrix + matrix.T)))
    moments = f"principal moments {small:.6g}, {middle:.6g}, {large:.6g} kg m^2"
    if small <= 0:
        return f"inertia is not positive definite ({moments})"
    if small + middle < large * (1 - tolerance):
        return (
            f"inertia violates the triangle inequality a + b >= c ({moments}: "
            f"{small:.6g} + {middle:.6g} < {large:.6g}); no distribution of mass has it"
        )
    return None


def principal(inertia: ArrayLike) -> tuple[Array, Array]:
    """Principal moments [..., 3] kg m^2, largest first, and their axes as quaternions [..., 4].

    ``inertia = R diag(moments) R^T`` with ``R`` the matrix of the quaternion (wxyz), as MuJoCo's
    ``diaginertia`` and ``quat`` of an ``<inertial>``.
    """
    moments, axes = np.linalg.eigh(np.asarray(inertia, dtype=np.float64))
    moments, axes = moments[..., ::-1], axes[..., ::-1]
    handed = np.where(np.linalg.det(axes) < 0, -1.0, 1.0)
    axes = axes * np.stack([np.ones_like(handed), np.ones_like(handed), handed], -1)[..., None, :]
    return moments.copy(), matrix_to_quat(axes)


def moved(mass: ArrayLike, inertia: ArrayLike, offset: ArrayLike) -> Array:
    """Inertia [..., 3, 3] about a point ``offset`` [..., 3] m away from the centre of mass.

    The parallel-axis theorem. A negative ``mass`` goes back from a point to the centre of mass.
    """
    mass, inertia, d = (np.asarray(x, dtype=np.float64) for x in (mass, inertia, offset))
    square = np.sum(d * d, axis=-1)[..., None, None]
    return inertia + mass[..., None, None] * (square * _EYE - d[..., :, None] * d[..., None, :])


def rotated(inertia: ArrayLike, quaternion: ArrayLike) -> Array:
    """Inertia [..., 3, 3] in the frame that ``quaternion`` [..., 4] rotates the axes into."""
    matrix = quat_to_matrix(np.asarray(quaternion, dtype=np.float64))
    return matrix @ np.asarray(inertia, dtype=np.float64) @ np.swapaxes(matrix, -1, -2)


def _second_moment(inertia: Array) -> Array:
    trace = np.trace(inertia, axis1=-2, axis2=-1)[..., None, None]
    return 0.5 * trace * _EYE - inertia


def _inertia_of(second_moment: Array) -> Array:
    trace = np.trace(second_moment, axis1=-2, axis2=-1)[..., None, None]
    return trace * _EYE - second_moment


def _demand_physical(mass: Array, inertia: Array) -> None:
    shape = np.broadcast_shapes(mass.shape, inertia.shape[:-2])
    masses = np.broadcast_to(mass, shape).reshape(-1)
    matrices = np.broadcast_to(inertia, (*shape, 3, 3)).reshape(-1, 3, 3)
    for one_mass, matrix in zip(masses, matrices, strict=True):
        problem = inertia_problem(float(one_mass), matrix)
        if problem:
            raise SceneError(f"No log-Cholesky coordinates: {problem}.")
