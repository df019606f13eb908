"""How the cube tosses are fitted: shared by ``cube_toss`` and ``honesty_real``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sameworld.core.episode import Episode
from sameworld.core.predict import predict_all
from sameworld.core.prediction import Prediction
from sameworld.core.world import World
from sameworld.worlds import build
from sameworld.worlds.explicit import ExplicitConfig
from sameworld.zoo import read_cube_tosses, scene

__all__ = ["WARMUP", "WIDTH", "load", "nominal", "position_errors", "turn_errors"]

#: Rows from which a start may be estimated; never scored.
WARMUP = 5
#: Width of the cube [m].
WIDTH = 0.1048


def load(folder: Path | None) -> tuple[Episode, ...]:
    """All 570 tosses in the order of the data set.

    Raises:
        SystemExit: No folder was given.
    """
    if folder is None:
        raise SystemExit("Give the folder of the full data set: --data DIR (tosses.npz in it).")
    return read_cube_tosses(folder)


def nominal(threads: int) -> World:
    """The simulator as a careful user would set it up, nothing fitted."""
    return build(scene("cube"), "explicit", config=ExplicitConfig(threads=threads))


def position_errors(prediction: Prediction) -> np.ndarray:
    """Distance between predicted and recorded position per scored row, percent of the width."""
    error = prediction.channels["cube.pos"].error
    return 100 * np.linalg.norm(error, axis=1) / WIDTH


def turn_errors(prediction: Prediction) -> np.ndarray:
    """Geodesic angle between predicted and recorded rotation per scored row [deg]."""
    return np.rad2deg(np.linalg.norm(prediction.channels["cube.quat"].error, axis=1))


def predictions(world: World, episodes: tuple[Episode, ...]) -> list[Prediction]:
    """Predict all episodes from their warm-up rows."""
    return predict_all(world, episodes, WARMUP)
