"""Sessions and their population in the parameters' units: tables, beliefs, advice."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from sameworld.core.arrays import Array
from sameworld.core.belief import Belief
from sameworld.core.episode import Episode
from sameworld.stages.identify.covariance import CLUSTERS_NEEDED, Spread, influence, spread_of
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.hierarchy import Hierarchy, SessionPosterior
from sameworld.stages.identify.problem import Problem
from sameworld.stages.identify.result import SessionSpread, SessionValue, Verdict

__all__ = ["Population", "population", "session_spread"]

_EDGE = 1e-3


def session_spread(
    problem: Problem, linear: Linear, found: Hierarchy, *, bootstrap: int, seed: int
) -> Spread:
    """Covariance of the parameters where sessions are the exchangeable units.

    Enough sessions: the sandwich over whole sessions. Fewer: the model's own covariance with the
    estimated spread between sessions and the scatter of episodes within them. Degrees of freedom
    count sessions in both cases.
    """
    scale = problem.sessions.scale
    information = found.marginal(scale)[0]
    scores = influence(problem, linear)[0]
    spread = spread_of(
        problem,
        linear,
        (scores, information, found.prior),
        bootstrap=bootstrap,
        seed=seed,
        needed=2,
        kind="session sandwich",
    )
    if len(scores) >= CLUSTERS_NEEDED:
        return spread
    dead = np.diag(np.where(np.isfinite(np.diag(spread.naive)), 0.0, np.inf))
    return replace(spread, covariance=found.covariance(scale) + dead, kind="session model")


@dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """Sessions of a finished fit.

    Attributes:
        problem: The problem with its final weights and spread.
        hierarchy: The sessions at the optimum.
        spread: Standard deviation between sessions, in coordinates [K].
        posterior: What is known of each session, in coordinates.
        table: The same in the parameters' units, one entry per parameter that differs.
    """

    problem: Problem
    hierarchy: Hierarchy
    spread: Array
    posterior: SessionPosterior
    table: tuple[SessionSpread, ...]

    @property
    def between(self) -> Array:
        """Covariance of a new session's values around the population's mean [P, P]."""
        variance = np.zeros(self.problem.sessions.size)
        variance[list(self.problem.sessions.columns)] = self.spread**2
        return np.diag(variance)

    def placed(self, episode: Episode) -> Episode:
        """The episode with the posterior of its session."""
        sessions = self.problem.sessions
        s, columns = sessions.names.index(episode.session_id), list(sessions.columns)
        transform = self.problem.transform
        at = _point_of(self, s)
        slope = transform.derivative(at)[columns]
        belief = Belief.gaussian(
            [transform.parameters[k] for k in columns],
            transform.backward(at)[columns],
            self.posterior.covariance[s] * np.outer(slope, slope),
            source="identified",
            scope="session",
        )
        return replace(episode, session=episode.session.updated(belief))


def _point_of(found: Population, session: int) -> Array:
    """Coordinates [P] with one session's values in place of the population's."""
    columns = list(found.problem.sessions.columns)
    at = np.array(found.problem.prior_mean)
    at[columns] = found.posterior.values[session]
    return at


def population(
    problem: Problem,
    linear: Linear,
    hierarchy: Hierarchy,
    found: Spread,
    *,
    determined: float,
) -> Population:
    """Both levels of a fit with sessions.

    Args:
        problem: The problem with its final weights.
        linear: Its linearisation at the optimum.
        hierarchy: Its sessions there.
        found: Covariance of the parameters.
        determined: Largest standard deviation in coordinates that counts as determined.
    """
    scale, unit = problem.sessions.scale, float(np.sqrt(hierarchy.inflation))
    columns = list(problem.sessions.columns)
    std = problem.prior_std[columns]
    posterior = hierarchy.posterior(scale, np.where(np.isfinite(std), std, 1.0) / unit)
    dead = ~np.isfinite(np.diag(found.covariance)[columns])
    posterior.covariance[:, dead, dead] = np.inf
    shell = Population(
        problem=problem,
        hierarchy=hierarchy,
        spread=scale * unit,
        posterior=posterior,
        table=(),
    )
    rows = tuple(_row(shell, linear, found, k, determined) for k in range(len(scale)))
    return replace(shell, table=rows)


def _row(
    shell: Population, linear: Linear, found: Spread, k: int, determined: float
) -> SessionSpread:
    problem, hierarchy = shell.problem, shell.hierarchy
    column = problem.sessions.columns[k]
    parameter = problem.transform.parameters[column]
    slope = float(problem.transform.derivative(linear.u[: len(problem.names)])[column])
    unit = abs(slope) * float(np.sqrt(hierarchy.inflation))
    low, high = hierarchy.scale_interval(problem.sessions.scale, k)
    std = float(np.sqrt(found.covariance[column, column]))
    mean = _ends(shell, column, float(linear.u[column]), std, found.freedom)
    counts = _episodes(problem)
    return SessionSpread(
        name=parameter.name,
        unit=parameter.unit,
        mean=mean[0],
        low=mean[1],
        high=mean[2],
        std=abs(slope) * std,
        spread=abs(slope) * float(shell.spread[k]),
        spread_low=unit * low,
        spread_high=unit * high,
        relative=parameter.transform == "log",
        values=tuple(
            _value(shell, s, k, counts[s], determined) for s in range(len(problem.sessions.names))
        ),
    )


def _episodes(problem: Problem) -> list[int]:
    owners = [problem.sessions.member[windows[0]] for windows in problem.clusters]
    return [sum(int(o) == s for o in owners) for s in range(len(problem.sessions.names))]


def _value(shell: Population, s: int, k: int, episodes: int, determined: float) -> SessionValue:
    posterior, column = shell.posterior, shell.problem.sessions.columns[k]
    at, std = float(posterior.values[s, k]), float(np.sqrt(posterior.covariance[s, k, k]))
    value, low, high = _ends(shell, column, at, std, shell.hierarchy.freedom)
    parameter = shell.problem.transform.parameters[column]
    slope = float(shell.problem.transform.derivative(_point_of(shell, s))[column])
    edge = _EDGE * (parameter.high - parameter.low)
    near = np.isfinite(edge) and min(value - parameter.low, parameter.high - value) <= edge
    return SessionValue(
        session=shell.problem.sessions.names[s],
        episodes=episodes,
        value=value,
        low=low,
        high=high,
        std=abs(slope) * std,
        shrinkage=float(posterior.shrinkage[s, k]),
        verdict=_verdict(std, float(posterior.conditional[s, k]), bool(near), determined),
    )


def _verdict(std: float, conditional: float, near: bool, determined: float) -> Verdict:
    if not np.isfinite(std):
        return "zero gradient"
    if near:
        return "at bound"
    if std <= determined:
        return "determined"
    return "only in combination" if conditional <= determined else "not excited"


def _ends(
    shell: Population, column: int, at: float, std: float, freedom: float
) -> tuple[float, float, float]:
    """Value and 90 % interval in the parameter's unit, computed in coordinates."""
    transform = shell.problem.transform
    parameter = transform.parameters[column]
    factor = float(stats.t.ppf(0.95, freedom)) if np.isfinite(freedom) else 1.6448536
    half = factor * std if np.isfinite(std) else 0.0
    points = np.repeat(shell.problem.prior_mean[None], 3, axis=0)
    points[:, column] = [at, at - half, at + half]
    value, low, high = transform.backward(points)[:, column].tolist()
    return (value, low, high) if np.isfinite(std) else (value, parameter.low, parameter.high)
