"""Named arrays to recordings: which array is time, which belong to it, where pieces begin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.episode import Recording, Stream
from sameworld.core.errors import StoreError, listed
from sameworld.store.recordings.clocks import Clock, find_time, is_time_name, read_clock, split_unit
from sameworld.store.recordings.options import ReadOptions

__all__ = ["recordings_from_arrays"]

_STARTS = ("start", "starts", "offsets")
_LABELS = ("columns", "labels", "names")
_STEP = "dt"
_MOST_PIECES = 100_000


@dataclass(frozen=True, kw_only=True, eq=False)
class _Family:
    """Arrays that share a clock."""

    prefix: str
    clock: str
    stated: str
    stamps: Array
    starts: NDArray[np.int64]
    members: Mapping[str, NDArray[Any]]
    labels: Mapping[str, tuple[str, ...]]


def recordings_from_arrays(
    path: Path, arrays: Mapping[str, NDArray[Any]], notes: list[str], options: ReadOptions
) -> Iterator[Recording]:
    """Cut arrays into recordings.

    Understood are: a time array beside arrays of its length; several such families with a common
    prefix (``a_t``, ``a_x``, ``b_t``, ``b_x``); a step ``dt`` instead of a time; a matrix with a
    time column named by an array ``columns``; and offsets ``start`` where pieces begin.

    Raises:
        StoreError: There is no time, or the offsets are none.
    """
    numbers = {n: a for n, a in arrays.items() if a.dtype.kind in "fiub"}
    families = _families(path, arrays, numbers, options)
    used = {n for f in families for n in f.members}
    spare = _spare(numbers, used, families)
    texts = [n for n, a in arrays.items() if a.dtype.kind not in "fiub" and n not in _LABELS]
    if spare:
        notes.append(f"Array(s) {listed(spare)} have no time of their length and were left out.")
    if texts:
        notes.append(f"Array(s) {listed(texts)} hold no plain numbers and were left out.")
    whole = [f for f in families if len(f.starts) == 2]
    if len(whole) > 1:
        yield _joined(path, whole, tuple(notes), options)
    for family in families:
        if family not in whole or len(whole) == 1:
            yield from _pieces(path, family, tuple(notes), options)


def _families(
    path: Path,
    arrays: Mapping[str, NDArray[Any]],
    numbers: Mapping[str, NDArray[Any]],
    options: ReadOptions,
) -> list[_Family]:
    if options.time is not None and options.time in numbers:
        clocks = {options.time: ""}
    else:
        clocks = _clocks(numbers)
    families = [
        _family(path, arrays, numbers, name, prefix)
        for name, prefix in clocks.items()
        if options.time is None or name == options.time
    ]
    families = [f for f in families if f.members]
    if families:
        return families
    matrix = _matrix(path, arrays, numbers, options)
    if matrix is not None:
        return [matrix]
    shapes = [f"{name}{list(a.shape)}" for name, a in arrays.items()]
    raise StoreError(
        f"'{path}' holds {listed(shapes)} and no time: neither an array named like one ('t', "
        "'time', 'x_t') with arrays of its length beside it, nor a step 'dt', nor a time column. "
        "Name it with the option time (on the command line --time)."
    )


def _clocks(numbers: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    """Time arrays and the prefix of their families."""
    found: dict[str, str] = {}
    for name, array in numbers.items():
        if array.ndim != 1 or len(array) < 2:
            continue
        plain, _ = split_unit(name)
        prefix, _, last = plain.rpartition("_")
        if is_time_name(plain) and not is_time_name(last):  # time_ms
            found[name] = ""
        elif is_time_name(last):
            found[name] = f"{prefix}_" if prefix else ""
    return found


def _family(
    path: Path,
    arrays: Mapping[str, NDArray[Any]],
    numbers: Mapping[str, NDArray[Any]],
    name: str,
    prefix: str,
) -> _Family:
    clock = numbers[name]
    others = _clocks(numbers)
    prefixes = [p for p in others.values() if p and p != prefix]
    members = {
        n: a
        for n, a in numbers.items()
        if n not in others
        and n.startswith(prefix)
        and a.ndim >= 1
        and len(a) == len(clock)
        and not (prefix == "" and any(n.startswith(p) for p in prefixes))
    }
    return _Family(
        prefix=prefix.rstrip("_"),
        clock=name,
        stated=split_unit(name)[1],
        stamps=np.asarray(clock, dtype=np.float64).ravel(),
        starts=_starts(path, numbers, prefix, len(clock)),
        members=members,
        labels={n: _labels(arrays, prefix, a) for n, a in members.items()},
    )


def _matrix(
    path: Path,
    arrays: Mapping[str, NDArray[Any]],
    numbers: Mapping[str, NDArray[Any]],
    options: ReadOptions,
) -> _Family | None:
    """The largest matrix, timed by one of its columns or by a constant step."""
    grids = {n: a for n, a in numbers.items() if a.ndim >= 1 and n not in _STARTS and len(a) > 1}
    if not grids:
        return None
    rows = max(len(a) for a in grids.values())
    members = {n: a for n, a in grids.items() if len(a) == rows}
    starts = _starts(path, numbers, "", rows)
    step = numbers.get(_STEP)
    if step is not None and step.size == 1 and options.time is None:
        period = float(step.ravel()[0])
        if not (np.isfinite(period) and period > 0):
            raise StoreError(f"'{path}': the step dt is {period}; it must be positive.")
        return _Family(
            prefix="",
            clock=_STEP,
            stated="s",
            stamps=period * np.arange(rows, dtype=np.float64),
            starts=starts,
            members=members,
            labels={n: _labels(arrays, "", a) for n, a in members.items()},
        )
    return _timed_by_column(path, arrays, members, starts, options)


def _timed_by_column(
    path: Path,
    arrays: Mapping[str, NDArray[Any]],
    members: Mapping[str, NDArray[Any]],
    starts: NDArray[np.int64],
    options: ReadOptions,
) -> _Family | None:
    for name, grid in members.items():
        labels = _labels(arrays, "", grid)
        if grid.ndim != 2 or not labels:
            continue
        first = slice(int(starts[0]), int(starts[1]))
        columns = {label: np.asarray(grid[first, i], float) for i, label in enumerate(labels)}
        clock = find_time(columns, options, f"'{path}', array '{name}'")
        at = labels.index(clock)
        rest = tuple(label for label in labels if label != clock)
        return _Family(
            prefix="",
            clock=clock,
            stated=split_unit(clock)[1],
            stamps=np.asarray(grid[:, at], dtype=np.float64),
            starts=starts,
            members={**members, name: np.delete(grid, at, axis=1)},
            labels={n: rest if n == name else _labels(arrays, "", a) for n, a in members.items()},
        )
    return None


def _labels(
    arrays: Mapping[str, NDArray[Any]], prefix: str, array: NDArray[Any]
) -> tuple[str, ...]:
    """Names of the columns of a matrix, if an array beside it gives just as many different ones."""
    if array.ndim != 2:
        return ()
    for name in (f"{prefix}{base}" for base in _LABELS):
        texts = arrays.get(name)
        if texts is not None and texts.dtype.kind == "U" and texts.shape == (array.shape[1],):
            labels = tuple(str(t) for t in texts.tolist())
            if len(set(labels)) == len(labels):
                return labels
    return ()


def _starts(
    path: Path, numbers: Mapping[str, NDArray[Any]], prefix: str, rows: int
) -> NDArray[np.int64]:
    """Offsets [pieces + 1] where pieces begin and the last one ends."""
    for name in (f"{prefix}{base}" for base in _STARTS):
        given = numbers.get(name)
        if given is None or given.ndim != 1 or given.dtype.kind not in "iu" or not given.size:
            continue
        offsets = given.astype(np.int64)
        if offsets[-1] != rows:
            offsets = np.append(offsets, rows)
        if offsets[0] < 0 or (np.diff(offsets) < 0).any() or offsets[-1] > rows:
            raise StoreError(
                f"'{path}': '{name}' must hold rising offsets of pieces within {rows} rows, got "
                f"{offsets[0]} to {offsets[-1]}."
            )
        if len(offsets) > _MOST_PIECES:
            raise StoreError(f"'{path}': '{name}' cuts it into {len(offsets)} pieces.")
        return offsets
    return np.array([0, rows], dtype=np.int64)


def _spare(
    numbers: Mapping[str, NDArray[Any]], used: set[str], families: list[_Family]
) -> list[str]:
    clocks = {f.clock for f in families}
    ends = tuple(_STARTS)
    return [n for n in numbers if n not in used | clocks | {_STEP} and not n.endswith(ends)]


def _joined(
    path: Path, families: list[_Family], notes: tuple[str, ...], options: ReadOptions
) -> Recording:
    """One recording of several clocks, on the time axis of the earliest."""
    parts: list[tuple[float, Stream]] = []
    for family in families:
        clock, usable = _clock(path, family, slice(None), options)
        notes = (*notes, *(n for n in clock.notes if n not in notes))
        parts += [
            (clock.zero, s) for s in _streams(path, family, slice(None), usable, clock, options, "")
        ]
    zero = min(begin for begin, _ in parts)
    streams = tuple(replace(s, time=s.time + (begin - zero)) for begin, s in parts)
    return Recording(id=path.stem, streams=streams, notes=notes)


def _pieces(
    path: Path, family: _Family, notes: tuple[str, ...], options: ReadOptions
) -> Iterator[Recording]:
    name = "-".join(part for part in (path.stem, family.prefix) if part)
    count = len(family.starts) - 1
    digits = len(str(max(count - 1, 0)))
    for piece in range(count):
        rows = slice(int(family.starts[piece]), int(family.starts[piece + 1]))
        if rows.start == rows.stop:
            continue
        own = name if count == 1 else f"{name}-{piece:0{digits}d}"
        yield _piece(path, family, rows, own, notes, options)


def _piece(
    path: Path,
    family: _Family,
    rows: slice,
    name: str,
    notes: tuple[str, ...],
    options: ReadOptions,
) -> Recording:
    clock, usable = _clock(path, family, rows, options)
    prefix = f"{family.prefix}_" if family.prefix else ""
    streams = _streams(path, family, rows, usable, clock, options, prefix)
    return Recording(id=name, streams=tuple(streams), notes=(*notes, *clock.notes))


def _clock(
    path: Path, family: _Family, rows: slice, options: ReadOptions
) -> tuple[Clock, NDArray[np.bool_]]:
    """Time of some rows, and which of them have one."""
    stamps = family.stamps[rows]
    usable = np.isfinite(stamps)
    if not usable.any():
        raise StoreError(f"'{path}': the time '{family.clock}' holds no number.")
    clock = read_clock(family.clock, family.stated, stamps[usable], options, f"'{path}'")
    if family.clock == _STEP:  # counted here, no clock of the recording
        clock = replace(clock, notes=())
    if usable.all():
        return clock, usable
    lost = f"{int((~usable).sum())} row(s) without a finite time were left out."
    return replace(clock, notes=(*clock.notes, lost)), usable


def _streams(
    path: Path,
    family: _Family,
    rows: slice,
    usable: NDArray[np.bool_],
    clock: Clock,
    options: ReadOptions,
    prefix: str,
) -> list[Stream]:
    return [
        Stream(
            name=split_unit(member)[0].removeprefix(prefix),
            time=clock.time,
            values=_floats(array[rows][usable]),
            unit=split_unit(member)[1],
            clock=family.clock,
            source=f"{path.name}:{member}",
            labels=family.labels[member],
        )
        for member, array in family.members.items()
        if not options.topics or any(fnmatchcase(member, p) for p in options.topics)
    ]


def _floats(values: NDArray[Any]) -> NDArray[Any]:
    return values.astype(np.float64) if values.dtype.kind in "iub" else np.asarray(values)
