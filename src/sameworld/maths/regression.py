"""Linear least squares with many rows: compression, and what columns say only together.

Source: M. Gautier, "Numerical calculation of the base inertial parameters of robots", J. Robotic
Systems 8 (1991), for base parameters by QR.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sameworld.core.arrays import Array

__all__ = ["BaseColumns", "base_columns", "compressed"]


def compressed(rows: Array) -> Array:
    """Triangle [min(N, K), K] with the same inner products as rows [N, K].

    ``|rows @ x|`` equals ``|compressed(rows) @ x|`` for every x, so that a fit to many samples
    costs no more than one to K of them.
    """
    return np.asarray(np.linalg.qr(rows, mode="r"), dtype=np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class BaseColumns:
    """Columns that carry everything a matrix can say about its coefficients.

    The data fix ``x[independent] + mixing @ x[dependent]`` and nothing else.

    Attributes:
        independent: Chosen columns, as many as the rank.
        dependent: The other columns that are not zero.
        silent: Columns that are zero.
        mixing: Coefficients [independent, dependent].
    """

    independent: NDArray[np.intp]
    dependent: NDArray[np.intp]
    silent: NDArray[np.intp]
    mixing: Array


def base_columns(matrix: Array, scale: Array, *, tolerance: float = 1e-8) -> BaseColumns:
    """Choose independent columns by pivoted QR.

    Args:
        matrix: Rows or a compressed triangle [N, K].
        scale: Typical size of each coefficient [K]; ranks columns by what they contribute.
        tolerance: Size, relative to the largest, below which a contribution counts as zero.
    """
    scaled = matrix * scale
    _, triangle, order = linalg.qr(scaled, mode="economic", pivoting=True)
    triangle, order = np.asarray(triangle), np.asarray(order, dtype=np.intp)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > tolerance * diagonal[0]).sum()) if diagonal[0] > 0 else 0
    first, rest = order[:rank], order[rank:]
    heard = np.linalg.norm(scaled[:, rest], axis=0) > tolerance * max(float(diagonal[0]), 1e-300)
    dependent, silent = rest[heard], rest[~heard]
    ratio = linalg.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:][:, heard])
    mixing = np.asarray(ratio) * scale[first][:, None] / scale[dependent]
    mixing[np.abs(ratio) < 1e3 * tolerance] = 0.0
    return BaseColumns(independent=first, dependent=dependent, silent=silent, mixing=mixing)
