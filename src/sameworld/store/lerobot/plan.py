"""What of a set of episodes goes into a LeRobot dataset, and what has to stay behind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from sameworld.core.episode import Channel, Episode, Role, Stream
from sameworld.core.errors import EpisodeError, StoreError, listed
from sameworld.store.lerobot.loss import ChannelLoss
from sameworld.store.lerobot.resample import is_quaternion

__all__ = ["FEATURES", "ExportPlan", "PlannedChannel", "export_plan"]

#: Feature that channels of a role go into, one after the other.
FEATURES: dict[Role, str] = {
    "observation": "observation.state",
    "action": "action",
    "exogenous": "observation.exogenous",
}


@dataclass(frozen=True, kw_only=True)
class PlannedChannel:
    """A channel that every episode has in the same shape.

    Attributes:
        name: Channel name.
        role: Its role.
        shape: Shape of a sample.
        unit: Its unit.
        quaternion: Whether it holds unit quaternions in every episode.
    """

    name: str
    role: Role
    shape: tuple[int, ...]
    unit: str
    quaternion: bool

    @property
    def size(self) -> int:
        """Numbers in a sample."""
        return prod(self.shape)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the components: ``name``, or ``name[0]``, ``name[1,2]``."""
        if not self.shape:
            return (self.name,)
        return tuple(f"{self.name}[{','.join(map(str, i))}]" for i in np.ndindex(*self.shape))


@dataclass(frozen=True, kw_only=True)
class ExportPlan:
    """What is exported.

    Attributes:
        channels: Channels in the order of the features' components.
        cameras: Feature name by camera name.
        dropped: Channels and cameras that stay behind, with the reason.
        lost: What else has no place, one sentence each.
    """

    channels: tuple[PlannedChannel, ...]
    cameras: Mapping[str, str]
    dropped: tuple[ChannelLoss, ...]
    lost: tuple[str, ...]

    def of(self, role: Role) -> tuple[PlannedChannel, ...]:
        """Channels of a role."""
        return tuple(c for c in self.channels if c.role == role)


def export_plan(episodes: Sequence[Episode], videos: Mapping[str, Sequence[Stream]]) -> ExportPlan:
    """Choose what every episode has.

    Args:
        episodes: At least one episode, ids unique.
        videos: Image streams by episode id.

    Raises:
        EpisodeError: No episode, or an id twice.
        StoreError: No observation is common to all episodes, or a camera has no usable name.
    """
    ids = [e.id for e in episodes]
    if not ids:
        raise EpisodeError("There is no episode to export.")
    if len(set(ids)) < len(ids):
        raise EpisodeError(f"Episode id(s) {listed(_twice(ids))} appear twice.")
    strangers = sorted(set(videos) - set(ids))
    if strangers:
        raise EpisodeError(f"Images are given for {listed(strangers)}, which are not exported.")
    names = dict.fromkeys(c.name for e in episodes for c in e.channels)
    dropped: list[ChannelLoss] = []
    channels: list[PlannedChannel] = []
    for name in names:
        found = [e[name] for e in episodes if name in e]
        why = _reason(found, len(episodes))
        if why:
            dropped.append(_dropped(found, why))
        else:
            channels.append(_planned(found))
    if not any(c.role == "observation" for c in channels):
        raise StoreError(
            f"No observation is in all {len(ids)} episodes with the same shape. "
            f"{dropped[0].name}: {dropped[0].reason}. Export fewer episodes at a time."
        )
    cameras, without = _cameras(ids, videos)
    return ExportPlan(
        channels=tuple(channels),
        cameras=cameras,
        dropped=(*dropped, *without),
        lost=tuple(_lost(episodes, channels)),
    )


def _reason(found: Sequence[Channel], episodes: int) -> str:
    if len(found) < episodes:
        return f"only {len(found)} of {episodes} episodes have it"
    if len({c.values.shape[1:] for c in found}) > 1:
        return "its shape differs between episodes"
    if len({c.role for c in found}) > 1:
        return "its role differs between episodes"
    return "its samples are empty" if not prod(found[0].values.shape[1:]) else ""


def _planned(found: Sequence[Channel]) -> PlannedChannel:
    first = found[0]
    quaternion = first.role == "observation" and all(is_quaternion(c) for c in found)
    return PlannedChannel(
        name=first.name,
        role=first.role,
        shape=first.values.shape[1:],
        unit=first.unit,
        quaternion=quaternion,
    )


def _dropped(found: Sequence[Channel], reason: str) -> ChannelLoss:
    samples = sum(len(c) for c in found)
    first = found[0]
    return ChannelLoss(
        name=first.name, role=first.role, unit=first.unit, samples=samples, reason=reason
    )


def _cameras(
    ids: Sequence[str], videos: Mapping[str, Sequence[Stream]]
) -> tuple[dict[str, str], list[ChannelLoss]]:
    given = [{s.name: s for s in videos.get(i, ())} for i in ids]
    kept: dict[str, str] = {}
    dropped: list[ChannelLoss] = []
    for name in dict.fromkeys(n for streams in given for n in streams):
        having = [streams[name] for streams in given if name in streams]
        if any(s.kind != "images" or not len(s.time) for s in having):
            raise StoreError(f"Stream '{name}' holds no images.")
        if len(having) < len(ids):
            why = f"only {len(having)} of {len(ids)} episodes have it"
            samples = sum(len(s.time) for s in having)
            dropped.append(ChannelLoss(name=name, role="image", samples=samples, reason=why))
            continue
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name.removeprefix("observation.images."))
        feature = f"observation.images.{plain[:80]}"
        if feature in kept.values() or not plain.strip("._-"):
            raise StoreError(f"Camera {name!r:.100} gives the feature '{feature}'. Rename it.")
        kept[name] = feature
    return kept, dropped


def _lost(episodes: Sequence[Episode], channels: Sequence[PlannedChannel]) -> list[str]:
    """What the format has no place for."""
    lost = ["Clocks: every channel had its own, now all have the rows' one, from 0 on."]
    if any(c.unit for c in channels):
        lost.append("Units are not kept by the format; they stand in this report.")
    noisy = dict.fromkeys(c.name for e in episodes for c in e.channels if c.noise is not None)
    if noisy:
        lost.append(f"Measurement noise of {listed(noisy)} was dropped.")
    if any(c.quaternion for c in channels):
        named = listed(c.name for c in channels if c.quaternion)
        lost.append(f"{named} hold unit quaternions (wxyz); the format does not know.")
    if any(c.role == "exogenous" for c in channels):
        lost.append(f"Exogenous inputs became the feature '{FEATURES['exogenous']}'.")
    if not any(c.role == "action" for c in channels):
        lost.append("No action is common to all episodes: the dataset has no feature 'action'.")
    for what, count in (
        ("start beliefs", sum(len(e.start) > 0 for e in episodes)),
        ("session beliefs", sum(len(e.session) > 0 for e in episodes)),
        ("scene ids", sum(bool(e.scene) for e in episodes)),
        ("session ids", sum(bool(e.session_id) for e in episodes)),
    ):
        if count:
            lost.append(f"The {what} of {count} episode(s) were dropped.")
    sources = sorted({e.source for e in episodes})
    lost.append(f"Sources ({', '.join(sources)}) and ids were dropped; ids stand in this report.")
    return lost


def _twice(ids: Sequence[str]) -> list[str]:
    return sorted({i for i in ids if ids.count(i) > 1})
