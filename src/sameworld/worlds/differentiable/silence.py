"""Why gradients of a scene are silent, where its compiled model knows."""

from __future__ import annotations

from collections.abc import Sequence

from sameworld.worlds.compiled.ineffective import ineffective
from sameworld.worlds.differentiable.world import DifferentiableWorld

__all__ = ["silence_reasons"]


def silence_reasons(world: DifferentiableWorld, names: Sequence[str] = ()) -> dict[str, str]:
    """Reasons for ``sameworld.silent_gradients``: why parameters have no effect in a scene.

    A geom whose partner has the larger friction, damping that is switched off, an address that
    another one replaces.

    Args:
        world: The world.
        names: Names of parameters and starts; all parameters if not given.

    Returns:
        Reasons by name, for those names that have one.
    """
    tables = world.kernel.tables
    asked = {tables.aliases.get(n, n): n for n in names or world.parameters.names}
    own = [name for name in asked if name in world.parameters.names]
    known = ineffective(tables.compiled, own, tables.groups, tables.slots)
    return {asked[name]: reason for name, reason in known.items()}
