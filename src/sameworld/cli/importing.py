"""``sameworld import``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from sameworld.cli.console import progress_bar, say, say_facts
from sameworld.cli.sources import scene_from
from sameworld.core.episode import Episode, Recording
from sameworld.core.errors import SpecError
from sameworld.core.progress import Progress, Report
from sameworld.store import read_json, save_episodes
from sameworld.store.recordings import ReadOptions, open_recordings, unmapped_episode
from sameworld.store.recordings.options import Stamps, TimeUnit

if TYPE_CHECKING:
    from sameworld.core.mapping import SignalMapping
    from sameworld.core.spec import Spec

__all__ = ["Import"]

_NUMBER = re.compile(r"\d[\d.:e+-]*")


@dataclass(frozen=True, kw_only=True)
class Import:
    """Turn recordings (CSV, NPZ, Parquet, MCAP, ROS bags, LeRobot) into an episode store.

    Attributes:
        path: Recording, or folder of recordings.
        out: Folder for the episodes; they are added to a store that is already there.
        mapping: mapping.json that says which column is which signal; needs --scene.
        scene: Scene folder, MJCF file or zoo scene; columns called like its signals take their
            roles.
        time: Column or array that holds the time; found if not given.
        time_unit: Unit of that column.
        stamps: Stamp of a message: from its header where it has one, or when it was logged.
        topics: Topics or columns to read, as patterns; all if none.
    """

    path: Annotated[Positional[str], arg(metavar="PATH")]
    out: Annotated[Positional[Path], arg(metavar="OUT")]
    mapping: Path | None = None
    scene: str | None = None
    time: str | None = None
    time_unit: TimeUnit = "auto"
    stamps: Stamps = "header"
    topics: tuple[str, ...] = ()

    def run(self) -> int:
        """Import everything or nothing, and say what was lost or assumed."""
        options = ReadOptions(
            time=self.time, time_unit=self.time_unit, stamps=self.stamps, topics=self.topics
        )
        recordings = open_recordings(self.path, options=options)
        spec, mapping = self._target()
        work = _Work(spec=spec, mapping=mapping)
        with progress_bar() as report:
            save_episodes(work.episodes(recordings, report), self.out)
        say_facts(
            {"episodes": str(work.count), "channels": work.channels(), "store": str(self.out)}
        )
        for note, times in work.notes():
            say(f"Note: {note}" if times == 1 else f"Note ({times} times like this): {note}")
        return 0

    def _target(self) -> tuple[Spec | None, SignalMapping | None]:
        """Channels of the scene, and the mapping to them."""
        if self.scene is None:
            if self.mapping is not None:
                raise SpecError("A mapping needs the scene it leads to: add --scene SCENE.")
            return None, None
        from sameworld.core.mapping import SignalMapping
        from sameworld.worlds import build

        spec = build(scene_from(self.scene)).spec
        if self.mapping is None:
            return spec, None
        return spec, SignalMapping.from_json(read_json(self.mapping))


class _Work:
    """Recordings on their way to episodes, and what was said about them."""

    def __init__(self, *, spec: Spec | None, mapping: SignalMapping | None) -> None:
        self._spec, self._mapping = spec, mapping
        self._names: Counter[str] = Counter()
        self._ids: set[str] = set()
        self._notes: dict[str, tuple[str, int]] = {}
        self.count = 0

    def episodes(self, recordings: Iterator[Recording], report: Report) -> Iterator[Episode]:
        """One episode per recording."""
        report(Progress(stage="import", done=0))
        for recording in recordings:
            episode = self._episode(recording)
            self.count += 1
            self._names.update(c.name for c in episode.channels)
            report(Progress(stage="import", done=self.count, message=recording.id))
            yield episode

    def channels(self) -> str:
        """Names of the channels, the first few."""
        names = list(self._names)
        rest = len(names) - 12
        return ", ".join(names[:12]) + (f" and {rest} more" if rest > 0 else "")

    def notes(self) -> Iterable[tuple[str, int]]:
        """Notes that differ in more than their numbers, with how often each came."""
        return self._notes.values()

    def _take(self, notes: Iterable[str]) -> None:
        for note in notes:
            kind = _NUMBER.sub("0", note)
            first, times = self._notes.get(kind, (note, 0))
            self._notes[kind] = (first, times + 1)

    def _episode(self, recording: Recording) -> Episode:
        name, number = recording.id, 2
        while name in self._ids:
            name, number = f"{recording.id}-{number}", number + 1
        self._ids.add(name)
        recording = replace(recording, id=name)
        self._take(recording.notes)
        if self._mapping is not None and self._spec is not None:
            from sameworld.stages.capture import apply_mapping

            return apply_mapping(self._spec, recording, self._mapping)
        episode, notes = unmapped_episode(recording, self._spec)
        self._take(notes)
        return episode
