"""Where an episode began, from its first rows only.

The first noisy sample is no start: taken as truth it makes identified parameters wrong and
overconfident. Starts are found by noise-weighted least squares through the world itself, with a
Gaussian prior from ``Episode.start`` where it has an opinion.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel, Episode
from sameworld.core.errors import EpisodeError, listed
from sameworld.core.jacobian import jacobian
from sameworld.core.manifolds import compose, inverse, normalised, quat_log
from sameworld.core.noise import noise_levels
from sameworld.core.residuals import compare, shared_channels
from sameworld.core.signals import held_actions, interpolate, ticks_for
from sameworld.core.spec import ChannelSpec, Spec
from sameworld.core.values import Values
from sameworld.core.world import Context, World

__all__ = ["StartEstimate", "context_from", "estimate_starts", "guess_starts", "session_values"]

#: Predicted decrease of the cost, relative, at which an episode's start is left alone.
_TOLERANCE = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class StartEstimate:
    """Starts of a batch of episodes.

    Attributes:
        values: Start values [E, S] for every start parameter of the world.
        covariance: Posterior covariance of the free ones, zero elsewhere [E, S, S].
    """

    values: Values
    covariance: Array


def session_values(world: World, episodes: Sequence[Episode], base: Values) -> Values:
    """Values per episode: ``base`` with each episode's session means on top, nothing else."""
    known = world.parameters.names
    named = {p.name for e in episodes for p in e.session.parameters if p.name in known}
    ordered = tuple(name for name in known if name in named)
    mean = Values(
        names=ordered, array=np.array([[world.parameters[name].value for name in ordered]])
    )
    merged = mean.updated(base).broadcast(len(episodes))
    array = merged.array.copy()
    for row, episode in enumerate(episodes):
        for parameter in episode.session.parameters:
            if parameter.name in merged.names:
                array[row, merged.index(parameter.name)] = parameter.value
    return Values(names=merged.names, array=array)


def guess_starts(spec: Spec, episodes: Sequence[Episode], warmup: int) -> Values:
    """Read starts off the first rows: a line through each channel that shows a start.

    Channels declare which start parameters they show (``ChannelSpec.start``) or differentiate to
    (``ChannelSpec.rate``); showing beats differentiating, and an opinion in ``Episode.start`` beats
    both.
    """
    names = spec.start.names
    array = np.repeat(spec.start.mean.array, len(episodes), axis=0)
    for row, episode in enumerate(episodes):
        shared = shared_channels(spec, episode)
        heads = [measured.rows(slice(0, warmup)) for _, measured in shared]
        lines = [_line(c, h, episode.begin) for (c, _), h in zip(shared, heads, strict=True)]
        rated = list(zip(shared, lines, strict=True)) if warmup > 1 else []
        for (channel, _), (_, rate) in rated:
            array[row, [names.index(name) for name in channel.rate]] = rate[: len(channel.rate)]
        for (channel, _), (value, _) in zip(shared, lines, strict=True):
            array[row, [names.index(name) for name in channel.start]] = value[: len(channel.start)]
        for parameter in episode.start_prior.parameters:
            if parameter.name in names:
                array[row, names.index(parameter.name)] = parameter.value
    low = np.array([p.low for p in spec.start.parameters])
    high = np.array([p.high for p in spec.start.parameters])
    return Values(names=names, array=np.clip(array, low, high))


def _line(channel: ChannelSpec, head: Channel, begin: float) -> tuple[Array, Array]:
    """Value and rate at ``begin`` of a straight line through the samples; one has no rate."""
    time = head.time - begin if len(head) > 1 else np.zeros(1)
    if channel.manifold == "quaternion":
        q = normalised(head.values)
        turns = quat_log(compose(inverse(q[0]), q))
        slope = cast("Array", np.linalg.lstsq(time[:, None] - time[0], turns, rcond=None)[0])
        return quat_log(q[0]), slope[0]
    design = np.stack([np.ones_like(time), time], axis=1)
    samples = head.values.reshape(len(head), -1)
    line = cast("Array", np.linalg.lstsq(design, samples, rcond=None)[0])
    return line[0], line[1]


