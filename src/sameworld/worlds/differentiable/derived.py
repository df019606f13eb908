"""What MuJoCo's compiler derives from a model, as differentiable functions of its arrays.

``mj_setConst`` is the C counterpart: inverse weights see the inertia at the reference
configuration, so they move when a mass does.

Source: MuJoCo documentation, chapter Computation, section "Parameters" of the constraint model;
chapter Modeling, section "Contact parameters".
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.compiled.engine import Model
from sameworld.worlds.differentiable.dynamics import inertia_matrix, inertias, inverted
from sameworld.worlds.differentiable.forces import Actuators
from sameworld.worlds.differentiable.kinematics import Leaves, point_axes, posed
from sameworld.worlds.differentiable.structure import Index, Structure
from sameworld.worlds.differentiable.typed import asarray, diagonal, einsum, eye

__all__ = ["Mixing", "friction_mixed", "inverse_weights", "joint_totals", "mixing_of"]

_MINVAL = 1e-15


def joint_totals(a: Actuators, leaves: Leaves) -> dict[str, jax.Array]:
    """Armature and damping of joints with what actuators add."""
    if not a.count:
        return {}
    square = (leaves["actuator_gear"][:, 0] ** 2)[:, None] * a.dof
    return {
        "dof_armature": leaves["dof_armature"] + leaves["actuator_armature"] @ square,
        "dof_damping": leaves["dof_damping"] + leaves["actuator_damping"] @ square,
    }


# ---- inverse weights ---------------------------------------------------------------------------


def inverse_weights(s: Structure, leaves: Leaves) -> tuple[dict[str, jax.Array], jax.Array]:
    """Inverse inertia that bodies and dofs show at the reference configuration.

    Returns:
        ``body_invweight0`` [nbody, 2] and ``dof_invweight0`` [nv]; the inverse inertia matrix there
        [nv, nv].
    """
    pose = posed(s, leaves, leaves["qpos0"])
    mass = inertia_matrix(s, leaves, pose, inertias(leaves, pose))
    inverse = _inverse(mass)
    moves = s.dofs.moves[:, :, None]
    linear, angular = point_axes(pose, pose.centre) * moves, pose.angular * moves
    both = jnp.stack([linear, angular])
    spread = einsum("abic,ij,abjc->ba", both, inverse, both) / 3
    averaged = _averaged(s, inverse)
    if len(s.sliders):
        spread = spread.at[s.sliders, 0].set(1 / leaves["body_mass"][s.sliders])
        dofs = np.flatnonzero(np.isin(s.dofs.body, s.sliders))
        averaged = averaged.at[dofs].set(1 / leaves["body_mass"][s.dofs.body[dofs]])
    return {"body_invweight0": spread, "dof_invweight0": averaged}, inverse


def _inverse(matrix: jax.Array) -> jax.Array:
    """Inverse with derivative: one step of ``X (2 - A X)`` from the fixed inverse."""
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


class Mixing:
    """How the parameters of two geoms become those of their contact.

    Attributes:
        first: First geom of every pair [P].
        second: Second geom [P].
        weight: Share of the first geom in the mean of solver parameters [P, 1].
        boss: 0 or 1 for the geom that decides alone, -1 for neither [P, 1].
    """

    def __init__(self, model: Model, geoms: Index) -> None:
        self.first, self.second = geoms[:, 0], geoms[:, 1]
        mix = np.asarray(model.geom_solmix, dtype=np.float64)
        self.weight = np.array(
            [[_share(a, b)] for a, b in zip(mix[self.first], mix[self.second], strict=True)]
        ).reshape(-1, 1)
        rank = np.asarray(model.geom_priority)
        ahead = rank[self.first] - rank[self.second]
        self.boss = np.where(ahead > 0, 0, np.where(ahead < 0, 1, -1))[:, None]

    def chosen(self, first: jax.Array, second: jax.Array, equal: jax.Array) -> jax.Array:
        """Values of the geom that decides, ``equal`` where neither does."""
        return jnp.where(self.boss == 0, first, jnp.where(self.boss == 1, second, equal))


def mixing_of(model: Model, geoms: Index) -> Mixing:
    """Rules for pairs of geoms [P, 2]."""
    return Mixing(model, geoms)


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
