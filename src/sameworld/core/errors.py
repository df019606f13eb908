"""Errors that say what was given, what exists and what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "AddressError",
    "BeliefError",
    "EpisodeError",
    "FitError",
    "MissingExtraError",
    "RolloutError",
    "SameworldError",
    "SameworldWarning",
    "SceneError",
    "SpecError",
    "StoreError",
    "closest",
    "listed",
]


class SameworldError(Exception):
    """Base of every error raised on purpose by this package."""


class SameworldWarning(UserWarning):
    """Something was asked for that has no effect, or looks like a mistake, but is allowed."""


class AddressError(SameworldError):
    """A parameter address is malformed or names nothing that exists."""


class BeliefError(SameworldError):
    """A parameter or belief is inconsistent (bounds, covariance, names)."""


class EpisodeError(SameworldError):
    """A recording or episode cannot be used as given."""


class SceneError(SameworldError):
    """A scene cannot be read, compiled or simulated as given."""


class SpecError(SameworldError):
    """Signals, actions or starts do not match what a world declares."""


class RolloutError(SameworldError):
    """A simulated element failed and the caller asked for failures to be raised."""


class FitError(SameworldError):
    """Identification cannot run on what was given."""


class StoreError(SameworldError):
    """A file or folder cannot be read or written as asked."""


class MissingExtraError(SameworldError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"'{package}' is not installed. Install it with: pip install 'sameworld[{extra}]'"
        )


def listed(names: Iterable[str], limit: int = 12) -> str:
    """Render names for an error message, cut after ``limit``."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:limit]) or "(none)"
    rest = len(names) - limit
    return f"{shown} and {rest} more" if rest > 0 else shown


def closest(name: str, names: Iterable[str]) -> str:
    """Suggest the nearest existing name, as a sentence; empty if none is near."""
    match = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f" Did you mean '{match[0]}'?" if match else ""
