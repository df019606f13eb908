"""Plain array records: cameras, meshes, splats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array, finite_array
from sameworld.core.errors import SceneError

__all__ = ["Camera", "Mesh", "Splats"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Camera:
    """A pinhole camera.

    Attributes:
        name: Camera name.
        width: Image width [px].
        height: Image height [px].
        intrinsics: Matrix K [3, 3] in pixels.
        position: Optical centre in the world or parent frame [3] m.
        quaternion: Camera-to-parent rotation wxyz [4]; the camera looks along +z, x right, y down
            (OpenCV).
        parent: Body the camera is fixed to, empty for the world.
    """

    name: str
    width: int
    height: int
    intrinsics: Array
    position: Array
    quaternion: Array
    parent: str = ""

    def __post_init__(self) -> None:
        shapes = {"intrinsics": (3, 3), "position": (3,), "quaternion": (4,)}
        for field, shape in shapes.items():
            array = finite_array(
                getattr(self, field), f"Camera '{self.name}' {field}", error=SceneError
            )
            if array.shape != shape:
                raise SceneError(f"Camera '{self.name}' {field} has shape {array.shape}.")
            object.__setattr__(self, field, array)
        if self.width < 1 or self.height < 1:
            raise SceneError(f"Camera '{self.name}' is {self.width} x {self.height} pixels.")
        if abs(float(np.linalg.norm(self.quaternion)) - 1) > 1e-6:
            raise SceneError(f"Camera '{self.name}' quaternion is not of unit length.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Mesh:
    """A triangle mesh.

    Attributes:
        vertices: Positions [V, 3] m.
        faces: Vertex indices [F, 3], counter-clockwise seen from outside.
        colors: Vertex colours [V, 3] in [0, 1], or ``None``.
    """

    vertices: Array
    faces: NDArray[np.int64]
    colors: Array | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Splats:
    """Gaussian splats.

    Attributes:
        means: Centres [N, 3] m.
        quaternions: Orientations wxyz [N, 4].
        scales: Standard deviations along the axes [N, 3] m.
        opacities: Opacities [N] in [0, 1].
        harmonics: Spherical-harmonic colour coefficients [N, K, 3].
    """

    means: Array
    quaternions: Array
    scales: Array
    opacities: Array
    harmonics: Array
