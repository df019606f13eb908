"""Training a residual through the simulation, in reverse mode.

Sources: D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015;
I. Loshchilov, F. Hutter, "Decoupled weight decay regularization", ICLR 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import jax
import numpy as np
import optax  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

from sameworld.core.arrays import Array, BoolArray
from sameworld.core.episode import Episode
from sameworld.core.errors import FitError
from sameworld.core.noise import noise_levels
from sameworld.core.progress import Progress, Report
from sameworld.core.rollout import rollout
from sameworld.worlds.differentiable.residual.config import ResidualConfig
from sameworld.worlds.differentiable.residual.network import Network
from sameworld.worlds.differentiable.residual.pieces import Pieces, cut, placed
from sameworld.worlds.differentiable.world import DifferentiableWorld

__all__ = ["Trained", "train"]

#: Fewest episodes of which whole ones are kept for validation.
_ENOUGH = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Trained:
    """Weights, and how they were found.

    Attributes:
        weights: The weights [W] that were best on the validation pieces; those without a force if
            none were better.
        checks: Steps at which the validation pieces were looked at.
        costs: Costs of the validation pieces there, relative to those without a residual.
    """

    weights: Array
    checks: tuple[int, ...]
    costs: tuple[float, ...]


def train(
    world: DifferentiableWorld,
    network: Network,
    episodes: Sequence[Episode],
    config: ResidualConfig,
    *,
    seed: int,
    report: Report,
) -> Trained:
    """Train from scratch; parameters of the scene stay as they are believed.

    Args:
        world: The world; its kernel holds the network.
        network: The network.
        episodes: Recordings.
        config: Options.
        seed: Seed of the first weights, the split and the batches.
        report: Receives progress.

    Raises:
        FitError: Nothing to train on.
    """
    fitted, judged = _split(world, episodes, config, seed)
    noise = noise_levels(world.spec, episodes)
    initial = replace(world, weights=network.initial(seed))
    pieces = placed(initial, [*fitted, *judged], noise, config.warmup)
    train_on, judge_on = (
        pieces.rows(range(len(fitted))),
        pieces.rows(range(len(fitted), len(pieces))),
    )
    start = _scaled(initial, network, train_on)
    return _descended(
        replace(world, weights=start), network, train_on, judge_on, config, seed, report
    )


def _split(
    world: DifferentiableWorld, episodes: Sequence[Episode], config: ResidualConfig, seed: int
) -> tuple[list[Episode], list[Episode]]:
    """Pieces to train on and pieces that judge, of other episodes where there are enough."""
    parts = [cut(world.spec, e, config.window, config.warmup) for e in episodes]
    if len(parts) >= _ENOUGH:
        count = max(round(config.validation * len(parts)), 1)
        held = np.random.default_rng(seed).permutation(len(parts)) < count
        return _joined(parts, ~held), _joined(parts, held)
    shares = [round(config.validation * len(part)) for part in parts]
    counts = [min(max(n, 1), len(part) - 1) for n, part in zip(shares, parts, strict=True)]
    fitted: list[Episode] = []
    judged: list[Episode] = []
    for part, n in zip(parts, counts, strict=True):
        fitted += part[: len(part) - n]
        judged += part[len(part) - n :]
    if not fitted:
        raise FitError("No piece has rows behind its warm-up. Use longer windows or fewer rows.")
    return fitted, judged or fitted


def _joined(parts: Sequence[list[Episode]], chosen: BoolArray) -> list[Episode]:
    return [piece for part, take in zip(parts, chosen, strict=True) if take for piece in part]


def _scaled(world: DifferentiableWorld, network: Network, pieces: Pieces) -> Array:
    """First weights with the scale of inputs as they are along the pieces."""
    q, v, control = world.motion(pieces.starts, pieces.actions, pieces.parameters)
    return network.scaled(world.weights, q, v, control)


def _descended(
    world: DifferentiableWorld,
    network: Network,
    pieces: Pieces,
    judges: Pieces,
    config: ResidualConfig,
    seed: int,
    report: Report,
) -> Trained:
    """Adam on batches of pieces, until the validation pieces stop getting better."""
    rng = np.random.default_rng([seed, 1])
    begin, usual = _cost(world, judges), _cost(world, pieces)
    best, checks, costs = world.weights, [0], [1.0]
    adam = _Adam(world.weights[: network.trained], config)
    waited = 0
    for step in range(1, config.steps + 1):
        rows = _batch(rng, len(pieces), config.batch)
        slope = _slope(world, pieces.rows(rows)) / max(usual, 1e-300)
        moved = adam.moved(slope[: network.trained])
        weights = np.concatenate([moved, world.weights[network.trained :]])
        world = replace(world, weights=weights)
        if step % config.check and step < config.steps:
            continue
        cost = _cost(world, judges) / max(begin, 1e-300)
        if cost < min(costs):
            best, waited = world.weights, 0
        else:
            waited += 1
        checks.append(step)
        costs.append(cost)
        message = f"validation {cost:.4g} of the analytic"
        report(Progress(stage="residual", done=step, total=config.steps, message=message))
        if waited >= config.patience:
            break
    return Trained(weights=best, checks=tuple(checks), costs=tuple(costs))


class _Adam:
    """Adam with decoupled weight decay, clipped steps, and a rate that falls along a cosine."""

    def __init__(self, weights: Array, config: ResidualConfig) -> None:
        rate = optax.cosine_decay_schedule(config.rate, config.steps)
        self._rule = optax.chain(
            optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=config.decay)
        )
        self._weights = weights
        with jax.enable_x64(True):
            self._state = cast("Any", self._rule.init(cast("Any", weights)))

    def moved(self, slope: Array) -> Array:
        """Weights after one more step."""
        with jax.enable_x64(True):
            change, self._state = cast(
                "Any", self._rule.update(slope, self._state, cast("Any", self._weights))
            )
            self._weights = self._weights + np.asarray(change, dtype=np.float64)
        return self._weights


def _batch(rng: np.random.Generator, count: int, size: int) -> NDArray[np.intp]:
    """Pieces of one step; where they are fewer than the batch, some come twice."""
    return np.resize(rng.permutation(count).astype(np.intp), size)


def _cost(world: DifferentiableWorld, pieces: Pieces) -> float:
    """Mean cost of pieces."""
    found = rollout(world, pieces.starts, pieces.actions, parameters=pieces.parameters)
    return float(np.mean(pieces.pull(found.signals).costs))


def _slope(world: DifferentiableWorld, pieces: Pieces) -> Array:
    """Slope of the mean cost by the weights [W]; pieces whose simulation fails are left out."""
    found = rollout(world, pieces.starts, pieces.actions, parameters=pieces.parameters)
    pull = pieces.pull(found.signals)
    slopes = world.weights_pullback(pieces.starts, pieces.actions, pull.weights, pieces.parameters)
    fine = np.isfinite(pull.costs) & np.isfinite(slopes).all(axis=1)
    return np.where(fine[:, None], slopes, 0.0).sum(axis=0) / max(int(fine.sum()), 1)
