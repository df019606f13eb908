"""Is what a scene says of its bodies possible, and plausible?"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np

from sameworld.core.errors import SameworldWarning, SceneError
from sameworld.maths.inertia import inertia_problem
from sameworld.worlds.compiled.engine import Model, SpecTree, mj

__all__ = ["check_inertials", "warn_implausible", "warn_leaky_meshes"]

_HEAVY = 1e4
_LARGE = 100.0


def check_inertials(spec: SpecTree) -> None:
    """Refuse explicit inertias that no rigid body has, naming body and numbers."""
    for body in spec.bodies[1:]:
        if not body.explicitinertial:
            continue
        full = np.array(body.fullinertia, dtype=np.float64)
        if np.isfinite(full).all():
            xx, yy, zz, xy, xz, yz = full
            matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        else:
            matrix = np.diag(np.array(body.inertia, dtype=np.float64))
        if float(body.mass) == 0.0 and not matrix.any():
            continue  # massless by intention; MuJoCo checks whether it may be
        problem = inertia_problem(float(body.mass), matrix)
        if problem:
            raise SceneError(f"Body '{body.name or '(unnamed)'}': {problem}. Mend its <inertial>.")


def warn_implausible(model: Model) -> None:
    """Suspect millimetres in masses and sizes that no scene of a robot has."""
    for body in np.flatnonzero(model.body_mass > _HEAVY):
        warnings.warn(
            f"Body '{model.body(body).name}' weighs {model.body_mass[body]:.4g} kg. MJCF is in kg "
            "and m: a geometry in millimetres makes masses a thousand million times too large.",
            SameworldWarning,
            stacklevel=2,
        )
    plane = int(mj.mjtGeom.mjGEOM_PLANE)
    for geom in np.flatnonzero((model.geom_rbound > _LARGE) & (model.geom_type != plane)):
        warnings.warn(
            f"Geom '{model.geom(geom).name}' has a radius of {model.geom_rbound[geom]:.4g} m. MJCF "
            "is in metres; was it written in millimetres?",
            SameworldWarning,
            stacklevel=2,
        )


def warn_leaky_meshes(model: Model, weighed: Iterable[str]) -> None:
    """Warn where a mass comes from a mesh that does not enclose a volume.

    Args:
        model: The compiled model.
        weighed: Bodies whose inertia MuJoCo computed from their geoms.
    """
    mesh_kind = int(mj.mjtGeom.mjGEOM_MESH)
    for name in weighed:
        body = model.body(name)
        first, count = int(body.geomadr[0]), int(body.geomnum[0])
        meshes = {
            int(model.geom_dataid[geom])
            for geom in range(first, first + count)
            if int(model.geom_type[geom]) == mesh_kind and model.body_weldid[body.id] != 0
        }
        for mesh in sorted(meshes):
            if not _is_closed(model, mesh):
                warnings.warn(
                    f"The mass of body '{name}' comes from mesh '{model.mesh(mesh).name}', which "
                    "is not watertight: mass and inertia may be far off. Write an <inertial>.",
                    SameworldWarning,
                    stacklevel=2,
                )


def _is_closed(model: Model, mesh: int) -> bool:
    """Whether every edge is shared by exactly two faces that run along it in opposite ways."""
    first, count = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    faces = model.mesh_face[first : first + count].astype(np.int64)
    size = int(model.mesh_vertnum[mesh])
    start, end = faces.ravel(), np.roll(faces, -1, axis=1).ravel()
    there, back = np.sort(start * size + end), np.sort(end * size + start)
    return bool(np.array_equal(there, back) and (np.diff(there) > 0).all())
