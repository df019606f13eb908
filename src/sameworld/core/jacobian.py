"""``jacobian``: derivatives of signals, exact where declared, else one batched rollout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.errors import SpecError, closest, listed
from sameworld.core.parameters import Parameter
from sameworld.core.rollout import rollout, rollout_from
from sameworld.core.signals import difference
from sameworld.core.values import Values
from sameworld.core.world import Context, GradientWorld, Rollout, World

__all__ = ["Jacobian", "default_step", "jacobian"]

_ACTION = "action:"


@dataclass(frozen=True, kw_only=True, eq=False)
class Jacobian:
    """Derivatives of signals with respect to named starts and parameters.

    Attributes:
        wrt: Names N.
        rollout: The rollout at the point itself, batch B.
        derivatives: Channel name to [B, T+1, D, N], D tangent components of the channel.
        method: How they were computed.
        rollouts: Simulated trajectories spent.
    """

    wrt: tuple[str, ...]
    rollout: Rollout
    derivatives: Mapping[str, Array]
    method: Literal["gradient", "differences"]
    rollouts: int


def default_step(parameter: Parameter) -> float:
    """A central-difference step for smooth dynamics [unit of the parameter]."""
    spread = parameter.std if math.isfinite(parameter.std) else 1.0
    if parameter.transform == "log" and parameter.value > 0:
        return 1e-4 * parameter.value
    return 1e-5 * max(abs(parameter.value), min(spread, 1.0), 1e-3)


def jacobian(
    world: World,
    start: Values | Context,
    actions: Array,
    *,
    wrt: Sequence[str],
    parameters: Values | None = None,
    steps: Mapping[str, float] | None = None,
    method: Literal["auto", "gradient", "differences"] = "auto",
    central: bool = True,
    seed: int = 0,
) -> Jacobian:
    """Differentiate every signal with respect to starts and parameters.

    Every batch element has its own derivative, so perturbing start component k moves the starts
    of *all* elements in the same rollout: 1 + 2N (or 1 + N) simulated trajectories per element
    whatever the batch (an arrowhead Jacobian when elements are episodes).

    Args:
        world: Any world.
        start: Starts [B, S] or a context.
        actions: Actions [B, T, A].
        wrt: Names of start and world parameters, and ``action:NAME`` for an offset of a scalar
            action over all ticks.
        parameters: Parameter values [B or 1, P'].
        steps: Difference steps by name [unit]; ``default_step`` where absent.
        method: ``auto`` takes the world's gradient where declared.
        central: Central differences; one-sided ones (upwards) cost half and are of first order.
        seed: Seed of the random keys, the same for every perturbed copy.

    Returns:
        Derivatives and the rollout at the point.

    Raises:
        SpecError: An unknown name, or a gradient asked of a world without one.
    """
    wrt = tuple(wrt)
    exact = "gradient" in world.spec.capabilities and isinstance(start, Values)
    exact = exact and not any(name.startswith(_ACTION) for name in wrt)
    if method == "gradient" and not exact:
        raise SpecError(
            "No exact derivative here: the world declares no 'gradient', or it is asked for a "
            "context or for actions. Use method='differences' or 'auto'."
        )
    _check_names(world, wrt)
    actions = world.spec.check_actions(actions)
    batch = max(start.batch, len(actions), 1 if parameters is None else parameters.batch)
    actions = np.broadcast_to(actions, (batch, *actions.shape[1:]))
    moved = [name for name in wrt if name in world.parameters.names]
    values = world.parameters.mean.select(moved).broadcast(batch)
    values = values if parameters is None else values.updated(parameters)
    point = _Point(start=_filled(world, start, batch), parameters=values, actions=actions)
    if exact and method != "differences" and isinstance(start, Values):
        base = rollout(world, start.broadcast(batch), actions, parameters=values, seed=seed)
        found = cast(GradientWorld, world).gradient(
            start.broadcast(batch), actions, values, wrt, seed=seed
        )
        return Jacobian(wrt=wrt, rollout=base, derivatives=found, method="gradient", rollouts=batch)
    return _differences(world, point, wrt, steps or {}, central, seed)


def _filled(world: World, start: Values | Context, batch: int) -> Values | Context:
    if isinstance(start, Context):
        return start
    return world.spec.start.mean.broadcast(batch).updated(start)


def _check_names(world: World, wrt: tuple[str, ...]) -> None:
    acts = [_ACTION + c.name for c in world.spec.actions if c.shape == ()]
    known = (*world.spec.start.names, *world.parameters.names, *acts)
    for name in wrt:
        if name not in known:
            raise SpecError(
                f"Cannot differentiate with respect to '{name}'.{closest(name, known)} "
                f"Known: {listed(known)}."
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Point:
    """Where derivatives are taken: a batch of starts, parameters and actions."""

    start: Values | Context
    parameters: Values
    actions: Array

    def moved(self, world: World, name: str, by: Array) -> _Point:
        """The point with one input moved by ``by`` [B]."""
        if name.startswith(_ACTION):
            names = [_ACTION + c.name for c in world.spec.actions for _ in range(c.size)]
            actions = self.actions.copy()
            actions[:, :, names.index(name)] += by[:, None]
            return replace(self, actions=actions)
        field = "parameters" if name in self.parameters.names else "start"
        source = cast(Values, getattr(self, field))
        array = source.array.copy()
        array[:, source.index(name)] += by
        return replace(self, **{field: Values(names=source.names, array=array)})

    def here(self, world: World, name: str) -> tuple[Array, Parameter | None]:
        """Values of an input [B] and the parameter behind it."""
        if name.startswith(_ACTION):
            return np.zeros(len(self.actions)), None
        if name in self.parameters.names:
            return self.parameters.column(name), world.parameters[name]
        return cast(Values, self.start).column(name), world.spec.start[name]


def _stacked(points: Sequence[_Point]) -> _Point:
    """Many points as one batch."""
    first = points[0].start
    if isinstance(first, Context):
        copies = len(points)
        start: Values | Context = Context(
            observations={
                n: np.concatenate([np.asarray(v)] * copies) for n, v in first.observations.items()
            },
            actions=np.concatenate([first.actions] * copies),
        )
    else:
        start = Values.stack([cast(Values, p.start) for p in points])
    return _Point(
        start=start,
        parameters=Values.stack([p.parameters for p in points]),
        actions=np.concatenate([p.actions for p in points]),
    )


def _differences(
    world: World,
    point: _Point,
    wrt: tuple[str, ...],
    steps: Mapping[str, float],
    central: bool,
    seed: int,
) -> Jacobian:
    batch = len(point.actions)
    points, spans = [point], list[Array]()
    for name in wrt:
        here, parameter = point.here(world, name)
        down, up = _bracket(parameter, name, here, steps)
        if not central:
            up, down = np.where(up > here, up, down), here
        spans.append(up - down)
        points += [point.moved(world, name, to - here) for to in ((down, up) if central else (up,))]
    copies, stack = len(points), _stacked(points)
    state = world.reset(stack.start, stack.parameters, seed=seed)
    state = replace(state, key=np.tile(state.key[:batch], copies))  # common random numbers
    result = rollout_from(world, state, stack.actions)
    derivatives: dict[str, Array] = {}
    for channel in world.spec.observations:
        stacked = np.asarray(result.signals[channel.name]).reshape(
            copies, batch, -1, *channel.shape
        )
        ends = [(1 + 2 * k, 2 + 2 * k) if central else (0, 1 + k) for k in range(len(spans))]
        columns = [
            difference(channel, stacked[a], stacked[b]) / span[:, None, None]
            for (a, b), span in zip(ends, spans, strict=True)
        ]
        empty = np.zeros((batch, stacked.shape[2], channel.tangent, 0))
        derivatives[channel.name] = np.stack(columns, axis=-1) if columns else empty
    return Jacobian(
        wrt=wrt,
        rollout=result.rows(slice(0, batch)),
        derivatives=derivatives,
        method="differences",
        rollouts=copies * batch,
    )


def _bracket(
    parameter: Parameter | None, name: str, values: Array, steps: Mapping[str, float]
) -> tuple[Array, Array]:
    """Points below and above, moved inside the bounds (one-sided at a bound)."""
    if parameter is None:
        step = steps.get(name, 1e-5)
        return values - step, values + step
    step = steps.get(name, default_step(parameter))
    down = np.maximum(values - step, parameter.low)
    up = np.minimum(values + step, parameter.high)
    return down, np.where(up > down, up, down + step)
