"""``sameworld identify``."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import OmitArgPrefixes, Positional, arg

from sameworld.cli.calibration import calibrate_and_report
from sameworld.cli.sources import episodes_from, scene_from
from sameworld.loops.calibrate import CalibrateConfig

__all__ = ["Identify"]


@dataclass(frozen=True, kw_only=True)
class Identify:
    """Fit a scene's parameters to recorded episodes and write a run folder with a report.

    The same command with the same ``--out`` resumes a run that was stopped.

    Attributes:
        scene: Scene folder, MJCF file or zoo scene.
        episodes: Episode store or zoo recording, e.g. ``cube_tosses:40``.
        out: Run folder, made or resumed.
        title: Title of the report.
        config: Options of the fit.
    """

    scene: Annotated[Positional[str], arg(metavar="SCENE")]
    episodes: Annotated[Positional[str], arg(metavar="EPISODES")]
    config: OmitArgPrefixes[CalibrateConfig]
    out: Path = Path("runs/identify")
    title: str = ""

    def run(self) -> int:
        """Fit, write the folder, and return 1 if the fitted world is not accepted."""
        return calibrate_and_report(
            scene_from(self.scene),
            episodes_from(self.episodes),
            config=self.config,
            out=self.out,
            title=self.title,
            command=shlex.join(["sameworld", *sys.argv[1:]]),
        )
