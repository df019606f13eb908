"""From a scene to an explicit world."""

from __future__ import annotations

from sameworld.core.errors import SceneError, listed
from sameworld.core.scene import Scene
from sameworld.worlds.compiled.believed import Believed
from sameworld.worlds.explicit.config import ExplicitConfig
from sameworld.worlds.explicit.kernel import make_kernel
from sameworld.worlds.explicit.world import ExplicitWorld

__all__ = ["explicit_world"]


def explicit_world(scene: Scene, config: ExplicitConfig | None = None) -> ExplicitWorld:
    """Compile a scene into a MuJoCo world.

    Args:
        scene: The scene; its belief overrides the values in the MJCF.
        config: Period, threads, contact pairs, caches.

    Raises:
        SceneError: The scene cannot be simulated.
        AddressError: The scene's belief names a parameter that does not exist.

    Warns:
        SameworldWarning: A parameter in the scene's belief has no effect.
    """
    if scene.components and config is not None and config.guard is not None:
        raise SceneError(
            f"Scene '{scene.name}' has components {listed(c.name for c in scene.components)}; "
            "failures of such scenes cannot be dumped for replay by plain MuJoCo. Build it without "
            "'guard'."
        )
    kernel = make_kernel(scene, config or ExplicitConfig())
    believed = Believed.of(kernel.tables, scene)
    return ExplicitWorld(scene=believed.scene, parameters=believed.parameters, kernel=kernel)
