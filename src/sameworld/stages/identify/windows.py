"""Shooting windows: how long a start can be trusted, and where windows had better begin.

A tumbling body forgets its start: gradients of a long rollout change sign with every edge that
hits the floor, so one long trajectory has many local minima. Windows with starts of their own
have one.

Source: H. G. Bock, "Recent advances in parameter identification techniques for ODE" (1983), for
multiple shooting.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Episode
from sameworld.core.jacobian import jacobian
from sameworld.core.noise import third_differences
from sameworld.core.residuals import shared_channels
from sameworld.core.spec import Spec
from sameworld.core.starts import estimate_starts
from sameworld.core.world import World
from sameworld.stages.identify.config import IdentifyConfig
from sameworld.stages.identify.problem import Window, held_for

__all__ = ["cut", "jolts", "trusted_length"]

_PROBED = 12
_QUIET = 6.0


def trusted_length(world: World, episodes: Sequence[Episode], config: IdentifyConfig) -> float:
    """Seconds for which a start found from warm-up rows predicts within the tolerances.

    The start's covariance is carried along the simulated trajectory by its sensitivities; the
    length is where the predicted spread of a quarter of the probed episodes has exceeded a
    channel's tolerance. A damped arm never gets there (``inf``); a tumbling cube does after an
    impact or two. Never less than twice what the warm-up rows span.
    """
    rng = np.random.default_rng(config.seed)
    chosen: list[int] = rng.permutation(len(episodes))[:_PROBED].tolist()
    pieces = [episodes[i] for i in sorted(chosen)]
    found = estimate_starts(world, pieces, warmup=config.warmup, seed=config.seed)
    names = world.spec.start.names
    slopes = jacobian(
        world, found.values, held_for(world, pieces), wrt=names, seed=config.seed
    ).derivatives
    lengths: list[float] = []
    for row, piece in enumerate(pieces):
        over = np.inf
        for channel, _ in shared_channels(world.spec, piece):
            j = np.nan_to_num(slopes[channel.name][row], nan=1e9)
            variance = np.einsum("tdn,nm,tdm->t", j, found.covariance[row], j)
            beyond = np.flatnonzero(variance > channel.tolerance**2)
            if len(beyond):
                over = min(over, float(beyond[0]) * world.spec.period)
        lengths.append(over if over < piece.end - piece.begin else np.inf)
    heads = [episode.head(config.warmup) for episode in episodes]
    shortest = 2 * max(head.end - head.begin for head in heads)
    return max(float(np.quantile(lengths, 0.25, method="lower")), shortest)


def jolts(spec: Spec, episode: Episode) -> tuple[Array, Array]:
    """How sudden the motion is at each row, in units of its usual third difference.

    Returns:
        Times [N] s and the largest jolt over channels at those times [N]; impacts stand out.
    """
    shared = shared_channels(spec, episode)
    time = shared[0][1].time
    total = np.zeros(len(time))
    for channel, measured in shared:
        if len(measured) < 5:
            continue
        third = np.abs(third_differences(channel, measured)).max(axis=1)
        relative = np.concatenate([[0, 0], third, [0]]) / max(float(np.median(third)), 1e-12)
        total = np.maximum(total, np.interp(time, measured.time, relative))
    return time, total


def cut(
    world: World, episodes: Sequence[Episode], config: IdentifyConfig, length: float
) -> tuple[Window, ...]:
    """Cut episodes into windows of at most ``length`` seconds.

    The first window begins with its episode. Later ones begin where the motion is quiet for the
    warm-up rows, searched within a quarter of a window before the previous one ends.
    """
    windows: list[Window] = []
    for index, episode in enumerate(episodes):
        if not np.isfinite(length) or episode.end - episode.begin <= 1.25 * length:
            windows.append(Window(episode=index, piece=episode, first=True))
            continue
        for number, begin in enumerate(_begins(world.spec, episode, config, length)):
            end = min(begin + length, episode.end)
            piece = episode.window(begin, end, id=f"{episode.id}#{number}")
            windows.append(Window(episode=index, piece=piece, first=number == 0))
    return tuple(windows)


def _begins(spec: Spec, episode: Episode, config: IdentifyConfig, length: float) -> list[float]:
    time, jolt = jolts(spec, episode)
    rows = config.warmup
    begins = [episode.begin]
    while len(begins) < config.most_windows:
        wanted = begins[-1] + length
        if episode.end - wanted < 0.5 * length:
            break
        near = np.flatnonzero((time >= wanted - 0.25 * length) & (time <= wanted))
        near = near[near + rows < len(time)]
        if len(near) == 0:
            break
        peaks = np.array([jolt[i : i + rows].max() for i in near])
        quiet = near[peaks < _QUIET]
        best = quiet[-1] if len(quiet) else near[int(np.argmin(peaks))]
        begins.append(float(time[best]))
    return begins
