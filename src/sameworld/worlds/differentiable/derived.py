"""What MuJoCo's compiler derives from a model, as differentiable functions of its arrays.

``mj_setConst`` is the C counterpart: inverse weights see the inertia at the reference
configuration, so they move when a mass does.

Source: MuJoCo documentation, chapter Computation, section "Parameters" of the constraint model;
chapter Modeling, section "Contact parameters".
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from sameworld.worlds.compiled.engine import Model
from sameworld.worlds.differentiable.dynamics import inverted
from sameworld.worlds.differentiable.forces import Actuators
from sameworld.worlds.differentiable.kinematics import Leaves, Pose, point_axes
from sameworld.worlds.differentiable.structure import Index, Structure
from sameworld.worlds.differentiable.typed import asarray, diagonal, einsum, eye

__all__ = [
    "Mixing",
    "friction_mixed",
    "inverse_of",
    "inverse_weights",
    "mixing_of",
    "with_actuators",
]

_MINVAL = 1e-15


def with_actuators(a: Actuators, leaves: Leaves) -> dict[str, jax.Array]:
    """Armature and damping of joints and tendons with what actuators add."""
    if not a.count:
        return {}
    square = (leaves["actuator_gear"][:, 0] ** 2)[:, None]
    pulls = np.equal.outer(a.tendon, np.arange(leaves["tendon_damping"].shape[0]))
    found: dict[str, jax.Array] = {}
    for part in ("armature", "damping"):
        own = leaves[f"actuator_{part}"]
        found[f"dof_{part}"] = leaves[f"dof_{part}"] + own @ (square * a.dof)
        if a.uses_tendons:
            found[f"tendon_{part}"] = leaves[f"tendon_{part}"] + own @ (square * pulls)
    return found


# ---- inverse weights ---------------------------------------------------------------------------


def inverse_weights(
    s: Structure, leaves: Leaves, pose: Pose, inverse: jax.Array
) -> dict[str, jax.Array]:
    """Inverse inertia that bodies and dofs show at the reference configuration.

    Args:
        s: The structure.
        leaves: Arrays of the model.
        pose: Where everything is at the reference configuration.
        inverse: Inverse of the inertia matrix there [nv, nv].

    Returns:
        ``body_invweight0`` [nbody, 2] and ``dof_invweight0`` [nv].
    """
    moves = s.dofs.moves[:, :, None]
    linear, angular = point_axes(pose, pose.centre) * moves, pose.angular * moves
    both = jnp.stack([linear, angular])
    spread = einsum("abic,ij,abjc->ba", both, inverse, both) / 3
    averaged = _averaged(s, inverse)
    if len(s.sliders):
        spread = spread.at[s.sliders, 0].set(1 / leaves["body_mass"][s.sliders])
        dofs = np.flatnonzero(np.isin(s.dofs.body, s.sliders))
        averaged = averaged.at[dofs].set(1 / leaves["body_mass"][s.dofs.body[dofs]])
    return {"body_invweight0": spread, "dof_invweight0": averaged}


def inverse_of(matrix: jax.Array) -> jax.Array:
    """Inverse of an inertia matrix: one step ``X (2 - A X)`` from a fixed one, with derivative."""
    fixed = inverted(matrix)
    return fixed @ (2 * eye(len(matrix)) - matrix @ fixed)


def _averaged(s: Structure, inverse: jax.Array) -> jax.Array:
    """Diagonal of the inverse inertia, averaged over the axes of ball and free joints."""
    groups = np.eye(s.nv)
    for first in (*s.turns[1].tolist(), *s.shifts[1].tolist()):
        groups[first : first + 3] = 0.0
        groups[first : first + 3, first : first + 3] = 1 / 3
    return asarray(groups) @ diagonal(inverse)


# ---- contact parameters ------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixing:
    """How the parameters of two geoms become those of their contact.

    Attributes:
        first: First geom of every pair [P].
        second: Second geom [P].
        weight: Share of the first geom in the mean of solver parameters [P, 1].
        boss: 0 or 1 for the geom that decides alone, -1 for neither [P, 1].
    """

    first: Index
    second: Index
    weight: NDArray[np.float64]
    boss: Index

    def chosen(self, first: jax.Array, second: jax.Array, equal: jax.Array) -> jax.Array:
        """Values of the geom that decides, ``equal`` where neither does."""
        return jnp.where(self.boss == 0, first, jnp.where(self.boss == 1, second, equal))


def mixing_of(model: Model, geoms: Index) -> Mixing:
    """Rules for pairs of geoms [P, 2]."""
    first, second = geoms[:, 0], geoms[:, 1]
    mix = np.asarray(model.geom_solmix, dtype=np.float64)
    shares = [_share(a, b) for a, b in zip(mix[first], mix[second], strict=True)]
    rank = np.asarray(model.geom_priority)
    ahead = rank[first] - rank[second]
    boss = np.where(ahead > 0, 0, np.where(ahead < 0, 1, -1))
    return Mixing(
        first=first, second=second, weight=np.array(shares).reshape(-1, 1), boss=boss[:, None]
    )


def _share(first: float, second: float) -> float:
    if first >= _MINVAL and second >= _MINVAL:
        return first / (first + second)
    if first < _MINVAL and second < _MINVAL:
        return 0.5
    return 0.0 if first < _MINVAL else 1.0


def friction_mixed(m: Mixing, leaves: Leaves) -> dict[str, jax.Array]:
    """Contact parameters of pairs, mixed from their geoms, by the names of ``pair_*`` arrays."""
    friction = leaves["geom_friction"]
    a, b = friction[m.first], friction[m.second]
    three = m.chosen(a, b, jnp.maximum(a, b))
    reference = leaves["geom_solref"]
    a, b = reference[m.first], reference[m.second]
    both = (a[:, :1] > 0) & (b[:, :1] > 0)
    mean = a * m.weight + b * (1 - m.weight)
    solref = m.chosen(a, b, jnp.where(both, mean, jnp.minimum(a, b)))
    level = leaves["geom_solimp"]
    a, b = level[m.first], level[m.second]
    return {
        "friction": three[:, np.array([0, 0, 1, 2, 2])],
        "solref": solref,
        "solimp": m.chosen(a, b, a * m.weight + b * (1 - m.weight)),
    }
