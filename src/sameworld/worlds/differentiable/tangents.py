"""Derivatives of signals by starts, parameters and actions, of one element. Pure JAX functions.

Forward mode carries one tangent per name through the simulation; reverse mode carries one cotangent
of all signals back. Both go through everything: sensor delays and gains, components, contacts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from sameworld.core.spec import ChannelSpec
from sameworld.worlds.differentiable.element import Element, Trace
from sameworld.worlds.differentiable.spatial import multiplied
from sameworld.worlds.differentiable.typed import arange, full, jvp, vjp, zeros

__all__ = ["Direction", "Tangents"]

_A = TypeVar("_A")


class Direction(NamedTuple, Generic[_A]):
    """A direction in starts, parameters and actions.

    Attributes:
        starts: [S].
        values: [P].
        offset: Added to the action of every tick [A].
    """

    starts: _A
    values: _A
    offset: _A


@dataclass(frozen=True, kw_only=True, eq=False)
class Tangents:
    """Derivatives of one element.

    Attributes:
        element: Functions of the element.
        depths: Past ticks that delayed channels need.
        motion_only: Whether reverse mode leaves parameters out; their derivatives are NaN then.
    """

    element: Element
    depths: Mapping[str, int]
    motion_only: bool = False

    def forward(
        self,
        starts: jax.Array,
        values: jax.Array,
        actions: jax.Array,
        directions: Direction[jax.Array],
        ticks: jax.Array,
    ) -> tuple[dict[str, jax.Array], dict[str, jax.Array], jax.Array]:
        """Signals, their derivatives, and which rows are fine.

        Args:
            starts: Start values [S].
            values: Parameters [P].
            actions: Actions [T, A].
            directions: Directions with leading axis N.
            ticks: Ticks to simulate.

        Returns:
            Channel to signals [T+1, *shape]; channel to derivatives [T+1, D, N]; rows [T+1].
        """

        def seen(at: Direction[jax.Array]) -> tuple[dict[str, jax.Array], jax.Array]:
            moved = actions + at.offset
            carry = self.element.placed(at.values, at.starts)
            return self._seen(at.values, self.element.simulated(at.values, carry, moved, ticks))

        point = Direction(starts, values, zeros(actions.shape[1]))

        def pushed(direction: Direction[jax.Array]) -> Any:
            return jvp(seen, (point,), (direction,), has_aux=True)

        signals, slopes, fine = jax.vmap(pushed, out_axes=(None, 0, None))(directions)
        found = {
            c.name: _tangential(c, signals[c.name], slopes[c.name])
            for c in self.element.tables.spec.observations
        }
        return signals, found, fine

    def backward(
        self,
        starts: jax.Array,
        values: jax.Array,
        actions: jax.Array,
        pulls: dict[str, jax.Array],
        ticks: jax.Array,
    ) -> tuple[dict[str, jax.Array], jax.Array, jax.Array, jax.Array]:
        """Signals, and the derivative of a weighted sum of their tangents.

        Args:
            starts: Start values [S].
            values: Parameters [P].
            actions: Actions [T, A].
            pulls: Channel to weights [T+1, D] of the tangent components, 0 beyond ``ticks``.
            ticks: Ticks to simulate, at most T; later rows of signals are those of the end.

        Returns:
            Channel to signals [T+1, *shape]; derivatives by starts [S], parameters [P] and actions
            [T, A].
        """

        def seen(starts: jax.Array, values: jax.Array, actions: jax.Array) -> dict[str, jax.Array]:
            carry = self.element.placed(values, starts)
            return self._seen(values, self.element.scanned(values, carry, actions, ticks))[0]

        def moving(starts: jax.Array, actions: jax.Array) -> dict[str, jax.Array]:
            return seen(starts, values, actions)

        if self.motion_only:
            signals, back = vjp(moving, starts, actions)
        else:
            signals, back = vjp(seen, starts, values, actions)
        cotangents = {
            c.name: _cotangential(c, signals[c.name], pulls[c.name])
            for c in self.element.tables.spec.observations
        }
        found = back(cotangents)
        by_values = full(values.shape, np.nan) if self.motion_only else found[1]
        return signals, found[0], by_values, found[-1]

    def _seen(self, values: jax.Array, trace: Trace) -> tuple[dict[str, jax.Array], jax.Array]:
        """Reported signals [T+1, *shape] and which rows are fine."""
        element, rows = self.element, trace.rows
        period = element.tables.spec.period
        time = period * arange(len(rows.q), dtype=values.dtype)
        signals = element.signals(rows, element.sensed(values, rows, time))
        known = jax.lax.stop_gradient(values) if element.fixed else values
        return self._reported(known, signals), rows.fine

    def _reported(self, values: jax.Array, signals: dict[str, jax.Array]) -> dict[str, jax.Array]:
        """Signals after delay, gain and bias, from a start at which nothing moved before."""
        sensing = self.element.tables.sensing
        raw = cast("dict[str, Any]", signals)
        first = {name: signal[0] for name, signal in raw.items()}
        past = sensing.started(first, self.depths)
        return cast("dict[str, jax.Array]", sensing.applied(raw, past, cast("Any", values)))


def _tangential(channel: ChannelSpec, signal: jax.Array, slopes: jax.Array) -> jax.Array:
    """Tangent components [T+1, D, N] of slopes [N, T+1, *shape].

    A quaternion turns by ``2 vec(q^-1 dq)`` in its own frame.
    """
    if channel.manifold == "quaternion":
        inverse = signal * np.array([1.0, -1.0, -1.0, -1.0])
        slopes = 2 * multiplied(inverse[None], slopes)[..., 1:]
    flat = slopes.reshape(*slopes.shape[:2], -1)
    return jnp.moveaxis(flat, 0, -1)


def _cotangential(channel: ChannelSpec, signal: jax.Array, pull: jax.Array) -> jax.Array:
    """Weights of a signal's numbers [T+1, *shape] from those of its tangents [T+1, D]."""
    if channel.manifold != "quaternion":
        return pull.reshape(signal.shape)
    zero = zeros((*pull.shape[:-1], 1))
    return 2 * multiplied(signal, jnp.concatenate([zero, pull], axis=-1))
