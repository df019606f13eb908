"""Episodes as Parquet, each channel on its own clock.

Layout: ``episodes.jsonl`` has one line per episode (id, source, scene, session, beliefs, and for
each channel its unit, role, noise, shape and place); ``channels/NNNN-name.parquet`` holds one
channel of many episodes with the columns ``episode``, ``time`` [s] and ``value`` (a fixed-size
list, samples flattened in C order). Saving again adds files and replaces the index last, so a
killed writer leaves the store as it was.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from sameworld.core.episode import Channel, Episode
from sameworld.core.errors import EpisodeError, SameworldError, StoreError, closest, listed
from sameworld.store.channel_files import ChannelReader, ChannelWriter, Place
from sameworld.store.files import parse_json, plain_json, read_text, write_text
from sameworld.store.index_lines import IndexLine, line_from, line_record
from sameworld.store.slugs import slug

__all__ = ["episode_ids", "iterate_episodes", "load_episodes", "save_episodes"]

_INDEX = "episodes.jsonl"
_CHANNELS = "channels"


def save_episodes(episodes: Iterable[Episode], folder: str | Path) -> None:
    """Write episodes into a folder, or add them to those already there.

    Args:
        episodes: Episodes with ids that are unique, also among those already stored.
        folder: New or empty folder, or an episode store.

    Raises:
        EpisodeError: An id appears twice.
        StoreError: The folder holds something else, or cannot be written.
    """
    folder, episodes = Path(folder), tuple(episodes)
    _demand_store_or_empty(folder)
    stored = [text for text in _lines(folder) if text.strip()] if _has_index(folder) else []
    taken = set(episode_ids(folder)) if stored else set[str]()
    _demand_new_ids([e.id for e in episodes], taken)
    places = _write_channels(folder, episodes)
    fresh = [
        json.dumps(plain_json(line_record(episode, place)), allow_nan=False)
        for episode, place in zip(episodes, places, strict=True)
    ]
    write_text(folder / _INDEX, "".join(f"{text}\n" for text in (*stored, *fresh)))


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
    lines = _index(folder)
    wanted = list(lines) if ids is None else list(ids)
    for name in wanted:
        if name not in lines:
            raise EpisodeError(
                f"'{folder}' has no episode '{name}'. It has {listed(lines)}.{closest(name, lines)}"
            )
    return _read(folder, [lines[name] for name in wanted], limit)


def episode_ids(folder: str | Path) -> tuple[str, ...]:
    """Ids of the stored episodes, in order, without reading samples."""
    return tuple(_index(Path(folder)))


def _read(folder: Path, lines: list[IndexLine], limit: int) -> Iterator[Episode]:
    with ChannelReader(folder=folder, limit=limit) as reader:
        for line in lines:
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


def _write_channels(folder: Path, episodes: tuple[Episode, ...]) -> list[list[Place]]:
    """Write one file per channel name and sample shape; places per episode and channel."""
    groups: dict[tuple[str, tuple[int, ...]], list[tuple[int, int]]] = {}
    for e, episode in enumerate(episodes):
        for c, channel in enumerate(episode.channels):
            groups.setdefault((channel.name, channel.values.shape[1:]), []).append((e, c))
    places: dict[tuple[int, int], Place] = {}
    number = _next_number(folder)
    for (name, shape), members in groups.items():
        file = f"{_CHANNELS}/{number:04d}-{slug(name)}.parquet"
        with ChannelWriter(path=folder / file, name=name, shape=shape) as writer:
            for e, c in members:
                begin = writer.append(episodes[e].id, episodes[e].channels[c])
                rows = len(episodes[e].channels[c])
                places[e, c] = Place(file=file, begin=begin, rows=rows)
        number += 1
    return [[places[e, c] for c in range(len(ep.channels))] for e, ep in enumerate(episodes)]


def _next_number(folder: Path) -> int:
    used = [p.name.partition("-")[0] for p in (folder / _CHANNELS).glob("*.parquet")]
    return 1 + max((int(n) for n in used if n.isdecimal()), default=-1)


def _has_index(folder: Path) -> bool:
    return (folder / _INDEX).is_file()


def _lines(folder: Path) -> list[str]:
    if not _has_index(folder):
        raise StoreError(f"'{folder}' is no episode store: it has no '{_INDEX}'.")
    return read_text(folder / _INDEX, limit=1 << 32).split("\n")


def _index(folder: Path) -> dict[str, IndexLine]:
    found: dict[str, IndexLine] = {}
    for number, text in enumerate(_lines(folder), start=1):
        if not text.strip():
            continue
        where = f"{folder / _INDEX}, line {number}"
        line = line_from(parse_json(text, where), where)
        if line.id in found:
            raise EpisodeError(f"'{where}' has the id '{line.id}' a second time.")
        found[line.id] = line
    return found


def _demand_store_or_empty(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"'{folder}' is a file; name a folder for the episodes.")
    if folder.is_dir() and not _has_index(folder):
        foreign = [p.name for p in folder.iterdir() if p.name != _CHANNELS]
        if foreign:
            raise StoreError(
                f"'{folder}' holds {listed(sorted(foreign))} and is no episode store (no "
                f"'{_INDEX}'). Nothing was written; choose another folder."
            )


def _demand_new_ids(ids: list[str], taken: set[str]) -> None:
    twice = sorted(i for i, count in Counter(ids).items() if count > 1)
    if twice:
        raise EpisodeError(f"Episode id(s) {listed(twice)} appear twice. Ids must be unique.")
    clash = sorted(taken.intersection(ids))
    if clash:
        raise EpisodeError(
            f"Episode id(s) {listed(clash)} are already stored. Rename them, or choose another "
            "folder."
        )
