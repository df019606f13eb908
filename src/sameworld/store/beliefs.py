"""Beliefs as strict JSON files."""

from __future__ import annotations

from pathlib import Path

from sameworld.core.belief import Belief
from sameworld.core.errors import BeliefError, SameworldError
from sameworld.store.files import read_json, write_json

__all__ = ["load_belief", "save_belief"]


def save_belief(belief: Belief, path: str | Path) -> None:
    """Write a belief atomically; ``load_belief`` gives it back bit-exactly.

    Raises:
        StoreError: The file cannot be written.
    """
    write_json(path, belief.to_json())


def load_belief(path: str | Path) -> Belief:
    """Read a belief.

    Raises:
        StoreError: Missing file, or not strict JSON (NaN, a key twice, cut off).
        BeliefError: The content is no consistent belief; the message names the file.
    """
    record = read_json(path)
    try:
        return Belief.from_json(record)
    except SameworldError as cause:
        raise BeliefError(f"'{path}': {cause}") from cause
