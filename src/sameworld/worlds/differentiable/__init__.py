"""MuJoCo's physics in JAX: the same scene, with exact derivatives."""

from sameworld.worlds.differentiable.build import differentiable_world
from sameworld.worlds.differentiable.config import DifferentiableConfig
from sameworld.worlds.differentiable.silence import silence_reasons
from sameworld.worlds.differentiable.world import DifferentiableWorld

__all__ = [
    "DifferentiableConfig",
    "DifferentiableWorld",
    "differentiable_world",
    "silence_reasons",
]
