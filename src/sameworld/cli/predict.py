"""``sameworld predict``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from tyro.conf import Positional, arg

from sameworld.cli.capturing import is_raw, mapped_episodes
from sameworld.cli.console import Grid, say, say_facts, say_grid
from sameworld.cli.sources import episodes_from, scene_from
from sameworld.core.episode import Episode
from sameworld.core.errors import EpisodeError
from sameworld.core.predict import predict_all
from sameworld.core.prediction import Prediction
from sameworld.core.scene import Scene
from sameworld.core.spec import ChannelSpec
from sameworld.loops.calibrate import prediction_arrays
from sameworld.report.curves import inside
from sameworld.report.numbers import percent, quantity
from sameworld.store import write_npz
from sameworld.worlds import build

__all__ = ["Predict"]


@dataclass(frozen=True, kw_only=True)
class Predict:
    """Predict episodes open loop from their first rows and compare with what was measured.

    Attributes:
        scene: Scene folder, MJCF file or zoo scene; a calibrated one gives intervals.
        episodes: Episode store, zoo recording, e.g. ``cube_tosses:20``, or raw recordings.
        mapping: mapping.json that says which column of raw recordings is which signal.
        warmup: Rows of each channel used to find the start; they are not scored.
        level: Probability of the intervals.
        out: File for the predictions (.npz with ``EPISODE/CHANNEL/time``, ``values``, ``low``,
            ``high``); none if not given.
        seed: Seed of stochastic worlds.
    """

    scene: Annotated[Positional[str], arg(metavar="SCENE")]
    episodes: Annotated[Positional[str], arg(metavar="EPISODES")]
    mapping: Path | None = None
    warmup: int = 5
    level: float = 0.9
    out: Path | None = None
    seed: int = 0

    def run(self) -> int:
        """Predict, print the errors, and save the predictions if asked."""
        scene = scene_from(self.scene)
        world, episodes = build(scene), self._episodes(scene)
        found = predict_all(world, episodes, self.warmup, level=self.level, seed=self.seed)
        say_facts(_facts(found))
        say_grid(_errors(world.spec.observations, found))
        if self.out is not None:
            write_npz(self.out, prediction_arrays(found))
            say(f"Predictions: {self.out}")
        return 0

    def _episodes(self, scene: Scene) -> tuple[Episode, ...]:
        if is_raw(self.episodes):
            return mapped_episodes(scene, self.episodes, self.mapping)[0]
        if self.mapping is not None:
            raise EpisodeError(
                f"'{self.episodes}' has named channels; --mapping is for raw recordings."
            )
        return episodes_from(self.episodes)


def _facts(found: Sequence[Prediction]) -> dict[str, str]:
    valid = sum(p.valid for p in found)
    kind = "from measured errors" if all(p.calibrated for p in found) else "not calibrated"
    return {
        "episodes": str(len(found)),
        "stayed finite": f"{valid} of {len(found)}",
        "warm-up": f"{found[0].warmup} rows",
        "intervals": kind,
    }


def _errors(specs: Sequence[ChannelSpec], found: Sequence[Prediction]) -> Grid:
    header = ("channel", "unit", "median error", "quartiles", "worst", "inside interval")
    rows = tuple(
        _error_row(spec, found) for spec in specs if any(spec.name in p.channels for p in found)
    )
    return Grid(
        title="Error norm, mean over time, per episode", header=header, rows=rows, right=header[2:]
    )


def _error_row(spec: ChannelSpec, found: Sequence[Prediction]) -> tuple[str, ...]:
    channels = [p.channels[spec.name] for p in found if spec.name in p.channels]
    errors = np.array([np.linalg.norm(c.error, axis=-1).mean() for c in channels])
    low, middle, high = np.quantile(errors, [0.25, 0.5, 0.75])
    hits = np.concatenate([inside(spec, c).ravel() for c in channels])
    calibrated = all(p.calibrated for p in found)
    return (
        spec.name,
        "rad" if spec.manifold == "quaternion" else spec.unit,
        quantity(float(middle)),
        f"{quantity(float(low))} to {quantity(float(high))}",
        quantity(float(errors.max())),
        percent(float(hits.mean())) if calibrated else "–",
    )
