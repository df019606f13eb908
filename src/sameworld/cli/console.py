"""What the verbs write: facts, tables, JSON, and a progress bar on stderr."""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
)
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from sameworld.core.progress import Progress, Report

__all__ = ["Grid", "progress_bar", "say", "say_facts", "say_grid", "say_json"]

_WIDTH = 160


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table to print.

    Attributes:
        title: Title.
        header: Column names.
        rows: Cells as texts.
        right: Columns whose cells are numbers.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[str, ...] = ()

    def to_json(self) -> list[dict[str, str]]:
        """One mapping per row."""
        return [dict(zip(self.header, row, strict=True)) for row in self.rows]


def _console() -> Console:
    terminal = sys.stdout.isatty()
    return Console(highlight=False, soft_wrap=not terminal, width=None if terminal else _WIDTH)


def say(text: str) -> None:
    """One line of text."""
    _console().print(Text(text))


def say_facts(facts: Mapping[str, str]) -> None:
    """Names and values, one pair a line."""
    width = max((len(name) for name in facts), default=0)
    for name, value in facts.items():
        line = Text(f"{name:<{width}}  ", style="dim")
        _console().print(line.append(value, style="not dim"))


def say_grid(grid: Grid) -> None:
    """A table."""
    table = Table(
        box=box.SIMPLE_HEAD, title=Text(grid.title), title_justify="left", title_style="bold"
    )
    for name in grid.header:
        table.add_column(
            Text(name), justify="right" if name in grid.right else "left", overflow="fold"
        )
    for row in grid.rows:
        table.add_row(*(Text(cell) for cell in row))
    _console().print(table)


def say_json(record: Any) -> None:
    """Strict JSON, one document."""
    sys.stdout.write(json.dumps(record, indent=1, allow_nan=False) + "\n")


@contextmanager
def progress_bar() -> Iterator[Report]:
    """A bar on stderr for the stage at work, with time spent and left; else plain lines.

    Announcements of long pauses (the package's log) are lines on stderr meanwhile.
    """
    with _announced():
        if sys.stderr.isatty():
            with _bars() as bars:
                yield _Bar(bars)
        else:
            yield _Lines()


@contextmanager
def _announced() -> Iterator[None]:
    log, handler = logging.getLogger("sameworld"), _Announcements()
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)


class _Announcements(logging.Handler):
    """Writes to what stderr is at the time: a bar replaces it."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"{self.format(record)}\n")


def _bars() -> Bars:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        _Left(),
        _Spent(),
        TextColumn("{task.fields[message]}", style="dim"),
    )
    return Bars(*columns, console=Console(stderr=True), transient=True)


class _Bar:
    """One row that turns to each stage as it begins."""

    def __init__(self, bars: Bars) -> None:
        self._bars, self._stage = bars, ""
        self._task = bars.add_task("", total=None, message="")

    def __call__(self, progress: Progress) -> None:
        if progress.stage != self._stage:
            self._stage = progress.stage
            self._bars.reset(
                self._task,
                total=progress.total,
                completed=progress.done,
                description=progress.stage,
                message=progress.message,
            )
        self._bars.update(
            self._task, completed=progress.done, total=progress.total, message=progress.message
        )


class _Left(ProgressColumn):
    """Time the stage needs at most, from the speed so far; nothing until there is one."""

    def render(self, task: Task) -> Text:
        left = task.time_remaining
        return Text("" if left is None else f"≤ {_clock(left)} left", style="cyan")


class _Spent(ProgressColumn):
    """Time since the first stage began."""

    def __init__(self) -> None:
        super().__init__()
        self._began = time.monotonic()

    def render(self, task: Task) -> Text:
        return Text(f"{_clock(time.monotonic() - self._began)} spent", style="dim")


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


class _Lines:
    """A line whenever a stage begins or ends."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, bool]] = set()

    def __call__(self, progress: Progress) -> None:
        key = (progress.stage, progress.done == progress.total)
        if key not in self._seen:
            self._seen.add(key)
            total = "" if progress.total is None else f"/{progress.total}"
            detail = f" {progress.message}" if progress.message else ""
            sys.stderr.write(f"{progress.stage}: {progress.done}{total}{detail}\n")
