"""A small learned world: a one-step map fitted by ridge regression.

The next change of the observed signals is linear in features of the last K observations and
actions. It starts from a context, has no named parameters and trains itself, so it exercises every
path that a large network takes.

Source: A. E. Hoerl, R. W. Kennard, "Ridge regression: biased estimation for nonorthogonal
problems", Technometrics 12 (1970); random features after A. Rahimi, B. Recht, "Random features for
large-scale kernel machines", NeurIPS 2007.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final, get_args

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array, Signals, read_only
from sameworld.core.belief import Belief, Block
from sameworld.core.discrepancy import Discrepancy
from sameworld.core.episode import Episode
from sameworld.core.errors import BeliefError, FitError, SpecError, StoreError, listed
from sameworld.core.scene import Scene
from sameworld.core.signals import check_episode
from sameworld.core.spec import ChannelSpec, Spec
from sameworld.core.values import Values
from sameworld.core.world import Context, State
from sameworld.zoo.features import FeatureKind, FeatureMap, regression_pairs
from sameworld.zoo.keys import element_keys
from sameworld.zoo.scenes import scene

__all__ = ["RegressionWorld", "learned_cart"]

_ARRAYS = ("weights", "centre", "scale", "directions", "phases")


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionWorld:
    """A learned world of vector-valued signals, capability ``fit``.

    Attributes:
        scene: The scene it imagines.
        period: Control period [s].
        observations: Signals it predicts; quaternions are not supported.
        actions: Signals it takes.
        context: Observations K it looks back on.
        features: What the change is linear in: the window itself, also its products, or also
            random cosines of it.
        ridge: Penalty on weights of standardised features, relative to the number of pairs.
        map: Fitted features and weights; untrained, it predicts no change.
        discrepancy: Measured errors of its predictions.
    """

    scene: Scene
    period: float
    observations: tuple[ChannelSpec, ...]
    actions: tuple[ChannelSpec, ...] = ()
    context: int = 2
    features: FeatureKind = "linear"
    ridge: float = 1e-8
    map: FeatureMap | None = None
    discrepancy: Discrepancy | None = None
    spec: Spec = field(init=False)
    parameters: Belief = field(init=False)

    def __post_init__(self) -> None:
        curved = [c.name for c in self.observations if c.manifold != "linear"]
        if curved:
            raise SpecError(f"RegressionWorld cannot predict {listed(curved)}: not a vector.")
        if self.features not in get_args(FeatureKind):
            raise SpecError(f"Features are '{self.features}'; use {get_args(FeatureKind)}.")
        if not self.ridge > 0:
            raise SpecError(f"Ridge is {self.ridge}; it must be positive.")
        spec = Spec(
            period=self.period,
            observations=tuple(replace(c, start=(), rate=()) for c in self.observations),
            actions=self.actions,
            starts_from="context",
            context=self.context,
            capabilities=frozenset({"fit"}),
        )
        block = Block(name="one_step", sha256=_digest(self.to_arrays()))
        object.__setattr__(self, "spec", spec)
        object.__setattr__(
            self, "parameters", Belief(blocks=(block,), discrepancy=self.discrepancy)
        )

    # ---- the World protocol --------------------------------------------------------------

    def with_belief(self, belief: Belief) -> RegressionWorld:
        """Return the same weights with another record of their errors.

        Raises:
            BeliefError: The belief names parameters, or the hash of other weights.
        """
        if belief.parameters:
            raise BeliefError(
                f"RegressionWorld has no named parameters, the belief has {listed(belief.names)}. "
                "Its weights are a block; fit it instead."
            )
        if belief.blocks != self.parameters.blocks:
            raise BeliefError(
                f"The belief holds the blocks {belief.blocks}, this world "
                f"{self.parameters.blocks}. Load the weights with from_arrays instead."
            )
        return replace(self, discrepancy=belief.discrepancy)

    def reset(
        self, start: Values | Context, parameters: Values | None = None, *, seed: int = 0
    ) -> State:
        """Start from the last K observations of a context.

        Raises:
            SpecError: Named values instead of a context, missing signals, or wrong shapes.
        """
        if not isinstance(start, Context):
            raise SpecError("This world starts from a Context of past observations and actions.")
        if parameters is not None and parameters.names:
            raise SpecError(f"This world has no parameter {listed(parameters.names)}.")
        seen = self._flat_context(start)
        past = np.array(start.actions, dtype=np.float64)
        wanted = (len(seen), self.context - 1, self.spec.action_size)
        if past.shape != wanted:
            raise SpecError(f"Context actions need shape {wanted}, got {past.shape}.")
        batch = len(seen)
        return State(
            arrays={"seen": seen, "past": past},
            time=np.zeros(batch),
            key=element_keys(seed, batch),
            parameters=Values.none(batch),
        )

    def step(self, state: State, action: Array) -> State:
        """Advance by one control period under actions [B, A]."""
        action = np.asarray(action, dtype=np.float64)
        if action.shape != (state.batch, self.spec.action_size):
            raise SpecError(
                f"Action needs shape {(state.batch, self.spec.action_size)} for "
                f"{listed(c.name for c in self.actions)}, got {action.shape}."
            )
        if not np.isfinite(action).all():
            raise SpecError("Actions hold NaN or infinite values.")
        seen = state.arrays["seen"]
        acted = np.concatenate([state.arrays["past"], action[:, None]], axis=1)
        newest = seen[:, -1]
        if self.map is not None:
            newest = newest + self.map.change(seen, acted)
        return replace(
            state,
            arrays={
                "seen": np.concatenate([seen[:, 1:], newest[:, None]], axis=1),
                "past": acted[:, 1:].copy(),
            },
            time=state.time + self.period,
        )

    def observe(self, state: State) -> Signals:
        """Newest signals, each [B, ...]."""
        newest = state.arrays["seen"][:, -1]
        signals: dict[str, Array] = {}
        column = 0
        for channel in self.observations:
            part = newest[:, column : column + channel.size]
            signals[channel.name] = part.reshape(len(newest), *channel.shape).copy()
            column += channel.size
        return signals

    # ---- capability fit ------------------------------------------------------------------

    def fit(self, episodes: Sequence[Episode], *, seed: int) -> RegressionWorld:
        """Return a world fitted to episodes; errors recorded for other weights are dropped.

        Args:
            episodes: Recordings with every channel of the spec; brought to control ticks by
                linear interpolation, actions held.
            seed: Seed of random features.

        Raises:
            FitError: No episode is long enough for one pair of context and change.
            EpisodeError: A channel is missing or does not fit.
        """
        for episode in episodes:
            check_episode(self.spec, episode, names=[c.name for c in self.observations])
        pairs = [regression_pairs(self.spec, episode) for episode in episodes]
        pairs = [pair for pair in pairs if pair is not None]
        if not pairs:
            raise FitError(
                f"None of {len(episodes)} episode(s) spans {self.context + 1} control ticks of "
                f"{self.period} s, so there is nothing to learn from."
            )
        inputs = np.concatenate([pair[0] for pair in pairs])
        changes = np.concatenate([pair[1] for pair in pairs])
        fitted = FeatureMap.fitted(inputs, changes, self.features, self.ridge, seed)
        return replace(self, map=fitted, discrepancy=None)

    # ---- weights on disk -----------------------------------------------------------------

    def to_arrays(self) -> dict[str, NDArray[np.float64]]:
        """Weights as plain arrays for ``numpy.savez``; empty while untrained."""
        return {} if self.map is None else {name: getattr(self.map, name) for name in _ARRAYS}

    def from_arrays(self, arrays: Mapping[str, NDArray[np.float64]]) -> RegressionWorld:
        """Return this world with weights that ``to_arrays`` gave.

        Raises:
            StoreError: An array is missing or its shape does not fit.
        """
        if not arrays:
            return replace(self, map=None, discrepancy=None)
        missing = sorted(set(_ARRAYS) - set(arrays))
        if missing:
            raise StoreError(f"Weights lack {listed(missing)}; they hold {listed(arrays)}.")
        parts = {name: read_only(np.array(arrays[name], dtype=np.float64)) for name in _ARRAYS}
        fitted = FeatureMap(kind=self.features, **parts)
        outputs = sum(c.size for c in self.observations)
        inputs = self.context * (outputs + self.spec.action_size)
        wanted = (fitted.width(inputs), outputs)
        if fitted.centre.shape != (inputs,) or fitted.weights.shape != wanted:
            raise StoreError(
                f"Weights have shape {fitted.weights.shape} over {fitted.centre.shape} inputs; "
                f"this world needs {wanted} over ({inputs},)."
            )
        return replace(self, map=fitted, discrepancy=None)

    # ---- inside --------------------------------------------------------------------------

    def _flat_context(self, start: Context) -> Array:
        columns: list[Array] = []
        for channel in self.observations:
            if channel.name not in start.observations:
                raise SpecError(
                    f"The context lacks '{channel.name}'. It has {listed(start.observations)}."
                )
            values = np.asarray(start.observations[channel.name], dtype=np.float64)
            if values.shape[1:] != (self.context, *channel.shape):
                raise SpecError(
                    f"Context '{channel.name}' needs shape [B, {self.context}, "
                    f"*{channel.shape}], got {values.shape}."
                )
            columns.append(values.reshape(len(values), self.context, channel.size))
        if len({len(c) for c in columns}) > 1:
            raise SpecError(f"Context signals have batches {[len(c) for c in columns]}.")
        return np.concatenate(columns, axis=2)


def learned_cart() -> RegressionWorld:
    """Return an untrained learned world with the signals of the zoo's ``cart``."""
    return RegressionWorld(
        scene=scene("cart"),
        period=0.02,
        observations=(
            ChannelSpec(name="rail.pos", unit="m", tolerance=0.01),
            ChannelSpec(name="rail.vel", unit="m/s", tolerance=0.1),
        ),
        actions=(ChannelSpec(name="rail_motor", unit="N", low=-20.0, high=20.0),),
    )


def _digest(arrays: Mapping[str, NDArray[np.float64]]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.shape}{array.dtype.str}".encode() + array.tobytes())
    return digest.hexdigest()
