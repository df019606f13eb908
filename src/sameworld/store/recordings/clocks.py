"""Which column is the time, and what it counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.errors import StoreError, closest, listed
from sameworld.store.recordings.options import ReadOptions, TimeUnit

__all__ = [
    "TIME_NAMES",
    "Clock",
    "as_utc",
    "datetime_seconds",
    "find_time",
    "is_time_name",
    "read_clock",
    "split_unit",
]

#: Names of time columns, most telling first; units may follow, as in ``time_ms``.
TIME_NAMES = (
    "timestamp",
    "time",
    "t",
    "stamp",
    "ts",
    "elapsed",
    "seconds",
    "sec",
    "secs",
    "clock",
    "datetime",
    "date",
)
_SCALES: dict[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SPELLINGS: dict[str, TimeUnit] = {
    "s": "s",
    "sec": "s",
    "secs": "s",
    "second": "s",
    "seconds": "s",
    "ms": "ms",
    "msec": "ms",
    "millis": "ms",
    "milliseconds": "ms",
    "us": "us",
    "usec": "us",
    "µs": "us",
    "μs": "us",
    "micros": "us",
    "microseconds": "us",
    "ns": "ns",
    "nsec": "ns",
    "nanos": "ns",
    "nanoseconds": "ns",
}
_UNITS = {"°": "deg", "degrees": "deg", "degree": "deg", "radians": "rad", "radian": "rad"}
_SUFFIXES = {"rad": "rad", "deg": "deg", "mm": "mm"}
_BRACKET = re.compile(r"^(.*?)\s*[\[(]\s*([^\[\]()]*)\s*[\])]\s*$")
#: Clocks that count from 1970 have such magnitudes: 1973 to 2100.
_EPOCHS: tuple[tuple[float, TimeUnit], ...] = ((1e17, "ns"), (1e14, "us"), (1e11, "ms"), (1e8, "s"))
_LATEST = 4.2e9
_ABSURD = 1e20


@dataclass(frozen=True, kw_only=True, eq=False)
class Clock:
    """A time column in seconds.

    Attributes:
        time: Stamps relative to the earliest one [T] s.
        zero: The earliest stamp [s], on the column's own clock.
        notes: What was assumed.
    """

    time: Array
    zero: float
    notes: tuple[str, ...]


def split_unit(header: str) -> tuple[str, str]:
    """Name and unit of a heading such as ``pos [deg]`` or ``pos(rad)``; the unit may be empty."""
    text = header.strip()
    match = _BRACKET.match(text) if len(text) < 200 else None
    if match is None or not match[1]:
        return text, _SUFFIXES.get(text.lower().rpartition("_")[2], "") if "_" in text else ""
    unit = match[2].strip()
    if unit.isdecimal():  # an index, as in q[0]
        return text, ""
    return match[1], _UNITS.get(unit.lower(), unit)


def _plain(name: str) -> tuple[str, TimeUnit | None]:
    """Lower-case name without a unit at its end, and that unit."""
    words = re.split(r"[^a-z0-9µμ]+", name.lower().strip())
    words = [w for w in words if w]
    if len(words) > 1 and words[-1] in _SPELLINGS:
        return "_".join(words[:-1]), _SPELLINGS[words[-1]]
    return "_".join(words), None


def is_time_name(name: str) -> bool:
    """Whether a column of that name is a time by its name alone."""
    return _rank(name) is not None


def _rank(name: str) -> int | None:
    plain, _ = _plain(name)
    if plain in TIME_NAMES:
        return TIME_NAMES.index(plain)
    last = plain.rpartition("_")[2]
    return len(TIME_NAMES) + TIME_NAMES.index(last) if last in TIME_NAMES[:2] else None


def find_time(columns: Mapping[str, Array], options: ReadOptions, where: str) -> str:
    """Name of the time column: the one asked for, the one named so, or the only increasing one.

    Raises:
        StoreError: There is none, or several might be it.
    """
    if options.time is not None:
        if options.time not in columns:
            raise StoreError(
                f"{where} has no column '{options.time}' for the time. It has {listed(columns)}."
                f"{closest(options.time, columns)}"
            )
        return options.time
    named = sorted((rank, name) for name in columns if (rank := _rank(name)) is not None)
    if named:
        return named[0][1]
    rising = [name for name, values in columns.items() if _rises(values)]
    if len(rising) == 1:
        return rising[0]
    found = f"{listed(rising)} all increase" if rising else "none of them always increases"
    raise StoreError(
        f"{where} has no column named like a time among {listed(columns)}, and {found}. "
        "Name it with the option time (on the command line --time)."
    )


def _rises(values: Array) -> bool:
    """Strictly increasing, and no mere row number."""
    if len(values) < 3 or not np.isfinite(values).all():
        return False
    steps = np.diff(values)
    return bool((steps > 0).all() and not (steps == 1).all())


@np.errstate(over="ignore", invalid="ignore")
def read_clock(name: str, stated: str, values: Array, options: ReadOptions, where: str) -> Clock:
    """Bring a time column to seconds since its earliest stamp.

    Args:
        name: Heading of the column.
        stated: Unit stated with it; empty if none.
        values: The column [T], finite.
        options: ``time_unit`` overrides everything.
        where: The file, for errors.

    Raises:
        StoreError: Nothing tells the unit, or no clock counts that far.
    """
    zero = float(values.min())
    if float(np.abs(values).max()) > _ABSURD:
        raise StoreError(f"{where}: the time column '{name}' reaches {np.abs(values).max():.3g}.")
    unit, why = _unit(name, stated, values, options, where)
    notes = [] if why is None else [f"Time column '{name}' is taken as {unit}: {why}."]
    scale = _SCALES[unit]
    if zero * scale > _EPOCHS[-1][0]:
        notes.append(f"Times count from {as_utc(zero * scale)} (unix {zero * scale:.6f} s).")
    elif zero != 0.0:
        notes.append(f"Times count from {zero * scale:.9g} s on the clock '{name}'.")
    return Clock(time=(values - zero) * scale, zero=zero * scale, notes=tuple(notes))


def _unit(
    name: str, stated: str, values: Array, options: ReadOptions, where: str
) -> tuple[str, str | None]:
    """Unit of a time column, and why if that was not stated."""
    if options.time_unit != "auto":
        return options.time_unit, None
    if stated:
        if stated.lower() not in _SPELLINGS:
            raise StoreError(
                f"{where}: the time column '{name}' is in '{stated}'. Known: s, ms, us, ns; "
                "say which with the option time_unit."
            )
        return _SPELLINGS[stated.lower()], None
    _, suffix = _plain(name)
    if suffix is not None:
        return suffix, None
    return _guess(name, values, where)


def _guess(name: str, values: Array, where: str) -> tuple[str, str]:
    smallest, largest = float(values.min()), float(values.max())
    for least, unit in _EPOCHS:
        if smallest >= least and largest * _SCALES[unit] < _LATEST:
            return unit, f"values near {largest:.3g} count {unit} from 1970"
    steps = np.diff(values)
    steps = steps[steps > 0]
    if not steps.size:
        return "s", "there are no steps to go by"
    step = float(np.median(steps))
    if not (values == np.floor(values)).all():
        return "s", f"it holds fractions, and its median step is {step:.6g}"
    if step >= 1e5:
        return "ns", f"whole numbers with a median step of {step:.6g}"
    if step >= 100:
        return "us", f"whole numbers with a median step of {step:.6g}"
    if step >= 2:
        return "ms", f"whole numbers with a median step of {step:.6g}"
    raise StoreError(
        f"{where}: the time column '{name}' counts 1, 2, 3, ...: seconds, milliseconds or row "
        "numbers. Say which with the option time_unit, or name another column with time."
    )


def datetime_seconds(text: str) -> float | None:
    """Seconds since 1970 of a date with time in ISO 8601; UTC where no zone stands."""
    try:
        stamp = datetime.fromisoformat(text.strip())
        stamp = stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)
        return stamp.timestamp()
    except (ValueError, OverflowError):
        return None


def as_utc(seconds: float) -> str:
    """Date and time of seconds since 1970, or the number where no calendar reaches it."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.6g} s after 1970"
