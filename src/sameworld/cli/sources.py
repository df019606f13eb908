"""Scenes and episodes by path or by a name of the zoo."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sameworld.core.episode import Episode
from sameworld.core.errors import EpisodeError, StoreError, closest, listed
from sameworld.core.scene import Scene

__all__ = ["RECORDINGS", "episodes_from", "scene_from"]


def _cube_tosses(count: int | None) -> tuple[Episode, ...]:
    from sameworld.zoo.recordings import cube_tosses

    return cube_tosses(count)


#: Recordings that come with the package; the argument is how many episodes to take.
RECORDINGS: dict[str, Callable[[int | None], tuple[Episode, ...]]] = {"cube_tosses": _cube_tosses}


def scene_from(source: str) -> Scene:
    """A scene folder, an MJCF or URDF file, or a scene of the zoo.

    Raises:
        StoreError: It is none of them.
        SceneError: A robot description says impossible things.
    """
    from sameworld.store import load_scene
    from sameworld.zoo.scenes import scene, scene_names

    if Path(source).suffix in (".urdf", ".xacro"):
        return _scene_of_robot(source)
    if Path(source).exists():
        kept = Path(source) / "scene"  # of a run folder
        return load_scene(kept if (kept / "scene.xml").is_file() else source)
    if source in scene_names():
        return scene(source)
    raise StoreError(
        f"'{source}' is neither a scene folder nor an MJCF file, and the zoo has no such scene. "
        f"Zoo: {listed(scene_names())}.{closest(source, scene_names())}"
    )


def _scene_of_robot(source: str) -> Scene:
    from sameworld.store import read_urdf
    from sameworld.worlds.explicit.urdf import scene_from_urdf

    scene, _ = scene_from_urdf(read_urdf(source))
    return scene


def episodes_from(source: str) -> tuple[Episode, ...]:
    """An episode store, or a recording of the zoo, e.g. ``cube_tosses`` or ``cube_tosses:20``.

    Raises:
        StoreError: It is neither.
        EpisodeError: It is empty, or the count after the colon is none.
    """
    from sameworld.store import load_episodes

    if Path(source).exists():
        episodes = load_episodes(source)
        if not episodes:
            raise EpisodeError(f"'{source}' holds no episode. Record or import some first.")
        return episodes
    name, colon, count = source.partition(":")
    if name not in RECORDINGS:
        raise StoreError(
            f"'{source}' is no episode store, and the zoo has no such recording. "
            f"Zoo: {listed(RECORDINGS)}.{closest(name, RECORDINGS)}"
        )
    if colon and not (count.isdecimal() and int(count) > 0):
        raise EpisodeError(f"'{source}': after the colon comes a number of episodes.")
    return RECORDINGS[name](int(count) if colon else None)
