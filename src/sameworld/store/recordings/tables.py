"""Tables (CSV, Parquet) to recordings: one clock column, columns joined into streams."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Recording, Stream
from sameworld.core.errors import StoreError, listed
from sameworld.store.recordings.clocks import find_time, read_clock
from sameworld.store.recordings.options import ReadOptions

__all__ = ["Column", "Table", "recording_from_table", "unique_names"]

_MEMBER = re.compile(r"^(.*?[^._\s\[\d])[._\s\[]*(\d+)\]?$|^(.+)[._\s](x|y|z|w|roll|pitch|yaw)$")
_SHORT = re.compile(r"^([a-z])(x|y|z|w)$")


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """A column of numbers.

    Attributes:
        name: Heading without its unit.
        unit: Stated unit, empty if none.
        values: Numbers [T]; NaN where a cell is empty or holds text.
    """

    name: str
    unit: str
    values: Array


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Columns of one length.

    Attributes:
        id: Name of the recording.
        file: Name of the file.
        where: Its path in quotes, for messages.
        columns: Columns; names are unique.
        notes: What reading it left out or assumed.
    """

    id: str
    file: str
    where: str
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()


def recording_from_table(table: Table, options: ReadOptions) -> Recording:
    """Find the clock and group the other columns into streams.

    Rows without a usable time are left out and counted. Columns that are empty in most rows keep
    only the rows where they hold something: many loggers merge topics into one table.

    Raises:
        StoreError: No time column, no rows, or no other column.
    """
    columns = {c.name: c for c in table.columns}
    if not columns or not len(table.columns[0].values):
        raise StoreError(f"{table.where} has no rows of numbers.")
    name = find_time({n: c.values for n, c in columns.items()}, options, table.where)
    notes = list(table.notes)
    stamps = columns[name].values
    usable = np.isfinite(stamps)
    if not usable.any():
        raise StoreError(f"{table.where}: the time column '{name}' holds no number.")
    if not usable.all():
        first = int(np.argmin(usable)) + 1
        notes.append(
            f"{int((~usable).sum())} row(s) without a finite time were left out, first data row "
            f"{first}."
        )
    clock = read_clock(name, columns[name].unit, stamps[usable], options, table.where)
    others = [c for c in table.columns if c.name != name and _wanted(c.name, options)]
    if not others:
        raise StoreError(f"{table.where} has no column beside the time '{name}' that is wanted.")
    streams: list[Stream] = []
    for stream, members, labels in _groups(others):
        values = np.stack([c.values[usable] for c in members], axis=1)
        time, values, note = _without_empty(stream, clock.time, values)
        notes.extend(note)
        if len(time):
            streams.append(
                Stream(
                    name=stream,
                    time=time,
                    values=values if labels else values[:, 0],
                    unit=members[0].unit,
                    clock=name,
                    source=f"{table.file}:{stream}",
                    labels=labels,
                )
            )
    return Recording(id=table.id, streams=tuple(streams), notes=(*notes, *clock.notes))


def unique_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names with ``#2``, ``#3`` added to repeated ones and numbers for empty ones; and notes."""
    seen: dict[str, int] = {}
    taken, result = set(names), list[str]()
    for index, name in enumerate(names):
        base = name or f"column{index}"
        seen[base] = seen.get(base, 0) + 1
        fresh = base
        while seen[base] > 1 and (fresh := f"{base}#{seen[base]}") in taken:
            seen[base] += 1
        taken.add(fresh)
        result.append(fresh)
    twice = sorted(n for n, count in seen.items() if count > 1)
    notes = [f"Column(s) {listed(twice)} appear more than once; later ones got #2, #3, ..."]
    return result, notes if twice else []


def _wanted(name: str, options: ReadOptions) -> bool:
    return not options.topics or any(fnmatchcase(name, p) for p in options.topics)


def _groups(columns: Sequence[Column]) -> list[tuple[str, list[Column], tuple[str, ...]]]:
    """Streams with their columns and labels: ``q_0 q_1`` is a stream ``q`` labelled 0 and 1."""
    families: dict[tuple[str, str], list[tuple[str, Column]]] = {}
    for column in columns:
        prefix, label = _member(column.name)
        families.setdefault((prefix, column.unit), []).append((label, column))
    taken = {c.name for c in columns}
    groups: list[tuple[str, list[Column], tuple[str, ...]]] = []
    for (prefix, _), members in families.items():
        labels = tuple(label for label, _ in members)
        joined = len(members) > 1 and "" not in labels and len(set(labels)) == len(labels)
        if joined and prefix not in taken:
            taken.add(prefix)
            groups.append((prefix, [c for _, c in members], labels))
        else:
            groups.extend((c.name, [c], ()) for _, c in members)
    return groups


def _member(name: str) -> tuple[str, str]:
    if match := _SHORT.match(name):
        return match[1], match[2]
    if len(name) < 200 and (match := _MEMBER.match(name)):
        return (match[1], match[2]) if match[1] else (match[3], match[4])
    return name, ""


def _without_empty(name: str, time: Array, values: Array) -> tuple[Array, Array, list[str]]:
    empty = np.asarray(np.isnan(values).all(axis=1))
    if empty.all():
        return time[:0], values[:0], [f"Column '{name}' holds no number and was left out."]
    if empty.mean() <= 0.5:
        return time, values, []
    note = (
        f"Column '{name}' is empty in {int(empty.sum())} of {len(empty)} rows; those were left out."
    )
    return time[~empty], values[~empty], [note]
