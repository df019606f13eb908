"""Small MJCF scenes by name, each with a prior belief."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files

from sameworld.core.belief import Belief
from sameworld.core.errors import SceneError, closest, listed
from sameworld.core.scene import Component, HistoryLine, Scene
from sameworld.zoo import components, priors

__all__ = ["scene", "scene_names"]

_PRIORS: dict[str, Callable[[], Belief]] = {
    "arm": priors.arm_prior,
    "car": priors.car_prior,
    "cart": priors.cart_prior,
    "cube": priors.cube_prior,
    "pendulum": priors.pendulum_prior,
    "reacher": priors.reacher_prior,
    "rope": priors.rope_prior,
    "servo": priors.servo_prior,
    "sliding_box": priors.sliding_box_prior,
    "tensegrity": priors.tensegrity_prior,
    "tether": priors.tether_prior,
    "thrower": priors.thrower_prior,
}
_COMPONENTS: dict[str, Callable[[], tuple[Component, ...]]] = {
    "car": components.car_components,
    "servo": components.servo_components,
}


def scene_names() -> tuple[str, ...]:
    """Names that ``scene`` knows."""
    return tuple(_PRIORS)


def scene(name: str) -> Scene:
    """Load a scene of the zoo.

    Args:
        name: One of ``scene_names()``: a tossed ``cube``, a driven ``pendulum``, a ``cart`` on a
            rail, a seven-joint ``arm``, a ``sliding_box`` on a table, a hanging ``rope``,
            a ``servo`` with gear friction and firmware, a ``car``, a three-bar ``tensegrity``, a
            planar ``reacher`` of four links, a ``thrower`` with a ball in its cup, a ``tether``
            that casts a puck over a table.

    Raises:
        SceneError: There is none of that name.
    """
    if name not in _PRIORS:
        raise SceneError(
            f"The zoo has no scene '{name}'. It has {listed(_PRIORS)}.{closest(name, _PRIORS)}"
        )
    text = files("sameworld.zoo").joinpath("mjcf", f"{name}.xml").read_text(encoding="utf-8")
    line = HistoryLine(stage="zoo", summary=f"Taken from the zoo as '{name}'.")
    parts = _COMPONENTS[name]() if name in _COMPONENTS else ()
    return Scene(name=name, mjcf=text, components=parts, belief=_PRIORS[name](), history=(line,))
