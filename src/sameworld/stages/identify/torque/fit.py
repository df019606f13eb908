"""The fit: weighted least squares over physical inertias and joint terms.

Torques are linear in the inertial vectors, so that all rows shrink to one triangle; the search over
relative coordinates, in which every point is a possible body, sees the triangle only.

Sources: M. Gautier, "Dynamic identification of robots with power model", ICRA 1997, for weighted
least squares on filtered torques; C. Rucker, P. M. Wensing, "Smooth parameterization of rigid-body
inertia", RA-L 7 (2022), for the unconstrained search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from sameworld.core.arrays import Array
from sameworld.core.errors import FitError
from sameworld.maths.filtering import correlation_time
from sameworld.maths.regression import compressed
from sameworld.stages.identify.torque.config import TorqueConfig
from sameworld.stages.identify.torque.design import Design, make_design
from sameworld.stages.identify.torque.friction import friction_widths
from sameworld.stages.identify.torque.layout import Layout
from sameworld.stages.identify.torque.motion import Motion

__all__ = ["Solution", "cross_validated", "pieces_of", "predicted", "solve", "triangle"]

#: Pieces into which motion is cut at least, and the fewest rows of a piece.
_PIECES, _FEWEST = 5, 50
_SWEEPS = 2
_EVALUATIONS, _TOLERANCE = 100, 1e-10


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """A fit.

    Attributes:
        x: Unknowns [P].
        width: Index of the friction width of each joint [V].
        weight: Square root of the weight of each torque [V]: one over its residual's standard
            deviation and the root of its correlation time in rows.
        deviation: Residual standard deviation [V] N m.
        memory: Correlation time of the residuals [V] in rows.
        cost: Half the sum of squared weighted residuals, prior included.
        history: Cost after each round.
        evaluations: Evaluations of the search.
        message: Closing message of the search.
    """

    x: Array
    width: NDArray[np.intp]
    weight: Array
    deviation: Array
    memory: Array
    cost: float
    history: tuple[float, ...]
    evaluations: int
    message: str


def pieces_of(layout: Layout, motions: Sequence[Motion], config: TorqueConfig) -> list[Design]:
    """Designs of contiguous pieces, at least five in all where rows allow it.

    Raises:
        FitError: There is no motion, or less than unknowns need.
    """
    if not motions:
        raise FitError("No motion to fit. Give at least one episode.")
    widths = friction_widths(config.friction)
    cuts = -(-_PIECES // len(motions))
    pieces: list[Design] = []
    for motion in motions:
        whole = make_design(layout, motion, config.friction, widths, cutoff=config.cutoff)
        rows = len(whole.motion)
        edges = np.linspace(0, rows, max(1, min(cuts, rows // _FEWEST)) + 1).astype(int).tolist()
        pieces += [whole.cut(slice(a, b)) for a, b in pairwise(edges)]
    rows = sum(len(piece.motion) for piece in pieces) * len(layout.channels)
    if rows <= layout.size:
        raise FitError(f"{rows} torque samples for {layout.size} unknowns. Record more.")
    return pieces


def triangle(design: Design, layout: Layout, weight: Array) -> Array:
    """Weighted rows and target of a design, compressed [<= P + 1, P + 1]."""
    rows = np.concatenate([design.columns, design.target[..., None]], axis=-1)
    return compressed((rows * weight[:, None]).reshape(-1, layout.size + 1))


def predicted(design: Design, layout: Layout, x: Array) -> Array:
    """Torques [N, V] that the unknowns say."""
    return design.motion.torque - design.target + design.columns @ layout.coefficients(x)[0]


def solve(pieces: Sequence[Design], layout: Layout, config: TorqueConfig) -> Solution:
    """Fit everything, with weights and friction widths re-estimated in rounds."""
    x = np.clip(layout.given, *layout.bounds)
    width, history = pieces[0].width, list[float]()
    weight, deviation, memory = _weights(pieces, layout, x)
    evaluations, message, cost = 0, "", float("nan")
    for _ in range(config.rounds):
        width = _widths(pieces, layout, x, width, weight)
        pieces = [piece.shaped(layout, width) for piece in pieces]
        stacked = _stacked([triangle(p, layout, weight) for p in pieces])
        found = _search(stacked, layout, x)
        x, cost, message = found.x, found.cost, found.message
        history.append(cost)
        evaluations += found.evaluations
        weight, deviation, memory = _weights(pieces, layout, x)
    return Solution(
        x=x,
        width=width,
        weight=weight,
        deviation=deviation,
        memory=memory,
        cost=cost,
        history=tuple(history),
        evaluations=evaluations,
        message=message,
    )


def _stacked(triangles: Sequence[Array]) -> Array:
    return compressed(np.concatenate(triangles))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Found:
    """Where a search ended."""

    x: Array
    cost: float
    evaluations: int
    message: str


def _search(stacked: Array, layout: Layout, begin: Array) -> _Found:
    """Gauss-Newton on the triangle; each step obeys the bounds, and is halved until it helps."""
    rows, goal = stacked[:, :-1], stacked[:, -1]
    root, (low, high) = np.sqrt(layout.precision), layout.bounds

    def residual(x: Array) -> Array:
        fit = rows @ layout.coefficients(x)[0] - goal
        return np.concatenate([fit, root * (x - layout.given)])

    x = np.clip(begin, low, high)
    error = residual(x)
    for count in range(1, _EVALUATIONS):
        slope = np.concatenate([rows @ layout.coefficients(x)[1], np.diag(root)])
        step = _bounded_step(slope, error, low - x, high - x)
        share, trial = 1.0, residual(x + step)
        while trial @ trial > error @ error and share > 1e-3:
            share *= 0.5
            trial = residual(x + share * step)
        gain = float(error @ error - trial @ trial)
        if gain <= _TOLERANCE * float(error @ error):
            return _Found(
                x=x, cost=0.5 * float(error @ error), evaluations=count, message="converged"
            )
        x, error = np.clip(x + share * step, low, high), trial
    return _Found(
        x=x,
        cost=0.5 * float(error @ error),
        evaluations=_EVALUATIONS,
        message="maximum number of evaluations",
    )


def _bounded_step(slope: Array, error: Array, low: Array, high: Array) -> Array:
    """Least-squares step within bounds [P]."""
    size = np.linalg.norm(slope, axis=0)
    size = np.where(size > 0, size, 1.0)
    found = lsq_linear(slope / size, -error, (low * size - 1e-300, high * size + 1e-300), "bvls")
    return np.clip(np.asarray(found.x) / size, low, high)


def _weights(pieces: Sequence[Design], layout: Layout, x: Array) -> tuple[Array, Array, Array]:
    """Weights, deviations and correlation times of the torques, from residuals."""
    residuals = [piece.motion.torque - predicted(piece, layout, x) for piece in pieces]
    deviation = np.sqrt(np.mean(np.concatenate(residuals) ** 2, axis=0))
    deviation = np.maximum(deviation, 1e-9 * max(1.0, float(deviation.max())))
    share = np.array([len(r) for r in residuals], dtype=np.float64)
    times = np.array([[correlation_time(column) for column in r.T] for r in residuals])
    memory = share @ times / share.sum()
    return 1 / (deviation * np.sqrt(memory)), deviation, memory


def _widths(
    pieces: Sequence[Design], layout: Layout, x: Array, width: NDArray[np.intp], weight: Array
) -> NDArray[np.intp]:
    """Friction width of each joint that fits best, everything else refitted to first order.

    Coordinate descent; only one row and column of the normal matrix change with a width.
    """
    places = layout.names("frictionloss")
    if pieces[0].friction.shape[1] == 1:
        return width
    width = _fixed_widths(pieces, layout, x, width)
    if not places:
        return width
    coefficients, slope = layout.coefficients(x)
    heights = np.zeros(layout.size)
    for place, _ in places:
        heights[place], slope[place, place] = coefficients[place], 1.0
    rows = np.concatenate([p.columns for p in pieces]) @ slope * weight[:, None]
    friction = np.concatenate([p.friction for p in pieces])
    target = np.concatenate([p.target for p in pieces])
    columns = np.concatenate([p.columns for p in pieces])
    goal = (target - columns @ (coefficients - heights)) * weight
    flat = rows.reshape(-1, layout.size)
    normal = flat.T @ flat + np.diag(layout.precision)
    right = flat.T @ goal.reshape(-1) + layout.precision * (layout.given - x + heights)
    chosen = width.copy()
    for _ in range(_SWEEPS):
        for place, joint in places:
            signals = friction[:, :, joint] * weight[joint]
            chosen[joint] = _best(normal, right, rows, goal, signals, place, joint, layout)
            rows[:, joint, place] = signals[:, chosen[joint]]
            _replace(normal, right, rows, goal, signals[:, chosen[joint]], place, joint, layout)
    return chosen


def _fixed_widths(
    pieces: Sequence[Design], layout: Layout, x: Array, width: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Widths of friction whose height is not fitted, by what the rest leaves over."""
    chosen = width.copy()
    friction = np.concatenate([piece.friction for piece in pieces])
    errors = np.concatenate([p.motion.torque - predicted(p, layout, x) for p in pieces])
    for joint in np.flatnonzero(pieces[0].heights).tolist():
        height = pieces[0].heights[joint]
        without = errors[:, joint] + height * friction[:, width[joint], joint]
        left = without[:, None] - height * friction[:, :, joint]
        chosen[joint] = int(np.argmin(np.sum(left**2, axis=0)))
    return chosen


