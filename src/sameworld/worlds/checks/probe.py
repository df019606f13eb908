"""What every check works on: a world, a batch of starts and actions, and ways to compare."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array, Signals
from sameworld.core.belief import Belief
from sameworld.core.errors import SpecError
from sameworld.core.manifolds import normalised
from sameworld.core.spec import ChannelSpec, Spec
from sameworld.core.values import Values
from sameworld.core.world import Context, State, World

__all__ = [
    "CheckFailed",
    "CheckSkipped",
    "Probe",
    "changed_array",
    "default_actions",
    "default_start",
    "expect_spec_error",
    "require",
    "saved_and_restored",
    "smooth_samples",
    "start_rows",
    "varied",
]


class CheckFailed(Exception):
    """The world does not behave as promised."""


class CheckSkipped(Exception):
    """The check does not apply to this world, or nothing could be seen."""


def require(condition: bool, detail: str) -> None:
    """Fail the running check unless ``condition`` holds."""
    if not condition:
        raise CheckFailed(detail)


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe:
    """A world under test.

    Attributes:
        world: The world.
        start: Starts of B elements.
        actions: Actions [B, T, A].
        seed: Seed of the keys.
        chosen: Parameters that are varied and differentiated; all if not given.
    """

    world: World
    start: Values | Context
    actions: Array
    seed: int
    chosen: tuple[str, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Parameters that are varied and differentiated."""
        return self.world.parameters.names if self.chosen is None else self.chosen

    @property
    def batch(self) -> int:
        """Number of elements B."""
        return len(self.actions)

    @property
    def ticks(self) -> int:
        """Number of control ticks T."""
        return self.actions.shape[1]

    def reset(self, parameters: Values | None = None, *, seed: int | None = None) -> State:
        """Reset the whole batch."""
        return self.world.reset(self.start, parameters, seed=self.seed if seed is None else seed)

    def varied(self, batch: int) -> Values:
        """Values of the chosen parameters near their means [batch, P], see ``varied``."""
        return varied(self.world.parameters.marginal(self.names), batch)

    def walk(self, state: State, ticks: int | None = None, begin: int = 0) -> Iterator[State]:
        """States after each tick, under the probe's actions from tick ``begin``."""
        for tick in range(begin, self.ticks if ticks is None else begin + ticks):
            state = self.world.step(state, self.actions[:, tick])
            yield state

    def history(self, state: State, actions: Array | None = None) -> dict[str, Array]:
        """Signals [B, T+1, ...] by looping ``step``."""
        actions = self.actions if actions is None else actions
        seen = [self.world.observe(state)]
        for tick in range(actions.shape[1]):
            state = self.world.step(state, actions[:, tick])
            seen.append(self.world.observe(state))
        names = (c.name for c in self.world.spec.observations)
        return {name: np.stack([s[name] for s in seen], axis=1) for name in names}

    def gap(self, mine: Signals, theirs: Signals) -> tuple[float, str]:
        """Largest difference relative to each signal's size, and the signal's name."""
        gaps = {name: _relative(mine[name], theirs[name]) for name in mine}
        worst = max(gaps, key=lambda name: gaps[name])
        return gaps[worst], worst

    def require_close(self, mine: Signals, theirs: Signals, what: str) -> str:
        """Fail unless two sets of signals agree up to rounding."""
        gap, name = self.gap(mine, theirs)
        limit = self.rounding()
        require(gap <= limit, f"{what}: '{name}' differs by {gap:.3g} of its size.")
        return "bit for bit" if gap == 0 else f"within {gap:.1e}"

    def rounding(self) -> float:
        """Rounding that reordered sums may cause, from the coarsest number in the State."""
        kinds = [a.dtype for a in self.reset().arrays.values() if a.dtype.kind == "f"]
        coarsest = max((float(np.finfo(k).eps) for k in kinds), default=2.3e-16)
        return 1e5 * coarsest


def _relative(mine: Array, theirs: Array) -> float:
    if mine.shape != theirs.shape:
        return float("inf")
    both = np.isnan(mine) & np.isnan(theirs)
    with np.errstate(invalid="ignore"):
        error = np.where(both | (mine == theirs), 0.0, np.abs(mine - theirs))
    size = float(np.max(np.abs(theirs), initial=0.0, where=np.isfinite(theirs)))
    worst = float(np.max(error, initial=0.0))
    return float("inf") if np.isnan(worst) else worst / max(size, 1e-3)


