"""``build``: one call from a scene to any kind of world."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Literal, cast, get_args

from sameworld.core.errors import MissingExtraError, SceneError, closest, listed
from sameworld.core.scene import Scene
from sameworld.core.world import World

if TYPE_CHECKING:
    from sameworld.worlds.differentiable.config import DifferentiableConfig
    from sameworld.worlds.explicit.config import ExplicitConfig

__all__ = ["Kind", "build"]

Kind = Literal["explicit", "differentiable"]


def build(
    scene: Scene,
    kind: Kind = "explicit",
    *,
    config: ExplicitConfig | DifferentiableConfig | None = None,
) -> World:
    """Make a world from a scene.

    Args:
        scene: The scene.
        kind: ``explicit`` simulates it with MuJoCo; ``differentiable`` simulates the same equations
            in JAX, with exact derivatives.
        config: Options of that kind of world.

    Raises:
        SceneError: The kind does not exist, the configuration is that of another kind, or the scene
            cannot be simulated.
        AddressError: The scene's belief names a parameter that does not exist.
        MissingExtraError: The kind needs libraries that are not installed.
    """
    if kind not in get_args(Kind):
        kinds = get_args(Kind)
        raise SceneError(
            f"There is no kind of world '{kind}'. Kinds: {listed(kinds)}."
            f"{closest(str(kind), cast('tuple[str, ...]', kinds))}"
        )
    if kind == "differentiable":
        return _differentiable(scene, config)
    from sameworld.worlds.explicit import ExplicitConfig, explicit_world

    if config is not None and not isinstance(config, ExplicitConfig):
        raise SceneError(f"Kind 'explicit' takes an ExplicitConfig, got {type(config).__name__}.")
    return explicit_world(scene, config)


def _differentiable(scene: Scene, config: object) -> World:
    for library in ("jax", "equinox", "optax"):
        if importlib.util.find_spec(library) is None:
            raise MissingExtraError(library, "jax")
    from sameworld.worlds.differentiable import DifferentiableConfig, differentiable_world

    if config is not None and not isinstance(config, DifferentiableConfig):
        raise SceneError(
            f"Kind 'differentiable' takes a DifferentiableConfig, got {type(config).__name__}."
        )
    return differentiable_world(scene, config)
