"""The least-squares problem: shooting windows, their residuals, and what is unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sameworld.core.arrays import Array, Signals
from sameworld.core.episode import Episode
from sameworld.core.residuals import Comparison, compare, scored_rows
from sameworld.core.rollout import rollout
from sameworld.core.signals import held_actions, ticks_for
from sameworld.core.starts import estimate_starts
from sameworld.core.values import Values
from sameworld.core.world import World
from sameworld.maths.transforms import Transform
from sameworld.stages.identify.scales import Scales
from sameworld.stages.identify.sessions import Sessions

__all__ = ["Block", "Head", "Problem", "Window", "held_for"]

_CHUNK_BYTES = 3e8
#: Trajectories worth simulating in one call.
_TOGETHER = 512
_FAILED = 1e3


@dataclass(frozen=True, kw_only=True, eq=False)
class Window:
    """A piece of an episode that is simulated from a start of its own.

    Attributes:
        episode: Index of the episode it was cut from.
        piece: The piece.
        first: Whether it begins where the episode begins.
    """

    episode: int
    piece: Episode
    first: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Head:
    """Noise-weighted warm-up rows of one window: residuals [H], derivatives [H, P] and [H, S]."""

    residual: Array
    theta: Array
    start: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Weighted residuals of one window.

    Attributes:
        residual: Residuals [R].
        theta: Derivative with respect to the parameters' coordinates [R, P]; P may be 0.
        start: Derivative with respect to the window's start [R, S]; S may be 0.
        time: Time since the window began per residual [R] s (-1 for prior rows).
        curvature: Loss curvature over weight per residual [R].
        head: Rows that determine the start where it is found from the warm-up, else empty.
        parts: The unweighted comparisons behind the residuals.
        failed: Whether the simulation of the window failed.
    """

    residual: Array
    theta: Array
    start: Array
    time: Array
    curvature: Array
    head: Head
    parts: tuple[Comparison, ...]
    failed: bool

    @property
    def cost(self) -> float:
        """Half the sum of squares."""
        return 0.5 * float(self.residual @ self.residual)


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Windows of episodes, a world, and the coordinates of what is unknown.

    Coordinates ``u`` are those of the free parameters [P], followed by those of the sessions where
    parameters differ between them; a matrix [W, P] gives each window values of its own.

    Attributes:
        world: The world.
        windows: Shooting windows W.
        transform: Coordinates of the free parameters [P].
        start_names: Names of the free start components [S].
        base: Values of all parameters per window [W, all] (sessions included).
        actions: Held actions per window [W, T, A].
        scales: Residual scales and robust weights.
        difference: Difference steps in coordinates [P].
        central: Whether differences are central, as a rough cost needs; one-sided ones cost half
            and suit the way to the optimum of smooth worlds.
        rough: Whether the cost may be rough: not where the smallest steps agree.
        stride: Factor on all difference steps, those of starts too.
        exact: Whether derivatives are the world's own, not differences.
        bare: Whether derivatives by the parameters are left out of linearisations, as there are too
            many of them.
        warmup: Rows that starts are found from; 0 if starts are estimated jointly.
        prior_std: Prior spread of the coordinates [P], infinite where there is none.
        prior_mean: Prior mean of the coordinates [P].
        seed: Seed of stochastic worlds.
        sessions: Which parameters differ between sessions, and by how much.
        rates: Whether comparisons carry the simulated rates.
    """

    world: World
    windows: tuple[Window, ...]
    transform: Transform
    start_names: tuple[str, ...]
    base: Values
    actions: Array
    scales: Scales
    difference: Array
    warmup: int
    prior_std: Array
    prior_mean: Array
    seed: int
    sessions: Sessions
    rates: bool = False
    central: bool = True
    rough: bool = True
    stride: float = 1.0
    exact: bool = False
    bare: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Free parameter names."""
        return tuple(p.name for p in self.transform.parameters)

    @property
    def clusters(self) -> list[list[int]]:
        """Window indices of each episode, in episode order."""
        return _grouped([w.episode for w in self.windows])

    @property
    def units(self) -> list[list[int]]:
        """Window indices of each exchangeable unit: sessions where they differ, else episodes."""
        return _grouped(self.sessions.member.tolist()) if self.sessions.extra else self.clusters

    def for_audit(self) -> Problem:
        """All rows compared and counted fully, starts joint: what audits of residuals look at."""
        return replace(self, warmup=0, scales=self.scales.plain(), rates=True)

    def with_scales(self, scales: Scales) -> Problem:
        """Same problem, other weights."""
        return replace(self, scales=scales)

    def values(self, u: Array) -> Values:
        """Parameter values per window at coordinates ``u``."""
        at = self.transform.backward(self.sessions.local(u))
        free = Values(names=self.names, array=np.atleast_2d(at))
        return self.base.updated(free)

    def heads(self, u: Array, starts: Array) -> list[Head]:
        """Warm-up residuals of every window; only the warm-up is simulated."""
        signals = self._signals(u, starts, self.actions[:, : self.warmup_ticks()])
        return [self.head(w, s, None, starts[w]) for w, s in enumerate(signals)]

    def warmup_ticks(self) -> int:
        """Control ticks that cover every window's warm-up rows."""
        pieces = [w.piece.head(self.warmup) for w in self.windows]
        return ticks_for(self.world.spec, max(p.end - p.begin for p in pieces))

    def warm_starts(self, u: Array, warmup: int) -> Array:
        """Starts of all windows from their first rows, at coordinates ``u``, shape [W, S_all]."""
        found = estimate_starts(
            self.world,
            [w.piece for w in self.windows],
            warmup=warmup,
            parameters=self.values(u),
            noise=self.scales.noise,
            seed=self.seed,
        )
        return found.values.array

    def simulate(self, u: Array, starts: Array) -> list[Block]:
        """Residuals of every window at coordinates ``u`` [P] and starts [W, S_all]."""
        signals = self._signals(u, starts, self.actions)
        return [self.block(w, s, None, starts[w]) for w, s in enumerate(signals)]

    def simulate_all(self, points: Sequence[tuple[Array, Array]]) -> Iterator[list[Block]]:
        """Residuals at several points (coordinates, starts), many of them simulated at once."""
        count = len(self.windows)
        together = max(min(_TOGETHER // count, self._fitting(self.actions.shape[1]) // count), 1)
        for at in range(0, len(points), together):
            chosen = points[at : at + together]
            signals = self._signals_all(chosen, np.concatenate([self.actions] * len(chosen)))
            for k, (_, starts) in enumerate(chosen):
                own = signals[k * count : (k + 1) * count]
                yield [self.block(w, s, None, starts[w]) for w, s in enumerate(own)]

    def _signals(self, u: Array, starts: Array, actions: Array) -> list[dict[str, Array]]:
        """Simulated channels of every window [T+1, ...]."""
        return self._signals_all([(u, starts)], actions)

    def _signals_all(
        self, points: Sequence[tuple[Array, Array]], actions: Array
    ) -> list[dict[str, Array]]:
        """Simulated channels of every window of every point [T+1, ...]."""
        values = [self.values(u).broadcast(len(self.windows)) for u, _ in points]
        starts = np.concatenate([starts for _, starts in points])
        result = rollout(
            self.world,
            Values(names=self.world.spec.start.names, array=starts),
            actions,
            parameters=Values.stack(values) if len(values) > 1 else values[0],
            seed=self.seed,
        )
        return [{n: v[row] for n, v in result.signals.items()} for row in range(len(starts))]

    def cost(self, u: Array, starts: Array) -> float:
        """Half the sum of squared residuals."""
        return sum(block.cost for block in self.simulate(u, starts))

    def stretch(self, u: Array, window: int) -> Array:
        """Derivative of a window's parameters by their coordinates [P]."""
        local = self.sessions.local(u)
        return self.transform.derivative(local[window] if local.ndim == 2 else local)

    def chunks(self, inputs: int, ticks: int) -> list[slice]:
        """Windows to differentiate by ``inputs`` names at once, so that memory stays bounded."""
        size = max(self._fitting(ticks) // (1 + 2 * inputs), 1)
        return [slice(at, at + size) for at in range(0, len(self.windows), size)]

    def _fitting(self, ticks: int) -> int:
        """Trajectories whose signals fit the memory."""
        width = sum(c.size for c in self.world.spec.observations)
        return max(int(_CHUNK_BYTES / (16.0 * (ticks + 1) * max(width, 1))), 1)

    def block(
        self, w: int, signals: Signals, slopes: Mapping[str, Array] | None, start: Array
    ) -> Block:
        """Weighted residuals of a window from its simulated channels.

        Args:
            w: The window.
            signals: Simulated channels [T+1, ...].
            slopes: Their derivatives [T+1, D, P + S] by parameters and start, or [T+1, D, S] by the
                start alone, if wanted.
            start: The start it was simulated from [S_all].
        """
        parts = compare(
            self.world.spec,
            self.windows[w].piece,
            signals,
            slopes,
            rows=scored_rows(self.world.spec, self.windows[w].piece, self.warmup),
            rates=self.rates,
        )
        rows = self._stacked([part.weighted(self.scales.at(w, part)) for part in parts], slopes)
        time = np.concatenate([np.repeat(p.time, p.error.shape[1]) for p in parts])
        curvature = np.concatenate([self.scales.curvature_at(w, p).reshape(-1) for p in parts])
        if self.warmup:
            head = self.head(w, signals, slopes, start)
        else:
            head = Head(residual=np.zeros(0), theta=np.zeros((0, 0)), start=np.zeros((0, 0)))
            rows = _with_prior(rows, *self.start_prior(self.windows[w], start))
            extra = len(rows[0]) - len(time)
            time = np.concatenate([time, np.full(extra, -1.0)])
            curvature = np.concatenate([curvature, np.ones(extra)])
        fine = np.isfinite(rows[0])
        return Block(
            residual=np.where(fine, rows[0], _FAILED),
            theta=np.nan_to_num(rows[1]),
            start=np.nan_to_num(rows[2]),
            time=time,
            curvature=curvature,
            head=head,
            parts=tuple(parts),
            failed=not bool(fine.all()),
        )

    def head(
        self, w: int, signals: Signals, slopes: Mapping[str, Array] | None, start: Array
    ) -> Head:
        """Warm-up rows of a window, as ``block``."""
        parts = compare(
            self.world.spec, self.windows[w].piece, signals, slopes, rows=slice(0, self.warmup)
        )
        pairs = [part.weighted(self.scales.noise[part.channel.name]) for part in parts]
        rows = _with_prior(self._stacked(pairs, slopes), *self.start_prior(self.windows[w], start))
        residual, theta, dstart = (np.nan_to_num(r) for r in rows)
        return Head(residual=residual, theta=theta, start=dstart)

    def _stacked(
        self, pairs: Sequence[tuple[Array, Array]], slopes: Mapping[str, Array] | None
    ) -> list[Array]:
        """Residuals, parameter and start derivatives of all channels; these may be alone."""
        residual = np.concatenate([r for r, _ in pairs])
        jac = np.concatenate([j for _, j in pairs])
        size = jac.shape[1] - len(self.start_names) if slopes is not None else 0
        return [residual, jac[:, :size], jac[:, size:]]

    def start_prior(self, window: Window, start: Array) -> tuple[Array, Array]:
        """Prior rows of a window's start: the episode's opinion if it has one, else the world's."""
        spec = self.world.spec.start
        gaps: list[float] = []
        slopes: list[float] = []
        columns: list[int] = []
        for column, name in enumerate(self.start_names):
            own = window.first and name in window.piece.start_prior.names
            opinion = (window.piece.start_prior if own else spec)[name]
            if np.isfinite(opinion.std) and opinion.std > 0:
                gaps.append(float(start[spec.index(name)] - opinion.value) / opinion.std)
                slopes.append(1 / opinion.std)
                columns.append(column)
        gradient = np.zeros((len(columns), len(self.start_names)))
        gradient[range(len(columns)), columns] = slopes
        return np.array(gaps), gradient


def _grouped(owners: Sequence[int]) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for index, owner in enumerate(owners):
        groups.setdefault(owner, []).append(index)
    return [groups[k] for k in sorted(groups)]


def _with_prior(rows: list[Array], prior: Array, pull: Array) -> list[Array]:
    """Append prior rows to residuals, parameter and start derivatives."""
    residual, theta, start = rows
    return [
        np.concatenate([residual, prior]),
        np.concatenate([theta, np.zeros((len(prior), theta.shape[1]))]),
        np.concatenate([start, pull[:, : start.shape[1]]]),
    ]


def held_for(world: World, pieces: Sequence[Episode]) -> Array:
    """Actions of all pieces on a common number of ticks [W, T, A]."""
    ticks = ticks_for(world.spec, max(p.end - p.begin for p in pieces))
    return np.stack([held_actions(world.spec, p, p.begin, ticks) for p in pieces])
