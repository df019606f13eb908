"""``apply_mapping``: a raw recording and a mapping to an episode in a world's signals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel, Episode, Recording
from sameworld.core.errors import EpisodeError, closest, listed
from sameworld.core.mapping import SignalMap, SignalMapping
from sameworld.core.spec import ChannelSpec, Spec
from sameworld.core.world import World
from sameworld.stages.capture.columns import clean, column_index

__all__ = ["apply_mapping"]


def apply_mapping(world: World | Spec, recording: Recording, mapping: SignalMapping) -> Episode:
    """Turn a recording into an episode: chosen columns, in SI, with the right sign, zero and time.

    Rows with NaN are left out, rows are sorted by their stamps, and of equal stamps the first is
    kept. Nothing is brought to a grid; components of one channel that come from streams with
    different stamps are interpolated to those of the first.

    Args:
        world: The world, or its spec.
        recording: The recording.
        mapping: A mapping without open questions.

    Returns:
        The episode, with the recording's id and session.

    Raises:
        EpisodeError: The mapping has open questions, names what does not exist, or leaves out
            components of a channel.
    """
    mapping.require_decided()
    spec = world if isinstance(world, Spec) else world.spec
    known = {c.name: c for c in (*spec.observations, *spec.actions)}
    names = list(dict.fromkeys(s.channel for s in mapping.signals))
    channels = [
        _channel(known.get(name), recording, sorted(_of(mapping, name), key=lambda s: s.component))
        for name in names
    ]
    if not channels:
        raise EpisodeError(
            f"The mapping of recording '{recording.id}' is empty. Map at least one observation."
        )
    return Episode(id=recording.id, channels=tuple(channels), session_id=recording.session)


def _of(mapping: SignalMapping, channel: str) -> list[SignalMap]:
    return [s for s in mapping.signals if s.channel == channel]


def _channel(
    wanted: ChannelSpec | None, recording: Recording, signals: Sequence[SignalMap]
) -> Channel:
    first = signals[0]
    shape = wanted.shape if wanted is not None else (() if len(signals) == 1 else (len(signals),))
    size = int(np.prod(shape, dtype=int))
    given = [s.component for s in signals]
    if given != list(range(size)):
        raise EpisodeError(
            f"Channel '{first.channel}' has components {list(range(size))}, the mapping gives "
            f"{given}. Map each of them once."
        )
    units, roles = {s.unit for s in signals}, {s.role for s in signals}
    if len(roles) > 1 or len(units) > 1:
        raise EpisodeError(
            f"Components of channel '{first.channel}' have units {listed(sorted(units))} and roles "
            f"{listed(sorted(roles))}; they must agree."
        )
    if wanted is not None and first.unit and wanted.unit and first.unit != wanted.unit:
        raise EpisodeError(
            f"Channel '{first.channel}' is in '{wanted.unit}', the mapping says '{first.unit}'. "
            "Put the conversion into 'scale' and the world's unit into 'unit'."
        )
    series = [_series(recording, s) for s in signals]
    time = series[0][0]
    columns = [v if _same(t, time) else np.interp(time, t, v) for t, v in series]
    values = np.stack(columns, axis=1).reshape(len(time), *shape)
    return Channel(name=first.channel, time=time, values=values, unit=first.unit, role=first.role)


def _series(recording: Recording, signal: SignalMap) -> tuple[Array, Array]:
    """Stamps and SI values of one signal."""
    names = [s.name for s in recording.streams]
    if signal.stream not in names:
        raise EpisodeError(
            f"The mapping takes '{signal.channel}' from stream '{signal.stream}'; recording "
            f"'{recording.id}' has {listed(names)}.{closest(signal.stream, names)}"
        )
    stream = recording[signal.stream]
    if stream.kind != "numbers":
        raise EpisodeError(f"Stream '{stream.name}' holds images; map a stream of numbers.")
    time, values = clean(stream, [column_index(stream, signal.column)])
    if not len(time):
        raise EpisodeError(
            f"Column '{signal.column}' of stream '{stream.name}' in recording '{recording.id}' "
            "holds no finite number."
        )
    return time - signal.delay, signal.scale * values[:, 0] + signal.offset


def _same(one: Array, other: Array) -> bool:
    return len(one) == len(other) and bool(np.array_equal(one, other))
