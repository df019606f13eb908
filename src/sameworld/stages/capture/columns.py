"""Recorded columns on one grid, smoothed and differentiated alike, so that they can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.signal import butter, sosfiltfilt

from sameworld.core.arrays import Array
from sameworld.core.episode import Recording, Stream
from sameworld.core.errors import EpisodeError, listed
from sameworld.stages.capture.config import CaptureConfig

__all__ = ["Column", "Table", "clean", "column_index", "columns_of", "tabulate"]

#: Seconds, or a tenth of the recording if that is less, cut off at both ends after filtering.
_TRIM = 0.5


@dataclass(frozen=True, kw_only=True)
class Column:
    """One recorded column.

    Attributes:
        stream: Name of the stream.
        label: Label, or the number from 0 as text; empty for a scalar stream.
        index: Flat index within a sample.
        labelled: Whether the label was recorded (else it is only a number).
        unit: Unit as recorded, empty if unknown.
        step: Median time between samples [s].
        low: Smallest value, as recorded.
        high: Largest value, as recorded.
    """

    stream: str
    label: str
    index: int
    labelled: bool
    unit: str
    step: float
    low: float
    high: float

    @property
    def name(self) -> str:
        """Name for people."""
        return f"{self.stream}.{self.label}" if self.label else self.stream

    @property
    def span(self) -> float:
        """Peak to peak, as recorded."""
        return self.high - self.low

    @property
    def still(self) -> bool:
        """Whether it never changes."""
        return self.span <= 1e-9 * max(abs(self.low), abs(self.high), 1e-9)


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Columns on a common grid.

    Attributes:
        columns: The columns [C].
        step: Time between rows of one recording [s].
        piece: Number of the recording that each row belongs to [N].
        values: Smoothed samples [N, C], as recorded.
        rates: Their time derivatives [N, C].
        bends: Their second derivatives [N, C].
    """

    columns: tuple[Column, ...]
    step: float
    piece: NDArray[np.intp]
    values: Array
    rates: Array
    bends: Array

    def thinned(self, rows: NDArray[np.intp]) -> Table:
        """Every so many rows; ``rows`` are evenly spaced."""
        return replace(
            self,
            step=self.step * float(rows[1] - rows[0]),
            piece=self.piece[rows],
            values=self.values[rows],
            rates=self.rates[rows],
            bends=self.bends[rows],
        )

    def shifted(self, signal: Array, rows: int) -> Array:
        """Rows moved later by ``rows``; NaN where a recording has none."""
        moved = np.full_like(signal, np.nan)
        for piece in np.unique(self.piece):
            inside = np.flatnonzero(self.piece == piece)
            if abs(rows) < len(inside):
                source = inside[: len(inside) - rows] if rows >= 0 else inside[-rows:]
                target = inside[rows:] if rows >= 0 else inside[:rows]
                moved[target] = signal[source]
        return moved


def columns_of(stream: Stream) -> list[tuple[str, int]]:
    """Labels and flat indices of a stream's columns."""
    shape = stream.values.shape[1:]
    if not shape:
        return [("", 0)]
    size = int(np.prod(shape))
    labels = stream.labels if len(stream.labels) == size else tuple(map(str, range(size)))
    return list(zip(labels, range(size), strict=True))


def column_index(stream: Stream, label: str) -> int:
    """Flat index of a column by its label, or by its number as text.

    Raises:
        EpisodeError: There is no such column.
    """
    known = dict(columns_of(stream))
    if label in known:
        return known[label]
    if label.isdecimal() and int(label) < len(known):
        return int(label)
    if not label and len(known) == 1:
        return 0
    raise EpisodeError(
        f"Stream '{stream.name}' has no column '{label}'. It has {listed(known)}, "
        f"or by number 0 to {len(known) - 1}."
    )


def clean(stream: Stream, columns: Sequence[int]) -> tuple[Array, Array]:
    """Stamps [T] that increase and finite samples [T, D] of the chosen flat columns.

    Rows with NaN are left out; rows are sorted; of equal stamps the first is kept.
    """
    values = np.asarray(stream.values, dtype=np.float64).reshape(len(stream.time), -1)
    values = values[:, list(columns)]
    order = np.argsort(stream.time, kind="stable")
    order = order[np.isfinite(values[order]).all(axis=1)]
    time = stream.time[order]
    fresh = np.diff(time, prepend=-np.inf) > 0
    return time[fresh], values[order][fresh]


def _numeric(recording: Recording) -> list[Stream]:
    return [
        s
        for s in recording.streams
        if s.kind == "numbers" and np.asarray(s.values).dtype.kind in "fiub" and len(s.time) > 1
    ]


