"""MuJoCo's physics in JAX: the same scene, with exact derivatives."""

from sameworld.worlds.differentiable.build import differentiable_world
from sameworld.worlds.differentiable.config import DifferentiableConfig
from sameworld.worlds.differentiable.detector import silent_gradients
from sameworld.worlds.differentiable.world import DifferentiableWorld

__all__ = [
    "DifferentiableConfig",
    "DifferentiableWorld",
    "differentiable_world",
    "silent_gradients",
]
