"""CSV and its relatives: separators, encodings, comments, units and damage found by content."""

from __future__ import annotations

import csv
import math
import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TextIO

import numpy as np

from sameworld.core.errors import StoreError, listed
from sameworld.store.recordings.clocks import datetime_seconds, is_time_name, split_unit
from sameworld.store.recordings.options import ReadOptions
from sameworld.store.recordings.tables import Column, Table, unique_names

__all__ = ["read_csv_table"]

_LINE = 1 << 20
_SAMPLE = 30
_MOST_COLUMNS = 20_000
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MISSING = frozenset({"", "na", "n/a", "null", "none", "-", "--", "#n/a", "nil"})
_WORDS = {"true": 1.0, "false": 0.0, "on": 1.0, "off": 0.0}
_COMMA = re.compile(r"^\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*$")
_SEPARATORS = ("\t", ";", ",", "|", " ")


def read_csv_table(path: Path, options: ReadOptions) -> Table:
    """Read a table of numbers.

    Raises:
        StoreError: Binary content, no usable rows, an unclosed quote, lines or columns without end.
    """
    encodings = _encodings(path)
    for encoding in encodings:
        try:
            return _read(path, encoding, options)
        except UnicodeDecodeError as cause:
            if encoding == encodings[-1]:
                raise StoreError(
                    f"'{path}' is text in no known encoding: byte {cause.start} is "
                    f"0x{cause.object[cause.start]:02x}. Save it as UTF-8."
                ) from cause
        except UnicodeError as cause:
            raise StoreError(f"'{path}' is no valid {encoding} text: {cause}.") from cause
        except csv.Error as cause:
            raise StoreError(
                f"'{path}' is not a readable table: {cause}. Is a quote left open?"
            ) from cause
        except OSError as cause:
            raise StoreError(f"Cannot read '{path}': {cause}.") from cause
    raise AssertionError("one encoding at least is tried")


def _encodings(path: Path) -> tuple[str, ...]:
    with path.open("rb") as file:
        head = file.read(1 << 16)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ("utf-16",)
    found = _CONTROL.search(head)
    if found:
        raise StoreError(
            f"'{path}' is named like a table but is binary: byte {found.start()} is "
            f"0x{found.group()[0]:02x}."
        )
    return ("utf-8-sig", "cp1252")


def _read(path: Path, encoding: str, options: ReadOptions) -> Table:
    with path.open("r", encoding=encoding, newline="") as file:
        lines = _Lines(file, path)
        sample = list(islice(lines, _SAMPLE))
        if not sample:
            raise StoreError(f"'{path}' holds no line of data.")
        layout = _layout(sample, lines.comments, path)
        body = _Body(layout=layout, where=f"'{path}'", options=options)
        rest = _chained(sample, lines)
        rows = csv.reader(rest, delimiter=layout.separator, strict=True, skipinitialspace=True)
        for _ in range(layout.skip):
            next(rows)
        for cells in rows:
            body.add(cells, lines.number)
    notes = [] if encoding != "cp1252" else ["It is not UTF-8; read as Windows-1252 text."]
    if lines.cut:
        body.notes.append("The last line has no end: the file may have been cut off.")
    return body.table(path, (*notes, *layout.notes))


class _Lines:
    """Lines without comments and blank ones, of bounded length."""

    def __init__(self, file: TextIO, path: Path) -> None:
        self._file, self._path = file, path
        self.number = 0
        self.comments: list[str] = []
        self.cut = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while line := self._file.readline(_LINE):
            if len(line) >= _LINE:
                raise StoreError(
                    f"'{self._path}': line {self.number + 1} is longer than {_LINE} characters; "
                    "this is no table."
                )
            self.number += 1
            text = line.strip()
            if text.startswith(("#", "%", "//")):
                self.comments = [*self.comments[-9:], text.lstrip("#%/ \t")]
            elif text:
                self.cut = not line.endswith(("\n", "\r"))
                return line
        raise StopIteration


def _chained(sample: Sequence[str], lines: _Lines) -> Iterator[str]:
    yield from sample
    yield from lines


@dataclass(frozen=True, kw_only=True)
class _Layout:
    separator: str
    comma: bool
    names: tuple[str, ...]
    units: tuple[str, ...]
    skip: int
    notes: tuple[str, ...]


def _layout(sample: Sequence[str], comments: Sequence[str], path: Path) -> _Layout:
    separator = _separator(sample)
    rows = list(csv.reader(sample, delimiter=separator, skipinitialspace=True))
    width = len(rows[0])
    if width > _MOST_COLUMNS:
        raise StoreError(f"'{path}' has {width} columns; at most {_MOST_COLUMNS} are read.")
    comma = separator != "," and any(_COMMA.match(c) for row in rows for c in row)
    notes = ["Numbers have a decimal comma."] if comma else []
    names, skip = _heading(rows, comma), 1
    if names is None:
        skip = 0
        names = _commented(comments, separator, width)
        if names is None:
            names = [f"c{i}" for i in range(width)]
            notes.append("There is no heading; columns are called c0, c1, ...")
    parted = [split_unit(name) for name in names]
    units = [unit for _, unit in parted]
    if skip and len(rows) > 1 and _is_units_row(rows[1], comma):
        units = [
            own or cell.strip().strip("[]()") for own, cell in zip(units, rows[1], strict=False)
        ]
        units += [""] * (width - len(units))
        skip = 2
    unique, twice = unique_names([name for name, _ in parted])
    return _Layout(
        separator=separator,
        comma=comma,
        names=tuple(unique),
        units=tuple(units),
        skip=skip,
        notes=(*notes, *twice),
    )


