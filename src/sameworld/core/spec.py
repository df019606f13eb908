"""``Spec``: what a world takes and gives, readable before anything runs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.belief import Belief
from sameworld.core.errors import SpecError, closest, listed

__all__ = ["Capability", "ChannelSpec", "Manifold", "Spec"]

Manifold = Literal["linear", "quaternion"]
Capability = Literal[
    "rollout", "gradient", "pullback", "fit", "correct", "render", "encode", "inverse"
]


@dataclass(frozen=True, kw_only=True)
class ChannelSpec:
    """One signal: an observation or an action.

    Attributes:
        name: Signal name, e.g. ``cube.pos`` or ``elbow.pos``.
        shape: Shape of one sample; ``()`` for a scalar.
        unit: SI unit.
        low: Lower bound of every component [unit].
        high: Upper bound of every component [unit].
        tolerance: Error [unit; rad for quaternions] up to which a prediction counts as good.
        manifold: ``linear``, or ``quaternion`` for unit quaternions wxyz.
        start: Start parameters this signal shows directly at time 0, one per component (for a
            quaternion: the three rotation-vector components).
        rate: Start parameters that are the time derivative of this signal at time 0 (for a
            quaternion: the body-frame angular velocity).
        default: Value of an exogenous input (battery voltage, enable flag) where nobody gives it;
            ``None`` for signals that must be given.
    """

    name: str
    shape: tuple[int, ...] = ()
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    tolerance: float = math.inf
    manifold: Manifold = "linear"
    start: tuple[str, ...] = ()
    rate: tuple[str, ...] = ()
    default: float | None = None

    def __post_init__(self) -> None:
        if self.manifold not in get_args(Manifold):
            raise SpecError(f"Channel '{self.name}' has manifold '{self.manifold}'.")
        if self.manifold == "quaternion" and self.shape != (4,):
            raise SpecError(f"Quaternion channel '{self.name}' needs shape (4,), got {self.shape}.")
        if not self.low <= self.high or not self.tolerance > 0:
            raise SpecError(
                f"Channel '{self.name}' has bounds [{self.low}, {self.high}] and tolerance "
                f"{self.tolerance}."
            )

    @property
    def size(self) -> int:
        """Number of components of one sample."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def tangent(self) -> int:
        """Number of error components: 3 for a quaternion, else ``size``."""
        return 3 if self.manifold == "quaternion" else self.size


@dataclass(frozen=True, kw_only=True, eq=False)
class Spec:
    """The contract of a world.

    Attributes:
        period: Control period [s]: one ``step`` advances time by this much.
        observations: Signals that ``observe`` returns.
        actions: Signals that make up the flat action vector [A], in order.
        start: Belief over start parameters (scope ``episode``) with defaults.
        latency: Time from command to effect that the world already contains [s].
        starts_from: ``start`` for worlds with a state that can be named, ``context`` for worlds
            that begin from what was seen.
        context: Observations K that a context needs (0 for ``start`` worlds).
        stochastic: Whether ``step`` draws from the key in the State.
        capabilities: Optional methods the world has.
    """

    period: float
    observations: tuple[ChannelSpec, ...]
    actions: tuple[ChannelSpec, ...] = ()
    start: Belief = field(default_factory=Belief)
    latency: float = 0.0
    starts_from: Literal["start", "context"] = "start"
    context: int = 0
    stochastic: bool = False
    capabilities: frozenset[Capability] = frozenset()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.period) and self.period > 0):
            raise SpecError(f"Control period is {self.period} s; it must be positive.")
        names = [c.name for c in (*self.observations, *self.actions)]
        if len(set(names)) != len(names):
            twice = sorted({n for n in names if names.count(n) > 1})
            raise SpecError(f"Spec names a channel twice: {listed(twice)}.")
        unknown = set(self.capabilities) - set(get_args(Capability))
        if unknown:
            raise SpecError(f"Unknown capabilities {listed(sorted(unknown))}.")
        if self.starts_from == "context" and self.context < 1:
            raise SpecError("A world that starts from a context must say how many rows it needs.")

    @property
    def action_size(self) -> int:
        """Length A of the flat action vector."""
        return sum(c.size for c in self.actions)

    def completed(self, actions: Array) -> Array:
        """Fill in exogenous inputs that a policy does not decide.

        Args:
            actions: Either whole action vectors [B, A], or only what has no default [B, A'].

        Raises:
            SpecError: Another length.
        """
        own = sum(c.size for c in self.actions if c.default is None)
        if actions.shape[1] not in (own, self.action_size):
            raise SpecError(
                f"Actions hold {actions.shape[1]} numbers per element; the world takes "
                f"{self.action_size} for {listed(c.name for c in self.actions)}, of which "
                f"{self.action_size - own} have a default."
            )
        if actions.shape[1] != own or own == self.action_size:
            return actions
        parts: list[Array] = []
        at = 0
        for channel in self.actions:
            if channel.default is None:
                parts.append(actions[:, at : at + channel.size])
                at += channel.size
            else:
                parts.append(np.full((len(actions), channel.size), channel.default))
        return np.concatenate(parts, axis=1)

    def observation(self, name: str) -> ChannelSpec:
        """Look up an observation channel.

        Raises:
            SpecError: There is none of that name.
        """
        for channel in self.observations:
            if channel.name == name:
                return channel
        names = [c.name for c in self.observations]
        raise SpecError(
            f"World has no observation '{name}'. It has {listed(names)}.{closest(name, names)}"
        )

    def check_actions(self, actions: Array) -> Array:
        """Return actions as float64 [B, T, A].

        Raises:
            SpecError: Wrong shape or non-finite values.
        """
        actions = np.asarray(actions, dtype=np.float64)
        if actions.ndim != 3 or actions.shape[2] != self.action_size:
            names = [c.name for c in self.actions]
            raise SpecError(
                f"Actions need shape [B, T, {self.action_size}] for {listed(names)}, "
                f"got {actions.shape}."
            )
        if not np.isfinite(actions).all():
            raise SpecError("Actions hold NaN or infinite values.")
        return actions

    def agrees_with(self, other: Spec, names: Iterable[str] | None = None) -> bool:
        """Whether two worlds offer the same period, actions and (named) observations."""
        mine = {c.name: (c.shape, c.unit, c.manifold) for c in self.observations}
        theirs = {c.name: (c.shape, c.unit, c.manifold) for c in other.observations}
        wanted = set(mine) | set(theirs) if names is None else set(names)
        acts = [(c.name, c.shape, c.unit) for c in self.actions]
        return (
            math.isclose(self.period, other.period)
            and acts == [(c.name, c.shape, c.unit) for c in other.actions]
            and all(n in mine and mine[n] == theirs.get(n) for n in wanted)
        )
