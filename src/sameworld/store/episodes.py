"""Episodes as Parquet, each channel on its own clock.

Layout: ``episodes.jsonl`` has one line per episode (id, source, scene, session, beliefs, and for
each channel its unit, role, noise, shape and place); ``channels/NNNN-name.parquet`` holds one
channel of many episodes with the columns ``episode``, ``time`` [s] and ``value`` (a fixed-size
list, samples flattened in C order). Saving again adds files and replaces the index last, so a
killed writer leaves the store as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from sameworld.core.episode import Channel, Episode
from sameworld.core.errors import EpisodeError, SameworldError, StoreError, closest, listed
from sameworld.store.channel_files import ChannelReader, ChannelWriter, Place
from sameworld.store.files import TEXT_LIMIT, parse_json, plain_json, replacing
from sameworld.store.index_lines import IndexLine, line_from, line_record
from sameworld.store.slugs import slug

__all__ = ["episode_ids", "iterate_episodes", "load_episodes", "save_episodes"]

_INDEX = "episodes.jsonl"
_CHANNELS = "channels"


def save_episodes(episodes: Iterable[Episode], folder: str | Path) -> None:
    """Write episodes into a folder, or add them to those already there; all of them or none.

    Episodes are taken one at a time: a generator is never held in memory.

    Args:
        episodes: Episodes with ids that are unique, also among those already stored.
        folder: New or empty folder, or an episode store.

    Raises:
        EpisodeError: An id appears twice.
        StoreError: The folder holds something else, or cannot be written.
    """
    folder = Path(folder)
    _demand_store_or_empty(folder)
    taken = _offsets(folder) if _has_index(folder) else dict[str, int]()
    source = _Source(episodes)
    try:
        with replacing(folder / _INDEX) as index:
            _copy_index(folder / _INDEX, index)
            _append(folder, source, set(taken), index)
    except BaseException:
        _remove_if_empty(folder)
        if source.failure is not None:
            raise source.failure from None
        raise


def load_episodes(
    folder: str | Path, ids: Iterable[str] | None = None, *, limit: int = 1 << 34
) -> tuple[Episode, ...]:
    """Read episodes, bit-exactly as they were saved.

    Args:
        folder: An episode store.
        ids: Episodes wanted, in this order; all if ``None``.
        limit: Largest memory for one channel of one episode [bytes].

    Raises:
        StoreError: A file is missing, cut off or has other columns; names the file.
        EpisodeError: An id is unknown or twice, or samples are unusable (NaN, time going back).
    """
    return tuple(iterate_episodes(folder, ids, limit=limit))


def iterate_episodes(
    folder: str | Path, ids: Iterable[str] | None = None, *, limit: int = 1 << 34
) -> Iterator[Episode]:
    """Read one episode at a time; arguments and errors as ``load_episodes``."""
    folder = Path(folder)
    offsets = _offsets(folder)
    wanted = list(offsets) if ids is None else list(ids)
    for name in wanted:
        if name not in offsets:
            raise EpisodeError(
                f"'{folder}' has no episode '{name}'. "
                f"It has {listed(offsets)}.{closest(name, offsets)}"
            )
    return _read(folder, [(name, offsets[name]) for name in wanted], limit)


def episode_ids(folder: str | Path) -> tuple[str, ...]:
    """Ids of the stored episodes, in order, without reading samples."""
    return tuple(_offsets(Path(folder)))


def _read(folder: Path, wanted: list[tuple[str, int]], limit: int) -> Iterator[Episode]:
    path = folder / _INDEX
    with path.open("rb") as index, ChannelReader(folder=folder, limit=limit) as reader:
        for name, offset in wanted:
            index.seek(offset)
            line = _line(index.readline(), f"{path}, byte {offset}")
            if line.id != name:
                raise StoreError(f"'{path}' was changed while episodes were read.")
            yield _episode(reader, line, folder)


def _episode(reader: ChannelReader, line: IndexLine, folder: Path) -> Episode:
    channels: list[Channel] = []
    for row in line.channels:
        time, values = reader.read(row.place, line.id, row.shape)
        try:
            channels.append(
                Channel(
                    name=row.name,
                    time=time,
                    values=values,
                    unit=row.unit,
                    role=row.role,
                    noise=row.noise,
                )
            )
        except EpisodeError as cause:
            file = folder / row.place.file
            raise EpisodeError(f"'{file}', episode '{line.id}': {cause}") from cause
    try:
        return Episode(
            id=line.id,
            channels=tuple(channels),
            start=line.start,
            session=line.session,
            source=line.source,
            scene=line.scene,
            session_id=line.session_id,
        )
    except SameworldError as cause:
        raise EpisodeError(f"'{folder / _INDEX}': {cause}") from cause


class _Source:
    """Episodes one at a time; remembers an error of whoever makes them, which is no disk error."""

    def __init__(self, episodes: Iterable[Episode]) -> None:
        self._episodes = episodes
        self.failure: Exception | None = None

    def __iter__(self) -> Iterator[Episode]:
        try:
            yield from self._episodes
        except Exception as failure:
            self.failure = failure
            raise


def _append(folder: Path, episodes: Iterable[Episode], taken: set[str], index: IO[bytes]) -> None:
    """Write channels and index lines; one file per channel name and sample shape."""
    writers: dict[tuple[str, tuple[int, ...]], tuple[str, ChannelWriter]] = {}
    number = _next_number(folder)
    given: set[str] = set()
    with ExitStack() as stack:
        for episode in episodes:
            _demand_new_id(episode.id, taken, given)
            given.add(episode.id)
            places: list[Place] = []
            for channel in episode.channels:
                key = (channel.name, channel.values.shape[1:])
                if key not in writers:
                    file = f"{_CHANNELS}/{number + len(writers):04d}-{slug(channel.name)}.parquet"
                    writer = ChannelWriter(path=folder / file, name=channel.name, shape=key[1])
                    writers[key] = file, stack.enter_context(writer)
                file, writer = writers[key]
                begin = writer.append(episode.id, channel)
                places.append(Place(file=file, begin=begin, rows=len(channel)))
            record = plain_json(line_record(episode, places))
            index.write(json.dumps(record, allow_nan=False).encode() + b"\n")


def _copy_index(path: Path, target: IO[bytes]) -> None:
    if not path.is_file():
        return
    with path.open("rb") as file:
        for raw in file:
            if raw.strip():
                target.write(raw.rstrip(b"\n") + b"\n")


def _remove_if_empty(folder: Path) -> None:
    for path in (folder / _CHANNELS, folder):
        with suppress(OSError):
            path.rmdir()


def _next_number(folder: Path) -> int:
    used = [p.name.partition("-")[0] for p in (folder / _CHANNELS).glob("*.parquet")]
    return 1 + max((int(n) for n in used if n.isdecimal()), default=-1)


def _has_index(folder: Path) -> bool:
    return (folder / _INDEX).is_file()


def _offsets(folder: Path) -> dict[str, int]:
    """Where the line of each episode begins [byte]; every line is checked."""
    path = folder / _INDEX
    if not _has_index(folder):
        raise StoreError(f"'{folder}' is no episode store: it has no '{_INDEX}'.")
    found: dict[str, int] = {}
    number = offset = 0
    with path.open("rb") as file:
        while raw := file.readline(TEXT_LIMIT):
            number += 1
            if raw.strip():
                where = f"{path}, line {number}"
                name = _line(raw, where).id
                if name in found:
                    raise EpisodeError(f"'{where}' has the id '{name}' a second time.")
                found[name] = offset
            offset += len(raw)
    return found


def _line(raw: bytes, where: str) -> IndexLine:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as cause:
        raise StoreError(f"'{where}' is not UTF-8 text ({cause.reason}).") from cause
    return line_from(parse_json(text, where), where)


def _demand_store_or_empty(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"'{folder}' is a file; name a folder for the episodes.")
    if folder.is_dir() and not _has_index(folder):
        foreign = [p.name for p in folder.iterdir() if not _is_own(p.name)]
        if foreign:
            raise StoreError(
                f"'{folder}' holds {listed(sorted(foreign))} and is no episode store (no "
                f"'{_INDEX}'). Nothing was written; choose another folder."
            )


def _is_own(name: str) -> bool:
    """Whether a store without an index may hold it: what a killed writer leaves."""
    return name == _CHANNELS or (name.startswith(".") and name.endswith(".tmp"))


def _demand_new_id(name: str, taken: set[str], given: set[str]) -> None:
    if name in given:
        raise EpisodeError(f"Episode id(s) '{name}' appear twice. Ids must be unique.")
    if name in taken:
        raise EpisodeError(
            f"Episode id '{name}' is already stored. Rename it, or choose another folder."
        )
