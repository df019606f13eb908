"""``Progress``: what long work reports while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Progress", "Report", "silent"]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One report of progress.

    Attributes:
        stage: What is going on, e.g. ``screening``; a new name begins a new bar.
        done: Units of work finished.
        total: Units of work in all, ``None`` if unknown.
        message: One line of detail, e.g. the cost so far.
    """

    stage: str
    done: int
    total: int | None = None
    message: str = ""


#: Takes reports; must return quickly and may raise ``KeyboardInterrupt`` to stop the work.
Report: TypeAlias = Callable[[Progress], None]


def silent(progress: Progress) -> None:
    """Ignore progress."""
