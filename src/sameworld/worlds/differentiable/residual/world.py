"""``ResidualWorld``: analytic physics, and a network that adds what it lacks."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array, Signals
from sameworld.core.belief import Belief, Block
from sameworld.core.episode import Episode
from sameworld.core.errors import BeliefError, StoreError, listed
from sameworld.core.progress import Report, silent
from sameworld.core.records import Camera
from sameworld.core.scene import Scene
from sameworld.core.signals import check_episode
from sameworld.core.spec import Spec
from sameworld.core.values import Values
from sameworld.core.world import Context, Pullback, Rollout, State
from sameworld.worlds.differentiable.residual.config import ResidualConfig
from sameworld.worlds.differentiable.residual.network import Network, network_of
from sameworld.worlds.differentiable.residual.train import Trained, train
from sameworld.worlds.differentiable.world import DifferentiableWorld

__all__ = ["ResidualWorld", "residual_world"]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ResidualWorld:
    """A differentiable world whose joints are also pushed by a network, capability ``fit``.

    Untrained it is the analytic world. Weights are a block of the belief; named parameters, starts,
    signals and derivatives are those of the analytic world.

    Attributes:
        inner: The world that simulates; its kernel holds the network, itself the weights.
        network: The network.
        config: How it is trained.
        training: How the weights were found; ``None`` while untrained or loaded.
    """

    inner: DifferentiableWorld
    network: Network
    config: ResidualConfig
    training: Trained | None = None

    @property
    def spec(self) -> Spec:
        """What the world takes and gives."""
        return self._spec

    @cached_property
    def _spec(self) -> Spec:
        spec = self.inner.spec
        return replace(spec, capabilities=spec.capabilities | {"fit"})

    @property
    def scene(self) -> Scene:
        """The scene it simulates."""
        return self.inner.scene

    @property
    def parameters(self) -> Belief:
        """Belief over every parameter of the scene, with the network's block."""
        return self._parameters

    @cached_property
    def _parameters(self) -> Belief:
        return replace(self.inner.parameters, blocks=(self._block,))

    @cached_property
    def _block(self) -> Block:
        digest = hashlib.sha256(repr(self.network).encode() + self.inner.weights.tobytes())
        return Block(name="residual", sha256=digest.hexdigest())

    def with_belief(self, belief: Belief) -> ResidualWorld:
        """Return the same weights believing something else of the parameters.

        Raises:
            AddressError: A name is no parameter of the scene.
            BeliefError: The belief holds the hash of other weights.
        """
        if belief.blocks and belief.blocks != (self._block,):
            raise BeliefError(
                f"The belief holds the blocks {belief.blocks}, this world {(self._block,)}. Load "
                "the weights with from_arrays instead."
            )
        return replace(self, inner=self.inner.with_belief(replace(belief, blocks=())))

    # ---- as the analytic world -----------------------------------------------------------

    def reset(
        self, start: Values | Context, parameters: Values | None = None, *, seed: int = 0
    ) -> State:
        """Place a batch at its start; as ``DifferentiableWorld.reset``."""
        return self.inner.reset(start, parameters, seed=seed)

    def step(self, state: State, action: Array) -> State:
        """Advance by one control period under actions [B, A]; ``state`` is not changed."""
        return self.inner.step(state, action)

    def observe(self, state: State) -> Signals:
        """Signals of the state, each [B, ...]."""
        return self.inner.observe(state)

    def rollout(self, state: State, actions: Array) -> Rollout:
        """Simulate actions [B, T, A] from ``state`` in one compiled program."""
        return self.inner.rollout(state, actions)

    def gradient(
        self, start: Values, actions: Array, parameters: Values, wrt: tuple[str, ...], *, seed: int
    ) -> Mapping[str, Array]:
        """Exact derivatives of every signal; as ``DifferentiableWorld.gradient``."""
        return self.inner.gradient(start, actions, parameters, wrt, seed=seed)

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
        """Derivatives in reverse mode; as ``DifferentiableWorld.pullback``."""
        return self.inner.pullback(start, actions, weights, parameters, wrt=wrt, seed=seed)

    def render(self, state: State, camera: Camera | str) -> NDArray[np.uint8]:
        """Images [B, H, W, 3] of every element."""
        return self.inner.render(state, camera)

    # ---- capability fit ------------------------------------------------------------------

    def fit(
        self, episodes: Sequence[Episode], *, seed: int, progress: Report | None = None
    ) -> ResidualWorld:
        """Return a world whose network was trained through the simulation, from scratch.

        Episodes are cut into pieces with starts from their first rows; the error of every observed
        channel, in units of its noise, is brought down by Adam with slopes in reverse mode. The
        weights that were best on validation pieces are kept: none, if the analytic world was.

        Args:
            episodes: Recordings.
            seed: Seed of the first weights, the validation split and the batches.
            progress: Receives progress.

        Raises:
            FitError: Nothing to train on.
            EpisodeError: An episode does not fit the world, or its rows do not show a start.
        """
        for episode in episodes:
            check_episode(self.spec, episode)
        found = train(
            self.inner, self.network, episodes, self.config, seed=seed, report=progress or silent
        )
        belief = replace(self.inner.parameters, discrepancy=None)
        inner = replace(self.inner, weights=found.weights, parameters=belief)
        return replace(self, inner=inner, training=found)

    # ---- weights on disk -----------------------------------------------------------------

    def to_arrays(self) -> dict[str, NDArray[np.float64]]:
        """Weights as plain arrays for ``numpy.savez``."""
        return {"residual": self.inner.weights}

    def from_arrays(self, arrays: Mapping[str, NDArray[np.float64]]) -> ResidualWorld:
        """Return this world with weights that ``to_arrays`` gave.

        Raises:
            StoreError: The array is missing, has another shape or is not finite.
        """
        if "residual" not in arrays:
            raise StoreError(f"Weights lack 'residual'; they hold {listed(arrays)}.")
        weights = np.array(arrays["residual"], dtype=np.float64)
        if weights.shape != (self.network.size,) or not np.isfinite(weights).all():
            raise StoreError(
                f"Weights need {self.network.size} finite numbers, got shape {weights.shape}. Use "
                "the joints, inputs, width and depth they were trained with."
            )
        belief = replace(self.inner.parameters, discrepancy=None)
        inner = replace(self.inner, weights=weights, parameters=belief)
        return replace(self, inner=inner, training=None)


def residual_world(
    world: DifferentiableWorld, config: ResidualConfig | None = None
) -> ResidualWorld:
    """Put an untrained network into the step of a differentiable world.

    Args:
        world: The analytic world; fit its parameters first.
        config: Joints, inputs, size and training.

    Raises:
        SpecError: A pattern matches no hinge or slide, or the network would see nothing.
    """
    config = config or ResidualConfig()
    network = network_of(world.kernel.model, config)
    kernel = world.kernel.with_residual(network)
    inner = replace(world, kernel=kernel, weights=network.initial(0))
    return ResidualWorld(inner=inner, network=network, config=config)
