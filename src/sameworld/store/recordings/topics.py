"""Messages collected topic by topic into streams, columns matched by name, damage counted."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.episode import Recording, Stream
from sameworld.core.errors import StoreError, listed
from sameworld.store.recordings.clocks import as_utc
from sameworld.store.recordings.field_units import field_unit
from sameworld.store.recordings.flatten import MessageError, Sample
from sameworld.store.recordings.options import ReadOptions

__all__ = ["Collector", "Decode", "Topic"]

#: Turns the bytes of a message into its numbers.
Decode = Callable[[bytes], Sample]
_LATEST = 1 << 62
_FAR = 3600 * 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A topic as its recording declares it.

    Attributes:
        name: Topic name.
        schema: Type of its messages.
        source: Where it stands, for ``Stream.source``.
        decode: Decoder of its messages; ``None`` if there is none.
        images: Whether its messages are pictures: counted, not decoded.
        why: Why there is no decoder.
    """

    name: str
    schema: str
    source: str
    decode: Decode | None
    images: bool = False
    why: str = ""


@dataclass(kw_only=True)
class _Layout:
    """Rows that have the same columns."""

    rows: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))


@dataclass(kw_only=True)
class _Group:
    """Numbers of one field of a topic."""

    logged: array[int] = field(default_factory=lambda: array("q"))
    stamped: array[int] = field(default_factory=lambda: array("q"))
    layouts: dict[tuple[str, ...], _Layout] = field(default_factory=dict[tuple[str, ...], _Layout])


@dataclass(kw_only=True)
class _Log:
    """What was collected of a topic."""

    topic: Topic
    groups: dict[str, _Group] = field(default_factory=dict[str, _Group])
    messages: int = 0
    bad: int = 0
    first_bad: str = ""
    skipped: dict[str, str] = field(default_factory=dict[str, str])


