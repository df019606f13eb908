"""How much sessions differ, and what is known of each: restricted maximum likelihood.

At a linearisation every session is a quadratic in its own parameters. Integrating the sessions'
deviations out leaves a likelihood of their spread alone (the population's uncertainty included, so
that few sessions do not look more alike than they are), and a spread of zero is a possible answer.
Information is first divided by how much wider episodes of one session scatter than white noise
would have them: an overconfident session would make a spread out of its own errors.

Values of sessions are averaged over the spreads that remain possible.

Source: H. D. Patterson, R. Thompson, "Recovery of inter-block information when block sizes are
unequal", Biometrika 58 (1971), for restricted likelihood; D. A. Harville, JASA 72 (1977), and
C. R. Henderson, Biometrics 31 (1975), for the spread of predicted effects; A. Gelman, "Prior
distributions for variance parameters in hierarchical models", Bayesian Analysis 1 (2006), for the
half-Cauchy weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from sameworld.core.arrays import Array
from sameworld.maths.projection import pseudo_inverse
from sameworld.stages.identify.covariance import block_scores, prior_precision, unit_variance
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.problem import Problem

__all__ = ["Hierarchy", "SessionPosterior"]

#: Degrees of freedom within sessions below which blocks of rows stand in for episodes.
_NEEDED = 4
#: Spreads tried, relative to what the sessions' own estimates suggest.
_GRID = np.geomspace(1e-3, 30.0, 25)
_FINE = np.geomspace(0.03, 30.0, 40)
_SWEEPS = 4
#: Half of the 90 % quantile of chi-squared with one degree of freedom.
_DROP = 1.3528


@dataclass(frozen=True, kw_only=True, eq=False)
class SessionPosterior:
    """What is known of each session, in coordinates.

    Attributes:
        values: Session values [S, K].
        covariance: Their covariances [S, K, K], the population's uncertainty included.
        shrinkage: Share of each value that comes from the other sessions [S, K], 0 to 1.
        conditional: Deviation of each value if everything else were known [S, K].
    """

    values: Array
    covariance: Array
    shrinkage: Array
    conditional: Array

    def averaged(
        self, k: int, weight: Array, others: Sequence[SessionPosterior]
    ) -> SessionPosterior:
        """Parameter k replaced by its mean over other posteriors, their disagreement included."""
        values, covariance = self.values.copy(), self.covariance.copy()
        shrinkage = self.shrinkage.copy()
        each = np.stack([o.values[:, k] for o in others])
        values[:, k] = weight @ each
        spread = weight @ np.stack([o.covariance[:, k, k] for o in others])
        spread = spread + weight @ (each - values[:, k]) ** 2
        factor = np.sqrt(spread / np.maximum(covariance[:, k, k], 1e-300))
        covariance[:, k] *= factor[:, None]
        covariance[:, :, k] *= factor[:, None]
        shrinkage[:, k] = weight @ np.stack([o.shrinkage[:, k] for o in others])
        return replace(self, values=values, covariance=covariance, shrinkage=shrinkage)


@dataclass(frozen=True, kw_only=True, eq=False)
class Hierarchy:
    """Sessions of a linearised problem as quadratics around the current point.

    Attributes:
        columns: Parameters that differ between sessions [K].
        information: Information of each session about its own parameters [S, P, P].
        pull: Minus the gradient of each session's cost at the population's value [S, P].
        prior: Prior precision [P, P].
        prior_pull: Minus the gradient of the prior's cost [P].
        offsets: Deviations at the current point [S, K].
        population: The population's values at the current point [K].
        inflation: How many times the variance of white noise episodes really have.
        freedom: Degrees of freedom behind the inflation; infinite for blocks of rows.
    """

    columns: tuple[int, ...]
    information: Array
    pull: Array
    prior: Array
    prior_pull: Array
    offsets: Array
    population: Array
    inflation: float
    freedom: float

    @classmethod
    def at(cls, problem: Problem, linear: Linear) -> Hierarchy:
        """Gather the sessions of a linearisation."""
        sessions, size = problem.sessions, problem.sessions.size
        offsets = sessions.offsets(linear.u)
        gradient = np.zeros((len(sessions.names), size))
        information = np.zeros((len(sessions.names), size, size))
        for w, s in enumerate(sessions.member.tolist()):
            gradient[s] += linear.projected[w].T @ linear.residual[w]
            information[s] += linear.bread[w]
        columns = list(sessions.columns)
        prior = prior_precision(problem)
        inflation, freedom = _inflation(problem, linear, information)
        u = linear.u[:size]
        return cls(
            columns=sessions.columns,
            information=information,
            pull=np.einsum("spk,sk->sp", information[:, :, columns], offsets) - gradient,
            prior=prior,
            prior_pull=-prior @ (u - problem.prior_mean),
            offsets=offsets,
            population=u[columns],
            inflation=inflation,
            freedom=freedom,
        )

    @cached_property
    def _own(self) -> tuple[Array, Array, Array]:
        """Own blocks [S, K, K], cross blocks [S, P, K] and own pulls [S, K]."""
        k = list(self.columns)
        return self.information[:, k][:, :, k], self.information[:, :, k], self.pull[:, k]

    def _gain(self, scale: Array) -> Array:
        """Covariance of each deviation given the population, in units of the inflation."""
        own, variance = self._own[0], np.diag(scale**2)
        eye = np.eye(len(scale))
        gain = np.linalg.solve(eye + variance @ own, np.broadcast_to(variance, own.shape))
        return np.asarray(gain, dtype=np.float64)

    def marginal(self, scale: Array) -> tuple[Array, Array]:
        """Information [S, P, P] and pulls [S, P] of the sessions, deviations integrated out."""
        _, cross, own_pull = self._own
        gain = self._gain(scale)
        taken = np.einsum("spk,skl->spl", cross, gain)
        information = self.information - np.einsum("spl,sql->spq", taken, cross)
        return information, self.pull - np.einsum("spl,sl->sp", taken, own_pull)

    def deviance(self, scale: Array) -> float:
        """Minus twice the restricted log likelihood of a spread [K], up to a constant."""
        own, _, own_pull = self._own
        information, pull = self.marginal(scale)
        total, force = information.sum(axis=0) + self.prior, pull.sum(axis=0) + self.prior_pull
        width = np.linalg.slogdet(np.eye(len(scale)) + own * scale**2)[1].sum()
        explained = np.einsum("sk,skl,sl->", own_pull, self._gain(scale), own_pull)
        explained += force @ pseudo_inverse(total) @ force
        return float(width + _log_determinant(total) - explained / self.inflation)

    def best_scale(self) -> Array:
        """Most likely spread [K] in units of the root of the inflation; may be zero."""
        scale = self._guess()
        for _ in range(_SWEEPS if len(scale) > 1 else 1):
            for k in range(len(scale)):
                scale[k] = self._best_along(scale, k)
        return scale

    def scale_interval(self, scale: Array, k: int) -> tuple[float, float]:
        """90 % profile interval of one spread, the others held."""
        top = self.deviance(scale) + 2 * _DROP

        def beyond(log: float) -> float:
            return self.deviance(_with(scale, k, float(np.exp(log)))) - top

        unit = max(float(scale[k]), float(self._guess()[k]))
        middle = float(np.log(max(float(scale[k]), 1e-4 * unit)))
        low, high = 0.0, np.inf
        if self.deviance(_with(scale, k, 0.0)) > top and beyond(middle) < 0:
            low = float(np.exp(_root(beyond, middle - 12.0, middle)))
        if beyond(middle + 12.0) > 0:
            high = float(np.exp(_root(beyond, middle, middle + 12.0)))
        return low, high

    def _guess(self) -> Array:
        """Rough spread [K]: deviations of the sessions' own estimates from their mean."""
        own, _, own_pull = self._own
        alone = np.stack([pseudo_inverse(a) @ p for a, p in zip(own, own_pull, strict=True)])
        apart = np.std(alone, axis=0) + np.std(self.offsets, axis=0)
        least = np.sqrt(np.median(np.stack([np.diag(pseudo_inverse(a)) for a in own]), axis=0))
        return np.maximum(apart / np.sqrt(self.inflation), least) + 1e-12

    def _best_along(self, scale: Array, k: int) -> float:
        unit = self._guess()[k]
        grid = unit * _GRID
        values = [self.deviance(_with(scale, k, float(g))) for g in grid]
        best = int(np.argmin(values))
        ends = np.log(grid[max(best - 1, 0)]), np.log(grid[min(best + 1, len(grid) - 1)])
        found = minimize_scalar(
            lambda log: self.deviance(_with(scale, k, float(np.exp(log)))),
            bounds=(float(ends[0]), float(ends[1])),
            method="bounded",
            options={"xatol": 1e-3},
        )
        value, at = float(found.fun), float(np.exp(found.x))
        return at if value < self.deviance(_with(scale, k, 0.0)) - 1e-6 else 0.0

    def covariance(self, scale: Array) -> Array:
        """Covariance of the parameters by the model itself, prior included [P, P]."""
        data = self.marginal(scale)[0].sum(axis=0)
        inverse = pseudo_inverse(data + self.prior)
        return inverse @ (self.inflation * data + self.prior) @ inverse

    def posterior(self, scale: Array, wide: Array) -> SessionPosterior:
        """Every session's values, averaged over the spreads that the sessions leave possible.

        Few sessions hardly say how much they differ. Values that take the most likely spread for
        granted are too sure of themselves, above all where it is zero; so each spread in turn is
        integrated over its restricted likelihood times a half-Cauchy weight.

        Args:
            scale: Most likely spread [K].
            wide: Spread at which the weight has halved, in units of ``scale`` [K].
        """
        found = self._given(scale)
        for k in range(len(scale)):
            grid = np.append(0.0, self._guess()[k] * _FINE)
            points = [_with(scale, k, float(g)) for g in grid]
            deviance = np.array([self.deviance(p) for p in points])
            weight = np.exp(-0.5 * (deviance - deviance.min())) / (1 + (grid / wide[k]) ** 2)
            weight = weight * np.gradient(grid)
            found = found.averaged(k, weight / weight.sum(), [self._given(p) for p in points])
        return found

    def _given(self, scale: Array) -> SessionPosterior:
        """Every session's values if the spread were known."""
        own, cross, own_pull = self._own
        gain = self._gain(scale)
        information, pull = self.marginal(scale)
        total = information.sum(axis=0) + self.prior
        step = pseudo_inverse(total) @ (pull.sum(axis=0) + self.prior_pull)
        apart = np.einsum("skl,sl->sk", gain, own_pull - np.einsum("spl,p->sl", cross, step))
        identity = np.eye(len(step))[list(self.columns)]
        reach = identity - np.einsum("skl,spl->skp", gain, cross)
        around = np.einsum("skp,pq,slq->skl", reach, self.covariance(scale), reach)
        diagonal = np.einsum("skk->sk", own)
        alone = np.where(diagonal > 0, self.inflation / np.where(diagonal > 0, diagonal, 1), np.inf)
        return SessionPosterior(
            values=self.population + step[list(self.columns)] + apart,
            covariance=self.inflation * gain + around,
            shrinkage=np.clip(1 - np.einsum("skl,slk->sk", gain, own), 0.0, 1.0),
            conditional=np.sqrt(alone),
        )


