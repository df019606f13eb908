"""``build``: one call from a scene to any kind of world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast, get_args

from sameworld.core.errors import SceneError, closest, listed
from sameworld.core.scene import Scene
from sameworld.core.world import World

if TYPE_CHECKING:
    from sameworld.worlds.explicit.config import ExplicitConfig

__all__ = ["Kind", "build"]

Kind = Literal["explicit"]


def build(scene: Scene, kind: Kind = "explicit", *, config: ExplicitConfig | None = None) -> World:
    """Make a world from a scene.

    Args:
        scene: The scene.
        kind: ``explicit`` simulates it with MuJoCo.
        config: Options of that kind of world.

    Raises:
        SceneError: The kind does not exist or the scene cannot be simulated.
        AddressError: The scene's belief names a parameter that does not exist.
    """
    if kind not in get_args(Kind):
        kinds = get_args(Kind)
        raise SceneError(
            f"There is no kind of world '{kind}'. Kinds: {listed(kinds)}."
            f"{closest(str(kind), cast('tuple[str, ...]', kinds))}"
        )
    from sameworld.worlds.explicit import explicit_world

    return explicit_world(scene, config)
