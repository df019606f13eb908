"""``describe_recording``: what is in a recording, and what looks wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Recording, Stream
from sameworld.maths.timing import GAP, Steps, constant_columns, repeated_rows, summarise_steps
from sameworld.store.recordings.doubts import unit_doubt

__all__ = ["ColumnReport", "RecordingReport", "StreamReport", "describe_recording"]

_STUCK = 0.5


@dataclass(frozen=True, kw_only=True)
class ColumnReport:
    """One column of a stream.

    Attributes:
        label: Name of the column; empty for a stream of single numbers.
        low: Smallest finite value; NaN if there is none.
        high: Largest finite value.
        missing: Share of samples that are NaN or infinite.
        constant: Whether it holds one value only.
        doubt: What unit it was probably recorded in, in words; empty if nothing is odd.
    """

    label: str
    low: float
    high: float
    missing: float
    constant: bool
    doubt: str = ""


@dataclass(frozen=True, kw_only=True)
class StreamReport:
    """One stream.

    Attributes:
        name: Stream name.
        kind: ``numbers`` or ``images``.
        unit: Stated unit, empty if none.
        clock: Its clock.
        steps: What its stamps look like.
        repeated: Share of rows that repeat the row before.
        columns: Its columns; none for images.
        doubts: What looks wrong, one sentence each.
    """

    name: str
    kind: str
    unit: str
    clock: str
    steps: Steps
    repeated: float
    columns: tuple[ColumnReport, ...]
    doubts: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class RecordingReport:
    """A recording.

    Attributes:
        id: Recording id.
        begin: Earliest stamp [s].
        end: Latest stamp [s].
        streams: Its streams.
        notes: What the reader lost or assumed.
    """

    id: str
    begin: float
    end: float
    streams: tuple[StreamReport, ...]
    notes: tuple[str, ...]

    @property
    def doubts(self) -> tuple[str, ...]:
        """Doubts of all streams, each with the stream's name."""
        return tuple(f"{s.name}: {doubt}" for s in self.streams for doubt in s.doubts)


def describe_recording(recording: Recording) -> RecordingReport:
    """Look at every stream: rate, jitter, gaps, repeats, missing values, ranges, units.

    Nothing is repaired; what looks wrong is said.
    """
    edges = [(float(s.time.min()), float(s.time.max())) for s in recording.streams if len(s.time)]
    return RecordingReport(
        id=recording.id,
        begin=min((begin for begin, _ in edges), default=0.0),
        end=max((end for _, end in edges), default=0.0),
        streams=tuple(_stream(s) for s in recording.streams),
        notes=recording.notes,
    )


def _stream(stream: Stream) -> StreamReport:
    steps = summarise_steps(stream.time)
    if stream.kind == "images":
        values, columns, repeated = np.zeros((len(stream.time), 0)), (), 0.0
    else:
        values = _flat(stream)
        columns = _columns(stream, values)
        repeated = repeated_rows(values)
    doubts = (*_clock_doubts(steps), *_value_doubts(columns, repeated))
    return StreamReport(
        name=stream.name,
        kind=stream.kind,
        unit=stream.unit,
        clock=stream.clock,
        steps=steps,
        repeated=repeated,
        columns=columns,
        doubts=doubts,
    )


def _flat(stream: Stream) -> Array:
    values = np.asarray(stream.values, dtype=np.float64)
    return values.reshape(len(values), int(np.prod(values.shape[1:], dtype=int)))


def _columns(stream: Stream, values: Array) -> tuple[ColumnReport, ...]:
    single = stream.values.ndim == 1
    labels = stream.labels or tuple("" if single else str(i) for i in range(values.shape[1]))
    constant = constant_columns(values)
    return tuple(
        _column(stream, label, values[:, i], bool(constant[i])) for i, label in enumerate(labels)
    )


def _column(stream: Stream, label: str, values: Array, constant: bool) -> ColumnReport:
    finite = values[np.isfinite(values)]
    return ColumnReport(
        label=label,
        low=float(finite.min()) if finite.size else float("nan"),
        high=float(finite.max()) if finite.size else float("nan"),
        missing=1.0 - finite.size / max(values.size, 1),
        constant=constant,
        doubt=unit_doubt(f"{stream.name}.{label}", stream.unit, finite),
    )


def _clock_doubts(steps: Steps) -> tuple[str, ...]:
    doubts: list[str] = []
    if steps.samples < 2:
        doubts.append(f"it has {steps.samples} sample(s) only")
    if steps.duplicates:
        doubts.append(f"{steps.duplicates} stamp(s) equal the one before")
    if steps.backward:
        doubts.append(f"time goes back {steps.backward} time(s)")
    if steps.gaps:
        doubts.append(
            f"{steps.gaps} gap(s) longer than {GAP:g} steps, the longest {steps.longest:.4g} s"
        )
    return tuple(doubts)


def _value_doubts(columns: tuple[ColumnReport, ...], repeated: float) -> tuple[str, ...]:
    doubts: list[str] = []
    for column in columns:
        name = f"column '{column.label}'" if column.label else "it"
        if column.missing:
            doubts.append(f"{name} is missing or not finite in {100 * column.missing:.3g} %")
        if column.doubt:
            doubts.append(f"{name} {column.doubt}")
    constant = [c.label for c in columns if c.constant]
    if constant and len(constant) == len(columns):
        doubts.append("it never changes")
    elif constant:
        doubts.append(f"column(s) {', '.join(constant)} never change")
    elif repeated > _STUCK:
        doubts.append(f"{100 * repeated:.0f} % of its rows repeat the row before")
    return tuple(doubts)
