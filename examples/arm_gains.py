"""Find how stiff and how damped the seven servos of an arm are, from two seconds of motion.

A stand-in plays the real arm: its gains differ from the data sheet by up to a factor of two. Joint
positions are measured with noise. The fitted world predicts a motion it has never seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sameworld import IdentifyConfig, IdentifyResult, Prediction, Values, build, identify, predict
from sameworld.policies import MultiSine
from sameworld.robots import StandIn, record
from sameworld.zoo import scene

GAINS = tuple(f"actuator:a{k}.kp" for k in range(1, 8))
DAMPINGS = tuple(f"joint:j{k}.damping" for k in range(1, 8))
FREE = (*GAINS, *DAMPINGS)
NOISE = {f"j{k}.pos": 1e-3 for k in range(1, 8)} | {f"j{k}.vel": 1e-2 for k in range(1, 8)}
TICKS, WARMUP = 200, 5


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was found, and predictions of the unseen motion by the data sheet and by the fit."""

    result: IdentifyResult
    before: Prediction
    after: Prediction


def hidden() -> Values:
    """Gains and dampings of the real arm."""
    world = build(scene("arm"))
    factors = np.exp(np.random.default_rng(5).uniform(-1, 1, len(FREE)) * math.log(2))
    nominal = np.array([world.parameters[name].value for name in FREE])
    return Values(names=FREE, array=(nominal * factors)[None])


def run() -> Outcome:
    """Record two motions, fit the first, predict the second."""
    world = build(scene("arm"))
    robot = StandIn(world, parameters=hidden(), noise=NOISE)
    robot.connect()
    motions = []
    for seed in (0, 1):
        robot.place(seed)
        driver = MultiSine(amplitude=np.full(7, 0.4), period=world.spec.period, seed=seed)
        motions.append(record(robot, driver, TICKS, id=f"motion{seed}"))
    config = IdentifyConfig(free=FREE, weighting="noise", loss="linear", holdout=0.0)
    fitted, _, result = identify(world, motions[:1], config=config)
    before, after = (predict(w, motions[1], WARMUP) for w in (world, fitted))
    return Outcome(result=result, before=before, after=after)


def error(prediction: Prediction) -> float:
    """Root mean square error of the joint positions [rad]."""
    errors = [prediction.channels[f"j{k}.pos"].error for k in range(1, 8)]
    return float(np.sqrt(np.mean(np.square(errors))))


def check() -> None:
    """Gains are found to a few percent, and the unseen motion is predicted to the noise."""
    found, truth = run(), hidden()
    for name in GAINS:
        row = found.result.verdict(name)
        assert row.verdict == "determined", row.detail
        assert abs(math.log(row.value / truth.column(name)[0])) < 0.1, f"{name}: {row.value}"
    assert error(found.after) < 2e-3 < error(found.before)


if __name__ == "__main__":
    outcome = run()
    for row in outcome.result.verdicts:
        print(f"{row.name}: {row.value:.4g} [{row.low:.4g}, {row.high:.4g}] {row.verdict}")
    print(f"error before {error(outcome.before):.4f} rad, after {error(outcome.after):.4f} rad")
