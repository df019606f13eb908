"""How well an assignment of columns to joints explains the recorded torques.

Whatever is assumed of the columns gives a motion of the scene; the scene's inverse dynamics gives
the torques of that motion, and these are compared with the recorded ones. A column may add
friction and rotor inertia, which a scene rarely knows, but never with the wrong sign.

Source: comparing hypotheses that are not nested by the scatter of their log-likelihoods follows
Q. H. Vuong, Econometrica 57 (1989).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sameworld.core.arrays import Array, BoolArray
from sameworld.stages.capture.targets import Inverse, Joint

__all__ = ["Arm", "Assignment", "Explanation", "Motion", "advantage"]

#: Share of a column's variance that no model is expected to explain.
_FLOOR = 1e-4
#: Velocity at which dry friction has reached most of its size, as a share of the rms velocity.
_KNEE = 0.1
_SUBSETS = [list(s) for n in (1, 2, 3) for s in itertools.combinations(range(3), n)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Motion:
    """What the position columns of groups did, as recorded, at selected rows.

    Attributes:
        positions: Samples [N, G].
        rates: Time derivatives [N, G].
        bends: Second derivatives [N, G].
    """

    positions: Array
    rates: Array
    bends: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Assignment:
    """Which group is which joint, and how.

    Attributes:
        order: Group of every joint, then the unused groups; numbers from G on stand for none [S].
        scales: Factor of each group's position, with sign [G].
        offsets: Joint position at a recorded zero, per group [G].
    """

    order: NDArray[np.intp]
    scales: Array
    offsets: Array

    def swapped(self, i: int, j: int) -> Assignment:
        """Two places of the order exchanged."""
        order = self.order.copy()
        order[[i, j]] = order[[j, i]]
        return replace(self, order=order)

    def scaled(self, groups: Sequence[int], factor: float) -> Assignment:
        """Scales of some groups multiplied."""
        scales = self.scales.copy()
        scales[list(groups)] *= factor
        return replace(self, scales=scales)

    def moved(self, group: int, by: float | None) -> Assignment:
        """Offset of a group changed, or taken away."""
        offsets = self.offsets.copy()
        offsets[group] = 0.0 if by is None else offsets[group] + by
        return replace(self, offsets=offsets)


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """Recorded torques as an assignment explains them.

    Attributes:
        torque: Torque columns in use [M].
        joint: Joint of each [M].
        sign: Sign of each [M].
        fit: R^2 of each [M].
        residual: What is left of each, with its sign undone [N, M].
        predicted: Explained torque of each joint with friction [N, M].
        loglik: Log-likelihood of every row [N].
    """

    torque: NDArray[np.intp]
    joint: NDArray[np.intp]
    sign: NDArray[np.intp]
    fit: Array
    residual: Array
    predicted: Array
    loglik: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Arm:
    """Recorded motion and torques against a scene.

    Attributes:
        joints: Joints of the scene.
        motion: Motion of the groups.
        torques: Torque columns in SI [N, K].
        inverse: Inverse dynamics of the joints.
        prior: Cost of giving a group to a joint, from names [G, n].
    """

    joints: tuple[Joint, ...]
    motion: Motion
    torques: Array
    inverse: Inverse
    prior: Array

    @property
    def groups(self) -> int:
        """Number of groups G."""
        return self.motion.positions.shape[1]

    def places(self) -> int:
        """Length S of an order."""
        return max(self.groups, len(self.joints))

    def moved(self, assignment: Assignment) -> tuple[Array, Array, Array]:
        """Joint positions, velocities and accelerations [N, n] under an assignment."""
        count, rows = len(self.joints), len(self.motion.positions)
        q, v, a = (np.zeros((rows, count)) for _ in range(3))
        q += np.array([j.rest for j in self.joints])
        order = assignment.order[:count]
        has = np.flatnonzero(order < self.groups)
        group = order[has]
        scale = assignment.scales[group]
        q[:, has] = self.motion.positions[:, group] * scale + assignment.offsets[group]
        v[:, has] = self.motion.rates[:, group] * scale
        a[:, has] = self.motion.bends[:, group] * scale
        return q, v, a

    def cost(self, assignment: Assignment) -> float:
        """Sum over torque columns of the log share of unexplained variance, and priors."""
        moved = self.moved(assignment)
        losses = self._losses(moved, self.inverse(*moved))
        table = losses.min(axis=0)
        rows, columns = linear_sum_assignment(table)
        return float(table[rows, columns].sum()) + self._prior_cost(assignment, moved[0])

    def _prior_cost(self, assignment: Assignment, q: Array) -> float:
        count = len(self.joints)
        low = np.array([j.low for j in self.joints])
        high = np.array([j.high for j in self.joints])
        beyond = np.maximum(low - q.min(axis=0), 0) + np.maximum(q.max(axis=0) - high, 0)
        order = assignment.order[:count]
        has = np.flatnonzero(order < self.groups)
        names = float(self.prior[order[has], has].sum())
        zeros = 0.02 * float(np.minimum(assignment.offsets**2, 1.0).sum())
        flips = 0.05 * int((assignment.scales[order[has]] < 0).sum())
        return 5 * float(beyond.sum()) + names + zeros + flips

    def friction(self, moved: tuple[Array, Array, Array]) -> Array:
        """Centred regressors of what a scene rarely knows [N, n, 3]: viscous, dry, rotor."""
        _, v, a = moved
        knee = _KNEE * np.sqrt(np.mean(v**2, axis=0)) + 1e-9
        terms = np.stack([v, np.tanh(v / knee), a], axis=2)
        return terms - terms.mean(axis=0)

    def _losses(self, moved: tuple[Array, Array, Array], predicted: Array) -> Array:
        """Log share of variance left for either sign, each torque column and joint [2, K, n]."""
        torque = self.torques - self.torques.mean(axis=0)
        power = np.sum(torque**2, axis=0)
        own = predicted - predicted.mean(axis=0)
        terms = self.friction(moved)
        gram = np.einsum("tjf,tjg->jfg", terms, terms)
        ridge = 1e-9 * np.trace(gram, axis1=1, axis2=2)[:, None, None] + 1e-12
        gram += ridge * np.eye(3)
        seen = np.einsum("tjf,tk->jfk", terms, torque)
        pull = np.stack([seen, -seen]) - np.einsum("tjf,tj->jf", terms, own)[None, :, :, None]
        cross = own.T @ torque
        left = power + np.sum(own**2, axis=0)[None, :, None] - 2 * np.stack([cross, -cross])
        best = left.copy()
        for subset in _SUBSETS:
            side = pull[:, :, subset]
            weights = cast(Array, np.linalg.solve(gram[:, subset][:, :, subset], side))
            value = left - np.sum(weights * side, axis=2)
            allowed: BoolArray = np.all(weights >= 0, axis=2)
            best = cast(Array, np.where(allowed, np.minimum(best, value), best))
        share = np.maximum(best, 0.0) / np.where(power > 0, power, 1.0)
        return np.log(np.swapaxes(share, 1, 2) + _FLOOR)

    def explain(self, assignment: Assignment) -> Explanation:
        """Residuals of the recorded torques under an assignment."""
        moved = self.moved(assignment)
        predicted = self.inverse(*moved)
        losses = self._losses(moved, predicted)
        torque, joint = linear_sum_assignment(cast(Array, losses.min(axis=0)))
        sign = 1 - 2 * losses[:, torque, joint].argmin(axis=0)
        terms = self.friction(moved)
        own = predicted - predicted.mean(axis=0)
        measured = (self.torques - self.torques.mean(axis=0))[:, torque] * sign
        explained = np.empty_like(measured)
        for k, j in enumerate(joint.tolist()):
            extra = _positive(terms[:, j], measured[:, k] - own[:, j])
            explained[:, k] = own[:, j] + extra
        residual = measured - explained
        power = np.mean(measured**2, axis=0)
        variance = np.mean(residual**2, axis=0) + _FLOOR * power + 1e-300
        loglik = -0.5 * np.sum(residual**2 / variance + np.log(variance), axis=1)
        return Explanation(
            torque=torque,
            joint=joint,
            sign=sign,
            fit=1 - np.mean(residual**2, axis=0) / np.where(power > 0, power, 1.0),
            residual=residual,
            predicted=explained,
            loglik=loglik,
        )

    def zeroed(
        self, assignment: Assignment, free: NDArray[np.bool_], rounds: int = 4
    ) -> tuple[Assignment, Array]:
        """Offsets of the free groups by Gauss-Newton, with their standard deviations [G]."""
        information = np.eye(self.groups)
        for _ in range(rounds):
            step, information = self._zero_step(assignment, free)
            assignment = replace(assignment, offsets=assignment.offsets + step)
            if np.abs(step).max(initial=0.0) < 1e-3:
                break
        spread = np.sqrt(np.diag(np.linalg.inv(information)))
        return assignment, np.where(free, spread, 0.0)

    def _zero_step(self, assignment: Assignment, free: NDArray[np.bool_]) -> tuple[Array, Array]:
        q, v, a = self.moved(assignment)
        base = self.inverse(q, v, a)
        given = self.explain(assignment)
        order = assignment.order[: len(self.joints)]
        information, pull = np.eye(self.groups), -assignment.offsets.copy()
        slopes = np.zeros((len(q), len(self.joints), self.groups))
        for j in np.flatnonzero(order < self.groups).tolist():
            if free[order[j]]:
                bent = q.copy()
                bent[:, j] += 1e-4
                slopes[:, :, order[j]] = (self.inverse(bent, v, a) - base) / 1e-4
        terms = self.friction((q, v, a))
        for k, j in enumerate(given.joint.tolist()):
            basis, _ = np.linalg.qr(np.column_stack([np.ones(len(q)), terms[:, j]]))
            slope = slopes[:, j] - basis @ (basis.T @ slopes[:, j])
            residual = given.residual[:, k]
            power = float(np.mean(residual**2)) + _FLOOR * float(np.var(given.predicted[:, k]))
            weight = 0.1 / max(power, 1e-300)  # neighbouring rows tell the same
            information += weight * slope.T @ slope
            pull += weight * slope.T @ residual
        step = np.linalg.solve(information, np.where(free, pull, 0.0))
        return np.where(free, np.clip(step, -0.6, 0.6), 0.0), information


def _positive(terms: Array, wanted: Array) -> Array:
    """Least-squares combination of terms [N, 3] with weights of at least 0."""
    from scipy.optimize import nnls

    scale = np.linalg.norm(terms, axis=0) + 1e-12
    weights, _ = nnls(terms / scale, wanted)
    return (terms / scale) @ weights


def advantage(better: Array, other: Array, blocks: int = 10) -> float:
    """Standard errors by which one explanation beats another, from the scatter over blocks.

    Args:
        better: Log-likelihood of each row [N].
        other: The same of the alternative [N].
        blocks: Stretches of rows that are taken as independent.
    """
    sums = np.array([float(part.sum()) for part in np.array_split(better - other, blocks)])
    spread = float(sums.std(ddof=1)) / np.sqrt(blocks)
    return float(sums.mean()) / max(spread, 1e-9)
