"""From a scene to an explicit world."""

from __future__ import annotations

import warnings

from sameworld.core.belief import Belief
from sameworld.core.errors import SameworldWarning, SceneError, listed
from sameworld.core.scene import Scene
from sameworld.worlds.compiled.ineffective import ineffective
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
    everything = Belief(parameters=tuple(slot.parameter() for slot in kernel.slots))
    belief = kernel.canonical(scene.belief)
    idle = ineffective(kernel.compiled, belief.names, kernel.groups, kernel.slots)
    for name, reason in idle.items():
        warnings.warn(f"'{name}' has no effect: {reason}", SameworldWarning, stacklevel=2)
    return ExplicitWorld(
        scene=scene.with_belief(belief),
        parameters=everything.updated(belief),
        kernel=kernel,
    )
