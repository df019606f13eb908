"""Elimination of nuisance columns from least-squares problems (variable projection).

Source: G. H. Golub, V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least
squares problems whose variables separate", SIAM J. Numer. Anal. 10 (1973); L. Kaufman, "A
variable projection method for solving separable nonlinear least squares problems", BIT 15 (1975).
"""

from __future__ import annotations

from typing import cast

import numpy as np

from sameworld.core.arrays import Array

__all__ = ["basis", "left_inverse", "project_out", "pseudo_inverse", "solve_columns"]


def basis(columns: Array, *, rcond: float = 1e-10) -> Array:
    """Orthonormal basis [R, K] of the span of ``columns`` [R, N], dependent ones dropped."""
    if columns.size == 0:
        return np.zeros((len(columns), 0))
    norms = np.sqrt(np.sum(columns**2, axis=0))
    scaled = columns[:, norms > 0] / norms[norms > 0]
    if scaled.shape[1] == 0:
        return np.zeros((len(columns), 0))
    left, singular, _ = np.linalg.svd(scaled, full_matrices=False)
    return cast("Array", left[:, singular > rcond * singular[0]])


def project_out(columns: Array, target: Array) -> Array:
    """Component of ``target`` [R] or [R, M] orthogonal to the span of ``columns`` [R, N]."""
    q = basis(columns)
    return target - q @ (q.T @ target)


def solve_columns(columns: Array, target: Array, *, rcond: float = 1e-10) -> Array:
    """Least-squares coefficients [N] or [N, M] with minimum norm, columns scaled first."""
    norms = np.sqrt(np.sum(columns**2, axis=0))
    safe = np.where(norms > 0, norms, 1.0)
    solution = np.linalg.lstsq(columns / safe, target, rcond=rcond)[0]
    scaled = solution.T / safe
    return cast("Array", np.where(norms > 0, scaled, 0.0)).T


def pseudo_inverse(gram: Array, *, rcond: float = 1e-9) -> Array:
    """Pseudo-inverse of a symmetric positive semidefinite matrix [N, N], scaled first."""
    scale = np.sqrt(np.diag(gram))
    safe = np.where(scale > 0, scale, 1.0)
    outer = np.outer(safe, safe)
    return cast("Array", np.linalg.pinv(gram / outer, rcond=rcond, hermitian=True)) / outer


def left_inverse(columns: Array, *, rcond: float = 1e-10) -> Array:
    """Pseudo-inverse [N, R] of tall columns [R, N], scaled first; empty ones give zeros."""
    if columns.shape[1] == 0:
        return np.zeros((0, len(columns)))
    norms = np.sqrt(np.sum(columns**2, axis=0))
    safe = np.where(norms > 0, norms, 1.0)
    return cast("Array", np.linalg.pinv(columns / safe, rcond=rcond)) / safe[:, None]
