"""Shooting windows: how long a start can be trusted, and where windows had better begin.

A tumbling body forgets its start: gradients of a long rollout change sign with every edge that
hits the floor, so one long trajectory has many local minima. Windows with starts of their own
have one.

Source: H. G. Bock, "Recent advances in parameter identification techniques for ODE" (1983), for
multiple shooting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array, BoolArray, Signals
from sameworld.core.belief import Belief
from sameworld.core.episode import Episode
from sameworld.core.jacobian import jacobian
from sameworld.core.noise import noise_levels, third_differences
from sameworld.core.residuals import shared_channels, warmed_up
from sameworld.core.rollout import rollout
from sameworld.core.signals import difference, lerp
from sameworld.core.spec import Spec
from sameworld.core.starts import estimate_starts, session_values
from sameworld.core.values import Values
from sameworld.core.world import World
from sameworld.maths.projection import pseudo_inverse
from sameworld.stages.identify.config import IdentifyConfig
from sameworld.stages.identify.problem import Window, held_for

__all__ = ["cut", "jolts", "trusted_length"]

_PROBED = 12
_QUIET = 6.0
#: Moves of each probed start, and the share of a move by which motion may depart from linear.
_DRAWS, _SMOOTH = 2, 0.5
#: Rows from which probing begins, and ticks that a window spans at least (twice).
_FIRST, _TICKS = 5, 5


def trusted_length(world: World, episodes: Sequence[Episode], config: IdentifyConfig) -> float:
    """Seconds for which a start can be carried along: until motion no longer follows it smoothly.

    A start that is only imprecise is not forgotten: more rows make it precise. So the start is
    taken to be known from the rows up to some time, beginning with the warm-up, and it is moved by
    what these rows leave open. As far as twice that time the simulated motion should follow
    linearly; if it does, the same is asked from there on. Where it departs by more than half its
    own move, and by more than a channel's tolerance, in a quarter of the probed episodes, the
    start is forgotten. A damped arm never gets there (``inf``), nor does a linear cart however
    noisy; a tumbling cube does after an impact or two. Never less than twice what the warm-up rows
    span.
    """
    rng = np.random.default_rng(config.seed)
    chosen: list[int] = rng.permutation(len(episodes))[:_PROBED].tolist()
    pieces = [episodes[i] for i in sorted(chosen)]
    found = estimate_starts(world, pieces, warmup=config.warmup, seed=config.seed)
    lengths = _lengths(_Probe.of(world, pieces, found.values, config), rng)
    heads = [episode.head(config.warmup) for episode in episodes]
    shortest = 2 * max(*(h.end - h.begin for h in heads), _TICKS * world.spec.period)
    return max(float(np.quantile(lengths, 0.25, method="lower")), shortest)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Probe:
    """Simulated episodes from estimated starts, with derivatives by the start.

    Attributes:
        world: The world.
        pieces: Episodes E.
        starts: Their starts.
        actions: Held actions [E, T, A].
        signals: Simulated channels [E, T+1, ...].
        slopes: Their derivatives [E, T+1, D, F] by the free start components.
        free: Columns of the free start components [F].
        prior: Prior precision of these [E, F].
        noise: Measurement noise per channel.
        seed: Seed of stochastic worlds.
    """

    world: World
    pieces: Sequence[Episode]
    starts: Values
    actions: Array
    signals: Signals
    slopes: Signals
    free: list[int]
    prior: Array
    noise: Mapping[str, float]
    seed: int

    @classmethod
    def of(
        cls, world: World, pieces: Sequence[Episode], starts: Values, config: IdentifyConfig
    ) -> _Probe:
        spec = world.spec.start
        free = [i for i, p in enumerate(spec.parameters) if p.std > 0 and p.low < p.high]
        names = [spec.names[i] for i in free]
        actions = held_for(world, pieces)
        base = session_values(world, pieces, Values.none())
        at = jacobian(
            world,
            starts,
            actions,
            wrt=names,
            parameters=base,
            method="differences" if config.derivatives == "differences" else "auto",
            seed=config.seed,
        )
        return cls(
            world=world,
            pieces=pieces,
            starts=starts,
            actions=actions,
            signals=at.rollout.signals,
            slopes=at.derivatives,
            free=free,
            prior=np.stack([_precision(spec, p)[free] for p in pieces]),
            noise=noise_levels(world.spec, pieces),
            seed=config.seed,
        )

    def move(self, row: int, until: float, rng: np.random.Generator) -> Array:
        """A move of an episode's start [F] by what its rows up to ``until`` s leave open."""
        information = np.diag(self.prior[row])
        for channel, measured in shared_channels(self.world.spec, self.pieces[row]):
            at = measured.time - self.pieces[row].begin
            slope = lerp(self.world.spec.period, self.slopes[channel.name][row], at[at <= until])
            j = np.nan_to_num(slope).reshape(-1, len(self.free)) / self.noise[channel.name]
            information = information + j.T @ j
        return rng.multivariate_normal(
            np.zeros(len(self.free)), pseudo_inverse(information), method="eigh"
        )

    def departed(self, moves: Array, ticks: int) -> BoolArray:
        """Where motion from moved starts [E, F] leaves its linear prediction [E, ticks + 1]."""
        array = self.starts.array.copy()
        array[:, self.free] += moves
        base = session_values(self.world, self.pieces, Values.none())
        begun = Values(names=self.starts.names, array=array)
        result = rollout(
            self.world, begun, self.actions[:, :ticks], parameters=base, seed=self.seed
        )
        off = ~result.valid
        for channel in self.world.spec.observations:
            if not np.isfinite(channel.tolerance):
                continue
            still = np.asarray(self.signals[channel.name])[:, : ticks + 1]
            real = difference(channel, still, np.asarray(result.signals[channel.name]))
            slopes = np.nan_to_num(self.slopes[channel.name][:, : ticks + 1])
            linear = np.einsum("etdf,ef->etd", slopes, moves)
            gap = np.linalg.norm(np.nan_to_num(real, nan=1e9) - linear, axis=2)
            size = np.maximum(np.linalg.norm(linear, axis=2), channel.tolerance)
            off |= gap > np.where(size > channel.tolerance, _SMOOTH * size, channel.tolerance)
        return off