def _common(recordings: Sequence[Recording]) -> list[Column]:
    """Columns with at least ten finite samples in every recording."""
    found: dict[tuple[str, int], list[Column]] = {}
    for recording in recordings:
        for stream in _numeric(recording):
            for label, index in columns_of(stream):
                time, values = clean(stream, [index])
                if len(time) >= 10:
                    column = _column(stream, label, index, time, values)
                    found.setdefault((stream.name, index), []).append(column)
    return [_joined(c) for c in found.values() if len(c) == len(recordings)]


def _column(stream: Stream, label: str, index: int, time: Array, values: Array) -> Column:
    return Column(
        stream=stream.name,
        label=label,
        index=index,
        labelled=bool(stream.labels),
        unit=stream.unit,
        step=float(np.median(np.diff(time))),
        low=float(values.min()),
        high=float(values.max()),
    )


def _joined(parts: Sequence[Column]) -> Column:
    first = parts[0]
    return Column(
        stream=first.stream,
        label=first.label,
        index=first.index,
        labelled=first.labelled,
        unit=first.unit,
        step=float(np.median([p.step for p in parts])),
        low=min(p.low for p in parts),
        high=max(p.high for p in parts),
    )


def tabulate(recordings: Sequence[Recording], config: CaptureConfig) -> Table:
    """Bring the columns of recordings to one grid.

    Every column passes the same zero-phase low-pass, so that none is shifted against another.
    Repeated samples of a whole stream (it was stored faster than measured) are dropped first.

    Raises:
        EpisodeError: No numeric column is common to the recordings.
    """
    columns = _common(recordings)
    if not columns:
        raise EpisodeError(
            "The recordings share no stream with at least 10 finite numbers. "
            f"Recordings: {listed(r.id for r in recordings)}."
        )
    spans = [_span(recording, columns) for recording in recordings]
    total = sum(max(end - begin, 0.0) for begin, end in spans)
    if total <= 0:
        raise EpisodeError(
            "The streams of the recordings do not overlap in time. Bring them onto one clock."
        )
    step = max(min(c.step for c in columns), total / config.rows)
    parts = [
        _piece(recording, columns, begin, end, step, config.cutoff)
        for recording, (begin, end) in zip(recordings, spans, strict=True)
        if (end - begin) / step >= 12
    ]
    if not parts:
        raise EpisodeError("The recordings are too short: fewer than 12 samples in common.")
    pieces = np.concatenate([np.full(len(p[0]), k, dtype=np.intp) for k, p in enumerate(parts)])
    values, rates, bends = (np.concatenate([p[i] for p in parts]) for i in range(3))
    return Table(
        columns=tuple(columns), step=step, piece=pieces, values=values, rates=rates, bends=bends
    )


def _span(recording: Recording, columns: Sequence[Column]) -> tuple[float, float]:
    streams = [recording[name] for name in dict.fromkeys(c.stream for c in columns)]
    return max(float(s.time.min()) for s in streams), min(float(s.time.max()) for s in streams)


def _piece(
    recording: Recording,
    columns: Sequence[Column],
    begin: float,
    end: float,
    step: float,
    cutoff: float,
) -> tuple[Array, Array, Array]:
    grid = np.arange(begin, end + 1e-9, step)
    values = np.empty((len(grid), len(columns)))
    for name in dict.fromkeys(c.stream for c in columns):
        own = [k for k, c in enumerate(columns) if c.stream == name]
        time, samples = _fresh(*clean(recording[name], [columns[k].index for k in own]))
        for place, k in enumerate(own):
            values[:, k] = np.interp(grid, time, samples[:, place])
    smooth = _low_pass(values, step, cutoff)
    curve = CubicSpline(grid, smooth)
    edge = round(min(_TRIM, 0.1 * (end - begin)) / step)
    inner = slice(edge, len(grid) - edge)
    return smooth[inner], curve(grid, 1)[inner], curve(grid, 2)[inner]


def _fresh(time: Array, samples: Array) -> tuple[Array, Array]:
    """Without rows that repeat the row before in every column."""
    new = np.ones(len(time), dtype=np.bool_)
    new[1:-1] = (np.diff(samples[:-1], axis=0) != 0).any(axis=1)
    return (time[new], samples[new]) if samples.shape[1] > 1 else (time, samples)


def _low_pass(values: Array, step: float, cutoff: float) -> Array:
    if len(values) < 16:
        return values
    limit = min(cutoff, 0.2 / step)
    if limit * step >= 0.45:
        return values
    sections = butter(2, limit, fs=1 / step, output="sos")
    pad = min(len(values) - 1, max(9, round(3 / (limit * step))))
    return sosfiltfilt(sections, values, axis=0, padlen=pad)
