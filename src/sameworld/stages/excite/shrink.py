"""Motions made to keep to every limit in simulation, for the mean and for draws of the belief."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.errors import FitError
from sameworld.core.rollout import rollout
from sameworld.core.values import Values
from sameworld.core.world import Rollout
from sameworld.stages.excite.information import Experiment
from sameworld.stages.excite.limits import Box, margins, violations
from sameworld.stages.excite.paths import Paths
from sameworld.stages.excite.result import Motion

__all__ = ["Kept", "Keeper", "parameter_draws"]

#: Shares of a path that are tried at last, down to resting at home.
_SCALES = np.concatenate([np.arange(1.0, 0.9, -0.01), np.linspace(0.9, 0.0, 19)])
_PASSES = 3
_EASE = 0.99
_RUNAWAY = 4.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Kept:
    """A motion that keeps to its limits.

    Attributes:
        motion: The motion.
        scale: Factor by which its path was shrunk.
        simulated: The motion simulated for every draw.
        rollouts: Trajectories it took.
    """

    motion: Motion
    scale: float
    simulated: Rollout
    rollouts: int


def parameter_draws(asked: Experiment, count: int) -> Values:
    """The mean and draws of the free parameters of which there is an opinion [1 + count, P']."""
    names = [p.name for p in asked.transform.parameters if np.isfinite(p.std)]
    chosen = asked.world.parameters.marginal(names)
    if not (count and names):
        return chosen.mean
    return Values.stack([chosen.mean, chosen.sample(count, seed=asked.seed)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Keeper:
    """Shrinks motions of a family until they keep to limits.

    Attributes:
        paths: The family.
        bounds: Limits of signals.
        draws: Parameter values [N, P'] to keep to them for; the first are the believed ones.
        seed: Seed of stochastic worlds.
    """

    paths: Paths
    bounds: Sequence[Box]
    draws: Values
    seed: int

    def eased(self, coefficients: Array) -> tuple[Array, int]:
        """Coefficients [B, J, M] whose simulated motions about keep to the limits.

        How much of its room at rest a bound loses is taken to be proportional to the path. Bounds
        of a joint shrink its own path, bounds of other signals all paths. Limits of commands hold
        exactly, those of simulated signals to second order.

        Returns:
            The coefficients and the trajectories simulated.
        """
        out, spent = self.paths.fitted(coefficients), 0
        for _ in range(_PASSES):
            shares = self._shares(out)
            spent += len(out)
            if (shares <= 1.0).all():
                break
            out = out * np.where(shares > 1.0, _EASE / np.maximum(shares, 1.0), 1.0)[..., None]
        return out, spent

    def _shares(self, coefficients: Array) -> Array:
        """Largest share of the room at rest that is used up [B, J], by the joint it is due to."""
        result = self._simulated(coefficients, self.draws.rows(slice(0, 1)))
        shares = np.zeros(coefficients.shape[:2])
        joints = [m.joint for m in self.paths.movers]
        for box, rooms in zip(self.bounds, self._rooms, strict=True):
            own = [j for j, c in enumerate(joints) if box.of_joint(c)]
            columns = own or list(range(len(joints)))
            reached = box.reached(result, self.paths.world.spec.period)
            for (_, _, scale, room), at_rest in zip(reached, rooms, strict=True):
                used = (at_rest - room) / max(at_rest, 1e-9 * scale)
                used = np.nan_to_num(used, nan=_RUNAWAY, posinf=_RUNAWAY)
                shares[:, columns] = np.maximum(shares[:, columns], used[:, None])
        shares[~result.valid[:, -1]] = _RUNAWAY
        return shares

    @cached_property
    def _rooms(self) -> list[list[float]]:
        """Room of every bound while resting at home."""
        still = self._simulated(np.zeros((1, *self.paths.shape)), self.draws.rows(slice(0, 1)))
        period = self.paths.world.spec.period
        return [[float(r[0]) for *_, r in box.reached(still, period)] for box in self.bounds]

    def kept(self, coefficients: Array, name: str) -> Kept:
        """Shrink one path [J, M] towards home until every limit holds for every draw.

        Raises:
            FitError: Even resting at home passes a limit; says which.
        """
        spec = self.paths.world.spec
        for k, scale in enumerate(_SCALES.tolist()):
            smaller = coefficients * scale
            result = self._simulated(smaller[None], self.draws)
            if (violations(spec, self.bounds, result) == 0).all():
                tried = (k + 1) * self.draws.batch
                motion = self._motion(name, smaller, result)
                return Kept(motion=motion, scale=scale, simulated=result, rollouts=tried)
        resting = self._simulated(np.zeros((1, *self.paths.shape)), self.draws)
        raise FitError(_why(self.paths, self.bounds, resting))

    def _motion(self, name: str, coefficients: Array, result: Rollout) -> Motion:
        return Motion(
            name=name,
            time=self.paths.time,
            actions=result.actions[0],
            start=self.paths.start,
            signals={n: values[0] for n, values in result.signals.items()},
            coefficients=coefficients * self.paths.reach,
        )

    def _simulated(self, coefficients: Array, draws: Values) -> Rollout:
        """Motions [B, J, M] under one draw, or one motion under many."""
        return rollout(
            self.paths.world,
            self.paths.start,
            self.paths.commands(coefficients),
            parameters=draws,
            seed=self.seed,
        )


def _why(paths: Paths, bounds: Sequence[Box], resting: Rollout) -> str:
    if not resting.valid.all():
        reason = next((r for r in resting.reason if r), "")
        return f"Resting at home already fails in simulation: {reason}."
    worst = min(margins(paths.world.spec, bounds, resting), key=lambda m: m.share)
    return (
        f"Resting at home already passes the {worst.bound} bound {worst.limit:.4g} of "
        f"'{worst.signal}' by {-worst.left:.4g}. Choose another 'home', widen that limit, or use "
        "fewer 'draws' if only unlikely parameters pass it."
    )
