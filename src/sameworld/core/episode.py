"""``Recording`` and ``Episode``: what was measured, each channel on its own clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array, finite_array
from sameworld.core.belief import Belief
from sameworld.core.errors import EpisodeError, closest, listed

__all__ = [
    "Channel",
    "Episode",
    "EpisodeSource",
    "Recording",
    "Role",
    "Stream",
    "StreamKind",
]

Role = Literal["observation", "action", "exogenous"]
StreamKind = Literal["numbers", "images"]
EpisodeSource = Literal["real", "mujoco", "jax", "learned", "hybrid", "analytic"]


def _checked_time(time: Any, what: str) -> Array:
    clock = finite_array(time, f"{what} time", error=EpisodeError, ndim=1)
    if clock.size == 0:
        raise EpisodeError(f"{what} has no samples.")
    steps = np.diff(clock)
    if (steps <= 0).any():
        at = int(np.argmax(steps <= 0))
        raise EpisodeError(
            f"{what} time does not increase at sample {at + 1}: {clock[at]:.9g} s is followed by "
            f"{clock[at + 1]:.9g} s. Sort the samples and drop duplicates first."
        )
    return clock


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """A raw stream with its own clock.

    Attributes:
        name: Topic, column or file name.
        time: Stamps on the stream's own clock [T] s.
        values: Numbers [T, ...]; images stay in files and are named by ``source``.
        unit: Unit as recorded, empty if unknown.
        clock: Name of the clock the stamps belong to.
        source: Where it came from (path inside the recording, topic; for images the video file).
        kind: ``numbers``, or ``images`` whose values are frame numbers [T] in ``source``.
        labels: Names of the columns of samples of shape [N]; empty if unknown.
    """

    name: str
    time: Array
    values: NDArray[Any]
    unit: str = ""
    clock: str = "host"
    source: str = ""
    kind: StreamKind = "numbers"
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        stamps = finite_array(self.time, f"Stream '{self.name}' time", error=EpisodeError, ndim=1)
        if self.kind not in get_args(StreamKind):
            raise EpisodeError(
                f"Stream '{self.name}' has kind '{self.kind}'; use {get_args(StreamKind)}."
            )
        if self.labels and self.values.shape[1:] != (len(self.labels),):
            raise EpisodeError(
                f"Stream '{self.name}' has {len(self.labels)} labels for samples of shape "
                f"{self.values.shape[1:]}."
            )
        if len(stamps) != len(self.values):
            raise EpisodeError(
                f"Stream '{self.name}' has {len(stamps)} stamps and {len(self.values)} values."
            )
        object.__setattr__(self, "time", stamps)


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """Raw streams as they were captured.

    Attributes:
        id: Name of the recording.
        streams: Streams; names are unique.
        notes: What a reader could not recover or had to assume, one sentence each.
        session: Name of the session it belongs to, empty if unknown.
        task: What was done, in words, empty if unknown.
    """

    id: str
    streams: tuple[Stream, ...]
    notes: tuple[str, ...] = ()
    session: str = ""
    task: str = ""

    def __post_init__(self) -> None:
        names = [s.name for s in self.streams]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise EpisodeError(f"Recording '{self.id}' has stream(s) {listed(twice)} twice.")

    def __getitem__(self, name: str) -> Stream:
        for stream in self.streams:
            if stream.name == name:
                return stream
        names = [s.name for s in self.streams]
        raise EpisodeError(
            f"Recording '{self.id}' has no stream '{name}'. It has {listed(names)}."
            f"{closest(name, names)}"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Channel:
    """One signal of an episode.

    Attributes:
        name: Signal name as in the world's spec.
        time: Measurement times [T] s, strictly increasing.
        values: Samples [T, ...] in SI units.
        unit: Unit of the samples, empty if not stated.
        role: ``observation``, ``action`` (zero-order hold from its stamp on), or ``exogenous``
            input (voltage, enable flag).
        noise: Standard deviation of the measurement noise [unit; rad for quaternions]; ``None``
            if it is to be estimated.
    """

    name: str
    time: Array
    values: Array
    unit: str = ""
    role: Role = "observation"
    noise: float | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise EpisodeError("A channel needs a name.")
        if self.role not in get_args(Role):
            raise EpisodeError(
                f"Channel '{self.name}' has role '{self.role}'; use {get_args(Role)}."
            )
        what = f"Channel '{self.name}'"
        time = _checked_time(self.time, what)
        values = finite_array(self.values, f"{what} values", error=EpisodeError)
        if values.ndim == 0 or len(values) != len(time):
            raise EpisodeError(
                f"{what} has {len(time)} time stamps and values of shape {values.shape}; "
                "the first axis must be time."
            )
        if self.noise is not None and not (np.isfinite(self.noise) and self.noise > 0):
            raise EpisodeError(f"{what} has noise {self.noise}; it must be positive or None.")
        object.__setattr__(self, "time", time)
        object.__setattr__(self, "values", values)

    def __len__(self) -> int:
        return len(self.time)

    def rows(self, rows: slice) -> Channel:
        """Keep a range of samples."""
        return replace(self, time=self.time[rows], values=self.values[rows])

    def between(self, begin: float, end: float) -> Channel | None:
        """Samples with ``begin <= time <= end``, or ``None`` if there are none."""
        keep = (self.time >= begin - 1e-9) & (self.time <= end + 1e-9)
        if not keep.any():
            return None
        return replace(self, time=self.time[keep], values=self.values[keep])

    def averaged(self, times: Array, period: float) -> Array:
        """Time mean of the zero-order hold over ``[time, time + period]``, [N, ...].

        Exactly the held sample where none changes inside the interval.
        """
        held = self.held(times)
        first = np.searchsorted(self.time, times + 1e-9, side="right")
        last = np.searchsorted(self.time, times + period - 1e-9, side="left")
        for row in np.flatnonzero(last > first):
            inside = self.time[first[row] : last[row]]
            edges = np.concatenate([[times[row]], inside, [times[row] + period]])
            share = np.diff(edges) / period
            levels = np.concatenate([held[row : row + 1], self.values[first[row] : last[row]]])
            held[row] = np.tensordot(share, levels, axes=1)
        return held

    def held(self, times: Array) -> Array:
        """Zero-order hold at ``times`` [N] s: the last sample not later than each, [N, ...].

        Before the first sample the first value is held.
        """
        index = np.searchsorted(self.time, times + 1e-9, side="right") - 1
        return self.values[np.maximum(index, 0)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Episode:
    """Named channels of one run, with what is believed of its start and session.

    Attributes:
        id: Name, unique within a data set.
        channels: Channels; names are unique.
        start: Belief over start parameters (scope ``episode``).
        session: Belief over session parameters (scope ``session``).
        source: Who produced it.
        scene: Id of the scene it was recorded in, empty if unknown.
        session_id: Name of the session, episodes of one session share its parameters.
    """

    id: str
    channels: tuple[Channel, ...]
    start: Belief = field(default_factory=Belief)
    session: Belief = field(default_factory=Belief)
    source: EpisodeSource = "real"
    scene: str = ""
    session_id: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "channels", tuple(self.channels))
        names = [c.name for c in self.channels]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise EpisodeError(f"Episode '{self.id}' has channel(s) {listed(twice)} twice.")
        observed = [c for c in self.channels if c.role == "observation"]
        if not observed:
            raise EpisodeError(f"Episode '{self.id}' has no observation channel.")
        if self.source not in get_args(EpisodeSource):
            raise EpisodeError(
                f"Episode '{self.id}' has source '{self.source}'; use {get_args(EpisodeSource)}."
            )

    def __contains__(self, name: str) -> bool:
        return any(c.name == name for c in self.channels)

    def __getitem__(self, name: str) -> Channel:
        for channel in self.channels:
            if channel.name == name:
                return channel
        names = [c.name for c in self.channels]
        raise EpisodeError(
            f"Episode '{self.id}' has no channel '{name}'. It has {listed(names)}."
            f"{closest(name, names)}"
        )

    @property
    def observations(self) -> tuple[Channel, ...]:
        """Channels that were observed."""
        return tuple(c for c in self.channels if c.role == "observation")

    @property
    def start_prior(self) -> Belief:
        """Opinion on the start that owes nothing to the episode's own rows.

        Starts that ``identify`` left have seen the whole episode: using them again would count its
        rows twice, and predictions would know the future.
        """
        own = [p.name for p in self.start.parameters if p.source == "identified"]
        return self.start.without(own) if own else self.start

    @property
    def begin(self) -> float:
        """Time of the first observation [s]; worlds start here."""
        return min(float(c.time[0]) for c in self.observations)

    @property
    def end(self) -> float:
        """Time of the last observation [s]."""
        return max(float(c.time[-1]) for c in self.observations)

    def window(self, begin: float, end: float, *, id: str | None = None) -> Episode:
        """Cut a piece; actions keep the sample held at ``begin``.

        What is believed of the start is dropped unless the piece begins where the episode begins.

        Raises:
            EpisodeError: No observation channel has two samples inside.
        """
        kept: list[Channel] = []
        for channel in self.channels:
            if channel.role == "observation":
                piece = channel.between(begin, end)
                if piece is not None and len(piece) >= 2:
                    kept.append(piece)
            else:
                first = int(np.searchsorted(channel.time, begin + 1e-9, side="right")) - 1
                last = int(np.searchsorted(channel.time, end + 1e-9, side="right"))
                first = max(first, 0)
                kept.append(channel.rows(slice(first, max(last, first + 1))))
        start = self.start if begin <= self.begin + 1e-9 else Belief()
        name = self.id if id is None else id
        return replace(self, id=name, channels=tuple(kept), start=start)

    def head(self, rows: int) -> Episode:
        """Keep the first ``rows`` samples of every observation channel."""
        cut = tuple(c.rows(slice(0, rows)) if c.role == "observation" else c for c in self.channels)
        return replace(self, channels=cut)

    def with_channels(self, channels: Iterable[Channel]) -> Episode:
        """Replace channels of the same name and append new ones."""
        fresh: Mapping[str, Channel] = {c.name: c for c in channels}
        kept = [fresh.get(c.name, c) for c in self.channels]
        names = {c.name for c in self.channels}
        return replace(self, channels=(*kept, *(c for n, c in fresh.items() if n not in names)))