def _precision(start: Belief, piece: Episode) -> Array:
    """Prior precision of an episode's start [S]: its own opinion, else the world's."""
    std = start.std
    for parameter in piece.start_prior.parameters:
        if parameter.name in start.names:
            std[start.index(parameter.name)] = parameter.std
    return np.maximum(std, 1e-12) ** -2.0


def _lengths(probe: _Probe, rng: np.random.Generator) -> list[float]:
    """Seconds after which each episode has forgotten its start; infinite if it never does."""
    period, spans = probe.world.spec.period, [p.end - p.begin for p in probe.pieces]
    heads = [warmed_up(probe.world.spec, p, _FIRST) - p.begin for p in probe.pieces]
    known, lengths = np.maximum(heads, period), np.full(len(spans), np.inf)
    while bool((known < spans).any()):
        reaching = 2 * float(known.max())
        ticks = min(int(np.ceil(reaching / period)), probe.actions.shape[1])
        clock: Array = period * np.arange(ticks + 1, dtype=np.float64)
        off = np.zeros((len(spans), len(clock)), dtype=np.bool_)
        for _ in range(_DRAWS):
            moves = np.stack([probe.move(e, float(k), rng) for e, k in enumerate(known)])
            off |= probe.departed(moves, ticks)
        for e, reach in enumerate((2 * known).tolist()):
            within = off[e] & (clock <= min(reach, spans[e]))
            if within.any() and np.isinf(lengths[e]):
                lengths[e] = clock[int(np.argmax(within))]
        known = 2 * known
    return lengths.tolist()


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
