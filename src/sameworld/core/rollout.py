"""``rollout`` and ``simulate``: open and closed loop, written once against the protocol."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from sameworld.core.agents import Policy, Task
from sameworld.core.arrays import Array, BoolArray, Signals
from sameworld.core.errors import RolloutError, SpecError
from sameworld.core.spec import Spec
from sameworld.core.values import Values
from sameworld.core.world import Context, Rollout, RolloutWorld, State, World

__all__ = ["finite_so_far", "loop", "rollout", "rollout_from", "simulate", "trust_over"]


def rollout(
    world: World,
    start: Values | Context,
    actions: Array,
    *,
    parameters: Values | None = None,
    seed: int = 0,
    raise_on_failure: bool = False,
) -> Rollout:
    """Simulate a batch under given actions.

    Args:
        world: Any world.
        start: Starts [B, S] or a context.
        actions: Actions [B, T, A]; a leading 1 is repeated to the batch.
        parameters: Parameter values [B, P'] or [1, P'].
        seed: Seed of the random keys.
        raise_on_failure: Raise on the first failed element instead of marking it invalid.

    Returns:
        Signals [B, T+1, ...] with validity and trust.

    Raises:
        SpecError: Shapes or names do not fit the spec.
        RolloutError: An element failed and ``raise_on_failure`` is set.
    """
    actions = world.spec.check_actions(actions)
    batch = max(start.batch, actions.shape[0], 1 if parameters is None else parameters.batch)
    if isinstance(start, Values):
        start = start.broadcast(batch)
    if actions.shape[0] == 1 and batch > 1:
        actions = np.broadcast_to(actions, (batch, *actions.shape[1:]))
    if actions.shape[0] != batch:
        raise SpecError(f"Actions hold {actions.shape[0]} elements, the start holds {start.batch}.")
    return rollout_from(
        world, world.reset(start, parameters, seed=seed), actions, raise_on_failure=raise_on_failure
    )


def rollout_from(
    world: World, state: State, actions: Array, *, raise_on_failure: bool = False
) -> Rollout:
    """Simulate actions [B, T, A] from a state, by the world's fast path if it declares one."""
    if "rollout" in world.spec.capabilities:
        result = cast(RolloutWorld, world).rollout(state, actions)
    else:
        result = loop(world, state, actions)
    result = replace(result, trust=trust_over(world, result.time, result.valid))
    if raise_on_failure:
        for element, reason in enumerate(result.reason):
            if reason:
                raise RolloutError(f"Element {element} of the rollout failed: {reason}")
    return result


def loop(world: World, state: State, actions: Array) -> Rollout:
    """Roll out by looping ``step``: the reference twin of every fast path."""
    seen = [world.observe(state)]
    for tick in range(actions.shape[1]):
        state = world.step(state, actions[:, tick])
        seen.append(world.observe(state))
    return _assemble(world.spec, seen, actions)


def _assemble(spec: Spec, seen: list[Signals], actions: Array) -> Rollout:
    signals = {c.name: np.stack([s[c.name] for s in seen], axis=1) for c in spec.observations}
    valid = finite_so_far(signals)
    batch, rows = valid.shape
    return Rollout(
        time=spec.period * np.arange(rows, dtype=np.float64),
        signals=signals,
        valid=valid,
        trust=np.full((batch, rows), np.nan),
        reason=tuple("" if ok else "signals became NaN or infinite" for ok in valid[:, -1]),
        actions=actions,
    )


def finite_so_far(signals: Mapping[str, Array]) -> BoolArray:
    """Rows [B, T] up to which every signal stayed finite."""
    fine = [np.isfinite(v.reshape(*v.shape[:2], -1)).all(axis=-1) for v in signals.values()]
    return np.logical_and.accumulate(np.logical_and.reduce(fine), axis=1)


def trust_over(world: World, time: Array, valid: BoolArray) -> Array:
    """Probability that errors stay within the spec's tolerances, [B, T+1].

    The smallest over channels, from the belief's discrepancy at each horizon; NaN where the world's
    errors were never measured or no tolerance is declared; 0 where the simulation is invalid.
    """
    discrepancy = world.parameters.discrepancy
    trust = np.full(valid.shape, np.nan)
    if discrepancy is not None:
        rows = [
            discrepancy.channels[c.name].within(time, c.tolerance)
            for c in world.spec.observations
            if c.name in discrepancy.channels and np.isfinite(c.tolerance)
        ]
        if rows:
            trust[:] = np.min(rows, axis=0)
    return np.where(valid, trust, 0.0)


def simulate(
    world: World,
    policy: Policy,
    start: Values | Context,
    ticks: int,
    *,
    task: Task | None = None,
    parameters: Values | None = None,
    seed: int = 0,
) -> Rollout:
    """Run a policy in a world, closed loop.

    The policy's declared latency delays its actions by whole ticks; until the first one arrives
    the actions are zero.

    Args:
        world: Any world.
        policy: The controller.
        start: Starts [B, S] or a context.
        ticks: Control ticks T.
        task: Scores every row if given.
        parameters: Parameter values.
        seed: Seed of the random keys.

    Returns:
        Rollout with the actions taken [B, T, A] and, with a task, its cost [B, T+1].

    Raises:
        SpecError: The task needs a signal the world does not offer.
    """
    if task is not None:
        task.check(world.spec)
    state = world.reset(start, parameters, seed=seed)
    batch, size = state.batch, world.spec.action_size
    carry: Any = policy.init(batch)
    waiting: deque[Array] = deque(np.zeros((batch, size)) for _ in range(policy.latency))
    seen, taken = [world.observe(state)], list[NDArray[Any]]()
    for _ in range(ticks):
        carry, action = policy.act(carry, seen[-1])
        given = np.asarray(action, dtype=np.float64).reshape(batch, -1)
        waiting.append(world.spec.completed(given).reshape(batch, size))
        taken.append(waiting.popleft())
        state = world.step(state, taken[-1])
        seen.append(world.observe(state))
    actions = np.stack(taken, axis=1) if taken else np.zeros((batch, 0, size))
    result = _assemble(world.spec, seen, actions)
    result = replace(result, trust=trust_over(world, result.time, result.valid))
    if task is None:
        return result
    return replace(result, cost=np.stack([task.cost(s) for s in seen], axis=1))
