"""From accelerations to the next positions and velocities.

Source: MuJoCo documentation, chapter Computation, section "Numerical integration": semi-implicit
Euler with joint damping implicit, and ``implicitfast``, where forces of dampers and actuators are
implicit in velocity. A free body on its own also has its gyroscopic forces implicit there.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.worlds.differentiable.dynamics import solved
from sameworld.worlds.differentiable.instant import Inputs, Smooth
from sameworld.worlds.differentiable.kinematics import Leaves
from sameworld.worlds.differentiable.spatial import (
    arranged,
    cross,
    multiplied,
    normalised,
    rotation_exp,
)
from sameworld.worlds.differentiable.structure import Structure
from sameworld.worlds.differentiable.typed import jacfwd, solve, zeros_like

__all__ = ["displaced", "integrated_acceleration"]


def integrated_acceleration(
    s: Structure, leaves: Leaves, at: Smooth, v: jax.Array, given: Inputs, force: jax.Array
) -> jax.Array:
    """Change of velocity per second [nv] over the step.

    Args:
        s: The structure.
        leaves: Arrays of the model.
        at: The instant without constraints.
        v: Velocities [nv].
        given: What acts from outside.
        force: All forces, those of constraints too [nv].
    """
    if s.implicit and len(s.alone[0]) * 6 == s.nv:
        return _gyroscopic(s, leaves, at, v, force, force)
    if s.implicit:
        found = solved(at.mass - s.timestep * _symmetric(s, at.slope), force)
        return _gyroscopic(s, leaves, at, v, force, found)
    if s.is_disabled("EULERDAMP") or s.is_disabled("DAMPER"):
        return solved(at.mass, force)
    return solved(at.mass + s.timestep * jnp.diag(given.damping), force)


def _symmetric(s: Structure, slope: jax.Array) -> jax.Array:
    """Slope as implicit integration takes it.

    Only between dofs that MuJoCo couples, and not in the rows of lone free bodies, which are solved
    apart.
    """
    keep = s.dofs.coupled.copy()
    for first in s.alone[0].tolist():
        keep[first : first + 6] = keep[:, first : first + 6] = False
    return jnp.where(keep, slope, 0.0)


def _gyroscopic(
    s: Structure,
    leaves: Leaves,
    at: Smooth,
    v: jax.Array,
    force: jax.Array,
    found: jax.Array,
) -> jax.Array:
    """Solve every lone free body by itself, with the derivative of its bias force."""
    dofs, bodies = s.alone
    if not len(dofs):
        return found
    columns = dofs[:, None] + np.arange(6)
    blocks = columns[:, :, None], columns[:, None, :]
    matrix = at.mass[blocks] - s.timestep * at.slope[blocks]
    matrix = matrix + s.timestep * _bias_slope(leaves, at, bodies, v[columns[:, 3:]])
    solution = solve(matrix, force[columns][:, :, None])[:, :, 0]
    if columns.size == s.nv:
        return arranged(s.nv, [(columns, solution)])
    other = np.setdiff1d(np.arange(s.nv), columns)
    return arranged(s.nv, [(columns, solution), (other, found[other])])


def _bias_slope(leaves: Leaves, at: Smooth, bodies: np.ndarray, spin: jax.Array) -> jax.Array:
    """Derivative of the bias force of free bodies by their velocities [n, 6, 6].

    With the offset c of the centre of mass and the angular velocity w in the world, the bias is
    ``f = m w x (w x c)`` and ``R' (c x f + w x I w)`` in the joint's coordinates.
    """
    turn, mass = at.pose.rotation[bodies], leaves["body_mass"][bodies]
    offset = at.pose.centre[bodies] - at.pose.position[bodies]
    inertia = at.bodies.central[bodies]

    def bias(rate: jax.Array, r: jax.Array, m: jax.Array, c: jax.Array, i: jax.Array) -> jax.Array:
        w = r @ rate
        force = m * cross(w, cross(w, c))
        return jnp.concatenate([force, r.T @ (cross(c, force) + cross(w, i @ w))])

    slope = jax.vmap(jacfwd(bias))(spin, turn, mass, offset, inertia)
    return jnp.concatenate([zeros_like(slope), slope], axis=2)


def displaced(s: Structure, q: jax.Array, v: jax.Array, duration: float) -> jax.Array:
    """Positions [nq] after moving with constant velocities [nv] for a while [s]."""
    _, qpos, dof = s.scalars
    first, speeds = s.shifts
    if not len(s.turns[0]):
        return q + duration * v
    shift = first[:, None] + np.arange(3)
    quaternions, rates = s.turns
    turn = quaternions[:, None] + np.arange(4)
    step = rotation_exp(duration * v[rates[:, None] + np.arange(3)])
    parts = [
        (qpos, q[qpos] + duration * v[dof]),
        (shift, q[shift] + duration * v[speeds[:, None] + np.arange(3)]),
        (turn, normalised(multiplied(q[turn], step))),
    ]
    return arranged(s.nq, parts)