def _separator(sample: Sequence[str]) -> str:
    """The separator that gives most lines the same number of fields; one field if none does."""
    best, score = ",", 0.0
    for candidate in _SEPARATORS:
        try:
            rows = list(csv.reader(sample, delimiter=candidate, skipinitialspace=True))
        except csv.Error:
            continue
        widths = [len(row) for row in rows]
        width = max(set(widths), key=widths.count)
        share = widths.count(width) / len(widths)
        if width > 1 and share > score + 0.05:
            best, score = candidate, share
    return best


def _heading(rows: list[list[str]], comma: bool) -> list[str] | None:
    """Names in the first row, if it is no data."""
    first = rows[0]
    texts = [c for c in first if _number(c, comma) is None and c.strip().lower() not in _MISSING]
    if not texts or all(datetime_seconds(c) is not None for c in texts):
        return None
    return [c.strip() for c in first]


def _commented(comments: Sequence[str], separator: str, width: int) -> list[str] | None:
    """Names in the last comment line, as numpy writes them."""
    for text in reversed(comments):
        cells = [c.strip() for c in next(csv.reader([text], delimiter=separator), [])]
        if len(cells) == width and all(_number(c, False) is None for c in cells):
            return cells
    return None


def _is_units_row(row: list[str], comma: bool) -> bool:
    cells = [c.strip() for c in row]
    return (
        any(cells)
        and all(
            not c or (_number(c, comma) is None and len(c) <= 12 and c.lower() not in _WORDS)
            for c in cells
        )
        and not any(datetime_seconds(c) is not None for c in cells if c)
        and not _all_missing(cells)
    )


def _all_missing(cells: list[str]) -> bool:
    return all(c.lower() in _MISSING for c in cells)


def _number(cell: str, comma: bool) -> float | None:
    text = cell.strip()
    if comma:
        text = text.replace(",", ".")
    try:
        return float(text)
    except ValueError:
        return None


@dataclass(kw_only=True)
class _Body:
    """Numbers of the rows read so far, and what was wrong with them."""

    layout: _Layout
    where: str
    options: ReadOptions
    notes: list[str] = field(default_factory=list[str])
    _flat: array[float] = field(default_factory=lambda: array("d"))
    _texts: dict[int, tuple[int, str, int]] = field(default_factory=dict[int, tuple[int, str, int]])
    _ragged: tuple[int, int, int] = (0, 0, 0)

    def __post_init__(self) -> None:
        self._width = len(self.layout.names)
        self._dated = {i for i, name in enumerate(self.layout.names) if is_time_name(name)}
        if self.options.time in self.layout.names:
            self._dated.add(self.layout.names.index(self.options.time))

    def add(self, cells: list[str], line: int) -> None:
        """One row; rows of another width are counted and left out."""
        if len(cells) > self._width and not any(c.strip() for c in cells[self._width :]):
            cells = cells[: self._width]  # separators at the end
        if len(cells) != self._width:
            count, first, _ = self._ragged
            self._ragged = (count + 1, first or line, line)
            return
        try:
            self._flat.extend([float(c) for c in cells])
        except ValueError:
            self._flat.extend([self._cell(i, c, line) for i, c in enumerate(cells)])
        if len(self._flat) * 8 > self.options.limit:
            raise StoreError(
                f"{self.where} holds more numbers than the limit of {self.options.limit} bytes. "
                "Split it, or raise the option limit."
            )

    def _cell(self, index: int, cell: str, line: int) -> float:
        found = _number(cell, self.layout.comma)
        if found is not None:
            return found
        word = cell.strip().lower()
        if word in _MISSING:
            return math.nan
        if word in _WORDS:
            return _WORDS[word]
        if index in self._dated and (stamp := datetime_seconds(cell)) is not None:
            return stamp
        count, first, at = self._texts.get(index, (0, cell.strip()[:40], line))
        self._texts[index] = (count + 1, first, at)
        return math.nan

    def table(self, path: Path, notes: tuple[str, ...]) -> Table:
        """Columns of numbers; columns of nothing but text are left out."""
        grid = np.frombuffer(self._flat, dtype=np.float64).reshape(-1, self._width)
        if not len(grid):
            raise StoreError(
                f"{self.where} has no row of {self._width} fields like its heading "
                f"{listed(self.layout.names, 6)}."
            )
        columns: list[Column] = []
        texts: list[str] = []
        for i, (heading, unit) in enumerate(zip(self.layout.names, self.layout.units, strict=True)):
            values = grid[:, i].copy()
            if i in self._texts and np.isnan(values).all():
                texts.append(heading)
                continue
            columns.append(Column(name=heading, unit=unit, values=values))
        return Table(
            id=path.stem,
            file=path.name,
            where=self.where,
            columns=tuple(columns),
            notes=(*notes, *self.notes, *self._damage(grid, texts)),
        )

    def _damage(self, grid: np.ndarray, texts: list[str]) -> list[str]:
        notes: list[str] = []
        count, first, last = self._ragged
        if count:
            notes.append(
                f"{count} row(s) have another number of fields than the {self._width} of the "
                f"heading and were left out, first at line {first}, last at line {last}."
            )
        if texts:
            notes.append(f"Column(s) {listed(texts)} hold text and were left out.")
        for i, (bad, cell, line) in self._texts.items():
            if self.layout.names[i] not in texts:
                notes.append(
                    f"Column '{self.layout.names[i]}' holds text in {bad} row(s), first '{cell}' "
                    f"at line {line}; read as missing."
                )
        return notes
