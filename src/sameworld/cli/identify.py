"""``sameworld identify``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes, Positional, arg

from sameworld.cli.calibration import calibrate_and_report
from sameworld.cli.capturing import is_raw, mapped_episodes
from sameworld.cli.sources import episodes_from, scene_from
from sameworld.core.episode import Episode
from sameworld.core.errors import EpisodeError
from sameworld.core.scene import Scene
from sameworld.loops.calibrate import CalibrateConfig
from sameworld.store import write_json

__all__ = ["Identify"]


@dataclass(frozen=True, kw_only=True)
class Identify:
    """Fit a scene's parameters to recorded episodes and write a run folder with a report.

    The same command with the same ``--out`` resumes a run that was stopped.

    Attributes:
        scene: Scene folder, MJCF file or zoo scene.
        episodes: Episode store, zoo recording, e.g. ``cube_tosses:40``, or raw recordings (CSV,
            NPZ, MCAP, ROS bag, LeRobot).
        mapping: mapping.json that says which column of raw recordings is which signal; if not
            given one is proposed, and taken only if nothing is left open.
        out: Run folder, made or resumed.
        title: Title of the report.
        config: Options of the fit.
    """

    scene: Annotated[Positional[str], arg(metavar="SCENE")]
    episodes: Annotated[Positional[str], arg(metavar="EPISODES")]
    config: OmitArgPrefixes[CalibrateConfig]
    mapping: Path | None = None
    out: Path = Path("runs/identify")
    title: str = ""

    def run(self) -> int:
        """Fit, write the folder, and return 1 if the fitted world is not accepted."""
        scene = scene_from(self.scene)
        if not is_raw(self.episodes):
            if self.mapping is not None:
                raise EpisodeError(
                    f"'{self.episodes}' has named channels; --mapping is for raw recordings."
                )
            return self._fit(scene, episodes_from(self.episodes))
        episodes, mapping = mapped_episodes(scene, self.episodes, self.mapping)
        try:
            return self._fit(scene, episodes)
        finally:
            if (self.out / "versions.json").is_file():
                write_json(self.out / "mapping.json", mapping.to_json())

    def _fit(self, scene: Scene, episodes: Sequence[Episode]) -> int:
        return calibrate_and_report(
            scene,
            episodes,
            config=self.config,
            out=self.out,
            title=self.title,
            command=shlex.join(["sameworld", *sys.argv[1:]]),
        )
