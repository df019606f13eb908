"""``ReadOptions``: how recordings are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from sameworld.core.errors import StoreError

__all__ = ["ReadOptions", "Stamps", "TimeUnit"]

TimeUnit = Literal["auto", "s", "ms", "us", "ns"]
Stamps = Literal["header", "log"]


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How recordings are read.

    Attributes:
        time: Column or array that holds the time, for tables and NPZ; found if ``None``.
        time_unit: Unit of that column; ``auto`` takes the stated one, or goes by magnitude.
        stamps: Stamp of a message: from its header where it has one, or when it was logged.
        topics: Topics or columns to read, as patterns like ``/arm/*``; all if empty.
        columns: Most numbers that one field of one message may hold; longer ones are left out.
        limit: Most memory for the numbers of one recording [bytes].
    """

    time: str | None = None
    time_unit: TimeUnit = "auto"
    stamps: Stamps = "header"
    topics: tuple[str, ...] = ()
    columns: int = 1024
    limit: int = 1 << 31

    def __post_init__(self) -> None:
        object.__setattr__(self, "topics", tuple(self.topics))
        if self.time_unit not in get_args(TimeUnit):
            raise StoreError(f"time_unit is '{self.time_unit}'; use one of {get_args(TimeUnit)}.")
        if self.stamps not in get_args(Stamps):
            raise StoreError(f"stamps is '{self.stamps}'; use one of {get_args(Stamps)}.")
        if self.columns < 1 or self.limit < 1:
            raise StoreError(f"columns ({self.columns}) and limit ({self.limit}) are positive.")
