"""Which gradients of a scene are silent, and why."""

from __future__ import annotations

from collections.abc import Sequence

from sameworld.core.arrays import Array
from sameworld.core.silent import SilentGradient
from sameworld.core.silent import silent_gradients as compared
from sameworld.core.values import Values
from sameworld.worlds.compiled.ineffective import ineffective
from sameworld.worlds.differentiable.world import DifferentiableWorld

__all__ = ["silent_gradients"]


def silent_gradients(
    world: DifferentiableWorld,
    start: Values,
    actions: Array,
    wrt: Sequence[str] = (),
    *,
    parameters: Values | None = None,
) -> tuple[SilentGradient, ...]:
    """Compare exact derivatives with central differences of the same program.

    Reasons come from the compiled scene where it knows them: a geom whose partner has the larger
    friction, damping that is switched off, an address that another one replaces.

    Args:
        world: The world.
        start: Starts [B, S].
        actions: Actions [B, T, A].
        wrt: Names of parameters and starts; all parameters if not given.
        parameters: Parameter values [B or 1, P'].
    """
    tables = world.kernel.tables
    names = tuple(tables.aliases.get(n, n) for n in wrt) or world.parameters.names
    own = [name for name in names if name in world.parameters.names]
    reasons = ineffective(tables.compiled, own, tables.groups, tables.slots)
    return compared(world, start, actions, wrt=names, parameters=parameters, reasons=reasons)
