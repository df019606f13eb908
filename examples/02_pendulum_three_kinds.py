"""One call fits three kinds of world: an engine, an analytic model, and a learned map.

A stand-in plays reality: a pendulum with hidden mass and damping, measured with noise. All three
worlds see the same recordings and are judged on the same held-out ones.
"""

from __future__ import annotations

import math

import numpy as np

import sameworld as sw
from sameworld.policies import MultiSine
from sameworld.robots import StandIn, record
from sameworld.zoo import AnalyticPendulum, RegressionWorld, scene

TRUTH = {"body:bob.mass": 0.7, "joint:pivot.damping": 0.05}
NOISE = {"pivot.pos": 2e-3, "pivot.vel": 2e-2}


def recordings(count: int = 6, ticks: int = 150) -> tuple[sw.Episode, ...]:
    """Driven swings of the stand-in, each from another start."""
    angle = sw.Parameter(name="start:pivot.pos", value=0.0, std=0.4, unit="rad", scope="episode")
    robot = StandIn(
        AnalyticPendulum(),
        parameters=sw.Values.of(TRUTH),
        noise=NOISE,
        start=sw.Belief(parameters=(angle,)),
    )
    robot.connect()
    episodes: list[sw.Episode] = []
    for k in range(count):
        robot.place(seed=k)
        driver = MultiSine(amplitude=np.array([2.0]), period=robot.spec.period, seed=k)
        episodes.append(record(robot, driver, ticks, id=f"swing_{k}", source="analytic"))
    return tuple(episodes)


def worlds() -> dict[str, tuple[sw.World, tuple[str, ...]]]:
    """Each kind with the parameters to fit; a learned world names none and trains its weights."""
    analytic, free = AnalyticPendulum(), tuple(TRUTH)
    spec = analytic.spec
    learned = RegressionWorld(
        scene=scene("pendulum"),
        period=spec.period,
        observations=spec.observations,
        actions=spec.actions,
    )
    return {
        "explicit": (sw.build(scene("pendulum")), free),
        "analytic": (analytic, free),
        "learned": (learned, ()),
    }


def run() -> dict[str, sw.IdentifyResult]:
    """Fit all three to the same recordings."""
    episodes, found = recordings(), dict[str, sw.IdentifyResult]()
    for kind, (world, free) in worlds().items():
        config = sw.IdentifyConfig(free=free, search="none", weighting="noise", loss="linear")
        found[kind] = sw.identify(world, episodes, config=config)[2]
    return found


def check() -> None:
    """Both physical worlds find the hidden numbers; every kind passes the same gate."""
    for kind, result in run().items():
        assert result.holdout is not None and result.holdout.passed, kind
        assert result.blocks_only == (kind == "learned")
        for row in result.verdicts:
            assert row.verdict == "determined", f"{kind}: {row.detail}"
            assert abs(math.log(row.value / TRUTH[row.name])) < 0.1, f"{kind}: {row.value}"


if __name__ == "__main__":
    for kind, result in run().items():
        for row in result.verdicts:
            print(f"{kind}: {row.name} = {row.value:.4g} [{row.low:.4g}, {row.high:.4g}]")
        for channel, errors in result.holdout.after.items() if result.holdout else ():
            print(f"{kind}: {channel} median held-out error {np.median(errors):.3g}")
