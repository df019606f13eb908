"""Covariance of fitted parameters that survives a wrong model.

``J'J`` assumes independent noise and a true model; on real recordings it is an order of magnitude
too narrow. The default takes the scatter of whole episodes' scores: starts are projected out, the
residuals of an episode may be correlated in any way, and the model may be wrong.

Source: P. J. Huber (1967) and H. White, Econometrica 50 (1982), for the sandwich; A. C. Cameron,
D. L. Miller, "A practitioner's guide to cluster-robust inference", J. Human Resources 50 (2015),
section VI.B, for the leave-one-cluster-out form (CV3); H. R. Kuensch, Annals of Statistics 17
(1989), for the block bootstrap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from sameworld.core.arrays import Array
from sameworld.maths.robust import autocorrelation
from sameworld.stages.identify.eliminate import Linear
from sameworld.stages.identify.problem import Problem

__all__ = [
    "CLUSTERS_NEEDED",
    "Spread",
    "block_scores",
    "influence",
    "prior_precision",
    "shrinkage",
    "spread",
    "spread_of",
    "unit_variance",
]

#: Episodes below which episode clusters are too few and blocks of rows are resampled.
CLUSTERS_NEEDED = 8
#: Share of a direction's information from which one episode counts as its only source.
_ALONE = 0.99
#: Scaled information below which a direction counts as not informed, and its variance then.
_SINGULAR, _UNKNOWN = 1e-12, 1e8


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """Covariances of the coordinates.

    Attributes:
        covariance: Default covariance [P, P].
        naive: Covariance by J'J, residuals scaled to unit variance [P, P].
        information: Projected Gauss-Newton Hessian, prior included [P, P].
        unit_variance: Residual variance behind the naive covariance.
        kind: How the default was computed.
        freedom: Degrees of freedom for intervals; infinite for many clusters or blocks.
    """

    covariance: Array
    naive: Array
    information: Array
    unit_variance: float
    kind: str
    freedom: float

    def widened(self, extra: Array) -> Spread:
        """The default covariance with a further, independent part added."""
        return replace(self, covariance=self.covariance + extra)


def influence(problem: Problem, linear: Linear) -> tuple[Array, Array, Array]:
    """Scores u_e [E, P] and information A_e [E, P, P] per unit; and the prior's [P, P].

    Units are episodes, or sessions where these differ; the information is then about a session's
    own parameters.
    """
    size = len(problem.names)
    groups = problem.units
    scores, pieces = np.zeros((len(groups), size)), np.zeros((len(groups), size, size))
    for row, windows in enumerate(groups):
        for w in windows:
            scores[row] += linear.projected[w].T @ linear.residual[w]
            pieces[row] += linear.bread[w]
    return scores, pieces, prior_precision(problem)


def prior_precision(problem: Problem) -> Array:
    """Precision of the prior on the parameters [P, P]."""
    return np.diag(np.where(np.isfinite(problem.prior_std), problem.prior_std, np.inf) ** -2.0)


def spread(
    problem: Problem, linear: Linear, *, bootstrap: int, seed: int, clusters: int = CLUSTERS_NEEDED
) -> Spread:
    """Default and naive covariance at a linearisation whose episodes share all parameters.

    Too few episodes that were cut into enough windows: windows stand in for episodes. What a model
    lacks acts over whole windows, longer than blocks of rows can be.
    """
    kind, units = "episode sandwich", influence(problem, linear)
    if len(units[0]) < clusters <= len(problem.windows):
        kind, units = "window sandwich", _by_window(problem, linear)
    return spread_of(
        problem, linear, units, bootstrap=bootstrap, seed=seed, needed=clusters, kind=kind
    )


def _by_window(problem: Problem, linear: Linear) -> tuple[Array, Array, Array]:
    """Scores [W, P] and information [W, P, P] per window; and the prior's [P, P]."""
    pairs = zip(linear.projected, linear.residual, strict=True)
    scores = np.stack([jacobian.T @ residual for jacobian, residual in pairs])
    return scores, np.stack(linear.bread), prior_precision(problem)


def spread_of(
    problem: Problem,
    linear: Linear,
    units: tuple[Array, Array, Array],
    *,
    bootstrap: int,
    seed: int,
    needed: int = CLUSTERS_NEEDED,
    kind: str = "episode sandwich",
) -> Spread:
    """Default and naive covariance from scores and information of exchangeable units.

    Args:
        problem: The problem.
        linear: Its linearisation at the optimum.
        units: Scores [E, P] and information [E, P, P] per unit, and the prior's [P, P].
        bootstrap: Draws of the block bootstrap.
        seed: Its seed.
        needed: Units below which blocks of rows are resampled.
        kind: What the sandwich is called.
    """
    scores, pieces, prior = units
    information = pieces.sum(axis=0) + prior
    root, unknown = _root(information)
    inverse, variance = root @ root.T, unit_variance(problem, linear)
    shifts, lone = _leave_one_out(scores, pieces, root)
    enough = len(scores) >= needed
    covariance = _scatter(shifts) + inverse @ prior @ inverse
    freedom = float(len(scores) - 1)
    if not enough or lone.shape[1]:
        middle, blocks = block_scores(problem, linear, bootstrap, seed)
        if enough:
            covariance = covariance + lone @ lone.T @ middle @ lone @ lone.T
        else:
            covariance = inverse @ (middle + prior) @ inverse
            kind, freedom = "block bootstrap", float(max(blocks - 1, 2))
    return Spread(
        covariance=covariance + unknown,
        naive=inverse * variance + unknown,
        information=information,
        unit_variance=variance,
        kind=kind,
        freedom=freedom,
    )


