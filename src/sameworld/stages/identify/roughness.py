"""How far a rough cost leaves the optimum open.

Contact that is stepped in time makes the cost a landscape of small steps: optimisers stop in one
of many nearby minima, and which one depends on the data by chance. The sandwich, being local, sees
none of it. Here one Gauss-Newton step is taken from points drawn from the posterior itself; on a
smooth problem all of them lead back to the optimum, and on a rough one their scatter is what the
choice of the minimum adds.
"""

from __future__ import annotations

import numpy as np

from sameworld.core.arrays import Array
from sameworld.maths.projection import pseudo_inverse
from sameworld.maths.robust import loss_weights
from sameworld.stages.identify.config import IdentifyConfig
from sameworld.stages.identify.eliminate import Eliminated
from sameworld.stages.identify.problem import Block, Problem

__all__ = ["roughness"]

_DRAWS = 16


def roughness(
    problem: Problem, u: Array, starts: Array, covariance: Array, config: IdentifyConfig
) -> Array:
    """Covariance [P, P] of the optimum as seen from around it; zero on smooth problems.

    Args:
        problem: The problem with its final scales.
        u: The optimum, in all coordinates.
        starts: Its starts [W, S_all].
        covariance: Posterior covariance so far [P, P]; gives the points.
        config: Loss, threshold and seed.
    """
    size = len(problem.names)
    finite = np.isfinite(np.diag(covariance))
    if not problem.rough or not finite.any():
        return np.zeros((size, size))
    covariance = np.where(np.outer(finite, finite), covariance, 0.0)
    plain = problem.with_scales(problem.scales.plain())
    eliminated = Eliminated(plain, u, starts)
    reference = eliminated.reference
    weights = [_weights(b, config) for b in reference.blocks]
    extra = problem.sessions.extra
    precision = np.where(np.isfinite(problem.prior_std), problem.prior_std, np.inf) ** -2.0
    precision = np.append(precision, np.ones(extra))
    centre = np.append(problem.prior_mean, np.zeros(extra))
    slopes = [problem.sessions.lifted(p, w) for w, p in enumerate(reference.projected)]
    information = np.diag(precision)
    for jacobian, weight in zip(slopes, weights, strict=True):
        information = information + jacobian.T @ (weight[:, None] * jacobian)
    inverse = pseudo_inverse(information)
    rng = np.random.default_rng(config.seed)
    moves = rng.multivariate_normal(np.zeros(size), covariance, size=_DRAWS, method="eigh")
    low, high = problem.transform.bounds
    seen: list[Array] = []
    for move in moves:
        point = u.copy()
        point[:size] = np.clip(u[:size] + move, low, high)
        blocks = plain.simulate(point, eliminated.starts(point))
        score = -precision * (point - centre)
        for block, jacobian in zip(blocks, slopes, strict=True):
            score = score - jacobian.T @ (_weights(block, config) * block.residual)
        seen.append((point - u + inverse @ score)[:size])
    back = np.array(seen)
    return back.T @ back / _DRAWS


def _weights(block: Block, config: IdentifyConfig) -> Array:
    return loss_weights(block.residual, config.loss, config.threshold) ** 2
