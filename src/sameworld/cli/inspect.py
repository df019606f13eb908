"""``sameworld inspect``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from sameworld.cli.capturing import is_raw, raw_recordings, say_mapping
from sameworld.cli.console import say, say_facts, say_grid, say_json
from sameworld.cli.description import Description, describe, describe_recordings
from sameworld.cli.sources import scene_from
from sameworld.core.errors import StoreError
from sameworld.store import write_json

__all__ = ["Inspect"]


@dataclass(frozen=True, kw_only=True)
class Inspect:
    """Say what is in a scene, belief, episode store, run folder, recording or mapping.

    With ``--scene`` the columns of a recording are matched with the signals of the scene.

    Attributes:
        path: Path, or a name of the zoo.
        scene: Scene folder, MJCF file or zoo scene to map the columns of a recording to.
        out: File for the proposed mapping, e.g. mapping.json; needs --scene.
        match: Parameters to show, as patterns such as 'joint:*.damping'; all if none.
        json: Print JSON instead of tables.
    """

    path: Annotated[Positional[str], arg(metavar="PATH")]
    scene: str | None = None
    out: Path | None = None
    match: tuple[str, ...] = ()
    json: bool = False

    def run(self) -> int:
        """Describe it; with a scene, 1 if the mapping leaves something open."""
        if self.scene is not None:
            return self._map(self.scene)
        if self.out is not None:
            raise StoreError("--out writes a mapping to a scene's signals: add --scene SCENE.")
        found = describe(self.path).matching(self.match)
        if self.json:
            say_json(found.to_json())
        else:
            _say(found)
        return 0

    def _map(self, source: str) -> int:
        from sameworld.stages.capture import propose_mapping
        from sameworld.worlds import build

        if not is_raw(self.path):
            raise StoreError(
                f"'{self.path}' is no raw recording: its channels are named already. Leave out "
                "--scene."
            )
        recordings = raw_recordings(self.path)
        streams = describe_recordings(recordings)
        mapping, result = propose_mapping(build(scene_from(source)), recordings)
        if self.out is not None:
            write_json(self.out, mapping.to_json())
        if self.json:
            record = {"mapping": mapping.to_json(), "evidence": result.to_json()}
            say_json(streams.to_json() | record)
        else:
            _say(streams)
            say_mapping(mapping, result)
            if self.out is not None:
                say(f"Mapping: {self.out}")
                if mapping.undecided:
                    say(f"Next: write an answer into each 'answer' of {self.out}.")
                else:
                    say(f"Next: sameworld identify {source} {self.path} --mapping {self.out}")
        return 1 if mapping.undecided else 0


def _say(found: Description) -> None:
    say_facts({"kind": found.kind, **found.facts})
    for grid in found.grids:
        say_grid(grid)
    for doubt in found.doubts:
        say(f"Doubtful: {doubt}")
