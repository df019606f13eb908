"""Shapes of dry friction as signals of unit height along a motion.

Source: P. R. Dahl, "A solid friction model", Aerospace Corporation TOR-0158 (1968), exponent 1.
"""

from __future__ import annotations

import numpy as np

from sameworld.core.arrays import Array
from sameworld.stages.identify.torque.config import Friction

__all__ = ["friction_signals", "friction_widths"]


def friction_widths(shape: Friction) -> Array:
    """Widths tried for each joint: rad/s (or m/s) of a sigmoid, rad (or m) of Dahl's way."""
    if shape == "coulomb":
        return np.zeros(1)
    if shape == "sigmoid":
        return np.geomspace(0.005, 0.5, 11)
    return np.geomspace(3e-4, 0.05, 11)


def friction_signals(shape: Friction, v: Array, period: float, widths: Array) -> Array:
    """Friction per unit of its height [N, S, V] for each of S widths.

    Args:
        shape: ``coulomb``: sign of the velocity. ``sigmoid``: ``tanh(v / width)``. ``dahl``: the
            solution of ``dz/dt = (v - |v| z) / width``, which begins at the sign of the velocity.
        v: Velocities [N, V].
        period: Time between rows [s].
        widths: Widths [S], or one per joint [S, V].
    """
    widths = np.broadcast_to(widths.reshape(len(widths), -1), (len(widths), v.shape[1]))
    if shape == "coulomb":
        return np.repeat(np.sign(v)[:, None], len(widths), axis=1)
    if shape == "sigmoid":
        return np.tanh(v[:, None] / widths)
    return _dahl(v, period, widths)


def _dahl(v: Array, period: float, widths: Array) -> Array:
    """Exact for velocities that stay constant between rows."""
    kept = np.exp(-np.abs(v)[:, None] * period / widths)
    goal = np.repeat(np.sign(v)[:, None], len(widths), axis=1)
    out = np.empty_like(kept)
    now = goal[0]
    for row in range(len(v)):
        now = goal[row] + (now - goal[row]) * kept[row]
        out[row] = now
    return out
