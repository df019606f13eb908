"""Fisher information of motions: what noisy samples of them would say about parameters.

Sources: V. V. Fedorov, "Theory of Optimal Experiments" (1972), for the criteria; M. Gautier,
W. Khalil, "Exciting trajectories for the identification of base inertial parameters of robots",
International Journal of Robotics Research 11 (1992), for exciting robots by them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal, cast

import numpy as np

from sameworld.core.address import match_names
from sameworld.core.arrays import Array
from sameworld.core.belief import Belief
from sameworld.core.episode import Episode
from sameworld.core.errors import FitError, SpecError, listed
from sameworld.core.jacobian import default_step, jacobian
from sameworld.core.noise import noise_levels
from sameworld.core.residuals import compare
from sameworld.core.signals import check_episode, held_actions, ticks_for
from sameworld.core.spec import Spec
from sameworld.core.starts import estimate_starts, session_values
from sameworld.core.values import Values
from sameworld.core.world import Rollout, World
from sameworld.maths.projection import pseudo_inverse
from sameworld.maths.transforms import Transform
from sameworld.stages.excite.config import Criterion, ExciteConfig

__all__ = ["Experiment", "eliminated", "experiment", "score"]

_VAGUE = 10.0
_CHUNK_BYTES = 3e8


@dataclass(frozen=True, kw_only=True, eq=False)
class Experiment:
    """What is asked: which parameters, measured by what, known how well before.

    Attributes:
        world: The world, at whose belief derivatives are taken.
        transform: Coordinates of the free parameters P.
        wanted: Indices of the wanted ones.
        starts: Names of the start components that a fit would estimate too [S].
        start_prior: Their prior precision [S].
        noise: Standard deviation per measured channel [unit].
        prior: Prior precision of the coordinates [P, P].
        seed: Seed of stochastic worlds.
    """

    world: World
    transform: Transform
    wanted: tuple[int, ...]
    starts: tuple[str, ...]
    start_prior: Array
    noise: Mapping[str, float]
    prior: Array
    seed: int

    @property
    def names(self) -> tuple[str, ...]:
        """Free parameter names."""
        return tuple(p.name for p in self.transform.parameters)

    @property
    def slopes(self) -> Array:
        """Derivative of the parameters by their coordinates [P]."""
        here = np.array([p.value for p in self.transform.parameters])
        return self.transform.derivative(self.transform.forward(here))

    @property
    def inputs(self) -> int:
        """Columns of the Jacobian."""
        return len(self.names) + len(self.starts)

    def information(
        self, start: Values, actions: Array, *, central: bool = False
    ) -> tuple[Rollout, Array, Literal["gradient", "differences"], int]:
        """Information [B, P, P] of motions [B, T, A], starts eliminated.

        Every measured channel is taken to be sampled at each control tick with white noise.

        Returns:
            The rollout, the information (zero where the simulation failed), how derivatives were
            computed, and the trajectories simulated.
        """
        found = jacobian(
            self.world,
            start,
            actions,
            wrt=(*self.names, *self.starts),
            steps=self._steps(),
            central=central,
            seed=self.seed,
        )
        scale = np.concatenate([self.slopes, np.ones(len(self.starts))])
        gram = np.zeros((len(actions), self.inputs, self.inputs))
        for name, sd in self.noise.items():
            rows = found.derivatives[name]
            flat = rows.reshape(len(actions), -1, self.inputs) * (scale / sd)
            gram += np.nan_to_num(np.swapaxes(flat, 1, 2) @ flat, posinf=0.0, neginf=0.0)
        gram[~found.rollout.valid[:, -1]] = 0.0
        parts = [eliminated(g, len(self.names), self.start_prior) for g in gram]
        return found.rollout, np.stack(parts), found.method, found.rollouts

    def chunk(self, ticks: int) -> int:
        """Motions whose Jacobians fit the memory."""
        width = sum(c.size for c in self.world.spec.observations)
        return max(int(_CHUNK_BYTES / (16.0 * (ticks + 1) * width * (1 + self.inputs))), 1)

    def seen(self, episodes: Sequence[Episode], warmup: int) -> Array:
        """Information [P, P] that episodes hold already, sampled as they were."""
        total = np.zeros_like(self.prior)
        if not episodes:
            return total
        spec = self.world.spec
        for episode in episodes:
            check_episode(spec, episode)
        values = session_values(self.world, episodes, Values.none())
        begun = estimate_starts(
            self.world, episodes, warmup=warmup, parameters=values, noise=self.noise
        )
        ticks = ticks_for(spec, max(e.end - e.begin for e in episodes))
        actions = np.stack([held_actions(spec, e, e.begin, ticks) for e in episodes])
        found = jacobian(
            self.world,
            begun.values,
            actions,
            wrt=(*self.names, *self.starts),
            parameters=values,
            steps=self._steps(),
            seed=self.seed,
        )
        scale = np.concatenate([self.slopes, np.ones(len(self.starts))])
        for row, episode in enumerate(episodes):
            signals = {n: v[row] for n, v in found.rollout.signals.items()}
            slopes = {n: v[row] for n, v in found.derivatives.items()}
            gram = np.zeros((self.inputs, self.inputs))
            for part in compare(spec, episode, signals, slopes):
                if part.channel.name in self.noise:
                    _, j = part.weighted(self.noise[part.channel.name])
                    gram += np.nan_to_num((j * scale).T @ (j * scale))
            total += eliminated(gram, len(self.names), self.start_prior)
        return total

    def _steps(self) -> dict[str, float]:
        spec = self.world.spec.start
        return {name: max(default_step(spec[name]), 1e-5) for name in self.starts}


def eliminated(gram: Array, size: int, start_prior: Array) -> Array:
    """Schur complement [P, P] of normal equations [P+S, P+S]: starts are unknown too."""
    wide, cross = gram[:size, :size], gram[:size, size:]
    starts = gram[size:, size:] + np.diag(start_prior)
    left = wide - cross @ pseudo_inverse(starts) @ cross.T
    return 0.5 * (left + left.T)


def score(information: Array, wanted: Sequence[int], criterion: Criterion) -> Array:
    """Criterion [B] of total information matrices [B, P, P]; smaller is better.

    All are logarithms, so that halving every standard deviation always lowers ``A`` and ``E`` by
    2 log 2, and ``D`` by that for each wanted parameter.
    """
    scale = np.sqrt(np.einsum("...ii->...i", information))
    outer = scale[..., :, None] * scale[..., None, :]
    covariance = cast("Array", np.linalg.inv(information / outer)) / outer
    block = covariance[..., np.asarray(wanted)[:, None], np.asarray(wanted)]
    if criterion == "A":
        return cast("Array", np.log(np.einsum("...ii->...", block)))
    symmetric = 0.5 * (block + np.swapaxes(block, -1, -2))
    values = np.maximum(np.linalg.eigvalsh(symmetric), 1e-300)
    if criterion == "E":
        return cast("Array", np.log(values[..., -1]))
    return cast("Array", np.log(values).sum(axis=-1))


def experiment(world: World, episodes: Sequence[Episode], config: ExciteConfig) -> Experiment:
    """Read what is asked from the options.

    Raises:
        AddressError: A pattern matches nothing.
        FitError: A parameter is known exactly already.
        SpecError: The noise of no channel is known.
    """
    belief = world.parameters
    names = match_names(config.free, belief.names)
    wanted = match_names(config.wanted, names) if config.wanted else names
    chosen = belief.marginal(names)
    known = [p.name for p in chosen.parameters if p.std == 0.0]
    if known:
        raise FitError(f"{listed(known)} have std 0: they are known exactly. Leave them out.")
    transform = Transform.of(chosen.parameters)
    free = [p for p in world.spec.start.parameters if p.std > 0 and p.low < p.high]
    asked = Experiment(
        world=world,
        transform=transform,
        wanted=tuple(names.index(n) for n in wanted),
        starts=tuple(p.name for p in free),
        start_prior=np.array([p.std**-2.0 for p in free]),
        noise=_noise(world.spec, episodes, config.noise),
        prior=np.eye(len(names)),
        seed=config.seed,
    )
    prior = _prior(chosen, transform, asked.slopes)
    return replace(asked, prior=prior + asked.seen(episodes, config.warmup))


def _prior(belief: Belief, transform: Transform, slopes: Array) -> Array:
    """Precision of the coordinates; a vague one where there is no opinion."""
    std = belief.std / slopes
    low, high = transform.bounds
    uniform = (high - low) / np.sqrt(12.0)
    vague = np.where(np.isfinite(uniform), uniform, _VAGUE)
    spread = np.where(np.isfinite(std), std, vague)
    loose = ~np.isfinite(std)
    correlation = np.where(loose[:, None] | loose, np.eye(len(std)), belief.correlation)
    return pseudo_inverse(correlation * np.outer(spread, spread))


def _noise(spec: Spec, episodes: Sequence[Episode], given: Mapping[str, float]) -> dict[str, float]:
    found = noise_levels(spec, episodes)
    for pattern, sd in given.items():
        names = [c.name for c in spec.observations if fnmatchcase(c.name, pattern)]
        if not names:
            raise SpecError(
                f"noise names '{pattern}'; the world observes "
                f"{listed(c.name for c in spec.observations)}."
            )
        found |= dict.fromkeys(names, sd)
    if not found:
        raise SpecError(
            "How noisy are the measurements? Give noise={'*.pos': 0.001}, say, or earlier episodes."
        )
    return {c.name: found[c.name] for c in spec.observations if c.name in found}
