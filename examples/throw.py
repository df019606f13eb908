"""A throw planned by gradient: torques that land a ball where it shall land, through contact.

The differentiable world says how the landing point changes with every torque of the swing; a few
Newton steps along that derivative hit the target. MuJoCo then throws the same throw.
"""

from __future__ import annotations

from typing import cast

import numpy as np

import sameworld as sw
from sameworld.core import PullbackWorld, Values, rollout
from sameworld.core.arrays import Array, Signals
from sameworld.zoo import scene

TICKS, SWING = 100, 40
FLOOR, HIT = 0.03, 0.005  # height of the ball's centre when it lands; a hit, both in m


def first() -> Array:
    """A swing that throws, but short: torques [1, T, 2] of shoulder and wrist in N m."""
    actions = np.zeros((1, TICKS, 2))
    actions[0, :20], actions[0, 20:35] = (2.0, 0.35), (-1.0, 0.0)
    return actions


def landing(signals: Signals) -> tuple[float, dict[str, Array]]:
    """Where the ball crosses the floor [m], and that number's derivative by the signals."""
    x, z = signals["ball_x.pos"][0], signals["ball_z.pos"][0] - FLOOR
    tick = int(np.flatnonzero(z > 0)[-1])
    here, above, below = [tick, tick + 1], float(z[tick]), float(z[tick + 1])
    share = above / (above - below)
    weights = {name: np.zeros((1, TICKS + 1, 1)) for name in ("ball_x.pos", "ball_z.pos")}
    weights["ball_x.pos"][0, here, 0] = (1 - share, share)
    slope = (x[tick + 1] - x[tick]) / (above - below) ** 2
    weights["ball_z.pos"][0, here, 0] = (-slope * below, slope * above)
    return float((1 - share) * x[tick] + share * x[tick + 1]), weights


def aim(target: float, tries: int = 40) -> tuple[Array, int]:
    """Torques [1, T, 2] that land the ball at ``target`` m, and how many derivatives they took."""
    world = cast(PullbackWorld, sw.build(scene("thrower"), "differentiable"))
    swing = np.arange(TICKS)[:, None] < SWING  # only these torques may change
    start, actions, damping, taken = world.spec.start.mean, first(), 0.1, 1
    reached, weights = landing(rollout(world, Values.none(), actions).signals)
    slope = world.pullback(start, actions, weights).actions * swing
    for _ in range(tries):
        step = (target - reached) * slope / (np.sum(slope**2) * (1 + damping))
        lands, weights = landing(rollout(world, Values.none(), actions + step).signals)
        if abs(lands - target) >= abs(reached - target):
            damping = 4 * (1 + damping)  # a shorter step along the same derivative
            continue
        actions, reached, damping = actions + step, lands, damping / 10
        if abs(reached - target) < HIT:
            break
        slope, taken = world.pullback(start, actions, weights).actions * swing, taken + 1
    return actions, taken


def run(target: float = 1.5) -> tuple[float, float, int]:
    """Landing points in MuJoCo before and after aiming, and the derivatives it took."""
    engine = sw.build(scene("thrower"))
    actions, taken = aim(target)
    before, after = (
        landing(rollout(engine, Values.none(), a).signals)[0] for a in (first(), actions)
    )
    return before, after, taken


def check() -> None:
    """The first swing falls short by half a metre; the aimed one lands within 5 mm, in MuJoCo."""
    before, after, taken = run()
    assert 1.5 - before > 0.5
    assert abs(after - 1.5) < 1.1 * HIT
    assert taken <= 10


if __name__ == "__main__":
    print("lands at {:.3f} m, aimed at 1.5 m {:.4f} m, after {} derivatives".format(*run()))
