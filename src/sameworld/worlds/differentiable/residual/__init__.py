"""A small network inside the engine's step, trained through the simulation."""

from sameworld.worlds.differentiable.residual.config import Input, ResidualConfig
from sameworld.worlds.differentiable.residual.network import Network
from sameworld.worlds.differentiable.residual.world import ResidualWorld, residual_world

__all__ = ["Input", "Network", "ResidualConfig", "ResidualWorld", "residual_world"]