def estimate_starts(
    world: World,
    episodes: Sequence[Episode],
    *,
    warmup: int,
    parameters: Values | None = None,
    noise: Mapping[str, float] | None = None,
    iterations: int = 8,
    seed: int = 0,
) -> StartEstimate:
    """Estimate starts from the first ``warmup`` rows of every observation channel.

    Levenberg-Marquardt on all episodes side by side, each with its own damping.

    Args:
        world: A world that starts from named values.
        episodes: Episodes E.
        warmup: Rows of each channel that may be used, at least 2; 1 if every start is observed
            directly (``ChannelSpec.start``) or has a prior.
        parameters: Parameter values [1 or E, P'].
        noise: Noise per channel [unit]; what is absent is estimated from each episode's own
            warm-up rows, so that neither later rows nor other episodes take part.
        iterations: Most iterations.
        seed: Seed of stochastic worlds.

    Returns:
        Start values and posterior covariances. Components that neither the rows nor a prior
        determine keep their guess.

    Raises:
        EpisodeError: An episode has fewer rows than ``warmup``, or one row does not show a start.
    """
    _check_rows(world.spec, episodes, warmup)
    problem = _StartProblem(world, episodes, warmup, parameters, noise, seed)
    if warmup == 1:
        _check_shown(world.spec, episodes, [problem.names[i] for i in problem.free])
    values, free = guess_starts(world.spec, episodes, warmup).array.copy(), problem.free
    damping, done = np.full(len(episodes), 1e-6), np.zeros(len(episodes), dtype=np.bool_)
    cost, gradient, hessian = problem.normal(values)
    for _ in range(iterations):
        steps = _damped_steps(hessian, gradient, damping)
        curved = gradient + 0.5 * np.einsum("efg,eg->ef", hessian, steps)
        done |= -np.sum(steps * curved, axis=1) <= _TOLERANCE * np.maximum(cost, 1.0)
        if done.all():
            break
        moved = values.copy()
        moved[:, free] += steps
        moved = problem.clip(moved)
        trial, trial_gradient, trial_hessian = problem.normal(moved)
        better = (trial < cost) & ~done
        values[better], gradient[better] = moved[better], trial_gradient[better]
        hessian[better], cost = trial_hessian[better], np.where(better, trial, cost)
        damping = np.where(better, damping * 0.1, np.minimum(damping * 30 + 1e-6, 1e6))
    covariance = np.zeros((len(episodes), len(problem.names), len(problem.names)))
    covariance[np.ix_(range(len(episodes)), free, free)] = _pinv(hessian)
    return StartEstimate(values=Values(names=problem.names, array=values), covariance=covariance)


def _check_rows(spec: Spec, episodes: Sequence[Episode], warmup: int) -> None:
    if warmup < 1:
        raise EpisodeError(f"A warm-up of {warmup} rows shows nothing; use at least 1.")
    for episode in episodes:
        for _, measured in shared_channels(spec, episode):
            if len(measured) < warmup:
                raise EpisodeError(
                    f"Episode '{episode.id}': channel '{measured.name}' has {len(measured)} rows, "
                    f"fewer than the warm-up of {warmup}."
                )


def _check_shown(spec: Spec, episodes: Sequence[Episode], free: Sequence[str]) -> None:
    """One row shows no rate: every start must be observed itself, or have a prior."""
    for episode in episodes:
        told = {p.name for p in spec.start.parameters if np.isfinite(p.std)}
        told |= {p.name for p in episode.start_prior.parameters if np.isfinite(p.std)}
        told |= {name for c, _ in shared_channels(spec, episode) for name in c.start}
        missing = [name for name in free if name not in told]
        if missing:
            raise EpisodeError(
                f"Episode '{episode.id}': one warm-up row does not show {listed(missing)}. Use at "
                "least 2 rows, record a channel that shows it, or give 'Episode.start' an opinion "
                "(a finite std)."
            )


