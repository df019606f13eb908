"""Pieces of dynamics that MJCF lacks: friction laws, firmware controllers, impedance, cars."""

from sameworld.worlds.components.arrays import at_tick
from sameworld.worlds.components.law import Clock, Effect, Field, Law, Motion, Signal, library
from sameworld.worlds.components.registry import LAWS, law_of

__all__ = [
    "LAWS",
    "Clock",
    "Effect",
    "Field",
    "Law",
    "Motion",
    "Signal",
    "at_tick",
    "law_of",
    "library",
]
