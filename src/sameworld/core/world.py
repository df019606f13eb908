"""``World``: the one interface that engines, gradients and learned models share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array, BoolArray, Signals
from sameworld.core.belief import Belief
from sameworld.core.episode import Episode
from sameworld.core.errors import SpecError, listed
from sameworld.core.records import Camera
from sameworld.core.scene import Scene
from sameworld.core.spec import Spec
from sameworld.core.values import Values

__all__ = [
    "Context",
    "FitWorld",
    "GradientWorld",
    "InverseWorld",
    "Mechanism",
    "Pullback",
    "PullbackWorld",
    "RenderWorld",
    "Rollout",
    "RolloutWorld",
    "State",
    "World",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """State of a batch: opaque arrays that clone, select and save bit-exactly.

    Attributes:
        arrays: Whatever the world needs, each with leading axis B.
        time: Seconds since reset [B].
        key: Random key per element [B] (uint64), advanced by stochastic worlds.
        parameters: Parameter values the batch runs with [B, P].
    """

    arrays: Mapping[str, NDArray[Any]]
    time: Array
    key: NDArray[np.uint64]
    parameters: Values

    @property
    def batch(self) -> int:
        """Number of elements B."""
        return len(self.time)

    def rows(self, rows: Sequence[int] | slice | NDArray[Any]) -> State:
        """Keep some elements (with repetition): the way to clone and branch."""
        return State(
            arrays={name: array[rows].copy() for name, array in self.arrays.items()},
            time=self.time[rows].copy(),
            key=self.key[rows].copy(),
            parameters=self.parameters.rows(rows),
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Flat arrays for ``numpy.savez``."""
        flat: dict[str, NDArray[Any]] = {f"state.{n}": a for n, a in self.arrays.items()}
        flat |= {"time": self.time, "key": self.key, "parameters": self.parameters.array}
        return flat | {"names": np.array(self.parameters.names, dtype=np.str_)}

    @classmethod
    def from_arrays(cls, flat: Mapping[str, NDArray[Any]]) -> State:
        """Rebuild from ``to_arrays`` output.

        Raises:
            SpecError: An array is missing.
        """
        missing = {"time", "key", "parameters", "names"} - set(flat)
        if missing:
            raise SpecError(f"Saved state lacks {listed(sorted(missing))}.")
        arrays = {n.removeprefix("state."): flat[n] for n in flat if n.startswith("state.")}
        names = tuple(str(n) for n in flat["names"].tolist())
        return cls(
            arrays=arrays,
            time=flat["time"],
            key=flat["key"],
            parameters=Values(
                names=names, array=flat["parameters"].reshape(len(flat["time"]), len(names))
            ),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Context:
    """What was seen, for worlds that start from it.

    Attributes:
        observations: Signals [B, K, ...] at control ticks, oldest first.
        actions: The actions between them [B, K-1, A].
    """

    observations: Signals
    actions: Array

    @property
    def batch(self) -> int:
        """Number of elements B."""
        return len(self.actions)


@dataclass(frozen=True, kw_only=True, eq=False)
class Rollout:
    """Signals of simulated batch elements; failures are values, not exceptions.

    Attributes:
        time: Seconds since the start [T+1].
        signals: Observations by channel [B, T+1, ...].
        valid: Whether each row is trustworthy numerically [B, T+1].
        trust: Predicted probability that the signal error stays within the spec's tolerances
            [B, T+1]; NaN for a world whose errors were never measured.
        reason: Why an element failed, per element; empty where it did not.
        cost: Task cost per row [B, T+1], if a task was given.
        actions: Actions applied [B, T, A].
    """

    time: Array
    signals: Signals
    valid: BoolArray
    trust: Array
    reason: tuple[str, ...]
    actions: Array
    cost: Array | None = None

    @property
    def batch(self) -> int:
        """Number of elements B."""
        return len(self.valid)

    def rows(self, rows: Sequence[int] | slice) -> Rollout:
        """Keep some elements."""
        index = np.arange(self.batch)[rows]
        return replace(
            self,
            signals={name: values[index] for name, values in self.signals.items()},
            valid=self.valid[index],
            trust=self.trust[index],
            reason=tuple(self.reason[int(i)] for i in index.tolist()),
            actions=self.actions[index],
            cost=None if self.cost is None else self.cost[index],
        )


@runtime_checkable
class World(Protocol):
    """Dynamics with a belief. Pure in ``State``; leading axis B everywhere.

    ``parameters`` is the belief over everything that can be fitted; ``reset`` takes values for any
    subset and fills the rest from the means.
    """

    @property
    def spec(self) -> Spec:
        """What the world takes and gives."""
        ...

    @property
    def scene(self) -> Scene:
        """The scene it simulates."""
        ...

    @property
    def parameters(self) -> Belief:
        """Belief over its parameters (scopes ``scene`` and ``session``)."""
        ...

    def with_belief(self, belief: Belief) -> World:
        """Return the same world believing something else."""
        ...

    def reset(
        self, start: Values | Context, parameters: Values | None = None, *, seed: int = 0
    ) -> State:
        """Place a batch at its start.

        Args:
            start: Start values [B, S] (any subset of ``spec.start``; the rest takes defaults), or
                a context for worlds that start from one.
            parameters: Values [B, P'] or [1, P'] of any subset of the parameters.
            seed: Seed of the keys in the state.

        Raises:
            SpecError: A name is unknown or batches disagree.
        """
        ...

    def step(self, state: State, action: Array) -> State:
        """Advance by one control period under actions [B, A]; ``state`` is not changed."""
        ...

    def observe(self, state: State) -> Signals:
        """Signals of the state, each [B, ...]."""
        ...


@runtime_checkable
class RolloutWorld(World, Protocol):
    """A world with capability ``rollout``: a fast path equal to looping ``step``."""

    def rollout(self, state: State, actions: Array) -> Rollout:
        """Simulate actions [B, T, A] from ``state``."""
        ...


@runtime_checkable
class GradientWorld(World, Protocol):
    """A world with capability ``gradient``."""

    def gradient(
        self, start: Values, actions: Array, parameters: Values, wrt: tuple[str, ...], *, seed: int
    ) -> Mapping[str, Array]:
        """Exact derivatives of every signal.

        Returns:
            Channel name to [B, T+1, D, N]: D tangent components, N names in ``wrt``.
        """
        ...


class Pullback(NamedTuple):
    """Derivatives of a weighted sum of signals, per element.

    Attributes:
        starts: By every start [B, S], in the order of ``spec.start``.
        parameters: By every parameter [B, P], in the order of ``parameters``.
        actions: By every action [B, T, A].
        signals: The signals themselves, by channel [B, T+1, ...].
    """

    starts: Array
    parameters: Array
    actions: Array
    signals: Signals


@runtime_checkable
class PullbackWorld(World, Protocol):
    """A world with capability ``pullback``: reverse-mode derivatives.

    Its cost is a few simulations, however many starts, parameters and actions there are; that of
    ``gradient`` grows with the names asked for.
    """

    def pullback(
        self,
        start: Values,
        actions: Array,
        weights: Mapping[str, Array],
        parameters: Values | None = None,
        *,
        wrt: Sequence[str] | None = None,
        seed: int = 0,
    ) -> Pullback:
        """Exact derivatives of a weighted sum of signals by everything.

        Args:
            start: Starts [B, S].
            actions: Actions [B, T, A].
            weights: Channel name to weights of its tangent components [B, T+1, D]; channels left
                out count nothing.
            parameters: Values [B or 1, P'] of any subset of the parameters.
            wrt: Parameters whose derivatives are wanted, all of them without it. Those of others
                may be NaN where that costs less.
            seed: Seed of stochastic worlds.
        """
        ...


@runtime_checkable
class FitWorld(World, Protocol):
    """A world with capability ``fit``: it trains its own blocks."""

    def fit(self, episodes: Sequence[Episode], *, seed: int) -> FitWorld:
        """Return a world fitted to the episodes."""
        ...


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """Names behind the columns of inverse dynamics.

    Attributes:
        dofs: Names of the velocities, in order: a joint with one of them gives its own name.
        bodies: Bodies that move and have mass.
        torques: Joint to the channel that holds its torque (or force), and the factor from the
            channel to the torque; only joints for which the world knows one.
    """

    dofs: tuple[str, ...]
    bodies: tuple[str, ...]
    torques: Mapping[str, tuple[str, float]]


@runtime_checkable
class InverseWorld(World, Protocol):
    """A world with capability ``inverse``: joint torques from motion, without stepping.

    ``inverse`` is the sum over bodies of ``regressor`` times ``inertias``.
    """

    @property
    def mechanism(self) -> Mechanism:
        """Names behind the columns."""
        ...

    def inverse(
        self,
        q: Array,
        v: Array,
        a: Array,
        parameters: Values | None = None,
        *,
        passive: bool = False,
    ) -> Array:
        """Torques [N, V] that rigid bodies under gravity need to move so, without contacts.

        Args:
            q: Positions [N, Q] rad or m.
            v: Velocities [N, V].
            a: Accelerations [N, V].
            parameters: Values [1 or N, P'] of any subset of the parameters.
            passive: Whether to add armature, damping, dry friction and springs of the joints.
        """
        ...

    def regressor(
        self,
        q: Array,
        v: Array,
        a: Array,
        bodies: Sequence[str],
        parameters: Values | None = None,
    ) -> Array:
        """Derivative [N, V, B, 10] of the torques by the inertial vectors of bodies."""
        ...

    def inertias(self, bodies: Sequence[str], parameters: Values | None = None) -> Array:
        """Inertial vectors [B, 10]: mass, first moments, inertia about the body's origin."""
        ...


@runtime_checkable
class RenderWorld(World, Protocol):
    """A world with capability ``render``."""

    def render(self, state: State, camera: Camera | str) -> NDArray[np.uint8]:
        """Images [B, H, W, 3]."""
        ...