class _StartProblem:
    """Normal equations of the starts of many episodes at once."""

    def __init__(
        self,
        world: World,
        episodes: Sequence[Episode],
        warmup: int,
        parameters: Values | None,
        noise: Mapping[str, float] | None,
        seed: int,
    ) -> None:
        spec = world.spec
        self._world, self._episodes, self._seed = world, episodes, seed
        self._rows = slice(0, warmup)
        base = Values.none() if parameters is None else parameters
        self._parameters = session_values(world, episodes, base)
        self.names = spec.start.names
        self.free = [i for i, p in enumerate(spec.start.parameters) if p.std > 0 and p.low < p.high]
        self._low = np.array([p.low for p in spec.start.parameters])
        self._high = np.array([p.high for p in spec.start.parameters])
        self._prior_mean, self._prior_precision = self._priors()
        heads = [e.head(warmup) for e in episodes]
        self._noise = [noise_levels(spec, [head]) | dict(noise or {}) for head in heads]
        ticks = ticks_for(spec, max(e.end - e.begin for e in heads))
        self._actions = np.stack([held_actions(spec, e, e.begin, ticks) for e in episodes])

    def _priors(self) -> tuple[Array, Array]:
        start = self._world.spec.start
        mean = np.repeat(start.mean.array, len(self._episodes), axis=0)
        std = np.repeat(start.std[None], len(self._episodes), axis=0)
        for row, episode in enumerate(self._episodes):
            for parameter in episode.start_prior.parameters:
                if parameter.name in self.names:
                    column = self.names.index(parameter.name)
                    mean[row, column], std[row, column] = parameter.value, parameter.std
        return mean[:, self.free], np.maximum(std[:, self.free], 1e-12) ** -2.0

    def clip(self, values: Array) -> Array:
        return np.clip(values, self._low, self._high)

    def normal(self, values: Array) -> tuple[Array, Array, Array]:
        """Cost [E], gradient [E, F] and Gauss-Newton Hessian [E, F, F] at start values [E, S]."""
        wrt = [self.names[i] for i in self.free]
        result = jacobian(
            self._world,
            Values(names=self.names, array=values),
            self._actions,
            wrt=wrt,
            parameters=self._parameters,
            seed=self._seed,
        )
        gap = values[:, self.free] - self._prior_mean
        pull = self._prior_precision * gap
        cost = 0.5 * np.sum(gap * pull, axis=1)
        gradient = pull.copy()
        hessian = np.zeros((len(values), len(wrt), len(wrt)))
        hessian[:, range(len(wrt)), range(len(wrt))] = self._prior_precision
        for row, episode in enumerate(self._episodes):
            signals = {n: v[row] for n, v in result.rollout.signals.items()}
            slopes = {n: v[row] for n, v in result.derivatives.items()}
            for part in compare(self._world.spec, episode, signals, slopes, rows=self._rows):
                r, j = part.weighted(self._noise[row][part.channel.name])
                cost[row] += 0.5 * r @ r
                gradient[row] += j.T @ r
                hessian[row] += j.T @ j
        cost = np.where(np.isfinite(cost), cost, np.inf)
        return cost, np.nan_to_num(gradient), np.nan_to_num(hessian)


def _damped_steps(hessian: Array, gradient: Array, damping: Array) -> Array:
    """Marquardt steps [E, F]; directions without curvature do not move."""
    scale = np.sqrt(np.einsum("eii->ei", hessian))
    dead = scale == 0
    scale = np.where(dead, 1.0, scale)
    scaled = hessian / (scale[:, :, None] * scale[:, None, :])
    eye = np.eye(hessian.shape[1])
    scaled = scaled + (damping[:, None, None] + 1e-10) * eye + dead[:, :, None] * eye
    steps = cast("Array", np.linalg.solve(scaled, (gradient / scale)[..., None]))[..., 0]
    return -steps / scale


def _pinv(hessian: Array) -> Array:
    """Covariances [E, F, F] after scaling; directions without information get zero."""
    scale = np.sqrt(np.einsum("eii->ei", hessian))
    scale = np.where(scale == 0, 1.0, scale)
    outer = scale[:, :, None] * scale[:, None, :]
    return np.linalg.pinv(hessian / outer, rcond=1e-9, hermitian=True) / outer


def context_from(spec: Spec, episodes: Sequence[Episode], warmup: int) -> tuple[Context, Array]:
    """Context of K control ticks ending at each episode's last warm-up row.

    Returns:
        The context and the episode time of its last tick [E] s, where predictions begin.

    Raises:
        EpisodeError: The warm-up rows do not span K ticks, or a channel is missing.
    """
    need = (spec.context - 1) * spec.period
    observations: dict[str, list[Array]] = {c.name: [] for c in spec.observations}
    actions: list[Array] = []
    lasts: list[float] = []
    for episode in episodes:
        shared = shared_channels(spec, episode)
        if len(shared) < len(spec.observations):
            raise EpisodeError(
                f"Episode '{episode.id}' lacks channels that the world starts from; it needs "
                f"{[c.name for c in spec.observations]}."
            )
        last = min(float(m.time[min(warmup, len(m)) - 1]) for _, m in shared)
        first = last - need
        if first < episode.begin - 1e-6:
            raise EpisodeError(
                f"Episode '{episode.id}': {warmup} warm-up rows span {last - episode.begin:.4g} s, "
                f"the world needs {need:.4g} s of context. Use more warm-up rows."
            )
        ticks = first + spec.period * np.arange(spec.context, dtype=np.float64)
        for channel, measured in shared:
            observations[channel.name].append(_resampled(channel, measured, ticks))
        actions.append(held_actions(spec, episode, first, spec.context - 1))
        lasts.append(last)
    stacked = {name: np.stack(parts) for name, parts in observations.items()}
    return Context(observations=stacked, actions=np.stack(actions)), np.array(lasts)


def _resampled(channel: ChannelSpec, measured: Channel, ticks: Array) -> Array:
    """Measured samples brought to ticks [K]: the one place where data are interpolated."""
    place = np.interp(ticks, measured.time, np.arange(len(measured), dtype=np.float64))
    return interpolate(channel, 1.0, measured.values, place)
