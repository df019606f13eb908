"""``jacobian``: derivatives of signals, exact where declared, else one batched rollout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, cast

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.belief import Belief
from sameworld.core.errors import SpecError, closest, listed
from sameworld.core.parameters import Parameter
from sameworld.core.rollout import rollout, rollout_from
from sameworld.core.signals import difference
from sameworld.core.values import Values
from sameworld.core.world import GradientWorld, Rollout, World

__all__ = ["Jacobian", "default_step", "jacobian"]


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
    start: Values,
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
        world: A world that starts from named values.
        start: Starts [B, S].
        actions: Actions [B, T, A].
        wrt: Names of start and world parameters.
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
    declared = "gradient" in world.spec.capabilities
    if method == "gradient" and not declared:
        raise SpecError("This world declares no 'gradient'. Use method='differences' or 'auto'.")
    _check_names(world, wrt)
    batch = max(start.batch, len(actions), 1 if parameters is None else parameters.batch)
    point = start.broadcast(batch)
    moved = [name for name in wrt if name in world.parameters.names]
    values = world.parameters.mean.select(moved).broadcast(batch)
    values = values if parameters is None else values.updated(parameters)
    if declared and method != "differences":
        base = rollout(world, point, actions, parameters=values, seed=seed)
        exact = cast(GradientWorld, world).gradient(point, actions, values, wrt, seed=seed)
        return Jacobian(wrt=wrt, rollout=base, derivatives=exact, method="gradient", rollouts=batch)
    return _differences(world, point, actions, values, wrt, steps or {}, central, seed)


def _check_names(world: World, wrt: tuple[str, ...]) -> None:
    known = (*world.spec.start.names, *world.parameters.names)
    for name in wrt:
        if name not in known:
            raise SpecError(
                f"Cannot differentiate with respect to '{name}'. Known: {listed(known)}."
                f"{closest(name, known)}"
            )


def _differences(
    world: World,
    start: Values,
    actions: Array,
    parameters: Values,
    wrt: tuple[str, ...],
    steps: Mapping[str, float],
    central: bool,
    seed: int,
) -> Jacobian:
    batch = start.batch
    base_start = world.spec.start.mean.broadcast(batch).updated(start)
    starts, params = [base_start.array], [parameters.array]
    spans: list[Array] = []
    for name in wrt:
        in_start = name in base_start.names
        source = base_start if in_start else parameters
        belief = world.spec.start if in_start else world.parameters
        here = source.column(name)
        down, up = _bracket(belief, name, here, steps)
        if not central:
            up, down = np.where(up > here, up, down), here
        spans.append(up - down)
        for moved in (down, up) if central else (up,):
            changed = source.array.copy()
            changed[:, source.index(name)] = moved
            starts.append(changed if in_start else base_start.array)
            params.append(parameters.array if in_start else changed)
    copies = len(starts)
    state = world.reset(
        Values(names=base_start.names, array=np.concatenate(starts)),
        Values(names=parameters.names, array=np.concatenate(params)),
        seed=seed,
    )
    state = replace(state, key=np.tile(state.key[:batch], copies))  # common random numbers
    tiled = np.tile(np.broadcast_to(actions, (batch, *actions.shape[1:])), (copies, 1, 1))
    result = rollout_from(world, state, world.spec.check_actions(tiled))
    derivatives: dict[str, Array] = {}
    for channel in world.spec.observations:
        stacked = result.signals[channel.name].reshape(copies, batch, -1, *channel.shape)
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
    belief: Belief, name: str, values: Array, steps: Mapping[str, float]
) -> tuple[Array, Array]:
    """Points below and above, moved inside the bounds (one-sided at a bound)."""
    parameter = belief[name]
    step = steps.get(name, default_step(parameter))
    down = np.maximum(values - step, parameter.low)
    up = np.minimum(values + step, parameter.high)
    return down, np.where(up > down, up, down + step)
