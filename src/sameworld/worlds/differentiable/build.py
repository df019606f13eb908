"""From a scene to a differentiable world."""

from __future__ import annotations

from sameworld.core.scene import Scene
from sameworld.worlds.compiled.believed import Believed
from sameworld.worlds.differentiable.config import DifferentiableConfig
from sameworld.worlds.differentiable.kernel import make_kernel
from sameworld.worlds.differentiable.world import DifferentiableWorld

__all__ = ["differentiable_world"]


def differentiable_world(
    scene: Scene, config: DifferentiableConfig | None = None
) -> DifferentiableWorld:
    """Compile a scene into a world whose physics can be differentiated.

    Args:
        scene: The scene; its belief overrides the values in the MJCF.
        config: Period, contact pairs, solver, batching.

    Raises:
        SceneError: The scene cannot be simulated, or holds something that is not offered here.
        AddressError: The scene's belief names a parameter that does not exist.

    Warns:
        SameworldWarning: A parameter in the scene's belief has no effect.
    """
    kernel = make_kernel(scene, config or DifferentiableConfig())
    believed = Believed.of(kernel.tables, scene)
    return DifferentiableWorld(scene=believed.scene, parameters=believed.parameters, kernel=kernel)