def _with(scale: Array, k: int, value: float) -> Array:
    moved = scale.copy()
    moved[k] = value
    return moved


def _root(function: object, low: float, high: float) -> float:
    return float(brentq(function, low, high, xtol=1e-3))  # type: ignore[arg-type]


def _log_determinant(matrix: Array) -> float:
    """Of a positive semidefinite matrix, directions without information left out."""
    scale = np.sqrt(np.diag(matrix))
    kept = scale > 0
    safe = scale[kept]
    values = np.linalg.eigvalsh(matrix[np.ix_(kept, kept)] / np.outer(safe, safe))
    return float(np.sum(np.log(np.maximum(values, 1e-12))) + 2 * np.sum(np.log(safe)))


def _inflation(problem: Problem, linear: Linear, information: Array) -> tuple[float, float]:
    """Variance of the sessions' scores over what white noise would give, and its freedom.

    From the scatter of episodes within sessions; where these are too few, from blocks of rows.
    """
    columns = list(problem.sessions.columns)
    total = information.sum(axis=0)[np.ix_(columns, columns)]
    least = unit_variance(problem, linear)
    groups: dict[int, list[Array]] = {}
    for windows in problem.clusters:
        score = sum(linear.projected[w][:, columns].T @ linear.residual[w] for w in windows)
        groups.setdefault(int(problem.sessions.member[windows[0]]), []).append(np.asarray(score))
    several = {s: np.stack(g) for s, g in groups.items() if len(g) > 1}
    freedom = sum(len(g) - 1 for g in several.values())
    if freedom < _NEEDED:
        middle = block_scores(problem, linear, 200, problem.seed)[0][np.ix_(columns, columns)]
        return max(_ratio(middle, total), least), np.inf
    middle = sum(len(g) / (len(g) - 1) * _scatter(g) for g in several.values())
    seen = information[list(several)].sum(axis=0)[np.ix_(columns, columns)]
    return max(_ratio(np.asarray(middle), seen), least), float(freedom)


def _scatter(scores: Array) -> Array:
    centred = scores - scores.mean(axis=0)
    return centred.T @ centred


def _ratio(middle: Array, information: Array) -> float:
    return float(np.trace(pseudo_inverse(information) @ middle)) / len(information)
