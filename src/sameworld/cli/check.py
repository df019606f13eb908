"""``sameworld check``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from sameworld.cli.console import Grid, say, say_grid, say_json
from sameworld.cli.sources import scene_from
from sameworld.worlds import build, check_world

__all__ = ["Check"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """Test whether the world built from a scene keeps the World contract.

    Attributes:
        scene: Scene folder, MJCF file or zoo scene.
        seed: Seed of the probing starts and actions.
        json: Print JSON instead of a table.
    """

    scene: Annotated[Positional[str], arg(metavar="SCENE")]
    seed: int = 0
    json: bool = False

    def run(self) -> int:
        """Check and return 1 if a behaviour fails."""
        report = check_world(build(scene_from(self.scene)), seed=self.seed)
        if self.json:
            say_json(report.to_json())
            return 0 if report.passed else 1
        rows = tuple((row.outcome, row.name, row.detail) for row in report.rows)
        say_grid(Grid(title=report.world, header=("outcome", "behaviour", "detail"), rows=rows))
        failed = len(report.failures)
        say(f"{len(report.rows)} behaviours, {failed} failed." if failed else "All is well.")
        return 1 if failed else 0