def _root(information: Array) -> tuple[Array, Array]:
    """A root R of the pseudo-inverse, R R' [P, P], and the covariance of what nothing informs.

    Scores along such directions vanish, so that a sandwich would call them exact. Parameters
    without any information get an infinite variance.
    """
    scale = np.sqrt(np.diag(information))
    safe = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(information / np.outer(safe, safe))
    informed = values > _SINGULAR
    root = vectors[:, informed] / np.sqrt(values[informed]) / safe[:, None]
    null = vectors[:, ~informed] / safe[:, None]
    null = null / np.maximum(np.linalg.norm(null, axis=0), 1e-300)
    dead = np.diag(np.where(scale > 0, 0.0, np.inf))
    return root, _UNKNOWN * null @ null.T + dead


def _leave_one_out(scores: Array, pieces: Array, root: Array) -> tuple[Array, Array]:
    """Shifts [E, P] of the estimate without each episode in turn, linearised.

    A direction that an episode alone informs cannot move that way: its score vanishes at the
    optimum. These directions come back too, as roots [P, K] of their part of the inverse.
    """
    shifts, lone = np.empty_like(scores), [np.zeros((scores.shape[1], 0))]
    for row, (score, piece) in enumerate(zip(scores, pieces, strict=True)):
        share, vectors = np.linalg.eigh(root.T @ piece @ root)
        axes, alone = root @ vectors, share > _ALONE
        rest = np.where(alone, np.inf, 1 - np.where(alone, 0.0, share))
        shifts[row] = (axes / rest) @ (axes.T @ score)
        lone.append(axes[:, alone])
    return shifts, np.concatenate(lone, axis=1)


def _scatter(shifts: Array) -> Array:
    """CV3 sandwich: jackknife covariance of leave-one-out shifts."""
    centred = shifts - shifts.mean(axis=0)
    return (len(shifts) - 1) / len(shifts) * centred.T @ centred


def block_scores(problem: Problem, linear: Linear, draws: int, seed: int) -> tuple[Array, int]:
    """Covariance [P, P] of the total score by resampling blocks of rows, and their number."""
    rng = np.random.default_rng(seed)
    size = len(problem.names)
    sums: list[Array] = []
    for w, block in enumerate(linear.blocks):
        rows = np.flatnonzero(block.time >= 0)
        order = rows[np.argsort(block.time[rows], kind="stable")]
        residual = linear.residual[w][order]
        score = linear.projected[w][order] * residual[:, None]
        length = _block_length(residual, score)
        edges = np.arange(0, len(order), length)
        sums.extend(score[a : a + length].sum(axis=0) for a in edges)
    table = np.array(sums).reshape(-1, size)
    table = table - table.mean(axis=0)
    picks = rng.multinomial(len(table), np.full(len(table), 1 / len(table)), size=draws)
    totals = picks @ table
    inflate = len(table) / max(len(table) - 1, 1) * shrinkage(problem, linear)
    return cast("Array", totals.T @ totals) / draws * inflate, len(table)


def _block_length(residual: Array, score: Array) -> int:
    """Rows per block: a few correlation times, at least 20 blocks if possible."""
    rho = max(
        abs(autocorrelation(residual)),
        *(abs(autocorrelation(column)) for column in score.T),
        0.0,
    )
    rho = min(rho, 0.99)
    wanted = int(np.ceil(3 * (1 + rho) / (1 - rho)))
    return int(np.clip(wanted, 1, max(len(residual) // 20, 1)))


def shrinkage(problem: Problem, linear: Linear) -> float:
    """Rows over rows minus fitted numbers: residuals are smaller than errors."""
    rows = sum(len(b.residual) for b in linear.blocks)
    fitted = len(problem.names) + sum(b.start.shape[1] for b in linear.blocks)
    return rows / max(rows - fitted, 1)


def unit_variance(problem: Problem, linear: Linear) -> float:
    """Variance of the weighted residuals, corrected for the numbers fitted."""
    rows = sum(len(b.residual) for b in linear.blocks)
    total = sum(float(b.residual @ b.residual) for b in linear.blocks)
    return total / rows * shrinkage(problem, linear)
