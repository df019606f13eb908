"""The kinds of world, how to build one and how to check one."""

from sameworld.worlds.build import build
from sameworld.worlds.check import CheckReport, check_world

__all__ = ["CheckReport", "build", "check_world"]
