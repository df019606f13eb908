"""``sameworld demo``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sameworld.cli.calibration import calibrate_and_report
from sameworld.cli.sources import scene_from
from sameworld.loops.calibrate import CalibrateConfig
from sameworld.zoo import cube_config, cube_tosses

__all__ = ["Demo"]


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Fit a cube's contact, inertia and centre of mass to real tosses, predict others, report.

    Attributes:
        out: Run folder, made or resumed.
        tosses: Recorded tosses to fit, at most 50; 50 others are predicted.
        threads: Threads of simulation; 0 uses all cores.
        seed: Seed of everything random.
    """

    out: Path = Path("runs/demo")
    tosses: int = 50
    threads: int = 0
    seed: int = 0

    def run(self) -> int:
        """Fit, predict tosses never fitted, write the report."""
        tosses = cube_tosses()
        return calibrate_and_report(
            scene_from("cube"),
            tosses[: min(self.tosses, 50)],
            test=tosses[50:],
            config=CalibrateConfig(identify=cube_config(seed=self.seed), threads=self.threads),
            out=self.out,
            title="What real tosses say about a cube",
            command=f"sameworld demo --tosses {self.tosses} --seed {self.seed}",
        )
