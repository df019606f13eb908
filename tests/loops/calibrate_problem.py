"""A calibration that takes a second: the zoo's cart, ten short episodes."""

from pathlib import Path

import numpy as np

from sameworld.core import Channel, Episode, Values, rollout
from sameworld.loops.calibrate import CalibrateConfig, Calibration, calibrate
from sameworld.stages.identify import IdentifyConfig
from sameworld.zoo import AnalyticCart, scene

TRUTH = {"body:cart.mass": 2.3, "joint:rail.damping": 0.9}


def episodes(count: int = 10, ticks: int = 25, seed: int = 0) -> list[Episode]:
    """Recordings of a cart that is heavier than the scene says."""
    rng, world = np.random.default_rng(seed), AnalyticCart(substeps=1)
    start = Values(names=world.spec.start.names, array=rng.normal(0, 0.3, (count, 2)))
    actions = np.repeat(rng.uniform(-10, 10, (count, ticks // 5, 1)), 5, axis=1)
    result = rollout(world, start, actions, parameters=Values.of(TRUTH))
    return [
        Episode(
            id=f"cart{i}",
            channels=(
                Channel(
                    name="rail.pos",
                    time=result.time,
                    values=result.signals["rail.pos"][i] + 1e-3 * rng.normal(size=ticks + 1),
                ),
                Channel(
                    name="rail_motor",
                    time=result.time[:-1],
                    values=actions[i, :, 0],
                    role="action",
                ),
            ),
        )
        for i in range(count)
    ]


def config(**options: object) -> CalibrateConfig:
    """Few candidates, no film."""
    identify = IdentifyConfig(
        free=tuple(TRUTH), window=np.inf, candidates=2, polished=1, rounds=2, **options
    )
    return CalibrateConfig(identify=identify, film=0)


def run(folder: Path, **options: object) -> Calibration:
    """Calibrate into a folder."""
    return calibrate(scene("cart"), episodes(), config=config(**options), out=folder)
