"""Fit a cube's contact to real, recorded tosses and predict tosses that were never fitted.

The tosses come with the package (ContactNets, arXiv 2009.11193). A few of them say a lot about
sliding friction and the height of the board, and little about the rest: ask for what they can tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sameworld import IdentifyConfig, IdentifyResult, Prediction, build, identify, predict_all
from sameworld.loops.metrics import coverage
from sameworld.zoo import cube_tosses, scene

FITTED, WARMUP = 8, 5
FRICTION = "pair:cube_box+floor.friction.slide"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came out.

    Attributes:
        result: What identification found.
        before: Predictions of unseen tosses with the scene's nominal constants.
        after: The same with the fitted world.
    """

    result: IdentifyResult
    before: list[Prediction]
    after: list[Prediction]


def run(count: int = 14) -> Outcome:
    """Fit the first tosses, predict the others."""
    world, tosses = build(scene("cube")), cube_tosses(count)
    config = IdentifyConfig(
        free=("pair:*.friction.slide", "geom:floor.pos.z"),
        warmup=WARMUP,
        search="none",  # start from the scene's constants only: quick
        rounds=1,
        holdout=0.0,  # the tosses kept back below are the test
    )
    fitted, _, result = identify(world, tosses[:FITTED], config=config)
    unseen = tosses[FITTED:]
    return Outcome(
        result=result,
        before=predict_all(world, unseen, WARMUP),
        after=predict_all(fitted, unseen, WARMUP),
    )


def position_error(predictions: list[Prediction]) -> float:
    """Median over tosses of the mean distance between predicted and recorded position [m]."""
    errors = [np.linalg.norm(p.channels["cube.pos"].error, axis=1).mean() for p in predictions]
    return float(np.median(errors))


def check() -> None:
    """Friction is determined, unseen tosses are not predicted worse, intervals hold most rows."""
    found = run()
    friction = found.result.verdict(FRICTION)
    assert friction.verdict == "determined", friction.detail
    assert friction.low < friction.value < friction.high
    assert position_error(found.after) < 1.1 * position_error(found.before)
    assert all(p.calibrated for p in found.after)
    assert coverage(found.after, "cube.pos") > 0.7


if __name__ == "__main__":
    outcome = run()
    for row in outcome.result.verdicts:
        print(f"{row.name}: {row.value:.4g} [{row.low:.4g}, {row.high:.4g}] {row.verdict}")
    print(f"error before {position_error(outcome.before):.4f} m, after ", end="")
    print(f"{position_error(outcome.after):.4f} m")
