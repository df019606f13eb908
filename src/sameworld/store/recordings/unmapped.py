"""Recordings to episodes without a mapping: every column under its own name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel, Episode, Recording, Role, Stream
from sameworld.core.errors import EpisodeError
from sameworld.core.spec import ChannelSpec, Spec

__all__ = ["unmapped_episode"]


def unmapped_episode(
    recording: Recording, spec: Spec | None = None
) -> tuple[Episode, tuple[str, ...]]:
    """Take a recording over as it is: no unit, sign or clock is changed.

    A column becomes a channel ``stream.label``; a stream whose name and shape are those of a
    channel of ``spec`` stays whole and takes its role. Samples that are not finite, and those whose
    stamp is not later than all before, cannot stand in an episode: they are left out and counted.

    Args:
        recording: What was read.
        spec: Channels of the world it will meet, if known.

    Returns:
        The episode, and what was left out, one sentence each.

    Raises:
        EpisodeError: No column has two samples.
    """
    known = {} if spec is None else {c.name: c for c in (*spec.observations, *spec.actions)}
    acting = set[str]() if spec is None else {c.name for c in spec.actions}
    notes: list[str] = []
    channels: list[Channel] = []
    for stream in recording.streams:
        if stream.kind == "images":
            notes.append(f"{stream.name}: pictures were left out.")
            continue
        for name, values in _columns(stream, known):
            role: Role = "action" if name in acting else "observation"
            channel = _channel(name, stream, values, role, notes)
            if channel is not None:
                channels.append(channel)
    if not channels:
        raise EpisodeError(
            f"Recording '{recording.id}' has no column with two usable samples. {' '.join(notes)}"
        )
    return Episode(id=recording.id, channels=tuple(channels), session_id=recording.session), tuple(
        notes
    )


def _columns(stream: Stream, known: dict[str, ChannelSpec]) -> Iterator[tuple[str, Array]]:
    values = np.asarray(stream.values, dtype=np.float64)
    shape = values.shape[1:]
    if not shape or (stream.name in known and known[stream.name].shape == shape):
        yield stream.name, values
        return
    flat = values.reshape(len(values), int(np.prod(shape, dtype=int)))
    labels = stream.labels or tuple(".".join(map(str, index)) for index in np.ndindex(shape))
    for position, label in enumerate(labels):
        whole = f"{stream.name}.{label}"
        yield (label if label in known and whole not in known else whole), flat[:, position]


def _channel(
    name: str, stream: Stream, values: Array, role: Role, notes: list[str]
) -> Channel | None:
    finite = np.asarray(np.isfinite(values.reshape(len(values), -1)).all(axis=1))
    fresh = _later(stream.time, finite)
    keep = finite & fresh
    if not finite.all():
        notes.append(f"{name}: {int((~finite).sum())} sample(s) are not finite and were left out.")
    late = int((finite & ~fresh).sum())
    if late:
        notes.append(
            f"{name}: {late} sample(s) are not later than one before them and were left out."
        )
    if keep.sum() < (2 if role == "observation" else 1):
        notes.append(f"{name}: fewer than two usable samples, the column was left out.")
        return None
    return Channel(
        name=name, time=stream.time[keep], values=values[keep], unit=stream.unit, role=role
    )


def _later(time: Array, usable: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Stamps later than every usable one before them."""
    stamps = np.where(usable, time, -np.inf)
    before = np.concatenate([[-np.inf], np.maximum.accumulate(stamps)[:-1]])
    return np.asarray(time > before)