class Collector:
    """Collects messages and makes a recording of them.

    Nothing about a message is fatal: what cannot be decoded is counted, with the first reason, and
    said in the notes. Only memory is: the numbers of a recording must fit into ``options.limit``.
    """

    def __init__(self, where: str, options: ReadOptions) -> None:
        self._where, self._options = where, options
        self._logs: dict[str, _Log] = {}
        self._bytes = 0
        self.notes: list[str] = []
        self.latest = 0

    @property
    def messages(self) -> int:
        """Messages taken so far."""
        return sum(log.messages for log in self._logs.values())

    def wants(self, topic: str) -> bool:
        """Whether a topic was asked for."""
        patterns = self._options.topics
        return not patterns or any(fnmatchcase(topic, p) for p in patterns)

    def add(self, topic: Topic, logged: int, data: bytes) -> None:
        """Take one message.

        Args:
            topic: Its topic.
            logged: When it was logged [ns].
            data: Its bytes.

        Raises:
            StoreError: The numbers no longer fit into the limit.
        """
        log = self._logs.setdefault(topic.name, _Log(topic=topic))
        log.messages += 1
        if topic.decode is None:
            return
        try:
            if not 0 <= logged < _LATEST:
                raise MessageError(f"its log time {logged} ns is no time")
            sample = topic.decode(data)
        except MessageError as cause:
            log.bad += 1
            log.first_bad = log.first_bad or str(cause)
            return
        self.latest = max(self.latest, logged)
        self._take(log, logged, sample)

    def _take(self, log: _Log, logged: int, sample: Sample) -> None:
        stamp = sample.stamp if sample.stamp and 0 < sample.stamp < _LATEST else 0
        log.skipped.update(sample.skipped)
        for path, (labels, values) in sample.groups.items():
            group = log.groups.setdefault(path, _Group())
            key = tuple(labels)
            layout = group.layouts.get(key)
            if layout is None:
                self._bytes += 200 * (1 + len(key))
                layout = group.layouts[key] = _Layout()
            layout.rows.append(len(group.logged))
            layout.values.extend(values)
            group.logged.append(logged)
            group.stamped.append(stamp)
            self._bytes += 8 * (3 + len(values))
        if self._bytes > self._options.limit:
            raise StoreError(
                f"{self._where} holds more numbers than the limit of {self._options.limit} bytes. "
                "Choose topics with the option topics, or raise the option limit."
            )

    def recording(self, name: str) -> Recording:
        """Everything collected, on one time axis that begins at the earliest stamp.

        Raises:
            StoreError: No topic gave a number.
        """
        drafts = [draft for log in self._logs.values() for draft in self._drafts(log)]
        notes = [*self.notes, *(note for log in self._logs.values() for note in _damage(log))]
        if not drafts:
            raise StoreError(
                f"{self._where} holds {self.messages} message(s) on {listed(self._logs)} and no "
                f"stream of numbers or pictures. {' '.join(notes)}".rstrip()
            )
        zero = min(int(d.stamps.min()) for d in drafts)
        notes.append(
            f"Times count from {as_utc(zero * 1e-9)} (unix {zero // 10**9}.{zero % 10**9:09d} s)."
        )
        streams = tuple(d.stream(zero) for d in drafts)
        return Recording(id=name, streams=streams, notes=tuple(notes))

    def _drafts(self, log: _Log) -> list[_Draft]:
        drafts: list[_Draft] = []
        for path, group in log.groups.items():
            stamps, clock = self._clock(log, path, group)
            labels, values = self._values(log, path, group)
            drafts.append(
                _Draft(
                    topic=log.topic,
                    path=path,
                    stamps=stamps,
                    clock=clock,
                    labels=labels,
                    values=values,
                )
            )
        return drafts

    def _clock(self, log: _Log, path: str, group: _Group) -> tuple[NDArray[np.int64], str]:
        """Stamps [ns] of a group and the clock they belong to."""
        logged = np.frombuffer(group.logged, dtype=np.int64)
        stamped = np.frombuffer(group.stamped, dtype=np.int64)
        given = stamped > 0
        if self._options.stamps == "log" or not given.any():
            return logged, "log"
        name = _stream_name(log.topic.name, path)
        if not given.all():
            self.notes.append(
                f"{name}: {int((~given).sum())} of {len(given)} messages have no stamp in their "
                "header; log times are used."
            )
            return logged, "log"
        lag = logged[0] - stamped[0]
        if abs(lag) <= _FAR:
            late = float(np.median(logged - stamped)) * 1e-6
            self.notes.append(
                f"{name}: header stamps are used; log times are {late:.3g} ms later (median)."
            )
            return stamped, "header"
        self.notes.append(
            f"{name}: header stamps count from another beginning than log times; they were moved "
            f"by {lag * 1e-9:.9g} s so that the first ones agree."
        )
        return stamped + lag, f"header of {log.topic.name}"

    def _values(self, log: _Log, path: str, group: _Group) -> tuple[tuple[str, ...], Array]:
        """Rows of all layouts under the union of their columns; NaN where a message lacks one."""
        layouts = group.layouts
        labels = tuple(dict.fromkeys(_distinct(key)[i] for key in layouts for i in range(len(key))))
        rows, width = len(group.logged), len(labels)
        if rows * width * 8 > self._options.limit:
            raise StoreError(
                f"{self._where}: '{_stream_name(log.topic.name, path)}' has {width} different "
                f"columns in {rows} messages, more than the limit of {self._options.limit} bytes."
            )
        if len(layouts) == 1:
            (only,) = layouts.values()
            return labels, np.frombuffer(only.values, dtype=np.float64).reshape(rows, width).copy()
        place = {label: i for i, label in enumerate(labels)}
        values = np.full((rows, width), np.nan)
        for key, layout in layouts.items():
            columns = [place[label] for label in _distinct(key)]
            block = np.frombuffer(layout.values, dtype=np.float64).reshape(-1, len(key))
            at = np.frombuffer(layout.rows, dtype=np.int64)
            values[np.ix_(at, np.array(columns))] = block
        self.notes.append(self._varied(log, path, layouts, labels))
        return labels, values

    @staticmethod
    def _varied(
        log: _Log, path: str, layouts: dict[tuple[str, ...], _Layout], labels: tuple[str, ...]
    ) -> str:
        name = _stream_name(log.topic.name, path)
        if all(set(key) == set(labels) for key in layouts):
            return f"{name}: the order of columns changes between messages; matched by name."
        lacking = sum(len(x.rows) for key, x in layouts.items() if len(key) < len(labels))
        return (
            f"{name}: {lacking} message(s) lack some of its {len(labels)} columns, which are NaN "
            "there."
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Draft:
    """A stream whose time axis is not fixed yet."""

    topic: Topic
    path: str
    stamps: NDArray[np.int64]
    clock: str
    labels: tuple[str, ...]
    values: Array

    def stream(self, zero: int) -> Stream:
        """The stream with times counted from ``zero`` [ns]."""
        time = np.asarray((self.stamps - zero) * 1e-9, dtype=np.float64)
        name = _stream_name(self.topic.name, self.path)
        if self.topic.images:
            return Stream(
                name=name,
                time=time,
                values=np.arange(len(time)),
                clock=self.clock,
                source=self.topic.source,
                kind="images",
            )
        single = self.labels in (("data",), ("value",))
        return Stream(
            name=name,
            time=time,
            values=self.values[:, 0] if single else self.values,
            unit=field_unit(self.topic.schema, self.path),
            clock=self.clock,
            source=self.topic.source,
            labels=() if single else self.labels,
        )


def _stream_name(topic: str, path: str) -> str:
    return f"{topic}.{path}" if path else topic


def _distinct(key: tuple[str, ...]) -> tuple[str, ...]:
    """Labels, repeated ones told apart."""
    if len(set(key)) == len(key):
        return key
    seen: dict[str, int] = {}
    result: list[str] = []
    for label in key:
        seen[label] = seen.get(label, 0) + 1
        result.append(label if seen[label] == 1 else f"{label}#{seen[label]}")
    return tuple(result)


def _damage(log: _Log) -> list[str]:
    notes: list[str] = []
    name = log.topic.name
    if log.topic.decode is None:
        notes.append(f"{name}: {log.messages} message(s) were left out: {log.topic.why}.")
    if log.bad:
        notes.append(
            f"{name}: {log.bad} of {log.messages} message(s) could not be decoded, the first "
            f"because {log.first_bad}."
        )
    if not log.topic.images:
        notes.extend(
            f"{_stream_name(name, path)} was left out: {why}." for path, why in log.skipped.items()
        )
    if log.topic.decode is not None and not log.groups and not log.bad and not log.skipped:
        notes.append(f"{name}: its {log.messages} message(s) hold no numbers.")
    return notes
