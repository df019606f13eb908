"""``sameworld demo``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sameworld.cli.calibration import calibrate_and_report
from sameworld.cli.sources import episodes_from, scene_from
from sameworld.loops.calibrate import CalibrateConfig
from sameworld.stages.identify import IdentifyConfig

__all__ = ["Demo"]

_FREE = ("pair:*.friction.slide", "pair:*.solref.*", "geom:floor.pos.z")


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Fit a cube's contact to real, recorded tosses, and write a report.

    Attributes:
        out: Run folder, made or resumed.
        tosses: Recorded tosses to use.
        seed: Seed of everything random.
    """

    out: Path = Path("runs/demo")
    tosses: int = 20
    seed: int = 0

    def run(self) -> int:
        """Fit, predict tosses never fitted, write the report."""
        return calibrate_and_report(
            scene_from("cube"),
            episodes_from(f"cube_tosses:{self.tosses}"),
            config=CalibrateConfig(identify=IdentifyConfig(free=_FREE, seed=self.seed)),
            out=self.out,
            title="What real tosses say about a cube",
            command=f"sameworld demo --tosses {self.tosses} --seed {self.seed}",
        )
