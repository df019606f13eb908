"""Inertia relative to a reference: ten dimensionless coordinates, zero at the reference.

With the reference pseudo-inertia ``P0 = U0 U0^T`` (``U0`` upper triangular), every physical
pseudo-inertia is ``U0 E E^T U0^T`` with one upper triangular ``E`` of positive diagonal. Its ten
numbers are the coordinates, scaled such that their squared norm is, to second order, half the
squared affine-invariant distance between the two. A pull towards the reference is then a plain
quadratic that does not depend on units, frames or the size of the body.

Sources: C. Rucker, P. M. Wensing, "Smooth parameterization of rigid-body inertia", RA-L 7 (2022);
T. Lee, P. M. Wensing, F. C. Park, "Geometric robot dynamic identification: a convex programming
approach", T-RO 36 (2020), for the distance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sameworld.core.arrays import Array
from sameworld.maths.inertia import from_inertial_vector, log_cholesky, pseudo_inertia

__all__ = ["log_cholesky_of", "stretched", "upper_root"]

_PLACES = ((0, 0), (1, 1), (2, 2), (3, 3), (0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3))
_ROOT2 = float(np.sqrt(2.0))


def upper_root(vector: ArrayLike) -> Array:
    """Upper triangular root [..., 4, 4] of the pseudo-inertia of inertial vectors [..., 10].

    Raises:
        SceneError: The vector belongs to no body of finite extent.
    """
    mass, com, inertia = from_inertial_vector(vector)
    log_cholesky(mass, com, inertia)  # refuses what is not physical, with words
    flipped = np.flip(pseudo_inertia(mass, com, inertia), axis=(-2, -1))
    return np.array(np.flip(np.linalg.cholesky(flipped), axis=(-2, -1)), dtype=np.float64)


def stretched(root: ArrayLike, theta: ArrayLike) -> tuple[Array, Array]:
    """Inertial vector at coordinates, and its derivative by them.

    Args:
        root: Root of the reference [..., 4, 4] as ``upper_root`` returns it.
        theta: Coordinates [..., 10]; four logarithms of stretches, six shears.

    Returns:
        Inertial vector [..., 10] and derivative [..., 10, 10].
    """
    root, theta = np.asarray(root, dtype=np.float64), np.asarray(theta, dtype=np.float64)
    moved = root @ _stretch(theta)
    directions = _directions(theta)
    turned = np.einsum("...ij,...kjl,...ml->...kim", root, directions, moved)
    both = turned + np.swapaxes(turned, -1, -2)
    derivative = np.swapaxes(_vector(both), -1, -2)
    return _vector(moved @ np.swapaxes(moved, -1, -2)), derivative


def log_cholesky_of(root: ArrayLike, theta: ArrayLike) -> tuple[Array, Array]:
    """Log-Cholesky coordinates [..., 10] at relative ones, and the derivative [..., 10, 10]."""
    root, theta = np.asarray(root, dtype=np.float64), np.asarray(theta, dtype=np.float64)
    upper = root @ _stretch(theta)
    slopes = np.einsum("...ij,...kjl->...kil", root, _directions(theta))
    corner = upper[..., 3, 3]
    logs = np.log(np.stack([upper[..., i, i] for i in range(4)], axis=-1))
    off = ((0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))
    plain = np.stack([upper[..., i, j] for i, j in off], axis=-1) / corner[..., None]
    coordinates = np.concatenate([logs[..., 3:], logs[..., :3] - logs[..., 3:], plain], axis=-1)
    relative = np.stack([slopes[..., i, i] / upper[..., None, i, i] for i in range(4)], axis=-2)
    last = relative[..., 3:, :]
    lines = [
        (slopes[..., i, j] - plain[..., None, k] * slopes[..., 3, 3]) / corner[..., None]
        for k, (i, j) in enumerate(off)
    ]
    derivative = np.concatenate(
        [last, relative[..., :3, :] - last, np.stack(lines, axis=-2)], axis=-2
    )
    return coordinates, derivative


def _stretch(theta: Array) -> Array:
    matrix = np.zeros((*theta.shape[:-1], 4, 4))
    for k, (i, j) in enumerate(_PLACES):
        matrix[..., i, j] = np.exp(theta[..., k] / _ROOT2) if i == j else theta[..., k]
    return matrix


def _directions(theta: Array) -> Array:
    """Derivative of the stretch by each coordinate [..., 10, 4, 4]."""
    out = np.zeros((*theta.shape[:-1], 10, 4, 4))
    for k, (i, j) in enumerate(_PLACES):
        out[..., k, i, j] = np.exp(theta[..., k] / _ROOT2) / _ROOT2 if i == j else 1.0
    return out


def _vector(pseudo: Array) -> Array:
    """Inertial vectors [..., 10] of pseudo-inertias, or of changes of them; linear."""
    second = pseudo[..., :3, :3]
    trace = np.trace(second, axis1=-2, axis2=-1)
    diagonal = [trace - second[..., i, i] for i in range(3)]
    products = [-second[..., i, j] for i, j in ((0, 1), (0, 2), (1, 2))]
    first = [pseudo[..., i, 3] for i in range(3)]
    return np.stack([pseudo[..., 3, 3], *first, *diagonal, *products], axis=-1)
