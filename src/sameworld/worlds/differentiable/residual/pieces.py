"""Pieces of episodes with known starts: multiple shooting.

Long simulations of a wrong model lose the motion, and the slopes through them explode. So episodes
are cut, and every piece begins where its own first rows say.

Source: H. G. Bock, K. J. Plitt, "A multiple shooting algorithm for direct solution of optimal
control problems", IFAC World Congress 1984.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array, Signals
from sameworld.core.episode import Episode
from sameworld.core.errors import FitError
from sameworld.core.noise import noise_levels
from sameworld.core.residuals import compare, scored_rows
from sameworld.core.signals import held_actions, pull_difference, pull_lerp, ticks_for
from sameworld.core.spec import Spec
from sameworld.core.starts import estimate_starts, session_values
from sameworld.core.values import Values
from sameworld.core.world import World

__all__ = ["Pieces", "Pull", "cut", "placed"]


class Pull(NamedTuple):
    """Costs of pieces, and their slopes by the signals.

    Attributes:
        costs: Mean squared residual of every piece [B]; infinite where its simulation failed.
        weights: Derivative of the costs by channel, on control ticks [B, T+1, D].
    """

    costs: Array
    weights: dict[str, Array]


@dataclass(frozen=True, kw_only=True, eq=False)
class Pieces:
    """Pieces with everything that simulating and scoring them needs.

    Attributes:
        spec: The world's spec.
        episodes: The pieces W.
        starts: Their starts [W, S].
        parameters: Parameter values of their sessions [W, P'].
        actions: Actions [W, T, A].
        noise: Measurement noise by channel [unit].
        warmup: First rows of each channel, not scored.
    """

    spec: Spec
    episodes: tuple[Episode, ...]
    starts: Values
    parameters: Values
    actions: Array
    noise: dict[str, float]
    warmup: int

    def __len__(self) -> int:
        return len(self.episodes)

    def rows(self, rows: Sequence[int] | NDArray[np.intp]) -> Pieces:
        """Some of the pieces."""
        index = [int(row) for row in rows]
        return replace(
            self,
            episodes=tuple(self.episodes[row] for row in index),
            starts=self.starts.rows(index),
            parameters=self.parameters.rows(index),
            actions=self.actions[index],
        )

    def pull(self, signals: Signals) -> Pull:
        """Score simulated signals [W, T+1, ...] at the measurement times."""
        costs = np.zeros(len(self))
        weights = {
            c.name: np.zeros((len(self), self.actions.shape[1] + 1, c.tangent))
            for c in self.spec.observations
        }
        for row, episode in enumerate(self.episodes):
            scored = scored_rows(self.spec, episode, self.warmup)
            own = {name: signal[row] for name, signal in signals.items()}
            found = compare(self.spec, episode, own, rows=scored)
            count = sum(part.error.size for part in found)
            for part in found:
                scale = self.noise[part.channel.name]
                residual = part.error / scale
                costs[row] += float(np.sum(residual**2)) / count
                slope = pull_difference(part.channel, part.error, 2 * residual / (scale * count))
                ticks = weights[part.channel.name].shape[1]
                weights[part.channel.name][row] = pull_lerp(
                    self.spec.period, ticks, slope, part.time
                )
        failed = ~np.isfinite(costs)
        costs[failed] = np.inf
        for each in weights.values():
            each[failed] = 0.0
        return Pull(costs, weights)


def cut(spec: Spec, episode: Episode, length: float, warmup: int) -> list[Episode]:
    """Consecutive pieces of an episode, at most ``length`` s long.

    Channels without rows behind the warm-up are dropped, and pieces without channels. A piece at
    the end shorter than half the length joins none: the last one reaches back instead.
    """
    duration = episode.end - episode.begin
    count = max(int(np.ceil(duration / length - 0.25)), 1)
    span = min(length, duration)
    begins = np.linspace(episode.begin, episode.end - span, count)
    names = {c.name for c in spec.observations}
    found: list[Episode] = []
    for k, begin in enumerate(begins.tolist()):
        piece = episode.window(begin, begin + span, id=f"{episode.id}:{k}")
        kept = tuple(
            c
            for c in piece.channels
            if c.role != "observation" or (c.name in names and len(c) > warmup)
        )
        if any(c.role == "observation" for c in kept):
            found.append(replace(piece, channels=kept))
    return found


def placed(
    world: World, episodes: Sequence[Episode], noise: dict[str, float], warmup: int
) -> Pieces:
    """Find the starts of pieces, once, with the world as it is.

    Raises:
        FitError: There are no pieces.
        EpisodeError: Their first rows do not show a start.
    """
    if not episodes:
        raise FitError(f"No piece has more than {warmup} rows of any channel. Cut longer ones.")
    found = estimate_starts(world, episodes, warmup=warmup, noise=noise)
    spec = world.spec
    ticks = max(ticks_for(spec, e.end - e.begin) for e in episodes)
    return Pieces(
        spec=spec,
        episodes=tuple(episodes),
        starts=found.values,
        parameters=session_values(world, episodes, Values.none()),
        actions=np.stack([held_actions(spec, e, e.begin, ticks) for e in episodes]),
        noise=noise_levels(spec, episodes) | noise,
        warmup=warmup,
    )
