"""MuJoCo as a world."""

from sameworld.worlds.compiled.ineffective import ineffective
from sameworld.worlds.compiled.mjcf import checked_mjcf
from sameworld.worlds.explicit.build import explicit_world
from sameworld.worlds.explicit.config import ExplicitConfig
from sameworld.worlds.explicit.world import ExplicitWorld

__all__ = ["ExplicitConfig", "ExplicitWorld", "checked_mjcf", "explicit_world", "ineffective"]
