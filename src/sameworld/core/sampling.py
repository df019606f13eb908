"""Draws from a Gaussian truncated to a box, with numpy alone."""

from __future__ import annotations

import numpy as np

from sameworld.core.arrays import Array

__all__ = ["truncated_normal"]

_ROUNDS = 50
_SWEEPS = 60


def truncated_normal(
    mean: Array, covariance: Array, low: Array, high: Array, count: int, rng: np.random.Generator
) -> Array:
    """Draw from ``N(mean, covariance)`` inside ``[low, high]``.

    Rejection first; what rejection cannot fill in 50 rounds (a mean at a corner in many
    dimensions) comes from a Gibbs sampler.

    Args:
        mean: Mean [P], inside the box.
        covariance: Covariance [P, P], positive semidefinite.
        low: Lower bounds [P].
        high: Upper bounds [P].
        count: Number of draws.
        rng: Generator.

    Returns:
        Draws [count, P].

    Source: C. P. Robert, "Simulation of truncated normal variables", Statistics and Computing 5
    (1995), for the one-dimensional conditionals.
    """
    root = _root(covariance)
    draws = np.empty((0, len(mean)))
    for _ in range(_ROUNDS):
        if len(draws) >= count:
            return draws[:count]
        fresh = mean + rng.standard_normal((max(count, 64), len(mean))) @ root.T
        draws = np.concatenate([draws, fresh[np.all((fresh >= low) & (fresh <= high), axis=1)]])
    if len(draws) >= count:
        return draws[:count]
    rest = _gibbs(mean, root, low, high, count - len(draws), rng)
    return np.concatenate([draws, rest])


def _root(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _gibbs(
    mean: Array, root: Array, low: Array, high: Array, count: int, rng: np.random.Generator
) -> Array:
    """Systematic-scan Gibbs, ``count`` chains side by side.

    The scan runs over independent standard normals ``z`` with ``x = mean + root z``, so strongly
    correlated parameters move together and a singular covariance is no special case.
    """
    sizes = np.linalg.norm(root, axis=0)
    directions = root[:, sizes > 1e-9 * sizes.max(initial=0.0)]
    x = np.repeat(mean[None], count, axis=0)
    z = np.zeros((count, directions.shape[1]))
    for _ in range(_SWEEPS):
        for k, direction in enumerate(directions.T):
            rest = x - z[:, k, None] * direction
            a, b = _reach(rest, direction, low, high)
            z[:, k] = _standard(np.minimum(a, z[:, k]), np.maximum(b, z[:, k]), rng)
            x = rest + z[:, k, None] * direction
    return np.clip(x, low, high)


def _reach(rest: Array, direction: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Interval of z for which ``rest + z direction`` stays in the box, per chain."""
    moving = np.abs(direction) > 1e-12 * np.abs(direction).max()
    below = (low - rest)[:, moving] / direction[moving]
    above = (high - rest)[:, moving] / direction[moving]
    return np.minimum(below, above).max(axis=1), np.maximum(below, above).min(axis=1)


def _standard(low: Array, high: Array, rng: np.random.Generator) -> Array:
    """Truncated standard normals, one per pair of bounds, by rejection (Robert 1995)."""
    mirrored = high < 0
    a, b = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    out = np.empty_like(a)
    todo = np.ones(len(a), bool)
    rate = 0.5 * (np.maximum(a, 0.0) + np.sqrt(np.maximum(a, 0.0) ** 2 + 4))
    while todo.any():
        proposal, accept = _proposal(a[todo], b[todo], rate[todo], rng)
        ok = accept & (proposal >= a[todo]) & (proposal <= b[todo])
        places = np.flatnonzero(todo)[ok]
        out[places] = proposal[ok]
        todo[places] = False
    return np.where(mirrored, -out, out)


def _proposal(
    a: Array, b: Array, rate: Array, rng: np.random.Generator
) -> tuple[Array, np.ndarray]:
    """Normal, uniform or exponential proposals, whichever suits the interval."""
    u = rng.random(len(a))
    normal = rng.standard_normal(len(a))
    tail = a - np.log1p(-rng.random(len(a))) / rate
    narrow = (b - a) < np.where(a > 0, 1 / rate, 2.0)
    start = np.where(narrow, a, 0.0)
    uniform = start + rng.random(len(a)) * np.where(narrow, b - a, 0.0)
    peak = np.where(a > 0, a, 0.0)
    keep_uniform = u <= np.exp(0.5 * (peak**2 - uniform**2))
    keep_tail = u <= np.exp(-0.5 * (tail - rate) ** 2)
    proposal = np.where(narrow, uniform, np.where(a > 0, tail, normal))
    return proposal, np.where(narrow, keep_uniform, np.where(a > 0, keep_tail, True))
