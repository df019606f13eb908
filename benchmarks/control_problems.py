"""Two problems of control: a throw to a target, and an arm that comes to rest at a point.

Actions are numbers z [K, A], shares of the motors' limits, spread over the ticks by a basis.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Literal, final

import numpy as np

from sameworld.core import Values, World, rollout
from sameworld.core.arrays import Array, Signals
from sameworld.worlds import build
from sameworld.worlds.differentiable import DifferentiableWorld
from sameworld.zoo import scene

TICKS = 100
THROW_HIT = 0.005
"""Distance from the target at which a throw is a hit [m]."""
REACH_HIT = 0.01
"""Norm of position error [m] and ``REST`` times joint speeds [rad/s] at the end of a hit."""
REST = 0.05
EFFORT = 1e-3
"""Mean squared share of the motors' limits that costs as much as a miss of one hit."""
FLOOR = 0.03
"""Height of the ball's centre when it lands [m]."""


class Problem(ABC):
    """Actions to find: numbers z [K, A] become ``limits * (basis @ z)``.

    Attributes:
        name: Prefix of keys.
        scene: Scene of the zoo.
        method: How gradients are used.
        hit: Miss that counts as one.
        basis: Weights of the numbers at every tick [T, K].
        first: Where both methods begin [K, A].
        parameters: Parameters of the worlds, those of the scene if not given.
    """

    name: str
    scene: str
    method: Literal["lm", "lbfgs"] = "lm"
    hit: float
    basis: Array
    first: Array
    parameters: Values | None = None

    @cached_property
    def world(self) -> DifferentiableWorld:
        """The scene, differentiable."""
        world = build(scene(self.scene), "differentiable")
        assert isinstance(world, DifferentiableWorld)
        return world

    @cached_property
    def engine(self) -> World:
        """The same scene in MuJoCo."""
        return build(scene(self.scene))

    @cached_property
    def limits(self) -> Array:
        """Largest actions [A]."""
        return np.array([c.high for c in self.world.spec.actions])

    def actions(self, z: Array) -> Array:
        """Actions [B, T, A] of numbers [B, K, A]."""
        return self.limits * np.einsum("tk,bka->bta", self.basis, z)

    def seen(self, world: World, z: Array) -> Signals:
        """Signals [B, T+1, ...] of numbers [B, K, A]."""
        actions = self.actions(z)
        return rollout(world, Values.none(), actions, parameters=self.parameters).signals

    def pulled(self, z: Array, weights: Mapping[str, Array]) -> Array:
        """Derivatives [R, K, A] of R weighted sums of signals of one element."""
        actions = np.repeat(self.actions(z[None]), len(next(iter(weights.values()))), axis=0)
        start = self.world.spec.start.mean.broadcast(len(actions))
        back = self.world.pullback(start, actions, weights, self.parameters, wrt=())
        return np.einsum("tk,rta->rka", self.basis, back.actions * self.limits)

    def metric(self) -> Array:
        """Matrix [K A, K A] of the effort: its cost is ``z @ metric @ z``."""
        motors = len(self.limits)
        gram: Array = np.asarray(self.basis.T @ self.basis, dtype=np.float64)
        return np.kron(gram / (TICKS * motors * EFFORT), np.eye(motors)).astype(np.float64)

    @abstractmethod
    def target(self, seed: int) -> Array:
        """Draw a target."""

    @abstractmethod
    def residuals(self, signals: Signals, target: Array) -> Array:
        """Miss [B, R]."""

    @abstractmethod
    def weights(self, signals: Signals) -> Mapping[str, Array]:
        """Derivatives of the residuals by signals, channel to [R, T+1, D]; one element."""


@final
class Throw(Problem):
    """Torques of the first 0.4 s throw the ball, which lands within the second."""

    name, scene, hit = "throw", "thrower", THROW_HIT
    swing = 40

    def __init__(self) -> None:
        self.basis = np.eye(TICKS, self.swing)
        swung = np.zeros((self.swing, 2))
        swung[:20], swung[20:35] = (2.0, 0.35), (-1.0, 0.0)
        self.first = swung / (6.0, 2.0)

    def target(self, seed: int) -> Array:
        """Draw a target [m]."""
        return np.random.default_rng([seed, 1]).uniform(1.0, 2.0, 1)

    def residuals(self, signals: Signals, target: Array) -> Array:
        """Miss [B, R]."""
        tick, share = _landing(signals["ball_z.pos"])
        x, rows = signals["ball_x.pos"], np.arange(len(tick))
        lands = (1 - share) * x[rows, tick] + share * x[rows, tick + 1]
        return np.nan_to_num((lands - target)[:, None], nan=10.0)

    def weights(self, signals: Signals) -> Mapping[str, Array]:
        """Derivatives of the miss by signals."""
        x, z = signals["ball_x.pos"][0], signals["ball_z.pos"][0] - FLOOR
        ticks, shares = _landing(signals["ball_z.pos"])
        tick, share = int(ticks[0]), float(shares[0])
        along, down = np.zeros((2, 1, TICKS + 1, 1))
        here = [tick, tick + 1]
        along[0, here, 0] = (1 - share, share)
        slope = (x[tick + 1] - x[tick]) / (z[tick] - z[tick + 1]) ** 2
        down[0, here, 0] = slope * np.array([-z[tick + 1], z[tick]])
        return {"ball_x.pos": along, "ball_z.pos": down}


def _landing(height: Array) -> tuple[np.ndarray, Array]:
    """Last tick [B] above the floor and share [B] of the next one until landing."""
    above = height - FLOOR
    last = above.shape[1] - 2 - np.argmax(above[:, -2::-1] > 0, axis=1)
    rows = np.arange(len(above))
    return last, above[rows, last] / (above[rows, last] - above[rows, last + 1])


@final
class Reach(Problem):
    """Torques over 1 s, linear between ten knots, bring the tip to a point, and the arm to rest."""

    name, scene, hit = "reach", "reacher", REACH_HIT
    method = "lbfgs"
    knots = 10

    def __init__(self) -> None:
        at = np.linspace(0, TICKS - 1, self.knots)
        self.basis = np.stack(
            [np.interp(np.arange(TICKS), at, unit) for unit in np.eye(self.knots)], axis=1
        )
        self.first = np.zeros((self.knots, 4))

    def target(self, seed: int) -> Array:
        """Draw a target [m]."""
        rng = np.random.default_rng([seed, 2])
        radius, angle = rng.uniform(0.3, 0.9), rng.uniform(-2.5, 2.5)
        return radius * np.array([math.cos(angle), math.sin(angle)])

    def residuals(self, signals: Signals, target: Array) -> Array:
        """Miss [B, R]."""
        speeds = [REST * signals[f"j{k}.vel"][:, -1:] for k in range(1, 5)]
        return np.concatenate([signals["tip"][:, -1, :2] - target, *speeds], axis=1)

    def weights(self, signals: Signals) -> Mapping[str, Array]:
        """Derivatives of the miss by signals."""
        tip = np.zeros((6, TICKS + 1, 3))
        tip[[0, 1], -1, [0, 1]] = 1.0
        found = {"tip": tip}
        for k in range(1, 5):
            found[f"j{k}.vel"] = np.zeros((6, TICKS + 1, 1))
            found[f"j{k}.vel"][1 + k, -1] = REST
        return found