def changed_array(before: Mapping[str, NDArray[Any]], after: Mapping[str, NDArray[Any]]) -> str:
    """Name of the first array that is not bitwise the same; empty if all are."""
    for name in sorted(set(before) | set(after)):
        if name not in before or name not in after:
            return name
        a, b = np.asarray(before[name]), np.asarray(after[name])
        if a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes():
            return name
    return ""


def saved_and_restored(state: State) -> State:
    """State after a trip through the bytes of an npz file."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **state.to_arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as flat:
        return State.from_arrays({name: flat[name] for name in flat.files})


def expect_spec_error(call: Any, what: str, mention: str = "") -> None:
    """Fail unless ``call()`` raises ``SpecError`` whose message mentions ``mention``."""
    try:
        call()
    except SpecError as error:
        require(mention in str(error), f"{what}: the error does not mention '{mention}': {error}")
    except Exception as error:
        raise CheckFailed(
            f"{what}: raised {type(error).__name__} instead of SpecError: {error}"
        ) from error
    else:
        raise CheckFailed(f"{what}: no SpecError was raised.")


def start_rows(start: Values | Context, rows: list[int]) -> Values | Context:
    """Keep some elements of a start."""
    if isinstance(start, Values):
        return start.rows(rows)
    return Context(
        observations={name: values[rows] for name, values in start.observations.items()},
        actions=start.actions[rows],
    )


def default_start(spec: Spec, batch: int, seed: int) -> Values | Context:
    """Starts near the defaults of a spec, different for every element."""
    rng = np.random.default_rng([seed, 1])
    if spec.starts_from == "context":
        return Context(
            observations={
                c.name: smooth_samples(c, batch, spec.context, rng) for c in spec.observations
            },
            actions=default_actions(spec, batch, spec.context - 1, seed),
        )
    moved = [_near(p.value, p.std, p.low, p.high, batch, rng) for p in spec.start.parameters]
    array = np.stack(moved, axis=1) if moved else np.zeros((batch, 0))
    return Values(names=spec.start.names, array=array)


def _near(
    value: float, std: float, low: float, high: float, batch: int, rng: np.random.Generator
) -> Array:
    spread = 0.1 * min(std, 1.0, high - low)
    return np.clip(value + spread * rng.standard_normal(batch), low, high)


def smooth_samples(channel: ChannelSpec, batch: int, rows: int, rng: np.random.Generator) -> Array:
    """Samples that change little from row to row, inside the bounds, [B, K, ...]."""
    centre = np.clip(0.0, channel.low, channel.high)
    first = 0.2 * rng.standard_normal((batch, 1, *channel.shape))
    drift = 0.01 * np.cumsum(rng.standard_normal((batch, rows, *channel.shape)), axis=1)
    if channel.manifold == "quaternion":
        return normalised(np.array([1.0, 0.0, 0.0, 0.0]) + first + drift)
    return np.clip(centre + first + drift, channel.low, channel.high)


def default_actions(spec: Spec, batch: int, ticks: int, seed: int) -> Array:
    """Random actions inside the middle of the bounds, [B, T, A]."""
    rng = np.random.default_rng([seed, 2])
    columns: list[Array] = []
    for channel in spec.actions:
        shape = (batch, ticks, channel.size)
        if np.isfinite(channel.high - channel.low):
            middle = 0.5 * (channel.low + channel.high)
            drawn = middle + 0.2 * (channel.high - channel.low) * rng.uniform(-1, 1, shape)
        else:
            drawn = np.clip(0.1 * rng.standard_normal(shape), channel.low, channel.high)
        columns.append(drawn)
    return np.concatenate(columns, axis=2) if columns else np.zeros((batch, ticks, 0))


def varied(belief: Belief, batch: int) -> Values:
    """Parameter values near the means [B, P], the first row exactly at them.

    Further rows scale every value by the same few per cent, which keeps inertias physical.
    """
    rows: list[list[float]] = []
    for row in range(batch):
        moved = [
            p.value * (1 + 0.03 * row) if p.value != 0 else 1.3e-3 * row for p in belief.parameters
        ]
        rows.append(
            [_inside(v, p.low, p.high) for v, p in zip(moved, belief.parameters, strict=True)]
        )
    return Values(names=belief.names, array=np.array(rows).reshape(batch, len(belief)))


def _inside(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