def _best(
    normal: Array,
    right: Array,
    rows: Array,
    goal: Array,
    signals: Array,
    place: int,
    joint: int,
    layout: Layout,
) -> int:
    gains: list[float] = []
    for signal in signals.T:
        _replace(normal, right, rows, goal, signal, place, joint, layout)
        gains.append(float(right @ np.linalg.solve(normal, right)))
    return int(np.argmax(gains))


def _replace(
    normal: Array,
    right: Array,
    rows: Array,
    goal: Array,
    signal: Array,
    place: int,
    joint: int,
    layout: Layout,
) -> None:
    """Put another friction signal into the normal equations, in place."""
    cross = signal @ rows[:, joint]
    normal[place], normal[:, place] = cross, cross
    normal[place, place] = signal @ signal + layout.precision[place] + 1e-12
    right[place] = signal @ goal[:, joint] + layout.precision[place] * layout.given[place]


def cross_validated(
    pieces: Sequence[Design], layout: Layout, found: Solution, *, folds: int = 5
) -> list[Array]:
    """Torque errors [N, V] of every piece by unknowns fitted to the other folds.

    Folds are contiguous; weights and widths are those of the fit to everything.
    """
    pieces = [piece.shaped(layout, found.width) for piece in pieces]
    triangles = [triangle(piece, layout, found.weight) for piece in pieces]
    owner = np.arange(len(pieces)) * folds // max(len(pieces), folds)
    errors: dict[int, Array] = {}
    for fold in np.unique(owner).tolist():
        others = [t for k, t in enumerate(triangles) if owner[k] != fold]
        x = _search(_stacked(others), layout, found.x).x if others else found.x
        for k in np.flatnonzero(owner == fold).tolist():
            errors[k] = pieces[k].motion.torque - predicted(pieces[k], layout, x)
    return [errors[k] for k in range(len(pieces))]
