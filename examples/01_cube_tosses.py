"""Fit a cube's contact and inertia to real, recorded tosses, and predict tosses never fitted.

The tosses come with the package (ContactNets, arXiv 2009.11193). The published description puts the
mass in the middle of the cube; the recordings say where it really is, and what they cannot tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sameworld import IdentifyResult, Prediction, build, identify, predict_all
from sameworld.loops.metrics import coverage
from sameworld.zoo import cube_config, cube_tosses, scene

FITTED, UNSEEN, WARMUP = 12, 20, 5
ROWS = 20
FRICTION = "pair:cube_box+floor.friction.slide"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came out.

    Attributes:
        result: What identification found.
        before: Predictions of unseen tosses with the published constants.
        after: The same with the fitted world.
    """

    result: IdentifyResult
    before: list[Prediction]
    after: list[Prediction]


def run() -> Outcome:
    """Fit the first tosses, predict the others."""
    world, tosses = build(scene("cube")), cube_tosses(FITTED + UNSEEN)
    config = cube_config(holdout=0.0)  # no gate: the unseen tosses below are the test
    fitted, _, result = identify(world, tosses[:FITTED], config=config)
    return Outcome(
        result=result,
        before=predict_all(world, tosses[FITTED:], WARMUP),
        after=predict_all(fitted, tosses[FITTED:], WARMUP),
    )


def position_error(predictions: list[Prediction]) -> float:
    """Median distance between prediction and recording, 20 rows after the warm-up [m]."""
    errors = [np.linalg.norm(p.channels["cube.pos"].error[ROWS - 1]) for p in predictions]
    return float(np.median(errors))


def check() -> None:
    """Friction is determined, unseen tosses are predicted better, intervals hold most rows."""
    found = run()
    friction = found.result.verdict(FRICTION)
    assert friction.verdict == "determined", friction.detail
    assert friction.low < friction.value < friction.high
    assert position_error(found.after) < 0.8 * position_error(found.before)
    assert all(p.calibrated for p in found.after)
    assert coverage(found.after, "cube.pos") > 0.7


if __name__ == "__main__":
    outcome = run()
    for row in outcome.result.verdicts:
        print(f"{row.name}: {row.value:.4g} [{row.low:.4g}, {row.high:.4g}] {row.verdict}")
    print(f"error before {position_error(outcome.before):.4f} m, after ", end="")
    print(f"{position_error(outcome.after):.4f} m")
