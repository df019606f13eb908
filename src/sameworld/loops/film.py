"""Film strips: what was recorded and what two worlds said, drawn by the fitted one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from sameworld.core.arrays import Array
from sameworld.core.episode import Channel, Episode
from sameworld.core.errors import SameworldError
from sameworld.core.manifolds import quat_log
from sameworld.core.prediction import Prediction
from sameworld.core.signals import interpolate
from sameworld.core.spec import Spec
from sameworld.core.values import Values
from sameworld.core.world import RenderWorld, World

__all__ = ["FilmStrip", "film_strips", "starts_at"]


@dataclass(frozen=True, kw_only=True, eq=False)
class FilmStrip:
    """Images of one course of events.

    Attributes:
        label: What is seen.
        time: Time of each image [N] s.
        images: Images [N, H, W, 3].
    """

    label: str
    time: Array
    images: NDArray[np.uint8]


def starts_at(spec: Spec, episode: Episode, times: Array) -> Values:
    """Start values that put a world where the episode was at ``times`` [N] s, at rest.

    Read from channels that show start parameters directly (``ChannelSpec.start``).
    """
    array = np.repeat(spec.start.mean.array, len(times), axis=0)
    for channel in spec.observations:
        if not channel.start or channel.name not in episode:
            continue
        measured = episode[channel.name]
        place = np.interp(times, measured.time, np.arange(len(measured), dtype=np.float64))
        samples = interpolate(channel, 1.0, measured.values, place)
        shown = quat_log(samples) if channel.manifold == "quaternion" else samples
        for name, column in zip(channel.start, shown.reshape(len(times), -1).T, strict=True):
            array[:, spec.start.index(name)] = column
    return Values(names=spec.start.names, array=array)


def film_strips(
    world: World,
    episodes: Sequence[Episode],
    predicted_before: Sequence[Prediction],
    predicted_after: Sequence[Prediction],
    count: int,
) -> tuple[FilmStrip, ...]:
    """Recorded, as given, fitted: ``count`` images each of the first episode.

    Empty where nothing can be drawn: no episodes, no renderer, no camera, or a failed simulation.
    """
    if not episodes or count == 0 or "render" not in world.spec.capabilities:
        return ()
    try:
        courses = (
            ("recorded", episodes[0]),
            ("simulated, as given", _as_episode(predicted_before[0])),
            ("simulated, fitted", _as_episode(predicted_after[0])),
        )
        time = np.linspace(courses[1][1].begin, courses[1][1].end, count)
        return tuple(
            FilmStrip(label=label, time=time, images=_draw(world, episode, time))
            for label, episode in courses
        )
    except SameworldError:
        return ()


def _as_episode(prediction: Prediction) -> Episode:
    channels = tuple(
        Channel(name=name, time=c.time, values=c.values) for name, c in prediction.channels.items()
    )
    return Episode(id=prediction.episode, channels=channels, source="mujoco")


def _draw(world: World, episode: Episode, time: Array) -> NDArray[np.uint8]:
    state = world.reset(starts_at(world.spec, episode, time))
    return cast(RenderWorld, world).render(state, "view")
