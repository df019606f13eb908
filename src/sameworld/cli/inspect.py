"""``sameworld inspect``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from sameworld.cli.console import say, say_facts, say_grid, say_json
from sameworld.cli.description import describe

__all__ = ["Inspect"]


@dataclass(frozen=True, kw_only=True)
class Inspect:
    """Say what is in a scene, belief, episode store or run folder.

    Attributes:
        path: Path, or a name of the zoo.
        json: Print JSON instead of tables.
    """

    path: Annotated[Positional[str], arg(metavar="PATH")]
    json: bool = False

    def run(self) -> int:
        """Describe it."""
        found = describe(self.path)
        if self.json:
            say_json(found.to_json())
            return 0
        say_facts({"kind": found.kind, **found.facts})
        for grid in found.grids:
            say_grid(grid)
        for doubt in found.doubts:
            say(f"Doubtful: {doubt}")
        return 0
